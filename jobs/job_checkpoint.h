// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_metadata.h"

G_BEGIN_DECLS

/* MusterJobCheckpoint saves and loads a job's nodes by epoch (behaviours B003.27 to B003.58):
 * "DIRECTORY/NODE.EPOCH" is a checkpoint of that node's variables. It takes the place of Caffe2's
 * CheckpointManager (one node) and MultiNodeCheckpointManager (any number, in order); a db type is
 * a MusterStorage, a blob a variable.
 *
 * Most verbs make a group of tasks, one for each node, which the caller runs
 * (muster_cluster_run ()): nothing is touched before. What is saved is fixed by the init group: the
 * names of the global variables that have a value then, or, resuming, those that the checkpoint
 * lists. Each node's checkpoint is published whole (saver/saver.h) and holds the list, as the
 * strings "blob_names/list", and a mark of its save, "blob_names/save". A checkpoint of all nodes
 * counts once its metadata is written; nodes' checkpoints of different saves aren't loaded together
 * (DATA_LOSS).
 *
 * One thread; the groups it makes must not run at the same time. */

#define MUSTER_TYPE_JOB_CHECKPOINT (muster_job_checkpoint_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobCheckpoint, muster_job_checkpoint, MUSTER, JOB_CHECKPOINT, GObject)

typedef struct {
  MusterStorage *storage;      /* NULL: local files, which each node's master must see */
  MusterJobMetadata *metadata; /* (nullable) */
  MusterClock *clock;          /* NULL: the machine's */
} MusterJobCheckpointOptions;

/* For many nodes. options may be NULL. */
MusterJobCheckpoint *muster_job_checkpoint_new (const char *directory,
                                                const MusterJobCheckpointOptions *options);
/* For one, whose files are called after name whatever the cluster calls it. */
MusterJobCheckpoint *muster_job_checkpoint_new_for_node (const char *directory, const char *name,
                                                         const MusterJobCheckpointOptions *options);

/* "NODE.EPOCH" below the directory, or right behind path_prefix (nullable) ("": none), (transfer
 * full). */
char *muster_job_checkpoint_path (const char *directory, const char *path_prefix, const char *node,
                                  gint64 epoch);
/* Where the checkpoint of node (nullable for one node's manager) of an epoch is saved (transfer
 * full), or NULL for a node that it doesn't know. */
char *muster_job_checkpoint_db_name (MusterJobCheckpoint *self, const char *node, gint64 epoch);

/* Where to load from, if not from where was saved. */
typedef struct {
  const char *prefix;     /* (nullable) "/p/run-" */
  MusterStorage *storage; /* (nullable) */
} MusterJobPath;

/* Tells the metadata where everything lies. What path (nullable) gives sticks: init, load, partial
 * loads and exists use it where their call gives none; saves never do. */
gboolean muster_job_checkpoint_set_params (MusterJobCheckpoint *self, const char *const *nodes,
                                           const MusterJobPath *path, GError **error);

/* Fixes which nodes, and when it is run, which of their variables. Once they are, with the same
 * nodes and epoch the group is empty; with another epoch the names are listed again. No nodes
 * (nullable) are INVALID_ARGUMENT, other nodes than before FAILED_PRECONDITION; one node's manager
 * takes NULL or one ("CheckpointManager only supports single node."). path (nullable) as above.
 * (transfer full), as the groups below. */
MusterJobGroup *muster_job_checkpoint_init_group (MusterJobCheckpoint *self,
                                                  const char *const *nodes, gint64 resume_epoch,
                                                  const MusterJobPath *path, GError **error);
/* What the checkpoint of node (nullable as above) holds (NULL-terminated; borrowed):
 * FAILED_PRECONDITION "init must be called first.", or, where that hasn't run, "Cannot fetch value
 * for this output.". */
const char *const *muster_job_checkpoint_names (MusterJobCheckpoint *self, const char *node,
                                                GError **error);

/* As names says of what isn't initialised; path (nullable) as above. */
MusterJobGroup *muster_job_checkpoint_save_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  GError **error);
MusterJobGroup *muster_job_checkpoint_load_group (MusterJobCheckpoint *self, gint64 epoch,
                                                  const MusterJobPath *path, GError **error);

/* A task that loads those of some variables that the checkpoint has; it needs no init. node
 * (nullable as above). *loaded (nullable out) is its output: their names. on (nullable): where it
 * runs; NULL: on the node itself. */
MusterJobTask *muster_job_checkpoint_partial_load_task (MusterJobCheckpoint *self, const char *node,
                                                        const char *const *names, gint64 epoch,
                                                        const char *on, MusterJobOutput **loaded,
                                                        GError **error);
/* A task whose only output is a bool: whether node (nullable as above) has a checkpoint of exactly
 * that epoch. */
MusterJobTask *muster_job_checkpoint_exists_task (MusterJobCheckpoint *self, const char *node,
                                                  gint64 epoch, MusterJobOutput **exists,
                                                  GError **error);

/* Loads some variables from each node's checkpoint, one node after the other; all of them into the
 * node on (nullable), or each into its own. *found is FALSE at the first that has no such
 * checkpoint: what was loaded before stays. *loaded (nullable out) is the names that were loaded
 * (transfer full), each once. */
gboolean muster_job_checkpoint_load_locally (MusterJobCheckpoint *self, const char *const *nodes,
                                             const char *const *names, gint64 epoch,
                                             MusterCluster *cluster, const char *on,
                                             gboolean *found, char ***loaded, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/* How long each node's latest save or load took (element-type MusterJobStat) (transfer full). */
GPtrArray *muster_job_checkpoint_stats (MusterJobCheckpoint *self);

/* The metadata's verbs, for all nodes at once. Without metadata: nothing is written or reported,
 * the user's epoch is the one, and everything is accessible. */
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
