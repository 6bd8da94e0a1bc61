// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/error.h"

/* The one place that reads the machine's clock and sleeps. */

#define MUSTER_TYPE_SYSTEM_CLOCK (muster_system_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterSystemClock, muster_system_clock, MUSTER, SYSTEM_CLOCK, GObject)

struct _MusterSystemClock {
  GObject parent;
};

static void muster_system_clock_iface_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterSystemClock, muster_system_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK,
                                                      muster_system_clock_iface_init))

MusterClock *
muster_system_clock (void)
{
  static MusterClock *clock;
  if (g_once_init_enter (&clock))
    g_once_init_leave (&clock, g_object_new (MUSTER_TYPE_SYSTEM_CLOCK, NULL));
  return clock;
}

static gint64
system_now_us (MusterClock *self G_GNUC_UNUSED)
{
  return g_get_monotonic_time ();
}

static gint64 began_us;

__attribute__ ((constructor)) static void
note_beginning (void)
{
  began_us = g_get_monotonic_time ();
}

gboolean
muster_deadline_check (gint64 deadline_us, GError **error)
{
  if (deadline_us == 0 || deadline_us >= began_us)
    return TRUE;
  g_autofree char *duration = muster_format_duration (deadline_us);
  g_autofree char *looks_like =
      deadline_us < 0 ? g_strdup ("below 0") : g_strdup_printf ("a duration of %s", duration);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid deadline_us '%" G_GINT64_FORMAT "': it is %s, not an instant (use "
                      "muster_deadline_after () or MUSTER_WAIT_FOREVER)",
                      deadline_us, looks_like);
}

static gint64
system_wall_us (MusterClock *self G_GNUC_UNUSED)
{
  return g_get_real_time ();
}

static double
system_random (MusterClock *self G_GNUC_UNUSED)
{
  return g_random_double ();
}

/* One waiting thread, and the signal that ends its wait. */
typedef struct {
  GMutex lock;
  GCond woken;
  gboolean is_cancelled; /* guarded by lock */
} Wait;

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Wait *wait = data;
  g_mutex_lock (&wait->lock);
  wait->is_cancelled = TRUE;
  g_cond_signal (&wait->woken);
  g_mutex_unlock (&wait->lock);
}

static void
wait_for_it (Wait *wait, gint64 wake_us)
{
  gboolean in_time = TRUE;
  g_mutex_lock (&wait->lock);
  while (!wait->is_cancelled && in_time) {
    if (wake_us == MUSTER_WAIT_FOREVER)
      g_cond_wait (&wait->woken, &wait->lock);
    else
      in_time = g_cond_wait_until (&wait->woken, &wait->lock, wake_us);
  }
  g_mutex_unlock (&wait->lock);
}

static gboolean
system_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (wake_us <= system_now_us (self))
    return TRUE;
  Wait wait = {.is_cancelled = FALSE};
  g_mutex_init (&wait.lock);
  g_cond_init (&wait.woken);
  gulong handler = 0;
  if (cancellable != NULL)
    handler = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), &wait, NULL);
  wait_for_it (&wait, wake_us);
  /* Returns only after a handler that is running has left wait. */
  g_cancellable_disconnect (cancellable, handler);
  g_cond_clear (&wait.woken);
  g_mutex_clear (&wait.lock);
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}

static void
muster_system_clock_iface_init (MusterClockInterface *iface)
{
  iface->now_us = system_now_us;
  iface->wall_us = system_wall_us;
  iface->wait_until = system_wait_until;
  iface->random = system_random;
}

static void
muster_system_clock_class_init (MusterSystemClockClass *klass G_GNUC_UNUSED)
{
}

static void
muster_system_clock_init (MusterSystemClock *self G_GNUC_UNUSED)
{
}
