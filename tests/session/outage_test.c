// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* A master that isn't there, and how soon it is found when it comes. */

static const gint64 outages_us[] = {30 * MUSTER_MILLISECOND,   MUSTER_SECOND,
                                    3300 * MUSTER_MILLISECOND, 8 * MUSTER_SECOND,
                                    60 * MUSTER_SECOND,        3600 * MUSTER_SECOND};
static const double chances[] = {0, 0.5, 0.999};

/* What is promised to whoever waits. */
static gint64
latest_us (gint64 outage_us)
{
  return outage_us + MAX (100 * MUSTER_MILLISECOND, outage_us / 50);
}

static void
expect_found_soon (MusterSmallJob *job, gint64 outage_us)
{
  gint64 found_us = muster_fake_clock_elapsed_us (job->clock);
  MUSTER_EXPECT_NO_ERROR (job->error);
  MUSTER_EXPECT_GE (found_us, outage_us);
  MUSTER_EXPECT_LE (found_us, latest_us (outage_us));
  /* while it isn't there, nothing is asked of it but whether it is */
  MUSTER_EXPECT_LE (muster_fake_master_n_calls (job->master, "create"),
                    (guint)(outage_us / (300 * MUSTER_SECOND)) + 2);
}

MUSTER_TEST (Outage, ends_for_a_waiter_within_2_percent_of_the_time_it_has_waited)
{
  for (gsize i = 0; i < G_N_ELEMENTS (outages_us); i++)
    for (gsize j = 0; j < G_N_ELEMENTS (chances); j++) {
      g_auto (MusterSmallJob) job = muster_small_job_new ();
      MUSTER_TRACE ("down for %g s, chance %g", (double)outages_us[i] / MUSTER_SECOND, chances[j]);
      muster_small_job_initialise (&job);
      muster_fake_clock_set_random (job.clock, chances[j]);
      muster_fake_master_down_until (job.master, outages_us[i]);

      g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

      expect_found_soon (&job, outages_us[i]);
      MUSTER_EXPECT_TRUE (session != NULL);
    }
}

MUSTER_TEST (Outage, ends_as_soon_for_a_chief_that_has_a_timeout)
{
  for (gsize i = 0; i < G_N_ELEMENTS (outages_us); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("down for %g s", (double)outages_us[i] / MUSTER_SECOND);
    muster_fake_clock_set_random (job.clock, 0);
    muster_fake_master_down_until (job.master, outages_us[i]);

    g_autoptr (MusterSession) session = muster_small_job_prepare (
        &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 7200 * MUSTER_SECOND});

    expect_found_soon (&job, outages_us[i]);
    MUSTER_EXPECT_TRUE (session != NULL);
  }
}

static void
lose_for_a_minute (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_small_job_initialise (job);
  muster_fake_master_down_until (job->master,
                                 muster_fake_clock_elapsed_us (job->clock) + 60 * MUSTER_SECOND);
}

/* A worker that has waited for an hour doesn't take that hour for an outage. */
MUSTER_TEST (Outage, counts_from_when_the_master_was_lost)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_set_random (job.clock, 0);
  muster_fake_clock_at (job.clock, 3600 * MUSTER_SECOND, lose_for_a_minute, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock),
                    3600 * MUSTER_SECOND + latest_us (60 * MUSTER_SECOND));
}

static void
lose_for_two_seconds (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_fake_master_down_until (job->master,
                                 muster_fake_clock_elapsed_us (job->clock) + 2 * MUSTER_SECOND);
}

static void
initialise_and_let_in (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_small_job_initialise (job);
  muster_fake_master_forgive (job->master, "create");
}

/* Nor does it take an hour of being told to come back later for one. */
MUSTER_TEST (Outage, counts_from_when_the_master_last_answered)
{
  const gint64 lost_us = 3600 * MUSTER_SECOND;
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_set_random (job.clock, 0.5);
  muster_fake_master_fail (job.master, "create", 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE, "busy");
  muster_fake_clock_at (job.clock, lost_us, lose_for_two_seconds, &job);
  muster_fake_clock_at (job.clock, lost_us + MUSTER_SECOND, initialise_and_let_in, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock),
                    lost_us + latest_us (2 * MUSTER_SECOND));
}

MUSTER_TEST (Outage, still_ends_at_the_deadline)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_down_until (job.master, G_MAXINT64);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 3600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 3600 * MUSTER_SECOND);
}

/* The first of them a few times a second, later ever more rarely. */
MUSTER_TEST (Outage, of_a_day_costs_some_hundred_tries)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_down_until (job.master, G_MAXINT64);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 86400 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_LE (muster_fake_master_n_calls (job.master, "reach"), 1200u);
}

MUSTER_TEST (Outage, is_left_when_cancelled)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_fake_master_down_until (job.master, G_MAXINT64);
  muster_fake_clock_cancel_at (job.clock, 95 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session =
      muster_small_job_wait (&job, 3600 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 95 * MUSTER_SECOND);
}

/* One that answers, and be it UNAVAILABLE, is left in peace for the whole pause. */
MUSTER_TEST (Outage, is_none_where_the_master_answers)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_initialise (&job);
  muster_fake_master_fail (job.master, "create", 1, 5, MUSTER_ERROR_UNAVAILABLE, "stopping");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 1250 * MUSTER_MILLISECOND);
}
