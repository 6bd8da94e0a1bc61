// SPDX-License-Identifier: Apache-2.0
/* What a chief does with a model that the chief before it has left on the master. */
#include "checkpoint/state/checkpoint_state.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"
#include "train/position/position_private.h"

#define N_STEPS 5 /* of which the first three are saved */

/* A chief that takes some steps, and dies. */
static void
leave_a_model (Job *job)
{
  g_auto (Life) chief = {.job = job};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (int i = 0; i < N_STEPS; i++)
    MUSTER_ASSERT_TRUE (life_step (&chief));
}

#define N_TRIES 10000

/* The server learns a moment later that a chief is gone. */
static void
begin_after_another (Life *chief)
{
  life_begin (chief);
  for (int i = 0;
       i < N_TRIES && chief->error != NULL && strstr (chief->error->message, "can't claim") != NULL;
       i++) {
    life_end (chief);
    life_begin (chief);
  }
}

/* Begins another chief, which is expected to be at that position. */
static void
expect_chief (Life *chief, gboolean continues, gint64 position)
{
  begin_after_another (chief);
  MUSTER_ASSERT_NO_ERROR (chief->error);
  MUSTER_EXPECT_EQ (chief->continued, continues);
  MUSTER_EXPECT_EQ (muster_position_hook_position (chief->hook), position);
  MUSTER_EXPECT_TRUE (life_step (chief));
  MUSTER_EXPECT_NO_ERROR (chief->error);
}

MUSTER_TEST (LivingModel, goes_on_under_another_chief_while_workers_step)
{
  for (guint n_tasks = 1; n_tasks <= 2; n_tasks++) {
    g_auto (Job) job = job_set_up_served (n_tasks);
    g_auto (Life) worker = {.job = &job, .task = 1}, chief = {.job = &job};

    job_name_directory (&job, n_tasks == 1 ? "alone" : "two");
    leave_a_model (&job);
    if (n_tasks == 2) {
      life_begin (&worker);
      MUSTER_ASSERT_NO_ERROR (worker.error);
      MUSTER_EXPECT_TRUE (life_step (&worker));
    }
    expect_chief (&chief, TRUE, N_STEPS);
    if (n_tasks == 2) { /* in the session that it had */
      MUSTER_EXPECT_TRUE (life_step (&worker));
      MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (worker.session), 0u);
    }
    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (chief.session, NULL, MUSTER_WAIT_FOREVER, &chief.error));
    g_autofree char *latest =
        muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
    gint64 n_done = -1;
    g_autofree char *wrong = muster_seen_model_check (latest, n_tasks, &n_done);
    MUSTER_EXPECT_STREQ (wrong, NULL);
    MUSTER_EXPECT_EQ (n_done, N_STEPS + 1 + (n_tasks == 2 ? 2 : 0));
  }
}

MUSTER_TEST (LivingModel, goes_on_under_one_chief_after_another)
{
  g_auto (Job) job = job_set_up_served (2);
  leave_a_model (&job);
  for (int i = 0; i < 4; i++) {
    g_auto (Life) chief = {.job = &job};
    expect_chief (&chief, TRUE, N_STEPS + i);
  }
}

static char *
latest_of (const Job *job)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), job->directory, NULL);
  return latest != NULL ? g_path_get_basename (latest) : NULL;
}

/* It may be what the chief before died of: a checkpoint of it would take the place of a good one.
 */
MUSTER_TEST (LivingModel, is_saved_once_a_step_has_passed)
{
  g_auto (Job) job = job_set_up_served (1);
  leave_a_model (&job);
  g_autofree char *before = latest_of (&job);
  for (int i = 0; i < 2; i++) {
    g_auto (Life) chief = {.job = &job};
    begin_after_another (&chief);
    MUSTER_ASSERT_NO_ERROR (chief.error);
    MUSTER_EXPECT_TRUE (chief.continued);
    g_autofree char *unchanged = latest_of (&job);
    MUSTER_EXPECT_STREQ (unchanged, before);
    if (i == 0)
      continue; /* dies of it */
    MUSTER_EXPECT_TRUE (life_step (&chief));
    g_autofree char *first = latest_of (&job);
    MUSTER_EXPECT_STREQ (first, "model.ckpt-6");
  }
}

MUSTER_TEST (LivingModel, is_restored_over_a_step_that_was_cut_off)
{
  for (gint64 task = 0; task < 2; task++) {
    g_auto (Job) job = job_set_up_served (2);
    g_auto (Life) chief = {.job = &job};

    job_name_directory (&job, task == 0 ? "chiefs-step" : "workers-step");
    job.quiesce_us = 20 * MUSTER_MILLISECOND;
    {
      g_auto (Life) before = {.job = &job};
      life_begin (&before);
      MUSTER_ASSERT_NO_ERROR (before.error);
      for (int i = 0; i < N_STEPS; i++)
        MUSTER_ASSERT_TRUE (life_step (&before));
      job_cut_off_a_step (&job, before.scaffold, task);
    }
    expect_chief (&chief, FALSE, 3);
  }
}

