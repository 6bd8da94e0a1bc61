// SPDX-License-Identifier: Apache-2.0
/* A server that drains beneath a job of three tasks: the job goes on with the next server, and no
 * step is lost or made twice. */
#include "base/error.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "master/remote/remote_master.h"
#include "tests/deadline.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

#include <signal.h>

enum { N_TASKS = 3, N_BATCHES = 3000, N_BEFORE = 300 };

#define GRACE_US (30 * MUSTER_SECOND)

typedef struct {
  Life life;
  gint *n_trained; /* atomic; of all tasks: steps that returned */
} Task;

static gpointer
train (gpointer data)
{
  static const char *const targets[] = {"train"};
  const MusterStep step = {.targets = targets, .n_targets = 1};
  Task *self = data;
  Life *life = &self->life;
  gboolean is_well = TRUE;
  life_begin (life);
  MUSTER_EXPECT_NO_ERROR (life->error);
  if (life->session == NULL)
    return NULL;
  while (is_well && !muster_monitored_session_should_stop (life->session)) {
    gboolean trained = FALSE;
    is_well = muster_position_run (life->hook, life->session, &step, NULL, &trained, &life->error);
    if (is_well && trained)
      g_atomic_int_inc (self->n_trained);
  }
  MUSTER_EXPECT_NO_ERROR (life->error);
  life->n_recoveries = muster_monitored_session_n_recoveries (life->session);
  (void)muster_monitored_session_finish (life->session, life->error, test_deadline (), NULL);
  return NULL;
}

static gboolean
await_steps (const gint *n_trained, gint n)
{
  gint64 deadline_us = test_deadline ();
  while (g_atomic_int_get (n_trained) < n &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    g_usleep (1000);
  return g_atomic_int_get (n_trained) >= n;
}

static gboolean
await_drained (MusterServer *server)
{
  gint64 deadline_us = test_deadline ();
  while (!muster_server_is_drained (server, NULL) &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    g_usleep (1000);
  return muster_server_is_drained (server, NULL);
}

/* Ends the server and starts another at its address. */
static void
restart (Job *job)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  const char *address = strstr (muster_master_target (job->master), "://") + 3;
  muster_server_stop (job->server, MUSTER_SECOND);
  muster_server_free (job->server);
  job->server = muster_server_new (engine, NULL);
  MUSTER_EXPECT_GT (muster_server_listen (job->server, address, &error), 0);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (job->server);
}

static void
run_job (Job *job, gboolean drains, gint *n_trained)
{
  Task tasks[N_TASKS];
  GThread *threads[N_TASKS];
  job->n_batches = N_BATCHES;
  job->save_steps = 1000000;
  for (guint i = 0; i < N_TASKS; i++) {
    tasks[i] = (Task){{.job = job, .task = i}, n_trained};
    threads[i] = g_thread_new ("task", train, &tasks[i]);
  }
  MUSTER_EXPECT_TRUE (await_steps (n_trained, N_BEFORE));
  MUSTER_EXPECT_FALSE (muster_server_is_drained (job->server, NULL));
  if (drains) {
    muster_server_drain (job->server, GRACE_US);
    MUSTER_EXPECT_TRUE (await_drained (job->server));
  }
  restart (job);
  for (guint i = 0; i < N_TASKS; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_GT (tasks[i].life.n_recoveries, 0u);
    life_end (&tasks[i].life);
  }
}

static void
expect_nothing_lost (gboolean in_background)
{
  g_auto (Job) job = job_set_up_served (N_TASKS);
  gint n_trained = 0;
  job.saves_in_background = in_background;
  job_name_directory (&job, in_background ? "background" : "blocking");
  run_job (&job, TRUE, &n_trained);

  MUSTER_EXPECT_EQ (n_trained, N_BATCHES);
}

MUSTER_TEST (Drain, loses_no_step_of_a_job_that_saves_in_the_background)
{
  expect_nothing_lost (TRUE);
}

MUSTER_TEST (Drain, loses_no_step_of_a_job_whose_saves_block)
{
  expect_nothing_lost (FALSE);
}

/* What the others are compared with. */
MUSTER_TEST (Drain, is_what_saves_the_steps)
{
  g_auto (Job) job = job_set_up_served (N_TASKS);
  gint n_trained = 0;
  run_job (&job, FALSE, &n_trained);

  MUSTER_EXPECT_GT (n_trained, N_BATCHES);
}

static gint64
hold_of (Life *life)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterPositionState) state = {0};
  MUSTER_EXPECT_TRUE (muster_position_read (muster_monitored_session_session (life->session),
                                            life->job->n_tasks, &state, test_deadline (), NULL,
                                            &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return error == NULL ? state.hold : -1;
}

/* Trains until the chief has saved because its master is about to stop, after the grace. */
static gboolean
train_until_hold (Job *job, Life lives[2], gint64 grace_us)
{
  gint64 deadline_us = test_deadline ();
  muster_server_drain (job->server, grace_us);
  while (hold_of (&lives[1]) == MUSTER_POSITION_GO &&
         muster_clock_now_us (muster_system_clock ()) < deadline_us)
    if (!life_step (&lives[0]))
      break;
  MUSTER_EXPECT_NO_ERROR (lives[0].error);
  return hold_of (&lives[1]) == MUSTER_POSITION_WAIT;
}

static void
begin_two (Job *job, gint64 save_steps, Life lives[2])
{
  job->save_steps = save_steps;
  for (guint i = 0; i < 2; i++) {
    lives[i] = (Life){.job = job, .task = i};
    life_begin (&lives[i]);
    MUSTER_ASSERT_NO_ERROR (lives[i].error);
  }
}

/* The master stops only once the job has ended properly. */
MUSTER_TEST (Drain, lets_a_job_end_that_was_saved_at_its_last_step)
{
  g_auto (Job) job = job_set_up_served (2);
  Life lives[2] = {0};
  g_autoptr (GError) error = NULL;
  job_name_directory (&job, "last");
  begin_two (&job, 1000000, lives);
  MUSTER_ASSERT_TRUE (train_until_hold (&job, lives, GRACE_US));
  MUSTER_EXPECT_FALSE (muster_server_is_drained (job.server, NULL));

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (lives[0].session, NULL, test_deadline (), &error));
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (hold_of (&lives[1]), MUSTER_POSITION_GO);
  life_end (&lives[0]);
  MUSTER_EXPECT_TRUE (await_drained (job.server));
  life_end (&lives[1]);
}

