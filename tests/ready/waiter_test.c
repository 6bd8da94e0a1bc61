// SPDX-License-Identifier: Apache-2.0
#include "master/coordinated_private.h"
#include "ready/waiter_private.h"
#include "tests/doubles/fake_master.h"
#include "tests/gtest_shim.h"

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterWaiter *waiter;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  f.master = muster_fake_master_new (f.clock);
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);
  muster_fake_master_op_reports (f.master, "gate", "v", NULL);
  muster_fake_master_op_reports (f.master, "ready", "v", "local", NULL);
  f.waiter = muster_waiter_new (f.session, &(MusterWatchFor){"gate", "ready", NULL, NULL},
                                30 * MUSTER_SECOND, MUSTER_CLOCK (f.clock));
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_pointer (&f->waiter, muster_waiter_free);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gint64
deadline_in (Fixture *f, gint64 duration_us)
{
  return muster_deadline_after (muster_clock_now_us (MUSTER_CLOCK (f->clock)), duration_us);
}

static void
set_v (gpointer user_data)
{
  muster_fake_master_set_variable (user_data, "v");
}

static void
set_local (gpointer user_data)
{
  muster_fake_master_set_variable (user_data, "local");
}

static void
restart (gpointer user_data)
{
  muster_fake_master_restart (user_data);
}

static void
list_reasons (const MusterReadiness *readiness, gpointer user_data)
{
  g_string_append_printf (user_data, "%s|",
                          readiness->why_gate != NULL ? readiness->why_gate
                                                      : readiness->why_not_ready);
}

MUSTER_TEST (Waiter, polls_where_the_master_cannot_push)
{
  g_auto (Fixture) f = set_up ();
  muster_fake_clock_at (f.clock, 3601 * MUSTER_SECOND, set_v, f.master);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_FALSE (muster_waiter_is_pushed (f.waiter));
  MUSTER_EXPECT_GE (muster_fake_clock_elapsed_us (f.clock), 3601 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (muster_fake_clock_elapsed_us (f.clock), 3631 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_waiter_n_polls (f.waiter),
                    muster_fake_master_n_calls (f.master, "gate"));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "ready"), 0u);
}

MUSTER_TEST (Waiter, is_notified_at_once_where_the_master_pushes)
{
  g_auto (Fixture) f = set_up ();
  muster_fake_master_set_watchable (f.master);
  muster_fake_clock_at (f.clock, 3601 * MUSTER_SECOND, set_v, f.master);
  muster_fake_clock_at (f.clock, 3602 * MUSTER_SECOND, set_local, f.master);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));
  gint64 gate_us = muster_fake_clock_elapsed_us (f.clock);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_EQ (gate_us, 3601 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 3602 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (muster_waiter_is_pushed (f.waiter));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "gate"), 0u);
}

static gboolean
report_moody (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
              MusterTensor **value, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  const gboolean *is_ready = user_data;
  const char *names[] = {*is_ready ? NULL : "v", NULL};
  g_clear_pointer (value, muster_tensor_unref); /* what the op yields otherwise */
  *value = muster_tensor_new_strv (names);
  return TRUE;
}

static void
set_true (gpointer user_data)
{
  *(gboolean *)user_data = TRUE;
}

/* Local init may take its time, and the model may be reset meanwhile: never a stale "ready". */
MUSTER_TEST (Waiter, asks_anew_what_it_received_before_local_init)
{
  g_auto (Fixture) f = set_up ();
  gboolean is_ready = TRUE;
  muster_fake_master_set_watchable (f.master);
  muster_fake_master_set_variable (f.master, "v");
  muster_fake_master_op_calls (f.master, "ready", report_moody, &is_ready);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));
  is_ready = FALSE;
  muster_fake_clock_at (f.clock, 60 * MUSTER_SECOND, set_true, &is_ready);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 60 * MUSTER_SECOND);
}

/* A waiter for a model that chiefs announce, on a master that pushes. */
static void
name_model (Fixture *f, const char *gate, const char *ready)
{
  MusterWatchFor what = {gate, ready, "digits", "worker:3"};
  muster_waiter_free (f->waiter);
  f->waiter = muster_waiter_new (f->session, &what, 30 * MUSTER_SECOND, MUSTER_CLOCK (f->clock));
  muster_fake_master_set_announcing (f->master);
  muster_fake_master_set_watchable (f->master);
}

static void
set_chief (MusterFakeMaster *master, MusterChiefPhase phase, gint64 step)
{
  MusterAnnouncement chief = MUSTER_ANNOUNCEMENT_INIT;
  chief.model = (char *)"digits";
  chief.task = (char *)"worker:0";
  chief.who = (char *)"host:1";
  chief.phase = phase;
  chief.step = step;
  chief.alive = phase != MUSTER_CHIEF_OVER;
  muster_fake_master_set_chief (master, &chief);
}

static void
chief_has_prepared (gpointer user_data)
{
  set_chief (user_data, MUSTER_CHIEF_PREPARED, -1);
}

