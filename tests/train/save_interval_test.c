// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "train/goodput/save_interval_private.h"

#include <math.h>

#define HOUR_US (3600 * MUSTER_SECOND)

/* The share of the time that is lost to saves and to what is trained again: on average half an
 * interval, and a save, for each failure. */
static double
lost (gint64 interval_us, const MusterSaveCost *cost)
{
  const double interval = (double)interval_us, blocked = (double)cost->blocked_us;
  return blocked / (interval + blocked) + (interval / 2 + blocked) / (double)cost->mtbf_us;
}

MUSTER_TEST (SaveInterval, loses_the_least)
{
  const gint64 costs_us[] = {20 * MUSTER_MILLISECOND, MUSTER_SECOND, 30 * MUSTER_SECOND};
  for (guint i = 0; i < G_N_ELEMENTS (costs_us); i++) {
    const MusterSaveCost cost = {.blocked_us = costs_us[i], .mtbf_us = 4 * HOUR_US, .share = 0.5};
    const gint64 interval_us = muster_save_interval_us (&cost);
    MUSTER_TRACE ("a save of %g s, every %g s", (double)costs_us[i] / 1e6,
                  (double)interval_us / 1e6);

    MUSTER_EXPECT_NEAR ((double)interval_us / sqrt (2.0 * (double)costs_us[i] * 4.0 * HOUR_US), 1,
                        0.1);
    MUSTER_EXPECT_TRUE (lost (interval_us, &cost) <= lost (interval_us / 2, &cost));
    MUSTER_EXPECT_TRUE (lost (interval_us, &cost) <= lost (interval_us * 2, &cost));
  }
}

MUSTER_TEST (SaveInterval, has_limits)
{
  static const struct {
    MusterSaveCost cost;
    gint64 interval_us;
  } cases[] = {
      /* a save that costs nothing */
      {{.mtbf_us = HOUR_US, .share = 0.01}, MUSTER_SECOND},
      /* 1 % of the time: 100 s for a second, where one may fail each minute */
      {{.blocked_us = MUSTER_SECOND, .mtbf_us = 60 * MUSTER_SECOND, .share = 0.01},
       99 * MUSTER_SECOND},
      /* it is written for half of the time */
      {{.blocked_us = 1,
        .took_us = 40 * MUSTER_SECOND,
        .mtbf_us = 60 * MUSTER_SECOND,
        .share = 0.01},
       80 * MUSTER_SECOND},
      /* Daly: a save that takes longer than the time between two failures */
      {{.blocked_us = 200 * MUSTER_SECOND, .mtbf_us = 60 * MUSTER_SECOND, .share = 0.9},
       60 * MUSTER_SECOND},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    MUSTER_TRACE ("case %u", i);
    MUSTER_EXPECT_NEAR ((double)muster_save_interval_us (&cases[i].cost),
                        (double)cases[i].interval_us, 1000);
  }
}

MUSTER_TEST (SaveInterval, takes_the_failures_that_were_seen)
{
  MusterGoodput goodput = {.spent_us = {[MUSTER_TIME_TRAINING] = 10 * HOUR_US}};
  MUSTER_EXPECT_EQ (muster_goodput_mtbf_us (&goodput), 10 * HOUR_US);
  goodput.n_failures = 5;
  MUSTER_EXPECT_EQ (muster_goodput_mtbf_us (&goodput), 2 * HOUR_US);
  goodput.spent_us[MUSTER_TIME_DOWN] = 60 * HOUR_US; /* over a weekend, nothing failed */
  MUSTER_EXPECT_EQ (muster_goodput_mtbf_us (&goodput), 2 * HOUR_US);
  goodput = (MusterGoodput)MUSTER_GOODPUT_INIT;
  MUSTER_EXPECT_EQ (muster_goodput_mtbf_us (&goodput), HOUR_US);
  goodput.n_failures = 3;
  MUSTER_EXPECT_EQ (muster_goodput_mtbf_us (&goodput), 1);
}
