// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

#include <string.h>

static gboolean
note_session (MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
              GError **error G_GNUC_UNUSED)
{
  *(MusterSession **)user_data = session;
  return TRUE;
}

static gboolean
fail_in_init (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
              GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "no vocabulary");
  return FALSE;
}

static gboolean
fail_without_a_word (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
                     GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data G_GNUC_UNUSED,
                     GError **error G_GNUC_UNUSED)
{
  return FALSE;
}

/* B002.33 */
MUSTER_TEST (Prepare, initialises_in_order)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterSession *seen = NULL;
  MusterPrepareOptions options = {
      .init_op = "init", .init_func = note_session, .init_func_data = &seen};
  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, options);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL && session == seen);
  muster_small_job_diary_is (&job, "create, run init, run gate, run local_init, run ready");
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 1u);
}

/* B002.30, B002.33 */
MUSTER_TEST (Prepare, feeds_the_init_op)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterTensor) value = muster_tensor_new_float (0.5);
  MusterFeed feed = {"start:0", value};
  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .init_feeds = &feed, .n_init_feeds = 1});
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (muster_fake_master_fed (job.master, "start") == value);
}

/* B002.32 */
MUSTER_TEST (Prepare, refuses_a_model_that_nothing_initialises)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, NULL, "ready", NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, (MusterPrepareOptions){0});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (
      job.error->message,
      "Model is not initialized and no init_op or init_fn or local_init_op was given");
  muster_small_job_diary_is (&job, "");
}

/* B002.32, DIFF.2: after looking for a checkpoint; the session is closed */
MUSTER_TEST (Prepare, closes_its_session_when_there_is_no_checkpoint_and_no_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, NULL, "ready", NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_dir = muster_test_tmpdir ()});

  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  muster_small_job_diary_is (&job, "create, close");
  MUSTER_EXPECT_NULL (session);
}

/* B002.34, B002.38, B002.60 */
MUSTER_TEST (Prepare, is_content_with_a_local_init_op)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, "local_init", NULL, NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, (MusterPrepareOptions){0});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  muster_small_job_diary_is (&job, "create, run local_init");
  MUSTER_EXPECT_FALSE (muster_fake_master_has_variable (job.master, "v"));
}

/* B002.36 */
MUSTER_TEST (Prepare, says_why_the_gate_stayed_shut)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_op_sets (job.master, "half_init", "v", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "half_init"});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (job.error->message,
                       "Init operations did not make model ready for local_init.  Init op: "
                       "half_init, init fn: None, error: Variables not initialized: w");
  muster_small_job_diary_is (&job, "create, run half_init, run gate, close");
  MUSTER_EXPECT_STREQ (job.report.reason, "Variables not initialized: w");
}

/* B002.37 */
MUSTER_TEST (Prepare, says_why_the_model_is_not_ready)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  MusterSession *seen = NULL;
  muster_fake_master_op_reports (job.master, "ready", "v", "w", "local", "x", NULL);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .init_func = note_session, .init_func_data = &seen});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (
      job.error->message,
      "Init operations did not make model ready.  Init op: init, init fn: init_func, "
      "local_init_op: local_init, error: Variables not initialized: x");
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

/* B002.39, DIFF.2: unchanged but for the step's name, no retry, closed */
MUSTER_TEST (Prepare, passes_failures_on_and_closes_its_session)
{
  const struct {
    const char *op;
    const char *diary;
  } steps[] = {
      {"init", "create, run init, close"},
      {"gate", "create, run init, run gate, close"},
      {"local_init", "create, run init, run gate, run local_init, close"},
      {"ready", "create, run init, run gate, run local_init, run ready, close"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (steps); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("%s", steps[i].op);
    muster_fake_master_fail (job.master, steps[i].op, 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                             "lost the ps");
    g_autoptr (MusterSession) session =
        muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
    MUSTER_ASSERT_TRUE (job.error != NULL);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (job.error->message, ": lost the ps"));
    muster_small_job_diary_is (&job, steps[i].diary);
  }
}

/* B002.67: what local init says of values isn't a reason to wait */
MUSTER_TEST (Prepare, does_not_read_the_words_of_a_failing_local_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_FAILED_PRECONDITION,
                           "Attempting to use uninitialized value v");

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_STREQ (
      job.error->message,
      "Running local_init_op 'local_init': Attempting to use uninitialized value v");
}

