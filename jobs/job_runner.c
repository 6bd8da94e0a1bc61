// SPDX-License-Identifier: Apache-2.0
/* The loop of a job: init or load, epochs until a stop condition holds, a save after each epoch
 * in the background, upload and download at the end. */
#include "jobs/job_runner.h"

#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "jobs/job_checkpoint_private.h"
#include "jobs/job_save_private.h"
#include "train/goodput/goodput_meter.h"

/* The remedy for a missing directory of checkpoints. */
#define CREATE_IT "create it where every node's master sees it"

/* --- upload builders --- */

G_DEFINE_TYPE (MusterJobUploadBuilder, muster_job_upload_builder, G_TYPE_OBJECT)

static MusterJobGroup *
build_nothing (MusterJobUploadBuilder *self, gint64 epoch G_GNUC_UNUSED,
               MusterJobCheckpoint *checkpoint G_GNUC_UNUSED, GError **error)
{
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "%s: build is not implemented",
               G_OBJECT_TYPE_NAME (self));
  return NULL;
}

static void
muster_job_upload_builder_class_init (MusterJobUploadBuilderClass *klass)
{
  klass->build = build_nothing;
}

static void
muster_job_upload_builder_init (MusterJobUploadBuilder *self G_GNUC_UNUSED)
{
}

/* checkpoint (nullable) */
static MusterJobGroup *
build_upload (MusterJobUploadBuilder *self, gint64 epoch, MusterJobCheckpoint *checkpoint,
              GError **error)
{
  muster_require (error, NULL, self);
  return MUSTER_JOB_UPLOAD_BUILDER_GET_CLASS (self)->build (self, epoch, checkpoint, error);
}

/* --- the runner --- */

struct _MusterJobRunner {
  GObject parent;
  MusterJob *job;                  /* (owned) */
  MusterJobCheckpoint *checkpoint; /* (owned) (nullable) */
  gint64 resume_epoch;             /* the user's */
  MusterJobRunnerOptions options;  /* its upload is owned */
  GArray *failed_epochs;           /* (owned) (element-type gint64) */
  GError *last_failure;            /* (owned) (nullable) */
  guint failures_in_a_row;
  MusterJobSave *save; /* (owned) (nullable) in the background */
  GMutex lock;
  MusterGoodputMeter *meter; /* (owned) of the last training; guarded by lock */
};

G_DEFINE_FINAL_TYPE (MusterJobRunner, muster_job_runner, G_TYPE_OBJECT)

static guint epoch_done; /* the signal */

MusterJobRunner *
muster_job_runner_new (MusterJob *job, MusterJobCheckpoint *checkpoint, gint64 resume_epoch,
                       const MusterJobRunnerOptions *options)
{
  g_return_val_if_fail (job != NULL, NULL);

  MusterJobRunner *self = g_object_new (MUSTER_TYPE_JOB_RUNNER, NULL);
  self->job = g_object_ref (job);
  self->checkpoint = checkpoint != NULL ? g_object_ref (checkpoint) : NULL;
  self->resume_epoch = resume_epoch;
  if (options != NULL)
    self->options = *options;
  if (self->options.upload != NULL)
    g_object_ref (self->options.upload);
  return self;
}

void
muster_job_runner_goodput (MusterJobRunner *self, MusterGoodput *goodput)
{
  g_return_if_fail (self != NULL && goodput != NULL);

  g_mutex_lock (&self->lock);
  if (self->meter != NULL)
    muster_goodput_meter_read (self->meter, goodput);
  else
    *goodput = (MusterGoodput)MUSTER_GOODPUT_INIT;
  g_mutex_unlock (&self->lock);
}

/* Only the training thread replaces the meter. */
static void
begin_goodput (MusterJobRunner *self, MusterCluster *cluster)
{
  MusterGoodputMeter *meter = muster_goodput_meter_new (muster_cluster_clock (cluster));
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->meter, muster_goodput_meter_unref);
  self->meter = meter;
  g_mutex_unlock (&self->lock);
}

GArray *
muster_job_runner_failed_epochs (MusterJobRunner *self, const GError **last)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (last != NULL)
    *last = self->last_failure;
  return self->failed_epochs;
}

