// SPDX-License-Identifier: Apache-2.0
/* Jobs with positions: lives that end anywhere, tasks that step while the chief saves. */
#include "train/position/position.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"
#include "train/position/position_private.h"

/* --- one task --- */

MUSTER_TEST (PositionJob, goes_on_with_the_batch_after_the_last_saved_one)
{
  g_auto (Job) job = job_set_up (1);
  for (int life_number = 0; life_number < 3; life_number++) {
    g_auto (Life) life = {.job = &job};
    g_clear_object (&job.master); /* which has died as well */
    job.master = muster_local_master_new ();
    life_begin (&life);
    MUSTER_ASSERT_NO_ERROR (life.error);
    MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), 3 * life_number);
    for (int i = 0; i < 5; i++) /* the fourth and fifth are lost */
      MUSTER_ASSERT_TRUE (life_step (&life));
    MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), 3 * life_number + 5);
  }
  g_autofree char *wrong = job_check_latest (&job, 9);
  MUSTER_EXPECT_TRUE (wrong == NULL);
}

static void
begin_on_a_master_that_has_gone_on (Job *job)
{
  g_auto (Life) life = {.job = job}, next = {.job = job};
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (life_step (&life));
  life_begin (&next);
  MUSTER_ASSERT_NO_ERROR (next.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (next.hook), 3);
  /* The life before has lost its session: nothing of it runs on. */
  static const char *const targets[] = {"train"};
  MusterStep what = {.targets = targets, .n_targets = 1};
  MUSTER_EXPECT_FALSE (muster_session_run (muster_monitored_session_session (life.session), &what,
                                           NULL, NULL, NULL, &life.error));
  MUSTER_EXPECT_ERROR (life.error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (PositionJob, begins_at_the_checkpoint_on_a_master_that_has_gone_on)
{
  g_auto (Job) one = job_set_up (1), two = job_set_up (2);
  begin_on_a_master_that_has_gone_on (&one);
  g_free (two.directory);
  two.directory = g_build_filename (muster_test_tmpdir (), "two", NULL);
  begin_on_a_master_that_has_gone_on (&two);
}

MUSTER_TEST (PositionJob, stops_when_the_jobs_batches_are_dealt_and_stays_so)
{
  g_auto (Job) job = job_set_up (1);
  job.n_batches = 10;
  for (int i = 0; i < 2; i++) {
    g_auto (Life) life = {.job = &job};
    life_live (&life);
    MUSTER_EXPECT_NO_ERROR (life.error);
    g_autofree char *wrong = job_check_latest (&job, 10);
    MUSTER_EXPECT_STREQ (wrong, NULL);
  }
}

/* --- several tasks --- */

#define N_TASKS 3

static void
step_while_it_is_saved (Job *job)
{
  Life lives[N_TASKS] = {{0}};
  GThread *threads[N_TASKS];
  job->n_batches = 400;
  job->save_steps = 10;
  for (guint i = 0; i < N_TASKS; i++) {
    lives[i] = (Life){.job = job, .task = i};
    threads[i] = g_thread_new ("task", life_live, &lives[i]);
  }
  for (guint i = 0; i < N_TASKS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (lives[i].error);
    life_end (&lives[i]);
  }
  MUSTER_EXPECT_GE (job->n_saved, job->saves_in_background ? 2u : 3u);
  g_autofree char *wrong = job_check_latest (job, 400);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionJob, publishes_only_cuts_while_others_step)
{
  for (int in_background = 0; in_background < 2; in_background++) {
    g_auto (Job) here = job_set_up (N_TASKS), there = job_set_up_served (N_TASKS);

    here.saves_in_background = there.saves_in_background = in_background;
    job_name_directory (&here, in_background ? "here-background" : "here");
    job_name_directory (&there, in_background ? "there-background" : "there");
    step_while_it_is_saved (&here);
    step_while_it_is_saved (&there);
  }
}

typedef struct {
  Job *job;
  MusterScaffold *scaffold;
  gint stop; /* atomic */
} Deaf;

/* Task 1, which looks at nothing but its own steps. */
static gpointer
step_without_listening (gpointer data)
{
  Deaf *self = data;
  static const char *const target = "muster/step/held";
  g_autoptr (MusterSession) session =
      muster_master_create_session (self->job->master, muster_scaffold_graph (self->scaffold), NULL,
                                    MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
  g_autoptr (MusterBatches) batches =
      muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL);
  g_autoptr (MusterTensor) which = muster_tensor_new_int64 (1);

  for (gint64 i = 0; !g_atomic_int_get (&self->stop); i++) {
    g_autoptr (MusterTensor) where = muster_tensor_new_int64 (i);
    g_autoptr (MusterTensor) batch = NULL;
    muster_batches_seek (batches, muster_position_batch (i, 1, 2));
    muster_batches_next (batches, &batch);
    const MusterFeed feeds[] = {
        {"rows:0", batch}, {MUSTER_POSITION_TASK, which}, {MUSTER_POSITION_POSITION, where}};
    MusterStep what = {.feeds = feeds, .n_feeds = 3, .targets = &target, .n_targets = 1};
    g_autoptr (GError) error = NULL;
    if (session == NULL || !muster_session_run (session, &what, NULL, NULL, NULL, &error)) {
      MUSTER_EXPECT_NO_ERROR (error);
      break;
    }
  }
  return NULL;
}

MUSTER_TEST (PositionJob, throws_away_what_a_task_that_doesnt_hold_has_torn)
{
  g_auto (Job) job = job_set_up (2);
  g_auto (Life) chief = {.job = &job};
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "torn", NULL);

  job.work = 64; /* most of a step lies between its writes */
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (chief.scaffold), NULL, NULL);
  muster_position_guard (saver, muster_scaffold_meta_graph (chief.scaffold), NULL);
  Deaf deaf = {.job = &job, .scaffold = chief.scaffold};
  GThread *thread = g_thread_new ("deaf", step_without_listening, &deaf);
  for (gint64 i = 0; i < 4; i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *prefix =
        muster_saver_save (saver, muster_monitored_session_session (chief.session), directory, i,
                           MUSTER_WAIT_FOREVER, NULL, &error);
    g_autofree char *wrong = prefix != NULL ? muster_seen_model_check (prefix, 2, NULL) : NULL;
    MUSTER_EXPECT_STREQ (wrong, NULL);
    MUSTER_EXPECT_TRUE (prefix || muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED));
  }
  g_atomic_int_set (&deaf.stop, 1);
  g_thread_join (thread);
}

