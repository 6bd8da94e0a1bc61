// SPDX-License-Identifier: Apache-2.0
/* A job that saves in two tiers. */
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/directory_lock_private.h"
#include "engine/session/local_master.h"
#include "saver/tiered.h"
#include "tests/doubles/faulty_storage.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "train/monitored_training.h"
#include "train/preemption/preemption.h"

#include <signal.h>

#define LIMIT_US (30 * MUSTER_SECOND)

typedef struct {
  MusterScaffold *scaffold;
  MusterFaultyStorage *storage;
  MusterSaver *saver;
  MusterMaster *master;
  MusterMonitoredSession *session;
  char *fast, *run;
  GString *saved, *copied;   /* " 0 4": the steps that were reported */
  MusterDirectoryLock *held; /* of the durable tier, until the last save */
} Job;

static void
new_saver (Job *job)
{
  g_autoptr (GError) error = NULL;
  const MusterTier fast = {.directory = job->fast, .save_steps = 2, .max_to_keep = 3};
  const MusterSaverOptions options = {
      .storage = MUSTER_STORAGE (job->storage), .fast = &fast, .n_fast = 1};
  g_clear_object (&job->saver);
  g_clear_object (&job->master);
  job->saver = muster_saver_new (muster_scaffold_meta_graph (job->scaffold), &options, &error);
  g_assert_no_error (error);
  job->master = muster_local_master_new_with (MUSTER_STORAGE (job->storage), 0);
}

static Job
set_up (void)
{
  g_autoptr (GError) error = NULL;
  Job job = {.scaffold = muster_scaffold_load ("tests/fixtures/linreg.meta", &error),
             .storage = muster_faulty_storage_new (),
             .fast = g_build_filename (muster_test_tmpdir (), "fast", NULL),
             .run = g_build_filename (muster_test_tmpdir (), "run", NULL),
             .saved = g_string_new (NULL),
             .copied = g_string_new (NULL)};
  g_assert_no_error (error);
  new_saver (&job);
  return job;
}

static void
tear_down (Job *job)
{
  muster_faulty_storage_set (job->storage, NULL, MUSTER_FAULT_NONE);
  g_clear_object (&job->session);
  g_clear_object (&job->master);
  g_clear_object (&job->saver);
  g_clear_pointer (&job->held, muster_directory_unlock);
  g_clear_object (&job->storage);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_free (job->fast);
  g_free (job->run);
  g_string_free (job->saved, TRUE);
  g_string_free (job->copied, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static void
note_saved (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterSaved *saved, gpointer data)
{
  g_string_append_printf (((Job *)data)->saved, " %" G_GINT64_FORMAT, saved->step);
}

static void
note_copied (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterTierCopied *copied,
             gpointer data)
{
  g_string_append_printf (((Job *)data)->copied, " %" G_GINT64_FORMAT, copied->step);
}

/* The fifth step's is the last. */
static void
let_go (MusterSaverObserver *observer G_GNUC_UNUSED, MusterSession *session G_GNUC_UNUSED,
        gint64 step, gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
        gpointer data)
{
  if (step == 5)
    g_clear_pointer (&((Job *)data)->held, muster_directory_unlock);
}

static gboolean
open_job (Job *job, gint64 save_steps, gboolean is_blocking)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaverObserver) observer = muster_saver_observer_new ();
  g_signal_connect (observer, "before-save", G_CALLBACK (let_go), job);
  g_signal_connect (observer, "saved", G_CALLBACK (note_saved), job);
  g_signal_connect (observer, "copied", G_CALLBACK (note_copied), job);
  const MusterMonitoredTrainingOptions options = {.scaffold = job->scaffold,
                                                  .master = job->master,
                                                  .saving.checkpoint_dir = job->run,
                                                  .saving.saver = job->saver,
                                                  .saving.save_steps = save_steps,
                                                  .saving.save_blocking = is_blocking,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER,
                                                  .saving.saver_observer = observer};
  job->session = muster_monitored_training_session_new (&options, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return job->session != NULL;
}

static void
train (Job *job, int n)
{
  const char *targets[] = {muster_scaffold_train_op (job->scaffold)};
  const gint64 dims[] = {1};
  const float one = 1;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, &one, sizeof one, NULL);
  const MusterFeed feeds[] = {{"x:0", x}, {"y:0", x}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 2, .targets = targets, .n_targets = 1};

  for (int i = 0; i < n; i++)
    (void)muster_monitored_session_run (job->session, &step, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* As if the process had been killed: no last save. */
static void
leave (Job *job)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) failed = g_error_new (MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "killed");
  (void)muster_monitored_session_finish (job->session, failed, MUSTER_WAIT_FOREVER, &error);
  g_clear_object (&job->session);
  g_string_truncate (job->saved, 0);
  g_string_truncate (job->copied, 0);
  new_saver (job);
}

