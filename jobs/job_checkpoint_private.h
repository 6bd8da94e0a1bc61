// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

struct _MusterJobCheckpoint {
  GObject parent;
  char *directory;             /* (owned) */
  char *own_name;              /* (owned) (nullable) for a single node */
  MusterStorage *storage;      /* (owned) */
  MusterJobMetadata *metadata; /* (owned) (nullable) */
  MusterClock *clock;          /* (owned) */
  GPtrArray *entries;          /* (owned) (nullable) (element-type MusterJobEntry) once set */
  gboolean is_inited;          /* an init group was created for them */
  char *path_prefix;           /* (owned) (nullable) the default for loads */
  MusterStorage *path_storage; /* (owned) (nullable) the default for loads */
};

/* Creates the entries of these nodes (nullable for a single node), or checks that they are the
 * same. */
gboolean muster_job_checkpoint_know_nodes (MusterJobCheckpoint *self, const char *const *nodes,
                                           GError **error);

/* As muster_job_checkpoint_save_group (), but its tasks end when the nodes' variables may change
 * again. */
MusterJobGroup *muster_job_checkpoint_stage_group (MusterJobCheckpoint *self, gint64 epoch,
                                                   GError **error);
/* Then, on any thread: waits until each node's checkpoint is durable, also if the group failed.
 * Returns the first failure, with the node's name. */
gboolean muster_job_checkpoint_finish (MusterJobCheckpoint *self, gint64 deadline_us,
                                       GCancellable *cancellable, GError **error);

/* The newest earlier epoch for which all nodes have a saved checkpoint, or MUSTER_NO_EPOCH. */
gboolean muster_job_checkpoint_epoch_before (MusterJobCheckpoint *self, gint64 epoch,
                                             gint64 *before, gint64 deadline_us,
                                             GCancellable *cancellable, GError **error);

/* TRUE if the directory for saves doesn't exist, so that no save can succeed. */
gboolean muster_job_checkpoint_lacks_directory (MusterJobCheckpoint *self, gint64 deadline_us,
                                                GCancellable *cancellable);

G_END_DECLS
