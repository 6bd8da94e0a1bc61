// SPDX-License-Identifier: Apache-2.0
#include "ready/poll_plan_private.h"

#include "tests/gtest_shim.h"

#define START MUSTER_SECOND

/* A plan whose first poll has begun at START and found that the model isn't ready. */
static MusterPollPlan
polled (gint64 cost_us)
{
  MusterPollPlan plan;
  muster_poll_plan_init (&plan, START);
  muster_poll_plan_begin (&plan, START);
  muster_poll_plan_end (&plan, START + cost_us);
  muster_poll_plan_next (&plan, START + cost_us, FALSE, TRUE, 0.5);
  return plan;
}

MUSTER_TEST (PollPlan, polls_at_least_once_a_second_while_somebody_waits)
{
  MusterPollPlan plan = polled (MUSTER_MILLISECOND);
  for (gint64 now_us = START; now_us < START + 3600 * MUSTER_SECOND;) {
    gint64 due_us = muster_poll_plan_due_us (&plan);
    MUSTER_EXPECT_LE (due_us, now_us + MUSTER_SECOND + 2 * MUSTER_MILLISECOND);
    now_us = due_us;
    muster_poll_plan_begin (&plan, now_us);
    now_us += MUSTER_MILLISECOND;
    muster_poll_plan_end (&plan, now_us);
    muster_poll_plan_next (&plan, now_us, FALSE, TRUE, 0.5);
  }
}

MUSTER_TEST (PollPlan, polls_every_ten_seconds_once_the_answer_is_settled)
{
  MusterPollPlan plan = polled (MUSTER_MILLISECOND);
  muster_poll_plan_next (&plan, 2 * START, TRUE, FALSE, 0.5);

  MUSTER_EXPECT_EQ (muster_poll_plan_due_us (&plan), 2 * START + 10 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_poll_plan_suspect (&plan, 3 * START));
  MUSTER_EXPECT_EQ (muster_poll_plan_due_us (&plan), 2 * START + 10 * MUSTER_SECOND);
}

MUSTER_TEST (PollPlan, keeps_its_plan_where_nothing_was_polled_and_nothing_settled)
{
  MusterPollPlan plan = polled (MUSTER_MILLISECOND);
  gint64 due_us = muster_poll_plan_due_us (&plan);
  muster_poll_plan_next (&plan, 2 * START, FALSE, FALSE, 0.5);

  MUSTER_EXPECT_EQ (muster_poll_plan_due_us (&plan), due_us);
}

MUSTER_TEST (PollPlan, polls_at_once_where_a_change_is_suspected)
{
  MusterPollPlan plan = polled (20 * MUSTER_MILLISECOND);
  gint64 now_us = START + 21 * MUSTER_MILLISECOND;
  MUSTER_EXPECT_GT (muster_poll_plan_due_us (&plan), now_us);

  MUSTER_EXPECT_TRUE (muster_poll_plan_suspect (&plan, now_us));

  MUSTER_EXPECT_EQ (muster_poll_plan_due_us (&plan), now_us);
}

MUSTER_TEST (PollPlan, takes_an_answer_for_old_after_a_second)
{
  MusterPollPlan plan = polled (MUSTER_MILLISECOND);
  MUSTER_EXPECT_FALSE (muster_poll_plan_is_old (&plan, START + MUSTER_SECOND));
  MUSTER_EXPECT_TRUE (muster_poll_plan_is_old (&plan, START + MUSTER_SECOND + 1));
}
