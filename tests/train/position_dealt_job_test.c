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

#define N_SLOTS 8

static Job
dealt_job (gboolean is_served, const char *name)
{
  Job job = is_served ? job_set_up_served (N_SLOTS) : job_set_up (N_SLOTS);

  job.is_dealt = TRUE;
  job_name_directory (&job, name);
  return job;
}

/* What is wrong with the latest checkpoint, or with how much went into it (transfer full). */
static char *
check_latest (Job *job, gint64 n_batches)
{
  g_autofree char *latest =
      muster_latest_checkpoint (muster_local_storage (), job->directory, NULL);
  gint64 n_done = -1;
  char *wrong = latest != NULL ? muster_seen_model_check (latest, job->n_tasks, &n_done)
                               : g_strdup ("there is no checkpoint");

  if (wrong == NULL && n_done != n_batches)
    wrong = g_strdup_printf ("%" G_GINT64_FORMAT " batches are done", n_done);
  return wrong;
}

MUSTER_TEST (PositionDealtJob, goes_on_with_the_batch_in_hand_at_the_last_save)
{
  g_auto (Job) job = dealt_job (FALSE, "goes_on");

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
  g_autofree char *wrong = check_latest (&job, 9);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

static void
run_tasks (Job *job, guint n_tasks)
{
  g_autofree Life *lives = g_new0 (Life, n_tasks);
  g_autofree GThread **threads = g_new0 (GThread *, n_tasks);
  Board board = {0};
  const MusterPositionSlots slots = board_slots (&board);

  for (guint i = 0; i < n_tasks; i++) {
    board_enter (&board, i);
    lives[i] = (Life){.job = job, .task = i, .is_worker = i > 0, .slots = &slots};
  }
  for (guint i = 0; i < n_tasks; i++)
    threads[i] = g_thread_new ("task", life_live, &lives[i]);
  for (guint i = 0; i < n_tasks; i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_NO_ERROR (lives[i].error);
    life_end (&lives[i]);
  }
  MUSTER_EXPECT_EQ (board.n_claims, 0u);
}

MUSTER_TEST (PositionDealtJob, trains_each_batch_once_with_any_number_of_tasks)
{
  static const guint numbers[] = {1, 2, 3, 8};

  for (gsize i = 0; i < 2 * G_N_ELEMENTS (numbers); i++) {
    const guint n_tasks = numbers[i / 2];
    const gboolean is_served = i % 2;
    g_autofree char *name = g_strdup_printf ("any-%u-%d", n_tasks, is_served);
    MUSTER_TRACE ("%s", name);
    g_auto (Job) job = dealt_job (is_served, name);
    job.n_batches = 200;
    job.save_steps = 20;

    run_tasks (&job, n_tasks);

    MUSTER_EXPECT_GE (job.n_saved, 2u);
    g_autofree char *wrong = check_latest (&job, 200);
    MUSTER_EXPECT_STREQ (wrong, NULL);
  }
}
