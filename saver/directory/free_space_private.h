// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/store/storage.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/free_space.h"

G_BEGIN_DECLS

/* Handles directories without enough space. The owner provides everything. */
typedef struct {
  MusterStorage *storage; /* (not owned) */
  MusterClock *clock;     /* (not owned) */
  MusterWhenFull when_full;
  MusterSaverPaused paused; /* (nullable) */
  gpointer paused_data;
} MusterFreeSpace;

/* What a save needs beside the variables and the meta graph: its index, the state files, blocks. */
#define MUSTER_SAVER_BESIDE_BYTES ((guint64)64 * 1024)

/* A save's search for space. */
typedef struct {
  MusterCheckpointDirectory *home; /* (not owned) gives up what its rules don't keep, */
  MusterLease *lease;              /* (not owned) (nullable) under this lease, */
  const MusterNewCheckpoint *made; /* (not owned) for this checkpoint */
  const char *directory;
  const char *restored; /* (nullable) the name of the one that the run was restored from */
  guint64 bytes;        /* space needed */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  gint64 started_us;
  gint64 pause_us; /* the next pause */
  char *why;       /* (owned) (nullable) why the save is skipped, if it is */
} MusterSpaceCheck;

/* The free bytes in a directory; G_MAXUINT64 if unknown. */
guint64 muster_free_space_look (MusterStorage *storage, const char *directory);

/* make_room.c: removes what the rules give up with the checkpoint that is made, until so many bytes
 * are free. TRUE if something was removed. */
gboolean muster_checkpoint_directory_make_room (MusterCheckpointDirectory *self,
                                                const MusterSpaceCheck *space, guint64 bytes);

/* FALSE with an error if there isn't enough space. TRUE if there is, or if the save is to be
 * skipped (why is set). */
gboolean muster_free_space_find (const MusterFreeSpace *self, MusterSpaceCheck *space,
                                 GError **error);
/* TRUE if failure was caused by lack of space, as far as can be determined before the files are
 * removed. */
gboolean muster_free_space_was_full (const MusterFreeSpace *self, const MusterSpaceCheck *space,
                                     const GError *failure);
/* Handles such a failure (transfer full): like muster_free_space_find (), for another attempt. */
gboolean muster_free_space_after_full (const MusterFreeSpace *self, MusterSpaceCheck *space,
                                       GError *failure, GError **error);

G_END_DECLS
