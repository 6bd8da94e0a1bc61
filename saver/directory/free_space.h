// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What to do if there isn't enough space for a checkpoint. Existing checkpoints are kept in any
 * case. */
typedef enum {
  MUSTER_WHEN_FULL_FAIL,  /* RESOURCE_EXHAUSTED, with the space needed, the free space and the
                             directory */
  MUSTER_WHEN_FULL_SKIP,  /* no checkpoint this time (MusterSaved.skipped) */
  MUSTER_WHEN_FULL_PAUSE, /* wait for space, until the deadline */
} MusterWhenFull;

/* Called while a save waits for space. why gives the space needed, the free space and the time
 * waited. */
typedef void (*MusterSaverPaused) (const char *why, gpointer user_data);

G_END_DECLS
