// SPDX-License-Identifier: Apache-2.0
#include "ready/countdown_private.h"
#include "tests/gtest_shim.h"

#define START (1000 * MUSTER_SECOND)

/* Looks until it gives up; says how often, and when the last look began. */
static guint
count_polls (gint64 timeout_us, gint64 ceiling_us, gint64 cost_us, double chance,
             gint64 *last_poll_us)
{
  MusterCountdown countdown;
  gint64 now_us = START;
  muster_countdown_start (&countdown, now_us, now_us + timeout_us, ceiling_us);
  while ((now_us = muster_countdown_next_us (&countdown, now_us, chance))) {
    *last_poll_us = now_us - START;
    now_us += cost_us;
    muster_countdown_polled (&countdown, cost_us);
  }
  return countdown.polls;
}

MUSTER_TEST (Countdown, polls_at_once)
{
  MusterCountdown countdown;
  muster_countdown_start (&countdown, START, START + MUSTER_SECOND, MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START, 0.5), START);
}

MUSTER_TEST (Countdown, polls_even_when_there_is_no_time_to_wait)
{
  gint64 last_us = -1;
  MUSTER_EXPECT_EQ (count_polls (0, 30 * MUSTER_SECOND, 0, 0, &last_us), 1u);
  MUSTER_EXPECT_EQ (last_us, 0);
}

/* B002.46, as muster does it: the limit is used to its end. */
MUSTER_TEST (Countdown, polls_for_the_last_time_at_the_deadline)
{
  gint64 last_us = 0;
  guint looks = count_polls (7200 * MUSTER_SECOND, 30 * MUSTER_SECOND, 0, 0, &last_us);
  MUSTER_EXPECT_EQ (last_us, 7200 * MUSTER_SECOND);
  MUSTER_EXPECT_GT (looks, 241u); /* never rarer than every 30 s */
  MUSTER_EXPECT_LT (looks, 1500u);
}

MUSTER_TEST (Countdown, starts_the_last_poll_early_enough_to_end_by_the_deadline)
{
  gint64 last_us = 0;
  gint64 cost_us = 2 * MUSTER_SECOND;
  count_polls (100 * MUSTER_SECOND, 30 * MUSTER_SECOND, cost_us, 0.3, &last_us);

  MUSTER_EXPECT_LE (last_us + cost_us, 100 * MUSTER_SECOND);
  MUSTER_EXPECT_GE (last_us + 2 * cost_us, 100 * MUSTER_SECOND);
}

MUSTER_TEST (Countdown, gives_up_when_no_poll_can_end_in_time)
{
  MusterCountdown countdown;
  muster_countdown_start (&countdown, START, START + 10 * MUSTER_SECOND, MUSTER_SECOND);
  muster_countdown_polled (&countdown, 6 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START + 6 * MUSTER_SECOND, 0), 0);
}

/* DIFF.5 */
MUSTER_TEST (Countdown, never_pauses_longer_than_its_ceiling)
{
  MusterCountdown countdown;
  gint64 late = START + 36000 * MUSTER_SECOND;
  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 30 * MUSTER_SECOND);
  muster_countdown_polled (&countdown, 100 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, late, 0), late + 30 * MUSTER_SECOND);
}

/* A countdown that has looked n times at this cost, and has waited for no time yet. */
static MusterCountdown
countdown_after (guint n, gint64 cost_us)
{
  MusterCountdown countdown;
  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 300 * MUSTER_SECOND);
  for (guint i = 0; i < n; i++)
    muster_countdown_polled (&countdown, cost_us);
  return countdown;
}

static gint64
pause_of (const MusterCountdown *countdown, gint64 waited_us)
{
  return muster_countdown_next_us (countdown, START + waited_us, 0) - START - waited_us;
}

MUSTER_TEST (Countdown, spends_a_twentieth_of_its_time_on_looking)
{
  MusterCountdown countdown = countdown_after (6, 50 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (pause_of (&countdown, 0), MUSTER_SECOND);
}

/* The first looks of all who come together cost what they never cost again. */
MUSTER_TEST (Countdown, trusts_the_first_polls_less)
{
  for (guint n = 1; n <= 5; n++) {
    MusterCountdown countdown = countdown_after (n, 50 * MUSTER_MILLISECOND);

    MUSTER_EXPECT_EQ (pause_of (&countdown, 0), (1 << (n - 1)) * 50 * MUSTER_MILLISECOND);
  }
}

MUSTER_TEST (Countdown, polls_at_the_same_pace_after_one_poll_or_two_were_slow)
{
  MusterCountdown countdown = countdown_after (6, 5 * MUSTER_MILLISECOND);
  for (int i = 0; i < 2; i++) {
    muster_countdown_polled (&countdown, 2 * MUSTER_SECOND);
    MUSTER_EXPECT_EQ (pause_of (&countdown, 0), 100 * MUSTER_MILLISECOND);
  }
  muster_countdown_polled (&countdown, 2 * MUSTER_SECOND);

  MUSTER_EXPECT_GT (pause_of (&countdown, 0), 20 * MUSTER_SECOND);
}

MUSTER_TEST (Countdown, pauses_longer_when_others_make_looking_dearer)
{
  MusterCountdown countdown = countdown_after (6, 10 * MUSTER_MILLISECOND);
  for (int i = 0; i < 3; i++)
    muster_countdown_polled (&countdown, 15 * MUSTER_MILLISECOND);

  /* 20 * 15 ms for the look itself, and half of that more since it was once cheaper by a third */
  MUSTER_EXPECT_EQ (pause_of (&countdown, 0), 450 * MUSTER_MILLISECOND);
}

/* Sixty-four cheap looks a pause must leave the server its time, though none of them is
 * dear (DIFF.5). */
MUSTER_TEST (Countdown, polls_often_at_first_and_five_times_a_second_after_two_seconds)
{
  MusterCountdown countdown = countdown_after (6, 100);
  MUSTER_EXPECT_EQ (pause_of (&countdown, 0), 10 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (pause_of (&countdown, MUSTER_SECOND), 100 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (pause_of (&countdown, 2 * MUSTER_SECOND), 200 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (pause_of (&countdown, 20 * MUSTER_SECOND), 200 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (pause_of (&countdown, 60 * MUSTER_SECOND), 600 * MUSTER_MILLISECOND);
}

MUSTER_TEST (Countdown, shortens_pauses_by_chance)
{
  MusterCountdown countdown = countdown_after (6, 50 * MUSTER_MILLISECOND);
  gint64 lucky = muster_countdown_next_us (&countdown, START, 0.99);
  MUSTER_EXPECT_LT (lucky, START + MUSTER_SECOND);
  MUSTER_EXPECT_GT (lucky, START + MUSTER_SECOND / 2);
}