/* One call of train. */
typedef struct {
  MusterJobRunner *runner;
  MusterCluster *cluster;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Training;

static gint64
stage_deadline (MusterJobRunner *self, gint64 deadline_us)
{
  return muster_job_stage_deadline (self->options.stage_timeout_us, deadline_us);
}

/* Takes the group. */
static gboolean
run_group (Training *self, MusterJobGroup *group, const char *stage, GError **error)
{
  g_autoptr (MusterJobGroup) own = group;
  if (own != NULL &&
      muster_cluster_run (self->cluster, own, stage_deadline (self->runner, self->deadline_us),
                          self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "%s: ", stage);
  return FALSE;
}

static gboolean
run_stage (Training *self, MusterJobGroup *group, const char *stage, GError **error)
{
  return run_group (self, g_object_ref (group), stage, error);
}

/* --- saving --- */

static gboolean
check_checkpoint (MusterJobRunner *self, GError **error)
{
  if (self->checkpoint == NULL)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "Checkpoint manager is None");
  return self->checkpoint != NULL;
}

/* The metadata's operations have a stage's timeout too. */
static gboolean
is_accessible (Training *self, gboolean *accessible, GError **error)
{
  return muster_job_checkpoint_accessible (self->runner->checkpoint, MUSTER_NO_EPOCH, accessible,
                                           stage_deadline (self->runner, self->deadline_us),
                                           self->cancellable, error);
}

static gboolean
report (Training *self, const char *action, GError **error)
{
  return muster_job_checkpoint_report (self->runner->checkpoint, action,
                                       stage_deadline (self->runner, self->deadline_us),
                                       self->cancellable, error);
}

/* Stages what the nodes hold. The rest of the save may run beside the training. */
static gboolean
stage (Training *self, gint64 epoch, GError **error)
{
  MusterJobCheckpoint *checkpoint = self->runner->checkpoint;
  if (run_group (self, muster_job_checkpoint_stage_group (checkpoint, epoch, error), "saving",
                 error))
    return TRUE;
  /* the nodes that were staged before one has failed */
  (void)muster_job_checkpoint_finish (checkpoint, stage_deadline (self->runner, self->deadline_us),
                                      self->cancellable, NULL);
  return FALSE;
}

static MusterJobSaveOptions
save_options (Training *self, gint64 epoch, gboolean finished)
{
  return (MusterJobSaveOptions){.checkpoint = self->runner->checkpoint,
                                .epoch = epoch,
                                .finished = finished,
                                .deadline_us = self->deadline_us,
                                .stage_timeout_us = self->runner->options.stage_timeout_us};
}

gboolean
muster_job_runner_save (MusterJobRunner *self, MusterCluster *cluster, gint64 epoch,
                        gboolean finished, gboolean *saved, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, cluster);

  Training training = {self, cluster, deadline_us, cancellable};
  const MusterJobSaveOptions options = save_options (&training, epoch, finished);
  gboolean accessible = TRUE;
  if (!check_checkpoint (self, error) || !is_accessible (&training, &accessible, error))
    return FALSE;
  if (accessible &&
      (!run_group (&training, muster_job_checkpoint_save_group (self->checkpoint, epoch, error),
                   "saving", error) ||
       !muster_job_save_complete (&options, cancellable, error)))
    return FALSE;
  if (saved != NULL)
    *saved = accessible;
  return TRUE;
}

/* Counts a failed save; FALSE if too many have failed in a row. Takes the failure. */
static gboolean
put_up_with (MusterJobRunner *self, gint64 epoch, GError *failure, GError **error)
{
  g_clear_error (&self->last_failure);
  self->last_failure = failure;
  g_array_append_val (self->failed_epochs, epoch);
  self->failures_in_a_row++;
  if (self->options.most_failures_in_a_row == 0 ||
      self->failures_in_a_row < self->options.most_failures_in_a_row)
    return TRUE;
  g_propagate_prefixed_error (error, g_error_copy (failure),
                              "%u saves in a row have failed, the last one of epoch "
                              "%" G_GINT64_FORMAT ": ",
                              self->failures_in_a_row, epoch);
  return FALSE;
}

/* Training continues without a checkpoint. Takes the failure. */
static gboolean
note_failure (MusterJobRunner *self, gint64 epoch, GError *failure, GError **error)
{
  muster_log (G_LOG_LEVEL_WARNING, "save-failed", "MESSAGE",
              "Unable to write checkpoint for epoch %" G_GINT64_FORMAT ". Error=%s", epoch,
              failure->message);
  return put_up_with (self, epoch, failure, error);
}

static gboolean
lacks_directory (Training *self)
{
  return muster_job_checkpoint_lacks_directory (self->runner->checkpoint,
                                                stage_deadline (self->runner, self->deadline_us),
                                                self->cancellable);
}

