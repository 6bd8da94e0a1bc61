// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/edit/edit_work_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"

G_BEGIN_DECLS

/* What a directory knows of its checkpoints, while a copy is added to it. Under the directory's
 * lock. */
typedef struct {
  MusterStorage *storage; /* (not owned) */
  const char *directory;  /* (not owned) */
  const char *prefix;     /* (not owned) of the copy */
  MusterCopyLatest latest;
  const MusterSideCheckpoint *original; /* (nullable) what the original's directory says of it */
  double time;                          /* when it was saved, if that doesn't say */
  gboolean was_there;                   /* what the directory says of it stays */
  char *state_version;                  /* (owned) (nullable) of the state file, if there is none */
  MusterCheckpointState *state;         /* (owned) (nullable) */
  MusterCheckpointRecord *record;       /* (owned) */
  gboolean becomes_latest;
} MusterCopyEntry;

/* Reads both files: a directory that can't be read gets no copy. */
gboolean muster_copy_entry_read (MusterCopyEntry *self, GError **error);
/* Writes both, after the copy has been published. */
gboolean muster_copy_entry_write (MusterCopyEntry *self, gboolean has_meta_graph, GError **error);
void muster_copy_entry_clear (MusterCopyEntry *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCopyEntry, muster_copy_entry_clear)

G_END_DECLS
