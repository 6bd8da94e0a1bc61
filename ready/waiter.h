// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "ready/countdown.h"

G_BEGIN_DECLS

/* MusterWaiter waits in one session until a model is ready, and says why it isn't meanwhile: pushed
 * by the master where it can (muster_session_watch), else by looking as MusterCountdown says
 * (docs/decisions/0007). One thread. */

typedef struct _MusterWaiter MusterWaiter;

/* Each change of readiness (ready/chief_gate.h) until the model is ready; readiness is borrowed,
 * and its version counts the changes of this waiter. */
typedef void (*MusterWaitProgress) (const MusterReadiness *readiness, gpointer user_data);

/* ceiling_us: the longest pause between two looks. clock NULL: the machine's. */
MusterWaiter *muster_waiter_new (MusterSession *session, const MusterWatchFor *what,
                                 gint64 ceiling_us, MusterClock *clock);
void muster_waiter_free (MusterWaiter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterWaiter, muster_waiter_free)

void muster_waiter_set_progress (MusterWaiter *self, MusterWaitProgress progress,
                                 gpointer user_data);

/* From now on each wait is one look (where a model is named and the master pushes, one turn): the
 * deadline bounds that look, and DEADLINE_EXCEEDED says that the model wasn't ready. */
void muster_waiter_poll_once (MusterWaiter *self);

/* Waits until the gate is open, or until the model is ready. FALSE: DEADLINE_EXCEEDED
 * (muster_waiter_why () has the last reason), G_IO_ERROR_CANCELLED, ABORTED (the session is gone:
 * make another), UNAVAILABLE (also for a look that a master left unanswered for a minute),
 * OUT_OF_RANGE where the model that was named is over, or what the op failed with. */
gboolean muster_waiter_wait_gate (MusterWaiter *self, gint64 deadline_us, GCancellable *cancellable,
                                  GError **error);
gboolean muster_waiter_wait_ready (MusterWaiter *self, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

/* The last reason heard, or NULL; borrowed. */
const char *muster_waiter_why (MusterWaiter *self);
/* The last turn, empty before the first; borrowed until the next wait. */
const MusterReadiness *muster_waiter_readiness (MusterWaiter *self);
/* How often it looked, or was told; and whether it was told. */
guint muster_waiter_n_polls (MusterWaiter *self);
gboolean muster_waiter_is_pushed (MusterWaiter *self);

G_END_DECLS
