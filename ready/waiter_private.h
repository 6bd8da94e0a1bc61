// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "ready/countdown_private.h"

G_BEGIN_DECLS

/* MusterWaiter waits in one session until a model is ready, and reports why it isn't. The master
 * pushes changes if it supports that (muster_session_watch ()); otherwise it is polled as
 * MusterCountdown decides (docs/decisions/0007). One thread. */

typedef struct _MusterWaiter MusterWaiter;

/* Called during a wait for each change (ready/chief_gate_private.h) until the model is ready.
 * readiness is borrowed; its version counts this waiter's changes. */
typedef void (*MusterWaitProgress) (const MusterReadiness *readiness, gpointer user_data);

/* ceiling_us is the longest interval between two polls. clock NULL: the machine's. */
MusterWaiter *muster_waiter_new (MusterSession *session, const MusterWatchFor *what,
                                 gint64 ceiling_us, MusterClock *clock);
void muster_waiter_free (MusterWaiter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterWaiter, muster_waiter_free)

void muster_waiter_set_progress (MusterWaiter *self, MusterWaitProgress progress,
                                 gpointer user_data);

/* Makes each later wait a single check (for a model with a name on a master that pushes, the first
 * message). The deadline limits it, and DEADLINE_EXCEEDED means that the model wasn't ready. */
void muster_waiter_poll_once (MusterWaiter *self);

/* Waits until the gate is open, or until the model is ready. FALSE with DEADLINE_EXCEEDED
 * (with the last reason), G_IO_ERROR_CANCELLED, ABORTED (the session is
 * lost: create another), UNAVAILABLE (also if a poll isn't answered for a minute), OUT_OF_RANGE if
 * the named model's job is over, or the op's error. */
gboolean muster_waiter_wait_gate (MusterWaiter *self, gint64 deadline_us, GCancellable *cancellable,
                                  GError **error);
gboolean muster_waiter_wait_ready (MusterWaiter *self, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

/* The last readiness, empty before the first; borrowed until the next wait. */
const MusterReadiness *muster_waiter_readiness (MusterWaiter *self);
/* The number of polls or messages; and whether the master pushed them. */
guint muster_waiter_n_polls (MusterWaiter *self);
gboolean muster_waiter_is_pushed (MusterWaiter *self);

G_END_DECLS
