// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "jobs/job.h"

G_BEGIN_DECLS

/* MusterJobMetadata is who keeps the books of a job's checkpoints: which epoch is the last one that
 * is whole, where a resume begins, whether the place can be reached, and how long saves and loads
 * took. Every verb is optional and may fail; what may wait, for a database for instance, comes back
 * soon after deadline_us (on muster_system_clock ()) or a cancel. MusterJobStateFile is one that
 * keeps them in a file beside the checkpoints. */

#define MUSTER_TYPE_JOB_METADATA (muster_job_metadata_get_type ())
G_DECLARE_INTERFACE (MusterJobMetadata, muster_job_metadata, MUSTER, JOB_METADATA, GObject)

/* Where a job's checkpoints lie; borrowed for the length of the call. */
typedef struct {
  const char *directory;
  MusterStorage *storage;
  const char *const *nodes;
  const char *path_prefix;     /* (nullable) what is loaded has it in the directory's place */
  MusterStorage *path_storage; /* (nullable) and lies there */
} MusterJobParams;

/* How long one node took. */
typedef struct {
  char *path; /* (owned) of the node's checkpoint, "/d/trainer_1.5" */
  char *node; /* (owned) */
  gint64 epoch;
  gint64 duration_us;
} MusterJobStat;

struct _MusterJobMetadataInterface {
  GTypeInterface parent;
  gboolean (*set_params) (MusterJobMetadata *self, const MusterJobParams *params, GError **error);
  /* Every node's checkpoint of that epoch is whole; finished: the job stopped there. */
  gboolean (*write) (MusterJobMetadata *self, gint64 epoch, gboolean finished, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  /* Where to resume, given where the user asked to: either may be MUSTER_NO_EPOCH. */
  gboolean (*last_epoch) (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                          gboolean *finished, gint64 deadline_us, GCancellable *cancellable,
                          GError **error);
  /* Whether that epoch's checkpoint can be reached; MUSTER_NO_EPOCH: the place at all, which is
   * what a runner asks before each save. */
  gboolean (*accessible) (MusterJobMetadata *self, gint64 epoch, gboolean *accessible,
                          gint64 deadline_us, GCancellable *cancellable, GError **error);
  /* action is "checkpoint_save", "checkpoint_load" or "checkpoint_partial_load"; stats
   * (element-type MusterJobStat) has one for each node, so that the slowest can be read off. */
  gboolean (*report) (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                      gint64 deadline_us, GCancellable *cancellable, GError **error);
};

/* A verb that an implementation lacks answers what no handler at all would. */
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

/* --- the one that ships --- */

#define MUSTER_TYPE_JOB_STATE_FILE (muster_job_state_file_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobStateFile, muster_job_state_file, MUSTER, JOB_STATE_FILE, GObject)

#define MUSTER_JOB_STATE_NAME "job.muster"

/* Keeps DIRECTORY/job.muster, a key file: the last epoch that every node has whole, and whether the
 * job finished there. Without a user's epoch the job resumes there; where there is no such file, at
 * the newest epoch of which every node has a checkpoint; else from scratch. An epoch that the user
 * chose is the last one from when it is loaded on (a message says so). A file that can't be read,
 * or is of a job without one of these nodes, is DATA_LOSS, which names it and the epoch that
 * removing it would resume: no job begins anew because of it. */
MusterJobStateFile *muster_job_state_file_new (void);

/* The latest report: of action (nullable out), (element-type MusterJobStat) borrowed, or NULL. */
GPtrArray *muster_job_state_file_stats (MusterJobStateFile *self, const char **action);

G_END_DECLS
