// SPDX-License-Identifier: Apache-2.0
/* Preemption, by the fake clock: "save/control_dependency" is a save, and takes as long as is said.
 */
#include "train/preemption/preemption.h"

#include "checkpoint/state/checkpoint_state.h"
#include "tests/doubles/slow_storage.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"
#include "tests/train/monitored_fixture.h"
#include "train/hooks/hooks.h"

#include <signal.h>
#include <unistd.h>

#define SAVE "save/control_dependency"

typedef struct {
  Monitored monitored;
  MusterPreemption *preemption;
  MusterSaver *saver;
  char *directory;
  gint64 extra_us; /* what a save takes after it has written all */
} Job;

/* Files are there, and then it takes longer than anybody thought. */
static gboolean
drag_on (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step,
         MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Job *job = user_data;
  MusterClock *clock = MUSTER_CLOCK (job->monitored.clock);
  gint64 until_us = muster_clock_now_us (clock) + job->extra_us;
  (void)muster_clock_wait_until (clock, MIN (until_us, step->deadline_us), NULL, NULL);
  if (until_us <= step->deadline_us)
    return TRUE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "it took too long");
  return FALSE;
}

static void
set_up (Job *job, gint64 save_us, gboolean has_saver)
{
  g_autoptr (GError) error = NULL;
  job->monitored = monitored_set_up ();
  monitored_script (&job->monitored);
  muster_small_model_play (job->monitored.master);
  muster_fake_master_set_variable (job->monitored.master, "v");
  muster_fake_master_op_calls (job->monitored.master, SAVE, drag_on, job);
  muster_fake_master_set_cost (job->monitored.master, SAVE, save_us);
  job->directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  MusterClock *clock = MUSTER_CLOCK (job->monitored.clock);
  job->preemption = muster_preemption_new (30 * MUSTER_SECOND, clock);
  monitored_add (&job->monitored, muster_preemption_hook_new (job->preemption));
  if (!has_saver)
    return;
  MusterSaverOptions saver_options = {.clock = clock, .no_probe = TRUE};
  job->saver = muster_saver_new (muster_scaffold_meta_graph (job->monitored.scaffold),
                                 &saver_options, &error);
  g_assert_no_error (error);
  MusterCheckpointSaverOptions options = {.checkpoint_dir = job->directory,
                                          .save_steps = 2,
                                          .saver = job->saver,
                                          .preemption = job->preemption};
  monitored_add (&job->monitored, muster_checkpoint_saver_hook_new (&options, &error));
  g_assert_no_error (error);
}

static void
tear_down (Job *job)
{
  monitored_tear_down (&job->monitored);
  g_clear_object (&job->preemption);
  g_clear_object (&job->saver);
  g_clear_pointer (&job->directory, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static guint
n_saves (Job *job)
{
  return muster_fake_master_n_calls (job->monitored.master, SAVE);
}

/* Nothing of a save that wasn't published. */
static gboolean
is_tidy (Job *job)
{
  g_autoptr (GDir) directory = g_dir_open (job->directory, 0, NULL);
  const char *name;
  while (directory != NULL && (name = g_dir_read_name (directory)) != NULL)
    if (g_str_has_prefix (name, ".saving"))
      return FALSE;
  return TRUE;
}

/* Trains until there is a stop, and ends it; what it ended with counts for nothing else. */
static gboolean
go_on (Job *job, GError **error)
{
  GError *failure = NULL;
  while (failure == NULL && !muster_monitored_session_should_stop (job->monitored.session))
    (void)monitored_train (&job->monitored, NULL, &failure);
  g_autoptr (GError) owned = failure;
  return muster_monitored_session_finish (job->monitored.session, failure, MUSTER_WAIT_FOREVER,
                                          error);
}

static void
expect_text (const MusterPreemptionReport *report, const char *wanted)
{
  g_autofree char *text = muster_preemption_report_text (report);

  MUSTER_EXPECT_STREQ (text, wanted);
}

MUSTER_TEST (Preemption, saves_where_the_step_ends_and_reports_when_it_was_durable)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) before = {0}, report = {0};
  set_up (&job, 1200 * MUSTER_MILLISECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));
  MUSTER_EXPECT_FALSE (muster_preemption_report (job.preemption, &before));
  MUSTER_EXPECT_EQ (before.outcome, MUSTER_PREEMPTION_NOT_ASKED);
  MUSTER_EXPECT_EQ (before.durable_step, 0);
  MUSTER_EXPECT_FALSE (muster_preemption_explains (job.preemption, NULL));

  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (job.monitored.step, 2); /* the step that was running when it was asked */
  MUSTER_EXPECT_EQ (n_saves (&job), 2u);    /* step 2 was due, and is the last: saved once */
  MUSTER_EXPECT_TRUE (muster_preemption_explains (job.preemption, NULL));
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  MUSTER_EXPECT_EQ (report.durable_step, 2);
  MUSTER_EXPECT_EQ (report.took_us, 1200 * MUSTER_MILLISECOND);
  expect_text (&report,
               "preempted (Terminated): step 2 was durable after 1.2 s of the 30.0 s grace");
}

