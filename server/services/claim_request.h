// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "rpc/proto/muster.pb-c.h"
#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* What a claim brings: a secret, a graph, and the time for the chiefs of before. */

/* Compares in a time that doesn't depend on where they differ. FALSE if nothing is known. */
gboolean muster_server_is_proof (const char *shown, const char *known);

/* The graph of the claimant's session, or what stands for it without one. (transfer full) NULL
 * without an error if it is unknown. */
MusterGraph *muster_server_claimants_graph (MusterServer *server,
                                            const Muster__ClaimRequest *request, GError **error);

/* A chief whose steps aren't this server's has outlived the server before this one. Until it had
 * the time to come back, a claim of its model waits: it can't be told whether that chief lives. */
void muster_server_wait_for_return (MusterServer *server, MusterRpcCall *call,
                                    const Muster__ClaimRequest *request);

/* That a chief's process has ended is heard a moment later: a claim that spares it while it lives
 * waits that long. */
void muster_server_wait_for_end (MusterServer *server, MusterRpcCall *call,
                                 const Muster__ClaimRequest *request);

G_END_DECLS
