// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/session/fixture.h"

/* B002.44 */
MUSTER_TEST (Wait, takes_a_model_that_is_ready_at_once)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_initialise (&job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, MUSTER_WAIT_FOREVER, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  muster_small_job_diary_is (&job, "create, run gate, run local_init, run ready");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 0);
}

/* B002.43, B002.54: the chief at 1 h; DIFF.13: one session, local init once */
MUSTER_TEST (Wait, waits_for_a_chief_that_comes_after_an_hour)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_at (job.clock, 3601 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, MUSTER_WAIT_FOREVER, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (job.clock), 3601 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock), 3631 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "init"), 0u);
  MUSTER_EXPECT_EQ (job.report.sessions, 1u);
}

/* B002.50 is replaced: nobody sleeps through readiness */
MUSTER_TEST (Wait, comes_off_the_line_at_once_where_the_master_pushes)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_watchable (job.master);
  muster_fake_clock_at (job.clock, 3601 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, MUSTER_WAIT_FOREVER, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 3601 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (job.report.pushed);
  muster_small_job_diary_is (&job, "create, watch, watch, run local_init, watch");
}

/* B002.46, DIFF.4: the two-hour countdown, used to its end, and the reason in the error */
MUSTER_TEST (Wait, gives_up_after_two_hours_and_says_why)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "create", 45 * MUSTER_MILLISECOND);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autofree char *expected = g_strdup_printf (
      "Session was not ready after waiting 7200 secs. (Variables not initialized: v, w); out of "
      "time in 'waiting'; spent: create 45 ms, waiting 1h59m (%u polls, one session)",
      job.report.polls);
  MUSTER_EXPECT_STREQ (job.error->message, expected);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 7200 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
  MUSTER_EXPECT_STREQ (job.report.reason, "Variables not initialized: v, w");
}

/* B002.46: whole seconds of the limit asked for */
MUSTER_TEST (Wait, names_the_limit_in_whole_seconds)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 3700 * MUSTER_MILLISECOND, NULL);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (job.error->message, "Session was not ready after waiting 3 secs."));
}

/* B002.45, and a limit of 0 means one look and no sleep */
MUSTER_TEST (Wait, polls_once_with_a_limit_of_0_or_below)
{
  const gint64 limits[] = {0, -5 * MUSTER_SECOND};
  for (gsize i = 0; i < G_N_ELEMENTS (limits); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    g_autoptr (MusterSession) none = muster_small_job_wait (&job, limits[i], NULL);
    MUSTER_EXPECT_NULL (none);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    g_autofree char *start = g_strdup_printf ("Session was not ready after waiting %d secs. "
                                              "(Variables not initialized: v, w)",
                                              i == 0 ? 0 : -5);
    MUSTER_EXPECT_TRUE (g_str_has_prefix (job.error->message, start));
    muster_small_job_diary_is (&job, "create, run gate, close");
    MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (job.clock), 0u);

    muster_small_job_initialise (&job);
    g_autoptr (MusterSession) session = muster_small_job_wait (&job, limits[i], NULL);
    MUSTER_EXPECT_TRUE (session != NULL);
  }
}

MUSTER_TEST (Wait, gives_a_single_poll_half_a_minute)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "create", MUSTER_WAIT_FOREVER);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 0, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 30 * MUSTER_SECOND);
}

MUSTER_TEST (Wait, is_cancelled_at_95_s)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_fake_clock_cancel_at (job.clock, 95 * MUSTER_SECOND, cancellable);

  g_autoptr (MusterSession) session =
      muster_small_job_wait (&job, 7200 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 95 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

static void
keep_message (const char *message, const MusterReadiness *readiness G_GNUC_UNUSED,
              GPtrArray *reasons G_GNUC_UNUSED, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", message);
}

/* B002.49 */
MUSTER_TEST (Wait, reports_what_it_waits_for_when_that_changes)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GString) told = g_string_new (NULL);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);
  muster_session_manager_set_progress (job.manager, keep_message, told, NULL);
  muster_fake_master_op_reports (job.master, "ready", "x", NULL);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_STREQ (told->str,
                       "Waiting for model to be ready.  Ready_for_local_init_op:  Variables not "
                       "initialized: v, w, ready: None\n"
                       "Waiting for model to be ready.  Ready_for_local_init_op:  None, ready: "
                       "Variables not initialized: x\n");
  MUSTER_EXPECT_NULL (session);
}

/* B002.52, DIFF.6 */
MUSTER_TEST (Wait, keeps_knocking_at_a_master_that_is_not_there_yet)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_initialise (&job);
  muster_fake_master_fail (job.master, "create", 1, 5, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 6u);
  MUSTER_EXPECT_EQ (job.report.sessions, 1u);
}