static gpointer
train_to_end (gpointer data)
{
  Life *life = data;
  while (!muster_monitored_session_should_stop (life->session) && life_step (life))
    ;
  return NULL;
}

/* A worker hears of the hold by its own steps: the one whose input takes long begins another after
 * the save. */
MUSTER_TEST (Drain, saves_again_what_a_slow_task_trained_after_the_save)
{
  g_auto (Job) job = job_set_up_served (2);
  Life lives[2] = {0};
  job_name_directory (&job, "late");
  begin_two (&job, 1000000, lives);
  MUSTER_ASSERT_TRUE (train_until_hold (&job, lives, GRACE_US));
  const gint64 n_before = muster_monitored_session_global_step (lives[0].session);

  MUSTER_EXPECT_TRUE (life_step (&lives[1]));
  GThread *thread = g_thread_new ("chief", train_to_end, &lives[0]);
  MUSTER_EXPECT_TRUE (await_drained (job.server));

  g_autofree char *wrong = job_check_latest (&job, n_before + 1);
  MUSTER_EXPECT_STREQ (wrong, NULL);
  restart (&job);
  muster_monitored_session_request_stop (lives[0].session);
  g_thread_join (thread);
  for (guint i = 0; i < 2; i++)
    life_end (&lives[i]);
}

