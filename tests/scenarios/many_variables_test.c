// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/engine_job.h"

/* A model with more variables than any number in a graph may stand for on its own: prepared, waited
 * for, saved and restored in another life. */

#define N_VARIABLES 100001

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

/* Prepares the model on another, empty master. */
static MusterSession *
prepare_anew (EngineJob *f)
{
  g_clear_object (&f->master);
  f->master = muster_local_master_new ();
  return engine_job_prepare (f);
}

/* On an empty master: all are missing, and named. */
static void
expect_all_missing (EngineJob *f)
{
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
  g_auto (EngineJob) f = engine_job_new (make_model ());
  expect_all_missing (&f);

  g_autoptr (MusterSession) chief = prepare_anew (&f);
  MUSTER_ASSERT_NO_ERROR (f.error);
  g_autofree char *saved = muster_saver_save (f.saver, chief, muster_test_tmpdir (), 7,
                                              MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);

  g_autoptr (MusterSession) next = prepare_anew (&f);
  MUSTER_ASSERT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.report.restored_from, saved);
  g_autoptr (MusterSession) worker =
      muster_session_manager_wait_for_session (f.manager, f.master, 0, NULL, NULL, &f.error);
  MUSTER_ASSERT_NO_ERROR (f.error);
}
