// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Where there is no room for a checkpoint. What is there is kept in any case. */
typedef enum {
  MUSTER_WHEN_FULL_FAIL,  /* RESOURCE_EXHAUSTED: what it needs, what is free, where */
  MUSTER_WHEN_FULL_SKIP,  /* no checkpoint this time (MusterSaved.skipped) */
  MUSTER_WHEN_FULL_PAUSE, /* waits for room, until the deadline */
} MusterWhenFull;

/* A save waits for room: how much it needs, how much there is, for how long it has waited. */
typedef void (*MusterSaverPaused) (const char *why, gpointer user_data);

G_END_DECLS
