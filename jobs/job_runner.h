// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

/* MusterJobRunner trains a job by epochs (behaviours B003.59 to B003.81), in this order:
 *
 *   from scratch   init group -> checkpoint's init -> save epoch 0 ->
 *   resuming at r  checkpoint's init -> load r ->
 *   both           [epoch group -> check the stop conditions -> save the epoch] repeated
 *                  -> upload group -> download group -> exit group
 *
 * Epochs are saved in the background: the next epoch begins once every node's variables are taken,
 * and the nodes' checkpoints, the metadata and the report follow, in this order. One save is under
 * way at a time: the next one, upload and the end wait for it. At least one epoch is run. A failed
 * save is counted once, with a warning, at the next save or the end, and training continues; any
 * other failure ends it, when the save under way is complete. One thread; the metadata is also
 * called on a thread of the save, never by two at once. */

/* Creates the group that is run after the last epoch, to upload checkpoints. Derive from it. */
#define MUSTER_TYPE_JOB_UPLOAD_BUILDER (muster_job_upload_builder_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterJobUploadBuilder, muster_job_upload_builder, MUSTER,
                          JOB_UPLOAD_BUILDER, GObject)

struct _MusterJobUploadBuilderClass {
  GObjectClass parent;
  /* checkpoint is NULL if the runner has none. The default is UNIMPLEMENTED. */
  MusterJobGroup *(*build) (MusterJobUploadBuilder *self, gint64 epoch,
                            MusterJobCheckpoint *checkpoint, GError **error);
};

#define MUSTER_TYPE_JOB_RUNNER (muster_job_runner_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobRunner, muster_job_runner, MUSTER, JOB_RUNNER, GObject)

/* Called after each epoch, whose save may still be under way, or may have failed. FALSE stops the
 * job there; it isn't finished then. */
typedef gboolean (*MusterJobEpochDone) (gint64 epoch, gpointer user_data);

typedef struct {
  MusterJobUploadBuilder *upload; /* (nullable) */
  gboolean endless;               /* allow a job without a stop condition */
  /* Don't train a job that the metadata reports as finished: load it and continue with upload,
   * download and exit. Otherwise one more epoch is trained. */
  gboolean stay_finished;
  gboolean save_blocking;        /* TRUE: training waits until each save is complete */
  guint most_failures_in_a_row;  /* number of consecutive failed saves that ends the training; 0: no
                                    limit */
  gint64 stage_timeout_us;       /* for each group, save, load and metadata operation; 0: until the
                                    deadline */
  MusterJobEpochDone epoch_done; /* (nullable) */
  gpointer user_data;
} MusterJobRunnerOptions;

/* Without checkpoint (nullable) nothing is saved. resume_epoch is where to resume, or
 * MUSTER_NO_EPOCH; the checkpoint's metadata decides. options may be NULL. */
MusterJobRunner *muster_job_runner_new (MusterJob *job, MusterJobCheckpoint *checkpoint,
                                        gint64 resume_epoch, const MusterJobRunnerOptions *options);

/* Trains on an open cluster. *last_epoch (nullable out) is the last epoch. Before anything runs:
 * INVALID_ARGUMENT for a resume without a checkpoint, FAILED_PRECONDITION for a job without stop
 * conditions that isn't endless. */
gboolean muster_job_runner_train (MusterJobRunner *self, MusterCluster *cluster, gint64 *last_epoch,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/* Saves once, with metadata and report, waits for it, and returns the error. "Checkpoint manager is
 * None" (FAILED_PRECONDITION) if there is none. *saved (nullable out) is FALSE if the directory
 * isn't accessible. */
gboolean muster_job_runner_save (MusterJobRunner *self, MusterCluster *cluster, gint64 epoch,
                                 gboolean finished, gboolean *saved, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);

/* Loads the named variables of the job's nodes (muster_job_checkpoint_load_locally ()) and reports
 * it; on (nullable) and loaded (nullable out) as there. */
gboolean muster_job_runner_load_partial (MusterJobRunner *self, MusterCluster *cluster,
                                         const char *const *names, gint64 epoch, const char *on,
                                         gboolean *found, char ***loaded, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/* What the time of the last training was spent on, also while it runs: epochs, saves that hold
 * them, loading, and the init groups; not what comes after the last epoch. Its steps are epochs. Of
 * this process only. Any thread. */
void muster_job_runner_goodput (MusterJobRunner *self, MusterGoodput *goodput);

/* The epochs whose saves failed, in order (transfer none) (element-type gint64); last (nullable
 * out) is the last failure, borrowed until the next save. */
GArray *muster_job_runner_failed_epochs (MusterJobRunner *self, const GError **last);

G_END_DECLS
