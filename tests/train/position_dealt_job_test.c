// SPDX-License-Identifier: Apache-2.0
/* Jobs whose batches are dealt: tasks that come and go, and what they leave in hand. */
#include "train/position/position.h"

#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"
#include "train/position/position_private.h"

MUSTER_TEST (PositionDealtJob, goes_on_with_the_batch_in_hand_at_the_last_save)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "goes_on");
  job.n_batches = 9;
  for (int i = 0; i < 3; i++) {
    g_auto (Life) life = {.job = &job};
    g_clear_object (&job.master); /* which has died as well */
    job.master = muster_local_master_new ();
    life_begin (&life);
    MUSTER_ASSERT_NO_ERROR (life.error);
    for (int step = 0; step < 5 && 3 * i + step < 9; step++) /* the fourth and fifth are lost */
      MUSTER_ASSERT_TRUE (life_step (&life));
  }
  g_autofree char *wrong = job_check_latest (&job, 9);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionDealtJob, trains_each_batch_once_with_any_number_of_tasks)
{
  static const guint numbers[] = {1, 2, 3, 8};
  for (gsize i = 0; i < 2 * G_N_ELEMENTS (numbers); i++) {
    const guint n_tasks = numbers[i / 2];
    const gboolean is_served = i % 2;
    g_autofree char *name = g_strdup_printf ("any-%u-%d", n_tasks, is_served);
    MUSTER_TRACE ("%s", name);
    g_auto (Job) job = job_set_up_dealt (is_served, name);
    job.n_batches = 200;
    job.save_steps = 20;

    job_run_dealt (&job, n_tasks);

    MUSTER_EXPECT_GE (job.n_saved, 2u);
    g_autofree char *wrong = job_check_latest (&job, 200);
    MUSTER_EXPECT_STREQ (wrong, NULL);
  }
}

/* --- what a gone task has left --- */

static gboolean
is_busy (Life *life, guint slot)
{
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  return muster_position_read (muster_monitored_session_session (life->session), JOB_SLOTS, &state,
                               MUSTER_WAIT_FOREVER, NULL, NULL) &&
         muster_position_begun (&state, slot) != muster_position_done (&state, slot);
}

MUSTER_TEST (PositionDealtJob, does_what_a_gone_task_had_in_hand_at_the_next_step)
{
  for (int is_served = 0; is_served < 2; is_served++) {
    g_auto (Job) job = job_set_up_dealt (is_served, is_served ? "gone-served" : "gone");
    Board board = {.has_task = {TRUE, TRUE}};
    g_autoptr (MusterPositionSlots) slots = board_slots (&board);
    g_auto (Life) chief = {.job = &job, .slots = slots},
                  worker = {.job = &job, .task = 1, .is_worker = TRUE, .slots = slots};
    job.n_batches = 20;
    life_begin (&chief);
    MUSTER_ASSERT_NO_ERROR (chief.error);
    life_begin (&worker);
    MUSTER_ASSERT_NO_ERROR (worker.error);
    MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&worker) && life_step (&chief));
    MUSTER_EXPECT_EQ (life_in_hand (&chief, 1), 3);
    const gint64 own = life_in_hand (&chief, 0);

    life_end (&worker);
    board_leave (&board, 1);
    MUSTER_EXPECT_TRUE (life_step (&chief));

    MUSTER_EXPECT_EQ (life_in_hand (&chief, 1), MUSTER_POSITION_NOTHING);
    MUSTER_EXPECT_EQ (life_in_hand (&chief, 0), own);
    MUSTER_EXPECT_EQ (board.n_claims, 1u);
    MUSTER_EXPECT_FALSE (board.has_task[1]);
    life_run_to_end (&chief, 20);
    MUSTER_EXPECT_EQ (board.n_claims, 1u);
  }
}

MUSTER_TEST (PositionDealtJob, leaves_the_gone_tasks_batch_to_a_task_that_is_quicker)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "quicker");
  Board board = {.has_task = {TRUE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .slots = slots},
                worker = {.job = &job, .task = 1, .is_worker = TRUE, .slots = slots};
  job.n_batches = 20;
  life_begin (&chief);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_TRUE (life_step (&worker));
  life_end (&worker);

  board_leave (&board, 1);
  board_enter (&board, 1); /* its next life */
  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_EXPECT_EQ (board.n_claims, 0u);
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 1), 2);
  g_auto (Life) next = {.job = &job, .task = 1, .is_worker = TRUE, .slots = slots};
  life_begin (&next);
  MUSTER_ASSERT_NO_ERROR (next.error);
  MUSTER_EXPECT_TRUE (life_step (&next));
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 1), 4);
  life_end (&next);
  board_leave (&board, 1);
  life_run_to_end (&chief, 20);
}

/* The task in the lowest slot doesn't: it may be slow, or stopped. */
MUSTER_TEST (PositionDealtJob, does_what_is_left_before_it_ends_whoever_else_might)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "whoever");
  Board board = {.has_task = {TRUE, FALSE, FALSE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .task = 3, .slots = slots},
                worker = {.job = &job, .task = 2, .is_worker = TRUE};
  job.n_batches = 6;
  life_begin (&chief);
  life_begin (&worker); /* which dies with a batch in hand */
  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 2), 1);
  life_end (&worker);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (life_step (&chief));
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 2), 1);
  MUSTER_EXPECT_FALSE (muster_position_hook_is_over (chief.hook));

  life_run_to_end (&chief, 6);

  MUSTER_EXPECT_EQ (board.n_claims, 1u);
}

