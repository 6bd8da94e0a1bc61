// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_metadata.h"

G_BEGIN_DECLS

/**
 * MusterJobCheckpoint:
 *
 * Saves and loads a job's nodes by epoch (behaviours B003.27 to B003.58): "DIRECTORY/NODE.EPOCH"
 * is a checkpoint of that node's variables. It corresponds to Caffe2's `CheckpointManager` (one
 * node) and `MultiNodeCheckpointManager` (any number, in order); a db type is a [iface@Storage], a
 * blob a variable.
 *
 * Most functions create a group of tasks, one for each node, for the caller to run
 * ([method@Cluster.run]); nothing happens before. The init group determines what is saved: the
 * global variables that have a value at that time or, on a resume, those that the checkpoint
 * lists. Each node's checkpoint is published atomically ([class@Saver]). It contains that list as
 * the strings "blob_names/list", and an identifier of the save, "blob_names/save". A checkpoint of
 * all nodes is valid once its metadata is written; checkpoints of different saves aren't loaded
 * together (DATA_LOSS).
 *
 * The directory isn't created. If it doesn't exist, a runner warns before the first epoch, trains
 * all epochs without saving, and fails at the end.
 *
 * One thread; its groups must not run at the same time.
 */
#define MUSTER_TYPE_JOB_CHECKPOINT (muster_job_checkpoint_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobCheckpoint, muster_job_checkpoint, MUSTER, JOB_CHECKPOINT, GObject)

/**
 * muster_job_checkpoint_new:
 * @directory: where the checkpoints are; it must exist
 * @storage: (nullable): NULL: local files, which each node's master must see
 * @metadata: (nullable): NULL: none
 * @clock: (nullable): NULL: the machine's
 *
 * Checkpoints of several nodes.
 *
 * Returns: (transfer full): the checkpoints
 */
MusterJobCheckpoint *muster_job_checkpoint_new (const char *directory, MusterStorage *storage,
                                                MusterJobMetadata *metadata, MusterClock *clock);

/**
 * muster_job_checkpoint_new_for_node:
 * @directory: where the checkpoints are; it must exist
 * @name: what its files are named after, whatever its name in the cluster
 * @storage: (nullable): NULL: local files, which each node's master must see
 * @metadata: (nullable): NULL: none
 * @clock: (nullable): NULL: the machine's
 *
 * Checkpoints of one node.
 *
 * Returns: (transfer full): the checkpoints
 */
MusterJobCheckpoint *muster_job_checkpoint_new_for_node (const char *directory, const char *name,
                                                         MusterStorage *storage,
                                                         MusterJobMetadata *metadata,
                                                         MusterClock *clock);

/**
 * muster_job_checkpoint_path:
 * @directory: where the checkpoints are
 * @path_prefix: (nullable): instead of the directory; "": none
 * @node: a node
 * @epoch: an epoch
 *
 * The path of a checkpoint.
 *
 * Returns: (transfer full): "NODE.EPOCH" in the directory, or appended to @path_prefix
 */
char *muster_job_checkpoint_path (const char *directory, const char *path_prefix, const char *node,
                                  gint64 epoch);

/**
 * muster_job_checkpoint_db_name:
 * @self: the checkpoints
 * @node: (nullable): a node; NULL for a single one
 * @epoch: an epoch
 *
 * The path of a node's checkpoint for an epoch.
 *
 * Returns: (transfer full) (nullable): the path; NULL for an unknown node
 */
char *muster_job_checkpoint_db_name (MusterJobCheckpoint *self, const char *node, gint64 epoch);

/**
 * MusterJobPath:
 * @prefix: (nullable): "/p/run-"
 * @storage: (nullable): its store
 *
 * Where to load from, if different.
 */
typedef struct {
  const char *prefix;
  MusterStorage *storage;
} MusterJobPath;

#define MUSTER_TYPE_JOB_PATH (muster_job_path_get_type ())
GType muster_job_path_get_type (void);

/**
 * muster_job_path_new:
 * @prefix: (nullable): "/p/run-"
 * @storage: (nullable): its store
 *
 * A path on the heap, for other languages.
 *
 * Returns: (transfer full): the path
 */
MusterJobPath *muster_job_path_new (const char *prefix, MusterStorage *storage);

/**
 * muster_job_checkpoint_set_params:
 * @self: the checkpoints
 * @nodes: (array zero-terminated=1): the nodes
 * @path: (nullable): becomes the default for init, load, partial loads and exists; saves don't use
 *   it
 *
 * Passes the parameters to the metadata.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_set_params (MusterJobCheckpoint *self, const char *const *nodes,
                                           const MusterJobPath *path, GError **error);

/**
 * muster_job_checkpoint_init_group:
 * @self: the checkpoints
 * @nodes: (nullable) (array zero-terminated=1): NULL is INVALID_ARGUMENT, other nodes than before
 *   are FAILED_PRECONDITION; for a single node, NULL or one ("CheckpointManager only supports
 *   single node.")
 * @resume_epoch: where to resume, or %MUSTER_NO_EPOCH
 * @path: (nullable): where to load from, if different
 *
 * Sets the nodes and, when run, their variables. Afterwards, with the same nodes and epoch, the
 * group is empty; with another epoch the names are listed again.
 *
 * Returns: (transfer full): the group
 */
MusterJobGroup *muster_job_checkpoint_init_group (MusterJobCheckpoint *self,
                                                  const char *const *nodes, gint64 resume_epoch,
                                                  const MusterJobPath *path, GError **error);

