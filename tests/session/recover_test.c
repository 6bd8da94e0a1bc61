// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

static MusterPrepareOptions
from_directory (MusterSmallJob *job)
{
  return (MusterPrepareOptions){.saver = job->saver, .checkpoint_dir = muster_test_tmpdir ()};
}

/* B002.84, B002.85 */
MUSTER_TEST (Recover, restores_a_model_and_finds_it_ready)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1200);
  gboolean recovered = FALSE;

  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);
  MUSTER_EXPECT_EQ (heard_count ("local-init", "Running local_init_op."), 1U);
  MUSTER_EXPECT_EQ (heard_count ("local-init", "Done running local_init_op."), 1U);
  MUSTER_EXPECT_EQ (heard_count ("restore", "Restored model from */model.ckpt-1200"), 1U);
  heard_end ();

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session && recovered);
  MUSTER_EXPECT_STREQ (job.report.restored_from, prefix);
  MUSTER_EXPECT_NULL (job.report.reason);
  muster_small_job_diary_is (&job,
                             "create, run save/restore_all, run gate, run local_init, run ready");
}

/* B002.81: local init once, no ready check, no global init */
MUSTER_TEST (Recover, runs_local_init_even_with_nothing_to_restore)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered = TRUE;
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, "local_init", "ready", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session && !recovered);
  muster_small_job_diary_is (&job, "create, run local_init");
}

/* B002.81, B002.87: a gate that stays shut is silent there */
MUSTER_TEST (Recover, is_silent_about_the_gate_with_nothing_to_restore)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered = TRUE;
  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session && !recovered);
  muster_small_job_diary_is (&job, "create, run gate");
}

/* B002.82 */
MUSTER_TEST (Recover, says_that_the_gate_stayed_shut)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1);
  gboolean recovered = TRUE;
  muster_fake_master_op_reports (job.master, "gate", "x", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);

  MUSTER_EXPECT_TRUE (session && !recovered);
  g_autofree char *reason = g_strdup_printf ("Restoring model from %s did not make model ready for "
                                             "local init: Variables not initialized: x",
                                             prefix);
  MUSTER_EXPECT_STREQ (job.report.reason, reason);
  MUSTER_EXPECT_TRUE (muster_fake_master_has_variable (job.master, "v"));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 0u);
}

/* B002.83 */
MUSTER_TEST (Recover, says_that_the_model_is_not_ready)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1);
  gboolean recovered = TRUE;
  muster_fake_master_op_reports (job.master, "ready", "x", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);

  MUSTER_EXPECT_TRUE (session && !recovered);
  MUSTER_EXPECT_TRUE (
      strstr (job.report.reason, " did not make model ready: Variables not initialized: x"));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 1u);
}

/* B002.86 */
MUSTER_TEST (Recover, fails_with_a_failing_local_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered = TRUE;
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, "local_init", "ready", NULL);
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_INTERNAL, "boom");

  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, from_directory (&job), &recovered);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_TRUE (recovered); /* untouched on failure */
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

/* B002.11, DIFF.1 */
MUSTER_TEST (Recover, refuses_two_places_before_it_makes_a_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered;
  g_autoptr (MusterSession) session = muster_small_job_recover (
      &job, (MusterPrepareOptions){.checkpoint_dir = "a", .checkpoint_filename = "b"}, &recovered);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  muster_small_job_diary_is (&job, "");
}

/* B002.80, B002.87: it is no prepare */
MUSTER_TEST (Recover, runs_no_init_op_though_one_is_given)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  gboolean recovered = TRUE;
  g_autoptr (MusterSession) session =
      muster_small_job_recover (&job, (MusterPrepareOptions){.init_op = "init"}, &recovered);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session && !recovered);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  muster_small_job_diary_is (&job, "create, run gate");
}

/* The deadline bounds recover as it does prepare. */
MUSTER_TEST (Recover, ends_at_its_deadline)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1);
  MusterPrepareOptions options = from_directory (&job);
  options.timeout_us = 10 * MUSTER_SECOND;
  muster_fake_master_set_cost (job.master, "save/restore_all", MUSTER_WAIT_FOREVER);

  g_autoptr (MusterSession) session = muster_small_job_recover (&job, options, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "out of time in 'restore'"));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 10 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}
