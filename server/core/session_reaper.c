// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_reaper.h"

#include "server/core/alarm.h"

/* Leases that expire within this time of each other are collected together. */
#define AT_ONCE (100 * MUSTER_MILLISECOND)

struct _MusterSessionReaper {
  MusterSessions *sessions; /* (not owned) */
  MusterClock *clock;       /* (owned) */
  MusterExpired expired;
  gpointer user_data;
  guint64 n_expired;  /* atomic */
  MusterAlarm *alarm; /* (owned) collects when the first lease expires */
};

/* Collects the expired sessions; returns the instant of the next collection. */
static gint64
collect (gpointer data)
{
  MusterSessionReaper *self = data;
  g_autoptr (GPtrArray) expired =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_served_unref);
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 next_us = muster_sessions_take_expired (self->sessions, now_us, expired);
  __atomic_fetch_add (&self->n_expired, expired->len, __ATOMIC_RELAXED);
  if (expired->len > 0)
    self->expired (expired, self->user_data);
  return MAX (next_us, muster_deadline_after (now_us, AT_ONCE));
}

MusterSessionReaper *
muster_session_reaper_new (MusterSessions *sessions, MusterClock *clock, MusterExpired expired,
                           gpointer user_data)
{
  MusterSessionReaper *self = g_new0 (MusterSessionReaper, 1);
  self->sessions = sessions;
  self->clock = g_object_ref (clock);
  self->expired = expired;
  self->user_data = user_data;
  self->alarm = muster_alarm_new (clock, "muster-collector", collect, self);
  return self;
}

void
muster_session_reaper_free (MusterSessionReaper *self)
{
  if (self == NULL)
    return;
  muster_alarm_free (self->alarm);
  g_object_unref (self->clock);
  g_free (self);
}

void
muster_session_reaper_watch (MusterSessionReaper *self, gint64 lease_us)
{
  muster_alarm_set (self->alarm,
                    muster_deadline_after (muster_clock_now_us (self->clock), lease_us));
}

void
muster_session_reaper_stop (MusterSessionReaper *self)
{
  muster_alarm_stop (self->alarm);
}

guint64
muster_session_reaper_n_expired (MusterSessionReaper *self)
{
  return __atomic_load_n (&self->n_expired, __ATOMIC_RELAXED);
}
