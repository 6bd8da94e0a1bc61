// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"
#include "train/goodput/goodput_meter.h"

typedef struct {
  MusterFakeClock *clock;
  MusterGoodputMeter *meter;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  f.meter = muster_goodput_meter_new (MUSTER_CLOCK (f.clock));
  return f;
}

static void
tear_down (Fixture *f)
{
  muster_goodput_meter_unref (f->meter);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
pass (Fixture *f, gint64 seconds)
{
  muster_fake_clock_pass (f->clock, seconds * MUSTER_SECOND);
}

static MusterGoodput
reading (Fixture *f)
{
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  muster_goodput_meter_read (f->meter, &goodput);
  return goodput;
}

/* In seconds, in the order of MusterTimeUse */
#define EXPECT_SPENT(f, ...)                                                                       \
  do {                                                                                             \
    const gint64 expected_[MUSTER_N_TIMES] = {__VA_ARGS__};                                        \
    const MusterGoodput got_ = reading (f);                                                        \
    for (guint i_ = 0; i_ < MUSTER_N_TIMES; i_++) {                                                \
      MUSTER_TRACE ("%s", muster_time_use_name ((MusterTimeUse)i_));                               \
      MUSTER_EXPECT_EQ (got_.spent_us[i_], expected_[i_] * MUSTER_SECOND);                         \
    }                                                                                              \
  } while (0)

/* A session that begins at a step, and trains to another. */
static void
train (Fixture *f, gint64 from, gint64 to, gint64 seconds_per_step)
{
  muster_goodput_meter_made (f->meter, 0, 0, from);
  (void)muster_goodput_meter_enter (f->meter, MUSTER_TIME_TRAINING);
  for (gint64 step = from + 1; step <= to; step++) {
    pass (f, seconds_per_step);
    muster_goodput_meter_note_step (f->meter, step);
  }
}

MUSTER_TEST (GoodputMeter, counts_what_a_run_does)
{
  g_auto (Fixture) f = set_up ();
  pass (&f, 10);
  muster_goodput_meter_made (f.meter, 3 * MUSTER_SECOND, 2 * MUSTER_SECOND, 100);
  pass (&f, 1);
  (void)muster_goodput_meter_enter (f.meter, MUSTER_TIME_TRAINING);
  pass (&f, 7);
  muster_goodput_meter_note_step (f.meter, 107);
  const MusterTimeUse before = muster_goodput_meter_enter (f.meter, MUSTER_TIME_SAVING);
  pass (&f, 4);
  (void)muster_goodput_meter_enter (f.meter, before);
  pass (&f, 8);

  EXPECT_SPENT (&f, 15, 0, 4, 5, 3, 3, 0);
  const MusterGoodput goodput = reading (&f);
  MUSTER_EXPECT_EQ (goodput.step, 107);
  MUSTER_EXPECT_EQ (goodput.n_restarts, (guint64)0);
  MUSTER_EXPECT_TRUE (goodput.began_us > 0);
  muster_goodput_meter_stop (f.meter);
  pass (&f, 100);
  EXPECT_SPENT (&f, 15, 0, 4, 5, 3, 3, 0);
}

MUSTER_TEST (GoodputMeter, knows_steps_that_are_trained_again)
{
  g_auto (Fixture) f = set_up ();
  train (&f, 0, 10, 1);
  pass (&f, 2); /* of a step that isn't finished */
  muster_goodput_meter_lost (f.meter);
  pass (&f, 5);

  train (&f, 4, 8, 1);
  EXPECT_SPENT (&f, 10, 4, 0, 7, 0, 0, 0);
  pass (&f, 4);
  muster_goodput_meter_note_step (f.meter, 12); /* by several tasks: half of it is new */
  EXPECT_SPENT (&f, 12, 6, 0, 7, 0, 0, 0);

  const MusterGoodput goodput = reading (&f);
  MUSTER_EXPECT_EQ (goodput.steps_again, (guint64)6);
  MUSTER_EXPECT_EQ (goodput.n_restarts, (guint64)1);
  MUSTER_EXPECT_EQ (goodput.n_failures, (guint64)1);
  MUSTER_EXPECT_EQ (goodput.step, 12);
}

/* A worker learns the step with its first run; steps that are read late don't go back. */
MUSTER_TEST (GoodputMeter, takes_steps_as_they_come)
{
  g_auto (Fixture) f = set_up ();
  train (&f, -1, 3, 1);
  muster_goodput_meter_note_step (f.meter, 2);
  muster_goodput_meter_note_step (f.meter, -1);
  pass (&f, 1);
  muster_goodput_meter_note_step (f.meter, 4);

  EXPECT_SPENT (&f, 5, 0, 0, 0, 0, 0, 0);
  MUSTER_EXPECT_EQ (reading (&f).step, 4);
}

static MusterGoodput
of_a_run_before (MusterRunEnd end)
{
  return (MusterGoodput){.began_us = 77,
                         .age_us = 30 * MUSTER_SECOND,
                         .spent_us = {100 * MUSTER_SECOND, 1, 2, 3, 4, 5, 6},
                         .n_restarts = 2,
                         .n_failures = 1,
                         .steps_again = 9,
                         .step = 50,
                         .end = end};
}

MUSTER_TEST (GoodputMeter, continues_the_run_before)
{
  static const struct {
    MusterRunEnd end;
    gint64 down_us; /* 24 s passed before this run's start: 30 s after it was written, 6 s ago */
    guint64 n_restarts, n_failures;
    gboolean is_least;
  } cases[] = {
      {MUSTER_RUN_UNENDED, 24 * MUSTER_SECOND, 3, 2, TRUE},
      {MUSTER_RUN_STOPPED, 24 * MUSTER_SECOND, 3, 1, FALSE},
      {MUSTER_RUN_FINISHED, 0, 2, 1, FALSE},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = set_up ();
    const MusterGoodput written = of_a_run_before (cases[i].end);
    MUSTER_TRACE ("end %d", (int)cases[i].end);
    pass (&f, 6);
    muster_goodput_meter_offer (f.meter, &written);
    muster_goodput_meter_resume (f.meter, NULL, 0, FALSE);
    muster_goodput_meter_resume (f.meter, NULL, 0, FALSE); /* of another session */
    train (&f, 40, 60, 1);

    const MusterGoodput goodput = reading (&f);
    MUSTER_EXPECT_EQ (goodput.began_us, 77);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_TRAINING], 110 * MUSTER_SECOND);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_REPEATED], 10 * MUSTER_SECOND + 1);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_DOWN], cases[i].down_us + 6);
    MUSTER_EXPECT_EQ (goodput.steps_again, (guint64)19);
    MUSTER_EXPECT_EQ (goodput.n_restarts, cases[i].n_restarts);
    MUSTER_EXPECT_EQ (goodput.n_failures, cases[i].n_failures);
    MUSTER_EXPECT_EQ (goodput.is_least, cases[i].is_least);
    MUSTER_EXPECT_EQ ((int)goodput.end, (int)MUSTER_RUN_UNENDED);
  }
}