static void
chief_initialises (gpointer user_data)
{
  set_chief (user_data, MUSTER_CHIEF_INITIALISING, -1);
}

/* DIFF.7: variables have their values after the init op, but the init function still runs. */
MUSTER_TEST (Waiter, waits_until_the_chief_has_prepared_the_model)
{
  const char *const ready_ops[] = {"ready", NULL};
  for (gsize i = 0; i < G_N_ELEMENTS (ready_ops); i++) {
    g_auto (Fixture) f = set_up ();
    MUSTER_TRACE ("ready op %s", ready_ops[i] != NULL ? ready_ops[i] : "none");
    name_model (&f, NULL, ready_ops[i]);
    set_v (f.master);
    set_local (f.master);
    chief_initialises (f.master);
    muster_fake_clock_at (f.clock, 60 * MUSTER_SECOND, chief_has_prepared, f.master);
    MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 60 * MUSTER_SECOND);
  }
}

MUSTER_TEST (Waiter, trusts_a_master_that_keeps_no_announcements)
{
  g_auto (Fixture) f = set_up ();
  MusterWatchFor what = {NULL, NULL, "digits", NULL};
  muster_waiter_free (f.waiter);
  f.waiter = muster_waiter_new (f.session, &what, 30 * MUSTER_SECOND, MUSTER_CLOCK (f.clock));

  MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 0);
}

static void
end_job (gpointer user_data)
{
  set_chief (user_data, MUSTER_CHIEF_OVER, 20000);
}

/* The model's variables may well have their values: that is no reason to train it again. */
MUSTER_TEST (Waiter, leaves_a_job_that_is_over)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  name_model (&f, "gate", "ready");
  muster_fake_clock_at (f.clock, 60 * MUSTER_SECOND, end_job, f.master);

  MUSTER_EXPECT_FALSE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_STREQ (error->message,
                       "digits is over: its chief ended the job at step 20000, 0 µs ago");
  MUSTER_EXPECT_EQ (muster_waiter_readiness (f.waiter)->chief->step, 20000);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 60 * MUSTER_SECOND);
}

static void
list_chiefs (const MusterReadiness *readiness, gpointer user_data)
{
  g_string_append_printf (
      user_data, "%s|",
      readiness->chief != NULL ? muster_chief_phase_name (readiness->chief->phase) : "nobody");
}

MUSTER_TEST (Waiter, reports_what_the_chief_does)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GString) told = g_string_new (NULL);
  name_model (&f, NULL, "ready");
  muster_waiter_set_progress (f.waiter, list_chiefs, told);
  muster_fake_clock_at (f.clock, 30 * MUSTER_SECOND, chief_initialises, f.master);
  muster_fake_clock_at (f.clock, 60 * MUSTER_SECOND, chief_has_prepared, f.master);
  muster_fake_clock_at (f.clock, 90 * MUSTER_SECOND, set_v, f.master);
  muster_fake_clock_at (f.clock, 90 * MUSTER_SECOND, set_local, f.master);

  MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_TRUE (g_str_has_prefix (told->str, "nobody|initialising|prepared|"));
}

/* One turn for each question, and no pause, as one look. */
MUSTER_TEST (Waiter, receives_one_readiness_when_set_to_poll_once)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  name_model (&f, "gate", "ready");
  muster_waiter_poll_once (f.waiter);
  chief_initialises (f.master);

  MUSTER_EXPECT_FALSE (
      muster_waiter_wait_gate (f.waiter, deadline_in (&f, MUSTER_SECOND), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 0);

  set_v (f.master);
  set_local (f.master);
  chief_has_prepared (f.master);
  MUSTER_EXPECT_TRUE (
      muster_waiter_wait_gate (f.waiter, deadline_in (&f, MUSTER_SECOND), NULL, NULL));
  MUSTER_EXPECT_TRUE (
      muster_waiter_wait_ready (f.waiter, deadline_in (&f, MUSTER_SECOND), NULL, NULL));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 0);
}

MUSTER_TEST (Waiter, reports_a_reason_once)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GString) reasons = g_string_new (NULL);
  muster_fake_clock_at (f.clock, 60 * MUSTER_SECOND, set_v, f.master);
  muster_fake_clock_at (f.clock, 120 * MUSTER_SECOND, set_local, f.master);
  muster_waiter_set_progress (f.waiter, list_reasons, reasons);
  MUSTER_EXPECT_TRUE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_TRUE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_STREQ (reasons->str,
                       "Variables not initialized: v|Variables not initialized: local|");
}

