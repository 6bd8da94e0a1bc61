// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "tests/deadline.h"
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"
#include "train/train.h"

#include <string.h>

/* A program with a main loop that trains, saves and restores a small regression on the engine
 * without a call that blocks. */

typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  MusterTensor *two; /* [1, 2] */
  char *directory;
  MusterMainLoop loop;
  GError *error;
} Job;

static void
prepare (Job *job)
{
  job->session = muster_master_create_session (job->master, muster_scaffold_graph (job->scaffold),
                                               NULL, test_deadline (), NULL, &job->error);
  muster_session_run_op (job->session, muster_scaffold_init_op (job->scaffold), test_deadline (),
                         NULL, &job->error);
  MUSTER_EXPECT_NO_ERROR (job->error);
}

static Job
job_new (void)
{
  const gint64 dims[] = {2};
  const float values[] = {1, 2};
  Job job = {.scaffold = muster_scaffold_load ("tests/fixtures/linreg.meta", NULL),
             .master = muster_local_master_new (),
             .two =
                 muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, values, sizeof values, NULL),
             .directory = g_strdup (muster_test_tmpdir ())};
  job.saver = muster_saver_new (muster_scaffold_meta_graph (job.scaffold), NULL, NULL);
  job.loop = muster_main_loop_new ();
  prepare (&job);
  return job;
}

static void
job_clear (Job *job)
{
  muster_main_loop_clear (&job->loop);
  g_clear_object (&job->session);
  g_clear_object (&job->saver);
  g_clear_object (&job->master);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  muster_tensor_unref (job->two);
  g_free (job->directory);
  g_clear_error (&job->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

static GAsyncResult *
wait_for (Job *job)
{
  muster_main_loop_until (&job->loop, job->loop.n_back + 1);
  return job->loop.result;
}

#define BACK(job) muster_main_loop_back, &(job).loop

static char *
save (Job *job, gint64 step)
{
  muster_saver_save_async (job->saver, job->session, job->directory, step, test_deadline (), NULL,
                           BACK (*job));
  return muster_saver_save_finish (job->saver, wait_for (job), &job->error);
}

MUSTER_TEST (MainLoop, saves_and_restores)
{
  g_auto (Job) job = job_new ();
  MusterRestoreOptions options = {.directory = job.directory};
  g_auto (MusterRestored) restored = {0};
  g_autofree char *prefix = save (&job, 7);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_saver_restore_async (job.saver, job.session, &options, test_deadline (), NULL, BACK (job));
  options = (MusterRestoreOptions){0};
  MUSTER_EXPECT_TRUE (
      muster_saver_restore_finish (job.saver, wait_for (&job), &restored, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (restored.prefix, prefix);
}

MUSTER_TEST (MainLoop, frees_what_nobody_finishes)
{
  g_auto (Job) job = job_new ();
  g_autofree char *prefix = save (&job, 7);
  const MusterRestoreOptions options = {.prefix = prefix};

  muster_saver_restore_async (job.saver, job.session, &options, test_deadline (), NULL, BACK (job));
  (void)wait_for (&job);
  muster_saver_save_async (job.saver, job.session, job.directory, 8, test_deadline (), NULL,
                           BACK (job));
  (void)wait_for (&job);
  MUSTER_EXPECT_EQ (job.loop.n_back, 3u);
}

/* --- training --- */

MUSTER_TEST (MainLoop, trains_to_a_step)
{
  g_auto (Job) job = job_new ();
  MusterTensor *arrays[] = {job.two, job.two};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, 1, 1, &job.error);
  const char *feeds[] = {"x:0", "y:0"};
  MusterTraining training = {.session.scaffold = job.scaffold,
                             .session.master = job.master,
                             .batches = batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 5,
                             .session.saving.checkpoint_dir = job.directory};
  g_auto (MusterTrained) trained = {0};
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_train_async (&training, NULL, BACK (job));
  training = (MusterTraining){0};
  feeds[0] = NULL;
  MUSTER_EXPECT_TRUE (muster_train_finish (wait_for (&job), &trained, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (trained.step, (gint64)5);
  MUSTER_EXPECT_TRUE (trained.is_reached);
}

/* The report is set on failure, too. */
MUSTER_TEST (MainLoop, reports_a_training_that_cannot_begin)
{
  g_auto (Job) job = job_new ();
  const char *feeds[] = {"nothing:0"};
  const MusterTraining training = {.session.scaffold = job.scaffold,
                                   .session.master = job.master,
                                   .feeds = feeds,
                                   .n_feeds = 1,
                                   .until_step = 5};
  MusterTrained trained;
  memset (&trained, 0xff, sizeof trained);
  muster_train_async (&training, NULL, BACK (job));
  MUSTER_EXPECT_FALSE (muster_train_finish (wait_for (&job), &trained, &job.error));
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (trained.step, (gint64)-1);
  MUSTER_EXPECT_NULL (trained.report.phases);
  muster_trained_clear (&trained);
}