static gboolean
finish (Job *job)
{
  g_autoptr (GError) error = NULL;
  const gboolean is_well =
      muster_monitored_session_finish (job->session, NULL, MUSTER_WAIT_FOREVER, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  g_clear_object (&job->session);
  return is_well;
}

/* A copy keeps its source from being removed, and ends with its session. */
static void
wait_for_copies (Job *job)
{
  MUSTER_EXPECT_TRUE (
      muster_saver_sync_copies (job->saver, g_get_monotonic_time () + LIMIT_US, NULL, NULL));
}

/* The steps in a directory, "3 4 5". */
static char *
steps_in (const char *directory)
{
  g_auto (GStrv) list = muster_checkpoint_list (NULL, directory, NULL);
  GString *steps = g_string_new (NULL);
  for (char **prefix = list; prefix != NULL && *prefix != NULL; prefix++)
    g_string_append_printf (steps, "%s%d", steps->len ? " " : "",
                            (int)muster_checkpoint_step (*prefix));
  return g_string_free (steps, FALSE);
}

MUSTER_TEST (TrainTiers, each_at_its_own_interval_and_the_last_save_in_the_durable_one)
{
  g_auto (Job) job = set_up ();
  MUSTER_ASSERT_TRUE (open_job (&job, 5, TRUE));
  for (int i = 0; i < 7; i++) { /* what is being copied isn't removed */
    train (&job, 1);
    wait_for_copies (&job);
  }

  MUSTER_EXPECT_TRUE (finish (&job));

  g_autofree char *fast = steps_in (job.fast), *run = steps_in (job.run);
  MUSTER_EXPECT_STREQ (fast, "4 5 7"); /* 0, 2, 4, 5, which the other was due at, and 7 */
  MUSTER_EXPECT_STREQ (run, "0 5 7");
  MUSTER_EXPECT_STREQ (job.saved->str, " 0 2 4 5 7 7");
}

/* It would have taken the time of the last save: the copy isn't done before that. */
MUSTER_TEST (TrainTiers, end_without_waiting_for_a_copy)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  MUSTER_ASSERT_TRUE (open_job (&job, 4, TRUE));
  wait_for_copies (&job);
  job.held =
      muster_directory_lock (MUSTER_STORAGE (job.storage), job.run, until_us, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  train (&job, 5);

  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (job.session, NULL, until_us, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *run = steps_in (job.run);
  MUSTER_EXPECT_STREQ (run, "0 5");
}

MUSTER_TEST (TrainTiers, in_the_background_too)
{
  g_auto (Job) job = set_up ();
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, FALSE));
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (job.copied->len == 0 && g_get_monotonic_time () < until_us)
    train (&job, 1);
  train (&job, 5);

  MUSTER_EXPECT_TRUE (finish (&job));

  MUSTER_EXPECT_GT (job.copied->len, 0u);
  g_autofree char *latest = muster_latest_checkpoint (NULL, job.run, NULL);
  MUSTER_EXPECT_TRUE (latest != NULL && muster_checkpoint_step (latest) >= 6);
}

MUSTER_TEST (TrainTiers, resume_from_the_fast_one_and_give_the_other_a_copy)
{
  g_auto (Job) job = set_up ();
  MUSTER_ASSERT_TRUE (open_job (&job, 1000, TRUE));
  train (&job, 5);
  wait_for_copies (&job);
  leave (&job);

  MUSTER_ASSERT_TRUE (open_job (&job, 1000, TRUE));
  const gint64 until_us = g_get_monotonic_time () + LIMIT_US;
  while (job.copied->len == 0 && g_get_monotonic_time () < until_us)
    train (&job, 1);

  MUSTER_EXPECT_STREQ (job.copied->str, " 4");
  g_autofree char *run = steps_in (job.run);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (run, "4"));
  MUSTER_EXPECT_TRUE (finish (&job));
}

