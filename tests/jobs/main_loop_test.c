// SPDX-License-Identifier: Apache-2.0
#include "jobs/background.h"
#include "tests/deadline.h"
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

static const char *const nodes[] = {"a", NULL};

static GAsyncResult *
wait_for (MusterMainLoop *loop)
{
  muster_main_loop_until (loop, loop->n_back + 1);
  return loop->result;
}

#define BACK muster_main_loop_back, &loop

MUSTER_TEST (JobMainLoop, opens_a_cluster_and_runs_tasks)
{
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJobGroup) group = muster_job_group_new ();

  const char *const tensors[] = {"late:0", NULL};

  job_set_up (&f, nodes);
  muster_cluster_close (f.cluster);
  g_autoptr (MusterJobTask) late = job_ops_task (NULL, "a", 1, "late/Assign", NULL);
  g_autoptr (MusterCluster) cluster = muster_cluster_new (NULL);
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  MUSTER_EXPECT_TRUE (muster_cluster_add (cluster, "a", f.masters->pdata[0], model, &error));
  muster_cluster_open_async (cluster, 30 * MUSTER_SECOND, NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_cluster_open_finish (cluster, wait_for (&loop), &error));
  MUSTER_ASSERT_NO_ERROR (error);
  muster_cluster_run_task_async (cluster, late, test_deadline (), NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_cluster_run_task_finish (cluster, wait_for (&loop), &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterJobTask) reader = muster_job_task_new (NULL, "a", 1);
  MusterJobOutput *output = muster_job_task_add_output (reader, tensors, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  job_add (group, g_object_ref (reader));
  muster_cluster_run_async (cluster, group, test_deadline (), NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_cluster_run_finish (cluster, wait_for (&loop), &error));
  MUSTER_ASSERT_NO_ERROR (error);
  muster_job_output_fetch_async (output, test_deadline (), NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_job_output_fetch_finish (output, wait_for (&loop), &error));
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) value = muster_job_output_get (output, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (value), (gint64)7);
}

MUSTER_TEST (JobMainLoop, trains_saves_and_loads)
{
  g_auto (MusterMainLoop) loop = muster_main_loop_new ();
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  const char *const names[] = {"total", NULL};
  gint64 last = -1;
  gboolean saved = FALSE, found = FALSE;
  g_auto (GStrv) loaded = NULL;

  job_set_up (&f, nodes);
  g_autoptr (MusterJobCheckpoint) checkpoint = muster_job_checkpoint_new (f.directory, NULL);
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (f.job, checkpoint, MUSTER_NO_EPOCH, NULL);
  muster_job_runner_train_async (runner, f.cluster, test_deadline (), NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_job_runner_train_finish (runner, wait_for (&loop), &last, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (last > 0);
  muster_job_runner_save_async (runner, f.cluster, last + 1, TRUE, test_deadline (), NULL, BACK);
  MUSTER_EXPECT_TRUE (muster_job_runner_save_finish (runner, wait_for (&loop), &saved, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (saved);
  muster_job_runner_load_partial_async (runner, f.cluster, names, last + 1, NULL, test_deadline (),
                                        NULL, BACK);
  MUSTER_EXPECT_TRUE (
      muster_job_runner_load_partial_finish (runner, wait_for (&loop), &found, &loaded, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (found);
  MUSTER_EXPECT_STREQ (loaded[0], "total");
}