/* DIFF.6: with pauses that double and are drawn at random */
MUSTER_TEST (Wait, probes_ever_more_rarely_but_every_second)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_set_random (job.clock, 0.999);
  muster_fake_master_fail (job.master, "create", 1, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 3600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "connection refused"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "out of time in 'connect'"));
  MUSTER_EXPECT_TRUE (strstr (job.error->message, "0 sessions"));
  MUSTER_EXPECT_EQ (job.report.sessions, 0u);
  guint n = muster_fake_master_n_calls (job.master, "create");
  MUSTER_EXPECT_GE (n, 3600u); /* never rarer than every second */
  MUSTER_EXPECT_LE (n, 3620u);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 3600 * MUSTER_SECOND);
}

/* B002.51, DIFF.6, DIFF.13: a lost session is closed, another is made, local init is run again in
 * it
 */
MUSTER_TEST (Wait, makes_another_session_when_the_master_lost_it)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_op_reports (job.master, "gate", NULL);
  muster_fake_clock_at (job.clock, 10 * MUSTER_SECOND, muster_small_job_restart_master, &job);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 2u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "close"), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_most_open (job.master), 1u);
}

MUSTER_TEST (Wait, makes_another_session_when_its_stream_breaks)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_watchable (job.master);
  muster_fake_master_fail (job.master, "watch", 2, 1, MUSTER_ERROR_UNAVAILABLE, "stream broken");
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.report.sessions, 2u);
  MUSTER_EXPECT_EQ (muster_fake_master_most_open (job.master), 1u);
}

MUSTER_TEST (Wait, does_not_flood_a_master_that_loses_every_session_at_once)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_set_random (job.clock, 0.999);
  muster_fake_master_set_watchable (job.master);
  muster_fake_master_fail (job.master, "watch", 1, G_MAXUINT, MUSTER_ERROR_ABORTED, "lost");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_LE (job.report.sessions, 610u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
}

/* B002.52, DIFF.6, B002.61: all else ends it at once; DIFF.2: closed */
MUSTER_TEST (Wait, ends_with_any_other_error)
{
  const char *const ops[] = {"gate", "local_init", "ready"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    muster_small_job_initialise (&job);
    muster_fake_master_fail (job.master, ops[i], 1, 1, MUSTER_ERROR_INTERNAL, "broken kernel");
    g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
    MUSTER_ASSERT_TRUE (job.error != NULL);
    MUSTER_EXPECT_TRUE (strstr (job.error->message, "broken kernel"));
    MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "create"), 1u);
  }
}

/* B002.53: no gate, and a local init that reads what isn't there */
MUSTER_TEST (Wait, ends_with_a_local_init_that_fails_for_want_of_a_value)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, "local_init", "ready", NULL);
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_FAILED_PRECONDITION,
                           "Attempting to use uninitialized value v");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* B002.58 */
MUSTER_TEST (Wait, waits_while_the_ready_op_says_uninitialized)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_small_job_initialise (&job);
  muster_fake_master_fail (job.master, "ready", 1, 10, MUSTER_ERROR_FAILED_PRECONDITION,
                           "Attempting to use uninitialized value v");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "ready"), 11u);
}

/* B002.72: a close that fails or hangs changes nothing */
MUSTER_TEST (Wait, closes_quietly)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "close", MUSTER_WAIT_FOREVER);
  muster_fake_clock_at (job.clock, 10 * MUSTER_SECOND, muster_small_job_restart_master, &job);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, muster_small_job_initialise, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
}

/* DIFF.12: a look that hangs is bounded, and so is the whole */
MUSTER_TEST (Wait, ends_at_its_deadline_though_the_master_hangs)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_master_set_cost (job.master, "gate", MUSTER_WAIT_FOREVER);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 300 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (job.clock), 300 * MUSTER_SECOND);
  MUSTER_EXPECT_GT (job.report.sessions, 1u);
}

MUSTER_TEST (Wait, needs_neither_gate_nor_ready_op)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_clear_object (&job.manager);
  job.manager = muster_small_job_manager (&job, NULL, NULL, NULL);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, MUSTER_WAIT_FOREVER, NULL);

  MUSTER_EXPECT_TRUE (session != NULL);
  muster_small_job_diary_is (&job, "create");
}

/* A clock whose wall is set forward and back all the time. */

#define MUSTER_TYPE_MAD_CLOCK (muster_mad_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterMadClock, muster_mad_clock, MUSTER, MAD_CLOCK, GObject)

struct _MusterMadClock {
  GObject parent;
  MusterClock *clock; /* (not owned) the job's */
  gint64 wall_us;
};

static gint64
mad_now_us (MusterClock *clock)
{
  return muster_clock_now_us (MUSTER_MAD_CLOCK (clock)->clock);
}

