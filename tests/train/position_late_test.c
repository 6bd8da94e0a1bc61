// SPDX-License-Identifier: Apache-2.0
/* Tasks with a master each, over the same variables: what a chief restores, saves or ends while
 * steps that were given up are still counted. Here all masters are one, which nobody resets. */
#include "train/position/position.h"

#include "tests/doubles/fake_clock.h"
#include "tests/doubles/held_master.h"
#include "tests/doubles/seen_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/position_fixture.h"
#include "train/position/position_private.h"

#include <string.h>

static const MusterSeenModel on_server = {.on_server = TRUE};

static Job
set_up_job (const char *name)
{
  Job job = job_set_up (2);
  job.own_masters = TRUE;
  job_name_directory (&job, name);
  return job;
}

/* --- a step that is counted as the model is restored --- */

/* Between the chief and the master. */
typedef struct {
  MusterScaffold *scaffold;
  MusterSession *session; /* beside the chief's */
  guint n_most;
  guint n; /* restores after which a step has been counted as done */
} Late;

static void
count_late (gpointer data)
{
  Late *self = data;
  g_auto (MusterPositionState) state = {0};
  if (self->n == self->n_most ||
      !muster_position_read (self->session, 2, &state, MUSTER_WAIT_FOREVER, NULL, NULL) ||
      !state.is_restoring || state.is_raised ||
      muster_position_begun (&state, 1) != muster_position_done (&state, 1))
    return;
  MUSTER_EXPECT_TRUE (muster_position_forget (self->session, 1, MUSTER_WAIT_FOREVER, NULL, NULL));
  self->n++;
}

static Late
put_late_between (Job *job, guint n_most)
{
  g_autoptr (MusterMetaGraph) plain = muster_seen_model_new (&on_server);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) extended = muster_position_add (plain, 2, &error);
  Late late = {.scaffold = muster_scaffold_new (extended, &error), .n_most = n_most};
  g_autoptr (MusterMaster) inner = job->master;
  late.session = muster_master_create_session (inner, muster_scaffold_graph (late.scaffold), NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  job->master = MUSTER_MASTER (muster_held_master_new (inner));
  return late;
}

static void
late_clear (Late *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Late, late_clear)

/* A chief that has saved, and another one that restores. */
static void
restore_beside_late_steps (Life *chief, Late *late)
{
  Life before = {.job = chief->job};
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  for (int i = 0; i < 3; i++)
    MUSTER_EXPECT_TRUE (life_step (&before));
  life_end (&before);
  muster_held_master_after_run (MUSTER_HELD_MASTER (chief->job->master), count_late, late);
  chief->settle_us = 20 * MUSTER_MILLISECOND;
  life_begin (chief);
}

MUSTER_TEST (PositionLate, restores_again_over_a_step_that_was_counted_late)
{
  g_auto (Job) job = set_up_job ("late");
  g_auto (Late) late = put_late_between (&job, 1);
  g_auto (Life) chief = {.job = &job};

  restore_beside_late_steps (&chief, &late);

  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_EQ (late.n, 1u);
  MUSTER_EXPECT_EQ (muster_position_hook_position (chief.hook), 3);
  MUSTER_EXPECT_TRUE (life_step (&chief));
}

/* Its first save comes before the model is open. */
MUSTER_TEST (PositionLate, saves_no_step_that_was_counted_late)
{
  g_auto (Job) job = set_up_job ("late-first");
  g_auto (Late) late = put_late_between (&job, 1);
  g_auto (Life) chief = {.job = &job};
  job.quiesce_us = 20 * MUSTER_MILLISECOND;
  Life before = {.job = &job};
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  life_end (&before);
  job_name_directory (&job, "late-anew");
  muster_held_master_after_run (MUSTER_HELD_MASTER (job.master), count_late, &late);

  life_begin (&chief);

  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_EQ (late.n, 1u);
  g_autofree char *wrong = job_check_latest (&job, 0);
  MUSTER_EXPECT_STREQ (wrong, NULL);
}

MUSTER_TEST (PositionLate, says_of_a_save_that_a_step_was_counted_late)
{
  g_auto (Job) job = set_up_job ("late-save");
  g_auto (Life) chief = {.job = &job};
  const MusterPositionGuard guard = {.quiesce_us = 20 * MUSTER_MILLISECOND};
  g_autoptr (GError) error = NULL;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MusterMetaGraph *model = muster_scaffold_meta_graph (chief.scaffold);
  MusterSession *session = muster_monitored_session_session (chief.session);
  g_autoptr (MusterSaver) saver = muster_saver_new (model, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_position_guard (saver, model, &guard);
  MUSTER_EXPECT_TRUE (muster_position_forget (session, 1, MUSTER_WAIT_FOREVER, NULL, NULL));

  g_autofree char *prefix =
      muster_saver_save (saver, session, job.directory, 1, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "has ended after it was given up"));
}

