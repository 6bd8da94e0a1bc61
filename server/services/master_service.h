// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* TensorFlow's MasterService; its steps and callables have a file of their own. */
void muster_master_service_enter (MusterServer *server);

/* For how long the session that a call makes lives without a word from its client; 0: until it is
 * closed. */
gboolean muster_server_read_lease (MusterServer *server, MusterRpcCall *call, gint64 *lease_us,
                                   GError **error);

G_END_DECLS
