// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/background.h"
#include "engine/session/local_master.h"
#include "saver/async/background.h"
#include "saver/background.h"
#include "tests/deadline.h"
#include "tests/doubles/main_loop.h"
#include "tests/gtest_shim.h"
#include "train/background.h"
#include "train/monitored/background.h"

#include <string.h>

/* A program with a main loop that trains, saves and restores a small regression on the engine, and
 * reads its checkpoints, without a call that blocks. */

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

  muster_saver_claim_directory_async (job.saver, job.directory, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_saver_claim_directory_finish (job.saver, wait_for (&job), &job.error));
  muster_saver_begin_run_async (job.saver, job.directory, NULL, -1, test_deadline (), NULL,
                                BACK (job));
  MUSTER_EXPECT_TRUE (muster_saver_begin_run_finish (job.saver, wait_for (&job), &job.error));
  g_autofree char *prefix = save (&job, 7);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_saver_check_compatible_async (job.saver, prefix, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_saver_check_compatible_finish (job.saver, wait_for (&job), &job.error));
  muster_saver_restore_async (job.saver, job.session, &options, test_deadline (), NULL, BACK (job));
  options = (MusterRestoreOptions){0};
  MUSTER_EXPECT_TRUE (
      muster_saver_restore_finish (job.saver, wait_for (&job), &restored, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (restored.prefix, prefix);
}

/* The result of a call that nobody finishes has strings and tensors, too. */
MUSTER_TEST (MainLoop, frees_what_nobody_finishes)
{
  g_auto (Job) job = job_new ();
  g_autofree char *prefix = save (&job, 7);
  const MusterRestoreOptions options = {.prefix = prefix};
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &job.error);
  const char *const names[] = {"global_step", "w", NULL};

  MUSTER_ASSERT_NOT_NULL (reader);
  muster_saver_restore_async (job.saver, job.session, &options, test_deadline (), NULL, BACK (job));
  (void)wait_for (&job);
  muster_bundle_reader_read_all_async (reader, names, NULL, NULL, BACK (job));
  (void)wait_for (&job);
  muster_bundle_reader_read_many_async (reader, names, NULL, 2, NULL, BACK (job));
  (void)wait_for (&job);
  MUSTER_EXPECT_EQ (job.loop.n_back, 4u);
}