static void
let_go (gpointer data)
{
  life_set_hold (data, MUSTER_POSITION_GO);
}

MUSTER_TEST (PositionJob, holds_a_worker_until_it_may_go_on_or_for_so_long)
{
  g_auto (Job) job = job_set_up (2);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job}, worker = {.job = &job,
                                                 .task = 1,
                                                 .clock = MUSTER_CLOCK (clock),
                                                 .hold_us = 60 * MUSTER_SECOND};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  life_set_hold (&worker, MUSTER_POSITION_WAIT);
  MUSTER_EXPECT_TRUE (life_step (&worker)); /* in which it hears of it */
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 0);
  muster_fake_clock_at (clock, 7 * MUSTER_SECOND, let_go, &worker);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  gint64 waited_us = muster_fake_clock_elapsed_us (clock);
  MUSTER_EXPECT_TRUE (waited_us >= 7 * MUSTER_SECOND && waited_us < 8 * MUSTER_SECOND);

  life_set_hold (&worker, MUSTER_POSITION_WAIT);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  MUSTER_EXPECT_TRUE (life_step (&worker));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock) - waited_us, 60 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 4);
}

MUSTER_TEST (PositionJob, goes_back_to_the_checkpoint_over_a_step_that_was_interrupted)
{
  g_auto (Job) job = job_set_up (2);
  g_auto (Life) chief = {.job = &job};
  job.quiesce_us = 20 * MUSTER_MILLISECOND;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (int i = 0; i < 5; i++) /* saved at 3 */
    MUSTER_ASSERT_TRUE (life_step (&chief));
  job_cut_off_a_step (&job, chief.scaffold, 1);
  MUSTER_EXPECT_TRUE (life_step (&chief)); /* where a save is due */
  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 1);
  MUSTER_EXPECT_EQ (muster_position_hook_position (chief.hook), 4); /* 3, and the run's own */
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, MUSTER_WAIT_FOREVER, &chief.error));
  g_autofree char *wrong = job_check_latest (&job, 4);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