static gint64
mad_wall_us (MusterClock *clock)
{
  MusterMadClock *self = MUSTER_MAD_CLOCK (clock);
  return self->wall_us = self->wall_us == 0 ? 4000000000 * MUSTER_SECOND : 0;
}

static gboolean
mad_wait_until (MusterClock *clock, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  return muster_clock_wait_until (MUSTER_MAD_CLOCK (clock)->clock, wake_us, cancellable, error);
}

static double
mad_random (MusterClock *clock)
{
  return muster_clock_random (MUSTER_MAD_CLOCK (clock)->clock);
}

static void
test_mad_clock_clock_init (MusterClockInterface *iface)
{
  iface->now_us = mad_now_us;
  iface->wall_us = mad_wall_us;
  iface->wait_until = mad_wait_until;
  iface->random = mad_random;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterMadClock, muster_mad_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK, test_mad_clock_clock_init))

static void
muster_mad_clock_class_init (MusterMadClockClass *klass G_GNUC_UNUSED)
{
}

static void
muster_mad_clock_init (MusterMadClock *self G_GNUC_UNUSED)
{
}

/* B002.71 */
MUSTER_TEST (Wait, keeps_its_deadline_though_the_wall_clock_jumps)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (MusterMadClock) mad = g_object_new (MUSTER_TYPE_MAD_CLOCK, NULL);
  mad->clock = MUSTER_CLOCK (job.clock);
  MusterSessionManagerOptions options = {.ready_op = "ready", .clock = MUSTER_CLOCK (mad)};
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (NULL, &options, NULL);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 7200 * MUSTER_SECOND, NULL);
  g_clear_object (&job.manager);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 7200 * MUSTER_SECOND);
}

/* What the chief does. */

static void
chief_starts (gpointer job)
{
  muster_small_job_set_chief (job, MUSTER_CHIEF_INITIALISING, FALSE, TRUE, -1);
}

static void
chief_has_prepared (gpointer job)
{
  muster_small_job_initialise (job);
  muster_small_job_set_chief (job, MUSTER_CHIEF_PREPARED, TRUE, TRUE, -1);
}

static void
chief_ends_the_job (gpointer job)
{
  muster_small_job_set_chief (job, MUSTER_CHIEF_OVER, TRUE, FALSE, 20000);
}

static void
set_up_announcing (MusterSmallJob *job)
{
  muster_small_job_name_model (
      job, (MusterSessionManagerOptions){.task = "worker:3", .meta_graph = job->meta_graph});
  muster_fake_master_set_watchable (job->master);
}

MUSTER_TEST (Wait, says_that_no_chief_has_ever_registered)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  set_up_announcing (&job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      job.error->message, "Session was not ready after waiting 600 secs. (no chief has ever "
                          "registered for 'digits'; Variables not initialized: v, w); out of time "
                          "in 'waiting'"));
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_NOT_READY);
  MUSTER_ASSERT_TRUE (job.report.reasons != NULL);
  const MusterReason *chief = muster_reasons_find (job.report.reasons, "chief");
  const MusterReason *variables = muster_reasons_find (job.report.reasons, "variables");
  MUSTER_EXPECT_STREQ (chief->state, "never-registered");
  MUSTER_EXPECT_EQ (variables->n_missing, 2u);
  MUSTER_EXPECT_EQ (variables->n_total, 2u);
}

MUSTER_TEST (Wait, says_what_the_chief_was_doing_and_for_how_long)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  set_up_announcing (&job);
  muster_small_job_initialise (&job);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, chief_starts, &job);
  muster_fake_master_op_reports (job.master, "gate", "x", NULL);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      job.error->message, "Session was not ready after waiting 600 secs. (the chief is "
                          "initialising (worker:7 at elsewhere:1), for 9m00s; Variables not "
                          "initialized: x); out of time in 'waiting'"));
}

/* DIFF.7: the variables have their values, but the chief's init function still runs */
MUSTER_TEST (Wait, waits_until_the_chief_has_prepared_the_model)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  set_up_announcing (&job);
  muster_small_job_initialise (&job);
  chief_starts (&job);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, chief_has_prepared, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (job.clock), 60 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_READY);
  MUSTER_ASSERT_TRUE (job.report.reasons != NULL);
  MUSTER_EXPECT_TRUE (muster_reasons_find (job.report.reasons, "chief")->is_well);
}

