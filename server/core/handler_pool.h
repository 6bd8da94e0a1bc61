// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server_private.h"

G_BEGIN_DECLS

/* MusterHandlerPool runs handlers that may block (a step that waits at a queue). The first ones run
 * on the RPC server's threads, since a switch to another thread costs as much as a small step. When
 * those threads run short, each further handler gets its own thread, so that calls are always
 * accepted and cancellations always received. Any thread. */

typedef struct _MusterHandlerPool MusterHandlerPool;

/* n_on_the_spot is the number of the RPC server's threads that may be blocked at once; n_at_once is
 * the number of handlers that are guaranteed to run concurrently. */
MusterHandlerPool *muster_handler_pool_new (guint n_on_the_spot, guint n_at_once);
/* Waits for running handlers. */
void muster_handler_pool_free (MusterHandlerPool *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHandlerPool, muster_handler_pool_free)

void muster_handler_pool_run (MusterHandlerPool *self, MusterRpcHandler handler,
                              MusterRpcCall *call, GBytes *request, gpointer user_data);

G_END_DECLS