/* Training continues where the metadata reports that nothing can be saved. */
static gboolean
note_inaccessible (Training *self, gint64 epoch, GError **error)
{
  const char *directory = self->runner->checkpoint->directory;
  GError *failure = NULL;
  muster_fail (&failure, MUSTER_ERROR_UNAVAILABLE,
               lacks_directory (self)
                   ? "Checkpoint files cannot be accessed! '%s' doesn't exist; " CREATE_IT
                   : "Checkpoint files cannot be accessed! The job's metadata can't reach '%s'; "
                     "check its permissions",
               directory);
  muster_log (G_LOG_LEVEL_WARNING, "save-failed", "MESSAGE", "%s", failure->message);
  return put_up_with (self->runner, epoch, failure, error);
}

/* Waits for the save in the background. Its failure comes out here, once. */
static gboolean
collect_save (Training *self, GError **error)
{
  MusterJobRunner *runner = self->runner;
  GError *failure = NULL;
  if (runner->save == NULL)
    return TRUE;
  const gint64 epoch = muster_job_save_epoch (runner->save);
  if (!muster_job_save_end (g_steal_pointer (&runner->save), self->cancellable, &failure))
    return note_failure (runner, epoch, failure, error);
  runner->failures_in_a_row = 0;
  return TRUE;
}

/* The save before must be complete. *is_made is FALSE if the place isn't accessible. */
static gboolean
start_save (Training *self, gint64 epoch, gboolean finished, gboolean *is_made, GError **error)
{
  const MusterJobSaveOptions options = save_options (self, epoch, finished);
  if (!is_accessible (self, is_made, error))
    return FALSE;
  if (!*is_made)
    return TRUE;
  if (!stage (self, epoch, error))
    return FALSE;
  self->runner->save = muster_job_save_start (&options);
  return TRUE;
}

static gboolean
save_or_put_up (Training *self, gint64 epoch, gboolean finished, GError **error)
{
  MusterJobRunner *runner = self->runner;
  const gboolean is_blocking = runner->options.save_blocking;
  GError *failure = NULL;
  gboolean is_made = FALSE;
  if (runner->checkpoint == NULL)
    return TRUE;
  if (!collect_save (self, error))
    return FALSE;
  if (is_blocking ? muster_job_runner_save (runner, self->cluster, epoch, finished, &is_made,
                                            self->deadline_us, self->cancellable, &failure)
                  : start_save (self, epoch, finished, &is_made, &failure)) {
    if (is_made && is_blocking)
      runner->failures_in_a_row = 0;
    if (is_made)
      return TRUE;
    return note_inaccessible (self, epoch, error);
  }
  return note_failure (runner, epoch, failure, error);
}

static gboolean
save_or_warn (Training *self, gint64 epoch, gboolean finished, GError **error)
{
  MusterGoodputMeter *meter = self->runner->meter;
  const MusterTimeUse use = muster_goodput_meter_enter (meter, MUSTER_TIME_SAVING);
  gboolean is_done = save_or_put_up (self, epoch, finished, error);
  (void)muster_goodput_meter_enter (meter, use);
  return is_done;
}

/* --- loading --- */

gboolean
muster_job_runner_load_partial (MusterJobRunner *self, MusterCluster *cluster,
                                const char *const *names, gint64 epoch, const char *on,
                                gboolean *found, char ***loaded, gint64 deadline_us,
                                GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, cluster, names, found);

  Training training = {self, cluster, deadline_us, cancellable};
  g_auto (GStrv) those = NULL;
  gboolean is_there = FALSE;
  if (!check_checkpoint (self, error) ||
      !muster_job_checkpoint_load_locally (
          self->checkpoint, muster_job_nodes_to_checkpoint (self->job), names, epoch, cluster, on,
          &is_there, &those, stage_deadline (self, deadline_us), cancellable, error) ||
      !report (&training, "checkpoint_partial_load", error))
    return FALSE;
  *found = is_there;
  if (loaded != NULL)
    *loaded = g_steal_pointer (&those);
  return TRUE;
}

/* --- training --- */

static gboolean
check_before (MusterJobRunner *self, GError **error)
{
  if (self->resume_epoch < MUSTER_NO_EPOCH)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid epoch to resume %" G_GINT64_FORMAT,
                 self->resume_epoch);
  else if (self->checkpoint == NULL && self->resume_epoch != MUSTER_NO_EPOCH)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Resuming at epoch %" G_GINT64_FORMAT " needs a checkpoint manager",
                 self->resume_epoch);
  else if (muster_job_stop_conditions (self->job)->len == 0 && !self->options.endless)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "the job has no stop condition; add one, limit its epochs, or make it endless");
  else
    return TRUE;
  return FALSE;
}

