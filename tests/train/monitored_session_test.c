// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/train/monitored_diary.h"

/* MON.20, MON.22, MON.32 */
MUSTER_TEST (MonitoredSession, calls_its_hooks_in_order)
{
  SET_UP (f);
  float loss = 0;
  add (&f, "a", diary);
  add (&f, "b", diary);

  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (diary->str, "a.begin b.begin a.create b.create a.before b.before a.after "
                                   "b.after a.end b.end");
  g_autofree char *asked = muster_fake_master_diary (f.master);
  MUSTER_EXPECT_STREQ (asked, "create, run muster/init, run train, run loss, run global_step, "
                              "close");
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
}

/* MON.23 */
MUSTER_TEST (MonitoredSession, gives_each_hook_what_it_asked_for_and_the_caller_its_own)
{
  SET_UP (f);
  g_autoptr (MusterTensor) nine = muster_tensor_new_float (9);
  float loss = 0;
  muster_fake_master_op_yields (f.master, "nine", nine);
  MusterHook *a = add (&f, "a", diary);
  MusterHook *b = add (&f, "b", diary);
  add (&f, "c", diary);
  diary_hook_fetch (a, "nine:0");
  diary_hook_fetch (b, "loss:0");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (diary_hook_value (a), 9);
  MUSTER_EXPECT_EQ (diary_hook_value (b), loss);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "loss"), 1u); /* fetched once */
}

/* MON.25 */
MUSTER_TEST (MonitoredSession, refuses_two_feeds_of_one_tensor)
{
  SET_UP (f);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  static const char *const targets[] = {"train"};
  MusterFeed feed = {"x", one};
  MusterStep with_feed = {.feeds = &feed, .n_feeds = 1, .targets = targets, .n_targets = 1};
  g_autoptr (GError) by_user = NULL, by_hooks = NULL;
  MusterHook *a = add (&f, "a", diary);
  MusterHook *b = add (&f, "b", diary);
  diary_hook_feed (a, "x:0", one);
  diary_hook_feed (b, "y:0", one);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (muster_monitored_session_run (f.session, &with_feed, NULL, NULL, &by_user));
  diary_hook_feed (b, "x", one);
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &by_hooks));

  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (by_user->message, "Same tensor is fed by a SessionRunHook and user."));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (by_hooks->message, "Same tensor is fed by two hooks."));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "train"), 0u);
}

/* MON.22: hooks' feeds reach the run */
MUSTER_TEST (MonitoredSession, feeds_what_a_hook_feeds)
{
  SET_UP (f);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  diary_hook_feed (add (&f, "a", diary), "x:0", one);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_TRUE (muster_fake_master_fed (f.master, "x") != NULL ||
                      muster_fake_master_fed (f.master, "x:0") != NULL);
}

/* MON.28, MON.29 */
MUSTER_TEST (MonitoredSession, completes_the_run_in_which_a_hook_asks_for_a_stop)
{
  SET_UP (f);
  float loss = 0;
  diary_hook_stop (add (&f, "a", diary), 2);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_FALSE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));
  MUSTER_EXPECT_EQ (loss, 2);
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_STREQ (error->message, "Run called even after should_stop requested.");
}

/* MON.30, MON.31, MON.34: and on_error is told (DMON.7) */
MUSTER_TEST (MonitoredSession, hands_a_failure_on_and_does_not_end_the_hooks)
{
  SET_UP (f);
  g_autoptr (GError) out = NULL;
  MusterHook *a = add (&f, "a", diary);
  add (&f, "b", diary);
  diary_hook_fail (a, "after", 2, 1, MUSTER_ERROR_INTERNAL);
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_INVALID_ARGUMENT, "bad op");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  g_string_truncate (diary, 0);

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error)); /* the run fails: no after */
  MUSTER_EXPECT_STREQ (diary->str, "a.before b.before");
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
  g_string_truncate (diary, 0);
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));
  MUSTER_EXPECT_STREQ (diary->str, "a.before b.before a.after");
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, error, MUSTER_WAIT_FOREVER, &out));

  MUSTER_EXPECT_STREQ (diary->str, "a.before b.before a.after a.error b.error");
  MUSTER_EXPECT_ERROR (out, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 0u);
}

