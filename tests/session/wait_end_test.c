// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* How a wait ends whose time runs out, and what local init sees. */

static void
expect_verdict (const MusterSmallJob *job, const char *seconds, gint64 timeout_us)
{
  g_autofree char *start =
      g_strdup_printf ("Session was not ready after waiting %s secs. (", seconds);

  MUSTER_EXPECT_ERROR (job->error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job->error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (job->error->message, start));
  MUSTER_EXPECT_TRUE (strstr (job->error->message, "; out of time in '") != NULL);
  MUSTER_EXPECT_TRUE (strstr (job->error->message, "; spent: ") != NULL);
  MUSTER_EXPECT_EQ ((int)job->report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  MUSTER_ASSERT_TRUE (job->report.phases != NULL);
  MUSTER_EXPECT_GT (job->report.phases->len, 0u);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job->clock), timeout_us);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job->master), 0u);
}

/* B002.46: a master ends a step a little before its client's deadline, or at it */
MUSTER_TEST (WaitEnd, has_one_verdict_whatever_the_time_ran_out_in)
{
  const char *const calls[] = {"create", "gate", "local_init", "ready", "watch"};
  const gint64 early_us[] = {0, MUSTER_DEADLINE_MARGIN_US};
  for (gsize i = 0; i < G_N_ELEMENTS (calls) * G_N_ELEMENTS (early_us); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    const char *call = calls[i % G_N_ELEMENTS (calls)];
    MUSTER_TRACE ("%s, case %u", call, (guint)i);
    muster_small_job_initialise (&job);
    muster_fake_master_set_cost (job.master, call, MUSTER_WAIT_FOREVER);
    muster_fake_master_set_early (job.master, early_us[i / G_N_ELEMENTS (calls)]);
    if (g_str_equal (call, "watch"))
      muster_fake_master_set_watchable (job.master);

    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 3 * MUSTER_SECOND, NULL);

    MUSTER_EXPECT_NULL (session);
    expect_verdict (&job, "3", 3 * MUSTER_SECOND);
  }
}

MUSTER_TEST (WaitEnd, uses_its_whole_time_where_no_further_poll_can_end_in_it)
{
  for (gint64 cost_us = 10 * MUSTER_MILLISECOND; cost_us < 60 * MUSTER_SECOND; cost_us *= 2) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("a look of %u ms", (guint)(cost_us / MUSTER_MILLISECOND));
    muster_fake_master_set_cost (job.master, "gate", cost_us);
    muster_fake_master_set_early (job.master, MUSTER_DEADLINE_MARGIN_US);

    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 30 * MUSTER_SECOND, NULL);

    MUSTER_EXPECT_NULL (session);
    expect_verdict (&job, "30", 30 * MUSTER_SECOND);
    if (cost_us < 30 * MUSTER_SECOND)
      MUSTER_EXPECT_STREQ (job.report.reason, "Variables not initialized: v, w");
  }
}

static void
restart_and_hang (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_fake_master_restart (job->master);
  muster_fake_master_set_cost (job->master, "create", MUSTER_WAIT_FOREVER);
}

MUSTER_TEST (WaitEnd, has_the_same_verdict_while_a_lost_session_is_made_anew)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_early (job.master, MUSTER_DEADLINE_MARGIN_US);
  muster_fake_clock_at (job.clock, 10 * MUSTER_SECOND, restart_and_hang, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 30 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  expect_verdict (&job, "30", 30 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "before that: Variables not initialized: v, w"));
}

MUSTER_TEST (WaitEnd, says_seconds_below_one_as_they_are)
{
  const struct {
    gint64 timeout_us;
    const char *text;
  } cases[] = {{300 * MUSTER_MILLISECOND, "0.3"},
               {250 * MUSTER_MILLISECOND, "0.25"},
               {1 * MUSTER_MILLISECOND, "0.001"},
               {10, "0.00001"},
               {999999, "0.999999"},
               {1 * MUSTER_SECOND, "1"},
               {1999999, "1"},
               {3700 * MUSTER_MILLISECOND, "3"}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("%s", cases[i].text);
    g_autoptr (MusterSession) session = muster_small_job_wait (&job, cases[i].timeout_us, NULL);
    MUSTER_EXPECT_NULL (session);
    expect_verdict (&job, cases[i].text, cases[i].timeout_us);
  }
}

