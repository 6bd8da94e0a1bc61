// SPDX-License-Identifier: Apache-2.0
/* Saves from beside a job, by who is none of its tasks, at any moment. */
#include "train/position/position.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "saver/saver.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/held_master.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

/* A master dies, and its job goes on where the latest checkpoint is. */
static void
expect_to_go_on_at (Job *job, gint64 position)
{
  g_auto (Life) life = {.job = job};
  g_clear_object (&job->master);
  job->master = muster_local_master_new ();
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (life.hook), position);
  MUSTER_EXPECT_TRUE (life_step (&life));
}

static void
train_and_save_from_beside (Job *job, gboolean finds_positions)
{
  g_auto (Life) life = {.job = job};
  g_autoptr (GError) error = NULL;
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (life_step (&life));
  MUSTER_EXPECT_TRUE (job_save_from_beside (job, finds_positions, 99, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (PositionBeside, goes_on_from_what_was_saved_beside_it)
{
  g_auto (Job) job = job_set_up (1);
  train_and_save_from_beside (&job, TRUE);
  expect_to_go_on_at (&job, 5);
}

/* Some other program's: TensorFlow's, say. */
MUSTER_TEST (PositionBeside, passes_over_what_was_saved_without_positions)
{
  g_auto (Job) job = job_set_up (1);
  g_autofree char *prefix = g_build_filename (job.directory, "model.ckpt-99", NULL);

  train_and_save_from_beside (&job, FALSE);
  expect_to_go_on_at (&job, 3);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, prefix));
}

typedef struct {
  Life life;
  gint *stop; /* atomic */
} Stepping;

static gpointer
step_until_told (gpointer data)
{
  Stepping *self = data;
  while (!g_atomic_int_get (self->stop) && life_step (&self->life))
    ;
  return NULL;
}

/* The chief holds as well, whether it is alone or not. */
static void
save_beside_tasks_that_step (guint n_tasks)
{
  g_auto (Job) job = job_set_up (n_tasks);
  gint stop = FALSE;
  Stepping tasks[2] = {{{0}, &stop}, {{0}, &stop}};
  GThread *threads[2];
  g_autoptr (GError) error = NULL;
  job.save_steps = 1000000;
  g_free (job.directory);
  job.directory = g_strdup_printf ("%s/beside%u", muster_test_tmpdir (), n_tasks);
  for (guint i = 0; i < n_tasks; i++) {
    tasks[i].life = (Life){.job = &job, .task = i};
    life_begin (&tasks[i].life);
    MUSTER_ASSERT_NO_ERROR (tasks[i].life.error);
  }
  for (guint i = 0; i < n_tasks; i++)
    threads[i] = g_thread_new ("task", step_until_told, &tasks[i]);
  for (gint64 number = 1; number <= 5 && error == NULL; number++)
    MUSTER_EXPECT_TRUE (job_save_from_beside (&job, TRUE, number, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_atomic_int_set (&stop, TRUE);
  for (guint i = 0; i < n_tasks; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (tasks[i].life.error);
    life_end (&tasks[i].life);
  }
}

MUSTER_TEST (PositionBeside, holds_for_a_save_from_beside)
{
  save_beside_tasks_that_step (1);
  save_beside_tasks_that_step (2);
}

/* --- at the worst moment --- */

/* What happens in the middle of a save from beside: once, after one of its steps. */
typedef struct {
  Life *life;
  void (*happens) (Life *life);
  guint at; /* that step's number: 1, 2, … */
  guint n_steps;
} Moment;

static void
after_step (gpointer data)
{
  Moment *self = data;
  if (++self->n_steps == self->at)
    self->happens (self->life);
}

/* FALSE once the save has fewer steps than that. */
static gboolean
save_meanwhile (Job *job, Moment *moment)
{
  g_autoptr (MusterHeldMaster) between = muster_held_master_new (job->master);
  Job beside = *job; /* through the other, into a directory of its own */
  g_autoptr (GError) error = NULL;
  beside.master = MUSTER_MASTER (between);
  beside.directory = g_strconcat (job->directory, "-beside", NULL);
  muster_held_master_after_run (between, after_step, moment);
  MUSTER_EXPECT_TRUE (job_save_from_beside (&beside, TRUE, 1, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_free (beside.directory);
  return moment->n_steps >= moment->at;
}

static Job
set_up_moment (const char *name, guint at)
{
  Job job = job_set_up (2);
  job.save_steps = 1000000;
  g_free (job.directory);
  job.directory = g_strdup_printf ("%s/%s-%u", muster_test_tmpdir (), name, at);
  return job;
}

static void
finish (Life *life)
{
  muster_monitored_session_finish (life->session, NULL, MUSTER_WAIT_FOREVER, &life->error);
  MUSTER_EXPECT_NO_ERROR (life->error);
}

static gboolean
ends_for_the_worker (guint at)
{
  g_auto (Job) job = set_up_moment ("end", at);
  g_auto (Life) chief = {.job = &job}, worker = {.job = &job, .task = 1};
  Moment moment = {&chief, finish, at, 0};
  job.n_batches = 2;
  life_begin (&chief);
  life_begin (&worker);
  g_assert_no_error (chief.error);
  g_assert_no_error (worker.error);
  MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&worker));
  MUSTER_EXPECT_TRUE (life_step (&chief)); /* in which it finds that all is done */
  MUSTER_EXPECT_TRUE (muster_position_hook_is_over (chief.hook));
  const gboolean has_happened = save_meanwhile (&job, &moment);
  if (!has_happened)
    finish (&chief);
  for (int i = 0; i < 3 && !muster_monitored_session_should_stop (worker.session); i++)
    MUSTER_EXPECT_TRUE (life_step (&worker));
  MUSTER_EXPECT_TRUE (muster_position_hook_is_over (worker.hook));
  return has_happened;
}

/* The end is written once, and its workers wait for it: no save may overwrite it. */
MUSTER_TEST (PositionBeside, leaves_the_jobs_end_as_the_chief_wrote_it_at_any_moment)
{
  guint at = 1;
  for (; at < 50; at++) {
    MUSTER_TRACE ("after step %u of the save", at);
    if (!ends_for_the_worker (at))
      break;
  }
  MUSTER_EXPECT_TRUE (at > 5 && at < 50);
}

/* The second step waits until the hold, if there is one, has run out. */
static void
step_twice (Life *life)
{
  MUSTER_EXPECT_TRUE (life_step (life) && life_step (life));
  MUSTER_EXPECT_NO_ERROR (life->error);
}

static gboolean
saves_a_cut (guint at)
{
  g_auto (Job) job = set_up_moment ("cut", at);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job},
                worker = {.job = &job, .task = 1, .clock = MUSTER_CLOCK (clock)};
  Moment moment = {&worker, step_twice, at, 0};
  life_begin (&chief);
  life_begin (&worker);
  g_assert_no_error (chief.error);
  g_assert_no_error (worker.error);
  return save_meanwhile (&job, &moment);
}

MUSTER_TEST (PositionBeside, saves_a_consistent_cut_though_a_task_goes_on_at_any_moment)
{
  guint at = 1;
  for (; at < 50; at++) {
    MUSTER_TRACE ("after step %u of the save", at);
    if (!saves_a_cut (at))
      break;
  }
  MUSTER_EXPECT_TRUE (at > 5 && at < 50);
}

/* --- a hold that nobody ends --- */

/* The chief has dealt its share, so that it lets nobody go. */
MUSTER_TEST (PositionBeside, holds_workers_no_longer_than_once_for_a_saver_that_was_killed)
{
  g_auto (Job) job = set_up_moment ("killed", 0);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job}, worker = {.job = &job,
                                                 .task = 1,
                                                 .clock = MUSTER_CLOCK (clock),
                                                 .hold_us = 60 * MUSTER_SECOND};
  job.n_batches = 13;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  for (int i = 0; i < 8; i++) /* 7 batches, and a look */
    MUSTER_ASSERT_TRUE (life_step (&chief));
  life_set_hold (&chief, MUSTER_POSITION_WAIT);
  for (int i = 0; i < 6; i++)
    MUSTER_ASSERT_TRUE (life_step (&worker));
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 6);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
}