static void
die_in_a_step (Job *job)
{
  Life chief = {.job = job}, worker = {.job = job, .task = 1};
  job->n_batches = 60;
  job->save_steps = 1000000; /* the worker finds it */
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  job_cut_off_a_step (job, chief.scaffold, 1);
  GThread *of_chief = g_thread_new ("chief", life_live, &chief);
  GThread *of_worker = g_thread_new ("worker", life_live, &worker);
  g_thread_join (of_chief);
  g_thread_join (of_worker);
  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (chief.n_recoveries, 1);
  life_end (&chief);
  life_end (&worker);
  g_autofree char *wrong = job_check_latest (job, 60);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionJob, undoes_the_step_in_which_a_worker_died)
{
  g_auto (Job) here = job_set_up (2), there = job_set_up_served (2);
  die_in_a_step (&here);
  die_in_a_step (&there);
}

/* At three in the morning it is to be said who is to be started. */
MUSTER_TEST (PositionJob, names_the_task_that_it_waits_for)
{
  g_auto (Job) job = job_set_up (3);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job, .clock = MUSTER_CLOCK (clock)};
  MusterAwaited awaited = {0};
  job.n_batches = 5; /* of which the last task has one */
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  gint64 began_us = muster_clock_now_us (MUSTER_CLOCK (clock));

  MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&chief));
  MUSTER_EXPECT_FALSE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:0");
  MUSTER_EXPECT_EQ (awaited.since_us, began_us);

  g_auto (Life) worker = {.job = &job, .task = 1};
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:0");
  MUSTER_EXPECT_GT (awaited.since_us, began_us); /* it has done one */
  MUSTER_EXPECT_TRUE (life_step (&worker));
  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:1");
  MUSTER_EXPECT_FALSE (muster_position_hook_is_over (chief.hook));

  while (life_step (&chief))
    ;
  MUSTER_EXPECT_ERROR (chief.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (
      chief.error &&
      strstr (chief.error->message, "1 of 5 batches are missing; start task worker:1 again"));
  MUSTER_EXPECT_TRUE (strstr (chief.error->message, "task chief:0"));
}

static void
request_stop (gpointer coordinator)
{
  muster_coordinator_request_stop (coordinator, NULL, NULL);
}

/* Another process of the task may be in the middle of that step: who leaves undoes nothing. */
MUSTER_TEST (PositionJob, leaves_at_a_stop_without_waiting_for_a_step_that_was_interrupted)
{
  for (int is_at_once = 0; is_at_once < 2; is_at_once++) {
    g_auto (Job) job = job_set_up (2);
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_autoptr (MusterCoordinator) coordinator = muster_coordinator_new (NULL, FALSE);
    g_autoptr (GError) error = NULL;
    g_auto (Life) chief = {.job = &job};
    life_begin (&chief);
    MUSTER_ASSERT_NO_ERROR (chief.error);
    g_autoptr (MusterTensor) rows = muster_seen_model_rows ();
    g_auto (Life) worker = {
        .job = &job,
        .task = 1,
        .clock = MUSTER_CLOCK (clock),
        .batches = muster_batches_new (&rows, 1, MUSTER_SEEN_BATCH, MUSTER_SEEN_SEED, NULL)};
    MusterHook *hook = worker.hook = life_hook (&worker);
    MUSTER_ASSERT_TRUE (MUSTER_HOOK_GET_CLASS (hook)->begin (hook, chief.scaffold, &error));
    job_cut_off_a_step (&job, chief.scaffold, 1);
    if (is_at_once)
      request_stop (coordinator);
    else
      muster_fake_clock_at (clock, 5 * MUSTER_MILLISECOND, request_stop, coordinator);

    MUSTER_EXPECT_FALSE (MUSTER_HOOK_GET_CLASS (hook)->after_create_session (
        hook, muster_monitored_session_session (chief.session), coordinator, MUSTER_WAIT_FOREVER,
        NULL, &error));
    MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock),
                      is_at_once ? 0 : 5 * MUSTER_MILLISECOND);
    MUSTER_EXPECT_TRUE (life_step (&chief)); /* in the session that it had */
    MUSTER_EXPECT_EQ (chief.n_recoveries, 0u);
  }
}