/* MON.33 */
MUSTER_TEST (MonitoredSession, takes_the_end_of_the_input_for_a_clean_end)
{
  SET_UP (f);
  g_autoptr (GError) end = NULL;
  add (&f, "a", diary);
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_OUT_OF_RANGE, "queue is empty");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &end));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, end, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (diary->str, "a.begin a.create a.before a.end");
}

/* MON.35, as DMON.11 has it: all are called, and the first error counts. MON.36, DMON.10 */
MUSTER_TEST (MonitoredSession, ends_every_hook_once_whatever_the_others_do)
{
  SET_UP (f);
  g_autoptr (GError) again = NULL;
  diary_hook_fail (add (&f, "a", diary), "end", 1, 1, MUSTER_ERROR_DATA_LOSS);
  diary_hook_fail (add (&f, "b", diary), "end", 1, 1, MUSTER_ERROR_INTERNAL);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  g_string_truncate (diary, 0);

  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &again));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_STREQ (again->message, "Session is already closed.");
  MUSTER_EXPECT_STREQ (diary->str, "a.end b.end a.error b.error");
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 0u);
}

/* MON.38, MON.39, MON.40, MON.41 */
MUSTER_TEST (MonitoredSession, comes_back_from_a_lost_session_and_runs_again)
{
  const MusterError kinds[] = {MUSTER_ERROR_ABORTED, MUSTER_ERROR_UNAVAILABLE};
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    SET_UP (f);
    float loss = 0;
    add (&f, "a", diary);
    muster_fake_master_fail (f.master, "train", 3, 1, kinds[i], "gone");
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));
    g_string_truncate (diary, 0);

    MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (diary->str, "a.before a.create a.before a.after");
    MUSTER_EXPECT_EQ (loss, 1); /* initialised afresh: there is no checkpoint */
    MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 1u);
    MUSTER_EXPECT_EQ (muster_fake_master_most_open (f.master), 1u);
  }
}

/* However long the pause would be. */
MUSTER_TEST (MonitoredSession, comes_back_as_soon_as_its_master_does)
{
  const gint64 outages_us[] = {30 * MUSTER_MILLISECOND, 2 * MUSTER_SECOND, 8 * MUSTER_SECOND};
  const MusterRetryPolicy patient = {.budget = {[MUSTER_FAILURE_UNREACHABLE] = 3},
                                     .first_pause_us = 600 * MUSTER_SECOND,
                                     .last_pause_us = 600 * MUSTER_SECOND};
  for (gsize i = 0; i < 2 * G_N_ELEMENTS (outages_us); i++) {
    SET_UP (f);
    const gint64 outage_us = outages_us[i / 2];
    f.options.recovery = &patient;
    f.options.is_worker = i % 2 == 1;
    MUSTER_TRACE ("%s, down for %g s", f.options.is_worker ? "worker" : "chief",
                  (double)outage_us / MUSTER_SECOND);
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    gint64 lost_us = muster_fake_clock_elapsed_us (f.clock);
    muster_fake_master_down_until (f.master, lost_us + outage_us);

    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (f.clock),
                      lost_us + outage_us + MAX (100 * MUSTER_MILLISECOND, outage_us / 50));
  }
}

static void
note_made (MusterSessionObserver *observer G_GNUC_UNUSED, MusterSessionReport *report,
           const GError *error, gpointer user_data)
{
  g_string_append_printf (user_data, " %s",
                          error != NULL                             ? "failed"
                          : report->outcome == MUSTER_OUTCOME_READY ? "made"
                                                                    : "?");
}

static void
note_lost (MusterSessionObserver *observer G_GNUC_UNUSED, const GError *why, guint n,
           gint64 pause_us, gpointer user_data)
{
  MUSTER_EXPECT_GT (pause_us, 0);
  g_string_append_printf (user_data, " lost %u (%s)", n, why->message);
}

MUSTER_TEST (MonitoredSession, reports_what_becomes_of_its_sessions)
{
  SET_UP (f);
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  g_signal_connect (observer, "made", G_CALLBACK (note_made), diary);
  g_signal_connect (observer, "lost", G_CALLBACK (note_lost), diary);
  f.options.observer = observer;
  muster_fake_master_fail (f.master, "train", 2, 1, MUSTER_ERROR_ABORTED, "gone");
  muster_fake_master_fail (f.master, "muster/init", 2, 1, MUSTER_ERROR_INVALID_ARGUMENT, "wrong");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (diary->str, " made lost 1 (gone) failed");
}

