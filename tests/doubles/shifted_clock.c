// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/shifted_clock.h"

#define MUSTER_TYPE_SHIFTED_CLOCK (muster_shifted_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterShiftedClock, muster_shifted_clock, MUSTER, SHIFTED_CLOCK, GObject)

struct _MusterShiftedClock {
  GObject parent;
  gint64 shift_us;
};

static void muster_shifted_clock_clock_init (MusterClockInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterShiftedClock, muster_shifted_clock, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_CLOCK,
                                                      muster_shifted_clock_clock_init))

MusterClock *
muster_shifted_clock_new (gint64 first_us)
{
  MusterShiftedClock *self = g_object_new (MUSTER_TYPE_SHIFTED_CLOCK, NULL);
  self->shift_us = first_us - muster_clock_now_us (muster_system_clock ());
  return MUSTER_CLOCK (self);
}

static gint64
now_us (MusterClock *clock)
{
  return muster_clock_now_us (muster_system_clock ()) + MUSTER_SHIFTED_CLOCK (clock)->shift_us;
}

static gint64
wall_us (MusterClock *clock G_GNUC_UNUSED)
{
  return muster_clock_wall_us (muster_system_clock ());
}

static gboolean
wait_until (MusterClock *clock, gint64 wake_us, GCancellable *cancellable, GError **error)
{
  gint64 machines_us =
      wake_us == MUSTER_WAIT_FOREVER ? wake_us : wake_us - MUSTER_SHIFTED_CLOCK (clock)->shift_us;
  return muster_clock_wait_until (muster_system_clock (), machines_us, cancellable, error);
}

static double
draw (MusterClock *clock G_GNUC_UNUSED)
{
  return muster_clock_random (muster_system_clock ());
}

static void
muster_shifted_clock_class_init (MusterShiftedClockClass *klass G_GNUC_UNUSED)
{
}

static void
muster_shifted_clock_init (MusterShiftedClock *self G_GNUC_UNUSED)
{
}

static void
muster_shifted_clock_clock_init (MusterClockInterface *iface)
{
  iface->now_us = now_us;
  iface->wall_us = wall_us;
  iface->wait_until = wait_until;
  iface->random = draw;
}