/**
 * muster_job_checkpoint_names:
 * @self: the checkpoints
 * @node: (nullable): a node; NULL for a single one
 *
 * The names in a node's checkpoint. FAILED_PRECONDITION "init must be called first.", or, if that
 * group hasn't run, "Cannot fetch value for this output.".
 *
 * Returns: (transfer none) (array zero-terminated=1): the names, borrowed
 */
const char *const *muster_job_checkpoint_names (MusterJobCheckpoint *self, const char *node,
                                                GError **error);

/**
 * muster_job_checkpoint_save_group:
 * @self: the checkpoints
 * @epoch: the epoch
 *
 * Saves each node. Errors if not initialised: as in names.
 *
 * Returns: (transfer full): the group
 */
MusterJobGroup *muster_job_checkpoint_save_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  GError **error);

/**
 * muster_job_checkpoint_load_group:
 * @self: the checkpoints
 * @epoch: the epoch
 * @path: (nullable): where to load from, if different
 *
 * Loads each node. Errors if not initialised: as in names.
 *
 * Returns: (transfer full): the group
 */
MusterJobGroup *muster_job_checkpoint_load_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  const MusterJobPath *path, GError **error);

/**
 * muster_job_checkpoint_partial_load_task:
 * @self: the checkpoints
 * @node: (nullable): a node; NULL for a single one
 * @names: (array zero-terminated=1): the variables
 * @epoch: the epoch
 * @on: (nullable): the node that runs it; NULL: the node itself
 * @loaded: (out) (optional) (transfer none): its output, the names
 *
 * A task that loads those of the named variables that the checkpoint has; it needs no init.
 *
 * Returns: (transfer full): the task
 */
MusterJobTask *muster_job_checkpoint_partial_load_task (MusterJobCheckpoint *self, const char *node,
                                                        const char *const *names, gint64 epoch,
                                                        const char *on, MusterJobOutput **loaded,
                                                        GError **error);

/**
 * muster_job_checkpoint_exists_task:
 * @self: the checkpoints
 * @node: (nullable): a node; NULL for a single one
 * @epoch: the epoch
 * @exists: (out) (transfer none): its only output, a bool
 *
 * A task that finds out whether a node has a checkpoint of that epoch.
 *
 * Returns: (transfer full): the task
 */
MusterJobTask *muster_job_checkpoint_exists_task (MusterJobCheckpoint *self, const char *node,
                                                  gint64 epoch, MusterJobOutput **exists,
                                                  GError **error);

/**
 * muster_job_checkpoint_load_locally:
 * @self: the checkpoints
 * @nodes: (array zero-terminated=1): the nodes
 * @names: (array zero-terminated=1): the variables
 * @epoch: the epoch
 * @cluster: the nodes, open
 * @on: (nullable): the node to load into; NULL: each into its own
 * @found: (out): FALSE at the first node without such a checkpoint; what was loaded before isn't
 *   undone
 * @loaded: (out) (optional) (transfer full) (array zero-terminated=1): the loaded names, each once
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Loads the named variables from each node's checkpoint, one node after another.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_load_locally (MusterJobCheckpoint *self, const char *const *nodes,
                                             const char *const *names, gint64 epoch,
                                             MusterCluster *cluster, const char *on,
                                             gboolean *found, char ***loaded, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/**
 * muster_job_checkpoint_stats:
 * @self: the checkpoints
 *
 * The duration of each node's last save or load.
 *
 * Returns: (transfer container) (element-type MusterJobStat): one for each node
 */
GPtrArray *muster_job_checkpoint_stats (MusterJobCheckpoint *self);

/* The metadata's operations for all nodes. Without metadata nothing is written or reported, the
 * user's epoch is used, and everything is accessible. */

/**
 * muster_job_checkpoint_report:
 * @self: the checkpoints
 * @action: as in [method@JobMetadata.report]
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * Reports the stats to the metadata.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_report (MusterJobCheckpoint *self, const char *action,
                                       gint64 deadline_us, GCancellable *cancellable,
                                       GError **error);

/**
 * muster_job_checkpoint_write_metadata:
 * @self: the checkpoints
 * @epoch: an epoch of which every node's checkpoint is intact
 * @finished: the job has ended there
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * [method@JobMetadata.write] for all nodes.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_write_metadata (MusterJobCheckpoint *self, gint64 epoch,
                                               gboolean finished, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);

/**
 * muster_job_checkpoint_resume_epoch:
 * @self: the checkpoints
 * @user_epoch: the user's choice, or %MUSTER_NO_EPOCH
 * @epoch: (out): where to resume, or %MUSTER_NO_EPOCH
 * @finished: (out): the job has ended there
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * [method@JobMetadata.last_epoch] for all nodes.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_resume_epoch (MusterJobCheckpoint *self, gint64 user_epoch,
                                             gint64 *epoch, gboolean *finished, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/**
 * muster_job_checkpoint_accessible:
 * @self: the checkpoints
 * @epoch: an epoch, or %MUSTER_NO_EPOCH
 * @accessible: (out): whether it is accessible
 * @deadline_us: an instant of g_get_monotonic_time (), or %MUSTER_WAIT_FOREVER
 * @cancellable: (nullable): ends the call
 *
 * [method@JobMetadata.accessible] for all nodes.
 *
 * Returns: FALSE with an error
 */
gboolean muster_job_checkpoint_accessible (MusterJobCheckpoint *self, gint64 epoch,
                                           gboolean *accessible, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

G_END_DECLS
