// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/thread_gate.h"
#include "tests/gtest_shim.h"
#include "train/monitored/coordinator.h"

static GError *
error_of (MusterError code, const char *message)
{
  return g_error_new_literal (MUSTER_ERROR, (gint)code, message);
}

/* MON.52 */
MUSTER_TEST (Coordinator, is_asked_to_stop_once_and_waited_for)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  MUSTER_EXPECT_FALSE (muster_coordinator_should_stop (self));
  MUSTER_EXPECT_FALSE (muster_coordinator_wait_for_stop (self, 3 * MUSTER_SECOND, NULL));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 3 * MUSTER_SECOND);

  MUSTER_EXPECT_TRUE (muster_coordinator_request_stop (self, NULL, NULL));

  MUSTER_EXPECT_TRUE (muster_coordinator_should_stop (self));
  MUSTER_EXPECT_TRUE (muster_coordinator_wait_for_stop (self, 3 * MUSTER_SECOND, NULL));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 3 * MUSTER_SECOND);
}

static gboolean
fail_now (MusterCoordinator *self G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  g_propagate_error (error, g_error_copy (user_data));
  return FALSE;
}

/* MON.53 */
MUSTER_TEST (Coordinator, keeps_the_first_error_for_join)
{
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) first = error_of (MUSTER_ERROR_INTERNAL, "first");
  g_autoptr (GError) second = error_of (MUSTER_ERROR_INTERNAL, "second");
  g_autoptr (GError) error = NULL;
  muster_coordinator_start (self, "one", fail_now, first, NULL);
  while (!muster_coordinator_should_stop (self))
    g_thread_yield ();
  muster_coordinator_start (self, "two", fail_now, second, NULL);

  MUSTER_EXPECT_FALSE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_STREQ (error->message, "first");
}