/* Each question has a watch of its own here, which begins with what is known. */
MUSTER_TEST (Waiter, reports_no_change_again_that_another_watch_begins_with)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GString) reasons = g_string_new (NULL);
  name_model (&f, "gate", "ready");
  muster_waiter_set_progress (f.waiter, list_reasons, reasons);
  muster_waiter_poll_once (f.waiter);
  set_v (f.master);

  MUSTER_EXPECT_TRUE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_FALSE (muster_waiter_wait_ready (f.waiter, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_STREQ (reasons->str, "Variables not initialized: local|");
  MUSTER_EXPECT_EQ (muster_waiter_n_polls (f.waiter), 2u);
  MUSTER_EXPECT_EQ (muster_waiter_readiness (f.waiter)->version, (guint64)1);
}

static void
expect_deadline (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  gboolean open =
      muster_waiter_wait_gate (f->waiter, deadline_in (f, 7200 * MUSTER_SECOND), NULL, &error);

  MUSTER_EXPECT_FALSE (open);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "Not ready in time: Variables not initialized: v");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f->clock), 7200 * MUSTER_SECOND);
}

MUSTER_TEST (Waiter, gives_up_at_the_deadline_with_the_last_reason)
{
  g_auto (Fixture) f = set_up ();
  expect_deadline (&f);
}

MUSTER_TEST (Waiter, gives_up_at_the_deadline_when_it_is_pushed)
{
  g_auto (Fixture) f = set_up ();
  muster_fake_master_set_watchable (f.master);
  expect_deadline (&f);
}

static void
expect_cancelled_at_95_s (Fixture *f)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  muster_fake_clock_cancel_at (f->clock, 95 * MUSTER_SECOND, cancellable);
  gboolean open = muster_waiter_wait_gate (f->waiter, MUSTER_WAIT_FOREVER, cancellable, &error);

  MUSTER_EXPECT_FALSE (open);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f->clock), 95 * MUSTER_SECOND);
}

MUSTER_TEST (Waiter, is_cancelled_between_polls)
{
  g_auto (Fixture) f = set_up ();
  expect_cancelled_at_95_s (&f);
}

MUSTER_TEST (Waiter, is_cancelled_while_it_listens)
{
  g_auto (Fixture) f = set_up ();
  muster_fake_master_set_watchable (f.master);
  expect_cancelled_at_95_s (&f);
}

MUSTER_TEST (Waiter, is_cancelled_in_the_middle_of_a_poll)
{
  g_auto (Fixture) f = set_up ();
  muster_fake_master_set_cost (f.master, "gate", MUSTER_WAIT_FOREVER);
  muster_fake_clock_at (f.clock, 96 * MUSTER_SECOND, set_v, f.master);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  muster_fake_clock_cancel_at (f.clock, 5 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_FALSE (
      muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 5 * MUSTER_SECOND);
}

/* DIFF.12: no call hangs */
MUSTER_TEST (Waiter, takes_a_master_that_does_not_answer_for_one_that_is_not_there)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_set_cost (f.master, "gate", MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_FALSE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 60 * MUSTER_SECOND);
}

MUSTER_TEST (Waiter, hands_up_a_lost_session)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_clock_at (f.clock, 10 * MUSTER_SECOND, restart, f.master);
  MUSTER_EXPECT_FALSE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Waiter, hands_up_a_broken_stream)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_set_watchable (f.master);
  muster_fake_master_fail (f.master, "watch", 2, 1, MUSTER_ERROR_UNAVAILABLE, "stream broken");
  MUSTER_EXPECT_FALSE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

MUSTER_TEST (Waiter, hands_up_an_op_that_fails)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_fail (f.master, "gate", 3, 1, MUSTER_ERROR_INTERNAL, "broken kernel");
  MUSTER_EXPECT_FALSE (muster_waiter_wait_gate (f.waiter, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
}

MUSTER_TEST (Waiter, polls_once_when_asked)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_fake_master_set_watchable (f.master);
  muster_waiter_poll_once (f.waiter);
  MUSTER_EXPECT_FALSE (
      muster_waiter_wait_gate (f.waiter, deadline_in (&f, 30 * MUSTER_SECOND), NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 0);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "gate"), 1u);
}

/* Its first answer is waited for; afterwards the ops are polled as often as without it. */
MUSTER_TEST (Waiter, polls_beside_a_coordinator_that_does_not_answer)
{
  g_auto (Fixture) f = set_up ();
  const MusterWatchFor what = {"gate", "ready", "digits", NULL};
  muster_session_set_coordinated (f.session);
  muster_fake_master_set_watchable (f.master);
  muster_fake_master_set_cost (f.master, "watch", MUSTER_WAIT_FOREVER);
  muster_fake_clock_at (f.clock, MUSTER_COORDINATOR_LIMIT_US + 10 * MUSTER_MILLISECOND, set_v,
                        f.master);
  g_autoptr (MusterWaiter) waiter =
      muster_waiter_new (f.session, &what, 30 * MUSTER_SECOND, MUSTER_CLOCK (f.clock));

  MUSTER_EXPECT_TRUE (
      muster_waiter_wait_gate (waiter, deadline_in (&f, 60 * MUSTER_SECOND), NULL, NULL));

  MUSTER_EXPECT_LT (muster_fake_clock_elapsed_us (f.clock),
                    MUSTER_COORDINATOR_LIMIT_US + MUSTER_SECOND);
}