MUSTER_TEST (Wait, leaves_a_job_that_is_over)
{
  const gint64 timeouts_us[] = {MUSTER_WAIT_FOREVER, 0};
  for (gsize i = 0; i < G_N_ELEMENTS (timeouts_us); i++) {
    g_auto (MusterSmallJob) job = muster_small_job_new ();
    MUSTER_TRACE ("timeout %u", (guint)i);
    set_up_announcing (&job);
    chief_ends_the_job (&job);
    muster_small_job_initialise (&job);
    muster_fake_clock_pass (job.clock, 192 * MUSTER_SECOND);
    g_autoptr (MusterSession) session = muster_small_job_wait (&job, timeouts_us[i], NULL);
    MUSTER_EXPECT_NULL (session);
    MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
    MUSTER_ASSERT_TRUE (job.error != NULL);
    MUSTER_EXPECT_STREQ (job.error->message,
                         "digits is over: its chief ended the job at step 20000, 3m12s ago");
    MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_OVER);
    MUSTER_EXPECT_EQ (job.report.final_step, 20000);
    MUSTER_EXPECT_EQ (muster_fake_master_n_calls (job.master, "local_init"), 0u);
    MUSTER_EXPECT_EQ (muster_fake_master_n_open (job.master), 0u);
    MUSTER_EXPECT_STREQ (muster_reasons_find (job.report.reasons, "job")->state, "over");
  }
}

/* An op that is out of range has nothing to do with the job's end. */
MUSTER_TEST (Wait, takes_no_other_error_for_the_end_of_the_job)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  set_up_announcing (&job);
  chief_has_prepared (&job);
  muster_fake_master_fail (job.master, "local_init", 1, 1, MUSTER_ERROR_OUT_OF_RANGE,
                           "queue ended");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_EQ ((int)job.report.outcome, (int)MUSTER_OUTCOME_FAILED);
}

static void
keep_chief (const char *message G_GNUC_UNUSED, const MusterReadiness *readiness G_GNUC_UNUSED,
            GPtrArray *reasons, gpointer user_data)
{
  const MusterReason *chief = muster_reasons_find (reasons, "chief");
  g_string_append_printf (user_data, "%s|", chief != NULL ? chief->state : "?");
}

MUSTER_TEST (Wait, reports_what_the_chief_does_as_reasons)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  g_autoptr (GString) told = g_string_new (NULL);
  set_up_announcing (&job);
  muster_session_manager_set_progress (job.manager, keep_chief, told, NULL);
  muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, chief_starts, &job);
  muster_fake_clock_at (job.clock, 60 * MUSTER_SECOND, chief_has_prepared, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 600 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (told->str, "never-registered|initialising|"));
}

MUSTER_TEST (Wait, reports_a_graph_that_differs)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  set_up_announcing (&job);
  chief_starts (&job);
  muster_small_job_set_chief (&job, MUSTER_CHIEF_PREPARED, TRUE, TRUE, -1);
  muster_fake_master_set_graph_difference (job.master, "node 'w' is missing there");

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (job.error->message, "the graph differs from the chief's: node 'w' is missing there"));
}

static void
master_goes (gpointer user_data)
{
  MusterSmallJob *job = user_data;
  muster_fake_master_restart (job->master);
  muster_fake_master_fail (job->master, "create", 2, G_MAXUINT, MUSTER_ERROR_UNAVAILABLE,
                           "connection refused");
}

MUSTER_TEST (Wait, remembers_why_it_waited_though_the_master_has_gone_since)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_at (job.clock, 30 * MUSTER_SECOND, master_goes, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_ASSERT_TRUE (job.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.error->message,
                              "(Creating a session at 'fake': connection refused; before that: "
                              "Variables not initialized: v, w); out of time in 'connect'"));
}

MUSTER_TEST (Wait, reports_the_last_reason_and_every_stretch)
{
  g_auto (MusterSmallJob) job = muster_small_job_new ();
  muster_fake_clock_at (job.clock, 10 * MUSTER_SECOND, muster_small_job_restart_master, &job);

  g_autoptr (MusterSession) session = muster_small_job_wait (&job, 60 * MUSTER_SECOND, NULL);

  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_EQ (job.report.retries[MUSTER_FAILURE_LOST_SESSION], 1u);
  MUSTER_EXPECT_STREQ (job.report.reason, "Variables not initialized: v, w");
  gint64 phases_us = 0, spans_us = 0, end_us = 0;
  for (guint i = 0; i < job.report.phases->len; i++)
    phases_us += g_array_index (job.report.phases, MusterSpan, i).duration_us;
  for (guint i = 0; i < job.report.timeline->len; i++) {
    MusterSpan *span = &g_array_index (job.report.timeline, MusterSpan, i);
    MUSTER_EXPECT_EQ (span->started_us, end_us); /* without gaps */
    end_us = span->started_us + span->duration_us;
    spans_us += span->duration_us;
  }
  MUSTER_EXPECT_EQ (phases_us, 60 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (spans_us, 60 * MUSTER_SECOND);
}