/* A limit of the program's own, as of its RunOptions, is another thing than the wait's. */
MUSTER_TEST (WaitEnd, takes_an_ops_own_limit_for_a_failure)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_initialise (&job);
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_DEADLINE_EXCEEDED,
                           "Timed out waiting for notification");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 30 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (job.error->message, "Running local_init_op 'local_init'"));
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FAILED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}

MUSTER_TEST (WaitEnd, tries_another_session_where_a_master_ends_the_minute_of_a_poll_itself)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "gate", MUSTER_WAIT_FOREVER);
  muster_fake_master_set_early (job.master, MUSTER_DEADLINE_MARGIN_US);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 300 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  expect_verdict (&job, "300", 300 * MUSTER_SECOND);
  MUSTER_EXPECT_GT (job.report.sessions, 1u);
}

MUSTER_TEST (WaitEnd, can_be_cancelled_after_the_last_poll)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_fake_master_set_cost (job.master, "gate", 20 * MUSTER_SECOND);
  muster_fake_clock_cancel_at (job.clock, 25 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 30 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 25 * MUSTER_SECOND);
}

/* B002.80: the same words, where the deadline ends a chief's verb */
MUSTER_TEST (WaitEnd, ends_a_chiefs_operation_in_the_same_words)
{
  const char *const calls[] = {"create", "gate", "local_init", "ready"};
  for (gsize i = 0; i < 2 * G_N_ELEMENTS (calls); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    const char *call = calls[i / 2];
    MusterPrepareOptions options = {.init_op = "init",
                                    .saver = job.saver,
                                    .checkpoint_dir = muster_test_tmpdir (),
                                    .timeout_us = 3 * MUSTER_SECOND};
    g_autofree char *prefix = muster_small_job_write_checkpoint (options.checkpoint_dir, 1);
    MUSTER_TRACE ("%s, case %u", call, (guint)i);
    muster_fake_master_set_cost (job.master, call, MUSTER_WAIT_FOREVER);
    muster_fake_master_set_early (job.master, MUSTER_DEADLINE_MARGIN_US);

    gboolean recovered;
    g_autoptr (MusterSession) session = i % 2 == 0
                                            ? muster_small_job_prepare (&job, options)
                                            : muster_small_job_recover (&job, options, &recovered);

    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    MUSTER_ASSERT_TRUE (job.error != NULL);
    MUSTER_EXPECT_TRUE (
        g_str_has_prefix (job.error->message, "Session was not ready after waiting 3 secs. ("));
  }
}

/* B002.51: TensorFlow runs local init at each look, and so after the model was ready. */

static void
use_no_gate (MusterSmallJob *job)
{
  g_clear_object (&job->manager);
  job->manager = muster_small_job_manager (job, "local_init", "ready", NULL);
}

MUSTER_TEST (WaitEnd, runs_local_init_again_where_no_gate_kept_it_from_being_early)
{
  for (int pushes = 0; pushes < 2; pushes++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("pushes: %d", pushes);
    use_no_gate (&job);
    if (pushes)
      muster_fake_master_set_watchable (job.master);
    muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

    MUSTER_EXPECT_NO_ERROR (job.error);
    MUSTER_EXPECT_TRUE (session != NULL);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 2u);
    g_autofree char *diary = muster_fake_master_diary (job.master);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (diary, "run local_init"));
  }
}

MUSTER_TEST (WaitEnd, runs_local_init_once_where_the_first_poll_found_the_model_ready)
{
  for (int pushes = 0; pushes < 2; pushes++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("pushes: %d", pushes);
    use_no_gate (&job);
    if (pushes)
      muster_fake_master_set_watchable (job.master);
    muster_small_job_initialise (&job);

    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

    MUSTER_EXPECT_TRUE (session != NULL);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 1u);
  }
}

MUSTER_TEST (WaitEnd, begins_anew_where_the_session_is_lost_in_the_second_local_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  use_no_gate (&job);
  muster_fake_master_fail (job.master, "local_init", 2, 1, MUSTER_ERROR_ABORTED, "lost");
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 3u);
}