/* Warns at the start if every save will fail, since training continues. */
static void
warn_of_no_directory (Training *self)
{
  const MusterJobCheckpoint *checkpoint = self->runner->checkpoint;
  if (checkpoint != NULL && lacks_directory (self))
    muster_log (
        G_LOG_LEVEL_WARNING, "no-checkpoints", "MESSAGE",
        "the checkpoint directory '%s' doesn't exist, so no epoch will be saved; " CREATE_IT,
        checkpoint->directory);
}

/* Which of a node's variables are saved, and loaded. */
static gboolean
list_names (Training *self, gint64 resume_epoch, GError **error)
{
  MusterJobCheckpoint *checkpoint = self->runner->checkpoint;
  const char *const *nodes = muster_job_nodes_to_checkpoint (self->runner->job);
  return run_group (self,
                    muster_job_checkpoint_init_group (checkpoint, nodes, resume_epoch, NULL, error),
                    "Initialising checkpoints", error);
}

static gboolean
begin_anew (Training *self, GError **error)
{
  MusterJobRunner *runner = self->runner;
  return run_stage (self, muster_job_init_group (runner->job), "The init group", error) &&
         (runner->checkpoint == NULL || list_names (self, MUSTER_NO_EPOCH, error)) &&
         save_or_warn (self, 0, FALSE, error);
}

/* For a damaged or missing checkpoint, adds the epoch that can be loaded. */
static void
add_remedy (Training *self, gint64 epoch, GError *failure)
{
  gint64 before;
  if (!muster_storage_failure_is_damage (failure) ||
      !muster_job_checkpoint_epoch_before (self->runner->checkpoint, epoch, &before,
                                           stage_deadline (self->runner, self->deadline_us),
                                           self->cancellable, NULL))
    return;
  g_autofree char *cause = failure->message;
  failure->message = before == MUSTER_NO_EPOCH
                         ? g_strdup_printf ("%s; no earlier epoch exists for all nodes", cause)
                         : g_strdup_printf ("%s; resume at epoch %" G_GINT64_FORMAT
                                            ", the newest before it that all nodes have",
                                            cause, before);
}

static gboolean
resume (Training *self, gint64 epoch, GError **error)
{
  MusterJobCheckpoint *checkpoint = self->runner->checkpoint;
  g_autofree char *stage = g_strdup_printf ("Resuming at epoch %" G_GINT64_FORMAT, epoch);
  GError *failure = NULL;

  if (list_names (self, epoch, &failure) &&
      run_group (self, muster_job_checkpoint_load_group (checkpoint, epoch, NULL, &failure), stage,
                 &failure))
    return report (self, "checkpoint_load", error);
  add_remedy (self, epoch, failure);
  g_propagate_error (error, failure);
  return FALSE;
}

static gboolean
read_condition (MusterJobOutput *output, gboolean *is_true, GError **error)
{
  g_autoptr (MusterTensor) value = muster_job_output_get (output, error);
  if (value == NULL)
    return FALSE;
  gint64 truth;
  if (muster_tensor_dtype (value) == MUSTER_BOOL && muster_tensor_get_int64 (value, &truth, NULL)) {
    *is_true = truth != 0;
    return TRUE;
  }
  g_autofree char *shape =
      muster_shape_to_string (muster_tensor_n_dims (value), muster_tensor_dims (value));
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "it must be one bool; it is %s %s",
                      muster_dtype_name (muster_tensor_dtype (value)), shape);
}

/* Reads all of them, whatever the first one's value. */
static gboolean
read_conditions (MusterJob *job, gboolean *stops, GError **error)
{
  GPtrArray *conditions = muster_job_stop_conditions (job);
  *stops = FALSE;
  for (guint i = 0; i < conditions->len; i++) {
    gboolean is_true = FALSE;
    if (!read_condition (conditions->pdata[i], &is_true, error)) {
      g_prefix_error (error, "Stop condition %u: ", i + 1);
      return FALSE;
    }
    *stops = *stops || is_true;
  }
  return TRUE;
}

/* Runs until a condition or the caller stops it; *epoch is the last one. */
static gboolean
run_epochs (Training *self, gint64 *epoch, GError **error)
{
  MusterJobRunner *runner = self->runner;
  gboolean stops = FALSE;
  (void)muster_goodput_meter_enter (runner->meter, MUSTER_TIME_TRAINING);
  while (!stops) {
    g_autofree char *stage = g_strdup_printf ("Epoch %" G_GINT64_FORMAT, ++*epoch);
    if (!run_stage (self, muster_job_epoch_group (runner->job), stage, error) ||
        !read_conditions (runner->job, &stops, error))
      return FALSE;
    muster_goodput_meter_note_step (runner->meter, *epoch);
    if (!save_or_warn (self, *epoch, stops, error))
      return FALSE;
    gboolean is_enough = FALSE;
    g_signal_emit (runner, epoch_done, 0, *epoch, &is_enough);
    stops = stops || is_enough;
  }
  return TRUE;
}

