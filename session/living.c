// SPDX-License-Identifier: Apache-2.0
/* Continues with the model that an earlier chief has left on the master, instead of restoring it.
 *
 * That the model is whole isn't assumed but shown, by those who know: the master says that a chief
 * had prepared it, with the same graph, that no reset came since and that no run failed with it;
 * the ready op, that each variable has a value; the caller (continue_func), that no step was cut
 * off in the middle; and the checkpoint directory's record, that the model and the directory are of
 * one job. If any of them can't say so, the chief restores. Nothing is changed on the master before
 * that is decided. */
#include "base/log_private.h"
#include "ready/readiness_private.h"
#include "session/session_private.h"

/* Uses the claim's own result, not an earlier attempt's: that attempt may have changed the
 * model. */
static gboolean
is_candidate (const MusterOperation *self)
{
  const MusterPrepareOptions *options = self->options;
  const MusterAnnouncement *before = self->before;
  if (options->continue_func == NULL || self->is_recovery || options->overwrite ||
      options->device_func != NULL ||
      (options->checkpoint_filename != NULL && *options->checkpoint_filename != '\0'))
    return FALSE;
  return self->lease != NULL && !self->has_claimed_before && before != NULL && before->prepared &&
         before->same_graph && !before->failed && before->epoch != self->claimed_epoch &&
         (before->phase == MUSTER_CHIEF_PREPARED || before->phase == MUSTER_CHIEF_TRAINING);
}

static gboolean
is_ready (MusterOperation *self, GError **error)
{
  const char *op = self->manager->ready_op;
  g_auto (MusterReadyOpResult) readiness = {0};
  if (op == NULL)
    return TRUE;
  self->report.polls++;
  if (!muster_ready_op_probe (self->session, op, self->call_deadline_us, self->cancellable,
                              &readiness, error))
    return FALSE;
  return readiness.is_ready || muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                            "it isn't ready: %s", readiness.why_not);
}

static gboolean
is_whole (MusterOperation *self, gint64 *step, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  if (!options->continue_func (self->session, step, self->call_deadline_us, self->cancellable,
                               options->continue_func_data, error))
    return FALSE;
  return *step >= self->before->step ||
         muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "it is at step %" G_GINT64_FORMAT ", before step %" G_GINT64_FORMAT
                      ", which its chief had announced",
                      *step, self->before->step);
}

/* Comes last, because it may record that a run has begun. */
static gboolean
is_of_directory (MusterOperation *self, gint64 step, GError **error)
{
  const MusterPrepareOptions *options = self->options;
  const MusterAnnouncement *before = self->before;
  const char *directory = options->checkpoint_dir;
  const MusterLivingModel model = {before->holder, before->durable, before->durable_step, step};
  const gboolean counts = options->restore != NULL && options->restore->count_deaths;
  gboolean is_its = before->holder == NULL;
  if (directory != NULL && *directory != '\0') {
    is_its = FALSE;
    if (options->saver != NULL &&
        !muster_saver_continue (options->saver, directory, &model, counts, &is_its, error))
      return FALSE;
  }
  return is_its || muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                "it isn't known to be the one whose checkpoints are in '%s'",
                                directory != NULL ? directory : "");
}

void
muster_operation_continue (MusterOperation *self)
{
  g_autoptr (GError) failure = NULL;
  gint64 step = -1;
  if (!is_candidate (self))
    return;
  muster_operation_phase (self, "continue");
  self->report.continued = is_ready (self, &failure) && is_whole (self, &step, &failure) &&
                           is_of_directory (self, step, &failure) &&
                           muster_lease_check (self->lease, &failure);
  if (self->report.continued)
    self->report.continued_step = step;
  else
    muster_log (G_LOG_LEVEL_INFO, "restore", "MESSAGE",
                "not continuing with the model of '%s' on the master: %s", self->manager->model,
                failure != NULL ? failure->message : "unknown");
}

void
muster_operation_describe_continued (const MusterOperation *self, MusterAnnouncement *announcement)
{
  const MusterAnnouncement *before = self->before;
  announcement->step = self->report.continued_step;
  announcement->durable_step = before->durable_step;
  announcement->durable = g_strdup (before->durable);
  announcement->durable_age_us = before->durable_age_us;
  announcement->holder = g_strdup (before->holder);
}
