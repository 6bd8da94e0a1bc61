// SPDX-License-Identifier: Apache-2.0
#include "server/core/histogram.h"

#define PER_DECADE  6
#define DECADE(ten) (ten), (ten) + (ten) / 2, 2 * (ten), 3 * (ten), 5 * (ten), 7 * (ten)

/* The first decade has whole microseconds only. */
static const gint64 bounds_us[MUSTER_N_BUCKETS - 1] = {
    1,
    2,
    3,
    4,
    5,
    7,
    DECADE (10),
    DECADE (100),
    DECADE (1000),
    DECADE (10000),
    DECADE (100000),
    DECADE (1000000),
    DECADE (10000000),
    100000000,
};

gint64
muster_histogram_bound_us (guint bucket)
{
  return bucket < MUSTER_N_BUCKETS - 1 ? bounds_us[bucket] : G_MAXINT64;
}

gboolean
muster_histogram_is_shown (guint bucket)
{
  gint64 digit = muster_histogram_bound_us (bucket);
  if (bucket == MUSTER_N_BUCKETS - 1)
    return FALSE;
  while (digit % 10 == 0)
    digit /= 10;
  return digit == 1 || digit == 2 || digit == 5;
}

static guint
bucket_of (gint64 duration_us)
{
  guint low = 0, high = MUSTER_N_BUCKETS - 1;
  while (low < high) {
    guint middle = (low + high) / 2;
    if (duration_us <= bounds_us[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

void
muster_histogram_add (MusterHistogram *self, gint64 duration_us)
{
  __atomic_fetch_add (&self->counts[bucket_of (duration_us)], 1, __ATOMIC_RELAXED);
  __atomic_fetch_add (&self->total_us, MAX (duration_us, 0), __ATOMIC_RELAXED);
}

void
muster_histogram_copy (MusterHistogram *self, MusterHistogram *copy)
{
  for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
    copy->counts[i] = __atomic_load_n (&self->counts[i], __ATOMIC_RELAXED);
  copy->total_us = __atomic_load_n (&self->total_us, __ATOMIC_RELAXED);
}

guint64
muster_histogram_sum (const guint64 *counts)
{
  guint64 sum = 0;
  for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
    sum += counts[i];
  return sum;
}

gint64
muster_histogram_quantile_us (const guint64 *counts, double quantile)
{
  double rank = quantile * (double)muster_histogram_sum (counts), before = 0;
  if (rank <= 0)
    return 0;
  for (guint i = 0; i < MUSTER_N_BUCKETS - 1; i++) {
    double low_us = i > 0 ? (double)bounds_us[i - 1] : 0;
    double n = (double)counts[i];
    if (before + n >= rank)
      return (gint64)(low_us + ((double)bounds_us[i] - low_us) * (rank - before) / n);
    before += n;
  }
  return bounds_us[MUSTER_N_BUCKETS - 2];
}
