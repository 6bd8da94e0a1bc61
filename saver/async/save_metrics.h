// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Durations and counts of background saves, in microseconds of the monotonic clock. Each
 * MusterAsyncSaver has its own; there is one for the process too. Plain values. */

typedef struct {
  guint64 count;
  gint64 sum_us, min_us, max_us; /* all 0 if count is 0 */
} MusterDurations;

typedef struct {
  MusterDurations save_blocked_us; /* time that callers of save and write were blocked; failed calls
                                      aren't counted */
  MusterDurations async_write_us;  /* duration of each background write, failed or not */
  gint64
      progress_saved_us; /* sum of the times from the start of one durable checkpoint to the start
                            of the next; the first counts from the creation of the first saver */
  guint64 n_durable,
      n_failed; /* in the background, or synchronously if the model exceeds the budget */
} MusterSaveMetrics;

/* The metrics of the process. */
MusterSaveMetrics muster_save_metrics_process (void);

/* In Prometheus' text format, labelled api="async_checkpoint" like TensorFlow's. */
char *muster_save_metrics_text (const MusterSaveMetrics *self);

G_END_DECLS
