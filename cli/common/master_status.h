// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "rpc/client/diagnose.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* What a muster server says of itself, its models and their tasks, and why none answers. */

/* The address in a target, HOST:PORT or unix:/PATH, which may stand alone: a part of target. *tls
 * is set. NULL with INVALID_ARGUMENT. */
const char *muster_cli_master_address (const char *target, gboolean *tls, GError **error);

/* Asks once. After `after` changes (0: at once) the server waits for another one, for wait_us. The
 * message lives in arena. */
Muster__StatusResponse *muster_cli_master_status (MusterRpcClient *client, gint64 after,
                                                  gint64 wait_us, gint64 deadline_us,
                                                  MusterArena *arena, GError **error);

/* TRUE if no server has answered. */
gboolean muster_cli_is_unanswered (const GError *error);

/* What to try at an address after a diagnosis; command is "status", for a command that would be
 * answered. (transfer full) */
char *muster_cli_no_answer_hint (const char *address, gboolean tls, MusterReach stage,
                                 const char *command);

G_END_DECLS
