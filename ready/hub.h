// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* MusterReadinessHub answers the same question for many at once: the server's side of Watch. A
 * question is a graph and two ops; however many sessions ask it, it is run once, in the first
 * asker's session, when the master says that some variable has gained or lost its value (or, on a
 * master that can't say, by one poller). Askers hear each change once, in order. One thread of its
 * own runs the questions, so the step that made the model ready isn't held up. Any thread may ask.
 */

typedef struct _MusterReadinessHub MusterReadinessHub;
typedef struct _MusterAsker MusterAsker;

MusterReadinessHub *muster_readiness_hub_new (MusterMaster *master, MusterClock *clock);
/* Ends all askers and joins its thread. */
void muster_readiness_hub_free (MusterReadinessHub *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterReadinessHub, muster_readiness_hub_free)

/* Called on the hub's thread: with a turn, or at the end with an error (the session is gone, the op
 * failed). Not after muster_readiness_hub_leave () has returned. */
typedef void (*MusterTurnFunc) (const MusterTurn *turn, const GError *error, gpointer user_data);

/* The present turn is told at once (on the hub's thread). Either op may be NULL. */
MusterAsker *muster_readiness_hub_ask (MusterReadinessHub *self, MusterSession *session,
                                       const char *gate_op, const char *ready_op,
                                       MusterTurnFunc func, gpointer user_data);
void muster_readiness_hub_leave (MusterReadinessHub *self, MusterAsker *asker);

guint muster_readiness_hub_n_askers (MusterReadinessHub *self);

G_END_DECLS
