// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/error.h"
#include "tests/doubles/shifted_clock.h"
#include "tests/gtest_shim.h"

#include <sys/wait.h>
#include <unistd.h>

#define LONG_TIME (30 * MUSTER_SECOND)
#define YEAR      (365 * 24 * 3600 * MUSTER_SECOND)

MUSTER_TEST (clock, goes_forward)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 before_us = muster_clock_now_us (clock);
  MUSTER_EXPECT_PTR_EQ (clock, muster_system_clock ());
  MUSTER_EXPECT_LE (before_us, muster_clock_now_us (clock));
  /* after 2020-01-01 */
  MUSTER_EXPECT_GT (muster_clock_wall_us (clock), 1577836800 * MUSTER_SECOND);
}

MUSTER_TEST (clock, draws_numbers_below_one)
{
  MusterClock *clock = muster_system_clock ();
  double sum = 0;
  for (int i = 0; i < 1000; i++) {
    const double number = muster_clock_random (clock);
    MUSTER_ASSERT_TRUE (number >= 0 && number < 1);
    sum += number;
  }
  MUSTER_EXPECT_NEAR (sum / 1000, 0.5, 0.2);
}

/* --- a clock with nothing of its own --- */

typedef GObject MusterLackingClock;
typedef GObjectClass MusterLackingClockClass;

static void
muster_lacking_clock_init (MusterLackingClock *self G_GNUC_UNUSED)
{
}

static void
muster_lacking_clock_class_init (MusterLackingClockClass *klass G_GNUC_UNUSED)
{
}

static GType muster_lacking_clock_get_type (void);
G_DEFINE_TYPE_WITH_CODE (MusterLackingClock, muster_lacking_clock, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK, NULL))

