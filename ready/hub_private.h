// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "ready/chief_registry_private.h"
#include "ready/member_registry_private.h"

G_BEGIN_DECLS

/* MusterReadinessHub watches readiness for many clients: the server's side of Watch. A question is
 * a graph, two ops and a model. However many sessions ask it, its ops run once, in the first one's
 * session, when the master reports that a variable has gained or lost its value. The chief's
 * announcement in the registry limits the result (ready/chief_gate_private.h): when it changes, the
 * clients that asked for that model are notified without another run.
 *
 * A master that doesn't report changes is polled by one poller: at least once a second while
 * clients wait, every ten seconds when all know that the model is ready, and when its chief changes
 * phase. A new client isn't given a result older than a second.
 *
 * Clients receive each change once, in order. The hub runs the questions on its own thread, so the
 * step that made the model ready isn't delayed. Any thread. */

typedef struct _MusterReadinessHub MusterReadinessHub;
typedef struct _MusterSubscriber MusterSubscriber;

/* registry (nullable): NULL without announcements. It must outlive the hub, which is its listener.
 */
MusterReadinessHub *muster_readiness_hub_new (MusterMaster *master, MusterChiefRegistry *registry,
                                              MusterClock *clock);
/* Ends all subscriptions and joins the thread. */
void muster_readiness_hub_free (MusterReadinessHub *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReadinessHub, muster_readiness_hub_free)

/* Clients that wait for a model are notified if its job waits for tasks. Call this before the first
 * one subscribes, and the other function after each change of the members (it doesn't block).
 * members must outlive the hub. */
void muster_readiness_hub_set_members (MusterReadinessHub *self, MusterMemberRegistry *members);
void muster_readiness_hub_members_changed (MusterReadinessHub *self, const char *model);
/* Whether the job that trains a model has fewer tasks than it needs. */
gboolean muster_readiness_hub_waits_for_tasks (MusterReadinessHub *self, const char *model);

/* Called on the hub's thread with a change or, at the end, with an error (the session is lost, the
 * op failed). Not called after muster_readiness_hub_unsubscribe () has returned. Subscribers
 * notified of the same change have the same round, which is unique, so that what one computes for
 * it can be reused. */
typedef void (*MusterReadinessFunc) (const MusterReadiness *readiness, guint64 round,
                                     const GError *error, gpointer user_data);

/* In such a function: when the master or the chief reported the change, on the hub's clock; 0 if
 * none did, as for a new subscriber. */
gint64 muster_readiness_hub_changed_us (MusterReadinessHub *self);

/* The current readiness is reported at once (on the hub's thread). session (nullable): without one
 * what names a model and no ops, and the chief alone decides. */
MusterSubscriber *muster_readiness_hub_subscribe (MusterReadinessHub *self, MusterSession *session,
                                                  const MusterWatchFor *what,
                                                  MusterReadinessFunc func, gpointer user_data);
void muster_readiness_hub_unsubscribe (MusterReadinessHub *self, MusterSubscriber *subscriber);

/* Notes that a step has ended which may have changed readiness, on a master that doesn't report
 * changes. Clients are then notified soon, not only at the next poll (ready/rate_limiter_private.h
 * limits the cost). Ignored on other masters. Doesn't block. */
void muster_readiness_hub_may_have_changed (MusterReadinessHub *self);

/* Called on the thread that changed the model; it must not block. */
typedef void (*MusterModelFunc) (const char *model, gpointer user_data);

/* Calls func, during the hub's life, when a model is claimed, prepared, ready or no longer so, not
 * when it has only trained further. For code that answers from the registry and can't wait for the
 * hub's thread. Before the first claim. */
void muster_readiness_hub_watch_models (MusterReadinessHub *self, MusterModelFunc func,
                                        gpointer user_data);

guint muster_readiness_hub_n_subscribers (MusterReadinessHub *self);

G_END_DECLS
