// SPDX-License-Identifier: Apache-2.0
/* Jobs whose batches are dealt, and checkpoints: of jobs with a fixed number of tasks, of other
 * numbers of slots, and by others than the chief. */
#include "checkpoint/state/checkpoint_state.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/monitored_training.h"

static void
leave_fixed_job (Job *job)
{
  g_auto (Life) chief = {.job = job}, second = {.job = job, .task = 1},
                third = {.job = job, .task = 2};
  job->n_batches = 40;
  job->save_steps = 1000000;
  life_begin (&chief);
  life_begin (&second);
  life_begin (&third);
  MUSTER_ASSERT_NO_ERROR (third.error);
  for (int i = 0; i < 5; i++)
    MUSTER_ASSERT_TRUE (life_step (&chief));
  for (int i = 0; i < 2; i++)
    MUSTER_ASSERT_TRUE (life_step (&third));
  MUSTER_ASSERT_TRUE (life_step (&second));
  life_end (&second);
  life_end (&third);
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (chief.session, NULL, MUSTER_WAIT_FOREVER, &chief.error));
  g_autofree char *wrong = job_check_latest (job, 8);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionDealtOrigin, continues_a_job_with_a_fixed_number_of_tasks)
{
  for (int is_served = 0; is_served < 2; is_served++) {
    g_auto (Job) fixed = is_served ? job_set_up_served (3) : job_set_up (3);
    const char *name = is_served ? "fixed-served" : "fixed";
    job_name_directory (&fixed, name);
    leave_fixed_job (&fixed);
    for (int life = 0; life < 2; life++) {
      g_auto (Job) job = job_set_up_dealt (is_served, name);
      job.n_batches = 40 + 20 * life; /* longer, the second time */
      job.save_steps = 10;

      job_run_dealt (&job, 2);

      g_autofree char *wrong = job_check_latest (&job, job.n_batches);
      MUSTER_EXPECT_STREQ (wrong, NULL);
    }
  }
}

static char *
refusal (guint n_tasks, gboolean is_dealt, const char *prefix)
{
  g_autoptr (MusterMetaGraph) model = muster_seen_model_new (NULL);
  g_autoptr (MusterMetaGraph) extended = is_dealt ? muster_position_add_dealt (model, n_tasks, NULL)
                                                  : muster_position_add (model, n_tasks, NULL);
  g_autoptr (GError) error = NULL;
  return muster_position_check (extended, NULL, prefix, &error) ? NULL : g_strdup (error->message);
}

MUSTER_TEST (PositionDealtOrigin, says_what_to_do_about_checkpoints_of_other_jobs)
{
  g_auto (Job) job = job_set_up_dealt (FALSE, "others");
  g_auto (Life) life = {.job = &job};
  job.n_batches = 3;
  life_run_to_end (&life, 3);
  g_autofree char *latest = muster_latest_checkpoint (muster_local_storage (), job.directory, NULL);
  g_autofree char *same = refusal (JOB_SLOTS, TRUE, latest), *more = refusal (16, TRUE, latest),
                  *fixed = refusal (1, FALSE, latest);

  MUSTER_EXPECT_STREQ (same, NULL);
  MUSTER_EXPECT_TRUE (more && strstr (more, "of at most 8 tasks at a time"));
  MUSTER_EXPECT_TRUE (fixed && strstr (fixed, "start this one with --task=auto"));
  g_auto (Job) alone = job_set_up (1);
  job_name_directory (&alone, "others");
  g_auto (Life) other = {.job = &alone};
  life_begin (&other);
  MUSTER_EXPECT_NULL (other.session); /* it would begin anew */
  MUSTER_EXPECT_TRUE (other.error != NULL);
}

MUSTER_TEST (PositionDealtOrigin, is_saved_from_beside_with_what_is_in_hand)
{
  g_auto (Job) job = job_set_up_dealt (TRUE, "beside");
  g_auto (Life) life = {.job = &job};
  g_autoptr (GError) error = NULL;
  job.save_steps = 1000000;
  life_begin (&life);
  MUSTER_ASSERT_NO_ERROR (life.error);
  for (int i = 0; i < 4; i++)
    MUSTER_ASSERT_TRUE (life_step (&life));

  MUSTER_EXPECT_TRUE (job_save_from_beside (&job, TRUE, 4, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *wrong = job_check_latest (&job, 4);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}
