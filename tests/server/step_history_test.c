// SPDX-License-Identifier: Apache-2.0
#include "server/core/histogram.h"
#include "server/core/step_history.h"
#include "tests/gtest_shim.h"

/* A multiple of the period. */
#define START (1000 * MUSTER_STEP_PERIOD_US)
#define LAST  (MUSTER_STEP_PERIODS - 1)

MUSTER_TEST (Histogram, has_bounds_that_rise_to_a_hundred_seconds)
{
  guint n_shown = 0;
  for (guint i = 0; i + 2 < MUSTER_N_BUCKETS; i++)
    MUSTER_EXPECT_TRUE (muster_histogram_bound_us (i) < muster_histogram_bound_us (i + 1));
  for (guint i = 0; i < MUSTER_N_BUCKETS; i++)
    n_shown += muster_histogram_is_shown (i);
  MUSTER_EXPECT_EQ (muster_histogram_bound_us (MUSTER_N_BUCKETS - 2), 100 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_histogram_bound_us (MUSTER_N_BUCKETS - 1), G_MAXINT64);
  MUSTER_EXPECT_EQ (n_shown, 25u); /* 1, 2 and 5, of eight powers of ten, and 100 s */
}

MUSTER_TEST (Histogram, counts_each_duration_in_one_bucket)
{
  static const gint64 durations_us[] = {-1, 0, 1, 2, 10, 11, 999, 100000000, 100000001, G_MAXINT64};
  for (guint i = 0; i < G_N_ELEMENTS (durations_us); i++) {
    MusterHistogram histogram = {0};
    muster_histogram_add (&histogram, durations_us[i]);
    MUSTER_EXPECT_EQ (muster_histogram_sum (histogram.counts), (guint64)1);
    for (guint b = 0; b < MUSTER_N_BUCKETS; b++)
      if (histogram.counts[b] > 0) {
        MUSTER_EXPECT_TRUE (durations_us[i] <= muster_histogram_bound_us (b));
        MUSTER_EXPECT_TRUE (b == 0 || durations_us[i] > muster_histogram_bound_us (b - 1));
      }
  }
}

MUSTER_TEST (Histogram, has_quantiles_within_a_bucket)
{
  MusterHistogram histogram = {0};
  MUSTER_EXPECT_EQ (muster_histogram_quantile_us (histogram.counts, 0.5), (gint64)0);
  for (int i = 1; i <= 1000; i++)
    muster_histogram_add (&histogram, i * 1000);

  MUSTER_EXPECT_NEAR ((double)muster_histogram_quantile_us (histogram.counts, 0.5), 500e3, 5e3);
  MUSTER_EXPECT_NEAR ((double)muster_histogram_quantile_us (histogram.counts, 0.99), 990e3, 10e3);
  MUSTER_EXPECT_EQ (muster_histogram_quantile_us (histogram.counts, 1), MUSTER_SECOND);
}

MUSTER_TEST (StepHistory, counts_the_steps_of_each_period)
{
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  g_autoptr (MusterStepHistory) history = muster_step_history_new ();
  for (int i = 0; i < 60; i++) /* one a second, for two periods; then none for a period */
    muster_step_history_add (history, START + i * MUSTER_SECOND, 1000);
  for (int i = 0; i < 7; i++)
    muster_step_history_add (history, START + 3 * MUSTER_STEP_PERIOD_US + i, 20000);

  muster_step_history_read (history, START + 4 * MUSTER_STEP_PERIOD_US, periods);

  const guint64 wanted[] = {0, 30, 30, 0, 7, 0};
  for (guint i = 0; i < G_N_ELEMENTS (wanted); i++)
    MUSTER_EXPECT_EQ (periods[LAST - 5 + i].n_steps, wanted[i]);
  MUSTER_EXPECT_NEAR ((double)periods[LAST - 3].median_us, 1000, 300);
  MUSTER_EXPECT_NEAR ((double)periods[LAST - 1].p99_us, 20000, 5000);
  MUSTER_EXPECT_EQ (periods[LAST].median_us, (gint64)0);
}

MUSTER_TEST (StepHistory, forgets_what_is_older_than_an_hour)
{
  MusterStepPeriod periods[MUSTER_STEP_PERIODS];
  g_autoptr (MusterStepHistory) history = muster_step_history_new ();
  guint64 n = 0;
  for (int i = 0; i < 3 * MUSTER_STEP_PERIODS; i++)
    for (int k = 0; k <= i % 3; k++)
      muster_step_history_add (history, START + i * MUSTER_STEP_PERIOD_US, 5);

  gint64 end_us = START + (3 * MUSTER_STEP_PERIODS - 1) * MUSTER_STEP_PERIOD_US;
  muster_step_history_read (history, end_us, periods);
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++) {
    MUSTER_EXPECT_EQ (periods[i].n_steps, (guint64)(i % 3 + 1));
    n += periods[i].n_steps;
  }
  MUSTER_EXPECT_EQ (n, (guint64)(2 * MUSTER_STEP_PERIODS));
  muster_step_history_read (history, end_us + 3600 * MUSTER_SECOND, periods);
  for (guint i = 0; i < MUSTER_STEP_PERIODS; i++)
    MUSTER_EXPECT_EQ (periods[i].n_steps, (guint64)0);
}