MUSTER_TEST (PositionLate, blames_a_checkpoint_whose_counts_come_back)
{
  g_auto (Job) job = set_up_job ("inconsistent");
  g_auto (Late) late = put_late_between (&job, G_MAXUINT);
  g_auto (Life) chief = {.job = &job};

  restore_beside_late_steps (&chief, &late);

  MUSTER_EXPECT_ERROR (chief.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (chief.error && strstr (chief.error->message, "is inconsistent"));
  MUSTER_EXPECT_EQ (late.n, 2u);
}

/* --- a model without values --- */

typedef struct {
  Late late;
  gboolean is_seen;
  gboolean is_closed;
} First;

/* As soon as it has some. */
static void
look_first (gpointer data)
{
  First *self = data;
  g_auto (MusterPositionState) state = {0};
  if (self->is_seen ||
      !muster_position_read (self->late.session, 2, &state, MUSTER_WAIT_FOREVER, NULL, NULL))
    return;
  self->is_seen = TRUE;
  self->is_closed = state.is_restoring;
}

/* Its init function may take longer than workers heed a hold. */
MUSTER_TEST (PositionLate, closes_a_model_before_it_has_values)
{
  g_auto (Job) job = set_up_job ("blank");
  First first = {.late = put_late_between (&job, 0)};
  g_auto (Life) chief = {.job = &job};
  muster_held_master_after_run (MUSTER_HELD_MASTER (job.master), look_first, &first);

  life_begin (&chief);

  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_TRUE (first.is_seen && first.is_closed);
  MUSTER_EXPECT_TRUE (life_step (&chief));
  late_clear (&first.late);
}

/* --- what a task finds --- */

static void
count_one_done (Life *life, gint64 task)
{
  g_autoptr (GError) error = NULL;
  muster_position_forget (muster_monitored_session_session (life->session), (guint)task,
                          MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

typedef struct {
  Life *chief;
  gboolean is_raised;
} Stray;

/* The counts are right again. */
static void
settle_counts (gpointer data)
{
  Stray *self = data;
  MusterSession *session = muster_monitored_session_session (self->chief->session);
  g_auto (MusterPositionState) state = {0};
  MUSTER_EXPECT_TRUE (muster_position_read (session, 2, &state, MUSTER_WAIT_FOREVER, NULL, NULL));
  self->is_raised = state.is_raised;
  MUSTER_EXPECT_TRUE (muster_session_run_op (
      session, muster_scaffold_init_op (self->chief->scaffold), MUSTER_WAIT_FOREVER, NULL, NULL));
  life_set_hold (self->chief, MUSTER_POSITION_GO);
}

/* Its counts aren't read at once: another process may step as the same task. */
MUSTER_TEST (PositionLate, looks_twice_before_a_step_was_counted_late)
{
  g_auto (Job) job = set_up_job ("twice");
  g_auto (Life) chief = {.job = &job};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_auto (Life) worker = {.job = &job, .task = 1, .clock = MUSTER_CLOCK (clock)};
  Stray stray = {.chief = &chief};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  count_one_done (&chief, 1);
  muster_fake_clock_at (clock, 1, settle_counts, &stray);

  life_begin (&worker);

  MUSTER_ASSERT_NO_ERROR (worker.error);
  MUSTER_EXPECT_FALSE (stray.is_raised);
  MUSTER_EXPECT_TRUE (life_step (&worker));
}

/* That of a command that was killed before its master had begun it. */
MUSTER_TEST (PositionLate, is_overtaken_once_by_the_step_of_an_earlier_process)
{
  g_auto (Job) job = set_up_job ("overtaken");
  g_auto (Life) chief = {.job = &job};
  Life before = {.job = &job, .task = 1};
  g_auto (Life) worker = {.job = &job, .task = 1};
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  life_begin (&before);
  MUSTER_ASSERT_NO_ERROR (before.error);
  life_end (&before);
  life_begin (&worker);
  MUSTER_ASSERT_NO_ERROR (worker.error);
  life_step_apart (&chief, MUSTER_POSITION_TRAIN, 1, 0, 1);

  MUSTER_EXPECT_TRUE (life_step (&worker) && life_step (&worker));
  MUSTER_EXPECT_EQ (muster_position_hook_position (worker.hook), 2);

  life_step_apart (&chief, MUSTER_POSITION_TRAIN, 1, 2, 5);
  MUSTER_EXPECT_FALSE (life_step (&worker) && life_step (&worker));
  MUSTER_EXPECT_ERROR (worker.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (worker.error && strstr (worker.error->message, "another process runs as"));
}

/* --- the job's end --- */

static void
raise_fence (gpointer data)
{
  Late *self = data;
  if (self->n++ == 0)
    MUSTER_EXPECT_TRUE (muster_position_fence (self->session, MUSTER_WAIT_FOREVER, NULL, NULL));
}

/* The worker's only batch isn't done, although its count says so. */
MUSTER_TEST (PositionLate, ends_no_job_by_a_step_that_was_counted_late)
{
  g_auto (Job) job = set_up_job ("late-end");
  g_auto (Life) chief = {.job = &job};
  job.n_batches = 2;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_TRUE (life_step (&chief));
  count_one_done (&chief, 1);

  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_EXPECT_FALSE (muster_position_hook_is_over (chief.hook));
  MusterAwaited awaited;
  MUSTER_ASSERT_TRUE (muster_position_hook_awaits (chief.hook, &awaited));
  MUSTER_EXPECT_STREQ (awaited.task, "worker:0");
}

/* Its worker has asked for a restore between two reads of the chief. */
MUSTER_TEST (PositionLate, ends_no_job_whose_model_is_to_be_restored)
{
  g_auto (Job) job = set_up_job ("fenced-end");
  g_auto (Late) late = put_late_between (&job, 0);
  g_auto (Life) chief = {.job = &job};
  job.n_batches = 2;
  life_begin (&chief);
  MUSTER_ASSERT_NO_ERROR (chief.error);
  MUSTER_EXPECT_TRUE (life_step (&chief));
  job_cut_off_a_step (&job, chief.scaffold, 1);
  count_one_done (&chief, 1);
  muster_held_master_after_run (MUSTER_HELD_MASTER (job.master), raise_fence, &late);

  MUSTER_EXPECT_TRUE (life_step (&chief));

  MUSTER_EXPECT_FALSE (muster_position_hook_is_over (chief.hook));
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (chief.session), 1u);
}
