// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server.h"

G_BEGIN_DECLS

/* MusterHandlerPool runs handlers that may block (a step that waits at a queue). As long as few are
 * at it they run on the RPC server's own thread, since a hop to another costs as much as a small
 * step; once those threads would run short, each further one gets a thread of its own, so that
 * calls are always taken in and a cancellation is always heard. Any thread. */

typedef struct _MusterHandlerPool MusterHandlerPool;

/* n_on_the_spot: how many of the RPC server's threads may be blocked at once; n_at_once: how many
 * handlers in all are sure not to wait for one another. */
MusterHandlerPool *muster_handler_pool_new (guint n_on_the_spot, guint n_at_once);
/* Waits for what still runs. */
void muster_handler_pool_free (MusterHandlerPool *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHandlerPool, muster_handler_pool_free)

void muster_handler_pool_run (MusterHandlerPool *self, MusterRpcHandler handler,
                              MusterRpcCall *call, GBytes *request, gpointer user_data);

G_END_DECLS