/* B002.40 */
MUSTER_TEST (Prepare, stops_at_a_failing_init_function)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .init_func = fail_in_init});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "no vocabulary"));
  muster_small_job_diary_is (&job, "create, run init, close");
}

MUSTER_TEST (Prepare, reports_an_init_function_that_fails_without_an_error)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_func = fail_without_a_word});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_UNKNOWN);
}

static gboolean
wait_as_told (MusterSession *session G_GNUC_UNUSED, gint64 deadline_us, GCancellable *cancellable,
              gpointer user_data, GError **error)
{
  if (!muster_clock_wait_until (user_data, deadline_us, cancellable, error))
    return FALSE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "no vocabulary has come");
}

/* B002.40: it may wait for something */
MUSTER_TEST (Prepare, bounds_its_init_function_by_its_own_deadline_and_cancellable)
{
  for (int is_cancelled = 0; is_cancelled <= 1; is_cancelled++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    const MusterPrepareOptions options = {.init_func = wait_as_told,
                                          .init_func_data = job.clock,
                                          .timeout_us = is_cancelled ? 0 : 60 * MUSTER_SECOND};
    if (is_cancelled)
      muster_fake_clock_cancel_at (job.clock, 5 * MUSTER_SECOND, cancellable);

    g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
        job.manager, MUSTER_MASTER (job.master), &options, NULL, cancellable, &job.error);

    MUSTER_EXPECT_NULL (session);
    if (is_cancelled)
      MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    else
      MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock),
                      (is_cancelled ? 5 : 60) * MUSTER_SECOND);
  }
}

/* B002.41 */
MUSTER_TEST (Prepare, does_not_wait_for_readiness)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_op_sets (job.master, "nothing", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "nothing"});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (job.clock), 0u);
}

/* B002.42 */
MUSTER_TEST (Prepare, gives_run_options_to_local_init_alone)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GBytes) run_options = g_bytes_new_static ("\x10\x05", 2);
  MusterSessionManagerOptions options = {.local_init_op = "local_init",
                                         .ready_op = "ready",
                                         .local_init_run_options = run_options,
                                         .clock = MUSTER_CLOCK (job.clock)};
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_TRUE (muster_fake_master_options_of (job.master, "local_init") == run_options);
  MUSTER_EXPECT_NULL (muster_fake_master_options_of (job.master, "init"));
  MUSTER_EXPECT_NULL (muster_fake_master_options_of (job.master, "ready"));
}

/* DIFF.6: retrying is the waiter's */
MUSTER_TEST (Prepare, does_not_retry_a_master_that_is_not_there)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_fail (job.master, "create", 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (job.error->message, "Creating a session at 'fake': connection refused");
  muster_small_job_diary_is (&job, "create");
}

/* DIFF.12 */
MUSTER_TEST (Prepare, ends_at_its_deadline_and_says_where_the_time_went)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "create", 45 * MUSTER_MILLISECOND);
  muster_fake_master_set_cost (job.master, "init", MUSTER_WAIT_FOREVER);

  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){.init_op = "init", .timeout_us = 10 * MUSTER_SECOND});

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (job.error->message, "Session was not ready after waiting 10 secs. ("));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "out of time in 'init'"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "create 45 ms"));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 10 * MUSTER_SECOND);
  muster_small_job_diary_is (&job, "create, run init, close");
}

MUSTER_TEST (Prepare, closes_its_session_when_it_is_cancelled)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  MusterPrepareOptions options = {.init_op = "init"};
  muster_fake_master_set_cost (job.master, "init", MUSTER_WAIT_FOREVER);
  muster_fake_clock_cancel_at (job.clock, 95 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session = muster_session_manager_prepare_session (
      job.manager, MUSTER_MASTER (job.master), &options, NULL, cancellable, &job.error);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 95 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

MUSTER_TEST (Prepare, reports_its_phases)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "init", 3 * MUSTER_SECOND);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_ASSERT_TRUE (job.report.phases != NULL);
  MUSTER_ASSERT_EQ (job.report.phases->len, 4u);
  MusterSpan *phases = (MusterSpan *)job.report.phases->data;
  MUSTER_EXPECT_STREQ (phases[0].name, "create");
  MUSTER_EXPECT_STREQ (phases[1].name, "init");
  MUSTER_EXPECT_EQ (phases[1].duration_us, 3 * MUSTER_SECOND);
  MUSTER_EXPECT_STREQ (phases[2].name, "local init");
  MUSTER_EXPECT_STREQ (phases[3].name, "ready");
  MUSTER_EXPECT_EQ (job.report.sessions, 1u);
  MUSTER_EXPECT_EQ (job.report.polls, 2u);
  MUSTER_EXPECT_NULL (job.report.reason);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_READY);
  MUSTER_EXPECT_EQ (job.report.final_step, -1);
}

