// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"

/* Not 0, so that an instant taken for a duration shows. */
#define START_US         (1000 * MUSTER_SECOND)
#define REAL_PATIENCE_US (30 * G_TIME_SPAN_SECOND)

typedef struct {
  gint64 at_us;
  MusterFakeEvent func;
  gpointer user_data;
} Event;

typedef struct {
  gint64 wake_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
  gboolean released;
} Waiter;

struct _MusterFakeClock {
  GObject parent;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  gint64 now_us;
  GArray *events;     /* (owned) (element-type Event) in the order of their instants */
  GPtrArray *waiters; /* (owned) (element-type Waiter) on the stacks of their threads */
  guint n_waits;
  double chance;
  gint64 wall_ahead_us;
  gboolean held;
  gint64 shift_us; /* from what is said here to what others hear (base/clock.h) */
};

static void muster_fake_clock_clock_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterFakeClock, muster_fake_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK,
                                                      muster_fake_clock_clock_init))

MusterFakeClock *
muster_fake_clock_new (void)
{
  return g_object_new (MUSTER_TYPE_FAKE_CLOCK, NULL);
}

void
muster_fake_clock_at (MusterFakeClock *self, gint64 after_us, MusterFakeEvent func,
                      gpointer user_data)
{
  Event event = {START_US + after_us, func, user_data};
  guint place = 0;
  g_mutex_lock (&self->lock);
  while (place < self->events->len &&
         g_array_index (self->events, Event, place).at_us <= event.at_us)
    place++;
  g_array_insert_val (self->events, place, event);
  g_mutex_unlock (&self->lock);
}

static void
cancel (gpointer user_data)
{
  g_cancellable_cancel (user_data);
}

void
muster_fake_clock_cancel_at (MusterFakeClock *self, gint64 after_us, GCancellable *cancellable)
{
  muster_fake_clock_at (self, after_us, cancel, cancellable);
}

static gint64
now_us (MusterFakeClock *self)
{
  g_mutex_lock (&self->lock);
  gint64 now_us = self->now_us;
  g_mutex_unlock (&self->lock);
  return now_us;
}

gint64
muster_fake_clock_elapsed_us (MusterFakeClock *self)
{
  return now_us (self) - START_US;
}

guint
muster_fake_clock_n_waits (MusterFakeClock *self)
{
  g_mutex_lock (&self->lock);
  guint n = self->n_waits;
  g_mutex_unlock (&self->lock);
  return n;
}

void
muster_fake_clock_set_random (MusterFakeClock *self, double value)
{
  g_mutex_lock (&self->lock);
  self->chance = value;
  g_mutex_unlock (&self->lock);
}

void
muster_fake_clock_set_wall (MusterFakeClock *self, gint64 ahead_us)
{
  g_mutex_lock (&self->lock);
  self->wall_ahead_us = ahead_us;
  g_mutex_unlock (&self->lock);
}

/* Takes the first event that is due by until_us and moves the clock to it. */
static gboolean
take_event (MusterFakeClock *self, gint64 until_us, Event *event)
{
  gboolean is_due = FALSE;
  g_mutex_lock (&self->lock);
  if (self->events->len > 0 && g_array_index (self->events, Event, 0).at_us <= until_us) {
    *event = g_array_index (self->events, Event, 0);
    g_array_remove_index (self->events, 0);
    self->now_us = MAX (self->now_us, event->at_us);
    is_due = TRUE;
  }
  g_mutex_unlock (&self->lock);
  return is_due;
}

static void
move_to (MusterFakeClock *self, gint64 instant_us)
{
  g_mutex_lock (&self->lock);
  self->now_us = MAX (self->now_us, instant_us);
  g_mutex_unlock (&self->lock);
}

void
muster_fake_clock_pass (MusterFakeClock *self, gint64 duration_us)
{
  gint64 until_us = now_us (self) + duration_us;
  Event event;
  while (take_event (self, until_us, &event))
    event.func (event.user_data);
  move_to (self, until_us);
}

