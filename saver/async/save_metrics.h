// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What saving in the background costs and gains, in microseconds of the monotonic clock: kept by
 * each MusterAsyncSaver, and once for the process. Plain values. */

typedef struct {
  guint64 count;
  gint64 sum_us, min_us, max_us; /* all 0 while count is */
} MusterDurations;

typedef struct {
  MusterDurations save_blocked_us; /* how long callers of save and write were held; calls that
                                      failed aren't counted */
  MusterDurations async_write_us;  /* how long each write in the background took, failed or not */
  gint64 progress_saved_us; /* from the start of one checkpoint that became durable to the start of
                               the next; the first counts from the first saver's making */
  guint64 n_durable, n_failed; /* in the background or, a model over the budget, at once */
} MusterSaveMetrics;

/* The process's. */
MusterSaveMetrics muster_save_metrics_process (void);

/* As Prometheus reads it, a line for each value, labelled api="async_checkpoint" as TensorFlow's.
 */
char *muster_save_metrics_text (const MusterSaveMetrics *self);

G_END_DECLS