MUSTER_TEST (PositionJob, says_what_to_do_about_another_number_of_tasks)
{
  g_auto (Job) job = job_set_up (1);
  g_auto (Life) life = {.job = &job};
  g_autoptr (GError) error = NULL;
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterMetaGraph) more = muster_position_add (model, 3, NULL);
  MUSTER_EXPECT_TRUE (
      muster_position_check (muster_scaffold_meta_graph (life.scaffold), NULL, latest, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_position_check (more, NULL, latest, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (error->message, "use the same number of tasks"));
  MUSTER_EXPECT_TRUE (muster_position_check (more, NULL, "/nowhere/model.ckpt", NULL));
}

/* --- a save that isn't a cut --- */

typedef struct {
  guint n_quiesces, n_checks, n_releases;
  guint cut_at; /* the check that finds it at rest; 0: none */
} Script;

static gboolean
script_quiesce (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                GCancellable *cancellable G_GNUC_UNUSED, gpointer data,
                GError **error G_GNUC_UNUSED)
{
  ((Script *)data)->n_quiesces++;
  return TRUE;
}

static gboolean
script_check (MusterSession *session G_GNUC_UNUSED, gboolean *is_consistent,
              gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
              gpointer data, GError **error G_GNUC_UNUSED)
{
  Script *script = data;
  *is_consistent = ++script->n_checks == script->cut_at;
  return TRUE;
}

static void
script_release (MusterSession *session G_GNUC_UNUSED, gpointer data)
{
  ((Script *)data)->n_releases++;
}

static guint
n_files (const char *directory)
{
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  guint n = 0;
  for (char **name = names; name != NULL && *name != NULL; name++)
    n += g_str_has_prefix (*name, "model.ckpt") || g_str_has_prefix (*name, ".saving-");
  return n;
}

MUSTER_TEST (PositionJob, saves_again_what_has_moved_and_never_publishes_it)
{
  static const MusterSaverConsistentCut consistent_cut = {
      .quiesce = script_quiesce, .check = script_check, .release = script_release};
  g_auto (Job) job = job_set_up (1);
  g_auto (Life) life = {.job = &job};
  Script script = {.cut_at = 3};
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "cuts", NULL);
  g_autoptr (GError) error = NULL;

  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  MusterSession *session = muster_monitored_session_session (life.session);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (life.scaffold), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_saver_set_consistent_cut (saver, &consistent_cut, &script, NULL);
  g_autofree char *saved =
      muster_saver_save (saver, session, directory, 1, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (script.n_quiesces, 3);
  MUSTER_EXPECT_EQ (script.n_releases, 1);
  guint n = n_files (directory);

  script = (Script){0};
  MUSTER_EXPECT_TRUE (
      muster_saver_save (saver, session, directory, 2, MUSTER_WAIT_FOREVER, NULL, &error) == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (script.n_checks, 5);
  MUSTER_EXPECT_EQ (script.n_releases, 1);
  MUSTER_EXPECT_EQ (n_files (directory), n);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), directory, NULL);
  MUSTER_EXPECT_STREQ (latest, saved);
}
