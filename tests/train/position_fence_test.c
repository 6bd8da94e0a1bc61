// SPDX-License-Identifier: Apache-2.0
/* Tasks with a master each, over the same variables: a fence stands in for a reset. Here all
 * masters are one, which nobody resets. */
#include "train/position/position.h"

#include "engine/session/local_master.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"
#include "train/position/position_private.h"

#include <string.h>

static const MusterSeenModel on_server = {.on_server = TRUE};

static Prepared
set_up_model (void)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&on_server);
  g_autoptr (GError) error = NULL;
  MusterMetaGraph *extended = muster_position_add (plain, 2, &error);
  g_assert_no_error (error);
  return prepared_set_up (extended);
}

/* A step of task 1, or a part of it. */
static gboolean
run_at (const Prepared *model, const char *target, gint64 position, GError **error)
{
  g_autoptr (MusterTensor) task = muster_tensor_new_int64 (1);
  g_autoptr (MusterTensor) where = muster_tensor_new_int64 (position);
  const MusterFeed feeds[] = {
      {"rows:0", model->rows}, {MUSTER_POSITION_TASK, task}, {MUSTER_POSITION_POSITION, where}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 3, .targets = &target, .n_targets = 1};
  return muster_session_run (model->session, &step, NULL, NULL, NULL, error);
}

static gboolean
step_at (const Prepared *model, gint64 position, GError **error)
{
  return run_at (model, "muster/step/held", position, error);
}

static void
expect_refused (const Prepared *model, gint64 position)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (step_at (model, position, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, MUSTER_POSITION_REFUSED));
}

