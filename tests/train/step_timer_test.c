// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"
#include "train/hooks/step_timer_private.h"

/* MON.62 */
MUSTER_TEST (StepTimer, wants_exactly_one_of_seconds_and_steps)
{
  MusterStepTimer timer;
  g_autoptr (GError) neither = NULL, both = NULL;
  MUSTER_EXPECT_FALSE (muster_step_timer_init (&timer, 0, 0, NULL, &neither));
  MUSTER_EXPECT_FALSE (muster_step_timer_init (&timer, 5, 5, NULL, &both));

  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (neither->message, "Either every_secs or every_steps should be provided"));
  MUSTER_EXPECT_STREQ (both->message, "Can not provide both every_secs and every_steps.");
}

/* MON.63 */
MUSTER_TEST (StepTimer, is_due_at_first_and_then_every_so_many_steps)
{
  MusterStepTimer timer;
  MUSTER_ASSERT_TRUE (muster_step_timer_init (&timer, 0, 3, NULL, NULL));

  MUSTER_EXPECT_TRUE (muster_step_timer_is_due (&timer, 7));
  (void)muster_step_timer_trigger (&timer, 7, NULL, NULL);

  MUSTER_EXPECT_FALSE (muster_step_timer_is_due (&timer, 7));
  MUSTER_EXPECT_FALSE (muster_step_timer_is_due (&timer, 9));
  MUSTER_EXPECT_TRUE (muster_step_timer_is_due (&timer, 10));
}

/* MON.63: by time, and never twice for one step */
MUSTER_TEST (StepTimer, is_due_every_so_many_seconds)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  MusterStepTimer timer;
  MUSTER_ASSERT_TRUE (
      muster_step_timer_init (&timer, 10 * MUSTER_SECOND, 0, MUSTER_CLOCK (clock), NULL));
  (void)muster_step_timer_trigger (&timer, 1, NULL, NULL);

  muster_fake_clock_pass (clock, 9 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_step_timer_is_due (&timer, 50));
  muster_fake_clock_pass (clock, 1 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_step_timer_is_due (&timer, 2));
  MUSTER_EXPECT_FALSE (muster_step_timer_is_due (&timer, 1));
}

/* MON.64 */
MUSTER_TEST (StepTimer, reports_what_has_passed_since_the_last_time)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  MusterStepTimer timer;
  gint64 us = -1, steps = -1;
  MUSTER_ASSERT_TRUE (muster_step_timer_init (&timer, 0, 1, MUSTER_CLOCK (clock), NULL));

  MUSTER_EXPECT_FALSE (muster_step_timer_trigger (&timer, 3, &us, &steps));
  MUSTER_EXPECT_EQ (us, -1);
  muster_fake_clock_pass (clock, 2 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_step_timer_trigger (&timer, 10, &us, &steps));
  MUSTER_EXPECT_EQ (us, 2 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (steps, 7);
}
