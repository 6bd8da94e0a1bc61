// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore.h"

G_BEGIN_DECLS

/* Consecutive runs that died after restoring a checkpoint, until it is quarantined. */
#define MUSTER_CRASH_LOOP_LIMIT 3

/* Records in the directory's side file that a run started from a checkpoint. A record that this
 * saver didn't write means that the previous run died: the count of its checkpoint is increased.
 * *deaths is prefix's count; from MUSTER_CRASH_LOOP_LIMIT on, no run is recorded. */
gboolean muster_crash_loop_begin (MusterSaver *self, const char *directory, const char *prefix,
                                  guint *deaths, gint64 deadline_us, GCancellable *cancellable,
                                  GError **error);

G_END_DECLS