MUSTER_TEST (LivingModel, is_restored_where_that_is_asked_for)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) chief = {.job = &job, .always_restores = TRUE};
  leave_a_model (&job);
  expect_chief (&chief, FALSE, 3);
}

MUSTER_TEST (LivingModel, is_restored_under_another_graph)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) chief = {.job = &job, .work = 7};
  leave_a_model (&job);
  expect_chief (&chief, FALSE, 3);
}

MUSTER_TEST (LivingModel, is_restored_after_a_run_that_failed)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) before = {.job = &job}, chief = {.job = &job};
  g_autoptr (GError) nan =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "NaN loss during training");
  g_autoptr (GError) error = NULL;

  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  for (int i = 0; i < N_STEPS; i++)
    MUSTER_ASSERT_TRUE (life_step (&before));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (before.session, nan, MUSTER_WAIT_FOREVER, &error));
  life_end (&before);
  expect_chief (&chief, FALSE, 3);
}

/* It is known to the coordinator alone. */
MUSTER_TEST (LivingModel, is_restored_after_a_thread_that_failed)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) before = {.job = &job}, chief = {.job = &job};
  g_autoptr (GError) nan =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "NaN loss in a thread");
  g_autoptr (GError) error = NULL;

  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  for (int i = 0; i < N_STEPS; i++)
    MUSTER_ASSERT_TRUE (life_step (&before));
  muster_coordinator_request_stop (muster_monitored_session_coordinator (before.session), nan,
                                   NULL);
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (before.session, NULL, MUSTER_WAIT_FOREVER, &error));
  life_end (&before);
  /* the hooks' ends have saved what was there */
  begin_after_another (&chief);
  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_FALSE (chief.continued);
}

/* Another directory has another model, even if it is a copy. */
MUSTER_TEST (LivingModel, is_restored_from_another_directory)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) chief = {.job = &job}, back = {.job = &job};
  g_autofree char *first = NULL;

  leave_a_model (&job);
  first = g_strdup (job.directory);
  job_name_directory (&job, "other");
  {
    g_autofree char *command = g_strdup_printf ("cp -r '%s' '%s'", first, job.directory);
    MUSTER_ASSERT_TRUE (g_spawn_command_line_sync (command, NULL, NULL, NULL, NULL));
    expect_chief (&chief, FALSE, 3);
  }
  life_end (&chief);
  g_free (job.directory);
  job.directory = g_strdup (first);
  expect_chief (&back, FALSE, 3);
}

/* Somebody has put the directory back to an earlier checkpoint. */
MUSTER_TEST (LivingModel, is_restored_where_its_checkpoint_was_taken_away)
{
  g_auto (Job) job = job_set_up_served (1);
  g_auto (Life) chief = {.job = &job};
  g_autoptr (GError) error = NULL;
  leave_a_model (&job);
  g_autofree char *state = g_build_filename (job.directory, "checkpoint", NULL);
  MUSTER_ASSERT_TRUE (
      g_file_set_contents (state, "model_checkpoint_path: \"model.ckpt-0\"\n", -1, &error));
  expect_chief (&chief, FALSE, 0);
}

/* The master was reset by somebody else: nothing of the model is left. */
MUSTER_TEST (LivingModel, is_restored_after_a_reset)
{
  g_auto (Job) job = job_set_up_served (2);
  g_auto (Life) chief = {.job = &job};
  leave_a_model (&job);
  MUSTER_ASSERT_TRUE (
      muster_master_reset (job.master, NULL, MUSTER_WAIT_FOREVER, NULL, &chief.error));
  expect_chief (&chief, FALSE, 3);
}

/* A chief that dies in a save has told the tasks to hold: the next one lets them go on. */
MUSTER_TEST (LivingModel, is_released_from_the_hold_of_a_chief_that_died_in_a_save)
{
  g_auto (Job) job = job_set_up_served (2);
  g_auto (Life) worker = {.job = &job, .task = 1, .hold_us = 50 * MUSTER_SECOND},
                chief = {.job = &job};
  leave_a_model (&job);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  life_set_hold (&worker, MUSTER_POSITION_WAIT);
  expect_chief (&chief, TRUE, N_STEPS);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  g_auto (MusterPositionState) state = {0};
  MUSTER_EXPECT_TRUE (muster_position_read (muster_monitored_session_session (worker.session), 2,
                                            &state, MUSTER_WAIT_FOREVER, NULL, &worker.error));
  MUSTER_EXPECT_EQ (state.hold, MUSTER_POSITION_GO);
}

/* A chief of the model without positions, which takes some steps. Returns the step that it began
 * at. */