static void
let_go (gpointer data)
{
  life_set_hold (data, MUSTER_POSITION_GO);
}

typedef struct {
  Life *life;
  gint64 hold;
} Seen;

static void
note_hold (gpointer data)
{
  Seen *self = data;
  g_auto (MusterPositionState) state = {0};
  if (muster_position_read (muster_monitored_session_session (self->life->session), 2, &state,
                            MUSTER_WAIT_FOREVER, NULL, NULL))
    self->hold = state.hold;
}

/* A step takes long, and a task that was held meanwhile has gone on. */
MUSTER_TEST (PositionBeside, holds_again_while_a_step_is_under_way)
{
  g_auto (Job) job = set_up_moment ("again", 0);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const MusterPositionGuard guard = {.clock = MUSTER_CLOCK (clock)};
  g_auto (Life) chief = {.job = &job};
  Seen seen = {&chief, -1};
  g_autoptr (GError) error = NULL;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MusterMetaGraph *model = muster_scaffold_meta_graph (chief.scaffold);
  g_autoptr (MusterSaver) saver = muster_saver_new (model, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_position_guard (saver, model, &guard);
  job_cut_off_a_step (&job, chief.scaffold, 1);
  muster_fake_clock_at (clock, 7 * MUSTER_SECOND, let_go, &chief);
  muster_fake_clock_at (clock, 8 * MUSTER_SECOND, note_hold, &seen);

  g_autofree char *prefix =
      muster_saver_save (saver, muster_monitored_session_session (chief.session), job.directory, 1,
                         MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_EQ (seen.hold, MUSTER_POSITION_WAIT);
}

/* --- by another meta graph --- */

/* Where they can't be kept nothing is saved. */
MUSTER_TEST (PositionBeside, refuses_a_save_that_would_lose_its_positions)
{
  static const guint8 no_nodes[] = {2 << 3 | 2, 0}; /* MetaGraphDef.graph_def, empty */
  g_auto (Job) job = job_set_up (1);
  g_auto (Life) life = {.job = &job};
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (no_nodes, sizeof no_nodes);
  g_autoptr (MusterMetaGraph) other = muster_meta_graph_new (bytes, NULL);
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  g_autoptr (MusterMetaGraph) found =
      muster_position_find (job.master, other, NULL, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (found);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "positions of 1 task"));
}

MUSTER_TEST (PositionBeside, leaves_a_model_without_positions_as_it_is)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&(MusterSeenModel){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) found =
      muster_position_find (master, plain, NULL, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (found == plain);
}
