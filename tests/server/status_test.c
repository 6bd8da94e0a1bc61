// SPDX-License-Identifier: Apache-2.0
#include "server/core/step_meter.h"
#include "tests/doubles/fake_clock.h"
#include "tests/server/served.h"

#include "engine/session/local_master.h"

MUSTER_TEST (StepMeter, reports_the_steps_of_the_last_ten_seconds)
{
  g_autoptr (MusterStepMeter) meter = muster_step_meter_new ();
  gint64 start_us = 1000 * MUSTER_SECOND;
  for (int i = 0; i < 600; i++) /* ten a second for a minute */
    muster_step_meter_add (meter, start_us + i * MUSTER_SECOND / 10, 5);

  gint64 end_us = start_us + 60 * MUSTER_SECOND;
  MUSTER_EXPECT_NEAR (muster_step_meter_per_second (meter, end_us - 1, start_us), 10, 0.01);
  MUSTER_EXPECT_EQ (muster_step_meter_n_steps (meter), (guint64)600);
  MUSTER_EXPECT_EQ (muster_step_meter_total_us (meter), (gint64)3000);
  MUSTER_EXPECT_NEAR (muster_step_meter_per_second (meter, end_us + 11 * MUSTER_SECOND, start_us),
                      0, 0);
}

MUSTER_TEST (StepMeter, counts_only_the_time_that_it_ran)
{
  g_autoptr (MusterStepMeter) meter = muster_step_meter_new ();
  gint64 start_us = 1000 * MUSTER_SECOND;
  muster_step_meter_add (meter, start_us + MUSTER_SECOND, 5);
  muster_step_meter_add (meter, start_us + MUSTER_SECOND, 5);

  MUSTER_EXPECT_NEAR (muster_step_meter_per_second (meter, start_us + 2 * MUSTER_SECOND, start_us),
                      1, 1e-9);
  MUSTER_EXPECT_NEAR (muster_step_meter_per_second (meter, start_us, start_us), 2, 1e-9);
}

MUSTER_TEST (StepMeter, reports_quantiles_of_the_last_thousand)
{
  const double quantiles[] = {0, 0.5, 0.99, 1};
  gint64 got[4];
  g_autoptr (MusterStepMeter) meter = muster_step_meter_new ();
  muster_step_meter_quantiles (meter, quantiles, 4, got);
  MUSTER_EXPECT_EQ (got[1], (gint64)0);

  for (int i = 0; i < 500; i++)
    muster_step_meter_add (meter, 0, MUSTER_WAIT_FOREVER); /* all of them forgotten */
  for (int i = 0; i < 1000; i++)
    muster_step_meter_add (meter, 0, 1000 - i);
  muster_step_meter_quantiles (meter, quantiles, 4, got);

  MUSTER_EXPECT_EQ (got[0], (gint64)1);
  MUSTER_EXPECT_EQ (got[1], (gint64)501);
  MUSTER_EXPECT_EQ (got[2], (gint64)991);
  MUSTER_EXPECT_EQ (got[3], (gint64)1000);
}

MUSTER_TEST (StepMeter, reports_for_how_long_no_running_step_has_ended)
{
  g_autoptr (MusterStepMeter) meter = muster_step_meter_new ();
  const gint64 start_us = 1000 * MUSTER_SECOND;
  MUSTER_EXPECT_EQ (muster_step_meter_stalled_us (meter, start_us), (gint64)0);

  muster_step_meter_begin (meter, start_us);
  muster_step_meter_begin (meter, start_us + 2 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_step_meter_stalled_us (meter, start_us + 45 * MUSTER_SECOND),
                    45 * MUSTER_SECOND);
  muster_step_meter_add (meter, start_us + 50 * MUSTER_SECOND, 5);
  MUSTER_EXPECT_EQ (muster_step_meter_stalled_us (meter, start_us + 51 * MUSTER_SECOND),
                    MUSTER_SECOND);
  muster_step_meter_add (meter, start_us + 52 * MUSTER_SECOND, 5);
  MUSTER_EXPECT_EQ (muster_step_meter_stalled_us (meter, start_us + 90 * MUSTER_SECOND), (gint64)0);

  muster_step_meter_begin (meter, start_us + 100 * MUSTER_SECOND); /* the idle time isn't a stall */
  MUSTER_EXPECT_EQ (muster_step_meter_stalled_us (meter, start_us + 101 * MUSTER_SECOND),
                    MUSTER_SECOND);
}