static gboolean
wait_event (MusterFakeClock *self, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  Event event;
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (take_event (self, wake_us, &event))
    event.func (event.user_data);
  else if (wake_us == MUSTER_WAIT_FOREVER)
    g_error ("Somebody waits for ever on the fake clock, and nothing is going to happen");
  else
    move_to (self, wake_us);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

gboolean
muster_fake_clock_wait_event (MusterFakeClock *self, gint64 wake_us, GCancellable *cancellable,
                              GError **error)
{
  if (wake_us != MUSTER_WAIT_FOREVER)
    wake_us -= self->shift_us;
  return wait_event (self, wake_us, cancellable, error);
}

void
muster_fake_clock_hold (MusterFakeClock *self)
{
  g_mutex_lock (&self->lock);
  self->held = TRUE;
  g_mutex_unlock (&self->lock);
}

/* A waiter that was cancelled waits no more, though its thread may not have come to leave. */
static gboolean
is_waiting (const Waiter *waiter)
{
  return !g_cancellable_is_cancelled (waiter->cancellable);
}

static guint
n_waiters_locked (MusterFakeClock *self)
{
  guint n = 0;
  for (guint i = 0; i < self->waiters->len; i++)
    n += is_waiting (self->waiters->pdata[i]);
  return n;
}

void
muster_fake_clock_wait_for_waiters (MusterFakeClock *self, guint n)
{
  gint64 patience = g_get_monotonic_time () + REAL_PATIENCE_US;
  g_mutex_lock (&self->lock);
  while (n_waiters_locked (self) < n)
    if (!g_cond_wait_until (&self->changed, &self->lock, patience))
      g_error ("Only %u of %u threads wait on the fake clock", n_waiters_locked (self), n);
  g_mutex_unlock (&self->lock);
}

static gint64
next_instant_locked (MusterFakeClock *self)
{
  gint64 next_us = MUSTER_WAIT_FOREVER;
  if (self->events->len > 0)
    next_us = g_array_index (self->events, Event, 0).at_us;
  for (guint i = 0; i < self->waiters->len; i++) {
    const Waiter *waiter = self->waiters->pdata[i];
    if (is_waiting (waiter))
      next_us = MIN (next_us, waiter->wake_us);
  }
  return next_us;
}

void
muster_fake_clock_crank (MusterFakeClock *self)
{
  g_mutex_lock (&self->lock);
  gint64 next_us = next_instant_locked (self);
  g_mutex_unlock (&self->lock);
  if (next_us == MUSTER_WAIT_FOREVER)
    return;

  Event event;
  while (take_event (self, next_us, &event))
    event.func (event.user_data);

  g_mutex_lock (&self->lock);
  self->now_us = MAX (self->now_us, next_us);
  for (guint i = self->waiters->len; i-- > 0;) {
    Waiter *waiter = self->waiters->pdata[i];
    if (waiter->wake_us <= self->now_us) {
      waiter->released = TRUE;
      g_ptr_array_remove_index (self->waiters, i);
    }
  }
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gint64
muster_fake_clock_now_us (MusterClock *clock)
{
  return now_us (MUSTER_FAKE_CLOCK (clock));
}

/* Some day in 2023. */
static gint64
muster_fake_clock_wall_us (MusterClock *clock)
{
  MusterFakeClock *self = MUSTER_FAKE_CLOCK (clock);
  g_mutex_lock (&self->lock);
  const gint64 ahead_us = self->wall_ahead_us;
  g_mutex_unlock (&self->lock);
  return 1700000000 * MUSTER_SECOND + ahead_us + muster_fake_clock_elapsed_us (self);
}

static double
muster_fake_clock_random (MusterClock *clock)
{
  MusterFakeClock *self = MUSTER_FAKE_CLOCK (clock);
  g_mutex_lock (&self->lock);
  double chance = self->chance;
  g_mutex_unlock (&self->lock);
  return chance;
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data)
{
  MusterFakeClock *self = user_data;
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static gboolean
block_until_cranked (MusterFakeClock *self, gint64 wake_us, GCancellable *cancellable,
                     GError **error)
{
  Waiter waiter = {wake_us, cancellable, FALSE};
  gulong id = cancellable != NULL
                  ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), self, NULL)
                  : 0;
  g_mutex_lock (&self->lock);
  g_ptr_array_add (self->waiters, &waiter);
  g_cond_broadcast (&self->changed);
  while (!waiter.released && !g_cancellable_is_cancelled (cancellable))
    g_cond_wait (&self->changed, &self->lock);
  if (!waiter.released)
    g_ptr_array_remove (self->waiters, &waiter);
  g_mutex_unlock (&self->lock);

  g_cancellable_disconnect (cancellable, id);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static gboolean
muster_fake_clock_wait_until (MusterClock *clock, gint64 wake_us, GCancellable *cancellable,
                              GError **error)
{
  MusterFakeClock *self = MUSTER_FAKE_CLOCK (clock);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;

  g_mutex_lock (&self->lock);
  gboolean has_passed = wake_us <= self->now_us;
  gboolean held = self->held;
  if (!has_passed)
    self->n_waits++;
  g_mutex_unlock (&self->lock);

  if (has_passed)
    return TRUE;
  if (held)
    return block_until_cranked (self, wake_us, cancellable, error);
  while (now_us (self) < wake_us)
    if (!wait_event (self, wake_us, cancellable, error))
      return FALSE;
  return TRUE;
}

static void
muster_fake_clock_finalize (GObject *object)
{
  MusterFakeClock *self = MUSTER_FAKE_CLOCK (object);
  g_array_unref (self->events);
  g_ptr_array_unref (self->waiters);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_fake_clock_parent_class)->finalize (object);
}

static void
muster_fake_clock_class_init (MusterFakeClockClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_fake_clock_finalize;
}

static void
muster_fake_clock_init (MusterFakeClock *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->now_us = START_US;
  self->shift_us = muster_clock_now_us (MUSTER_CLOCK (self)) - START_US;
  self->chance = 0.5;
  self->events = g_array_new (FALSE, FALSE, sizeof (Event));
  self->waiters = g_ptr_array_new ();
}

static void
muster_fake_clock_clock_init (MusterClockInterface *iface)
{
  iface->now_us = muster_fake_clock_now_us;
  iface->wall_us = muster_fake_clock_wall_us;
  iface->wait_until = muster_fake_clock_wait_until;
  iface->random = muster_fake_clock_random;
}
