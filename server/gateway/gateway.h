// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterGateway is TensorFlow's MasterService where the master that is served lives behind gRPC: a
 * call is looked at only as far as the server's own business goes (which session, how large, does a
 * place have to be taken) and passed on as the bytes it is, and so is what comes back. The handle
 * that the master gives to a session serves its clients as well. Any thread. */

typedef struct _MusterGateway MusterGateway;

MusterGateway *muster_gateway_new (MusterServer *server);
void muster_gateway_free (MusterGateway *self);
void muster_gateway_enter (MusterGateway *self);

G_END_DECLS