typedef struct {
  MusterStepMeter *meter; /* (not owned) */
} Adder;

static gpointer
add_many (gpointer data)
{
  const Adder *self = data;
  for (int i = 0; i < 10000; i++)
    muster_step_meter_add (self->meter, i % 3 * MUSTER_SECOND + 20 * MUSTER_SECOND, 1);
  return NULL;
}

MUSTER_TEST (StepMeter, loses_no_step_of_many_threads)
{
  g_autoptr (MusterStepMeter) meter = muster_step_meter_new ();
  Adder adder = {meter};
  GThread *threads[4];
  for (int i = 0; i < 4; i++)
    threads[i] = g_thread_new ("adder", add_many, &adder);
  for (int i = 0; i < 4; i++)
    g_thread_join (threads[i]);

  MUSTER_EXPECT_EQ (muster_step_meter_n_steps (meter), (guint64)40000);
  MUSTER_EXPECT_NEAR (muster_step_meter_per_second (meter, 24 * MUSTER_SECOND, 20 * MUSTER_SECOND),
                      10000, 1e-6);
}

MUSTER_TEST (Status, reports_what_goes_on)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);

  const Muster__StatusResponse *status = served_status (&f, arena);

  MUSTER_ASSERT_TRUE (status != NULL);
  MUSTER_EXPECT_STREQ (status->master, "local");
  MUSTER_EXPECT_TRUE (*status->version != '\0');
  MUSTER_EXPECT_TRUE (status->uptime_us > 0);
  MUSTER_EXPECT_EQ (status->sessions, 1);
  MUSTER_EXPECT_EQ (status->steps, 2);
  MUSTER_EXPECT_TRUE (status->memory_bytes > 1000000);
  MUSTER_EXPECT_TRUE (status->median_step_us > 0);
  MUSTER_EXPECT_TRUE (status->longest_step_us >= status->median_step_us);
  MUSTER_EXPECT_TRUE (status->steps_per_second > 0);
}

/* A job with a fixed number of tasks has no members: its workers were to be seen while they waited.
 */
MUSTER_TEST (Status, lists_the_tasks_that_wait_no_longer)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_TRUE (session != NULL && served_run (session, "init", &error));
  const MusterWatchFor what = {.ready_op = ready_op, .model = "digits", .task = "worker:3"};
  MusterWatch *watch = muster_session_watch (session, &what, test_deadline (), &error);
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_ASSERT_TRUE (watch != NULL && muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_TRUE (readiness.is_ready);

  g_object_unref (watch);
  const gint64 until_us = test_deadline ();
  const Muster__StatusResponse *status = served_status (&f, arena);
  while (status != NULL && status->n_tasks == 0 &&
         muster_clock_now_us (muster_system_clock ()) < until_us)
    status = served_status (&f, arena);

  MUSTER_ASSERT_TRUE (status != NULL);
  MUSTER_ASSERT_EQ (status->n_tasks, 1u);
  MUSTER_EXPECT_STREQ (status->tasks[0]->task, "worker:3");
  MUSTER_EXPECT_STREQ (status->tasks[0]->model, "digits");
  MUSTER_EXPECT_TRUE (*status->tasks[0]->who != '\0' && status->tasks[0]->age_us >= 0);
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  MUSTER_EXPECT_EQ (served_status (&f, arena)->n_tasks, 0u);
}

MUSTER_TEST (Status, lists_who_waits_and_for_what)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_op = ready_op}, test_deadline (), &error);
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_ASSERT_TRUE (watch != NULL && muster_watch_next (watch, &readiness, NULL, &error));

  /* The turn is noted just after it was sent. */
  const Muster__StatusResponse *status = served_status (&f, arena);
  while (status != NULL && status->n_waiters == 1 &&
         strcmp (status->waiters[0]->waits_for, "ready") != 0)
    status = served_status (&f, arena);

  MUSTER_ASSERT_TRUE (status != NULL);
  MUSTER_EXPECT_EQ (status->watchers, 1);
  MUSTER_ASSERT_EQ (status->n_waiters, 1u);
  MUSTER_EXPECT_STREQ (status->waiters[0]->waits_for, "ready");
  MUSTER_EXPECT_TRUE (strstr (status->waiters[0]->why, "v") != NULL);
}
