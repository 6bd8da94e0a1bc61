// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub.h"
#include "rpc/server/rpc_server.h"

G_BEGIN_DECLS

/* MusterHealthService answers gRPC's standard health calls (rpc/proto/health.proto) on any number
 * of RPC servers. The empty name is the server as a whole: SERVING until it is stopped, NOT_SERVING
 * from then on. Any other is a model that a chief has announced: SERVING while it is prepared and
 * its ready op says yes. A name that nobody has announced is NOT_FOUND to Check; Watch says
 * SERVICE_UNKNOWN and goes on, as gRPC has it, since the model may yet come. Its handlers never
 * block, so they aren't run by the crew: a probe is answered however many steps are stuck. Any
 * thread. */

typedef struct _MusterHealthService MusterHealthService;

/* Both are borrowed: the registry lives longer, and the hub, which tells of its changes, has ended
 * before the service is freed. */
MusterHealthService *muster_health_service_new (MusterReadinessHub *hub,
                                                MusterChiefRegistry *registry);
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