static void
expect_span (MusterSmallJob *job, guint i, const char *name, gint64 started_us, gint64 duration_us)
{
  MUSTER_TRACE ("span %u", i);
  MUSTER_ASSERT_TRUE (job->report.timeline->len > i);
  MusterSpan *span = &g_array_index (job->report.timeline, MusterSpan, i);
  MUSTER_EXPECT_STREQ (span->name, name);
  MUSTER_EXPECT_EQ (span->started_us, started_us);
  MUSTER_EXPECT_EQ (span->duration_us, duration_us);
}

MUSTER_TEST (Prepare, reports_every_stretch_of_its_phases_in_order)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "create", MUSTER_SECOND);
  muster_fake_master_set_cost (job.master, "init", 3 * MUSTER_SECOND);
  muster_fake_master_fail (job.master, "gate", 1, 1, MUSTER_ERROR_ABORTED, "lost");

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_ASSERT_TRUE (job.report.timeline != NULL);
  MUSTER_EXPECT_EQ (job.report.timeline->len, 8u);
  expect_span (&job, 0, "create", 0, MUSTER_SECOND);
  expect_span (&job, 1, "init", MUSTER_SECOND, 3 * MUSTER_SECOND);
  expect_span (&job, 2, "local init", 4 * MUSTER_SECOND, 0);
  expect_span (&job, 3, "connect", 4 * MUSTER_SECOND, 12500);
  expect_span (&job, 4, "create", 4012500, MUSTER_SECOND);
  expect_span (&job, 5, "init", 5012500, 3 * MUSTER_SECOND);
  expect_span (&job, 6, "local init", 8012500, 0);
  expect_span (&job, 7, "ready", 8012500, 0);
}

/* B002.64 */
MUSTER_TEST (Prepare, goes_on_to_the_ready_op_without_local_init)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, NULL, "gate", NULL);

  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, "create, run init, run gate");
}

/* B002.65 */
MUSTER_TEST (Prepare, says_when_local_init_runs)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
  MUSTER_EXPECT_EQ (heard_count ("local-init", "Running local_init_op."), 1U);
  MUSTER_EXPECT_EQ (heard_count ("local-init", "Done running local_init_op."), 1U);
  heard_end ();

  MUSTER_EXPECT_TRUE (session != NULL);
}

/* B002.65, B002.67: what failed isn't done */
MUSTER_TEST (Prepare, does_not_call_a_failing_local_init_done)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_INTERNAL, "boom");

  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterSession) session =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
  MUSTER_EXPECT_EQ (heard_count ("local-init", NULL), 1U);
  heard_end ();

  MUSTER_EXPECT_NULL (session);
}

/* B002.59, B002.66: a refusal of another kind is the op's own, and says whose it is */
MUSTER_TEST (Prepare, says_which_readiness_op_refused)
{
  const struct {
    const char *op;
    const char *message;
  } cases[] = {{"gate", "Model not ready for local init: table not filled"},
               {"ready", "Model not ready: table not filled"}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("%s", cases[i].op);
    muster_fake_master_fail (job.master, cases[i].op, 1, G_MAXUINT,
                             MUSTER_ERROR_FAILED_PRECONDITION, "table not filled");
    g_autoptr (MusterSession) chief =
        muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    MUSTER_EXPECT_STREQ (job.error->message, cases[i].message);
    g_autoptr (MusterSession) worker = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    MUSTER_EXPECT_STREQ (job.error->message, cases[i].message);
    MUSTER_EXPECT_TRUE (!chief && !worker);
  }
}

/* B002.62, B002.63: a gate that lists local variables can never open; the reason is the same text
 * in each verb */
