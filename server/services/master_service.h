// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/proto/muster.pb-c.h"
#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* Registers TensorFlow's MasterService; steps and callables are in server/services/step_service.h.
 */
void muster_master_service_enter (MusterServer *server);

/* CreateSession of a graph that the server has (rpc/proto/muster.proto). */
#define MUSTER_CREATE_KNOWN "/muster.Readiness/CreateKnown"

/* The bytes of the graph that the request names (transfer full). NOT_FOUND if it isn't known. */
GBytes *muster_server_find_graph (MusterServer *server, const Muster__CreateKnownRequest *request,
                                  GError **error);

/* Reads the lease of a new session from the call; 0: the session is kept until it is closed. */
gboolean muster_server_read_lease (MusterServer *server, MusterRpcCall *call, gint64 *lease_us,
                                   GError **error);

G_END_DECLS
