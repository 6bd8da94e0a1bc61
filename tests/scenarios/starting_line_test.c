// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* Stories of a chief and workers on one fake clock and one fake master. */

MUSTER_TEST (StartingLine, the_worker_comes_first_and_the_chief_an_hour_later)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_at (job.clock, 3601 * MUSTER_SECOND, muster_small_job_chief_prepares, &job);

  g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (worker != NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 2u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 1u);
}

/* The chief's init takes its time; nobody sees half of it as ready. */
MUSTER_TEST (StartingLine, the_worker_waits_out_a_slow_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "init", 120 * MUSTER_SECOND);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_chief_prepares, &job);

  g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (job.clock), 180 * MUSTER_SECOND);
}

MUSTER_TEST (StartingLine, the_chief_dies_after_init_and_the_worker_still_gets_a_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterPrepareOptions options = {.init_op = "init"};
  MusterSession *chief = muster_small_job_prepare (&job, options);
  MUSTER_ASSERT_TRUE (chief != NULL);
  g_object_unref (chief); /* without a close */

  g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (worker != NULL);
}

static void
chief_resumes (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  MusterPrepareOptions options = {
      .init_op = "init", .saver = job->saver, .checkpoint_dir = muster_test_tmpdir ()};
  g_auto (MusterSessionReport) report = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      job->manager, MUSTER_MASTER (job->master), &options, &report, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (report.restored_from && muster_checkpoint_step (report.restored_from) == 640);
}

/* The master is killed while a worker waits; both come back, and the model from its checkpoint. */
MUSTER_TEST (StartingLine, everybody_dies_and_the_job_goes_on_from_its_checkpoint)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) chief =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
  MUSTER_ASSERT_TRUE (chief != NULL);
  g_autofree char *saved = muster_saver_save (job.saver, chief, muster_test_tmpdir (), 640,
                                              MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  muster_fake_master_restart (job.master);
  muster_fake_clock_at (job.clock, 10 * MUSTER_SECOND, muster_small_job_restart_master, &job);
  muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, chief_resumes, &job);
  g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (worker != NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 1u);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
}

typedef struct {
  MusterSmallJob *job;
  MusterSession *session;
  GError *error;
} Worker;

static gpointer
wait_as_worker (gpointer user_data)
{
  Worker *worker = user_data;
  worker->session = muster_session_manager_wait_for_session (
      worker->job->manager, MUSTER_MASTER (worker->job->master), 7200 * MUSTER_SECOND, NULL, NULL,
      &worker->error);
  return NULL;
}

#define N_WORKERS 8

/* Real threads on a held clock: one manager serves them all. */
MUSTER_TEST (StartingLine, many_workers_wait_at_once)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  Worker workers[N_WORKERS] = {0};
  GThread *threads[N_WORKERS];
  muster_fake_clock_hold (job.clock);
  for (int i = 0; i < N_WORKERS; i++) {
    workers[i].job = &job;
    threads[i] = g_thread_new ("worker", wait_as_worker, &workers[i]);
  }
  for (int crank = 0; crank < 20; crank++) {
    muster_fake_clock_wait_for_waiters (job.clock, N_WORKERS);
    muster_fake_clock_crank (job.clock);
  }
  muster_fake_clock_wait_for_waiters (job.clock, N_WORKERS);
  muster_small_job_initialise (&job);
  muster_fake_clock_pass (job.clock, 3600 * MUSTER_SECOND);
  for (int i = 0; i < N_WORKERS; i++)
    muster_fake_clock_crank (job.clock);

  for (int i = 0; i < N_WORKERS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (workers[i].error);
    MUSTER_EXPECT_TRUE (workers[i].session != NULL);
    g_clear_error (&workers[i].error);
    g_clear_object (&workers[i].session);
  }
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), (guint)N_WORKERS);
}