/* Ends the training; checkpoints may be uploaded from here on. */
static gboolean
end (Training *self, gint64 epoch, GError **error)
{
  MusterJobRunner *runner = self->runner;
  MusterJobUploadBuilder *upload = runner->options.upload;
  if (upload != NULL && !run_group (self, build_upload (upload, epoch, runner->checkpoint, error),
                                    "The upload group", error))
    return FALSE;
  return run_stage (self, muster_job_download_group (runner->job), "The download group", error) &&
         run_stage (self, muster_job_exit_group (runner->job), "The exit group", error);
}

/* A job that ends without saving its last epoch has failed, though training went on. */
static gboolean
check_saved (MusterJobRunner *self, gint64 epoch, GError **error)
{
  if (self->failures_in_a_row == 0)
    return TRUE;
  g_propagate_prefixed_error (error, g_error_copy (self->last_failure),
                              "the last epoch, %" G_GINT64_FORMAT ", isn't saved: ", epoch);
  return FALSE;
}

/* Trains from the beginning or the resumed epoch to the end. */
static gboolean
train (Training *self, gint64 resume_epoch, gboolean is_over, gint64 *last_epoch, GError **error)
{
  gint64 epoch = MAX (resume_epoch, 0);
  MusterGoodputMeter *meter = self->runner->meter;
  (void)muster_goodput_meter_enter (
      meter, resume_epoch == MUSTER_NO_EPOCH ? MUSTER_TIME_INITIALISING : MUSTER_TIME_RESTORING);
  if (!(resume_epoch == MUSTER_NO_EPOCH ? begin_anew (self, error)
                                        : resume (self, resume_epoch, error)) ||
      (!is_over && !run_epochs (self, &epoch, error)))
    return FALSE;
  (void)muster_goodput_meter_enter (meter, MUSTER_TIME_SAVING);
  if (!collect_save (self, error))
    return FALSE;
  muster_goodput_meter_stop (meter);
  if (!end (self, epoch, error) || !check_saved (self->runner, epoch, error))
    return FALSE;
  if (last_epoch != NULL)
    *last_epoch = epoch;
  return TRUE;
}

gboolean
muster_job_runner_train (MusterJobRunner *self, MusterCluster *cluster, gint64 *last_epoch,
                         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, cluster);

  Training training = {self, cluster, deadline_us, cancellable};
  gint64 resume_epoch = self->resume_epoch;
  gboolean finished = FALSE;
  if (!check_before (self, error) || !muster_job_compile (self->job, cluster, error))
    return FALSE;
  begin_goodput (self, cluster);
  if (self->checkpoint != NULL &&
      (!muster_job_checkpoint_set_params (
           self->checkpoint, muster_job_nodes_to_checkpoint (self->job), NULL, error) ||
       !muster_job_checkpoint_resume_epoch (self->checkpoint, self->resume_epoch, &resume_epoch,
                                            &finished, stage_deadline (self, deadline_us),
                                            cancellable, error)))
    return FALSE;
  warn_of_no_directory (&training);
  if (train (&training, resume_epoch, finished && self->options.stay_finished, last_epoch, error))
    return TRUE;
  (void)collect_save (&training, NULL); /* what was begun is completed */
  muster_goodput_meter_stop (self->meter);
  return FALSE;
}

static void
muster_job_runner_finalize (GObject *object)
{
  MusterJobRunner *self = MUSTER_JOB_RUNNER (object);
  g_clear_object (&self->job);
  g_clear_object (&self->checkpoint);
  g_clear_object (&self->options.upload);
  g_array_unref (self->failed_epochs);
  g_clear_error (&self->last_failure);
  g_clear_pointer (&self->meter, muster_goodput_meter_unref);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_job_runner_parent_class)->finalize (object);
}

static void
muster_job_runner_init (MusterJobRunner *self)
{
  self->failed_epochs = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_mutex_init (&self->lock);
}

static void
muster_job_runner_class_init (MusterJobRunnerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_job_runner_finalize;
  epoch_done =
      g_signal_new ("epoch-done", MUSTER_TYPE_JOB_RUNNER, G_SIGNAL_RUN_LAST, 0,
                    g_signal_accumulator_true_handled, NULL, NULL, G_TYPE_BOOLEAN, 1, G_TYPE_INT64);
}
