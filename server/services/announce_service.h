// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Claim, Announce and Drain. Also expires the registry's leases. */

typedef struct _MusterAnnounceService MusterAnnounceService;

MusterAnnounceService *muster_announce_service_new (MusterServer *server);
void muster_announce_service_free (MusterAnnounceService *self);
void muster_announce_service_enter (MusterAnnounceService *self);
/* Notes a reset of the master, with the registry's n_claims before it; it ended n_sessions, and
 * cleared these containers, by which alone it costs a model its variables; none is all. */
void muster_announce_service_reset (MusterAnnounceService *self, guint64 n_claims,
                                    const char *const *containers, guint n_sessions);
/* The master may have lost its variables: prepared models aren't ready until that is asked again,
 * in sessions of their own. */
void muster_announce_service_doubt (MusterAnnounceService *self);
/* Tells all chiefs that the server is draining, but those whose steps aren't the server's. */
void muster_announce_service_drain (MusterAnnounceService *self);
/* Asks the living chiefs of the model ("": of every model) to save and to hold until until_us
 * (system clock), as before a stop. (transfer full) (element-type utf8): the models that have one.
 */
GPtrArray *muster_announce_service_hold (MusterAnnounceService *self, const char *model,
                                         gint64 until_us);
/* How long the tasks of a model are yet to hold; 0: no longer. */
gint64 muster_announce_service_hold_left_us (MusterAnnounceService *self, const char *model);
/* Ends all leases' streams, and grants no more. Idempotent. */
void muster_announce_service_stop (MusterAnnounceService *self);

/* An administrator may reset the master; a caller with the role 'run' may if its connection holds
 * the lease on a model, and no other model has a chief or is prepared. Otherwise PERMISSION_DENIED.
 */
gboolean muster_announce_service_may_reset (MusterAnnounceService *self, MusterRpcCall *caller,
                                            GError **error);

G_END_DECLS