static void
read_state (MusterSession *session, MusterPositionState *state)
{
  g_autoptr (GError) error = NULL;
  muster_position_read (session, 2, state, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

static gboolean
rest (const Prepared *model, MusterClock *clock, GError **error)
{
  const MusterPositionQuiesce quiesce = {2, 2, clock, MUSTER_WAIT_FOREVER, FALSE};
  return muster_position_rest (model->session, &quiesce, 60 * MUSTER_SECOND, NULL, error);
}

/* In place of a restore: it writes the counts, too, which lifts the fence. */
static void
init (const Prepared *model)
{
  g_autoptr (GError) error = NULL;
  muster_session_run_op (model->session, muster_scaffold_init_op (model->scaffold),
                         MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

/* A task that stood still through the fence. */
MUSTER_TEST (PositionFence, lets_no_step_begin_before_the_restore_is_over)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (rest (&model, muster_system_clock (), &error));

  expect_refused (&model, 0);
  init (&model);
  expect_refused (&model, 0);
  g_auto (MusterPositionState) state = {0};
  read_state (model.session, &state);
  MUSTER_EXPECT_TRUE (state.is_restoring && !state.is_raised);
  MUSTER_EXPECT_EQ (muster_position_begun (&state, 1), 0);

  MUSTER_EXPECT_TRUE (muster_position_open (model.session, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (step_at (&model, 0, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* It is between its check and its count as the model is closed. */
MUSTER_TEST (PositionFence, refuses_a_step_that_is_counted_after_the_model_was_closed)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (MusterTensor) yes = muster_tensor_new_bool (TRUE);
  g_autoptr (MusterTensor) task = muster_tensor_new_int64 (1);
  g_autoptr (MusterTensor) where = muster_tensor_new_int64 (0);
  g_autoptr (GError) error = NULL;
  static const char *const target = "muster/step/begun";
  const MusterFeed feeds[] = {{"muster/step/is_whole/is_open:0", yes},
                              {"muster/step/is_next/is_equal:0", yes},
                              {MUSTER_POSITION_TASK, task},
                              {MUSTER_POSITION_POSITION, where}};
  const MusterStep step = {.feeds = feeds, .n_feeds = 4, .targets = &target, .n_targets = 1};
  MUSTER_ASSERT_TRUE (rest (&model, muster_system_clock (), &error));

  MUSTER_EXPECT_FALSE (muster_session_run (model.session, &step, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* As one that was given up while it ran. */
MUSTER_TEST (PositionFence, refuses_a_task_whose_counts_differ)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_position_forget (model.session, 1, MUSTER_WAIT_FOREVER, NULL, &error));
  expect_refused (&model, 0);
}

MUSTER_TEST (PositionFence, waits_for_steps_that_have_begun)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (run_at (&model, "muster/step/begin", 0, &error));
  heard_begin (G_LOG_LEVEL_MESSAGE);

  MUSTER_EXPECT_TRUE (rest (&model, MUSTER_CLOCK (clock), &error));

  MUSTER_EXPECT_EQ (heard_count ("position", "the model is restored when a step of task 1 *"), 1u);
  heard_end ();
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
}

/* The counts are nonsense, so that it isn't known which steps have begun. */
MUSTER_TEST (PositionFence, fails_where_it_isnt_known_to_be_raised)
{
  g_auto (Prepared) model = set_up_model ();
  const gint64 n = 2;
  g_autoptr (MusterTensor) less = muster_tensor_new (MUSTER_INT64, 1, &n);
  g_autoptr (GError) error = NULL;
  gint64 *numbers = muster_tensor_data_mutable (less);
  numbers[0] = numbers[1] = -1;
  const MusterFeed feed = {"muster/begun/fenced:0", less};
  static const char *const target = MUSTER_POSITION_RAISE_FENCE;
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1};
  MUSTER_ASSERT_TRUE (muster_session_run (model.session, &step, NULL, NULL, NULL, &error));

  MUSTER_EXPECT_FALSE (rest (&model, muster_system_clock (), &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

static gboolean
fail (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED, GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "no fence");
  return FALSE;
}

MUSTER_TEST (PositionFence, leaves_the_model_as_it_is_where_it_isnt_raised)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (GError) error = NULL;
  const MusterSessionManagerOptions how = {.ready_op = muster_scaffold_ready_op (model.scaffold)};
  g_autoptr (MusterSessionManager) manager =
      muster_session_manager_new (muster_scaffold_graph (model.scaffold), &how, &error);
  const MusterPrepareOptions prepare = {
      .init_op = muster_scaffold_init_op (model.scaffold), .in_place = TRUE, .quiesce_func = fail};
  MUSTER_ASSERT_TRUE (step_at (&model, 0, &error));

  g_autoptr (MusterSession) session =
      muster_session_manager_prepare_session (manager, model.master, &prepare, NULL, NULL, &error);

  MUSTER_EXPECT_TRUE (session == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  g_auto (MusterPositionState) state = {0};
  read_state (model.session, &state);
  MUSTER_EXPECT_EQ (muster_position_done (&state, 1), 1);
}

MUSTER_TEST (PositionFence, knows_a_master_that_a_task_has_had_a_session_at)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (GError) error = NULL;
  gboolean is_marked = TRUE;
  MUSTER_EXPECT_TRUE (
      muster_position_is_marked (model.session, &is_marked, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (is_marked);
  MUSTER_EXPECT_TRUE (muster_position_mark (model.session, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (
      muster_position_is_marked (model.session, &is_marked, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (is_marked);
}

/* The name of a node is another then, as if the graph lacked it. */
static MusterMetaGraph *
without_node (MusterMetaGraph *meta_graph, const char *name)
{
  g_autoptr (GError) error = NULL;
  GBytes *bytes = muster_meta_graph_bytes (meta_graph);
  const gsize size = g_bytes_get_size (bytes), length = strlen (name);
  g_autofree char *copy = g_memdup2 (g_bytes_get_data (bytes, NULL), size);
  for (char *at = copy; (at = memmem (at, size - (gsize)(at - copy), name, length)) != NULL; at++)
    at[length - 1]++;
  g_autoptr (GBytes) edited = g_bytes_new_take (g_steal_pointer (&copy), size);
  MusterMetaGraph *without = muster_meta_graph_new (edited, &error);
  g_assert_no_error (error);
  return without;
}

/* Such as that of each checkpoint of the older one. */
MUSTER_TEST (PositionFence, reads_the_positions_of_a_graph_that_an_older_muster_extended)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&on_server);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) extended = muster_position_add (plain, 2, &error);
  g_autoptr (MusterMetaGraph) unmarked = without_node (extended, MUSTER_POSITION_MARK);
  g_auto (Prepared) model = prepared_set_up (without_node (unmarked, MUSTER_POSITION_RESTORING));
  g_auto (MusterPositionState) state = {0};
  gboolean is_marked;

  MUSTER_EXPECT_TRUE (
      muster_position_read (model.session, 2, &state, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_position_is_fenced (&state));
  MUSTER_EXPECT_FALSE (
      muster_position_is_marked (model.session, &is_marked, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* --- tasks --- */

static Job
set_up_job (const char *name)
{
  Job job = job_set_up (2);
  job.own_masters = TRUE;
  job_name_directory (&job, name);
  return job;
}

static void
end_workers_step (gpointer data)
{
  Life *chief = data;
  g_autoptr (GError) error = NULL;
  muster_position_forget (muster_monitored_session_session (chief->session), 1, MUSTER_WAIT_FOREVER,
                          NULL, &error);
  g_assert_no_error (error);
}

/* Its server goes on with the step. */
MUSTER_TEST (PositionFence, lets_the_step_end_of_a_command_that_is_started_again)
{
  g_auto (Job) job = set_up_job ("again");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) worker = {.job = &job, .task = 1, .clock = MUSTER_CLOCK (clock)};
  g_auto (MusterPositionState) state = {0};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  job_cut_off_a_step (&job, chief.scaffold, 1);
  muster_fake_clock_at (clock, 30 * MUSTER_SECOND, end_workers_step, &chief);

  life_begin (&worker);

  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 1);
  read_state (muster_monitored_session_session (chief.session), &state);
  MUSTER_EXPECT_FALSE (muster_position_is_fenced (&state));
  MUSTER_EXPECT_TRUE (life_step (&worker) && life_step (&chief));
}

static void
open_in_vain (Job *job, gboolean is_worker)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (&on_server);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (model, &error);
  const MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                                  .master = job->master,
                                                  .is_worker = is_worker,
                                                  .own_masters = TRUE,
                                                  .timeout_us = JOB_LIMIT_US,
                                                  .save_summaries_steps = MUSTER_NEVER,
                                                  .log_step_count_steps = MUSTER_NEVER};
  g_autoptr (MusterMonitoredSession) session =
      muster_monitored_training_session_new (&options, NULL, NULL, &error);
  MUSTER_EXPECT_TRUE (session == NULL);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "positions of 2 tasks"));
}

/* A chief that closes the model, and a hook that doesn't open it, or none. */
MUSTER_TEST (PositionFence, refuses_masters_of_their_own_in_one_place_only)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&on_server);
  g_autoptr (MusterMetaGraph) extended = muster_position_add (plain, 2, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  for (int which = 0; which < 3; which++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (extended, &error);
    const MusterPositionOptions how = {.own_masters = which == 1};
    g_autoptr (MusterHook) hook = muster_position_hook_new (&how, &error);
    const MusterMonitoredTrainingOptions options = {.scaffold = scaffold,
                                                    .master = master,
                                                    .own_masters = which != 1,
                                                    .hooks = &hook,
                                                    .n_hooks = which != 2,
                                                    .timeout_us = JOB_LIMIT_US,
                                                    .save_summaries_steps = MUSTER_NEVER};
    g_autoptr (MusterMonitoredSession) session =
        muster_monitored_training_session_new (&options, NULL, NULL, &error);
    MUSTER_EXPECT_TRUE (session == NULL);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (PositionFence, refuses_tasks_without_positions)
{
  g_auto (Job) job = set_up_job ("mixed");
  g_auto (Life) chief = {.job = &job};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_ASSERT_TRUE (life_step (&chief));

  open_in_vain (&job, TRUE);
  open_in_vain (&job, FALSE);

  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_EQ (muster_read_global_step (muster_monitored_session_session (chief.session),
                                             chief.scaffold, MUSTER_WAIT_FOREVER, NULL, &error),
                    1);
}

/* A saver's that was killed. */
MUSTER_TEST (PositionFence, lets_a_hold_lapse_that_nobody_ends)
{
  g_auto (Job) job = set_up_job ("lapse");
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) chief = {.job = &job, .clock = MUSTER_CLOCK (clock)};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_set_hold (&chief, MUSTER_POSITION_WAIT);

  MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&chief));

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
}

/* Its first save comes before it opens the model. */
MUSTER_TEST (PositionFence, lets_a_chief_save_what_it_has_initialised_in_place)
{
  g_auto (Job) job = set_up_job ("before");
  Life before = {.job = &job};
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  MUSTER_EXPECT_TRUE (life_step (&before));
  life_end (&before);
  job_name_directory (&job, "anew");
  g_auto (Life) chief = {.job = &job};

  life_begin (&chief);

  MUSTER_ASSERT_NO_ERROR (chief.error);
  g_autofree char *wrong = job_check_latest (&job, 0);
  MUSTER_EXPECT_STREQ (wrong, NULL);
  MUSTER_EXPECT_TRUE (life_step (&chief));
}

typedef struct {
  Life *chief;
  gboolean was_raised;
} Restoring;

static void
end_restore (gpointer data)
{
  Restoring *self = data;
  MusterSession *session = muster_monitored_session_session (self->chief->session);
  g_auto (MusterPositionState) state = {0};
  g_autoptr (GError) error = NULL;
  read_state (session, &state);
  self->was_raised = state.is_raised;
  MUSTER_EXPECT_TRUE (muster_session_run_op (
      session, muster_scaffold_init_op (self->chief->scaffold), MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (
      muster_position_set_hold (session, MUSTER_POSITION_GO, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_position_open (session, MUSTER_WAIT_FOREVER, NULL, &error));
}

/* Of its counts, one may be restored and the other not yet. */
MUSTER_TEST (PositionFence, takes_no_counts_for_a_torn_step_while_the_model_is_restored)
{
  g_auto (Job) job = set_up_job ("half");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) worker = {
      .job = &job, .task = 1, .clock = MUSTER_CLOCK (clock), .settle_us = 10 * MUSTER_SECOND};
  g_autoptr (GError) error = NULL;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  job_cut_off_a_step (&job, chief.scaffold, 1);
  MUSTER_EXPECT_TRUE (muster_session_run_op (muster_monitored_session_session (chief.session),
                                             MUSTER_POSITION_SET_RESTORING, MUSTER_WAIT_FOREVER,
                                             NULL, &error));
  Restoring restoring = {.chief = &chief};
  muster_fake_clock_at (clock, 30 * MUSTER_SECOND, end_restore, &restoring);

  life_begin (&worker);

  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_FALSE (restoring.was_raised);
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 0);
}

/* --- a session that is made again in the same process --- */

static void
lose_session (Life *life)
{
  g_autoptr (GError) why =
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "its parameter server is gone");
  (void)muster_coordinator_request_stop (muster_monitored_session_coordinator (life->session), why,
                                         NULL);
}

/* Its master has answered, or is gone: its step doesn't go on, as that of a killed command does. */
MUSTER_TEST (PositionFence, asks_for_a_restore_at_once_where_a_task_knows_that_its_step_has_ended)
{
  g_auto (Job) job = set_up_job ("knows");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) worker = {.job = &job, .task = 1, .clock = MUSTER_CLOCK (clock)};
  Restoring restoring = {.chief = &chief};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  job_cut_off_a_step (&job, chief.scaffold, 1);
  lose_session (&worker);
  muster_fake_clock_at (clock, 20 * MUSTER_SECOND, end_restore, &restoring);

  MUSTER_EXPECT_TRUE (life_step (&worker));

  MUSTER_EXPECT_TRUE (restoring.was_raised);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (worker.session), 1u);
}

/* Also where that is as long as the usual one, of a task whose step doesn't go on. */
MUSTER_TEST (PositionFence, waits_for_a_killed_commands_step_as_long_as_it_is_told)
{
  g_auto (Job) job = set_up_job ("told");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Life before = {.job = &job, .task = 1};
  g_auto (Life) worker = {
      .job = &job, .task = 1, .clock = MUSTER_CLOCK (clock), .settle_us = 5 * MUSTER_SECOND};
  Restoring restoring = {.chief = &chief};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  life_end (&before);
  job_cut_off_a_step (&job, chief.scaffold, 1);
  muster_fake_clock_at (clock, 20 * MUSTER_SECOND, end_restore, &restoring);

  life_begin (&worker);

  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (restoring.was_raised);
}

/* Nor does a chief wait for its own then: this test would time out. */
MUSTER_TEST (PositionFence, restores_at_once_where_a_chief_knows_that_its_step_has_ended)
{
  g_auto (Job) job = set_up_job ("chief-knows");
  g_auto (Life) chief = {.job = &job};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (int i = 0; i < 4; i++) /* the third is saved */
    MUSTER_EXPECT_TRUE (life_step (&chief));
  job_cut_off_a_step (&job, chief.scaffold, 0);
  lose_session (&chief);

  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_EQ (muster_position_hook_position (chief.hook), 4);
}

/* A chief that continues with the model waits for the others' steps, but not as long for its own.
 */
MUSTER_TEST (PositionFence, waits_only_shortly_for_a_step_that_is_known_to_have_ended)
{
  for (guint ended = 1; ended <= 2; ended++) {
    g_auto (Prepared) model = set_up_model ();
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_autoptr (GError) error = NULL;
    const gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (clock));
    const MusterPositionAwait await = {.n_tasks = 2,
                                       .clock = MUSTER_CLOCK (clock),
                                       .until_us = now_us + 60 * MUSTER_SECOND,
                                       .deadline_us = MUSTER_WAIT_FOREVER,
                                       .ended = ended,
                                       .ended_until_us = now_us + 5 * MUSTER_SECOND};
    guint torn = 0;
    MUSTER_ASSERT_TRUE (run_at (&model, "muster/step/begin", 0, &error));

    MUSTER_EXPECT_FALSE (muster_position_await_whole (model.session, &await, &torn, NULL, &error));

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    MUSTER_EXPECT_EQ (torn, 1u);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), (ended == 1 ? 5 : 60) * MUSTER_SECOND);
  }
}

/* --- a time limit --- */

MUSTER_TEST (PositionFence, leaves_a_restore_its_share_of_the_time)
{
  g_autoptr (MusterFakeClock) fake = muster_fake_clock_new ();
  MusterClock *clock = MUSTER_CLOCK (fake);
  const gint64 now_us = muster_clock_now_us (clock), minute_us = 60 * MUSTER_SECOND;
  MUSTER_EXPECT_EQ (muster_position_share (minute_us, MUSTER_WAIT_FOREVER, clock), minute_us);
  MUSTER_EXPECT_EQ (muster_position_share (minute_us, now_us + 600 * MUSTER_SECOND, clock),
                    minute_us);
  MUSTER_EXPECT_EQ (muster_position_share (minute_us, now_us + minute_us, clock), minute_us / 2);
  MUSTER_EXPECT_EQ (muster_position_share (minute_us, now_us - 1, clock), 0);
}

#define LIMIT_US (4 * MUSTER_SECOND)

MUSTER_TEST (PositionFence, waits_for_steps_only_for_a_part_of_the_time)
{
  g_auto (Prepared) model = set_up_model ();
  g_autoptr (GError) error = NULL;
  const MusterPositionQuiesce quiesce = {2, 2, muster_system_clock (),
                                         muster_position_in_us (LIMIT_US), FALSE};
  MUSTER_ASSERT_TRUE (run_at (&model, "muster/step/begin", 0, &error));

  MUSTER_EXPECT_TRUE (
      muster_position_rest (model.session, &quiesce, 60 * MUSTER_SECOND, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* A worker whose next step begins with a look. */
static void
begin_held (Life *chief, Life *worker)
{
  life_begin (chief);
  MUSTER_ASSERT_NO_ERROR (chief->error);
  life_begin (worker);
  MUSTER_ASSERT_NO_ERROR (worker->error);
  life_set_hold (chief, MUSTER_POSITION_WAIT);
  MUSTER_EXPECT_TRUE (life_step (worker));
}

MUSTER_TEST (PositionFence, asks_for_a_restore_while_there_is_time_for_it)
{
  static const char *const targets[] = {"train"};
  g_auto (Job) job = set_up_job ("time");
  g_auto (Life) chief = {.job = &job};
  g_auto (Life) worker = {.job = &job, .task = 1, .settle_us = 60 * MUSTER_SECOND};
  g_auto (MusterPositionState) state = {0};
  begin_held (&chief, &worker);
  job_cut_off_a_step (&job, chief.scaffold, 1);
  const MusterStep step = {
      .targets = targets, .n_targets = 1, .deadline_us = muster_position_in_us (LIMIT_US)};

  MUSTER_EXPECT_FALSE (
      muster_position_run (worker.hook, worker.session, &step, NULL, NULL, &worker.error));

  MUSTER_EXPECT_ERROR (worker.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (strstr (worker.error->message, "the chief to restore the model"));
  read_state (muster_monitored_session_session (chief.session), &state);
  MUSTER_EXPECT_TRUE (state.is_raised);
}

MUSTER_TEST (PositionFence, names_the_chief_that_a_worker_waits_for_in_vain)
{
  g_auto (Job) job = set_up_job ("vain");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) worker = {.job = &job, .task = 1, .clock = MUSTER_CLOCK (clock)};
  g_autoptr (GError) error = NULL;
  begin_held (&chief, &worker);
  MUSTER_EXPECT_TRUE (muster_position_fence (muster_monitored_session_session (chief.session),
                                             MUSTER_WAIT_FOREVER, NULL, &error));
  heard_begin (G_LOG_LEVEL_MESSAGE);

  MUSTER_EXPECT_FALSE (life_step (&worker));

  MUSTER_EXPECT_EQ (heard_count ("position", "waiting for the chief (chief:0, *"), 1u);
  heard_end ();
  MUSTER_EXPECT_ERROR (worker.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (strstr (worker.error->message,
                              "for the chief (chief:0, unless another task leads) to restore"));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 30 * 60 * MUSTER_SECOND);
}
