// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* What a chief tries again, and what it doesn't (DIFF.6). */

static gboolean
count_call (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
            GError **error G_GNUC_UNUSED)
{
  ++*(guint *)user_data;
  return TRUE;
}

static void
note_message (const char *message, const MusterReadiness *readiness G_GNUC_UNUSED,
              GPtrArray *reasons G_GNUC_UNUSED, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", message);
}

/* Without a timeout a master that isn't there is an error at once: Prepare,
 * does_not_retry_a_master_that_is_not_there. */
MUSTER_TEST (Retries, wait_for_a_master_until_the_timeout)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_fail (job.master, "create", 1, 5, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 60 * MUSTER_SECOND});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_UNREACHABLE], 5u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 1u);
}

MUSTER_TEST (Retries, end_at_the_timeout_with_the_last_reason)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_set_random (job.clock, 0.999);
  muster_fake_master_fail (job.master, "create", 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 60 * MUSTER_SECOND});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "connection refused"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "out of time in 'connect'"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, " retries)"));
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FAILED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 60 * MUSTER_SECOND);
}

/* The whole work again, in a session of its own. */
MUSTER_TEST (Retries, begin_again_when_the_master_lost_the_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  guint n_calls = 0;
  muster_fake_master_set_cost (job.master, "local_init", 60 * MUSTER_SECOND);
  muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, muster_small_job_restart_master, &job);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .init_func = count_call, .init_func_data = &n_calls});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (n_calls, 2u);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
  MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_LOST_SESSION], 1u);
  muster_small_job_diary_is (&job,
                             "create, run init, run gate, run local_init, close, create, run init, "
                             "run gate, run local_init, run ready");
  MUSTER_EXPECT_EQ (muster_fake_master_most_open (job.master), 1u);
}

MUSTER_TEST (Retries, restore_again_and_report_the_last)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  muster_fake_master_fail (job.master, "ready", 1, 1, MUSTER_ERROR_ABORTED, "lost");

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "save/restore_all"), 2u);
}

/* The budget: three, then the error, with how often it was tried. Each is told. */
MUSTER_TEST (Retries, give_up_after_three)
{
  const struct {
    MusterError code;
    MusterFailure failure;
  } cases[] = {{MUSTER_ERROR_ABORTED, MUSTER_FAILURE_LOST_SESSION},
               {MUSTER_ERROR_CANCELLED, MUSTER_FAILURE_PREEMPTED}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    g_autoptr (GString) told = g_string_new (NULL);
    MUSTER_TRACE ("%s", muster_error_name (cases[i].code));
    muster_session_manager_set_progress (job.manager, note_message, told, NULL);
    muster_fake_master_fail (job.master, "init", 1, G_MAXUINT, cases[i].code, "the server stops");
    g_autoptr (MusterSession) session = muster_small_job_prepare (
        &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 600 * MUSTER_SECOND});
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, (int)cases[i].code);
    MUSTER_ASSERT_TRUE (job.error != NULL);
    MUSTER_EXPECT_STREQ (job.error->message,
                         "Running init_op 'init': the server stops (after 3 retries)");
    MUSTER_EXPECT_EQ (job.report.retries[cases[i].failure], 3u);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 4u);
    MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
    g_autofree char *last =
        g_strdup_printf ("Retrying (%s, 3 of 3): Running init_op 'init': the server stops",
                         muster_failure_name (cases[i].failure));
    MUSTER_EXPECT_TRUE (strstr (told->str, last));
  }
}

/* With pauses that grow: 12.5, 100 and 200 ms at a chance of a half. */
MUSTER_TEST (Retries, pause_before_they_begin_again)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_fail (job.master, "init", 1, 3, MUSTER_ERROR_ABORTED, "lost");

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 312500);
}

MUSTER_TEST (Retries, never_repeat_a_mistake)
{
  const MusterError codes[] = {MUSTER_ERROR_INVALID_ARGUMENT, MUSTER_ERROR_INTERNAL,
                               MUSTER_ERROR_DATA_LOSS, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                               MUSTER_ERROR_FAILED_PRECONDITION};
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("%s", muster_error_name (codes[i]));
    muster_fake_master_fail (job.master, "init", 1, 1, codes[i], "wrong");
    g_autoptr (MusterSession) session = muster_small_job_prepare (
        &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 600 * MUSTER_SECOND});
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, (int)codes[i]);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 1u);
    MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (job.clock), 0u);
  }
}

MUSTER_TEST (Retries, follow_the_policy_given)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const MusterRetryPolicy none = {.budget = {0}};
  MusterSessionManagerOptions options = {
      .ready_op = "ready", .clock = MUSTER_CLOCK (job.clock), .preparing = &none, .waiting = &none};
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, NULL);
  muster_fake_master_fail (job.master, "create", 1, 2, MUSTER_ERROR_UNAVAILABLE, "refused");

  g_autoptr (MusterSession) chief = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 60 * MUSTER_SECOND});
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);

  MUSTER_EXPECT_TRUE (!chief && !worker);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 2u);
}

MUSTER_TEST (Retries, recover_again_too)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 7);
  gboolean recovered = FALSE;
  muster_fake_master_fail (job.master, "gate", 1, 2, MUSTER_ERROR_ABORTED, "lost");

  g_autoptr (MusterSession) session = muster_small_job_recover (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()},
      &recovered);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session && recovered);
  MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_LOST_SESSION], 2u);
}

/* A waiter whose master stops (CANCELLED) waits for the next one. */
MUSTER_TEST (Retries, let_a_waiter_outlive_a_master_that_stops)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_watchable (job.master);
  muster_fake_master_fail (job.master, "watch", 2, 1, MUSTER_ERROR_CANCELLED,
                           "The server is stopping");
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_PREEMPTED], 1u);
}
