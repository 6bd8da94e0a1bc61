// SPDX-License-Identifier: Apache-2.0
/* Creates the successive sessions of a monitored session: prepares or waits, runs the hooks'
 * after_create_session, and measures what that took. After a loss it pauses by the retry policy,
 * and outbids its own lost lease. */
#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "ready/pause_private.h"
#include "train/monitored/monitored_session_private.h"
#include "train/monitored/queue_runner_private.h"
#include "train/monitored/session_observer_private.h"

/* The grace for threads, and for a master that doesn't answer, after a cancellation. */
#define HASTY_GRACE_US (200 * MUSTER_MILLISECOND)
#define HASTY_CLOSE_US (200 * MUSTER_MILLISECOND)

gboolean
muster_monitored_is_recoverable (const MusterMonitoredSession *self, const GError *failure)
{
  return !self->never_recover && (muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
                                  muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE));
}

/* The time limit for creating a session: the given one, but at most what the run has left. */
static gint64
making_timeout_us (const MusterMonitoredSession *self)
{
  gint64 asked_us = self->is_worker ? self->max_wait_us : self->prepare->timeout_us;
  gint64 left_us = muster_deadline_remaining (self->deadline_us, muster_clock_now_us (self->clock));
  if (asked_us == 0)
    asked_us = MUSTER_WAIT_FOREVER;
  return MIN (asked_us, MAX (left_us, 1));
}

static MusterSession *
prepare_or_wait (MusterMonitoredSession *self, gint64 timeout_us, MusterSessionReport *report,
                 GError **error)
{
  MusterPrepareOptions prepare = *self->prepare;
  prepare.timeout_us = timeout_us;
  if (!self->is_worker)
    return muster_session_manager_prepare_session (self->manager, self->master, &prepare, report,
                                                   muster_monitored_cancellable (self), error);
  return muster_session_manager_wait_for_session (self->manager, self->master, timeout_us, report,
                                                  muster_monitored_cancellable (self), error);
}

/* After a cancellation the session's threads are stopped. */
static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer coordinator)
{
  (void)muster_coordinator_request_stop (coordinator, NULL, NULL);
}

static void
set_coordinator (MusterMonitoredSession *self, MusterCoordinator *coordinator)
{
  g_mutex_lock (&self->lock);
  g_autoptr (MusterCoordinator) before = self->coordinator;
  self->coordinator = coordinator;
  g_mutex_unlock (&self->lock);
  if (self->cancellable != NULL)
    self->cancel_id = g_cancellable_connect (self->cancellable, G_CALLBACK (on_cancelled),
                                             g_object_ref (coordinator), g_object_unref);
}

void
muster_monitored_join (MusterMonitoredSession *self, gint64 deadline_us, GError **error)
{
  gboolean is_cancelled = g_cancellable_is_cancelled (muster_monitored_cancellable (self));
  gint64 grace_us = is_cancelled ? MIN (self->stop_grace_us, HASTY_GRACE_US) : self->stop_grace_us;
  g_cancellable_disconnect (self->cancellable, self->cancel_id);
  self->cancel_id = 0;
  (void)muster_coordinator_request_stop (self->coordinator, NULL, NULL);
  (void)muster_coordinator_join (self->coordinator, grace_us, TRUE, deadline_us,
                                 is_cancelled ? NULL : muster_monitored_cancellable (self), error);
}

void
muster_monitored_close (MusterMonitoredSession *self)
{
  if (self->session == NULL)
    return;
  if (g_cancellable_is_cancelled (muster_monitored_cancellable (self)))
    muster_session_close_quietly_within (self->session, HASTY_CLOSE_US);
  else
    muster_session_close_quietly (self->session);
  g_clear_object (&self->session);
}

/* The chief's saver may keep the lost session's lease alive. That lease yields to a higher epoch;
 * the lease of another chief, which has an equally high epoch, doesn't. */
static void
outbid_lease (MusterMonitoredSession *self)
{
  MusterLease *lease = self->session != NULL ? muster_session_manager_lease (self->session) : NULL;
  if (lease != NULL)
    self->prepare->epoch = MAX (self->prepare->epoch, muster_lease_epoch (lease) + 1);
}

void
muster_monitored_drop (MusterMonitoredSession *self)
{
  outbid_lease (self);
  muster_goodput_meter_lost (self->meter);
  if (self->coordinator != NULL) {
    g_autoptr (GError) reported = NULL;
    muster_monitored_join (self, self->deadline_us, &reported);
    if (reported != NULL)
      muster_log (G_LOG_LEVEL_INFO, "further-error", "MESSAGE", "ignored with the lost session: %s",
                  reported->message);
  }
  muster_session_give_up (self->session);
  g_clear_object (&self->session);
}