/* MON.38: nothing else is recovered from */
MUSTER_TEST (MonitoredSession, does_not_come_back_from_a_mistake)
{
  SET_UP (f);
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_INTERNAL, "broken");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 1u);
}

/* MON.39: also from what a hook meets */
/* Fails like a step under which another chief resets the master. */
static gboolean
be_reset (MusterFakeMaster *master, const MusterStep *step G_GNUC_UNUSED,
          MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  int *resets = user_data;
  if (*resets == 0)
    return TRUE;
  --*resets;
  muster_fake_master_restart (master);
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "the variable went away");
  return FALSE;
}

MUSTER_TEST (MonitoredSession, comes_back_from_a_step_that_a_reset_has_met)
{
  SET_UP (f);
  int resets = 1;
  muster_fake_master_op_calls (f.master, "train", be_reset, &resets);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 1u);
}

MUSTER_TEST (MonitoredSession, comes_back_from_what_a_hook_meets)
{
  SET_UP (f);
  MusterHook *a = add (&f, "a", diary);
  diary_hook_fail (a, "before", 1, 1, MUSTER_ERROR_ABORTED);
  diary_hook_fail (a, "after", 1, 1, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 2u);
}

/* MON.42 */
MUSTER_TEST (MonitoredSession, makes_its_session_again_where_that_fails)
{
  SET_UP (f);
  diary_hook_fail (add (&f, "a", diary), "create", 1, 2, MUSTER_ERROR_UNAVAILABLE);

  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_STREQ (diary->str, "a.begin a.create a.create a.create");
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 1u);
}

/* DMON.1: bounded, with pauses, and it says so */
MUSTER_TEST (MonitoredSession, gives_up_where_it_does_not_get_further)
{
  SET_UP (f);
  muster_fake_master_fail (f.master, "train", 2, G_MAXUINT, MUSTER_ERROR_ABORTED, "gone");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (error->message, "gave up after 10 recoveries without progress: "));
  MUSTER_EXPECT_GT (muster_fake_clock_elapsed_us (f.clock), MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (f.master), 0u);
}

/* A job that dies again and again and gets further each time goes on. */
MUSTER_TEST (MonitoredSession, goes_on_as_long_as_it_gets_further)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  f.keeps_step = TRUE; /* as if it were restored */

  for (guint i = 1; i <= 30; i++) {
    muster_fake_master_fail (f.master, "train", muster_fake_master_n_calls (f.master, "train") + 1,
                             1, MUSTER_ERROR_ABORTED, "gone");
    MUSTER_ASSERT_TRUE (monitored_train (&f, NULL, &error));
  }

  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 30u);
}

/* MON.47 */
MUSTER_TEST (MonitoredSession, that_is_singular_does_not_come_back)
{
  SET_UP (f);
  f.options.never_recover = TRUE;
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

static gboolean
report_error (MusterCoordinator *coordinator G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  g_propagate_error (error, g_error_copy (user_data));
  return FALSE;
}

static void
report_from_a_thread (Monitored *f, MusterError code)
{
  GError *failure = g_error_new_literal (MUSTER_ERROR, (gint)code, "from a thread");
  MusterCoordinator *coordinator = muster_monitored_session_coordinator (f->session);
  muster_coordinator_start (coordinator, "reporter", report_error, failure, NULL);
  while (!muster_coordinator_should_stop (coordinator))
    g_thread_yield ();
  g_error_free (failure);
}

/* They have had their say. */
MUSTER_TEST (MonitoredSession, blames_no_thread_of_a_session_that_it_has_given_up)
{
  SET_UP (f);
  g_autoptr (GError) last = NULL;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_INTERNAL);
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
  muster_fake_master_fail (f.master, "create", 2, G_MAXUINT, MUSTER_ERROR_INTERNAL, "broken");
  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &last));
  MUSTER_EXPECT_NULL (muster_monitored_session_session (f.session));

  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, last, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_TRUE (last != NULL);
  MUSTER_EXPECT_STREQ (error->message, last->message);
}

