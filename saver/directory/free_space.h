// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * MusterWhenFull:
 * @MUSTER_WHEN_FULL_FAIL: the save fails with `RESOURCE_EXHAUSTED`, which gives the space needed,
 *   the free space and the directory
 * @MUSTER_WHEN_FULL_SKIP: no checkpoint this time ([struct@Saved])
 * @MUSTER_WHEN_FULL_PAUSE: wait for space, until the deadline
 *
 * What to do if there isn't enough space for a checkpoint, also without those that the rules give
 * up with it. Those that the rules keep stay in any case.
 */
typedef enum {
  MUSTER_WHEN_FULL_FAIL,
  MUSTER_WHEN_FULL_SKIP,
  MUSTER_WHEN_FULL_PAUSE,
} MusterWhenFull;

/**
 * MusterSaverPaused:
 * @why: the space needed, the free space and the time waited
 * @user_data: the caller's
 *
 * Called while a save waits for space, on the thread that saves.
 */
typedef void (*MusterSaverPaused) (const char *why, gpointer user_data);

G_END_DECLS
