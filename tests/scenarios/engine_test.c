// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "tests/scenarios/engine_job.h"

/* A chief and a worker on the real engine and the real clock. */

static EngineJob
set_up (void)
{
  return engine_job_new (muster_small_model_new (muster_small_variables, 2, 5));
}

static gpointer
wait_as_worker (gpointer user_data)
{
  EngineJob *f = user_data;
  return muster_session_manager_wait_for_session (f->manager, f->master, 30 * MUSTER_SECOND, NULL,
                                                  NULL, NULL);
}

MUSTER_TEST (Engine, a_worker_waits_until_the_chief_has_prepared)
{
  g_auto (EngineJob) f = set_up ();
  GThread *thread = g_thread_new ("worker", wait_as_worker, &f);
  g_autoptr (MusterSession) chief = engine_job_prepare (&f);
  g_autoptr (MusterSession) worker = g_thread_join (thread);
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_TRUE (chief && worker);
}

MUSTER_TEST (Engine, says_which_variables_are_missing)
{
  g_auto (EngineJob) f = set_up ();
  g_autoptr (MusterSession) session =
      muster_session_manager_wait_for_session (f.manager, f.master, 0, NULL, NULL, &f.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      f.error->message,
      "Session was not ready after waiting 0 secs. (Variables not initialized: v, w)"));
}

MUSTER_TEST (Engine, a_job_dies_and_resumes_from_its_checkpoint)
{
  g_autofree char *saved = NULL;
  {
    g_auto (EngineJob) f = set_up ();
    g_autoptr (MusterSession) chief = engine_job_prepare (&f);
    MUSTER_ASSERT_TRUE (chief != NULL);
    saved = muster_saver_save (f.saver, chief, muster_test_tmpdir (), 640, MUSTER_WAIT_FOREVER,
                               NULL, &f.error);
    MUSTER_EXPECT_NO_ERROR (f.error);
    MUSTER_EXPECT_NULL (f.report.restored_from);
  }

  g_auto (EngineJob) f = set_up ();
  g_autoptr (MusterSession) chief = engine_job_prepare (&f);
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_TRUE (chief != NULL);
  MUSTER_EXPECT_STREQ (f.report.restored_from, saved);
}

MUSTER_TEST (Engine, a_state_file_that_cannot_be_read_stops_the_chief)
{
  g_auto (EngineJob) f = set_up ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);

  g_file_set_contents (path,
                       "\x7f"
                       "ELF",
                       4, NULL);
  g_autoptr (MusterSession) chief = engine_job_prepare (&f);

  MUSTER_EXPECT_NULL (chief);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (Engine, has_no_graph_for_a_manager_without_one)
{
  g_auto (EngineJob) f = set_up ();
  g_clear_object (&f.manager);
  f.manager = muster_session_manager_new (NULL, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  g_autoptr (MusterSession) chief = engine_job_prepare (&f);
  MUSTER_EXPECT_NULL (chief);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&f.error);
  g_autoptr (MusterSession) worker =
      muster_session_manager_wait_for_session (f.manager, f.master, 0, NULL, NULL, &f.error);
  MUSTER_EXPECT_NULL (worker);
  MUSTER_EXPECT_SAYS (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "graph must not be NULL");
}
