// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

#define N_AT_ONCE 64
#define PATIENCE  (30 * G_TIME_SPAN_SECOND)

MUSTER_TEST (Async, prepares_in_the_background)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  g_autoptr (MusterTensor) value = muster_tensor_new_float (0.5);
  g_autofree char *init = g_strdup ("init");
  g_autofree char *name = g_strdup ("start:0");
  MusterFeed *feed = g_new0 (MusterFeed, 1);
  MusterPrepareOptions options = {.init_op = init, .init_feeds = feed, .n_init_feeds = 1};
  *feed = (MusterFeed){name, value};

  muster_session_manager_prepare_session_async (job.manager, MUSTER_MASTER (job.master), &options,
                                                NULL, muster_main_loop_back, &loop);
  memset (init, 'x', strlen (init)); /* it has its own copy */
  memset (name, 'x', strlen (name));
  g_free (feed);
  MUSTER_EXPECT_EQ (loop.n_back, 0u);
  muster_main_loop_until (&loop, 1);
  g_autoptr (MusterSession) session = muster_session_manager_prepare_session_finish (
      job.manager, loop.result, &job.report, &job.error);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_TRUE (loop.in_context);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_READY);
  MUSTER_EXPECT_TRUE (muster_fake_master_fed (job.master, "start") == value);
  muster_small_job_diary_is (&job, "create, run init, run gate, run local_init, run ready");
}

MUSTER_TEST (Async, runs_a_list_of_init_ops_in_the_background)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  const char *const ops[] = {"init", "local_init", NULL};
  MusterPrepareOptions options = {.init_ops = ops};
  muster_session_manager_prepare_session_async (job.manager, MUSTER_MASTER (job.master), &options,
                                                NULL, muster_main_loop_back, &loop);
  muster_main_loop_until (&loop, 1);
  g_autoptr (MusterSession) session =
      muster_session_manager_prepare_session_finish (job.manager, loop.result, NULL, &job.error);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
}

/* What stands there before may be anything; the caller clears it afterwards. */
MUSTER_TEST (Async, begins_the_report_of_an_operation_that_is_refused)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterSessionManager *manager = job.manager;
  GAsyncResult *other = G_ASYNC_RESULT (g_task_new (manager, NULL, NULL, NULL));
  const MusterPrepareOptions options = {0};
  for (int i = 0; i < 6; i++) {
    gboolean recovered = TRUE;
    MusterSessionReport report;
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%d", i);
    memset (&report, 0xff, sizeof report);
    if (i == 0)
      muster_session_manager_prepare_session (manager, NULL, &options, &report, NULL, &error);
    else if (i == 1)
      muster_session_manager_recover_session (manager, NULL, &options, &recovered, &report, NULL,
                                              &error);
    else if (i == 2)
      muster_session_manager_wait_for_session (manager, NULL, 0, &report, NULL, &error);
    else if (i == 3)
      muster_session_manager_prepare_session_finish (manager, other, &report, &error);
    else if (i == 4)
      muster_session_manager_wait_for_session_finish (manager, other, &report, &error);
    else
      muster_session_manager_wait_for_session_finish (manager, NULL, &report, &error);

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (report.phases == NULL && report.reason == NULL && report.reasons == NULL);
    MUSTER_EXPECT_EQ (report.final_step, (gint64)-1);
    MUSTER_EXPECT_TRUE (recovered); /* untouched on failure */
  }
  g_object_unref (other);
}

MUSTER_TEST (Async, reports_a_failure_too)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  muster_session_manager_wait_for_session_async (job.manager, MUSTER_MASTER (job.master),
                                                 60 * MUSTER_SECOND, NULL, muster_main_loop_back,
                                                 &loop);
  muster_main_loop_until (&loop, 1);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session_finish (
      job.manager, loop.result, &job.report, &job.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  MUSTER_EXPECT_STREQ (job.report.reason, "Variables not initialized: v, w");
}

MUSTER_TEST (Async, is_cancelled)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_fake_clock_hold (job.clock);

  muster_session_manager_wait_for_session_async (job.manager, MUSTER_MASTER (job.master),
                                                 MUSTER_WAIT_FOREVER, cancellable,
                                                 muster_main_loop_back, &loop);
  muster_fake_clock_wait_for_waiters (job.clock, 1);
  g_cancellable_cancel (cancellable);
  muster_main_loop_until (&loop, 1);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session_finish (
      job.manager, loop.result, &job.report, &job.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

/* A session that nobody fetched is let go. */
MUSTER_TEST (Async, drops_what_nobody_finishes)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  muster_small_job_initialise (&job);

  muster_session_manager_wait_for_session_async (job.manager, MUSTER_MASTER (job.master), 0, NULL,
                                                 muster_main_loop_back, &loop);
  muster_main_loop_until (&loop, 1);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 1u);
  g_clear_object (&loop.result);

  /* The verb's thread may be about to let go of it. */
  gint64 patience = g_get_monotonic_time () + PATIENCE;
  while (muster_fake_master_n_open (job.master) > 0 && g_get_monotonic_time () < patience)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

typedef struct {
  GMutex lock;
  GCond changed;
  guint n_begun;
  gboolean all_begun;
} Gate;

/* Goes on once all have come. */
static gboolean
meet (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Gate *gate = user_data;
  gint64 patience = g_get_monotonic_time () + PATIENCE;
  g_mutex_lock (&gate->lock);
  gate->n_begun++;
  g_cond_broadcast (&gate->changed);
  while (gate->n_begun < N_AT_ONCE && g_cond_wait_until (&gate->changed, &gate->lock, patience))
    ;
  gboolean all_begun = gate->all_begun = gate->n_begun == N_AT_ONCE;
  g_mutex_unlock (&gate->lock);
  if (!all_begun)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "Some never began");
  return all_begun;
}

/* None waits for another to end: each has a thread of its own. */
MUSTER_TEST (Async, begins_64_at_once)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  Gate gate = {0};
  MusterPrepareOptions options = {.init_op = "init", .init_func = meet, .init_func_data = &gate};
  for (int i = 0; i < N_AT_ONCE; i++)
    muster_session_manager_prepare_session_async (job.manager, MUSTER_MASTER (job.master), &options,
                                                  NULL, muster_main_loop_back, &loop);
  muster_main_loop_until (&loop, N_AT_ONCE);

  MUSTER_EXPECT_TRUE (gate.all_begun);
  MUSTER_EXPECT_EQ (muster_fake_master_most_open (job.master), (guint)N_AT_ONCE);
  MUSTER_EXPECT_TRUE (loop.in_context);
}

/* One manager's threads tell its listener what they wait for, each of its own wait. */
MUSTER_TEST (Async, waits_64_times_at_once)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  muster_fake_clock_hold (job.clock);

  for (int i = 0; i < N_AT_ONCE; i++)
    muster_session_manager_wait_for_session_async (job.manager, MUSTER_MASTER (job.master),
                                                   MUSTER_WAIT_FOREVER, NULL, muster_main_loop_back,
                                                   &loop);
  muster_fake_clock_wait_for_waiters (job.clock, N_AT_ONCE);
  muster_small_job_initialise (&job);
  muster_fake_clock_pass (job.clock, 60 * MUSTER_SECOND);
  for (int i = 0; i < N_AT_ONCE; i++)
    muster_fake_clock_crank (job.clock);
  muster_main_loop_until (&loop, N_AT_ONCE);

  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), (guint)N_AT_ONCE);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), (guint)N_AT_ONCE);
}