/* MON.43 */
MUSTER_TEST (MonitoredSession, comes_back_from_a_lost_session_that_a_thread_reports)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_UNAVAILABLE);

  MUSTER_EXPECT_FALSE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 2u);
}

/* MON.44 */
MUSTER_TEST (MonitoredSession, ends_with_the_error_that_a_thread_reports)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_DATA_LOSS);

  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 1u);
}

/* The run has failed because the thread has: its error would hide the cause. */
MUSTER_TEST (MonitoredSession, ends_with_what_a_thread_has_reported_before_the_run_failed)
{
  SET_UP (f);
  g_autoptr (GError) consequence = NULL;
  add (&f, "a", diary);
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_CANCELLED, "queue was closed");
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_INTERNAL);

  MUSTER_EXPECT_FALSE (monitored_train (&f, NULL, &consequence));
  MUSTER_EXPECT_FALSE (
      muster_monitored_session_finish (f.session, consequence, MUSTER_WAIT_FOREVER, &error));

  MUSTER_EXPECT_ERROR (consequence, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_STREQ (error->message, "from a thread");
  MUSTER_EXPECT_TRUE (g_str_has_suffix (diary->str, "a.error"));
}

/* MON.44 */
MUSTER_TEST (MonitoredSession, runs_after_a_thread_has_failed)
{
  SET_UP (f);
  float loss = 0;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_INTERNAL);

  MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (loss, 1);
  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
}

/* MON.37 */
MUSTER_TEST (MonitoredSession, ends_well_though_a_thread_has_found_the_session_lost)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  report_from_a_thread (&f, MUSTER_ERROR_ABORTED);

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
}

/* The run's queue was closed because its filler lost the master: once. */
static gboolean
fail_beside_a_thread (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
                      MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Monitored *f = user_data;
  if (f->step++ > 1) /* "train" itself has counted too */
    return TRUE;
  report_from_a_thread (f, MUSTER_ERROR_ABORTED);
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "queue was closed");
  return FALSE;
}

/* MON.45 */
MUSTER_TEST (MonitoredSession, takes_what_a_thread_reports_for_the_cause)
{
  SET_UP (f);
  f.keeps_step = TRUE;
  muster_fake_master_op_calls (f.master, "train", fail_beside_a_thread, &f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "create"), 2u);
}

typedef struct {
  Monitored *f;
  int n_calls;
  MusterSession *seen[4];
  gboolean with_hooks;
} Function;

static gboolean
two_steps (MusterMonitoredSession *session, MusterSession *raw, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Function *what = user_data;
  static const char *const targets[] = {"train"};
  MusterStep step = {.targets = targets, .n_targets = 1};
  what->seen[what->n_calls++] = raw;
  if (!muster_session_run (raw, &step, NULL, NULL, NULL, error))
    return FALSE;
  return muster_monitored_session_run (session, &step, NULL, NULL, error);
}

