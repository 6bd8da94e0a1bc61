// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/meta_graph/ready_op.h"
#include "session/manager.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* A chief and a worker on the real engine and the real clock. */

typedef struct {
  MusterMetaGraph *meta_graph;
  MusterGraph *graph;
  char *ready_op;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSessionManager *manager;
  MusterSessionReport report;
  GError *error;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.meta_graph = muster_small_model_new (muster_small_variables, 2, 5)};

  f.graph = muster_graph_with_ready_op (f.meta_graph, TRUE, &f.ready_op, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);
  f.saver = muster_saver_new (f.meta_graph, NULL, NULL);
  f.master = muster_local_master_new ();
  MusterSessionManagerOptions options = {.ready_op = f.ready_op};
  f.manager = muster_session_manager_new (f.graph, &options, NULL);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_error (&f->error);
  muster_session_report_clear (&f->report);
  g_clear_object (&f->manager);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->ready_op, g_free);
  g_clear_pointer (&f->graph, muster_graph_unref);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterSession *
prepare (Fixture *f)
{
  MusterPrepareOptions options = {.init_op = "init",
                                  .saver = f->saver,
                                  .checkpoint_dir = muster_test_tmpdir (),
                                  .timeout_us = 30 * MUSTER_SECOND};

  g_clear_error (&f->error);
  muster_session_report_clear (&f->report);
  return muster_session_manager_prepare_session (f->manager, f->master, &options, &f->report, NULL,
                                                 &f->error);
}

static gpointer
wait_as_worker (gpointer user_data)
{
  Fixture *f = user_data;
  return muster_session_manager_wait_for_session (f->manager, f->master, 30 * MUSTER_SECOND, NULL,
                                                  NULL, NULL);
}

MUSTER_TEST (Engine, a_worker_waits_until_the_chief_has_prepared)
{
  g_auto (Fixture) f = set_up ();
  GThread *thread = g_thread_new ("worker", wait_as_worker, &f);

  g_autoptr (MusterSession) chief = prepare (&f);
  g_autoptr (MusterSession) worker = g_thread_join (thread);

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_TRUE (chief && worker);
}

MUSTER_TEST (Engine, says_which_variables_are_missing)
{
  g_auto (Fixture) f = set_up ();
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
    g_auto (Fixture) f = set_up ();
    g_autoptr (MusterSession) chief = prepare (&f);
    MUSTER_ASSERT_TRUE (chief != NULL);
    saved = muster_saver_save (f.saver, chief, muster_test_tmpdir (), 640, MUSTER_WAIT_FOREVER,
                               NULL, &f.error);
    MUSTER_EXPECT_NO_ERROR (f.error);
    MUSTER_EXPECT_NULL (f.report.restored_from);
  }

  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterSession) chief = prepare (&f);
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_TRUE (chief != NULL);
  MUSTER_EXPECT_STREQ (f.report.restored_from, saved);
}

MUSTER_TEST (Engine, a_state_file_that_cannot_be_read_stops_the_chief)
{
  g_auto (Fixture) f = set_up ();
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);

  g_file_set_contents (path,
                       "\x7f"
                       "ELF",
                       4, NULL);
  g_autoptr (MusterSession) chief = prepare (&f);

  MUSTER_EXPECT_NULL (chief);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (Engine, has_no_graph_for_a_manager_without_one)
{
  g_auto (Fixture) f = set_up ();
  g_clear_object (&f.manager);
  f.manager = muster_session_manager_new (NULL, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  g_autoptr (MusterSession) chief = prepare (&f);
  MUSTER_EXPECT_NULL (chief);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_clear_error (&f.error);
  g_autoptr (MusterSession) worker =
      muster_session_manager_wait_for_session (f.manager, f.master, 0, NULL, NULL, &f.error);
  MUSTER_EXPECT_NULL (worker);
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.error->message, "graph must not be NULL") != NULL);
}
