// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

#include <stdio.h>

G_BEGIN_DECLS

/* MusterProgress is a progress bar on a terminal for work that takes longer than a second: amount,
 * rate and remaining time. It is redrawn in one line and removed when freed. One thread at a time.
 */

typedef struct _MusterProgress MusterProgress;

/* to is (nullable): NULL shows nothing, for a pipe or --json. It isn't closed. */
MusterProgress *muster_progress_new (FILE *to, gboolean coloured, MusterClock *clock);
void muster_progress_free (MusterProgress *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProgress, muster_progress_free)

/* Sets the current part: its description ("reading model.ckpt-5"), the bytes before it, and the
 * total. */
void muster_progress_part (MusterProgress *self, const char *what, guint64 before, guint64 all);

/* Sets the progress within the part; user_data is the MusterProgress. A MusterBundleProgress; total
 * is ignored. */
void muster_progress_at (guint64 done, guint64 total, gpointer user_data);

/* Removes the line, so that something else can be printed; it is drawn again later. */
void muster_progress_hide (MusterProgress *self);

/* The line. A rate of 0 is unknown. At most width columns. (transfer full) */
char *muster_progress_line (const char *what, guint64 done, guint64 all, double rate, guint width,
                            gboolean coloured);

G_END_DECLS
