// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"

#include "base/error.h"
#include "saver/restore.h"
#include "train/run_context_private.h"

#include <math.h>

#define MOST_FEEDS 16

/* How far it is, is announced so often, and within this time or not. */
#define ANNOUNCE_EVERY_US (1 * MUSTER_SECOND)
#define ANNOUNCE_US       (5 * MUSTER_SECOND)
/* That the job is over has to be heard: those who come late would wait for it. */
#define ANNOUNCE_OVER_US (30 * MUSTER_SECOND)
/* Who trains for so long isn't killed at once by the checkpoint that it began with. */
#define OUTLIVED_US (10 * MUSTER_SECOND)

static float
scalar_float (const MusterTensor *tensor)
{
  gboolean fits =
      muster_tensor_dtype (tensor) == MUSTER_FLOAT && muster_tensor_n_elements (tensor) == 1;
  return fits ? *(const float *)muster_tensor_data (tensor) : NAN;
}

gint64
muster_read_global_step (MusterSession *session, MusterScaffold *scaffold, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  const char *name = muster_scaffold_global_step (scaffold);
  if (name == NULL) {
    g_set_error (
        error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
        "the model has no global step: make one with tf.compat.v1.train.create_global_step ()");
    return -1;
  }
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, name, deadline_us, cancellable, error);
  if (value == NULL)
    return -1;
  gint64 step = muster_step_of (value);
  if (step < 0)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the global step '%s' is no integer scalar", name);
  return step;
}

/* One step of the loop: a batch in; the global step and the loss out. */
static gboolean
run_step (MusterSession *session, const char *train_op, const char *global_step,
          const MusterTraining *training, gint64 *step, float *loss, GCancellable *cancellable,
          GError **error)
{
  MusterTensor *batch[MOST_FEEDS] = {NULL};
  MusterFeed feeds[MOST_FEEDS];
  muster_batches_next (training->batches, batch);
  for (gsize i = 0; i < training->n_feeds; i++)
    feeds[i] = (MusterFeed){.name = training->feeds[i], .tensor = batch[i]};
  const char *fetches[] = {global_step, training->loss};
  MusterStep what = {.feeds = feeds,
                     .n_feeds = training->n_feeds,
                     .fetches = fetches,
                     .n_fetches = training->loss != NULL ? 2 : 1,
                     .targets = &train_op,
                     .n_targets = 1,
                     .deadline_us = MUSTER_WAIT_FOREVER};
  MusterTensor *fetched[2] = {NULL, NULL};
  gboolean ok = muster_session_run (session, &what, fetched, NULL, cancellable, error);
  for (gsize i = 0; i < training->n_feeds; i++)
    muster_tensor_unref (batch[i]);
  if (!ok)
    return FALSE;
  *step = muster_step_of (fetched[0]);
  *loss = fetched[1] != NULL ? scalar_float (fetched[1]) : NAN;
  muster_tensor_unref (fetched[0]);
  muster_tensor_unref (fetched[1]);
  return TRUE;
}

static void
tell_skipped (const MusterTraining *training, const char *why, gint64 step)
{
  if (training->skipped != NULL)
    training->skipped (why, step, training->user_data);
  else
    g_warning ("no checkpoint of step %" G_GINT64_FORMAT " in '%s': %s", step,
               training->checkpoint_dir, why);
}

/* *durable: there is a checkpoint. A save that was skipped for want of room is no failure. */
static gboolean
save (MusterSession *session, const MusterTraining *training, gint64 step, gboolean *durable,
      GCancellable *cancellable, GError **error)
{
  g_auto (MusterSaved) saved = {0};
  if (!muster_saver_save_full (training->saver, session, training->checkpoint_dir, step, &saved,
                               MUSTER_WAIT_FOREVER, cancellable, error))
    return FALSE;
  *durable = !saved.skipped;
  if (saved.skipped)
    tell_skipped (training, saved.why, step);
  else if (training->saved != NULL)
    training->saved (saved.prefix, step, training->user_data);
  return TRUE;
}

static gint64
in_us (gint64 timeout_us)
{
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), timeout_us);
}

static gboolean
announce (const MusterTraining *training, MusterChiefPhase phase, gint64 step, gint64 timeout_us,
          GCancellable *cancellable, GError **error)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  announcement.phase = phase;
  announcement.step = step;
  return muster_lease_announce (training->lease, &announcement, in_us (timeout_us), cancellable,
                                error);
}

/* Says how far it is, where that is due; FALSE only where the lease is lost. What doesn't reach the
 * master is told the next time. */
