// SPDX-License-Identifier: Apache-2.0
#include "master/lease.h"

#include "session/session_private.h"

#define LEASE_KEY "muster-lease"

/* What it may take to ask at which step a job ended. */
#define FINAL_STEP_LIMIT_US MUSTER_SECOND

MusterLease *
muster_session_manager_lease (MusterSession *session)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (session), NULL);
  return g_object_get_data (G_OBJECT (session), LEASE_KEY);
}

void
muster_operation_hand_lease_to (MusterOperation *self, MusterSession *session)
{
  if (self->lease != NULL)
    g_object_set_data_full (G_OBJECT (session), LEASE_KEY, g_steal_pointer (&self->lease),
                            g_object_unref);
}

/* Of several attempts, what the first found is what others did. */
static void
keep_before (MusterOperation *self, MusterAnnouncement *before)
{
  if (before != NULL && self->claimed_epoch != 0 && before->epoch == self->claimed_epoch) {
    muster_announcement_free (before);
    return;
  }
  muster_announcement_free (self->before);
  self->before = before;
}

/* A refusal brings no announcement along, but a watch begins with one. */
static gint64
ask_final_step (MusterOperation *self, MusterSession *session)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 deadline_us =
      MIN (self->call_deadline_us, muster_deadline_after (now_us, FINAL_STEP_LIMIT_US));
  MusterWatchFor what = {.model = self->manager->model, .task = self->manager->task};
  g_autoptr (MusterWatch) watch = muster_session_watch (session, &what, deadline_us, NULL);
  g_auto (MusterReadiness) readiness = {0};

  if (watch == NULL || !muster_watch_next (watch, &readiness, self->cancellable, NULL) ||
      readiness.chief == NULL)
    return -1;
  return readiness.chief->step;
}

/* Why a claim was refused; TRUE: the master keeps no announcements, and all is well without. */
static gboolean
judge_refusal (MusterOperation *self, MusterSession *session, GError *failure, GError **error)
{
  if (muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED)) {
    g_error_free (failure);
    return TRUE;
  }
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
    self->report.outcome = MUSTER_OUTCOME_FENCED;
  } else if (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE)) {
    self->report.outcome = MUSTER_OUTCOME_OVER;
    self->report.final_step =
        self->before != NULL ? self->before->step : ask_final_step (self, session);
  } else {
    g_prefix_error (&failure, "Claiming '%s': ", self->manager->model);
  }
  g_propagate_error (error, failure);
  return FALSE;
}

gboolean
muster_operation_claim (MusterOperation *self, MusterSession *session,
                        const MusterPrepareOptions *options, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  GError *failure = NULL;
  MusterAnnouncement *before = NULL;

  if (manager->model == NULL)
    return TRUE;

  /* Another attempt of the same verb takes over from the one before, whose lease may still stand
   * there; under the same epoch, so that a chief that has come since keeps the model. */
  gboolean is_ours = self->claimed_epoch != 0;
  muster_operation_phase (self, "claim");
  MusterClaim claim = {.model = manager->model,
                       .task = manager->task,
                       .epoch = is_ours ? self->claimed_epoch : options->epoch,
                       .ready_op = manager->ready_op,
                       .take_over = is_ours || options->overwrite};
  self->lease = muster_session_claim (session, &claim, &before, self->call_deadline_us,
                                      self->cancellable, &failure);
  keep_before (self, before);
  if (self->lease == NULL)
    return judge_refusal (self, session, failure, error);
  self->claimed_epoch = muster_lease_epoch (self->lease);
  self->report.epoch = self->claimed_epoch;
  return TRUE;
}

static gboolean
announce (MusterOperation *self, const MusterAnnouncement *announcement, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (muster_lease_announce (self->lease, announcement, self->call_deadline_us, self->cancellable,
                             &failure))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    self->report.outcome = MUSTER_OUTCOME_FENCED;
  else
    g_prefix_error (&failure,
                    "Announcing '%s' of '%s': ", muster_chief_phase_name (announcement->phase),
                    self->manager->model);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
muster_operation_announce (MusterOperation *self, MusterChiefPhase phase, const char *detail,
                           GError **error)
{
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;

  if (self->lease == NULL)
    return TRUE;
  announcement.phase = phase;
  announcement.detail = g_strdup (detail);
  return announce (self, &announcement, error);
}

/* What was restored is a durable checkpoint, and its step is the model's. */
gboolean
muster_operation_announce_prepared (MusterOperation *self, GError **error)
{
  const char *checkpoint = self->report.restored_from;
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;

  if (self->lease == NULL)
    return TRUE;
  announcement.phase = MUSTER_CHIEF_PREPARED;
  if (checkpoint != NULL) {
    announcement.step = muster_checkpoint_step (checkpoint);
    announcement.durable_step = announcement.step;
    announcement.durable = g_strdup (checkpoint);
  }
  return announce (self, &announcement, error);
}

gboolean
muster_operation_check_lease (MusterOperation *self, GError **error)
{
  if (self->lease == NULL || muster_lease_check (self->lease, error))
    return TRUE;
  self->report.outcome = MUSTER_OUTCOME_FENCED;
  return FALSE;
}

void
muster_operation_judge_failure (MusterOperation *self, GError **failure)
{
  GError *lost = NULL;

  if (g_error_matches (*failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
      muster_operation_check_lease (self, &lost))
    return;
  g_error_free (*failure);
  *failure = lost;
}

/* A chief that died in mid-preparation has prepared nothing, whatever was there before. One that
 * had only just claimed has touched nothing. */
static gboolean
is_anothers_work (const MusterOperation *self)
{
  const MusterAnnouncement *before = self->before;
  return before != NULL && before->prepared && before->epoch != self->claimed_epoch &&
         (!muster_chief_phase_is_preparing (before->phase) ||
          before->phase == MUSTER_CHIEF_STARTING);
}

/* The claim has changed what is announced of the model: it is still what that other chief made. */
static void
put_back (MusterOperation *self)
{
  const MusterAnnouncement *before = self->before;
  g_auto (MusterAnnouncement) announcement = MUSTER_ANNOUNCEMENT_INIT;

  announcement.phase =
      before->phase == MUSTER_CHIEF_STARTING ? MUSTER_CHIEF_PREPARED : before->phase;
  announcement.step = before->step;
  announcement.durable_step = before->durable_step;
  announcement.durable = g_strdup (before->durable);
  announcement.durable_age_us = before->durable_age_us;
  /* Whether it was heard or not, this verb has failed. */
  (void)muster_lease_announce (self->lease, &announcement, self->call_deadline_us,
                               self->cancellable, NULL);
}

gboolean
muster_operation_may_initialise (MusterOperation *self, const MusterPrepareOptions *options,
                                 GError **error)
{
  if (self->lease == NULL || options->overwrite || options->reset_master ||
      !is_anothers_work (self))
    return TRUE;

  g_autofree char *chief = muster_announcement_describe (self->before);
  self->report.outcome = MUSTER_OUTCOME_FENCED;
  put_back (self);
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION,
      "'%s' was prepared by another chief: %s; the init ops would run over its work: wait "
      "for the session to join it, or prepare it `overwrite`",
      self->manager->model, chief);
}
