// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

typedef struct {
  MusterFakeClock *clock;
  GString *diary;
} Story;

static void
note (gpointer user_data)
{
  Story *story = user_data;
  g_string_append_printf (story->diary, "%" G_GINT64_FORMAT " ",
                          muster_fake_clock_elapsed_us (story->clock) / MUSTER_SECOND);
}

static void
note_and_wait (gpointer user_data)
{
  Story *story = user_data;
  MusterClock *clock = MUSTER_CLOCK (story->clock);
  note (story);
  muster_clock_wait_until (clock, muster_clock_now_us (clock) + 10 * MUSTER_SECOND, NULL, NULL);
  note (story);
}

static gboolean
wait_for (MusterFakeClock *clock, gint64 duration_us, GCancellable *cancellable, GError **error)
{
  MusterClock *seen = MUSTER_CLOCK (clock);
  return muster_clock_wait_until (seen, muster_clock_now_us (seen) + duration_us, cancellable,
                                  error);
}

MUSTER_TEST (FakeClock, jumps_to_the_instant_that_is_waited_for)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  MUSTER_EXPECT_TRUE (wait_for (clock, 7200 * MUSTER_SECOND, NULL, NULL));

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 7200 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (clock), 1u);
}

MUSTER_TEST (FakeClock, runs_events_on_the_way_in_their_order)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GString) diary = g_string_new (NULL);
  Story story = {clock, diary};
  muster_fake_clock_at (clock, 30 * MUSTER_SECOND, note, &story);
  muster_fake_clock_at (clock, 10 * MUSTER_SECOND, note, &story);
  muster_fake_clock_at (clock, 100 * MUSTER_SECOND, note, &story);
  wait_for (clock, 60 * MUSTER_SECOND, NULL, NULL);

  MUSTER_EXPECT_STREQ (diary->str, "10 30 ");
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 60 * MUSTER_SECOND);
}

MUSTER_TEST (FakeClock, lets_an_event_wait_itself)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GString) diary = g_string_new (NULL);
  Story story = {clock, diary};
  muster_fake_clock_at (clock, 5 * MUSTER_SECOND, note_and_wait, &story);
  muster_fake_clock_at (clock, 8 * MUSTER_SECOND, note, &story);
  wait_for (clock, 20 * MUSTER_SECOND, NULL, NULL);

  MUSTER_EXPECT_STREQ (diary->str, "5 8 15 ");
}

MUSTER_TEST (FakeClock, cancels_a_wait_at_the_instant_of_the_cancel)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  muster_fake_clock_cancel_at (clock, 95 * MUSTER_SECOND, cancellable);
  gboolean waited = wait_for (clock, 7200 * MUSTER_SECOND, cancellable, &error);

  MUSTER_EXPECT_FALSE (waited);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 95 * MUSTER_SECOND);
}

typedef struct {
  MusterFakeClock *clock;
  gint64 duration_us;
  gint woken; /* atomic */
} Sleeper;

static gpointer
sleep_on_it (gpointer user_data)
{
  Sleeper *sleeper = user_data;
  wait_for (sleeper->clock, sleeper->duration_us, NULL, NULL);
  g_atomic_int_set (&sleeper->woken, 1);
  return NULL;
}

MUSTER_TEST (FakeClock, releases_threads_one_instant_at_a_time_when_it_is_held)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  Sleeper early = {clock, MUSTER_SECOND, 0};
  Sleeper late = {clock, 3600 * MUSTER_SECOND, 0};
  muster_fake_clock_hold (clock);
  GThread *early_thread = g_thread_new ("early", sleep_on_it, &early);
  GThread *late_thread = g_thread_new ("late", sleep_on_it, &late);
  muster_fake_clock_wait_for_waiters (clock, 2);
  muster_fake_clock_crank (clock);
  g_thread_join (early_thread);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), MUSTER_SECOND);
  MUSTER_EXPECT_EQ (g_atomic_int_get (&late.woken), 0);

  muster_fake_clock_crank (clock);
  g_thread_join (late_thread);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 3600 * MUSTER_SECOND);
}

typedef struct {
  MusterFakeClock *clock;
  GCancellable *cancellable;
} Leaver;

static gpointer
sleep_until_cancelled (gpointer user_data)
{
  Leaver *leaver = user_data;
  MUSTER_EXPECT_FALSE (wait_for (leaver->clock, MUSTER_SECOND, leaver->cancellable, NULL));
  return NULL;
}

/* Runs before its thread learns of it. */
static void
crank_meanwhile (GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data)
{
  muster_fake_clock_crank (user_data);
}

MUSTER_TEST (FakeClock, no_longer_counts_a_waiter_that_was_cancelled)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Leaver leaver = {clock, cancellable};
  Sleeper late = {clock, 3600 * MUSTER_SECOND, 0};
  muster_fake_clock_hold (clock);
  g_cancellable_connect (cancellable, G_CALLBACK (crank_meanwhile), clock, NULL);
  GThread *leaving = g_thread_new ("leaving", sleep_until_cancelled, &leaver);
  GThread *late_thread = g_thread_new ("late", sleep_on_it, &late);
  muster_fake_clock_wait_for_waiters (clock, 2);
  g_cancellable_cancel (cancellable);
  g_thread_join (leaving);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (clock), 3600 * MUSTER_SECOND);
  muster_fake_clock_crank (clock);
  g_thread_join (late_thread);
}
