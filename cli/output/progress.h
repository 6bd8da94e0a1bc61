// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

#include <stdio.h>

G_BEGIN_DECLS

/* MusterProgress is a bar on a terminal for what takes longer than a second: how far it is, how
 * fast, how long it will still take. Drawn over itself in one line, and gone when it is freed. One
 * thread at a time. */

typedef struct _MusterProgress MusterProgress;

/* to is (nullable): NULL shows nothing, as for a pipe or --json; it isn't closed. */
MusterProgress *muster_progress_new (FILE *to, gboolean coloured, MusterClock *clock);
void muster_progress_free (MusterProgress *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProgress, muster_progress_free)

/* What is done now ("reading model.ckpt-5"), and which part of the whole: the bytes before it, and
 * those of all. */
void muster_progress_part (MusterProgress *self, const char *what, guint64 before, guint64 all);

/* How far the part has come; user_data is the MusterProgress. A MusterBundleProgress; the part's
 * own total doesn't matter here. */
void muster_progress_at (guint64 done, guint64 total, gpointer user_data);

/* Takes the line away, so that something else can be printed; it comes again. */
void muster_progress_hide (MusterProgress *self);

/* The line: bytes per second may be 0 (unknown yet). No wider than width columns. (transfer full)
 */
char *muster_progress_line (const char *what, guint64 done, guint64 all, double rate, guint width,
                            gboolean coloured);

G_END_DECLS
