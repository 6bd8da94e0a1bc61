// SPDX-License-Identifier: Apache-2.0
/* Steps that the master refuses, since another process has made the slot's next. */
#include "train/position/position.h"

#include "tests/doubles/fake_clock.h"
#include "tests/doubles/held_master.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

MUSTER_TEST (PositionRefused, goes_on_after_a_task_that_was_asleep_has_made_its_step)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "asleep");
  g_auto (Life) chief = {.job = &job};
  job.n_batches = 20;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  for (gint64 i = 0; i < 4; i++) {
    life_step_apart (&chief, MUSTER_POSITION_TRAIN, 0, muster_position_hook_position (chief.hook),
                     2 * i);
    MUSTER_EXPECT_TRUE (life_step (&chief));
    MUSTER_EXPECT_EQ (life_in_hand (&chief, 0), 2 * i + 1);
    MUSTER_EXPECT_TRUE (life_step (&chief));
    MUSTER_EXPECT_EQ (life_in_hand (&chief, 0), 2 * i + 2);
  }
  MUSTER_EXPECT_NO_ERROR (chief.error);
  life_run_to_end (&chief, 20);
}

/* Between this task's look at its slot and its step. */
static guint64
make_its_step (gpointer data)
{
  Life *life = data;
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  MUSTER_EXPECT_TRUE (muster_position_read (muster_monitored_session_session (life->session),
                                            JOB_SLOTS, &state, MUSTER_WAIT_FOREVER, NULL, NULL));
  life_step_apart (life, MUSTER_POSITION_TRAIN, 0, muster_position_done (&state, 0),
                   muster_position_taken (&state, 0));
  return 0;
}

static gboolean
has_nobody (guint slot G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  return FALSE;
}

static const SlotFuncs fight = {make_its_step, has_nobody, NULL, NULL};

static void
begin_with (Life *life, MusterPositionSlots *slots, MusterFakeClock *clock)
{
  life->slots = slots;
  life->clock = MUSTER_CLOCK (clock);
  life_begin (life);
  MUSTER_ASSERT_NO_ERROR (life->error);
}

MUSTER_TEST (PositionRefused, fails_if_another_process_keeps_making_its_steps)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "fights");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterPositionSlots) slots = slots_new (&fight, &chief);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  begin_with (&chief, slots, clock);

  for (int i = 0; i < 10000 && life_step (&chief); i++)
    ;

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 10 * MUSTER_SECOND);
  MUSTER_EXPECT_ERROR (chief.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (chief.error && strstr (chief.error->message, "another process runs as"));
}

/* A job that waits for tasks makes no steps. */
MUSTER_TEST (PositionRefused, goes_on_after_a_pause_that_began_with_a_refused_step)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "rests");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterPositionSlots) slots = slots_new (&fight, &chief);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  begin_with (&chief, slots, clock);
  MUSTER_ASSERT_TRUE (life_step (&chief));

  muster_fake_clock_pass (clock, 20 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_position_run_idle (chief.hook, chief.session, NULL));

  MUSTER_EXPECT_TRUE (life_step (&chief));
  MUSTER_EXPECT_NO_ERROR (chief.error);
}

/* A task that is stopped, or whose turn comes seldom: another has been there each time. */
MUSTER_TEST (PositionRefused, goes_on_where_its_steps_are_far_apart)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "apart");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterPositionSlots) slots = slots_new (&fight, &chief);
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  begin_with (&chief, slots, clock);

  for (int i = 0; i < 3; i++) {
    MUSTER_EXPECT_TRUE (life_step (&chief));
    muster_fake_clock_pass (clock, 20 * MUSTER_SECOND);
  }

  MUSTER_EXPECT_NO_ERROR (chief.error);
}

/* A process that has no batch in hand between its steps. */
typedef struct {
  Life *life;
  guint n_left; /* how often it makes its steps */
} Draws;

/* After each step of the task in slot 2: between its look at the slot and its first draw, too. */
static void
draw_and_train (gpointer data)
{
  Draws *self = data;
  g_auto (MusterPositionState) state = {.is_dealt = TRUE};
  if (self->n_left == 0)
    return;
  self->n_left--;
  MUSTER_EXPECT_TRUE (muster_position_read (muster_monitored_session_session (self->life->session),
                                            JOB_SLOTS, &state, MUSTER_WAIT_FOREVER, NULL, NULL));
  const gint64 position = muster_position_done (&state, 2);
  life_step_apart (self->life, MUSTER_POSITION_DRAW, 2, position, 0);
  life_step_apart (self->life, MUSTER_POSITION_LAST, 2, position + 1, life_in_hand (self->life, 2));
}

MUSTER_TEST (PositionRefused, draws_again_where_another_process_has_drawn)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "draws");
  g_auto (Life) chief = {.job = &job}, worker = {.job = &job, .task = 2, .is_worker = TRUE};
  Draws draws = {&chief, 20};
  MusterMaster *master = job.master;
  g_autoptr (MusterHeldMaster) between = muster_held_master_new (master);
  job.n_batches = 40;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  muster_held_master_after_run (between, draw_and_train, &draws);
  job.master = MUSTER_MASTER (between);

  life_begin (&worker);

  job.master = master;
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (draws.n_left, 0u);
  MUSTER_EXPECT_GE (life_in_hand (&chief, 2), 20);
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 41);
}