/* The next one gets a checkpoint at once, then at its own interval. */
MUSTER_TEST (TrainTiers, go_on_without_a_fast_one_that_vanishes_in_the_middle)
{
  g_auto (Job) job = set_up ();
  heard_begin (G_LOG_LEVEL_WARNING);
  MUSTER_ASSERT_TRUE (open_job (&job, 5, TRUE));
  train (&job, 6);
  wait_for_copies (&job);
  muster_faulty_storage_set (job.storage, job.fast, MUSTER_FAULT_BROKEN);

  train (&job, 10);

  MUSTER_EXPECT_EQ (heard_count ("tier", "*isn't used any more*"), 1u);
  heard_end ();
  MUSTER_EXPECT_TRUE (finish (&job));
  g_autofree char *run = steps_in (job.run);
  MUSTER_EXPECT_STREQ (run, "5 7 10 15 16");
  muster_faulty_storage_set (job.storage, NULL, MUSTER_FAULT_NONE);
  new_saver (&job);
  MUSTER_ASSERT_TRUE (open_job (&job, 5, TRUE));
  train (&job, 2);
  g_autofree char *fast = steps_in (job.fast);
  MUSTER_EXPECT_TRUE (strstr (fast, "18") != NULL); /* tried again */
  MUSTER_EXPECT_TRUE (finish (&job));
}

/* The one after a tier was dropped is tried at once, and then at the next tier's interval. */
MUSTER_TEST (TrainTiers, do_not_try_at_each_step_if_no_tier_has_space)
{
  g_auto (Job) job = set_up ();
  MUSTER_ASSERT_TRUE (open_job (&job, 5, TRUE));
  train (&job, 1);
  wait_for_copies (&job);
  muster_faulty_storage_set (job.storage, muster_test_tmpdir (), MUSTER_FAULT_NO_SPACE);

  train (&job, 8);

  MusterSaveStatus saves;
  muster_saver_status (job.saver, &saves);
  MUSTER_EXPECT_EQ (saves.n_failed, 2u); /* steps 2 and 5 */
  muster_faulty_storage_set (job.storage, NULL, MUSTER_FAULT_NONE);
  MUSTER_EXPECT_TRUE (finish (&job));
}

/* A machine that is preempted may lose its memory; nor does a save there tell how long the last one
 * takes. */
MUSTER_TEST (TrainTiers, what_is_in_a_fast_one_is_not_durable_for_a_preemption)
{
  g_auto (Job) job = set_up ();
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (0, NULL);
  g_auto (MusterPreemptionReport) first = {0};
  g_autofree char *in_fast = g_build_filename (job.fast, "model.ckpt-4", NULL);
  g_autofree char *in_run = g_build_filename (job.run, "model.ckpt-2", NULL);
  muster_preemption_set_saver (preemption, job.saver, job.run);

  muster_preemption_note_durable (preemption, 2, in_run, 0, 0);
  muster_preemption_note_durable (preemption, 4, in_fast, 1000, 10);
  muster_preemption_request (preemption, SIGTERM);
  (void)muster_preemption_report (preemption, &first);

  MUSTER_EXPECT_EQ (first.durable_step, 2);
  MUSTER_EXPECT_STREQ (first.durable, in_run);
}

static void
damage (const char *directory, int step)
{
  g_autofree char *name = g_strdup_printf ("model.ckpt-%d.data-00000-of-00001", step);
  g_autofree char *path = g_build_filename (directory, name, NULL);
  g_autofree char *bytes = NULL;
  gsize size;

  MUSTER_ASSERT_TRUE (g_file_get_contents (path, &bytes, &size, NULL));
  bytes[size / 2] ^= 1;
  MUSTER_EXPECT_TRUE (g_file_set_contents (path, bytes, (gssize)size, NULL));
}

/* The last save isn't left out because the session before had saved a step with that number. */
MUSTER_TEST (TrainTiers, save_the_last_step_again_after_a_session_that_went_back)
{
  g_auto (Job) job = set_up ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (open_job (&job, 7, TRUE));
  wait_for_copies (&job); /* that of 0, which a later save would replace */
  train (&job, 8);
  wait_for_copies (&job);
  damage (job.fast, 6);
  damage (job.fast, 7);
  damage (job.run, 7);
  MUSTER_EXPECT_TRUE (muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &error));

  train (&job, 1);        /* after step 4 */
  wait_for_copies (&job); /* that of 4, which the last save would cancel */
  train (&job, 2);
  MUSTER_EXPECT_TRUE (finish (&job));

  g_autofree char *run = steps_in (job.run);
  MUSTER_TRACE ("%s", job.saved->str);
  MUSTER_EXPECT_STREQ (run, "0 4 7");
}