MUSTER_TEST (PositionDealtJob, lets_a_task_that_wakes_up_have_its_batch)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "wakes");
  Board board = {.has_task = {TRUE, FALSE, FALSE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .task = 3, .slots = slots},
                worker = {.job = &job, .task = 2, .is_worker = TRUE};
  job.n_batches = 6;
  life_begin (&chief);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  for (int i = 0; i < 6; i++) /* in the last, it takes the slot over */
    MUSTER_ASSERT_TRUE (life_step (&chief));
  MUSTER_EXPECT_EQ (board.n_claims, 1u);
  MUSTER_EXPECT_TRUE (board.has_task[2]);

  life_step_apart (&worker, MUSTER_POSITION_TRAIN, 2, 1, 1);
  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_EXPECT_NO_ERROR (chief.error);
  MUSTER_EXPECT_FALSE (board.has_task[2]);
  life_run_to_end (&chief, 6);
  MUSTER_EXPECT_EQ (board.n_claims, 1u);
}

MUSTER_TEST (PositionDealtJob, goes_on_after_a_step_whose_response_was_lost)
{
  g_auto (Job) job = job_set_up_dealt (TRUE, "lost");
  g_auto (Life) chief = {.job = &job}, next = {.job = &job};
  job.n_batches = 12;
  job.save_steps = 1000000;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&chief));
  life_step_apart (&chief, MUSTER_POSITION_TRAIN, 0, 3, 2); /* after a draw and two steps */
  life_end (&chief);

  life_begin (&next);

  MUSTER_ASSERT_NO_ERROR (next.error);
  MUSTER_EXPECT_TRUE (next.continued);
  MUSTER_EXPECT_EQ (muster_position_hook_position (next.hook), 4);
  MUSTER_EXPECT_EQ (life_in_hand (&next, 0), 3);
  life_run_to_end (&next, 12);
}

MUSTER_TEST (PositionDealtJob, names_the_slot_that_it_waits_for)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "names");
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Board board = {.has_task = {TRUE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .slots = slots, .clock = MUSTER_CLOCK (clock)},
                worker = {.job = &job, .task = 1, .is_worker = TRUE, .slots = slots};
  MusterAwaited awaited = {0};
  job.n_batches = 3;
  life_begin (&chief);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  for (int i = 0; i < 2; i++)
    MUSTER_ASSERT_TRUE (life_step (&chief));

  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "the task in slot 1");
  MUSTER_EXPECT_EQ (board.n_claims + board.n_refused, 0u);
  while (life_step (&chief))
    ;
  MUSTER_EXPECT_ERROR (chief.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (chief.error &&
                      strstr (chief.error->message, "the task in slot 1 doesn't finish; end its"));
}

/* Its own batches don't wait for the gone task's step, which no one can undo but all. */
MUSTER_TEST (PositionDealtJob, goes_back_to_the_checkpoint_over_a_gone_tasks_step)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "over");
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Board board = {.has_task = {TRUE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .slots = slots, .clock = MUSTER_CLOCK (clock)};
  job.n_batches = 30;
  job.save_steps = 5;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (int i = 0; i < 6; i++) /* saved at 5 */
    MUSTER_ASSERT_TRUE (life_step (&chief));
  job_cut_off_a_step (&job, chief.scaffold, 1);
  board_leave (&board, 1);

  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_EXPECT_EQ (board.n_claims, 1u);
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 0), 7);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 0u);
  (void)muster_clock_wait_until (
      MUSTER_CLOCK (clock), muster_clock_now_us (MUSTER_CLOCK (clock)) + MUSTER_SECOND, NULL, NULL);
  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 1u);
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 0), 6);
  life_run_to_end (&chief, 30);
  MUSTER_EXPECT_FALSE (board.has_task[1]);
}

typedef struct {
  Life *life;
  gint has_ended; /* atomic */
} Late;

static gpointer
make_a_late_step (gpointer data)
{
  Late *late = data;
  life_step_apart (late->life, MUSTER_POSITION_TRAIN, 1, 1, 1);
  g_atomic_int_set (&late->has_ended, 1);
  return NULL;
}

/* The slot is claimed while the gone task's step runs. No time passes: nothing is undone. */
MUSTER_TEST (PositionDealtJob, trains_on_until_a_gone_tasks_step_has_ended)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "late");
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Board board = {.has_task = {TRUE, TRUE}};
  g_autoptr (MusterPositionSlots) slots = board_slots (&board);
  g_auto (Life) chief = {.job = &job, .slots = slots, .clock = MUSTER_CLOCK (clock)},
                worker = {.job = &job, .task = 1, .is_worker = TRUE, .slots = slots};
  Late late = {.life = &worker};
  guint n_meanwhile = 0;
  job.n_batches = 1000000;
  job.save_steps = 1000000;
  job.work = 600; /* most of a step lies between its writes */
  life_begin (&chief);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  GThread *thread = g_thread_new ("late", make_a_late_step, &late);
  while (!is_busy (&chief, 1) && !g_atomic_int_get (&late.has_ended))
    g_thread_yield ();

  board_leave (&board, 1);
  do
    MUSTER_EXPECT_TRUE (life_step (&chief));
  while (!g_atomic_int_get (&late.has_ended) && ++n_meanwhile < 1000);
  g_thread_join (thread);

  MUSTER_EXPECT_TRUE (life_step (&chief) && life_step (&chief));
  MUSTER_EXPECT_EQ (life_in_hand (&chief, 1), MUSTER_POSITION_NOTHING);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 0u);
  MUSTER_EXPECT_FALSE (board.has_task[1]);
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, MUSTER_WAIT_FOREVER, &chief.error));
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
  g_autofree char *wrong = muster_seen_model_check (latest, JOB_SLOTS, NULL);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}