/* What the chief before announced is later than what it wrote. */
MUSTER_TEST (GoodputMeter, prefers_what_was_announced_of_the_same_job)
{
  for (guint is_same = 0; is_same < 2; is_same++) {
    g_auto (Fixture) f = set_up ();
    const MusterGoodput written = of_a_run_before (MUSTER_RUN_UNENDED);
    MusterGoodput announced = written;
    MUSTER_TRACE ("the same: %u", is_same);
    announced.began_us += is_same ? 0 : 1;
    announced.step = 80;
    announced.spent_us[MUSTER_TIME_TRAINING] += 2 * MUSTER_SECOND;
    const gint64 started_us = muster_clock_now_us (MUSTER_CLOCK (f.clock));
    muster_goodput_meter_offer (f.meter, &written);
    muster_goodput_meter_resume (f.meter, &announced, started_us - 4 * MUSTER_SECOND, FALSE);

    const MusterGoodput goodput = reading (&f);
    MUSTER_EXPECT_EQ (goodput.step, is_same ? 80 : 50);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_DOWN], (is_same ? 4 : 30) * MUSTER_SECOND + 6);
    MUSTER_EXPECT_EQ (goodput.is_least, !is_same);
  }
}

/* The last announcement of a run that was told to stop was before it wrote that. */
MUSTER_TEST (GoodputMeter, prefers_the_end_that_was_written_after_the_last_announcement)
{
  g_auto (Fixture) f = set_up ();
  const MusterGoodput written = of_a_run_before (MUSTER_RUN_STOPPED);
  MusterGoodput announced = written;
  announced.end = MUSTER_RUN_UNENDED;
  announced.step = 49;
  announced.spent_us[MUSTER_TIME_TRAINING] -= MUSTER_SECOND;
  muster_goodput_meter_offer (f.meter, &written);
  muster_goodput_meter_resume (f.meter, &announced,
                               muster_clock_now_us (MUSTER_CLOCK (f.clock)) - 31 * MUSTER_SECOND,
                               FALSE);

  const MusterGoodput goodput = reading (&f);
  MUSTER_EXPECT_EQ (goodput.step, 50);
  MUSTER_EXPECT_EQ (goodput.n_restarts, (guint64)3);
  MUSTER_EXPECT_EQ (goodput.n_failures, (guint64)1);
  MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_DOWN], 30 * MUSTER_SECOND + 6);
  MUSTER_EXPECT_FALSE (goodput.is_least);
}

