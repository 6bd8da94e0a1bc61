// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "checkpoint/store/storage.h"
#include "saver/directory/free_space.h"

G_BEGIN_DECLS

/* What is done where a directory has no room; all of it is its owner's. */
typedef struct {
  MusterStorage *storage; /* (not owned) */
  MusterClock *clock;     /* (not owned) */
  MusterWhenFull when_full;
  MusterSaverPaused paused; /* (nullable) */
  gpointer paused_data;
} MusterFreeSpace;

/* A save that looks for room. */
typedef struct {
  const char *directory;
  guint64 bytes; /* that it needs */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
  gint64 started_us;
  gint64 pause_us; /* the next one */
  char *why;       /* (owned) (nullable) the save is to be skipped, and why */
} MusterSpaceCheck;

/* FALSE with an error: there is none. TRUE: there is, unless it has a why. */
gboolean muster_free_space_find (const MusterFreeSpace *self, MusterSpaceCheck *space,
                                 GError **error);
/* TRUE if that is what failed, as far as can be told before its files are taken away. */
gboolean muster_free_space_was_full (const MusterFreeSpace *self, const MusterSpaceCheck *space,
                                     const GError *failure);
/* After such a failure (transfer full): as muster_free_space_find (), for another try. */
gboolean muster_free_space_after_full (const MusterFreeSpace *self, MusterSpaceCheck *space,
                                       GError *failure, GError **error);

G_END_DECLS
