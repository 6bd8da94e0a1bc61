// SPDX-License-Identifier: Apache-2.0
#include "base/wait_private.h"

#include "tests/gtest_shim.h"

#define LONG_TIME (30 * MUSTER_SECOND)

typedef struct {
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  gboolean is_come;
  int n_asked;
} Event;

static gboolean
is_come (gpointer data)
{
  Event *event = data;
  event->n_asked++;
  return event->is_come;
}

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static gpointer
bring (gpointer data)
{
  Event *event = data;
  g_mutex_lock (&event->lock);
  event->is_come = TRUE;
  g_cond_broadcast (&event->changed);
  g_mutex_unlock (&event->lock);
  return NULL;
}

static gpointer
cancel (gpointer data)
{
  g_cancellable_cancel (data);
  return NULL;
}

/* What the wait returns while func (data) runs beside it. */
static gboolean
wait_beside (Event *event, GThreadFunc func, gpointer data, gint64 deadline_us,
             GCancellable *cancellable)
{
  g_mutex_lock (&event->lock);
  GThread *thread = g_thread_new ("beside", func, data);
  const gboolean done =
      muster_wait_for (&event->changed, &event->lock, is_come, event, deadline_us, cancellable);
  MUSTER_EXPECT_EQ (done, event->is_come);
  MUSTER_EXPECT_FALSE (g_mutex_trylock (&event->lock)); /* it is held */
  g_mutex_unlock (&event->lock);
  g_thread_join (thread);
  return done;
}

MUSTER_TEST (wait, ends_when_it_is_done)
{
  for (int i = 0; i < 100; i++) {
    g_autoptr (GCancellable) cancellable = g_cancellable_new ();
    Event a = {0}, b = {0};
    MUSTER_EXPECT_TRUE (wait_beside (&a, bring, &a, MUSTER_WAIT_FOREVER, cancellable));
    MUSTER_EXPECT_TRUE (wait_beside (&b, bring, &b, now_us () + LONG_TIME, NULL));
  }
}

MUSTER_TEST (wait, ends_when_it_is_cancelled_at_any_moment)
{
  for (int i = 0; i < 100; i++) {
    g_autoptr (GCancellable) a = g_cancellable_new (), b = g_cancellable_new ();
    const gint64 deadline_us = now_us () + LONG_TIME;
    Event event = {0};
    MUSTER_EXPECT_FALSE (wait_beside (&event, cancel, a, MUSTER_WAIT_FOREVER, a));
    MUSTER_EXPECT_FALSE (wait_beside (&event, cancel, b, deadline_us, b));
    MUSTER_EXPECT_LT (now_us (), deadline_us);
  }
}

MUSTER_TEST (wait, ends_at_its_deadline)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  const gint64 deadline_us = now_us () + 3 * MUSTER_MILLISECOND;
  Event event = {0};
  g_mutex_lock (&event.lock);
  MUSTER_EXPECT_FALSE (
      muster_wait_for (&event.changed, &event.lock, is_come, &event, deadline_us, cancellable));
  MUSTER_EXPECT_GE (now_us (), deadline_us);
  MUSTER_EXPECT_FALSE (muster_wait_for (&event.changed, &event.lock, is_come, &event, 0, NULL));
  MUSTER_EXPECT_FALSE (muster_wait_change (&event.changed, &event.lock, deadline_us));
  g_mutex_unlock (&event.lock);
}

MUSTER_TEST (wait, returns_at_once_when_it_is_done_already)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Event event = {.is_come = TRUE};
  g_cancellable_cancel (cancellable);
  g_mutex_lock (&event.lock);
  MUSTER_EXPECT_TRUE (
      muster_wait_for (&event.changed, &event.lock, is_come, &event, 0, cancellable));
  MUSTER_EXPECT_EQ (event.n_asked, 1);
  g_mutex_unlock (&event.lock);
}

/* It is done at the second question, and taken by another waiter before the third. */
static gboolean
is_taken_between (gpointer data)
{
  Event *event = data;
  const int n = ++event->n_asked;
  return n == 2 || n > 3;
}

MUSTER_TEST (wait, goes_on_when_another_waiter_was_faster)
{
  Event event = {0};
  g_mutex_lock (&event.lock);
  MUSTER_EXPECT_TRUE (muster_wait_for (&event.changed, &event.lock, is_taken_between, &event,
                                       MUSTER_WAIT_FOREVER, NULL));
  MUSTER_EXPECT_FALSE (g_mutex_trylock (&event.lock)); /* it is held */
  g_mutex_unlock (&event.lock);
}
