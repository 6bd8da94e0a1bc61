// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "ready/chief_registry.h"

G_BEGIN_DECLS

/* MusterReadinessHub answers the same question for many at once: the server's side of Watch. A
 * question is a graph, two ops and a model; however many sessions ask it, its ops are run once, in
 * the first asker's session, when the master says that some variable has gained or lost its value.
 * What the model's chief announces on the board has its say too (ready/chief_gate.h): when that
 * changes, those who ask for that model are told, without another run.
 *
 * A master that can't tell of changes is polled by one poller: at least once a second while
 * somebody waits, every ten seconds once all have heard that the model is ready, and when its chief
 * changes phase; who comes then isn't told an answer older than a second.
 *
 * Askers hear each change once, in order. One thread of its own runs the questions, so the step
 * that made the model ready isn't held up. Any thread may ask. */

typedef struct _MusterReadinessHub MusterReadinessHub;
typedef struct _MusterSubscriber MusterSubscriber;

/* registry (nullable): nobody announces anything here. It lives longer than the hub, which is its
 * listener. */
MusterReadinessHub *muster_readiness_hub_new (MusterMaster *master, MusterChiefRegistry *registry,
                                              MusterClock *clock);
/* Ends all askers and joins its thread. */
void muster_readiness_hub_free (MusterReadinessHub *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReadinessHub, muster_readiness_hub_free)

/* What is told, by the hub's thread: a turn; or at the end, an error (the session is gone, the op
 * failed). Not after muster_readiness_hub_unsubscribe () has returned. All who are told one turn in
 * one go hear it under the same round, which nothing else has: what one made of it serves the
 * others.
 */
typedef void (*MusterReadinessFunc) (const MusterReadiness *readiness, guint64 round,
                                     const GError *error, gpointer user_data);

/* The present turn is told at once (on the hub's thread). */
MusterSubscriber *muster_readiness_hub_subscribe (MusterReadinessHub *self, MusterSession *session,
                                                  const MusterWatchFor *what,
                                                  MusterReadinessFunc func, gpointer user_data);
void muster_readiness_hub_unsubscribe (MusterReadinessHub *self, MusterSubscriber *subscriber);

/* A step has ended that may have changed what is ready, at a master that can't tell: who waits is
 * told soon, and not only by the next poll (ready/rate_limiter.h bounds what that costs). A master
 * that can tell is believed. Waits for nothing. */
void muster_readiness_hub_may_have_changed (MusterReadinessHub *self);

/* What is told of a model, on the thread that changed it: whoever listens must not block. */
typedef void (*MusterModelFunc) (const char *model, gpointer user_data);

/* Has func called, as long as the hub lives, when a model is claimed, prepared, ready, or no
 * longer: not for how far it has trained. For one who answers by the registry alone, and can't wait
 * for the hub's thread. Before the first claim, and once. */
void muster_readiness_hub_watch_models (MusterReadinessHub *self, MusterModelFunc func,
                                        gpointer user_data);

guint muster_readiness_hub_n_subscribers (MusterReadinessHub *self);

G_END_DECLS