MUSTER_TEST (Preemption, is_rehearsed_the_same_way)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 1200 * MUSTER_MILLISECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));

  muster_preemption_drill (job.preemption);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_TRUE (report.is_drill);
  MUSTER_EXPECT_EQ (report.durable_step, 1);
  expect_text (&report, "a preemption would take 1.2 s of the 30.0 s grace: 28.8 s to spare");
}

MUSTER_TEST (Preemption, does_not_begin_a_save_that_cannot_fit_and_says_what_it_would_take)
{
  for (int drill = 0; drill < 2; drill++) {
    g_auto (Job) job = {0};
    g_autoptr (GError) error = NULL;
    g_auto (MusterPreemptionReport) report = {0};
    set_up (&job, 40 * MUSTER_SECOND, TRUE);
    MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));

    if (drill)
      muster_preemption_drill (job.preemption);
    else
      muster_preemption_request (job.preemption, SIGTERM);
    MUSTER_EXPECT_TRUE (go_on (&job, &error));

    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (n_saves (&job), 1u); /* the one at the start */
    MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
    MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NOT_BEGUN);
    MUSTER_EXPECT_EQ (report.durable_step, 0);
    MUSTER_EXPECT_EQ (report.needed_us, 40 * MUSTER_SECOND);
    MUSTER_EXPECT_EQ (report.needs_us, 41 * MUSTER_SECOND);
    g_autofree char *text = muster_preemption_report_text (&report);
    MUSTER_EXPECT_TRUE (
        g_str_has_prefix (text, drill ? "a preemption would end without one: no save was begun: "
                                      : "preempted (Terminated): no save was begun: "));
    MUSTER_EXPECT_TRUE (strstr (text, "takes about 40.0 s, and 29.0 s of the 30.0 s grace are"));
    MUSTER_EXPECT_TRUE (strstr (text, "; it needs a grace of 41.0 s; "));
    MUSTER_EXPECT_TRUE (g_str_has_suffix (text, "the last durable step is 0"));
    g_autofree char *remove = g_strdup_printf ("rm -r '%s'", job.directory);
    MUSTER_ASSERT_EQ (system (remove), 0);
  }
}

/* What is left of the grace counts, not the grace. */
MUSTER_TEST (Preemption, counts_what_the_last_step_took)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 20 * MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  muster_fake_master_set_cost (job.monitored.master, "train", 10 * MUSTER_SECOND);

  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NOT_BEGUN);
  MUSTER_EXPECT_EQ (report.needs_us, 31 * MUSTER_SECOND);
}

MUSTER_TEST (Preemption, gives_up_a_save_that_takes_too_long_and_leaves_nothing_of_it)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));
  job.extra_us = MUSTER_SECOND * 3600; /* and a save is due at the next step, too */

  muster_preemption_request (job.preemption, SIGTERM);
  gint64 then_us = muster_fake_clock_elapsed_us (job.monitored.clock);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (n_saves (&job), 2u);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.monitored.clock) - then_us,
                    29 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (is_tidy (&job));
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_GIVEN_UP);
  MUSTER_EXPECT_EQ (report.durable_step, 0);
  MUSTER_EXPECT_TRUE (strstr (report.why, "it took too long") != NULL);
  g_autofree char *latest = muster_saver_latest_checkpoint (job.saver, job.directory, NULL);
  MUSTER_EXPECT_EQ (muster_checkpoint_step (latest), 0);
}

/* The whole machine room is told to go: the master may be gone first. */
MUSTER_TEST (Preemption, ends_in_good_order_where_the_master_went_first)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  muster_fake_master_fail (job.monitored.master, SAVE, 2, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                           "the master is gone");

  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_GIVEN_UP);
  MUSTER_EXPECT_EQ (report.durable_step, 0);
}

