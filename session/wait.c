// SPDX-License-Identifier: Apache-2.0
#include "ready/waiter.h"
#include "session/session_private.h"

/* Pauses between attempts to get a session double from here up to a second (or the recovery
 * interval, where that is shorter): knocking costs nothing, and nobody should wait long for a
 * master that has come. Each is drawn at random below that, so that a thousand workers don't knock
 * together. */
#define FIRST_PAUSE_US (100 * MUSTER_MILLISECOND)
#define LAST_PAUSE_US  MUSTER_SECOND
#define LEAST_PAUSE_US (10 * MUSTER_MILLISECOND)
/* An attempt that lasted so long was not knocking: the next pause is the first again. A master that
 * takes sessions and loses them at once is knocked at as rarely as one that isn't there. */
#define LONG_LIFE_US (10 * MUSTER_SECOND)

static void
on_turn (const MusterTurn *turn, gpointer user_data)
{
  MusterVerb *self = user_data;
  g_autofree char *message = g_strdup_printf (
      "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
      turn->why_gate ? turn->why_gate : "None", turn->why_not_ready ? turn->why_not_ready : "None");

  muster_verb_tell (self, message, turn);
}

/* Gate, local init once in this session, then the ready op. */
static gboolean
wait_in_session (MusterVerb *self, MusterSession *session, MusterWaiter *waiter, GError **error)
{
  gint64 deadline_us = self->call_deadline_us;

  if (self->manager->local_init_op) {
    if (!muster_waiter_wait_gate (waiter, deadline_us, self->cancellable, error) ||
        !muster_verb_run_local_init (self, session, error))
      return FALSE;
    muster_verb_phase (self, "waiting");
  }

  return muster_waiter_wait_ready (waiter, deadline_us, self->cancellable, error);
}

/* One session's life: made, waited in; closed if that fails. */
static MusterSession *
try_session (MusterVerb *self, gboolean *had_looked, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  g_autoptr (MusterSession) session = muster_verb_create_session (self, error);

  if (!session)
    return NULL;

  g_autoptr (MusterWaiter) waiter = muster_waiter_new (
      session,
      &(MusterWatchFor){.ready_for_local_init_op = manager->ready_for_local_init_op,
                        .ready_op = manager->ready_op},
      manager->recovery_wait_us, self->clock);
  muster_waiter_set_progress (waiter, on_turn, self);
  if (self->timeout_us <= 0)
    muster_waiter_look_once (waiter);
  muster_verb_phase (self, "waiting");
  gboolean ready = wait_in_session (self, session, waiter, error);

  *had_looked = muster_waiter_looks (waiter) > 0;
  self->report.looks += muster_waiter_looks (waiter);
  self->report.pushed |= muster_waiter_is_pushed (waiter);
  if (ready)
    return g_steal_pointer (&session);
  muster_verb_set_why (self, muster_waiter_why (waiter));
  muster_session_close_quietly (session);

  return NULL;
}

/* The one place that decides what a waiter outlives. */
static gboolean
is_outlived (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED);
}

static gint64
backoff_us (MusterVerb *self, guint n_failed)
{
  gint64 ceiling_us = FIRST_PAUSE_US << MIN (n_failed, 20);

  ceiling_us = MIN (MIN (ceiling_us, LAST_PAUSE_US), self->manager->recovery_wait_us);

  return MAX ((gint64)((double)ceiling_us * muster_clock_random (self->clock)), LEAST_PAUSE_US);
}

/* Pauses before another attempt, which must still end by the deadline if it costs what the last one
 * did. */
static gboolean
pause_before_retry (MusterVerb *self, guint n_failed, gint64 cost_us, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 wake_us = muster_deadline_after (now_us, backoff_us (self, n_failed));
  gint64 last_us = self->deadline_us == MUSTER_WAIT_FOREVER
                       ? MUSTER_WAIT_FOREVER
                       : self->deadline_us - MAX (cost_us + cost_us / 4, MUSTER_MILLISECOND);

  if (last_us > now_us)
    return muster_clock_wait_until (self->clock, MIN (wake_us, last_us), self->cancellable, error);
  if (!muster_clock_wait_until (self->clock, self->deadline_us, self->cancellable, error))
    return FALSE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                       "No time left for another session");

  return FALSE;
}

MusterSession *
muster_verb_wait (MusterVerb *self, GError **error)
{
  guint n_failed = 0;

  for (;;) {
    g_autoptr (GError) failure = NULL;
    gboolean had_looked = FALSE;
    gint64 started_us = muster_clock_now_us (self->clock);
    MusterSession *session = try_session (self, &had_looked, &failure);
    gint64 cost_us = muster_clock_now_us (self->clock) - started_us;

    if (session)
      return session;
    if (!is_outlived (failure) || self->timeout_us <= 0) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return NULL;
    }
    muster_verb_set_why (self, failure->message);
    muster_verb_tell (self, failure->message, NULL);
    n_failed = cost_us >= LONG_LIFE_US ? 0 : n_failed + 1;
    muster_verb_phase (self, "connect");
    if (!pause_before_retry (self, n_failed, had_looked ? 0 : cost_us, error))
      return NULL;
  }
}