void
muster_monitored_note_mistake (MusterMonitoredSession *self, const GError *failure)
{
  if (!muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
    return;
  g_clear_error (&self->hooks_mistake);
  self->hooks_mistake = g_error_copy (failure);
}

/* --- what creating a session took --- */

static gint64
phase_us (const MusterSessionReport *report, const char *name)
{
  for (guint i = 0; report->phases != NULL && i < report->phases->len; i++) {
    const MusterSpan *phase = &g_array_index (report->phases, MusterSpan, i);
    if (strcmp (phase->name, name) == 0)
      return phase->duration_us;
  }
  return 0;
}

/* A job that initialises its model is a new one; any other goes on. */
static void
measure (MusterMonitoredSession *self, const MusterSessionReport *report)
{
  const gboolean is_new =
      !self->is_worker && report->restored_from == NULL && phase_us (report, "init") > 0;
  const gint64 step = report->restored_from != NULL ? muster_checkpoint_step (report->restored_from)
                      : report->continued           ? report->continued_step
                      : is_new                      ? 0
                                                    : -1;

  if (is_new)
    muster_goodput_meter_forget (self->meter);
  else
    muster_goodput_meter_resume (self->meter, report->goodput, report->goodput_at_us,
                                 report->continued);
  muster_goodput_meter_made (self->meter, phase_us (report, "restore"),
                             phase_us (report, "init") + phase_us (report, "local init"), step);
}

/* The hooks' after_create_session counts as part of creating the session. error must not be NULL.
 */
static gboolean
create (MusterMonitoredSession *self, MusterSessionReport *report, GError **error)
{
  const gint64 timeout_us = making_timeout_us (self);
  const gint64 deadline_us =
      timeout_us < 0 ? self->deadline_us
                     : muster_deadline_after (muster_clock_now_us (self->clock), timeout_us);
  GError *failure = NULL;

  for (guint i = 0; self->session_since_us > 0 && i < self->hooks->len; i++)
    muster_hook_session_lost (self->hooks->pdata[i]);
  self->session = prepare_or_wait (self, timeout_us, report, &failure);
  if (self->session != NULL)
    measure (self, report);
  muster_session_observer_made (self->observer, report, failure);
  if (self->session == NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  self->prepare->overwrite = FALSE; /* it applies to the first session only */
  self->session_since_us = muster_clock_now_us (self->clock);
  set_coordinator (self, muster_coordinator_new (self->clock, FALSE));
  muster_queue_runners_start (self->queue_runners, self->session, self->coordinator);
  for (guint i = 0; i < self->hooks->len; i++)
    if (!muster_hook_after_create_session (self->hooks->pdata[i], self->session, self->coordinator,
                                           deadline_us, muster_monitored_cancellable (self),
                                           error)) {
      muster_monitored_note_mistake (self, *error);
      muster_monitored_drop (self);
      return FALSE;
    }
  (void)muster_goodput_meter_enter (self->meter, MUSTER_TIME_TRAINING);
  return TRUE;
}

/* Also returns FALSE if the run's deadline comes before the end of the pause; the next run
 * continues it. */
static gboolean
pause_until (MusterMonitoredSession *self, gint64 now_us, gint64 wake_us, const GError *failure,
             GError **error)
{
  MusterPause pause = {.down_since_us = now_us, .wake_us = MIN (wake_us, self->deadline_us)};
  gboolean is_down = muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE);
  if (!(is_down ? muster_pause (&pause, self->master, self->clock,
                                muster_monitored_cancellable (self), error)
                : muster_clock_wait_until (self->clock, pause.wake_us,
                                           muster_monitored_cancellable (self), error)))
    return FALSE;
  if (muster_clock_now_us (self->clock) < self->deadline_us)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "recovery took longer than the run's timeout: %s", failure->message);
}

/* Before another attempt. FALSE, with the failure and the number of attempts, if there are no more
 * (DMON.1). Takes failure. */
static gboolean
pause_after (MusterMonitoredSession *self, GError *failure, GError **error)
{
  g_autoptr (GError) owned = failure;
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 uptime_us = self->session_since_us > 0 ? now_us - self->session_since_us : 0;
  gint64 pause_us;
  if (!muster_retries_next (&self->retries, muster_failure_of (failure), uptime_us,
                            muster_clock_random (self->clock), &pause_us)) {
    g_propagate_prefixed_error (
        error, g_steal_pointer (&owned),
        "gave up after %u recoveries without progress: ", muster_retries_total (&self->retries));
    return FALSE;
  }
  muster_log (G_LOG_LEVEL_INFO, "recovery", "MESSAGE", "recovering from: %s", failure->message);
  self->n_recoveries++;
  muster_session_observer_lost (self->observer, failure, self->n_recoveries, pause_us);
  return pause_until (self, now_us, muster_deadline_after (now_us, pause_us), failure, error);
}

/* Without a session nothing is lost by another try, also for a store that can't be reached. */
static gboolean
may_create_again (const MusterMonitoredSession *self, const GError *failure)
{
  return muster_monitored_is_recoverable (self, failure) ||
         (!self->never_recover && muster_failure_of (failure) == MUSTER_FAILURE_UNREACHABLE);
}

static gboolean
is_given_up (const MusterMonitoredSession *self)
{
  return self->until_us > 0 && muster_clock_now_us (self->clock) >= self->until_us;
}

gboolean
muster_monitored_ensure (MusterMonitoredSession *self, MusterSessionReport *report, GError **error)
{
  g_auto (MusterSessionReport) own = {0};
  if (report == NULL)
    report = &own;
  if (self->lost != NULL && !pause_after (self, g_steal_pointer (&self->lost), error))
    return FALSE;
  while (self->session == NULL) {
    GError *failure = NULL;
    muster_session_report_clear (report);
    if (create (self, report, &failure))
      return TRUE;
    self->session_since_us = 0;
    if (!may_create_again (self, failure) || is_given_up (self)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    if (!pause_after (self, failure, error))
      return FALSE;
  }
  return TRUE;
}
