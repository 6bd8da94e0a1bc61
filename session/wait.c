// SPDX-License-Identifier: Apache-2.0
#include "ready/waiter_private.h"

#include "base/require_private.h"
#include "session/session_private.h"

static void
on_readiness (const MusterReadiness *readiness, gpointer user_data)
{
  MusterOperation *self = user_data;
  g_autofree char *message =
      g_strdup_printf ("Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s",
                       readiness->why_gate != NULL ? readiness->why_gate : "None",
                       readiness->why_not_ready != NULL ? readiness->why_not_ready : "None");

  muster_operation_report (self, message, readiness);
}

/* B002.59, B002.66: an error other than "not ready" names its op. */
static gboolean
pass_on (GError *failure, const char *whose, GError **error)
{
  if (failure == NULL)
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    g_prefix_error (&failure, "%s: ", whose);
  g_propagate_error (error, failure);
  return FALSE;
}

/* Waits at the gate, runs local init once in this session, then waits for the ready op. Without
 * a gate, local init may have read uninitialised variables: if the first check found some, it is
 * run again. */
static gboolean
wait_in_session (MusterOperation *self, MusterWaiter *waiter, GError **error)
{
  gint64 deadline_us = self->call_deadline_us;
  gboolean is_gated =
      self->manager->local_init_ops == NULL || self->manager->ready_for_local_init_op != NULL;
  GError *failure = NULL;

  if (self->manager->local_init_ops != NULL) {
    muster_waiter_wait_gate (waiter, deadline_us, self->cancellable, &failure);
    if (!pass_on (failure, "Model not ready for local init", error) ||
        !muster_operation_run_local_init (self, error))
      return FALSE;
    muster_operation_phase (self, "waiting");
  }
  guint n_polls = muster_waiter_n_polls (waiter);
  muster_waiter_wait_ready (waiter, deadline_us, self->cancellable, &failure);
  if (!pass_on (failure, "Model not ready", error))
    return FALSE;
  return is_gated || muster_waiter_n_polls (waiter) <= n_polls + 1 ||
         muster_operation_run_local_init (self, error);
}

static MusterWaiter *
waiter_for (MusterOperation *self)
{
  const MusterSessionManager *manager = self->manager;
  MusterWatchFor what = {.ready_for_local_init_op = manager->ready_for_local_init_op,
                         .ready_op = manager->ready_op,
                         .model = manager->model,
                         .task = manager->task};
  MusterWaiter *waiter =
      muster_waiter_new (self->session, &what, manager->recovery_wait_us, self->clock);

  muster_waiter_set_progress (waiter, on_readiness, self);
  if (self->timeout_us <= 0)
    muster_waiter_poll_once (waiter);
  return waiter;
}

/* Ends the wait if the job is over. */
static void
note_end (MusterOperation *self, MusterWaiter *waiter, const GError *failure)
{
  const MusterAnnouncement *chief = muster_waiter_readiness (waiter)->chief;
  if (!muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) || chief == NULL ||
      chief->phase != MUSTER_CHIEF_OVER)
    return;
  self->report.outcome = MUSTER_OUTCOME_OVER;
  self->report.final_step = chief->step;
}

/* Waits in the current session; *had_polled is TRUE if it has been polled. */
static gboolean
wait_until_ready (MusterOperation *self, gboolean *had_polled, GError **error)
{
  GError *failure = NULL;
  g_autoptr (MusterWaiter) waiter = waiter_for (self);
  muster_operation_phase (self, "waiting");
  gboolean ready = wait_in_session (self, waiter, &failure);
  *had_polled = muster_waiter_n_polls (waiter) > 0;
  self->report.polls += muster_waiter_n_polls (waiter);
  self->report.pushed |= muster_waiter_is_pushed (waiter);
  if (ready) {
    muster_operation_receive_readiness (self, muster_waiter_readiness (waiter));
    return TRUE;
  }
  note_end (self, waiter, failure);
  g_propagate_error (error, failure);
  return FALSE;
}

static gboolean
attempt (MusterOperation *self, gint64 *cost_us, GError **error)
{
  gint64 started_us = muster_clock_now_us (self->clock);
  gboolean had_polled = FALSE;
  if (muster_operation_create_session (self, error) && wait_until_ready (self, &had_polled, error))
    return TRUE;
  /* Closing is part of an attempt's cost. */
  muster_operation_give_up_session (self, error != NULL ? *error : NULL);
  *cost_us = had_polled ? 0 : muster_clock_now_us (self->clock) - started_us;
  return FALSE;
}

MusterSession *
muster_session_manager_wait_for_session (MusterSessionManager *self, MusterMaster *master,
                                         gint64 timeout_us, MusterSessionReport *report,
                                         GCancellable *cancellable, GError **error)
{
  muster_session_report_begin (report);
  muster_require (error, NULL, self, master);

  MusterOperation operation = {
      .manager = self, .master = master, .cancellable = cancellable, .timeout_us = timeout_us};
  return muster_operation_run (&operation, attempt, NULL, report, error);
}