static gint64
train_plain (Job *job, gboolean continues, int n_steps)
{
  static const char *const target = "train";
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (model, &error);
  const MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                                  .master = job->master,
                                                  .saving.checkpoint_dir = job->directory,
                                                  .saving.save_steps = 3,
                                                  .saving.save_blocking = TRUE,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER,
                                                  .manager.model = "plain",
                                                  .continue_without_positions = continues};
  g_autoptr (MusterMonitoredSession) session = NULL;
  for (int i = 0; i < N_TRIES / 10 && session == NULL; i++) { /* until the chief before is gone */
    g_clear_error (&error);
    session = muster_monitored_training_session_new (&options, NULL, NULL, &error);
  }
  g_assert_no_error (error);
  const gint64 began = muster_read_global_step (muster_monitored_session_session (session),
                                                scaffold, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  for (int i = 0; i < n_steps; i++) {
    g_autoptr (MusterTensor) batch = NULL;
    muster_batches_next (batches, &batch);
    const MusterFeed feed = {"rows:0", batch};
    const MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};
    MUSTER_EXPECT_TRUE (muster_monitored_session_run (session, &step, NULL, NULL, &error));
  }
  MUSTER_EXPECT_NO_ERROR (error);
  return began;
}

MUSTER_TEST (LivingModel, without_positions_goes_on_only_where_that_is_asked_for)
{
  g_auto (Job) job = job_set_up_served (1);
  MUSTER_EXPECT_EQ (train_plain (&job, FALSE, N_STEPS), 0);
  MUSTER_EXPECT_EQ (train_plain (&job, FALSE, 2), 3);
  MUSTER_EXPECT_EQ (train_plain (&job, TRUE, 3), 5);
  MUSTER_EXPECT_EQ (train_plain (&job, TRUE, 0), 8);
}

/* A server that was started again: tasks that wait there keep their sessions. */
MUSTER_TEST (LivingModel, isnt_reset_away_where_there_is_none)
{
  g_auto (Job) job = job_set_up_served (2);
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) waiting = muster_master_create_session (
      job.master, muster_meta_graph_graph (model), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  expect_chief (&chief, FALSE, 0);
  g_autoptr (MusterTensor) step =
      muster_session_fetch (waiting, "global_step/read:0", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_FALSE (muster_error_is (error, MUSTER_ERROR_ABORTED));
}

/* --- a client that goes away in the middle of a step --- */

typedef struct {
  Job *job;
  MusterScaffold *scaffold;
  GCancellable *cancellable; /* cancelled as its connection breaks off */
  GError *error;
} Client;

/* Runs the next step of task 1. */
static gpointer
run_step (gpointer data)
{
  Client *self = data;
  static const char *const target = "muster/step/held";
  g_autoptr (MusterSession) session =
      muster_master_create_session (self->job->master, muster_scaffold_graph (self->scaffold), NULL,
                                    MUSTER_WAIT_FOREVER, NULL, &self->error);
  g_assert_no_error (self->error);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterTensor) task = muster_tensor_new_int64 (1),
                           position = muster_tensor_new_int64 (0);
  g_autoptr (MusterTensor) batch = NULL;
  muster_batches_seek (batches, muster_position_batch (0, 1, 2));
  muster_batches_next (batches, &batch);
  const MusterFeed feeds[] = {
      {"rows:0", batch}, {MUSTER_POSITION_TASK, task}, {MUSTER_POSITION_POSITION, position}};
  MusterStep step = {.feeds = feeds, .n_feeds = 3, .targets = &target, .n_targets = 1};
  (void)muster_session_run (session, &step, NULL, NULL, self->cancellable, &self->error);
  return NULL;
}

MUSTER_TEST (LivingModel, is_whole_after_a_client_that_went_away_in_a_step)
{
  g_auto (Job) job = job_set_up_served (2);
  g_auto (Life) before = {.job = &job}, chief = {.job = &job};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  job.work = 1000; /* most of a step lies between its writes */
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  MUSTER_EXPECT_TRUE (life_step (&before));
  Client client = {.job = &job, .scaffold = before.scaffold, .cancellable = cancellable};
  GThread *thread = g_thread_new ("client", run_step, &client);
  MusterSession *session = muster_monitored_session_session (before.session);
  g_auto (MusterPositionState) state = {0};
  do
    MUSTER_ASSERT_TRUE (
        muster_position_read (session, 2, &state, MUSTER_WAIT_FOREVER, NULL, &before.error));
  while (muster_position_begun (&state, 1) == 0);
  g_cancellable_cancel (cancellable);
  g_thread_join (thread);
  g_clear_error (&client.error);
  life_end (&before);

  expect_chief (&chief, TRUE, 1);
  MUSTER_EXPECT_TRUE (muster_position_read (muster_monitored_session_session (chief.session), 2,
                                            &state, MUSTER_WAIT_FOREVER, NULL, &chief.error));
  MUSTER_EXPECT_EQ (muster_position_done (&state, 1), 1);
}
