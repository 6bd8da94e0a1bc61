// SPDX-License-Identifier: Apache-2.0
#include "ready/rate_limiter_private.h"

#include "tests/gtest_shim.h"

#define START MUSTER_SECOND

/* A hint, and a poll of that cost as soon as it is due; when the poll ends. */
static gint64
follow (MusterRateLimiter *limiter, gint64 now_us, gint64 cost_us)
{
  muster_rate_limiter_note_change (limiter, now_us);
  now_us = MAX (now_us, limiter->due_us);
  MUSTER_EXPECT_TRUE (muster_rate_limiter_begin_poll (limiter, now_us));
  muster_rate_limiter_end_poll (limiter, now_us + cost_us, cost_us);
  return now_us + cost_us;
}

MUSTER_TEST (RateLimiter, asks_for_a_poll_at_once)
{
  MusterRateLimiter limiter;
  muster_rate_limiter_init (&limiter);
  MUSTER_EXPECT_EQ (limiter.due_us, MUSTER_WAIT_FOREVER);

  muster_rate_limiter_note_change (&limiter, START);

  MUSTER_EXPECT_EQ (limiter.due_us, START);
}

MUSTER_TEST (RateLimiter, is_followed_at_once_a_few_times_in_a_row)
{
  MusterRateLimiter limiter;
  muster_rate_limiter_init (&limiter);
  gint64 now_us = START;
  for (int i = 0; i < 3; i++)
    now_us = follow (&limiter, now_us, MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (now_us, START + 3 * MUSTER_MILLISECOND);
}

static gint64
span_of (int n, gint64 cost_us)
{
  MusterRateLimiter limiter;
  muster_rate_limiter_init (&limiter);
  gint64 now_us = START;
  for (int i = 0; i < n; i++)
    now_us = follow (&limiter, now_us, cost_us);
  return now_us - START;
}

MUSTER_TEST (RateLimiter, takes_a_twentieth_of_the_time_in_the_long_run)
{
  MUSTER_EXPECT_GE (span_of (1000, 5 * MUSTER_MILLISECOND), 990 * 100 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_LE (span_of (1000, 5 * MUSTER_MILLISECOND), 1010 * 100 * MUSTER_MILLISECOND);
}

MUSTER_TEST (RateLimiter, of_a_cheap_poll_keeps_ten_milliseconds_between_them)
{
  MUSTER_EXPECT_GE (span_of (1000, 10), 990 * 10 * MUSTER_MILLISECOND);
}

MUSTER_TEST (RateLimiter, is_not_dropped_but_put_off)
{
  MusterRateLimiter limiter;
  muster_rate_limiter_init (&limiter);
  gint64 now_us = START;
  for (int i = 0; i < 10; i++)
    now_us = follow (&limiter, now_us, MUSTER_MILLISECOND);

  muster_rate_limiter_note_change (&limiter, now_us);
  MUSTER_EXPECT_GT (limiter.due_us, now_us);
  MUSTER_EXPECT_LE (limiter.due_us, now_us + 20 * MUSTER_MILLISECOND);
  gint64 due_us = limiter.due_us;
  muster_rate_limiter_note_change (&limiter, now_us + MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (limiter.due_us, due_us);
}

MUSTER_TEST (RateLimiter, is_met_by_a_poll_for_any_other_reason)
{
  MusterRateLimiter limiter;
  muster_rate_limiter_init (&limiter);
  gint64 now_us = START;
  for (int i = 0; i < 10; i++)
    now_us = follow (&limiter, now_us, MUSTER_MILLISECOND);
  muster_rate_limiter_note_change (&limiter, now_us);

  MUSTER_EXPECT_FALSE (muster_rate_limiter_begin_poll (&limiter, now_us));

  MUSTER_EXPECT_EQ (limiter.due_us, MUSTER_WAIT_FOREVER);
}
