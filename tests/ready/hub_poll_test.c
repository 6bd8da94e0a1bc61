// SPDX-License-Identifier: Apache-2.0
#include "tests/ready/hub_fixture.h"

/* A master that can't tell of changes. */

/* Goes to the next look; how long that takes. */
static gint64
poll_again (Fixture *f)
{
  gint64 before_us = muster_fake_clock_elapsed_us (f->clock);
  guint before = n_runs (f);
  muster_fake_clock_wait_for_waiters (f->clock, 1);
  muster_fake_clock_crank (f->clock);
  gint64 after_us = muster_fake_clock_elapsed_us (f->clock);
  wait_for_run (f, before + 1);
  return after_us - before_us;
}

MUSTER_TEST (HubThatPolls, polls_at_least_once_a_second_while_somebody_waits)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  gint64 pause_us = 0;
  while (muster_fake_clock_elapsed_us (f.clock) < 300 * MUSTER_SECOND)
    pause_us = poll_again (&f);

  MUSTER_EXPECT_GT (pause_us, MUSTER_SECOND / 2);
  MUSTER_EXPECT_LE (pause_us, MUSTER_SECOND);
}

MUSTER_TEST (HubThatPolls, polls_every_ten_seconds_once_all_have_received_that_it_is_ready)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "");
  MUSTER_EXPECT_EQ (poll_again (&f), 10 * MUSTER_SECOND);
  set_missing (&f, "a"); /* it is withdrawn */
  MUSTER_EXPECT_EQ (poll_again (&f), 10 * MUSTER_SECOND);
  EXPECT_RECEIVED (f.ear, 2, "ready; missing a");

  MUSTER_EXPECT_LE (poll_again (&f), MUSTER_SECOND / 10); /* somebody waits again */
}

MUSTER_TEST (HubThatPolls, passes_on_no_answer_older_than_a_second)
{
  g_autoptr (Ear) late = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (FALSE, "");
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  set_missing (&f, "a");
  muster_fake_clock_pass (f.clock, 2 * MUSTER_SECOND);

  ask (&f, late, f.session, NULL, "ready");

  EXPECT_RECEIVED (late, 1, "missing a");
  EXPECT_RECEIVED (f.ear, 2, "ready; missing a");
}

/* The chief says that it is done before the next look: what the last one saw is not told. */
MUSTER_TEST (HubThatPolls, polls_at_once_when_the_chief_has_prepared)
{
  g_auto (Fixture) f = fixture (FALSE);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "nobody, missing a,b");
  gint64 epoch = claim (&f);
  EXPECT_RECEIVED (f.ear, 2, "nobody, missing a,b; starting, gate shut");
  gint64 before_us = muster_fake_clock_elapsed_us (f.clock);

  set_missing (&f, "");
  announce (&f, epoch, MUSTER_CHIEF_PREPARED, -1);

  EXPECT_RECEIVED (f.ear, 3, "nobody, missing a,b; starting, gate shut; prepared, ready");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), before_us);
}

MUSTER_TEST (HubThatPolls, polls_rarely_once_the_job_is_over)
{
  g_auto (Fixture) f = fixture (FALSE);
  announce (&f, claim (&f), MUSTER_CHIEF_OVER, -1);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "over, gate shut");

  MUSTER_EXPECT_EQ (poll_again (&f), 10 * MUSTER_SECOND);
}

MUSTER_TEST (HubThatPolls, puts_no_poll_off_when_a_chief_announces)
{
  g_auto (Fixture) f = fixture (FALSE);
  gint64 epoch = claim (&f);
  ask_for_digits (&f, f.ear);
  EXPECT_RECEIVED (f.ear, 1, "starting, gate shut");
  gint64 pause_us = 0;
  while (muster_fake_clock_elapsed_us (f.clock) < 10 * MUSTER_SECOND)
    pause_us = poll_again (&f);
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  muster_fake_clock_pass (f.clock, pause_us * 3 / 4);

  announce (&f, epoch, MUSTER_CHIEF_INITIALISING, -1);
  EXPECT_RECEIVED (f.ear, 2, "starting, gate shut; initialising, gate shut");

  MUSTER_EXPECT_LT (poll_again (&f), pause_us / 2);
}

MUSTER_TEST (HubThatPolls, ends_a_subscriber_whose_session_fails)
{
  g_autoptr (Ear) second = ear_new ();
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  g_autoptr (MusterSession) b = new_session (&f, 1);
  ask (&f, second, b, NULL, "ready");
  EXPECT_RECEIVED (second, 1, "missing a,b");
  lose_session (&f);

  muster_fake_clock_wait_for_waiters (f.clock, 1);
  set_missing (&f, "");
  muster_fake_clock_crank (f.clock);

  EXPECT_RECEIVED (f.ear, 2, "missing a,b; error 10");
  EXPECT_RECEIVED (second, 2, "missing a,b; ready");
}

MUSTER_TEST (HubThatPolls, polls_at_once_where_something_may_have_changed)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  while (muster_fake_clock_elapsed_us (f.clock) < 10 * MUSTER_SECOND)
    poll_again (&f);
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  gint64 before_us = muster_fake_clock_elapsed_us (f.clock);

  set_missing (&f, "");
  muster_readiness_hub_may_have_changed (f.hub);

  EXPECT_RECEIVED (f.ear, 2, "missing a,b; ready");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), before_us);
}

MUSTER_TEST (HubThatPolls, polls_again_where_something_may_have_changed_during_a_poll)
{
  g_auto (Fixture) f = fixture (FALSE);
  hold_runs (&f, TRUE);
  ask (&f, f.ear, f.session, NULL, "ready");
  wait_for_run (&f, 1);

  set_missing (&f, "");
  muster_readiness_hub_may_have_changed (f.hub);
  hold_runs (&f, FALSE);

  EXPECT_RECEIVED (f.ear, 2, "missing a,b; ready");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 0);
}

MUSTER_TEST (HubThatPolls, does_not_poll_for_each_of_many_changes_that_there_may_have_been)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "a,b");
  guint before = n_runs (&f);
  for (int i = 0; i < 100; i++) {
    muster_readiness_hub_may_have_changed (f.hub);
    muster_fake_clock_wait_for_waiters (f.clock, 1);
  }

  MUSTER_EXPECT_LE (n_runs (&f) - before, 4u);
}

MUSTER_TEST (HubThatPolls,
             does_not_care_what_may_have_changed_once_all_have_received_that_it_is_ready)
{
  g_auto (Fixture) f = fixture_that_asked (FALSE, "");
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  guint before = n_runs (&f);

  muster_readiness_hub_may_have_changed (f.hub);
  muster_fake_clock_wait_for_waiters (f.clock, 1);

  MUSTER_EXPECT_EQ (n_runs (&f), before);
}
