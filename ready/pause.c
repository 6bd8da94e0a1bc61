// SPDX-License-Identifier: Apache-2.0
#include "ready/pause_private.h"

#define MIN_US         (80 * MUSTER_MILLISECOND)
#define PART_OF_OUTAGE 0.018
#define JITTER         0.25

/* The interval before the next probe of the master. */
static gint64
interval_us (const MusterPause *self, gint64 now_us)
{
  return MAX (MIN_US, (gint64)((double)(now_us - self->down_since_us) * PART_OF_OUTAGE));
}

gboolean
muster_pause (MusterPause *self, MusterMaster *master, MusterClock *clock,
              GCancellable *cancellable, GError **error)
{
  const gint64 longest_us = MAX (self->wake_us, self->longest_us);
  gint64 now_us = muster_clock_now_us (clock);
  gint64 end_us = self->wake_us;
  double share = muster_clock_random (
      clock); /* clients that lost it at the same time are spread by the first probe */

  if (!muster_master_can_reach (master))
    return muster_clock_wait_until (clock, self->wake_us, cancellable, error);
  while (now_us < end_us) {
    gint64 try_us = now_us + (gint64)((double)interval_us (self, now_us) * share);
    if (!muster_clock_wait_until (clock, MIN (try_us, end_us), cancellable, error))
      return FALSE;
    now_us = muster_clock_now_us (clock);
    if (now_us >= longest_us)
      return TRUE;
    MusterServerState state = muster_master_reach (master, longest_us, cancellable);
    if (state != MUSTER_SERVER_DOWN)
      self->down_since_us = now_us;
    if (state == MUSTER_SERVER_CHANGED)
      return TRUE;
    end_us = state == MUSTER_SERVER_DOWN ? longest_us : self->wake_us;
    share = 1 - JITTER * muster_clock_random (clock);
    now_us = muster_clock_now_us (clock);
  }
  return !g_cancellable_set_error_if_cancelled (cancellable, error);
}