MUSTER_TEST (GoodputMeter, counts_once_the_time_in_which_the_run_before_went_on)
{
  g_auto (Fixture) f = set_up ();
  const MusterGoodput written = of_a_run_before (MUSTER_RUN_UNENDED);
  MusterGoodput announced = written;
  muster_goodput_meter_offer (f.meter, &written);
  pass (&f, 100); /* this process waits, and for 90 s of it the chief before trains */
  announced.spent_us[MUSTER_TIME_TRAINING] += 120 * MUSTER_SECOND;
  muster_goodput_meter_resume (f.meter, &announced,
                               muster_clock_now_us (MUSTER_CLOCK (f.clock)) - 10 * MUSTER_SECOND,
                               FALSE);

  const MusterGoodput goodput = reading (&f);
  MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_TRAINING], 220 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_WAITING], 10 * MUSTER_SECOND + 3);
  MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_DOWN], (gint64)6);
}

MUSTER_TEST (GoodputMeter, counts_the_time_without_a_chief_as_training_if_others_trained)
{
  for (int i = 0; i < 4; i++) {
    const gboolean others_train = i % 2 == 1, is_continued = i / 2 == 1;
    g_auto (Fixture) f = set_up ();
    const MusterGoodput written = of_a_run_before (MUSTER_RUN_UNENDED);
    const gint64 down_us = 30 * MUSTER_SECOND;
    muster_goodput_meter_offer (f.meter, &written);
    if (others_train)
      muster_goodput_meter_set_others_train (f.meter);
    muster_goodput_meter_resume (f.meter, NULL, 0, is_continued);

    const MusterGoodput goodput = reading (&f);
    const gint64 training_us = goodput.spent_us[MUSTER_TIME_TRAINING];
    MUSTER_EXPECT_EQ (training_us - written.spent_us[MUSTER_TIME_TRAINING],
                      others_train && is_continued ? down_us : 0);
    MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_DOWN] - written.spent_us[MUSTER_TIME_DOWN],
                      others_train && is_continued ? 0 : down_us);
  }
}

MUSTER_TEST (GoodputMeter, begins_anew_with_a_new_model)
{
  g_auto (Fixture) f = set_up ();
  const MusterGoodput written = of_a_run_before (MUSTER_RUN_UNENDED);
  muster_goodput_meter_offer (f.meter, &written);
  muster_goodput_meter_forget (f.meter);
  muster_goodput_meter_resume (f.meter, &written, 0, FALSE); /* a recovery */

  EXPECT_SPENT (&f, 0, 0, 0, 0, 0, 0, 0);
  MUSTER_EXPECT_EQ (reading (&f).step, -1);
}