/* But a failed precondition is an error, as ever: a variable without a value, or another chief. */
MUSTER_TEST (Preemption, reports_a_save_that_no_try_mends)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job, MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  muster_fake_master_fail (job.monitored.master, SAVE, 2, 1, MUSTER_ERROR_FAILED_PRECONDITION,
                           "Attempting to use uninitialized value v");

  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_FALSE (go_on (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_FALSE (muster_preemption_explains (job.preemption, error));
}

MUSTER_TEST (Preemption, of_a_worker_saves_nothing)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 0, FALSE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));

  muster_preemption_request (job.preemption, 0);
  MUSTER_EXPECT_TRUE (go_on (&job, &error));

  MUSTER_EXPECT_EQ (job.monitored.step, 1);
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NO_SAVE);
  expect_text (&report, "preempted: nothing to save");
}

MUSTER_TEST (Preemption, cancels_at_once_what_goes_before_the_session)
{
  g_auto (Job) job = {0};
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, MUSTER_SECOND, TRUE);

  muster_preemption_request (job.preemption, SIGTERM);

  MUSTER_EXPECT_TRUE (g_cancellable_is_cancelled (muster_preemption_cancellable (job.preemption)));
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NO_SAVE);
}

/* A signal that comes when all is done makes it no preemption. */
MUSTER_TEST (Preemption, comes_too_late_for_what_has_ended)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job, MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));
  MUSTER_ASSERT_TRUE (
      muster_monitored_session_finish (job.monitored.session, NULL, MUSTER_WAIT_FOREVER, &error));

  muster_preemption_request (job.preemption, SIGTERM);

  MUSTER_EXPECT_FALSE (muster_preemption_is_requested (job.preemption));
  MUSTER_EXPECT_FALSE (muster_preemption_explains (job.preemption, NULL));
}

/* --- how long a save takes --- */

MUSTER_TEST (Preemption, goes_by_the_median_of_the_last_five_saves)
{
  static const gint64 took_s[] = {100, 100, 100, 4, 90, 3, 5, 4};
  g_auto (Job) job = {0};
  set_up (&job, 0, TRUE);
  muster_preemption_set_saver (job.preemption, job.saver, job.directory);
  guint64 bytes = muster_saver_estimate_bytes (job.saver);

  for (gsize i = 0; i < G_N_ELEMENTS (took_s); i++)
    muster_preemption_note_durable (job.preemption, (gint64)i, "prefix", bytes,
                                    took_s[i] * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (muster_preemption_estimate (job.preemption, NULL), 4 * MUSTER_SECOND);
}

MUSTER_TEST (Preemption, knows_that_a_larger_checkpoint_takes_longer)
{
  g_auto (Job) job = {0};
  guint64 bytes = 0;
  set_up (&job, 0, TRUE);
  muster_preemption_set_saver (job.preemption, job.saver, job.directory);
  guint64 now = muster_saver_estimate_bytes (job.saver);

  muster_preemption_note_durable (job.preemption, 0, "prefix", now / 2, 4 * MUSTER_SECOND);

  gint64 needed_us = muster_preemption_estimate (job.preemption, &bytes);
  MUSTER_EXPECT_EQ (bytes, now);
  MUSTER_EXPECT_GE (needed_us, 8 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (needed_us, 8 * MUSTER_SECOND + MUSTER_MILLISECOND);
}

/* 8 MB at 1 MB a second, of which it writes a part. */
MUSTER_TEST (Preemption, measures_a_small_write_before_there_is_any_save)
{
  static const MusterSmallVariable variables[] = {{"v", MUSTER_FLOAT, 2, {2000, 1000}}};
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterMetaGraph) model = muster_small_model_new (variables, 1, 5);
  g_autoptr (MusterSlowStorage) storage = muster_slow_storage_new (clock, 1000 * 1000);
  g_autoptr (GError) error = NULL;
  MusterSaverOptions options = {.storage = MUSTER_STORAGE (storage), .clock = MUSTER_CLOCK (clock)};
  g_autoptr (MusterSaver) saver = muster_saver_new (model, &options, &error);
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (0, MUSTER_CLOCK (clock));
  Job job = {.directory = g_build_filename (muster_test_tmpdir (), "run", NULL)};
  guint64 bytes = 0;
  MUSTER_EXPECT_EQ (muster_preemption_estimate (preemption, NULL), -1); /* nothing saves */
  muster_preemption_set_saver (preemption, saver, job.directory);
  gint64 needed_us = muster_preemption_estimate (preemption, &bytes);
  gint64 measured_us = muster_fake_clock_elapsed_us (clock);
  gint64 again_us = muster_preemption_estimate (preemption, NULL);

  MUSTER_EXPECT_GE (bytes, 8000 * 1000u);
  MUSTER_EXPECT_NEAR ((double)needed_us, (double)bytes, 10);
  MUSTER_EXPECT_EQ (measured_us, 4 * 1048576);
  MUSTER_EXPECT_EQ (again_us, needed_us);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), measured_us); /* once is enough */
  MUSTER_EXPECT_TRUE (is_tidy (&job));
  g_free (job.directory);
}

