// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub_private.h"
#include "rpc/server/rpc_server_private.h"

G_BEGIN_DECLS

/* MusterHealthService answers gRPC's health calls (rpc/proto/health.proto) on any number of RPC
 * servers. The empty name is the server: SERVING until it drains or is stopped, then NOT_SERVING; a
 * gateway is NOT_SERVING while its master can't be used.
 * Other names are models announced by a chief: SERVING while the model is prepared, its ready op
 * passes and its job doesn't wait for tasks. Check on an unannounced name is NOT_FOUND; Watch
 * reports SERVICE_UNKNOWN and continues, as gRPC specifies, since the model may be announced later.
 * Its handlers never block, so they don't run in the handler pool: probes are answered even if all
 * steps are stuck. Any thread. */

typedef struct _MusterHealthService MusterHealthService;

/* Both are borrowed. The registry must outlive the service; the hub, which reports its changes,
 * must have ended before the service is freed. */
MusterHealthService *muster_health_service_new (MusterReadinessHub *hub,
                                                MusterChiefRegistry *registry);
/* After the RPC servers that it is registered with have stopped. */
void muster_health_service_free (MusterHealthService *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHealthService, muster_health_service_free)

/* Registers Check and Watch, before rpc is started. */
void muster_health_service_enter (MusterHealthService *self, MusterRpcServer *rpc);

/* The tasks of a model's job have changed; of its chief the hub reports it. */
void muster_health_service_note_change (MusterHealthService *self, const char *model);

/* The number of watchers. */
guint muster_health_service_n_watchers (MusterHealthService *self);

/* A gateway's master can't be used, or can again: while it can't, nothing is SERVING. */
void muster_health_service_set_cut_off (MusterHealthService *self, gboolean is_cut_off);
/* Sends NOT_SERVING to watchers, and answers so from now on. */
void muster_health_service_drain (MusterHealthService *self);
/* Sends NOT_SERVING to watchers, and ends their streams with CANCELLED. Idempotent. */
void muster_health_service_stop (MusterHealthService *self);

G_END_DECLS