/* As the worker's step does, until it ends. */
static void
begin_step (Life *worker)
{
  static const char *const target = "muster/step/begin";
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) task = muster_tensor_new_int64 (worker->task);
  g_autoptr (MusterTensor) position =
      muster_tensor_new_int64 (muster_position_hook_position (worker->hook));
  const MusterFeed feeds[] = {{MUSTER_POSITION_TASK, task}, {MUSTER_POSITION_POSITION, position}};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = G_N_ELEMENTS (feeds),
                           .targets = &target,
                           .n_targets = 1,
                           .deadline_us = test_deadline ()};
  MUSTER_EXPECT_TRUE (muster_session_run (muster_monitored_session_session (worker->session), &step,
                                          NULL, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* A step that doesn't end in the grace is lost, but no more than that. */
MUSTER_TEST (Drain, keeps_what_it_saved_where_it_cant_save_again)
{
  g_auto (Job) job = job_set_up_served (2);
  Life lives[2] = {0};
  job_name_directory (&job, "endless");
  begin_two (&job, 1000000, lives);
  MUSTER_ASSERT_TRUE (train_until_hold (&job, lives, 2 * MUSTER_SECOND));
  const gint64 n_before = muster_monitored_session_global_step (lives[0].session);

  begin_step (&lives[1]);
  GThread *thread = g_thread_new ("chief", train_to_end, &lives[0]);
  MUSTER_EXPECT_TRUE (await_drained (job.server));

  g_autofree char *wrong = job_check_latest (&job, n_before);
  MUSTER_EXPECT_STREQ (wrong, NULL);
  restart (&job);
  muster_monitored_session_request_stop (lives[0].session);
  g_thread_join (thread);
  for (guint i = 0; i < 2; i++)
    life_end (&lives[i]);
}

/* A thread of the chief notices that the master has stopped before its next step does. */
MUSTER_TEST (Drain, holds_nobody_after_the_saves_of_the_next_session)
{
  g_auto (Job) job = job_set_up_served (2);
  Life lives[2] = {0};
  g_autoptr (GError) lost =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "the master has stopped");

  job_name_directory (&job, "next");
  begin_two (&job, 3, lives);
  MUSTER_ASSERT_TRUE (train_until_hold (&job, lives, GRACE_US));
  restart (&job);
  muster_coordinator_request_stop (muster_monitored_session_coordinator (lives[0].session), lost,
                                   NULL);
  const guint n_saved = job.n_saved;

  for (guint i = 0; i < 8 && job.n_saved == n_saved; i++)
    MUSTER_EXPECT_TRUE (life_step (&lives[0]));

  MUSTER_EXPECT_NO_ERROR (lives[0].error);
  MUSTER_EXPECT_GT (job.n_saved, n_saved);
  MUSTER_EXPECT_EQ (hold_of (&lives[0]), MUSTER_POSITION_GO);
  for (guint i = 0; i < 2; i++)
    life_end (&lives[i]);
}

/* A chief of one task, until it has saved because its master is about to stop. */
static void
save_for_drain (Job *job, Life *chief, gboolean preempts)
{
  gint64 deadline_us = test_deadline ();
  job->save_steps = 1000000;
  *chief = (Life){.job = job, .task = 0};
  life_begin (chief);
  MUSTER_ASSERT_NO_ERROR (chief->error);
  const guint n_saved = job->n_saved;
  job->preempts_at_save = preempts;
  muster_server_drain (job->server, GRACE_US);
  while (job->n_saved == n_saved && muster_clock_now_us (muster_system_clock ()) < deadline_us)
    if (!life_step (chief))
      break;
  MUSTER_EXPECT_NO_ERROR (chief->error);
  MUSTER_EXPECT_EQ (job->n_saved, n_saved + 1);
}

/* As where a scheduler ends a whole job: chief and master get SIGTERM at the same time. */
MUSTER_TEST (Drain, ends_a_chief_that_is_preempted_during_the_save)
{
  g_auto (Job) job = job_set_up_served (1);
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (JOB_LIMIT_US, NULL);
  g_auto (MusterPreemptionReport) report = {0};
  Life chief = {0};
  job.preemption = preemption;
  job_name_directory (&job, "preempted");
  save_for_drain (&job, &chief, TRUE);

  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (chief.session));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, test_deadline (), &chief.error));
  MUSTER_EXPECT_TRUE (muster_preemption_report (preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  life_end (&chief);
}

/* As where a scheduler drains a job and then ends it: without another step, or another save. */
MUSTER_TEST (Drain, ends_a_chief_that_is_preempted_while_the_tasks_hold)
{
  g_auto (Job) job = job_set_up_served (1);
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (JOB_LIMIT_US, NULL);
  g_auto (MusterPreemptionReport) report = {0};
  g_autoptr (GError) error = NULL;
  Life chief = {0};
  job.preemption = preemption;
  job_name_directory (&job, "held");
  save_for_drain (&job, &chief, FALSE);
  const guint n_saved = job.n_saved;
  muster_preemption_request (preemption, SIGTERM);

  MUSTER_EXPECT_FALSE (life_step (&chief));

  MUSTER_EXPECT_SAYS (chief.error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "all is saved");
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (chief.session));
  MUSTER_EXPECT_TRUE (muster_server_is_drained (job.server, NULL));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, test_deadline (), &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (job.n_saved, n_saved);
  MUSTER_EXPECT_TRUE (muster_preemption_report (preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  g_clear_error (&chief.error);
  life_end (&chief);
}

/* It would otherwise look for the next master until its grace is over. */
MUSTER_TEST (Drain, lets_a_preempted_chief_await_no_other_master)
{
  g_auto (Job) job = job_set_up_served (1);
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (JOB_LIMIT_US, NULL);
  Life chief = {0};
  job.preemption = preemption;
  job_name_directory (&job, "alone");
  save_for_drain (&job, &chief, FALSE);
  muster_preemption_request (preemption, SIGTERM);
  restart (&job);

  while (life_step (&chief))
    MUSTER_ASSERT_FALSE (muster_monitored_session_should_stop (chief.session));
  MUSTER_EXPECT_TRUE (muster_preemption_explains (preemption, chief.error));
  g_clear_error (&chief.error);
  life_end (&chief);
}
