// SPDX-License-Identifier: Apache-2.0
/* The hook that saves while training goes on: over a store that can hold a save up. */
#include "checkpoint/format/bundle_reader.h"
#include "tests/train/background_fixture.h"

/* B001.40, B001.42, B001.49: the file is there later, and graphs are saved so. */
MUSTER_TEST (BackgroundSave, goes_on_while_a_checkpoint_is_written)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));

  MUSTER_EXPECT_TRUE (train (&job, 5, &error));

  MUSTER_EXPECT_EQ (latest_step (&job), -1);
  MUSTER_EXPECT_STREQ (job.saved->str, "");
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_EXPECT_TRUE (train_until_saved (&job, 0, &error));
  MUSTER_EXPECT_EQ (latest_step (&job), 0);
  MUSTER_ASSERT_NO_ERROR (error);
}

/* B001.35: what is written is the model as it was when the save was due. */
MUSTER_TEST (BackgroundSave, saves_the_step_that_it_is_called_by)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 9, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_BEGIN));
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_ASSERT_TRUE (train_until_saved (&job, 0, &error));

  g_autofree char *latest = muster_latest_checkpoint (NULL, job.directory, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, latest, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) step = muster_bundle_reader_read (reader, "global_step", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gint64 saved = -1;
  MUSTER_ASSERT_TRUE (muster_tensor_get_int64 (step, &saved, &error));
  MUSTER_EXPECT_EQ (saved, 0);
}

/* B001.43: one is written at a time: what falls due meanwhile is saved as soon as that is done. */
MUSTER_TEST (BackgroundSave, makes_a_save_that_was_due_after_the_one_before)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 2, &error));
  MUSTER_EXPECT_TRUE (train (&job, 7, &error)); /* three are due */
  MUSTER_EXPECT_STREQ (job.saved->str, "");
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);

  MUSTER_EXPECT_TRUE (train_until_saved (&job, 0, &error));

  const gint64 next = muster_monitored_session_global_step (job.session);
  g_autofree char *both = g_strdup_printf (" 0 %" G_GINT64_FORMAT, next);
  MUSTER_EXPECT_TRUE (train_until_saved (&job, next, &error));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (job.saved->str, both)); /* a third may have ended by then */
  MUSTER_ASSERT_NO_ERROR (error);
}

/* B001.70, B001.76 */
MUSTER_TEST (BackgroundSave, waits_for_it_at_the_end_and_saves_the_last_step)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_EXPECT_TRUE (train (&job, 3, &error));

  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (job.saved->str, " 0 3");
  MUSTER_EXPECT_EQ (latest_step (&job), 3);
}

/* B001.71, B001.72: the end has a deadline: what isn't done by then leaves the checkpoint before.
 */
MUSTER_TEST (BackgroundSave, gives_up_at_the_end_what_takes_too_long)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_EXPECT_TRUE (train (&job, 3, &error));

  MUSTER_EXPECT_FALSE (muster_monitored_session_finish (
      job.session, NULL, g_get_monotonic_time () + MUSTER_SECOND, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);
  g_clear_object (&job.session);
  MUSTER_EXPECT_TRUE (latest_step (&job) <= 0);
}

/* B001.76: a run that fails ends without a save of its own, but finishes the one that it had begun.
 */
MUSTER_TEST (BackgroundSave, finishes_what_it_had_begun_when_the_run_fails)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL, failure = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 3, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_BEGIN));
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);
  muster_fail (&failure, MUSTER_ERROR_INTERNAL, "NaN loss during training.");

  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (job.session, failure, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_STREQ (job.saved->str, " 0");
  MUSTER_EXPECT_EQ (latest_step (&job), 0);
}

/* Nor is anybody called whose session is dropped. */
MUSTER_TEST (BackgroundSave, calls_nobody_when_its_session_is_dropped)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 3, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);

  g_clear_object (&job.session);

  MUSTER_EXPECT_STREQ (job.saved->str, "");
  MUSTER_EXPECT_EQ (latest_step (&job), 0); /* its files were written: it was finished */
}

/* B001.45, B001.46, B001.52, B001.56, B001.58: a failure is reported and counted once, and training
 * goes on. */
