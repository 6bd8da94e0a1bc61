// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_reaper.h"

/* Leases that expire within this time of each other are collected together. */
#define AT_ONCE (100 * MUSTER_MILLISECOND)

struct _MusterSessionReaper {
  MusterSessions *sessions; /* (not owned) */
  MusterClock *clock;       /* (owned) */
  MusterExpired expired;
  gpointer user_data;
  guint64 n_expired; /* atomic */

  GMutex lock;
  GThread *thread;    /* (owned) (nullable) guarded by lock */
  gint64 sleeps_till; /* guarded by lock */
  GCancellable *nap;  /* (owned) (nullable) cancels the sleep; guarded by lock */
  gboolean is_over;   /* guarded by lock */
};

MusterSessionReaper *
muster_session_reaper_new (MusterSessions *sessions, MusterClock *clock, MusterExpired expired,
                           gpointer user_data)
{
  MusterSessionReaper *self = g_new0 (MusterSessionReaper, 1);
  self->sessions = sessions;
  self->clock = g_object_ref (clock);
  self->expired = expired;
  self->user_data = user_data;
  g_mutex_init (&self->lock);
  return self;
}

void
muster_session_reaper_free (MusterSessionReaper *self)
{
  if (self == NULL)
    return;
  muster_session_reaper_stop (self);
  g_mutex_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

/* Collects the expired sessions; returns the instant of the next collection. */
static gint64
collect (MusterSessionReaper *self)
{
  g_autoptr (GPtrArray) expired =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_served_unref);
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = muster_sessions_take_expired (self->sessions, now_us, expired);
  __atomic_fetch_add (&self->n_expired, expired->len, __ATOMIC_RELAXED);
  if (expired->len > 0)
    self->expired (expired, self->user_data);
  return MAX (next_us, muster_deadline_after (now_us, AT_ONCE));
}

/* Returns the cancellable of the next sleep (transfer full), or NULL after the stop. It is created
 * before the collection, so that a session added during it ends the sleep early. */
static GCancellable *
begin_round (MusterSessionReaper *self)
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
  MusterSessionReaper *self = data;
  for (;;) {
    g_autoptr (GCancellable) nap = begin_round (self);
    if (nap == NULL)
      return NULL;
    gint64 next_us = collect (self);
    g_mutex_lock (&self->lock);
    self->sleeps_till = next_us;
    g_mutex_unlock (&self->lock);
    /* The next collection follows however the sleep ended. */
    (void)muster_clock_wait_until (self->clock, next_us, nap, NULL);
  }
}

void
muster_session_reaper_watch (MusterSessionReaper *self, gint64 lease_us)
{
  gint64 first_us = muster_deadline_after (muster_clock_now_us (self->clock), lease_us);
  g_autoptr (GCancellable) nap = NULL;
  g_mutex_lock (&self->lock);
  if (self->thread == NULL && !self->is_over)
    self->thread = g_thread_new ("muster-collector", work, self);
  else if (first_us < self->sleeps_till && self->nap != NULL)
    nap = g_object_ref (self->nap);
  g_mutex_unlock (&self->lock);
  if (nap != NULL)
    g_cancellable_cancel (nap);
}

void
muster_session_reaper_stop (MusterSessionReaper *self)
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

guint64
muster_session_reaper_n_expired (MusterSessionReaper *self)
{
  return __atomic_load_n (&self->n_expired, __ATOMIC_RELAXED);
}