/* MON.54 */
MUSTER_TEST (Coordinator, takes_the_end_of_input_for_a_plain_stop_where_asked)
{
  g_autoptr (GError) end = error_of (MUSTER_ERROR_OUT_OF_RANGE, "the queue is empty");
  g_autoptr (GError) none = NULL, error = NULL;
  g_autoptr (MusterCoordinator) clean = muster_coordinator_new (NULL, TRUE);
  g_autoptr (MusterCoordinator) strict = muster_coordinator_new (NULL, FALSE);
  muster_coordinator_request_stop (clean, end, NULL);
  muster_coordinator_request_stop (strict, end, NULL);

  MUSTER_EXPECT_TRUE (muster_coordinator_join (clean, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, &none));
  MUSTER_ASSERT_NO_ERROR (none);
  MUSTER_EXPECT_FALSE (
      muster_coordinator_join (strict, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
}

/* MON.55 */
MUSTER_TEST (Coordinator, hands_an_error_back_after_join)
{
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) late = error_of (MUSTER_ERROR_INTERNAL, "late");
  g_autoptr (GError) back = NULL;
  muster_coordinator_request_stop (self, NULL, NULL);
  MUSTER_ASSERT_TRUE (muster_coordinator_join (self, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, NULL));

  MUSTER_EXPECT_FALSE (muster_coordinator_request_stop (self, late, &back));

  MUSTER_EXPECT_STREQ (back->message, "late");
}

/* DMON.13: it is logged, and doesn't become the reason. */
MUSTER_TEST (Coordinator, drops_an_error_that_comes_after_a_plain_stop)
{
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) late = error_of (MUSTER_ERROR_INTERNAL, "late");
  g_autoptr (GError) error = NULL;
  muster_coordinator_request_stop (self, NULL, NULL);
  MUSTER_EXPECT_TRUE (muster_coordinator_request_stop (self, late, NULL));

  MUSTER_EXPECT_TRUE (muster_coordinator_join (self, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* MON.56 */
MUSTER_TEST (Coordinator, gives_stragglers_their_grace_and_then_names_them)
{
  static MusterThreadGate gate;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  g_autoptr (GError) error = NULL;
  muster_coordinator_start (self, "reader", muster_thread_gate_wait, &gate, NULL);
  muster_coordinator_request_stop (self, NULL, NULL);

  MUSTER_EXPECT_FALSE (muster_coordinator_join (self, 120 * MUSTER_SECOND, FALSE,
                                                MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_STREQ (error->message, "Coordinator stopped with threads still running: reader");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 120 * MUSTER_SECOND);
  muster_thread_gate_open (&gate);
}

/* MON.56, MON.61 */
MUSTER_TEST (Coordinator, may_leave_stragglers_behind)
{
  static MusterThreadGate gate;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  g_autoptr (GError) error = NULL;
  muster_coordinator_start (self, "reader", muster_thread_gate_wait, &gate, NULL);
  muster_coordinator_request_stop (self, NULL, NULL);

  MUSTER_EXPECT_TRUE (
      muster_coordinator_join (self, MUSTER_SECOND, TRUE, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  muster_thread_gate_open (&gate);
}

/* MON.57 */
MUSTER_TEST (Coordinator, joins_threads_that_end_by_themselves_without_a_stop)
{
  static MusterThreadGate gate = {.is_open = TRUE};
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) error = NULL, late = error_of (MUSTER_ERROR_INTERNAL, "late");
  for (int i = 0; i < 5; i++)
    muster_coordinator_start (self, "one of five", muster_thread_gate_wait, &gate, NULL);

  MUSTER_EXPECT_TRUE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_coordinator_should_stop (self));
  MUSTER_EXPECT_FALSE (muster_coordinator_request_stop (self, late, NULL)); /* it is joined */
}

/* MON.58 */
MUSTER_TEST (Coordinator, forgets_a_stop)
{
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) reason = error_of (MUSTER_ERROR_INTERNAL, "reason");
  g_autoptr (GError) error = NULL;
  muster_coordinator_request_stop (self, reason, NULL);
  MUSTER_EXPECT_FALSE (muster_coordinator_join (self, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, NULL));

  muster_coordinator_clear_stop (self);

  MUSTER_EXPECT_FALSE (muster_coordinator_should_stop (self));
  MUSTER_EXPECT_TRUE (muster_coordinator_join (self, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
}

/* MON.57, MON.58 */
MUSTER_TEST (Coordinator, knows_whether_it_is_joined)
{
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (NULL, FALSE);
  g_autoptr (GError) reason = error_of (MUSTER_ERROR_INTERNAL, "reason");
  MUSTER_EXPECT_FALSE (muster_coordinator_is_joined (self));
  muster_coordinator_request_stop (self, reason, NULL);
  MUSTER_EXPECT_FALSE (muster_coordinator_is_joined (self));

  MUSTER_EXPECT_FALSE (muster_coordinator_join (self, 0, FALSE, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_TRUE (muster_coordinator_is_joined (self)); /* also with an error */

  muster_coordinator_clear_stop (self);
  MUSTER_EXPECT_FALSE (muster_coordinator_is_joined (self));
}

/* --- waits that end --- */

static gint64
in_a_minute (MusterFakeClock *clock)
{
  return muster_clock_now_us (MUSTER_CLOCK (clock)) + 60 * MUSTER_SECOND;
}

/* Nobody stops the thread; once it has ended, the join can be repeated. */
MUSTER_TEST (Coordinator, joins_no_longer_than_its_deadline)
{
  static MusterThreadGate gate;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  g_autoptr (GError) error = NULL, none = NULL;
  muster_coordinator_start (self, "reader", muster_thread_gate_wait, &gate, NULL);

  MUSTER_EXPECT_FALSE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, in_a_minute (clock), NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_coordinator_is_joined (self));
  muster_thread_gate_open (&gate);
  muster_fake_clock_hold (clock);
  MUSTER_EXPECT_TRUE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER, NULL, &none));
  MUSTER_EXPECT_TRUE (muster_coordinator_is_joined (self));
}

MUSTER_TEST (Coordinator, is_cancelled_while_it_joins)
{
  static MusterThreadGate gate;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  muster_coordinator_start (self, "reader", muster_thread_gate_wait, &gate, NULL);
  muster_fake_clock_cancel_at (clock, 5 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_FALSE (muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER,
                                                cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 5 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (muster_coordinator_is_joined (self));
  muster_thread_gate_open (&gate);
}

MUSTER_TEST (Coordinator, ends_the_grace_at_the_deadline_or_a_cancellation)
{
  for (int is_cancelled = 0; is_cancelled <= 1; is_cancelled++) {
    static MusterThreadGate gates[2];
    g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
    g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    g_autoptr (GError) error = NULL;
    muster_coordinator_start (self, "reader", muster_thread_gate_wait, &gates[is_cancelled], NULL);
    muster_coordinator_request_stop (self, NULL, NULL);
    if (is_cancelled)
      muster_fake_clock_cancel_at (clock, 60 * MUSTER_SECOND, cancellable);

    MUSTER_EXPECT_FALSE (muster_coordinator_join (
        self, 120 * MUSTER_SECOND, FALSE, is_cancelled ? MUSTER_WAIT_FOREVER : in_a_minute (clock),
        cancellable, &error));

    MUSTER_EXPECT_STREQ (error->message, "Coordinator stopped with threads still running: reader");
    MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
    muster_thread_gate_open (&gates[is_cancelled]);
  }
}

MUSTER_TEST (Coordinator, is_cancelled_while_somebody_waits_for_a_stop)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (clock), FALSE);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_fake_clock_cancel_at (clock, 5 * MUSTER_SECOND, cancellable);

  MUSTER_EXPECT_FALSE (muster_coordinator_wait_for_stop (self, 60 * MUSTER_SECOND, cancellable));

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 5 * MUSTER_SECOND);
}

/* --- loops --- */

typedef struct {
  MusterFakeClock *clock;
  gint64 at[8];
  int n, of;
  GError *failure;
} Beats;

static gboolean
beat (MusterCoordinator *self, gpointer user_data, GError **error)
{
  Beats *beats = user_data;
  beats->at[beats->n++] = muster_fake_clock_elapsed_us (beats->clock) / MUSTER_SECOND;
  if (beats->n == 2)
    muster_fake_clock_pass (beats->clock, 25 * MUSTER_SECOND); /* it is late */
  if (beats->n == beats->of && beats->failure != NULL) {
    g_propagate_error (error, g_error_copy (beats->failure));
    return FALSE;
  }
  if (beats->n == beats->of)
    muster_coordinator_request_stop (self, NULL, NULL);
  return TRUE;
}

/* MON.60 */
MUSTER_TEST (Coordinator, loops_at_fixed_instants_and_catches_up)
{
  Beats beats = {.clock = muster_fake_clock_new (), .of = 6};
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (beats.clock), FALSE);
  muster_fake_clock_hold (beats.clock);

  muster_coordinator_start_looper (self, "beat", 10 * MUSTER_SECOND, beat, &beats, NULL);
  for (int i = 0; i < 3; i++) {
    muster_fake_clock_wait_for_waiters (beats.clock, 1);
    muster_fake_clock_crank (beats.clock);
  }
  MUSTER_EXPECT_TRUE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER, NULL, NULL));

  const gint64 expected[] = {0, 10, 35, 35, 40, 50};
  MUSTER_EXPECT_EQ (beats.n, 6);
  for (int i = 0; i < 6; i++)
    MUSTER_EXPECT_EQ (beats.at[i], expected[i]);
  g_object_unref (beats.clock);
}

/* MON.59, MON.60 */
MUSTER_TEST (Coordinator, stops_all_by_the_error_of_a_looper)
{
  Beats beats = {.clock = muster_fake_clock_new (),
                 .of = 3,
                 .failure = error_of (MUSTER_ERROR_DATA_LOSS, "torn")};
  muster_fake_clock_hold (beats.clock);
  g_autoptr (MusterCoordinator) self = muster_coordinator_new (MUSTER_CLOCK (beats.clock), FALSE);
  g_autoptr (GError) error = NULL;

  muster_coordinator_start_looper (self, "beat", 0, beat, &beats, NULL);
  MUSTER_EXPECT_FALSE (
      muster_coordinator_join (self, MUSTER_SECOND, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_EQ (beats.n, 3);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  g_error_free (beats.failure);
  g_object_unref (beats.clock);
}
