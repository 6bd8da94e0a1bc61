// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_metadata.h"

G_BEGIN_DECLS

/* MusterJobCheckpoint saves and loads a job's nodes by epoch (behaviours B003.27 to B003.58):
 * "DIRECTORY/NODE.EPOCH" is a checkpoint of that node's variables. It corresponds to Caffe2's
 * CheckpointManager (one node) and MultiNodeCheckpointManager (any number, in order); a db type is
 * a MusterStorage, a blob a variable.
 *
 * Most functions create a group of tasks, one for each node, for the caller to run
 * (muster_cluster_run ()); nothing happens before. The init group determines what is saved: the
 * global variables that have a value at that time or, on a resume, those that the checkpoint lists.
 * Each node's checkpoint is published atomically (saver/saver.h). It contains that list as the
 * strings "blob_names/list", and an identifier of the save, "blob_names/save". A checkpoint of all
 * nodes is valid once its metadata is written; checkpoints of different saves aren't loaded
 * together (DATA_LOSS).
 *
 * One thread; its groups must not run at the same time. */

#define MUSTER_TYPE_JOB_CHECKPOINT (muster_job_checkpoint_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobCheckpoint, muster_job_checkpoint, MUSTER, JOB_CHECKPOINT, GObject)

typedef struct {
  MusterStorage *storage;      /* NULL: local files, which each node's master must see */
  MusterJobMetadata *metadata; /* (nullable) */
  MusterClock *clock;          /* NULL: the machine's */
} MusterJobCheckpointOptions;

/* For several nodes. options may be NULL. */
MusterJobCheckpoint *muster_job_checkpoint_new (const char *directory,
                                                const MusterJobCheckpointOptions *options);
/* For one node. Its files are named after name, whatever its name in the cluster. */
MusterJobCheckpoint *muster_job_checkpoint_new_for_node (const char *directory, const char *name,
                                                         const MusterJobCheckpointOptions *options);

/* "NODE.EPOCH" in the directory, or appended to path_prefix (nullable) ("": none), (transfer full).
 */
char *muster_job_checkpoint_path (const char *directory, const char *path_prefix, const char *node,
                                  gint64 epoch);
/* The path of the checkpoint of node (nullable for a single node) for an epoch (transfer full), or
 * NULL for an unknown node. */
char *muster_job_checkpoint_db_name (MusterJobCheckpoint *self, const char *node, gint64 epoch);

/* Where to load from, if different. */
typedef struct {
  const char *prefix;     /* (nullable) "/p/run-" */
  MusterStorage *storage; /* (nullable) */
} MusterJobPath;

/* Passes the parameters to the metadata. path (nullable) becomes the default for init, load,
 * partial loads and exists; saves don't use it. */
gboolean muster_job_checkpoint_set_params (MusterJobCheckpoint *self, const char *const *nodes,
                                           const MusterJobPath *path, GError **error);

/* Sets the nodes and, when run, their variables. Afterwards, with the same nodes and epoch, the
 * group is empty; with another epoch the names are listed again. nodes (nullable): NULL is
 * INVALID_ARGUMENT, other nodes than before are FAILED_PRECONDITION; for a single node, NULL or one
 * ("CheckpointManager only supports single node."). path (nullable) as above. (transfer full), like
 * the groups below. */
MusterJobGroup *muster_job_checkpoint_init_group (MusterJobCheckpoint *self,
                                                  const char *const *nodes, gint64 resume_epoch,
                                                  const MusterJobPath *path, GError **error);
/* The names in the checkpoint of node (nullable as above), NULL-terminated, borrowed.
 * FAILED_PRECONDITION "init must be called first.", or, if that group hasn't run, "Cannot fetch
 * value for this output.". */
const char *const *muster_job_checkpoint_names (MusterJobCheckpoint *self, const char *node,
                                                GError **error);

/* Errors if not initialised: as in names. path (nullable) as above. */
MusterJobGroup *muster_job_checkpoint_save_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  GError **error);
MusterJobGroup *muster_job_checkpoint_load_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  const MusterJobPath *path, GError **error);

/* A task that loads those of the named variables that the checkpoint has; it needs no init. node
 * (nullable as above). *loaded (nullable out) is its output, the names. on (nullable) is the node
 * that runs it; NULL: the node itself. */
MusterJobTask *muster_job_checkpoint_partial_load_task (MusterJobCheckpoint *self, const char *node,
                                                        const char *const *names, gint64 epoch,
                                                        const char *on, MusterJobOutput **loaded,
                                                        GError **error);
/* A task whose only output is a bool: TRUE if node (nullable as above) has a checkpoint of that
 * epoch. */
MusterJobTask *muster_job_checkpoint_exists_task (MusterJobCheckpoint *self, const char *node,
                                                  gint64 epoch, MusterJobOutput **exists,
                                                  GError **error);

/* Loads the named variables from each node's checkpoint, one node after another, into the node on
 * (nullable), or each into its own. *found is FALSE at the first node without such a checkpoint;
 * what was loaded before isn't undone. *loaded (nullable out) is the loaded names (transfer full),
 * each once. */
gboolean muster_job_checkpoint_load_locally (MusterJobCheckpoint *self, const char *const *nodes,
                                             const char *const *names, gint64 epoch,
                                             MusterCluster *cluster, const char *on,
                                             gboolean *found, char ***loaded, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/* The duration of each node's last save or load (element-type MusterJobStat) (transfer full). */
GPtrArray *muster_job_checkpoint_stats (MusterJobCheckpoint *self);

/* The metadata's operations for all nodes. Without metadata nothing is written or reported, the
 * user's epoch is used, and everything is accessible. */
gboolean muster_job_checkpoint_report (MusterJobCheckpoint *self, const char *action,
                                       gint64 deadline_us, GCancellable *cancellable,
                                       GError **error);
gboolean muster_job_checkpoint_write_metadata (MusterJobCheckpoint *self, gint64 epoch,
                                               gboolean finished, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);
gboolean muster_job_checkpoint_resume_epoch (MusterJobCheckpoint *self, gint64 user_epoch,
                                             gint64 *epoch, gboolean *finished, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);
gboolean muster_job_checkpoint_accessible (MusterJobCheckpoint *self, gint64 epoch,
                                           gboolean *accessible, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

G_END_DECLS
