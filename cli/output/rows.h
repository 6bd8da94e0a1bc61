// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/reasons.h"

G_BEGIN_DECLS

/* The lines in which a person reads a wait's reasons: one for each component that has something to
 * say. */

typedef struct {
  const char *component; /* static; NULL: the text alone */
  char *state;           /* (owned) (nullable) "restoring", "12 of 104" */
  char *text;            /* (owned) the rest; may be empty */
  gint64 since_us;       /* 0: not worth telling */
  gboolean is_well;
} MusterRow;

/* (transfer full) (element-type MusterRow). message stands in where there are no reasons. */
GPtrArray *muster_rows_new (const char *message, GPtrArray *reasons);

/* All of it in one line, without the times: what everything waits for, and how much is missing. */
char *muster_rows_summary (const char *message, GPtrArray *reasons);

/* A duration that is counted along: whole seconds, "12 s", "9m46s". (transfer full) */
char *muster_rows_seconds (gint64 duration_us);

/* The block: a line for each row below head, none wider than width columns, n_lines at most.
 * Coloured with ANSI codes if asked. */
char *muster_rows_draw (const char *head, GPtrArray *rows, gint64 now_us, guint width,
                        guint n_lines, gboolean coloured);

G_END_DECLS