MUSTER_TEST (MainLoop, reads_a_checkpoint)
{
  g_auto (Job) job = job_new ();
  g_autofree char *prefix = save (&job, 7);
  const char *const names[] = {"global_step", "w", NULL};
  MusterTensor *tensors[2] = {NULL, NULL};
  gsize n = 0;

  muster_bundle_reader_open_async (NULL, prefix, NULL, BACK (job));
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open_finish (wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_bundle_reader_read_async (reader, "w", NULL, BACK (job));
  g_autoptr (MusterTensor) w =
      muster_bundle_reader_read_finish (reader, wait_for (&job), &job.error);
  muster_bundle_reader_read_slice_async (reader, "w", "", NULL, BACK (job));
  g_autoptr (MusterTensor) same =
      muster_bundle_reader_read_slice_finish (reader, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_tensor_dtype (w), MUSTER_FLOAT);
  MUSTER_EXPECT_EQ (muster_tensor_dtype (same), MUSTER_FLOAT);
  muster_bundle_reader_read_many_async (reader, names, NULL, 2, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_bundle_reader_read_many_finish (reader, wait_for (&job), tensors, &job.error));
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_tensor_dtype (tensors[0]), MUSTER_INT64);
  for (int i = 0; i < 2; i++)
    muster_tensor_unref (tensors[i]);
  muster_bundle_reader_read_all_async (reader, names, NULL, NULL, BACK (job));
  g_autofree MusterTensor **all =
      muster_bundle_reader_read_all_finish (reader, wait_for (&job), &n, &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (n, (gsize)2);
  for (gsize i = 0; i < n; i++)
    muster_tensor_unref (all[i]);
  muster_bundle_reader_verify_async (reader, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_bundle_reader_verify_finish (reader, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (MainLoop, reads_nothing_once_it_is_cancelled)
{
  g_auto (Job) job = job_new ();
  g_autofree char *prefix = save (&job, 7);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, &job.error);

  g_cancellable_cancel (cancellable);
  muster_bundle_reader_open_async (NULL, prefix, cancellable, BACK (job));
  MUSTER_EXPECT_NULL (muster_bundle_reader_open_finish (wait_for (&job), &job.error));
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&job.error);
  muster_bundle_reader_read_async (reader, "w", cancellable, BACK (job));
  MUSTER_EXPECT_NULL (muster_bundle_reader_read_finish (reader, wait_for (&job), &job.error));
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

MUSTER_TEST (MainLoop, saves_while_the_model_is_trained)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterAsyncSaver) saver =
      muster_async_saver_new (job.saver, job.session, NULL, &job.error);
  g_autofree char *other = g_build_filename (job.directory, "other", NULL);
  const MusterRestoreOptions options = {.directory = job.directory};
  g_auto (MusterRestored) restored = {0};

  muster_async_saver_prepare_async (saver, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_async_saver_prepare_finish (saver, wait_for (&job), &job.error));
  muster_async_saver_save_async (saver, job.directory, 3, test_deadline (), NULL, BACK (job));
  g_autoptr (MusterSaveTicket) ticket =
      muster_async_saver_save_finish (saver, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  muster_save_ticket_wait_async (ticket, MUSTER_SAVE_DURABLE, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_save_ticket_wait_finish (ticket, wait_for (&job), &job.error));
  muster_async_saver_save_in_tiers_async (saver, job.directory, 4, 0, test_deadline (), NULL,
                                          BACK (job));
  g_autoptr (MusterSaveTicket) second =
      muster_async_saver_save_in_tiers_finish (saver, wait_for (&job), &job.error);
  muster_async_saver_sync_saves_async (saver, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_async_saver_sync_saves_finish (saver, wait_for (&job), &job.error));
  muster_async_saver_write_async (saver, other, test_deadline (), NULL, BACK (job));
  g_autoptr (MusterSaveTicket) third =
      muster_async_saver_write_finish (saver, wait_for (&job), &job.error);
  muster_async_saver_sync_async (saver, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_async_saver_sync_finish (saver, wait_for (&job), &job.error));
  muster_async_saver_read_async (saver, other, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_async_saver_read_finish (saver, wait_for (&job), &job.error));
  muster_async_saver_restore_async (saver, &options, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_async_saver_restore_finish (saver, wait_for (&job), &restored, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (restored.prefix != NULL && g_str_has_suffix (restored.prefix, "-4"));
  muster_async_saver_shutdown_async (saver, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_async_saver_shutdown_finish (saver, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (MainLoop, keeps_checkpoints_by_number)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterCheckpointManager) manager = muster_checkpoint_manager_new (
      muster_scaffold_meta_graph (job.scaffold), job.directory, NULL, &job.error);
  g_auto (MusterSaved) saved = {0};
  char *restored = (char *)&job;

  muster_checkpoint_manager_restore_or_initialize_async (manager, job.session, test_deadline (),
                                                         NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_restore_or_initialize_finish (
      manager, wait_for (&job), &restored, &job.error));
  MUSTER_EXPECT_NULL (restored);
  muster_checkpoint_manager_save_async (manager, job.session, -1, FALSE, test_deadline (), NULL,
                                        BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_manager_save_finish (manager, wait_for (&job), &saved, &job.error));
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (saved.prefix, "/ckpt-1"));
  muster_checkpoint_manager_sync_async (manager, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_checkpoint_manager_sync_finish (manager, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

/* --- training --- */

typedef struct {
  MusterFeed feeds[2];
  const char *targets[1];
  MusterStep step;
} Training;

static void
train_step (Job *job, Training *training)
{
  *training = (Training){.feeds = {{"x:0", job->two}, {"y:0", job->two}},
                         .targets = {muster_scaffold_train_op (job->scaffold)}};
  training->step = (MusterStep){
      .feeds = training->feeds, .n_feeds = 2, .targets = training->targets, .n_targets = 1};
}

static MusterMonitoredSession *
open_monitored (Job *job)
{
  MusterMonitoredSessionOptions options = {.scaffold = job->scaffold, .master = job->master};
  g_auto (MusterSessionReport) report = {0};

  muster_monitored_session_new_async (&options, NULL, BACK (*job));
  options = (MusterMonitoredSessionOptions){0};
  MusterMonitoredSession *session =
      muster_monitored_session_new_finish (wait_for (job), &report, &job->error);
  MUSTER_EXPECT_NO_ERROR (job->error);
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_OUTCOME_READY);
  return session;
}

MUSTER_TEST (MainLoop, trains_in_a_monitored_session)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterMonitoredSession) session = open_monitored (&job);
  g_autoptr (MusterStepBuilder) builder = muster_step_builder_new ();
  Training training;

  MUSTER_ASSERT_NOT_NULL (session);
  train_step (&job, &training);
  muster_monitored_session_run_async (session, &training.step, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_run_finish (session, wait_for (&job), NULL, NULL, &job.error));
  muster_monitored_session_run_without_hooks_async (session, &training.step, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_monitored_session_run_without_hooks_finish (session, wait_for (&job),
                                                                         NULL, NULL, &job.error));
  muster_step_builder_fetch (builder, "global_step");
  muster_monitored_session_run_builder_async (session, builder, TRUE, 30 * MUSTER_SECOND, NULL,
                                              BACK (job));
  g_autoptr (GPtrArray) fetched =
      muster_monitored_session_run_builder_finish (session, wait_for (&job), &job.error);
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (fetched->pdata[0]), (gint64)2);
  muster_monitored_session_finish_async (session, NULL, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish_finish (session, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (MainLoop, ends_a_monitored_session_well)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterMonitoredSession) session = open_monitored (&job);

  MUSTER_ASSERT_NOT_NULL (session);
  muster_monitored_session_end_async (session, test_deadline (), NULL, BACK (job));
  MUSTER_EXPECT_TRUE (muster_monitored_session_end_finish (session, wait_for (&job), &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

/* The next run isn't. */
MUSTER_TEST (MainLoop, cancels_one_run_of_a_monitored_session)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterMonitoredSession) session = open_monitored (&job);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Training training;

  MUSTER_ASSERT_NOT_NULL (session);
  train_step (&job, &training);
  g_cancellable_cancel (cancellable);
  muster_monitored_session_run_async (session, &training.step, cancellable, BACK (job));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_run_finish (session, wait_for (&job), NULL, NULL, &job.error));
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&job.error);
  muster_monitored_session_run_async (session, &training.step, NULL, BACK (job));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_run_finish (session, wait_for (&job), NULL, NULL, &job.error));
  MUSTER_EXPECT_NO_ERROR (job.error);
}

MUSTER_TEST (MainLoop, trains_to_a_step)
{
  g_auto (Job) job = job_new ();
  MusterTensor *arrays[] = {job.two, job.two};
  g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, 1, 1, &job.error);
  const char *feeds[] = {"x:0", "y:0"};
  MusterTraining training = {.scaffold = job.scaffold,
                             .master = job.master,
                             .batches = batches,
                             .feeds = feeds,
                             .n_feeds = 2,
                             .until_step = 5,
                             .checkpoint_dir = job.directory};
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
  const MusterTraining training = {.scaffold = job.scaffold,
                                   .master = job.master,
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
