// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterGateway is TensorFlow's MasterService for a master behind gRPC. It reads from a call only
 * what the server itself needs (which session, how large, whether a limit applies) and passes call
 * and response on unchanged. The master's session handles are used by its clients too. Any thread.
 */

typedef struct _MusterGateway MusterGateway;

/* needed: see MusterServerOptions. */
MusterGateway *muster_gateway_new (MusterServer *server, const char *const *needed);
/* Looks whether the master can be used, from now on; waits for that a second at most. */
void muster_gateway_start (MusterGateway *self);
/* Looks after no task any more, nor after the master. Idempotent. */
void muster_gateway_stop (MusterGateway *self);
void muster_gateway_free (MusterGateway *self);
void muster_gateway_enter (MusterGateway *self);

G_END_DECLS