MUSTER_TEST (clock, that_lacks_a_function_has_the_machines)
{
  g_autoptr (GObject) lacking = g_object_new (muster_lacking_clock_get_type (), NULL);
  MusterClock *clock = MUSTER_CLOCK (lacking);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  const gint64 now_us = muster_clock_now_us (clock);
  MUSTER_EXPECT_LE (now_us, muster_clock_now_us (clock));
  MUSTER_EXPECT_GT (muster_clock_wall_us (clock), 1577836800 * MUSTER_SECOND);
  MUSTER_EXPECT_LT (muster_clock_random (clock), 1);
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (clock, now_us, NULL, &error));
  g_cancellable_cancel (cancelled);
  MUSTER_EXPECT_FALSE (muster_clock_wait_until (clock, MUSTER_WAIT_FOREVER, cancelled, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* The number that a child draws next. */
static double
draw_in_child (MusterClock *clock)
{
  double number = -1;
  int ends[2];
  MUSTER_EXPECT_EQ (pipe (ends), 0);
  const pid_t child = fork ();
  if (child == 0) {
    number = muster_clock_random (clock);
    _exit (write (ends[1], &number, sizeof number) == sizeof number ? 0 : 1);
  }
  (void)close (ends[1]);
  MUSTER_EXPECT_EQ (read (ends[0], &number, sizeof number), (ssize_t)sizeof number);
  (void)close (ends[0]);
  MUSTER_EXPECT_EQ (waitpid (child, NULL, 0), child);
  return number;
}

MUSTER_TEST (clock, draws_other_numbers_in_a_child)
{
  MusterClock *clock = muster_system_clock ();
  (void)muster_clock_random (clock); /* some are left to draw */
  const double of_child = draw_in_child (clock);
  MUSTER_EXPECT_TRUE (of_child >= 0 && of_child < 1);
  MUSTER_EXPECT_TRUE (of_child != muster_clock_random (clock));
}

MUSTER_TEST (clock, does_not_wait_for_the_past)
{
  g_autoptr (GError) error = NULL;
  MusterClock *clock = muster_system_clock ();
  const gint64 now_us = muster_clock_now_us (clock);
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (clock, now_us - 1, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (clock, G_MININT64, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (clock, wakes_no_sooner_than_asked)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  MusterClock *clock = muster_system_clock ();
  const gint64 wake_us = muster_clock_now_us (clock) + 3 * MUSTER_MILLISECOND;
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (clock, wake_us, cancellable, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_GE (muster_clock_now_us (clock), wake_us);
}

MUSTER_TEST (clock, does_not_begin_to_wait_when_cancelled)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_cancellable_cancel (cancellable);
  MUSTER_EXPECT_FALSE (
      muster_clock_wait_until (muster_system_clock (), MUSTER_WAIT_FOREVER, cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

typedef struct {
  GCancellable *cancellable;
  gint64 wake_us;
  GError *error;
  gint64 woken_us;
} Sleeper;

static gpointer
sleep_in_thread (gpointer data)
{
  Sleeper *sleeper = data;
  MusterClock *clock = muster_system_clock ();
  (void)muster_clock_wait_until (clock, sleeper->wake_us, sleeper->cancellable, &sleeper->error);
  sleeper->woken_us = muster_clock_now_us (clock);
  return NULL;
}

static void
cancel_a_sleeper (gint64 wake_us)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Sleeper sleeper = {.cancellable = cancellable, .wake_us = wake_us};
  GThread *thread = g_thread_new ("sleeper", sleep_in_thread, &sleeper);
  g_thread_yield ();
  g_cancellable_cancel (cancellable);
  g_thread_join (thread);
  MUSTER_EXPECT_ERROR (sleeper.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_LT (sleeper.woken_us, wake_us);
  g_clear_error (&sleeper.error);
}

MUSTER_TEST (clock, is_woken_by_a_cancel_at_any_moment)
{
  MusterClock *clock = muster_system_clock ();
  for (int i = 0; i < 50; i++)
    cancel_a_sleeper (muster_clock_now_us (clock) + LONG_TIME);
  for (int i = 0; i < 50; i++)
    cancel_a_sleeper (MUSTER_WAIT_FOREVER);
}

MUSTER_TEST (deadline, is_reckoned_once)
{
  MUSTER_EXPECT_EQ (muster_deadline_after (100, 30), 130);
  MUSTER_EXPECT_EQ (muster_deadline_after (100, 0), 100);
  MUSTER_EXPECT_EQ (muster_deadline_after (100, -30), 100);
  MUSTER_EXPECT_EQ (muster_deadline_after (100, MUSTER_WAIT_FOREVER), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (muster_deadline_after (MUSTER_WAIT_FOREVER, -1), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (muster_deadline_after (100, G_MAXINT64 - 50), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (muster_deadline_after (100, 6 * YEAR), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (muster_deadline_after (-100, 30), -70);
}

MUSTER_TEST (deadline, leaves_what_remains)
{
  MUSTER_EXPECT_EQ (muster_deadline_remaining (130, 100), 30);
  MUSTER_EXPECT_EQ (muster_deadline_remaining (100, 100), 0);
  MUSTER_EXPECT_EQ (muster_deadline_remaining (100, 130), 0);
  MUSTER_EXPECT_EQ (muster_deadline_remaining (MUSTER_WAIT_FOREVER, 130), MUSTER_WAIT_FOREVER);
  MUSTER_EXPECT_EQ (muster_deadline_remaining (G_MININT64, 130), 0);
  MUSTER_EXPECT_EQ (muster_deadline_remaining (G_MAXINT64 - 1, -100), MUSTER_WAIT_FOREVER);
}

static void
expect_duration (gint64 duration_us, const char *wanted)
{
  g_autofree char *text = muster_format_duration (duration_us);
  MUSTER_EXPECT_STREQ (text, wanted);
}

MUSTER_TEST (format, durations_read_well)
{
  expect_duration (0, "0 µs");
  expect_duration (-5, "0 µs");
  expect_duration (99, "99 µs");
  expect_duration (400, "0.4 ms");
  expect_duration (999, "0.9 ms");
  expect_duration (3 * MUSTER_MILLISECOND, "3 ms");
  expect_duration (999999, "999 ms");
  expect_duration (MUSTER_SECOND, "1.0 s");
  expect_duration (14260 * MUSTER_MILLISECOND, "14.2 s");
  expect_duration (60 * MUSTER_SECOND - 1, "59.9 s");
  expect_duration (60 * MUSTER_SECOND, "1m00s");
  expect_duration (586 * MUSTER_SECOND, "9m46s");
  expect_duration (3600 * MUSTER_SECOND - 1, "59m59s");
  expect_duration (7380 * MUSTER_SECOND, "2h03m");
  expect_duration (100 * 3600 * MUSTER_SECOND, "100h00m");
  expect_duration (MUSTER_WAIT_FOREVER, "forever");
}

static void
expect_size (guint64 bytes, const char *wanted)
{
  g_autofree char *text = muster_format_size (bytes);
  MUSTER_EXPECT_STREQ (text, wanted);
}

MUSTER_TEST (format, sizes_read_well)
{
  expect_size (0, "0 B");
  expect_size (999, "999 B");
  expect_size (1000, "1.0 KB");
  expect_size (9999, "9.9 KB");
  expect_size (64000, "64 KB");
  expect_size (999999, "999 KB");
  expect_size (912000000, "912 MB");
  expect_size (3400000000u, "3.4 GB");
  expect_size (G_MAXUINT64, "18 EB");
}

/* Whatever it counts from: the machine's clock is asked before and after. */
MUSTER_TEST (clock, of_ones_own_is_on_the_machines_scale)
{
  const gint64 beginnings[] = {G_MININT64 / 2, 0, 1, G_MAXINT64 / 2};
  for (gsize i = 0; i < G_N_ELEMENTS (beginnings); i++) {
    g_autoptr (MusterClock) own = muster_shifted_clock_new (beginnings[i]);
    const gint64 before_us = muster_clock_now_us (muster_system_clock ());
    const gint64 own_us = muster_clock_now_us (own);
    MUSTER_TRACE ("case %u", (guint)i);
    MUSTER_EXPECT_LE (before_us, own_us);
    MUSTER_EXPECT_LE (own_us, muster_clock_now_us (muster_system_clock ()));
  }
}

MUSTER_TEST (clock, of_ones_own_waits_for_instants_of_that_scale)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterClock) own = muster_shifted_clock_new (5);
  const gint64 wake_us = muster_clock_now_us (muster_system_clock ()) + 3 * MUSTER_MILLISECOND;
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (own, wake_us, NULL, &error));
  MUSTER_EXPECT_GE (muster_clock_now_us (own), wake_us);
  MUSTER_EXPECT_TRUE (muster_clock_wait_until (own, G_MININT64, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (deadline, that_no_clock_has_said_is_refused)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 now_us = muster_clock_now_us (clock);
  const struct {
    gint64 deadline_us;
    const char *says;
  } wrong[] = {{3 * MUSTER_MILLISECOND, "'3000': it is a duration of 3 ms"},
               {-1, "'-1': it is below 0"},
               {G_MININT64, "below 0"},
               {g_get_real_time (), "as a time of g_get_real_time () is"},
               {now_us + 11 * YEAR, "more than ten years ahead"},
               {MUSTER_WAIT_FOREVER - 1, "more than ten years ahead"}};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", wrong[i].says);
    MUSTER_EXPECT_FALSE (muster_deadline_check (wrong[i].deadline_us, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, wrong[i].says);
  }
  const gint64 right[] = {0,
                          now_us,
                          now_us + 9 * YEAR,
                          MUSTER_WAIT_FOREVER,
                          muster_deadline_after (now_us, -1),
                          muster_deadline_after (now_us + 4 * YEAR, 5 * YEAR),
                          muster_deadline_after (now_us, 100 * YEAR)};
  for (gsize i = 0; i < G_N_ELEMENTS (right); i++)
    MUSTER_EXPECT_TRUE (muster_deadline_check (right[i], NULL));
}
