// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "jobs/job.h"

G_BEGIN_DECLS

/* MusterJobMetadata stores the metadata of a job's checkpoints: the last valid epoch, where to
 * resume, whether the checkpoints are accessible, and how long saves and loads took. Every
 * operation is optional and may fail. Operations that block, for example on a database, must return
 * soon after deadline_us (on muster_system_clock ()) or a cancellation. MusterJobStateFile
 * implements it with a file beside the checkpoints. */

#define MUSTER_TYPE_JOB_METADATA (muster_job_metadata_get_type ())
G_DECLARE_INTERFACE (MusterJobMetadata, muster_job_metadata, MUSTER, JOB_METADATA, GObject)

/* Where a job's checkpoints are; borrowed for the length of the call. */
typedef struct {
  const char *directory;
  MusterStorage *storage;
  const char *const *nodes;
  const char *path_prefix;     /* (nullable) loads use it instead of the directory */
  MusterStorage *path_storage; /* (nullable) loads use this store */
} MusterJobParams;

/* The duration of one node's save or load. */
typedef struct {
  char *path; /* (owned) of the node's checkpoint, "/d/trainer_1.5" */
  char *node; /* (owned) */
  gint64 epoch;
  gint64 duration_us;
} MusterJobStat;

struct _MusterJobMetadataInterface {
  GTypeInterface parent;
  gboolean (*set_params) (MusterJobMetadata *self, const MusterJobParams *params, GError **error);
  /* Every node's checkpoint of that epoch is whole. finished: the job has ended there. */
  gboolean (*write) (MusterJobMetadata *self, gint64 epoch, gboolean finished, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  /* Where to resume, given the user's choice. Either may be MUSTER_NO_EPOCH. */
  gboolean (*last_epoch) (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                          gboolean *finished, gint64 deadline_us, GCancellable *cancellable,
                          GError **error);
  /* Whether that epoch's checkpoint is accessible. MUSTER_NO_EPOCH: whether the directory is, which
   * a runner checks before each save. */
  gboolean (*accessible) (MusterJobMetadata *self, gint64 epoch, gboolean *accessible,
                          gint64 deadline_us, GCancellable *cancellable, GError **error);
  /* action is "checkpoint_save", "checkpoint_load" or "checkpoint_partial_load"; stats
   * (element-type MusterJobStat) has one for each node. */
  gboolean (*report) (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                      gint64 deadline_us, GCancellable *cancellable, GError **error);
};

/* If an implementation lacks the operation, these succeed as without metadata. */
gboolean muster_job_metadata_set_params (MusterJobMetadata *self, const MusterJobParams *params,
                                         GError **error);
gboolean muster_job_metadata_write (MusterJobMetadata *self, gint64 epoch, gboolean finished,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);
gboolean muster_job_metadata_last_epoch (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                                         gboolean *finished, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);
gboolean muster_job_metadata_accessible (MusterJobMetadata *self, gint64 epoch,
                                         gboolean *accessible, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);
gboolean muster_job_metadata_report (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error);

/* --- the implementation with a file --- */

#define MUSTER_TYPE_JOB_STATE_FILE (muster_job_state_file_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobStateFile, muster_job_state_file, MUSTER, JOB_STATE_FILE, GObject)

#define MUSTER_JOB_STATE_NAME "job.muster"

/* Stores DIRECTORY/job.muster, a key file: the last epoch that every node has whole, and whether
 * the job finished there. Without a user's epoch the job resumes there; without the file, at the
 * newest epoch for which every node has a checkpoint, else from scratch. An epoch chosen by the
 * user becomes the last one when it is loaded, with a message. A file that can't be read, or of a
 * job without one of these nodes, is DATA_LOSS, which names the file and the epoch to resume from
 * if it is removed, so that no job starts anew because of it. */
MusterJobStateFile *muster_job_state_file_new (void);

/* The latest report, of action (nullable out): (element-type MusterJobStat) borrowed, or NULL. */
GPtrArray *muster_job_state_file_stats (MusterJobStateFile *self, const char **action);

G_END_DECLS
