// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterDurations:
 * @count: how many there were
 * @sum_us: their sum in microseconds; this and the others are 0 if @count is 0
 * @min_us: the shortest
 * @max_us: the longest
 *
 * Some durations, in microseconds of the monotonic clock.
 */
typedef struct {
  guint64 count;
  gint64 sum_us, min_us, max_us;
} MusterDurations;

/**
 * MusterSaveMetrics:
 * @save_blocked_us: time that callers of save and write were blocked; failed calls aren't counted
 * @async_write_us: the duration of each background write, failed or not
 * @progress_saved_us: the sum of the times from the start of one durable checkpoint to the start of
 *   the next, in microseconds; the first counts from the creation of the first saver
 * @n_durable: saves that became durable in the background, or synchronously if the model exceeds
 * the budget
 * @n_failed: saves that failed, in the same way
 *
 * Durations and counts of background saves. Each [class@AsyncSaver] has its own; there is one for
 * the process too. TensorFlow's async checkpoint metrics (B001.1 to B001.8).
 */
typedef struct {
  MusterDurations save_blocked_us;
  MusterDurations async_write_us;
  gint64 progress_saved_us;
  guint64 n_durable, n_failed;
} MusterSaveMetrics;

#define MUSTER_TYPE_SAVE_METRICS (muster_save_metrics_get_type ())
GType muster_save_metrics_get_type (void);

/**
 * muster_save_metrics_process: (skip)
 *
 * The metrics of the process. In other languages [ctor@SaveMetrics.new_process].
 *
 * Returns: the metrics
 */
MusterSaveMetrics muster_save_metrics_process (void);

/**
 * muster_save_metrics_new_process: (constructor)
 *
 * The metrics of the process.
 *
 * Returns: (transfer full): the metrics
 */
MusterSaveMetrics *muster_save_metrics_new_process (void);

/**
 * muster_save_metrics_text:
 * @self: metrics
 *
 * The metrics in Prometheus' text format, labelled `api="async_checkpoint"` like TensorFlow's.
 *
 * Returns: (transfer full): the text
 */
char *muster_save_metrics_text (const MusterSaveMetrics *self);

G_END_DECLS
