// SPDX-License-Identifier: Apache-2.0
#include "server/core/alarm.h"

struct _MusterAlarm {
  MusterClock *clock; /* (owned) */
  const char *name;   /* static */
  MusterAlarmFunc func;
  gpointer data;

  GMutex lock; /* no other lock is taken while it is held */
  /* guarded by lock */
  GThread *thread;    /* (owned) (nullable) */
  gint64 sleeps_till; /* MUSTER_WAIT_FOREVER also while func is called */
  GCancellable *nap;  /* (owned) (nullable) ends the sleep */
  gboolean is_over;
};

MusterAlarm *
muster_alarm_new (MusterClock *clock, const char *name, MusterAlarmFunc func, gpointer data)
{
  MusterAlarm *self = g_new0 (MusterAlarm, 1);
  self->clock = g_object_ref (clock);
  self->name = name;
  self->func = func;
  self->data = data;
  g_mutex_init (&self->lock);
  return self;
}

void
muster_alarm_free (MusterAlarm *self)
{
  if (self == NULL)
    return;
  muster_alarm_stop (self);
  g_mutex_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

/* Returns the cancellable of the next sleep (transfer full), or NULL after the stop. It is
 * created before the call, so that an instant which is set during the call ends the sleep. */
static GCancellable *
begin_round (MusterAlarm *self)
{
  g_autoptr (GCancellable) before = NULL;
  g_mutex_lock (&self->lock);
  before = g_steal_pointer (&self->nap);
  if (!self->is_over)
    self->nap = g_cancellable_new ();
  self->sleeps_till = MUSTER_WAIT_FOREVER;
  GCancellable *nap = self->nap != NULL ? g_object_ref (self->nap) : NULL;
  g_mutex_unlock (&self->lock);
  return nap;
}

static gpointer
work (gpointer data)
{
  MusterAlarm *self = data;
  for (;;) {
    g_autoptr (GCancellable) nap = begin_round (self);
    if (nap == NULL)
      return NULL;
    const gint64 next_us = self->func (self->data);
    g_mutex_lock (&self->lock);
    self->sleeps_till = next_us;
    g_mutex_unlock (&self->lock);
    /* The next round follows, however the sleep ended. */
    (void)muster_clock_wait_until (self->clock, next_us, nap, NULL);
  }
}

void
muster_alarm_set (MusterAlarm *self, gint64 due_us)
{
  g_autoptr (GCancellable) nap = NULL;
  g_mutex_lock (&self->lock);
  if (self->thread == NULL && !self->is_over)
    self->thread = g_thread_new (self->name, work, self);
  else if (due_us < self->sleeps_till && self->nap != NULL)
    nap = g_object_ref (self->nap);
  g_mutex_unlock (&self->lock);
  if (nap != NULL)
    g_cancellable_cancel (nap);
}

void
muster_alarm_stop (MusterAlarm *self)
{
  g_mutex_lock (&self->lock);
  self->is_over = TRUE;
  GThread *thread = g_steal_pointer (&self->thread);
  g_autoptr (GCancellable) nap = g_steal_pointer (&self->nap);
  g_mutex_unlock (&self->lock);
  if (nap != NULL)
    g_cancellable_cancel (nap);
  if (thread != NULL)
    g_thread_join (thread);
}