/* --- signals, and the thread that sees to the grace --- */

static gpointer
train_on (gpointer data)
{
  GError *failure = NULL;
  (void)monitored_train (&((Job *)data)->monitored, NULL, &failure);
  return failure;
}

/* A step that takes for ever is ended when no save would fit any more after it. */
MUSTER_TEST (Preemption, ends_a_step_that_would_leave_no_time_for_the_save)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 9 * MUSTER_SECOND, TRUE);
  job.monitored.options.never_recover = TRUE;
  MUSTER_ASSERT_TRUE (muster_preemption_watch (job.preemption, &error));
  GCancellable *cancellable = muster_preemption_cancellable (job.preemption);
  job.monitored.options.hooks = (MusterHook *const *)job.monitored.hooks->pdata;
  job.monitored.options.n_hooks = job.monitored.hooks->len;
  job.monitored.session =
      muster_monitored_session_new (&job.monitored.options, NULL, cancellable, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gint64 then_us = muster_fake_clock_elapsed_us (job.monitored.clock);
  muster_fake_master_set_cost (job.monitored.master, "train", MUSTER_WAIT_FOREVER);
  muster_fake_clock_hold (job.monitored.clock);
  GThread *trainer = g_thread_new ("trainer", train_on, &job);
  muster_fake_clock_wait_for_waiters (job.monitored.clock, 1);

  muster_preemption_notify (job.preemption, SIGTERM);
  muster_fake_clock_wait_for_waiters (job.monitored.clock, 2);
  muster_fake_clock_crank (job.monitored.clock);
  g_autoptr (GError) failure = g_thread_join (trainer);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.monitored.clock) - then_us,
                    (29 - 9) * MUSTER_SECOND);
  MUSTER_EXPECT_ERROR (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (muster_coordinator_wait_for_stop (
      muster_monitored_session_coordinator (job.monitored.session), 0, NULL));
  MUSTER_EXPECT_TRUE (muster_preemption_explains (job.preemption, failure));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (job.monitored.session, failure, MUSTER_WAIT_FOREVER, NULL));
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_NOT_BEGUN);
  MUSTER_EXPECT_EQ (report.durable_step, 0);
  MUSTER_EXPECT_TRUE (strstr (report.why, "the running step took too long") != NULL);
}

static gpointer
finish (gpointer data)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_monitored_session_finish (((Job *)data)->monitored.session, NULL,
                                                       MUSTER_WAIT_FOREVER, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return NULL;
}

/* A store or a master that doesn't look at deadlines is cancelled. */
MUSTER_TEST (Preemption, cancels_the_save_itself_when_the_grace_is_over)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, MUSTER_SECOND, TRUE);
  MUSTER_ASSERT_TRUE (muster_preemption_watch (job.preemption, &error));
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));
  gint64 then_us = muster_fake_clock_elapsed_us (job.monitored.clock);
  muster_fake_master_set_cost (job.monitored.master, SAVE, MUSTER_WAIT_FOREVER);
  muster_fake_clock_hold (job.monitored.clock);
  muster_preemption_notify (job.preemption, SIGTERM);
  muster_fake_clock_wait_for_waiters (job.monitored.clock, 1); /* it has been heard */
  GThread *ends = g_thread_new ("ends", finish, &job);
  muster_fake_clock_wait_for_waiters (job.monitored.clock, 2);
  while (muster_fake_clock_elapsed_us (job.monitored.clock) - then_us < 29 * MUSTER_SECOND)
    muster_fake_clock_crank (job.monitored.clock);
  g_thread_join (ends);

  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_GIVEN_UP);
  MUSTER_EXPECT_TRUE (is_tidy (&job));
}

