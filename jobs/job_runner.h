// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

/* MusterJobRunner trains a job by epochs (behaviours B003.59 to B003.81), in this order:
 *
 *   from scratch   init group -> checkpoint's init -> save epoch 0 ->
 *   resuming at r  checkpoint's init -> load r ->
 *   both           [epoch group -> look at the stop conditions -> save the epoch] again and again
 *                  -> upload group -> download group -> exit group
 *
 * At least one epoch is run. A save that fails warns, is counted, and training goes on; any other
 * failure ends it at once. One thread. */

/* Makes the group that is run when the epochs are over, to bring checkpoints elsewhere. Derive from
 * it. */
#define MUSTER_TYPE_JOB_UPLOAD_BUILDER (muster_job_upload_builder_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterJobUploadBuilder, muster_job_upload_builder, MUSTER,
                          JOB_UPLOAD_BUILDER, GObject)

struct _MusterJobUploadBuilderClass {
  GObjectClass parent;
  /* checkpoint is NULL where the runner has none. The base's is UNIMPLEMENTED. */
  MusterJobGroup *(*build) (MusterJobUploadBuilder *self, gint64 epoch,
                            MusterJobCheckpoint *checkpoint, GError **error);
};

/* checkpoint (nullable) */
MusterJobGroup *muster_job_upload_builder_build (MusterJobUploadBuilder *self, gint64 epoch,
                                                 MusterJobCheckpoint *checkpoint, GError **error);

#define MUSTER_TYPE_JOB_RUNNER (muster_job_runner_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobRunner, muster_job_runner, MUSTER, JOB_RUNNER, GObject)

/* After each epoch and its save, whether or not that went well; FALSE asks to stop there: the job
 * hasn't finished then. */
typedef gboolean (*MusterJobEpochDone) (gint64 epoch, gpointer user_data);

typedef struct {
  MusterJobUploadBuilder *upload; /* (nullable) */
  gboolean endless;               /* a job without a stop condition is wanted */
  /* A job that the metadata knows to have finished isn't trained one more epoch: it is loaded and
   * goes straight to upload, download and exit. */
  gboolean stay_finished;
  guint most_failures_in_a_row;  /* so many failed saves end the training; 0: none do */
  gint64 stage_timeout_us;       /* for each group, save, load and verb of the metadata;
                                    0: what the deadline leaves */
  MusterJobEpochDone epoch_done; /* (nullable) */
  gpointer user_data;
} MusterJobRunnerOptions;

/* Without checkpoint (nullable) nothing is saved. resume_epoch: where to resume, or
 * MUSTER_NO_EPOCH; the checkpoint's metadata has the last word. options may be NULL. */
MusterJobRunner *muster_job_runner_new (MusterJob *job, MusterJobCheckpoint *checkpoint,
                                        gint64 resume_epoch, const MusterJobRunnerOptions *options);

/* Trains, on a cluster that is open; *last_epoch (nullable out) is the last one. INVALID_ARGUMENT
 * for a resume without a checkpoint, FAILED_PRECONDITION for a job without stop conditions that
 * isn't meant to be endless: both before anything is run. */
gboolean muster_job_runner_train (MusterJobRunner *self, MusterCluster *cluster, gint64 *last_epoch,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/* One save, with its metadata and report, that says how it failed. "Checkpoint manager is None"
 * (FAILED_PRECONDITION) where there is none. *saved (nullable out) FALSE: the place isn't
 * accessible. */
gboolean muster_job_runner_save (MusterJobRunner *self, MusterCluster *cluster, gint64 epoch,
                                 gboolean finished, gboolean *saved, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);

/* Loads some variables of the job's nodes (muster_job_checkpoint_load_locally ()) and reports it;
 * on (nullable) and loaded (nullable out) as there. */
gboolean muster_job_runner_load_partial (MusterJobRunner *self, MusterCluster *cluster,
                                         const char *const *names, gint64 epoch, const char *on,
                                         gboolean *found, char ***loaded, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/* The epochs whose saves have failed, in order (transfer none) (element-type gint64), and with what
 * the last (nullable out) one did, borrowed until the next save. */
GArray *muster_job_runner_failed_epochs (MusterJobRunner *self, const GError **last);

G_END_DECLS
