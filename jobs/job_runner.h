// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

/**
 * MusterJobUploadBuilder:
 *
 * Creates the group that is run after the last epoch, to upload checkpoints. Derive from it.
 */
#define MUSTER_TYPE_JOB_UPLOAD_BUILDER (muster_job_upload_builder_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterJobUploadBuilder, muster_job_upload_builder, MUSTER,
                          JOB_UPLOAD_BUILDER, GObject)

/**
 * MusterJobUploadBuilderClass:
 * @build: see [vfunc@JobUploadBuilder.build]
 *
 * The function of an upload builder.
 */
struct _MusterJobUploadBuilderClass {
  /*< private >*/
  GObjectClass parent;
  /*< public >*/
  MusterJobGroup *(*build) (MusterJobUploadBuilder *self, gint64 epoch,
                            MusterJobCheckpoint *checkpoint, GError **error);
};

/**
 * MusterJobUploadBuilderClass::build:
 * @self: the builder
 * @epoch: the last epoch
 * @checkpoint: (nullable): NULL: the runner has none
 *
 * Creates the group. The default is UNIMPLEMENTED.
 *
 * Returns: (transfer full): the group
 */

/**
 * MusterJobRunner:
 *
 * Trains a job by epochs (behaviours B003.59 to B003.81), like Caffe2's `JobRunner`. From scratch:
 * the init group, the checkpoint's init, a save of epoch 0. Resuming at r: the checkpoint's init,
 * and a load of r. Then, repeated: the epoch group, the stop conditions, a save of the epoch. Then
 * the upload group, the download group and the exit group.
 *
 * Epochs are saved in the background: the next epoch begins once every node's variables are taken,
 * and the nodes' checkpoints, the metadata and the report follow, in this order. One save is under
 * way at a time: the next one, upload and the end wait for it. At least one epoch is run. A failed
 * save is counted once, with a warning, at the next save or the end, and training continues; once
 * all groups have run, a job whose last epoch isn't saved has failed. Any other failure ends it
 * when the save under way is complete. One thread; the metadata is also called on a thread of the
 * save, never by two at once.
 */
#define MUSTER_TYPE_JOB_RUNNER (muster_job_runner_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobRunner, muster_job_runner, MUSTER, JOB_RUNNER, GObject)

/**
 * MusterJobRunner::epoch-done:
 * @self: the runner
 * @epoch: the epoch
 *
 * Emitted after each epoch, whose save may still be under way, or may have failed. The first
 * epoch of a job is 1; 0 is the save after its init.
 *
 * ```c
 * gboolean on_epoch_done (MusterJobRunner *runner, gint64 epoch, gpointer user_data);
 * ```
 *
 * Returns: TRUE to stop the job there, without calling further handlers; it isn't finished then, so
 *   the next run trains on
 */

/**
 * MusterJobRunnerOptions:
 * @upload: (nullable): creates the upload group
 * @endless: allow a job without a stop condition
 * @stay_finished: don't train a job that the metadata reports as finished: load it and continue
 *   with upload, download and exit. Otherwise one more epoch is trained
 * @save_blocking: TRUE: training waits until each save is complete
 * @most_failures_in_a_row: number of consecutive failed saves that ends the training; 0: no limit
 * @stage_timeout_us: for each group, save, load and metadata operation, in microseconds; 0: until
 *   the deadline
 *
 * Options of a [class@JobRunner].
 */
typedef struct {
  MusterJobUploadBuilder *upload;
  gboolean endless;
  gboolean stay_finished;
  gboolean save_blocking;
  guint most_failures_in_a_row;
  gint64 stage_timeout_us;
} MusterJobRunnerOptions;

#define MUSTER_TYPE_JOB_RUNNER_OPTIONS (muster_job_runner_options_get_type ())
GType muster_job_runner_options_get_type (void);

/**
 * muster_job_runner_new:
 * @job: what to train
 * @checkpoint: (nullable): NULL: nothing is saved
 * @resume_epoch: where to resume, or %MUSTER_NO_EPOCH; the checkpoint's metadata decides
 * @options: (nullable): NULL: the defaults
 *
 * A runner of a job.
 *
 * Returns: (transfer full): the runner
 */
MusterJobRunner *muster_job_runner_new (MusterJob *job, MusterJobCheckpoint *checkpoint,
                                        gint64 resume_epoch, const MusterJobRunnerOptions *options);

/**
 * muster_job_runner_train:
 * @self: the runner
 * @cluster: the nodes, open
 * @last_epoch: (out) (optional): the last epoch
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Compiles the job ([method@Job.compile]) and trains it. Before anything runs: INVALID_ARGUMENT for
 * a resume without a checkpoint, FAILED_PRECONDITION for a job without stop conditions that isn't
 * endless. The upload, download and exit groups run however the epochs were stopped: by a condition
 * or by a handler of [signal@JobRunner::epoch-done].
 *
 * Returns: TRUE also for a job that a handler has stopped; FALSE with an error
 */
gboolean muster_job_runner_train (MusterJobRunner *self, MusterCluster *cluster, gint64 *last_epoch,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_job_runner_save:
 * @self: the runner
 * @cluster: the nodes, open
 * @epoch: the epoch
 * @finished: the job has ended there
 * @saved: (out) (optional): FALSE if the directory isn't accessible
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Saves once, with metadata and report, waits for it, and returns the error. "Checkpoint manager
 * is None" (FAILED_PRECONDITION) if there is none.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_runner_save (MusterJobRunner *self, MusterCluster *cluster, gint64 epoch,
                                 gboolean finished, gboolean *saved, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);

/**
 * muster_job_runner_load_partial:
 * @self: the runner
 * @cluster: the nodes, open
 * @names: (array zero-terminated=1): the variables
 * @epoch: the epoch
 * @on: (nullable): the node to load into; NULL: each into its own
 * @found: (out): FALSE if a node has no such checkpoint
 * @loaded: (out) (optional) (transfer full) (array zero-terminated=1): the loaded names
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Loads the named variables of the job's nodes ([method@JobCheckpoint.load_locally]) and reports
 * it.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_runner_load_partial (MusterJobRunner *self, MusterCluster *cluster,
                                         const char *const *names, gint64 epoch, const char *on,
                                         gboolean *found, char ***loaded, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_job_runner_goodput:
 * @self: the runner
 * @goodput: (out caller-allocates): where to return it
 *
 * What the time of the last training was spent on, even while it runs: epochs, saves that hold
 * them, loading, and the init groups; not what comes after the last epoch. Its steps are epochs.
 * Of this process only. Any thread.
 */
void muster_job_runner_goodput (MusterJobRunner *self, MusterGoodput *goodput);

/**
 * muster_job_runner_failed_epochs: (skip)
 * @self: the runner
 * @last: (nullable): where to return the last failure, borrowed until the next save
 *
 * The epochs whose saves failed.
 *
 * Returns: (transfer none) (element-type gint64): the epochs, in order
 */
GArray *muster_job_runner_failed_epochs (MusterJobRunner *self, const GError **last);

/**
 * muster_job_runner_list_failed_epochs:
 * @self: the runner
 *
 * The epochs whose saves failed; muster_job_runner_failed_epochs () for other languages.
 *
 * Returns: (transfer none) (element-type gint64): the epochs, in order
 */
GArray *muster_job_runner_list_failed_epochs (MusterJobRunner *self);

/**
 * muster_job_runner_last_failure:
 * @self: the runner
 *
 * Why the last save that failed has failed.
 *
 * Returns: (transfer full) (nullable): the failure; NULL: none
 */
GError *muster_job_runner_last_failure (MusterJobRunner *self);

G_END_DECLS