/* MON.48, MON.50, DMON.9 */
MUSTER_TEST (MonitoredSession, runs_a_step_function_again_as_a_whole)
{
  SET_UP (f);
  Function what = {.f = &f};
  add (&f, "a", diary);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  g_string_truncate (diary, 0);
  muster_fake_master_fail (f.master, "train", 2, 1, MUSTER_ERROR_ABORTED, "gone");

  MUSTER_EXPECT_TRUE (muster_monitored_session_run_step_function (f.session, two_steps, &what,
                                                                  MUSTER_WAIT_FOREVER, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (what.n_calls, 2);
  MUSTER_EXPECT_TRUE (what.seen[1] == muster_monitored_session_session (f.session));
  MUSTER_EXPECT_STREQ (diary->str, "a.before a.create a.before a.after");
  MUSTER_EXPECT_EQ (f.step, 2);
}

/* MON.11 */
MUSTER_TEST (MonitoredSession, of_a_worker_waits_and_initialises_nothing)
{
  SET_UP (f);
  f.options.is_worker = TRUE;

  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  g_autofree char *asked = muster_fake_master_diary (f.master);
  MUSTER_EXPECT_STREQ (asked, "create");
}

/* DMON.6 */
MUSTER_TEST (MonitoredSession, stops_when_asked)
{
  SET_UP (f);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  muster_monitored_session_request_stop (f.session);

  MUSTER_EXPECT_TRUE (muster_monitored_session_should_stop (f.session));
  MUSTER_EXPECT_TRUE (
      muster_coordinator_should_stop (muster_monitored_session_coordinator (f.session)));
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
}

/* DMON.5 */
MUSTER_TEST (MonitoredSession, runs_without_hooks_and_comes_back_all_the_same)
{
  SET_UP (f);
  static const char *const targets[] = {"train"};
  MusterStep step = {.targets = targets, .n_targets = 1};
  add (&f, "a", diary);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_fail (f.master, "train", 1, 1, MUSTER_ERROR_ABORTED, "gone");
  g_string_truncate (diary, 0);

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_run_without_hooks (f.session, &step, NULL, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (diary->str, "a.create");
}

/* MON.27 */
MUSTER_TEST (MonitoredSession, joins_the_options_of_a_run)
{
  SET_UP (f);
  /* trace_level 3, timeout 100; and trace_level 1, timeout 5000, an unknown field 9 */
  static const guint8 of_caller[] = {8, 3, 16, 100}, of_hook[] = {8, 1, 16, 0x88, 0x27, 72, 7};
  g_autoptr (GBytes) caller = g_bytes_new_static (of_caller, sizeof of_caller);
  static const char *const targets[] = {"train"};
  MusterStep step = {.targets = targets, .n_targets = 1, .options = caller};
  g_autoptr (GBytes) hooks = g_bytes_new_static (of_hook, sizeof of_hook);
  diary_hook_options (add (&f, "a", diary), hooks);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &step, NULL, NULL, &error));

  GBytes *merged = muster_fake_master_options_of (f.master, "train");
  const guint8 expected[] = {8, 3, 16, 100, 8, 1, 16, 0x88, 0x27, 72, 7, 8, 3, 16, 0x88, 0x27};
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (merged, NULL), g_bytes_get_size (merged), expected,
                       sizeof expected);
  MUSTER_EXPECT_EQ (g_bytes_get_size (caller), sizeof of_caller); /* DMON.12 */
}

/* --- steps that don't end --- */

static void
on_lost (MusterSessionObserver *observer G_GNUC_UNUSED, const GError *why, guint n G_GNUC_UNUSED,
         gint64 pause_us G_GNUC_UNUSED, gpointer user_data)
{
  Monitored *f = user_data;
  muster_fake_master_set_cost (f->master, "train", 0);
  MUSTER_EXPECT_ERROR (why, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (why->message, "a step timed out after 5.0 s: "));
}

MUSTER_TEST (MonitoredSession, comes_back_from_a_step_that_does_not_end)
{
  SET_UP (f);
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), &f);
  float loss = 0;
  f.options.step_timeout_us = 5 * MUSTER_SECOND;
  f.options.observer = observer;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_set_cost (f.master, "train", MUSTER_WAIT_FOREVER);

  MUSTER_EXPECT_TRUE (monitored_train (&f, &loss, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "train"), 2u);
}

MUSTER_TEST (MonitoredSession, leaves_a_deadline_to_the_caller_that_set_it)
{
  SET_UP (f);
  static const char *const targets[] = {"train"};
  MusterStep step = {.targets = targets, .n_targets = 1};
  f.options.step_timeout_us = 5 * MUSTER_SECOND;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_set_cost (f.master, "train", MUSTER_WAIT_FOREVER);
  step.deadline_us = muster_clock_now_us (MUSTER_CLOCK (f.clock)) + MUSTER_SECOND;

  MUSTER_EXPECT_FALSE (muster_monitored_session_run (f.session, &step, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 0u);
}

MUSTER_TEST (MonitoredSession, limits_runs_without_hooks_as_well)
{
  SET_UP (f);
  static const char *const targets[] = {"train"};
  const MusterStep step = {.targets = targets, .n_targets = 1};
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), &f);
  f.options.step_timeout_us = 5 * MUSTER_SECOND;
  f.options.observer = observer;
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
  muster_fake_master_set_cost (f.master, "train", MUSTER_WAIT_FOREVER);

  MUSTER_EXPECT_TRUE (
      muster_monitored_session_run_without_hooks (f.session, &step, NULL, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_monitored_session_n_recoveries (f.session), 1u);
}