static gboolean
report (const MusterTraining *training, gint64 step, gint64 *due_us, GCancellable *cancellable,
        GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (training->lease == NULL)
    return TRUE;
  if (!muster_lease_check (training->lease, error))
    return FALSE;
  if (in_us (0) < *due_us)
    return TRUE;
  *due_us = in_us (ANNOUNCE_EVERY_US);
  if (announce (training, MUSTER_CHIEF_TRAINING, step, ANNOUNCE_US, cancellable, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* The checkpoint that the job was restored from isn't what kills it (saver/restore.h). What can't
 * be noted is noted the next time, or counts against a good checkpoint once. */
static void
tell_outlived (const MusterTraining *training)
{
  if (training->saver != NULL)
    (void)muster_saver_outlived (training->saver, NULL);
}

/* A training under way. */
typedef struct {
  gint64 now;
  gint64 saved_at;      /* or skipped at */
  gint64 outlived_us;   /* when it has outlived its checkpoint */
  gboolean step_failed; /* a step failed by itself, nobody outside ended it */
} Run;

static gboolean
is_from_outside (const MusterTraining *training, const GError *failure)
{
  return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
         (training->lease != NULL && !muster_lease_check (training->lease, NULL));
}

/* A chief that another has replaced finds its session gone: that it was replaced is what counts. */
static gboolean
fail (const MusterTraining *training, GError *failure, GError **error)
{
  g_autoptr (GError) owned = failure;
  if (training->lease == NULL || muster_lease_check (training->lease, error))
    g_propagate_error (error, g_steal_pointer (&owned));
  return FALSE;
}

/* Saves where that is due; what has been trained for long enough has outlived its checkpoint. */
static gboolean
save_in_time (MusterSession *session, const MusterTraining *training, Run *run,
              GCancellable *cancellable, GError **error)
{
  if (training->saver != NULL && training->save_every_steps > 0 &&
      run->now >= run->saved_at + training->save_every_steps) {
    gboolean durable;
    if (!save (session, training, run->now, &durable, cancellable, error))
      return FALSE;
    run->saved_at = run->now;
    if (durable)
      run->outlived_us = 0;
  }
  if (in_us (0) >= run->outlived_us) {
    run->outlived_us = G_MAXINT64;
    tell_outlived (training);
  }
  return TRUE;
}

/* Steps until the target is reached or progress says so. */
static gboolean
run_loop (MusterSession *session, MusterScaffold *scaffold, const MusterTraining *training,
          Run *run, GCancellable *cancellable, GError **error)
{
  const char *train_op = muster_scaffold_train_op (scaffold);
  const char *global_step = muster_scaffold_global_step (scaffold);
  gint64 report_due_us = 0;
  gboolean go_on = TRUE;
  while (go_on && run->now < training->until_step) {
    float loss = NAN;
    GError *failure = NULL;
    if (!report (training, run->now, &report_due_us, cancellable, error))
      return FALSE;
    /* The step is read beside the update, before or after it; another task may have stepped too: it
     * is a count, not an id. */
    if (!run_step (session, train_op, global_step, training, &run->now, &loss, cancellable,
                   &failure)) {
      run->step_failed = !is_from_outside (training, failure);
      return fail (training, failure, error);
    }
    if (training->progress != NULL)
      go_on = training->progress (run->now, loss, training->user_data);
    if (!save_in_time (session, training, run, cancellable, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
end_job (const MusterTraining *training, gint64 step, GCancellable *cancellable, GError **error)
{
  if (training->lease == NULL || !training->ends_job || step < training->until_step)
    return TRUE;
  if (announce (training, MUSTER_CHIEF_OVER, step, ANNOUNCE_OVER_US, cancellable, error))
    return TRUE;
  g_prefix_error (error, "announcing that the job is over: ");
  return FALSE;
}

/* Whoever saved there before is refused from now on, not only from the first save on. */
static gboolean
claim_directory (const MusterTraining *training, GCancellable *cancellable, GError **error)
{
  if (training->saver == NULL || training->lease == NULL)
    return TRUE;
  muster_saver_set_lease (training->saver, training->lease);
  return muster_saver_claim_directory (training->saver, training->checkpoint_dir,
                                       MUSTER_WAIT_FOREVER, cancellable, error);
}

static gboolean
train (MusterSession *session, MusterScaffold *scaffold, const MusterTraining *training, Run *run,
       GCancellable *cancellable, GError **error)
{
  run->now = muster_read_global_step (session, scaffold, MUSTER_WAIT_FOREVER, cancellable, error);
  if (run->now < 0 || !claim_directory (training, cancellable, error))
    return FALSE;
  run->saved_at = run->now;
  run->outlived_us = in_us (OUTLIVED_US);
  if (!run_loop (session, scaffold, training, run, cancellable, error))
    return FALSE;
  gboolean durable;
  if (training->saver != NULL && run->now != run->saved_at &&
      !save (session, training, run->now, &durable, cancellable, error))
    return FALSE;
  return end_job (training, run->now, cancellable, error);
}

gboolean
muster_train (MusterSession *session, MusterScaffold *scaffold, const MusterTraining *training,
              gint64 *step, GCancellable *cancellable, GError **error)
{
  Run run = {0};
  g_return_val_if_fail (training->n_feeds <= MOST_FEEDS, FALSE);
  if (muster_scaffold_train_op (scaffold) == NULL) {
    g_set_error (
        error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
        "the meta graph has no train op: add it to the collection 'train_op' before exporting");
    return FALSE;
  }
  if (!train (session, scaffold, training, &run, cancellable, error)) {
    /* A save that failed, or a master that is gone, isn't the checkpoint's doing. */
    if (training->saver != NULL && !run.step_failed)
      (void)muster_saver_excuse (training->saver, NULL);
    return FALSE;
  }
  tell_outlived (training);
  if (step != NULL)
    *step = run.now;
  return TRUE;
}