MUSTER_TEST (BackgroundSave, counts_a_failure_once)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  const MusterCheckpointSaverOptions options = {
      .checkpoint_dir = job.directory, .save_steps = 5, .saver = job.saver};
  g_autoptr (MusterHook) hook = muster_checkpoint_saver_hook_new (&options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterPrepareOptions prepare = {.saver = job.saver, .checkpoint_dir = job.directory};
  const MusterMonitoredSessionOptions with = {.scaffold = job.scaffold,
                                              .master = job.master,
                                              .prepare = &prepare,
                                              .hooks = &hook,
                                              .n_hooks = 1};
  muster_gate_storage_fail (job.gates, 1, MUSTER_ERROR_INTERNAL, "the disk is gone");
  job.session = muster_monitored_session_new (&with, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (muster_checkpoint_saver_hook_n_failures (hook) == 0 && g_get_monotonic_time () < until_us)
    MUSTER_ASSERT_TRUE (train (&job, 1, &error));
  while (muster_checkpoint_saver_hook_durable (hook, NULL) < 0 &&
         g_get_monotonic_time () < until_us)
    MUSTER_ASSERT_TRUE (train (&job, 1, &error));

  g_autoptr (GError) last = muster_checkpoint_saver_hook_last_failure (hook);
  MUSTER_EXPECT_EQ (muster_checkpoint_saver_hook_n_failures (hook), 1u);
  MUSTER_EXPECT_TRUE (last != NULL && strstr (last->message, "the disk is gone") != NULL);
  MUSTER_EXPECT_GE (latest_step (&job), 5);
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* The session is lost while a checkpoint is written in it: that is no failed save of the next. */
MUSTER_TEST (BackgroundSave, comes_back_from_a_session_that_was_lost_while_it_was_written)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  serve (&job);
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_BEGIN);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 4, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_BEGIN));
  MUSTER_ASSERT_TRUE (muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &error));
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_BEGIN);

  MUSTER_EXPECT_TRUE (train (&job, 4, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GE (muster_monitored_session_n_recoveries (job.session), 1u);
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (latest_step (&job), muster_monitored_session_global_step (job.session));
}

/* B001.49: a job that is told to go waits for the save in flight, then saves where it stopped. */
MUSTER_TEST (BackgroundSave, that_is_told_to_go_waits_for_it_and_saves_what_is_newer)
{
  g_auto (Job) job = set_up ();
  g_auto (MusterPreemptionReport) report = {0};
  g_autoptr (GError) error = NULL;
  job.preemption = muster_preemption_new (60 * MUSTER_SECOND, NULL);
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 3, &error));
  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_TRUE (train (&job, 1, &error));
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (job.session));
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);

  MUSTER_EXPECT_TRUE (finish (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  MUSTER_EXPECT_EQ (report.durable_step, 4);
  MUSTER_EXPECT_STREQ (job.saved->str, " 0 4");
}

/* Where the grace is over before that is written, the checkpoint before counts. */
MUSTER_TEST (BackgroundSave, that_is_told_to_go_leaves_the_last_durable_one_where_time_is_up)
{
  g_auto (Job) job = set_up ();
  g_auto (MusterPreemptionReport) report = {0};
  g_autoptr (GError) error = NULL;
  job.preemption = muster_preemption_new (300 * MUSTER_MILLISECOND, NULL);
  MUSTER_ASSERT_TRUE (muster_preemption_watch (job.preemption, &error));
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (finish (&job, &error)); /* saves step 0 */
  g_clear_object (&job.session);
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 3, &error));
  MUSTER_ASSERT_TRUE (train (&job, 4, &error)); /* one save is due */
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));
  muster_preemption_request (job.preemption, SIGTERM);

  (void)finish (&job, &error);

  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_TRUE (report.outcome == MUSTER_PREEMPTION_NOT_BEGUN ||
                      report.outcome == MUSTER_PREEMPTION_GIVEN_UP);
  MUSTER_EXPECT_EQ (report.durable_step, 0);
  g_clear_object (&job.session);
}

static gpointer
open_gate_soon (gpointer gates)
{
  g_usleep (300 * 1000);
  muster_gate_storage_open_gate (gates, MUSTER_GATE_PUBLISH);
  return NULL;
}

/* A save in flight may use all of the grace, also where another one wouldn't fit after it. */
MUSTER_TEST (BackgroundSave, that_is_told_to_go_leaves_the_one_in_flight_its_time)
{
  g_auto (Job) job = set_up ();
  g_auto (MusterPreemptionReport) report = {0};
  g_autoptr (GError) error = NULL;
  job.preemption = muster_preemption_new (20 * MUSTER_SECOND, NULL);
  MUSTER_ASSERT_TRUE (muster_preemption_watch (job.preemption, &error));
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, &error));
  MUSTER_ASSERT_TRUE (train (&job, 4, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));
  muster_preemption_note_durable (job.preemption, -1, "before", 1000, 30 * MUSTER_SECOND);
  g_autoptr (GThread) opener = g_thread_new ("opener", open_gate_soon, job.gates);
  muster_preemption_request (job.preemption, SIGTERM);

  (void)finish (&job, &error);

  g_thread_join (g_steal_pointer (&opener));
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NOT_BEGUN);
  MUSTER_EXPECT_EQ (report.durable_step, 0);
  MUSTER_EXPECT_STREQ (job.saved->str, " 0");
  MUSTER_EXPECT_EQ (latest_step (&job), 0);
}

/* B001.74: a save that was given up with its session, and still hangs, keeps others from being
 * saved, not from being trained. */
MUSTER_TEST (BackgroundSave, goes_on_beside_one_that_hangs)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  serve (&job);
  muster_gate_storage_close_gate (job.gates, MUSTER_GATE_PUBLISH);
  MUSTER_ASSERT_TRUE (open_job (&job, 2, &error));
  MUSTER_ASSERT_TRUE (train (&job, 3, &error));
  MUSTER_ASSERT_TRUE (muster_gate_storage_wait_for_arrival (job.gates, MUSTER_GATE_PUBLISH));
  MUSTER_ASSERT_TRUE (muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_TRUE (train (&job, 9, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (job.session), 1u);
  MUSTER_EXPECT_STREQ (job.saved->str, "");
  muster_gate_storage_open_gate (job.gates, MUSTER_GATE_PUBLISH);
  while (job.saved->len == 0)
    MUSTER_ASSERT_TRUE (train (&job, 1, &error));
  MUSTER_EXPECT_TRUE (finish (&job, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}
