// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"
#include "jobs/job.h"

G_BEGIN_DECLS

/**
 * MusterJobMetadata:
 *
 * Stores the metadata of a job's checkpoints: the last valid epoch, where to resume, whether the
 * checkpoints are accessible, and how long saves and loads took. Every operation is optional and
 * may fail. Operations that block, for example on a database, must return soon after deadline_us
 * (an instant of g_get_monotonic_time ()) or a cancellation. [class@JobStateFile] implements it
 * with a file beside the checkpoints.
 */
#define MUSTER_TYPE_JOB_METADATA (muster_job_metadata_get_type ())
G_DECLARE_INTERFACE (MusterJobMetadata, muster_job_metadata, MUSTER, JOB_METADATA, GObject)

/**
 * MusterJobParams:
 * @directory: of the checkpoints
 * @storage: its store
 * @nodes: (array zero-terminated=1): the nodes
 * @path_prefix: (nullable): loads use it instead of the directory
 * @path_storage: (nullable): loads use this store
 *
 * Where a job's checkpoints are; borrowed for the length of the call.
 */
typedef struct {
  const char *directory;
  MusterStorage *storage;
  const char *const *nodes;
  const char *path_prefix;
  MusterStorage *path_storage;
} MusterJobParams;

/**
 * MusterJobStat:
 * @path: of the node's checkpoint, "/d/trainer_1.5"
 * @node: the node
 * @epoch: the epoch
 * @duration_us: how long it took, in microseconds
 *
 * The duration of one node's save or load.
 */
typedef struct {
  char *path;
  char *node;
  gint64 epoch;
  gint64 duration_us;
} MusterJobStat;

#define MUSTER_TYPE_JOB_STAT (muster_job_stat_get_type ())
GType muster_job_stat_get_type (void);

/**
 * MusterJobMetadataInterface:
 * @set_params: see [vfunc@JobMetadata.set_params]
 * @write: see [vfunc@JobMetadata.write]
 * @last_epoch: see [vfunc@JobMetadata.last_epoch]
 * @accessible: see [vfunc@JobMetadata.accessible]
 * @report: see [vfunc@JobMetadata.report]
 *
 * The operations of a store of metadata; each may be NULL: it then succeeds as without metadata.
 */
struct _MusterJobMetadataInterface {
  /*< private >*/
  GTypeInterface parent;
  /*< public >*/
  gboolean (*set_params) (MusterJobMetadata *self, const MusterJobParams *params, GError **error);
  gboolean (*write) (MusterJobMetadata *self, gint64 epoch, gboolean finished, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  gboolean (*last_epoch) (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                          gboolean *finished, gint64 deadline_us, GCancellable *cancellable,
                          GError **error);
  gboolean (*accessible) (MusterJobMetadata *self, gint64 epoch, gboolean *accessible,
                          gint64 deadline_us, GCancellable *cancellable, GError **error);
  gboolean (*report) (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                      gint64 deadline_us, GCancellable *cancellable, GError **error);
};

/**
 * muster_job_metadata_set_params:
 * @self: the metadata
 * @params: where the checkpoints are
 *
 * Says where a job's checkpoints are.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_metadata_set_params (MusterJobMetadata *self, const MusterJobParams *params,
                                         GError **error);

/**
 * muster_job_metadata_write:
 * @self: the metadata
 * @epoch: an epoch of which every node's checkpoint is intact
 * @finished: the job has ended there
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Every node's checkpoint of that epoch is intact.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_metadata_write (MusterJobMetadata *self, gint64 epoch, gboolean finished,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_job_metadata_last_epoch:
 * @self: the metadata
 * @user_epoch: the user's choice, or %MUSTER_NO_EPOCH
 * @epoch: (out): where to resume, or %MUSTER_NO_EPOCH
 * @finished: (out): the job has ended there
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Where to resume.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_metadata_last_epoch (MusterJobMetadata *self, gint64 user_epoch, gint64 *epoch,
                                         gboolean *finished, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_job_metadata_accessible:
 * @self: the metadata
 * @epoch: an epoch; %MUSTER_NO_EPOCH: the directory, which a runner checks before each save
 * @accessible: (out): whether it is accessible
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Whether that epoch's checkpoint is accessible.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_metadata_accessible (MusterJobMetadata *self, gint64 epoch,
                                         gboolean *accessible, gint64 deadline_us,
                                         GCancellable *cancellable, GError **error);

/**
 * muster_job_metadata_report:
 * @self: the metadata
 * @action: "checkpoint_save", "checkpoint_load" or "checkpoint_partial_load"
 * @stats: (element-type MusterJobStat): one for each node
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Says how long a save or a load took.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_metadata_report (MusterJobMetadata *self, const char *action, GPtrArray *stats,
                                     gint64 deadline_us, GCancellable *cancellable, GError **error);

/* --- the implementation with a file --- */

/**
 * MusterJobStateFile:
 *
 * Stores DIRECTORY/job.muster, a key file: the last epoch of which every node has an intact
 * checkpoint, and whether the job finished there. Without a user's epoch the job resumes there;
 * without the file, at the newest epoch for which every node has a checkpoint, else from scratch.
 * An epoch chosen by the user becomes the last one when it is loaded, with a message. A file that
 * can't be read, or of a job without one of these nodes, is DATA_LOSS, which names the file and the
 * epoch to resume from if it is removed, so that no job starts anew because of it.
 */
#define MUSTER_TYPE_JOB_STATE_FILE (muster_job_state_file_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobStateFile, muster_job_state_file, MUSTER, JOB_STATE_FILE, GObject)

/**
 * MUSTER_JOB_STATE_NAME:
 *
 * The name of a [class@JobStateFile]'s file.
 */
#define MUSTER_JOB_STATE_NAME "job.muster"

/**
 * muster_job_state_file_new:
 *
 * Metadata in a file beside the checkpoints.
 *
 * Returns: (transfer full): the metadata
 */
MusterJobStateFile *muster_job_state_file_new (void);

/**
 * muster_job_state_file_stats:
 * @self: the file
 * @action: (out) (optional) (nullable) (transfer none): what was reported; borrowed
 *
 * The latest report.
 *
 * Returns: (transfer none) (nullable) (element-type MusterJobStat): one for each node, borrowed;
 *   NULL: none
 */
GPtrArray *muster_job_state_file_stats (MusterJobStateFile *self, const char **action);

G_END_DECLS
