// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* Counts durations in buckets from a microsecond to 100 s, six for each power of ten, with relaxed
 * atomic operations. A plain struct; zeros: empty. Any thread. */

#define MUSTER_N_BUCKETS 50 /* the last has no upper bound */

typedef struct {
  guint64 counts[MUSTER_N_BUCKETS]; /* atomic */
  gint64 total_us;                  /* atomic */
} MusterHistogram;

void muster_histogram_add (MusterHistogram *self, gint64 duration_us);
void muster_histogram_copy (MusterHistogram *self, MusterHistogram *copy);

/* The upper bound of a bucket in microseconds; G_MAXINT64 of the last. A duration equal to the
 * bound is in the bucket. */
gint64 muster_histogram_bound_us (guint bucket);

/* TRUE for the bounds 1, 2 and 5 of each power of ten, which are enough for metrics. */
gboolean muster_histogram_is_shown (guint bucket);

/* The number of durations in counts, and their quantile (0 to 1), interpolated in its bucket; 0 if
 * there is none. */
guint64 muster_histogram_sum (const guint64 *counts);
gint64 muster_histogram_quantile_us (const guint64 *counts, double quantile);

G_END_DECLS
