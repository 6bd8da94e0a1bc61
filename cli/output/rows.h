// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/reasons.h"

G_BEGIN_DECLS

/* Formats the reasons of a wait as lines: one for each component that has something to report. */

/* The rows for muster_rows_draw () (transfer full). message is used if there are no reasons. */
GPtrArray *muster_rows_new (const char *message, GPtrArray *reasons);

/* All of it in one line, without times: the first cause, and how much is missing. */
char *muster_rows_summary (const char *message, GPtrArray *reasons);

/* A running duration in whole seconds: "12 s", "9m46s". (transfer full) */
char *muster_rows_seconds (gint64 duration_us);

/* The block: head and the rows, whose texts go on below themselves, at most width columns and
 * n_lines lines, optionally with ANSI colours. */
char *muster_rows_draw (const char *head, GPtrArray *rows, gint64 now_us, guint width,
                        guint n_lines, gboolean coloured);

G_END_DECLS