/* As a master that says nothing any more, once it has saved. */
MUSTER_TEST (Preemption, cancels_what_comes_after_the_save_when_the_grace_is_over)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 0, TRUE);
  MUSTER_ASSERT_TRUE (muster_preemption_watch (job.preemption, &error));
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));
  gint64 then_us = muster_fake_clock_elapsed_us (job.monitored.clock);
  muster_fake_clock_hold (job.monitored.clock);
  muster_preemption_notify (job.preemption, SIGTERM);
  muster_fake_clock_wait_for_waiters (job.monitored.clock, 1); /* it has been heard */
  finish (&job);
  GCancellable *cancellable = muster_preemption_cancellable (job.preemption);
  MUSTER_EXPECT_FALSE (g_cancellable_is_cancelled (cancellable));

  gint64 patience_us = g_get_monotonic_time () + 30 * MUSTER_SECOND;
  while (!g_cancellable_is_cancelled (cancellable) && g_get_monotonic_time () < patience_us) {
    muster_fake_clock_crank (job.monitored.clock);
    g_thread_yield ();
  }

  MUSTER_EXPECT_TRUE (g_cancellable_is_cancelled (cancellable));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.monitored.clock) - then_us,
                    30 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
}

/* A run may be over before the thread that enforces the grace has run at all. */
MUSTER_TEST (Preemption, is_requested_as_soon_as_a_handler_noted_it)
{
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (0, NULL);
  g_auto (MusterPreemptionReport) report = {0};
  MUSTER_EXPECT_FALSE (muster_preemption_is_requested (preemption));
  muster_preemption_notify (preemption, SIGTERM);
  MUSTER_EXPECT_TRUE (muster_preemption_is_requested (preemption));
  MUSTER_EXPECT_TRUE (muster_preemption_report (preemption, &report));
  MUSTER_EXPECT_EQ (report.signal_number, SIGTERM);
}

MUSTER_TEST (Preemption, that_was_saved_stays_so_whatever_fails_afterwards)
{
  const char *const late[] = {"v:0"};
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  set_up (&job, 0, TRUE);
  monitored_add (&job.monitored,
                 muster_final_ops_hook_new (&(MusterStep){.fetches = late, .n_fetches = 1}));
  muster_fake_master_fail (job.monitored.master, "v", 1, 1, MUSTER_ERROR_INVALID_ARGUMENT, "no");
  MUSTER_ASSERT_TRUE (monitored_open (&job.monitored, &error));
  MUSTER_ASSERT_TRUE (monitored_train (&job.monitored, NULL, &error));

  muster_preemption_request (job.preemption, SIGTERM);
  MUSTER_EXPECT_FALSE (go_on (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (muster_preemption_report (job.preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  MUSTER_EXPECT_NULL (report.why);
}

MUSTER_TEST (Preemption, takes_the_signals_of_the_process_and_gives_them_back)
{
  g_autoptr (MusterPreemption) first = muster_preemption_new (0, NULL);
  g_autoptr (MusterPreemption) second = muster_preemption_new (0, NULL);
  g_autoptr (GError) error = NULL, refused = NULL;
  g_auto (MusterPreemptionReport) report = {0};
  struct sigaction now, ignore = {.sa_handler = SIG_IGN};
  MUSTER_ASSERT_EQ (sigaction (SIGTERM, &ignore, NULL), 0);

  MUSTER_EXPECT_TRUE (muster_preemption_take_signals (first, TRUE, &error));
  MUSTER_EXPECT_FALSE (muster_preemption_take_signals (second, FALSE, &refused));
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_ALREADY_EXISTS);
  MUSTER_ASSERT_EQ (kill (getpid (), SIGTERM), 0);
  gint64 patience_us = muster_clock_now_us (muster_system_clock ()) + 30 * MUSTER_SECOND;
  MUSTER_EXPECT_FALSE (muster_clock_wait_until (muster_system_clock (), patience_us,
                                                muster_preemption_cancellable (first), NULL));

  MUSTER_EXPECT_TRUE (muster_preemption_is_requested (first));
  MUSTER_EXPECT_FALSE (muster_preemption_is_requested (second));
  MUSTER_EXPECT_TRUE (muster_preemption_report (first, &report));
  MUSTER_EXPECT_EQ (report.signal_number, SIGTERM);
  g_clear_object (&first);
  MUSTER_ASSERT_EQ (sigaction (SIGTERM, NULL, &now), 0);
  MUSTER_EXPECT_TRUE (now.sa_handler == SIG_IGN);
  for (int i = 0; i < 2; i++) {
    MUSTER_EXPECT_TRUE (muster_preemption_take_signals (second, FALSE, &error));
    muster_preemption_release_signals (second);
    muster_preemption_release_signals (second);
    MUSTER_ASSERT_EQ (sigaction (SIGTERM, NULL, &now), 0);
    MUSTER_EXPECT_TRUE (now.sa_handler == SIG_IGN);
  }
}
