// SPDX-License-Identifier: Apache-2.0
#include "ready/rate_limiter.h"

#include "tests/gtest_shim.h"

#define START MUSTER_SECOND

/* A hunch, and a look of that cost as soon as it is due; when the look ends. */
static gint64
follow (MusterHunch *hunch, gint64 now_us, gint64 cost_us)
{
  muster_hunch_note (hunch, now_us);
  now_us = MAX (now_us, hunch->due_us);
  MUSTER_EXPECT_TRUE (muster_hunch_take (hunch, now_us));
  muster_hunch_looked (hunch, now_us + cost_us, cost_us);
  return now_us + cost_us;
}

MUSTER_TEST (Hunch, asks_for_a_look_at_once)
{
  MusterHunch hunch;
  muster_hunch_init (&hunch);
  MUSTER_EXPECT_EQ (hunch.due_us, MUSTER_WAIT_FOREVER);

  muster_hunch_note (&hunch, START);

  MUSTER_EXPECT_EQ (hunch.due_us, START);
}

MUSTER_TEST (Hunch, is_followed_at_once_a_few_times_in_a_row)
{
  MusterHunch hunch;
  muster_hunch_init (&hunch);
  gint64 now_us = START;
  for (int i = 0; i < 3; i++)
    now_us = follow (&hunch, now_us, MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (now_us, START + 3 * MUSTER_MILLISECOND);
}

static gint64
span_of (int n, gint64 cost_us)
{
  MusterHunch hunch;
  muster_hunch_init (&hunch);
  gint64 now_us = START;
  for (int i = 0; i < n; i++)
    now_us = follow (&hunch, now_us, cost_us);
  return now_us - START;
}

MUSTER_TEST (Hunch, takes_a_twentieth_of_the_time_in_the_long_run)
{
  MUSTER_EXPECT_GE (span_of (1000, 5 * MUSTER_MILLISECOND), 990 * 100 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_LE (span_of (1000, 5 * MUSTER_MILLISECOND), 1010 * 100 * MUSTER_MILLISECOND);
}

MUSTER_TEST (Hunch, of_a_cheap_look_keeps_ten_milliseconds_between_them)
{
  MUSTER_EXPECT_GE (span_of (1000, 10), 990 * 10 * MUSTER_MILLISECOND);
}

MUSTER_TEST (Hunch, is_not_dropped_but_put_off)
{
  MusterHunch hunch;
  muster_hunch_init (&hunch);
  gint64 now_us = START;
  for (int i = 0; i < 10; i++)
    now_us = follow (&hunch, now_us, MUSTER_MILLISECOND);

  muster_hunch_note (&hunch, now_us);
  MUSTER_EXPECT_GT (hunch.due_us, now_us);
  MUSTER_EXPECT_LE (hunch.due_us, now_us + 20 * MUSTER_MILLISECOND);
  gint64 due_us = hunch.due_us;
  muster_hunch_note (&hunch, now_us + MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (hunch.due_us, due_us);
}

MUSTER_TEST (Hunch, is_met_by_a_look_for_any_other_reason)
{
  MusterHunch hunch;
  muster_hunch_init (&hunch);
  gint64 now_us = START;
  for (int i = 0; i < 10; i++)
    now_us = follow (&hunch, now_us, MUSTER_MILLISECOND);
  muster_hunch_note (&hunch, now_us);

  MUSTER_EXPECT_FALSE (muster_hunch_take (&hunch, now_us));

  MUSTER_EXPECT_EQ (hunch.due_us, MUSTER_WAIT_FOREVER);
}