MUSTER_TEST (Prepare, never_opens_a_gate_that_asks_for_what_local_init_makes)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  const char *reason = "Variables not initialized: local";
  g_autofree char *prefix = muster_small_job_write_checkpoint (muster_test_tmpdir (), 1);
  gboolean recovered = TRUE;
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, "local_init", "ready", "ready");

  g_autoptr (MusterSession) prepared =
      muster_small_job_prepare (&job, (MusterPrepareOptions){.init_op = "init"});
  MUSTER_EXPECT_NULL (prepared);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_STREQ (job.report.reason, reason);

  g_autoptr (MusterSession) session = muster_small_job_recover (
      &job, (MusterPrepareOptions){.saver = job.saver, .checkpoint_filename = prefix}, &recovered);
  MUSTER_EXPECT_TRUE (session && !recovered);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (job.report.reason, reason));

  g_autoptr (MusterSession) waited = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);
  MUSTER_EXPECT_NULL (waited);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_STREQ (job.report.reason, reason);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 0u);
}

typedef struct {
  MusterSmallJob *job;
  guint n_calls;
  guint n_creates; /* when it was called last */
  gboolean fails;
} Devices;

static gboolean
wipe_devices (MusterMaster *master, gint64 deadline_us G_GNUC_UNUSED,
              GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Devices *devices = user_data;
  MUSTER_EXPECT_TRUE (master == MUSTER_MASTER (devices->job->master));
  devices->n_calls++;
  devices->n_creates = muster_fake_master_n_calls (devices->job->master, "create");
  if (devices->fails)
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "no such accelerator");
  return !devices->fails;
}

/* B002.10 */
MUSTER_TEST (Prepare, initialises_devices_before_there_is_a_session)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  Devices devices = {.job = &job, .n_creates = G_MAXUINT};
  MusterPrepareOptions options = {
      .init_op = "init", .device_func = wipe_devices, .device_func_data = &devices};
  g_autoptr (MusterSession) prepared = muster_small_job_prepare (&job, options);
  MUSTER_EXPECT_EQ (devices.n_calls, 1u);
  MUSTER_EXPECT_EQ (devices.n_creates, 0u);
  g_autoptr (MusterSession) recovered = muster_small_job_recover (&job, options, NULL);
  MUSTER_EXPECT_EQ (devices.n_calls, 2u);
  MUSTER_EXPECT_EQ (devices.n_creates, 1u);

  MUSTER_EXPECT_TRUE (prepared && recovered);
}

MUSTER_TEST (Prepare, makes_no_session_where_the_devices_fail)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  Devices devices = {.job = &job, .fails = TRUE};
  g_autoptr (MusterSession) session = muster_small_job_prepare (
      &job, (MusterPrepareOptions){
                .init_op = "init", .device_func = wipe_devices, .device_func_data = &devices});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_STREQ (job.error->message,
                       "Initialising the master's devices: no such accelerator");
  muster_small_job_diary_is (&job, "");
}

/* B002.7 */
MUSTER_TEST (Prepare, serves_several_masters)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_auto (MusterSmallJob) other = muster_small_job_new ();
  MusterPrepareOptions options = {.init_op = "init"};
  g_autoptr (MusterSession) a = muster_session_manager_prepare_session (
      job.manager, MUSTER_MASTER (job.master), &options, NULL, NULL, NULL);
  g_autoptr (MusterSession) b = muster_session_manager_prepare_session (
      job.manager, MUSTER_MASTER (other.master), &options, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (a && b);
  MUSTER_EXPECT_TRUE (muster_fake_master_has_variable (other.master, "v"));
}

/* The form for other languages. */
MUSTER_TEST (Prepare, takes_options_that_own_what_they_point_to)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autofree char *init_op = g_strdup ("init");
  MusterPrepareOptions *first = muster_prepare_options_new (init_op, NULL, NULL);
  MusterPrepareOptions *options = g_boxed_copy (MUSTER_TYPE_PREPARE_OPTIONS, first);

  memset (init_op, '?', strlen (init_op));
  g_boxed_free (MUSTER_TYPE_PREPARE_OPTIONS, first);
  g_autoptr (MusterSession) session = muster_small_job_prepare (&job, *options);
  g_boxed_free (MUSTER_TYPE_PREPARE_OPTIONS, options);

  MUSTER_EXPECT_NO_ERROR (job.error);
  muster_small_job_diary_is (&job, "create, run init, run gate, run local_init, run ready");
}
