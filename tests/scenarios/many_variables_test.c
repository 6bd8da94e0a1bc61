// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "graph/meta_graph/ready_op.h"
#include "session/manager.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

/* A model with more variables than any number in a graph may stand for on its own: prepared, waited
 * for, saved and restored in another life. */

#define N_VARIABLES 100001

typedef struct {
  MusterMetaGraph *meta_graph;
  MusterGraph *graph;
  char *ready_op;
  MusterMaster *master;
  MusterSaver *saver;
  MusterSessionManager *manager;
  MusterSessionReport report;
  GError *error;
} Fixture;

static MusterMetaGraph *
make_model (void)
{
  MusterSmallVariable *variables = g_new0 (MusterSmallVariable, N_VARIABLES);
  g_autoptr (GStringChunk) names = g_string_chunk_new (1 << 16);

  for (guint i = 0; i < N_VARIABLES; i++) {
    char name[16];
    g_snprintf (name, sizeof name, "v%u", i);
    variables[i] =
        (MusterSmallVariable){.name = g_string_chunk_insert (names, name), .dtype = MUSTER_INT32};
  }
  MusterMetaGraph *model = muster_small_model_new (variables, N_VARIABLES, 5);
  g_free (variables);
  return model;
}

static void
set_up (Fixture *f)
{
  f->meta_graph = make_model ();
  f->graph = muster_graph_with_ready_op (f->meta_graph, FALSE, &f->ready_op, &f->error);
  MUSTER_ASSERT_NO_ERROR (f->error);
  f->saver = muster_saver_new (f->meta_graph, NULL, &f->error);
  MusterSessionManagerOptions options = {.ready_op = f->ready_op};
  f->manager = muster_session_manager_new (f->graph, &options, &f->error);
}

static void
tear_down (Fixture *f)
{
  muster_session_report_clear (&f->report);
  g_clear_object (&f->manager);
  g_clear_object (&f->saver);
  g_clear_object (&f->master);
  g_free (f->ready_op);
  g_clear_pointer (&f->graph, muster_graph_unref);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
  g_clear_error (&f->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Begins another life on an empty master. */
static MusterSession *
prepare (Fixture *f)
{
  MusterPrepareOptions options = {
      .init_op = "init", .saver = f->saver, .checkpoint_dir = muster_test_tmpdir ()};

  g_set_object (&f->master, NULL);
  f->master = muster_local_master_new ();
  muster_session_report_clear (&f->report);
  return muster_session_manager_prepare_session (f->manager, f->master, &options, &f->report, NULL,
                                                 &f->error);
}

/* On an empty master: all are missing, and named. */
static void
expect_all_missing (Fixture *f)
{
  f->master = muster_local_master_new ();
  g_autoptr (MusterSession) worker = muster_session_manager_wait_for_session (
      f->manager, f->master, 0, &f->report, NULL, &f->error);

  MUSTER_EXPECT_NULL (worker);
  MUSTER_EXPECT_EQ ((int)f->report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  const MusterReason *variables = muster_reasons_find (f->report.reasons, "variables");
  MUSTER_ASSERT_TRUE (variables != NULL);
  MUSTER_ASSERT_EQ (variables->n_missing, (guint)N_VARIABLES);
  MUSTER_EXPECT_STREQ (variables->names[N_VARIABLES - 1], "v100000");
  g_clear_error (&f->error);
}

/* One test: to make the model takes longest. */
MUSTER_TEST (ManyVariables, are_named_prepared_saved_restored_and_waited_for)
{
  g_auto (Fixture) f = {0};
  set_up (&f);
  expect_all_missing (&f);

  g_autoptr (MusterSession) chief = prepare (&f);
  MUSTER_ASSERT_NO_ERROR (f.error);
  g_autofree char *saved = muster_saver_save (f.saver, chief, muster_test_tmpdir (), 7,
                                              MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  g_autoptr (MusterSession) next = prepare (&f);
  MUSTER_ASSERT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.report.restored_from, saved);
  g_autoptr (MusterSession) worker =
      muster_session_manager_wait_for_session (f.manager, f.master, 0, NULL, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);
}
