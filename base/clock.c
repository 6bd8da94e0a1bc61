// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/require_private.h"

G_DEFINE_INTERFACE (MusterClock, muster_clock, G_TYPE_OBJECT)

static void
muster_clock_default_init (MusterClockInterface *iface G_GNUC_UNUSED)
{
}

/* The clock that has a function of this one: a class in another language may lack any. */
#define WITH(self, function)                                                                       \
  (MUSTER_CLOCK_GET_IFACE (self)->function != NULL ? (self) : muster_system_clock ())

static gint64
own_now_us (MusterClock *self)
{
  MusterClock *clock = WITH (self, now_us);
  return MUSTER_CLOCK_GET_IFACE (clock)->now_us (clock);
}

/* A clock may count from anywhere. Its first instant is taken as the machine's instant of that
 * moment; from then on its instants are converted to the machine's scale. Only this function does
 * so, so that an instant means the same everywhere. */
static gint64
shift_us (MusterClock *self)
{
  static GMutex lock;
  if (self == muster_system_clock ())
    return 0;
  /* A clock may use another one, so it isn't called under the lock. */
  GQuark quark = g_quark_from_static_string ("muster-clock-shift");
  gint64 *shift_us = g_object_get_qdata (G_OBJECT (self), quark);
  if (shift_us != NULL)
    return *shift_us;
  gint64 offset_us = muster_clock_now_us (muster_system_clock ()) - own_now_us (self);
  g_mutex_lock (&lock);
  shift_us = g_object_get_qdata (G_OBJECT (self), quark);
  if (shift_us == NULL) {
    shift_us = g_memdup2 (&offset_us, sizeof offset_us);
    g_object_set_qdata_full (G_OBJECT (self), quark, shift_us, g_free);
  }
  g_mutex_unlock (&lock);
  return *shift_us;
}

gint64
muster_clock_now_us (MusterClock *self)
{
  g_return_val_if_fail (MUSTER_IS_CLOCK (self), 0);
  const gint64 shift = shift_us (self); /* computed first, so that it is never later than now */
  return own_now_us (self) + shift;
}

gint64
muster_clock_wall_us (MusterClock *self)
{
  g_return_val_if_fail (MUSTER_IS_CLOCK (self), 0);
  MusterClock *clock = WITH (self, wall_us);
  return MUSTER_CLOCK_GET_IFACE (clock)->wall_us (clock);
}

gboolean
muster_clock_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, self);
  MusterClock *clock = WITH (self, wait_until);
  gint64 own_us;
  if (wake_us == MUSTER_WAIT_FOREVER || __builtin_sub_overflow (wake_us, shift_us (clock), &own_us))
    own_us = wake_us;
  return muster_require_error (
      error, MUSTER_CLOCK_GET_IFACE (clock)->wait_until (clock, own_us, cancellable, error),
      G_OBJECT_TYPE_NAME (clock), "wait_until");
}

double
muster_clock_random (MusterClock *self)
{
  g_return_val_if_fail (MUSTER_IS_CLOCK (self), 0);
  MusterClock *clock = WITH (self, random);
  return MUSTER_CLOCK_GET_IFACE (clock)->random (clock);
}

/* Half of what muster_deadline_check () allows, since another clock may be ahead. */
#define LONGEST_TIMEOUT_US (5 * 365 * 24 * 3600 * MUSTER_SECOND)

gint64
muster_deadline_after (gint64 now_us, gint64 timeout_us)
{
  gint64 deadline_us;
  if (now_us == MUSTER_WAIT_FOREVER || timeout_us > LONGEST_TIMEOUT_US ||
      __builtin_add_overflow (now_us, MAX (timeout_us, 0), &deadline_us))
    return MUSTER_WAIT_FOREVER;
  return deadline_us;
}

gint64
muster_deadline_remaining (gint64 deadline_us, gint64 now_us)
{
  gint64 remaining_us;
  if (deadline_us == MUSTER_WAIT_FOREVER)
    return MUSTER_WAIT_FOREVER;
  if (deadline_us <= now_us)
    return 0;
  if (__builtin_sub_overflow (deadline_us, now_us, &remaining_us))
    return MUSTER_WAIT_FOREVER;
  return remaining_us;
}

/* Every unit is truncated, not rounded, so that "60.0 s" and "1000 ms" don't occur. */
char *
muster_format_duration (gint64 duration_us)
{
  const gint64 us = MAX (duration_us, 0);
  const gint64 seconds = us / MUSTER_SECOND;
  if (us == MUSTER_WAIT_FOREVER)
    return g_strdup ("forever");
  if (us < MUSTER_MILLISECOND / 10)
    return g_strdup_printf ("%d µs", (int)us);
  if (us < MUSTER_MILLISECOND)
    return g_strdup_printf ("0.%d ms", (int)(us / 100));
  if (us < MUSTER_SECOND)
    return g_strdup_printf ("%d ms", (int)(us / MUSTER_MILLISECOND));
  if (seconds < 60)
    return g_strdup_printf ("%d.%d s", (int)seconds, (int)(us % MUSTER_SECOND / 100000));
  if (seconds < 3600)
    return g_strdup_printf ("%dm%02ds", (int)(seconds / 60), (int)(seconds % 60));
  return g_strdup_printf ("%" G_GINT64_FORMAT "h%02dm", seconds / 3600, (int)(seconds / 60 % 60));
}

char *
muster_format_size (guint64 bytes)
{
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  guint unit = 0;
  guint64 scale = 1;
  while (unit + 1 < G_N_ELEMENTS (units) && bytes / scale >= 1000) {
    scale *= 1000;
    unit++;
  }
  const guint64 whole = bytes / scale;
  if (unit == 0 || whole >= 10)
    return g_strdup_printf ("%d %s", (int)whole, units[unit]);
  return g_strdup_printf ("%d.%d %s", (int)whole, (int)(bytes % scale / (scale / 10)), units[unit]);
}
