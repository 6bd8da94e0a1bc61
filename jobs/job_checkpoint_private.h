// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_checkpoint.h"

G_BEGIN_DECLS

struct _MusterJobCheckpoint {
  GObject parent;
  char *directory;             /* (owned) */
  char *own_name;              /* (owned) (nullable) of a single node */
  MusterStorage *storage;      /* (owned) */
  MusterJobMetadata *metadata; /* (owned) (nullable) */
  MusterClock *clock;          /* (owned) */
  GPtrArray *entries;          /* (owned) (nullable) (element-type MusterJobEntry) once known */
  gboolean is_inited;          /* an init group was made for them */
  char *path_prefix;           /* (owned) (nullable) stuck */
  MusterStorage *path_storage; /* (owned) (nullable) stuck */
};

/* Makes the entries of these nodes (nullable, for one node's), or checks that they are the same. */
gboolean muster_job_checkpoint_know_nodes (MusterJobCheckpoint *self, const char *const *nodes,
                                           GError **error);

/* The newest epoch before that one of which all nodes have a checkpoint where it saves, or
 * MUSTER_NO_EPOCH. */
gint64 muster_job_checkpoint_epoch_before (MusterJobCheckpoint *self, gint64 epoch);

/* TRUE where the directory that it saves in isn't there, so that no save can succeed. */
gboolean muster_job_checkpoint_lacks_directory (MusterJobCheckpoint *self);

G_END_DECLS
