// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/rpc_server.h"

G_BEGIN_DECLS

/* MusterHealthService answers gRPC's standard health calls (wire/proto/health.proto) on any number
 * of RPC servers. It knows one name, the empty one, for the server as a whole: SERVING until it is
 * stopped, NOT_SERVING from then on. Its handlers never block, so they aren't run by the crew: a
 * probe is answered however many steps are stuck. Any thread. */

typedef struct _MusterHealthService MusterHealthService;

MusterHealthService *muster_health_service_new (void);
/* After the RPC servers it was entered into have stopped. */
void muster_health_service_free (MusterHealthService *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHealthService, muster_health_service_free)

/* Enters Check and Watch, before rpc is started. */
void muster_health_service_enter (MusterHealthService *self, MusterRpcServer *rpc);

/* How many watch. */
guint muster_health_service_n_watchers (MusterHealthService *self);

/* Tells NOT_SERVING to those who watch, and ends their streams, CANCELLED. Idempotent. */
void muster_health_service_stop (MusterHealthService *self);

G_END_DECLS
