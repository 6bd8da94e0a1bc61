// SPDX-License-Identifier: Apache-2.0
#include "ready/countdown.h"
#include "tests/gtest_shim.h"

#define START (1000 * MUSTER_SECOND)

/* Looks until it gives up; says how often, and when the last look began. */
static guint
count_looks (gint64 timeout_us, gint64 ceiling_us, gint64 cost_us, double chance,
             gint64 *last_look_us)
{
  MusterCountdown countdown;
  gint64 now_us = START;

  muster_countdown_start (&countdown, now_us, now_us + timeout_us, ceiling_us);
  while ((now_us = muster_countdown_next_us (&countdown, now_us, chance))) {
    *last_look_us = now_us - START;
    now_us += cost_us;
    muster_countdown_looked (&countdown, cost_us);
  }

  return countdown.looks;
}

MUSTER_TEST (Countdown, looks_at_once)
{
  MusterCountdown countdown;

  muster_countdown_start (&countdown, START, START + MUSTER_SECOND, MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START, 0.5), START);
}

MUSTER_TEST (Countdown, looks_even_when_there_is_no_time_to_wait)
{
  gint64 last_us = -1;

  MUSTER_EXPECT_EQ (count_looks (0, 30 * MUSTER_SECOND, 0, 0, &last_us), 1u);
  MUSTER_EXPECT_EQ (last_us, 0);
}

/* B002.46, as muster does it: the limit is used to its end. */
MUSTER_TEST (Countdown, looks_for_the_last_time_at_the_deadline)
{
  gint64 last_us = 0;

  guint looks = count_looks (7200 * MUSTER_SECOND, 30 * MUSTER_SECOND, 0, 0, &last_us);

  MUSTER_EXPECT_EQ (last_us, 7200 * MUSTER_SECOND);
  MUSTER_EXPECT_GT (looks, 241u); /* never rarer than every 30 s */
  MUSTER_EXPECT_LT (looks, 1500u);
}

MUSTER_TEST (Countdown, starts_the_last_look_early_enough_to_end_by_the_deadline)
{
  gint64 last_us = 0;
  gint64 cost_us = 2 * MUSTER_SECOND;

  count_looks (100 * MUSTER_SECOND, 30 * MUSTER_SECOND, cost_us, 0.3, &last_us);

  MUSTER_EXPECT_LE (last_us + cost_us, 100 * MUSTER_SECOND);
  MUSTER_EXPECT_GE (last_us + 2 * cost_us, 100 * MUSTER_SECOND);
}

MUSTER_TEST (Countdown, gives_up_when_no_look_can_end_in_time)
{
  MusterCountdown countdown;

  muster_countdown_start (&countdown, START, START + 10 * MUSTER_SECOND, MUSTER_SECOND);
  muster_countdown_looked (&countdown, 6 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START + 6 * MUSTER_SECOND, 0), 0);
}

MUSTER_TEST (Countdown, never_pauses_longer_than_its_ceiling)
{
  MusterCountdown countdown;
  gint64 late = START + 36000 * MUSTER_SECOND;

  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 30 * MUSTER_SECOND);
  muster_countdown_looked (&countdown, 100 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, late, 0), late + 30 * MUSTER_SECOND);
}

MUSTER_TEST (Countdown, spends_a_twentieth_of_its_time_on_looking)
{
  MusterCountdown countdown;

  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 30 * MUSTER_SECOND);
  muster_countdown_looked (&countdown, 50 * MUSTER_MILLISECOND);

  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START, 0), START + MUSTER_SECOND);
}

MUSTER_TEST (Countdown, pauses_longer_when_others_make_looking_dearer)
{
  MusterCountdown countdown;

  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 300 * MUSTER_SECOND);
  muster_countdown_looked (&countdown, 10 * MUSTER_MILLISECOND);
  muster_countdown_looked (&countdown, 40 * MUSTER_MILLISECOND);

  /* 20 * 40 ms for the look itself, four times that since it was once four times cheaper */
  MUSTER_EXPECT_EQ (muster_countdown_next_us (&countdown, START, 0),
                    START + 3200 * MUSTER_MILLISECOND);
}

MUSTER_TEST (Countdown, shortens_pauses_by_chance)
{
  MusterCountdown countdown;

  muster_countdown_start (&countdown, START, MUSTER_WAIT_FOREVER, 30 * MUSTER_SECOND);
  muster_countdown_looked (&countdown, 50 * MUSTER_MILLISECOND);
  gint64 lucky = muster_countdown_next_us (&countdown, START, 0.99);

  MUSTER_EXPECT_LT (lucky, START + MUSTER_SECOND);
  MUSTER_EXPECT_GT (lucky, START + MUSTER_SECOND / 2);
}
