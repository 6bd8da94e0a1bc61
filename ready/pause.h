// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* A pause before something is tried again at a master. It ends when its time is over, and at once
 * where the master was down and is up again, or is down for another reason (muster_master_reach).
 *
 * A master that is down is tried every max (80 ms, 1.8 % of the time that it has been down), less a
 * quarter at most by chance, so that whoever waits for it begins within max (100 ms, 2 % of that
 * time), and a thousand who lost it at the same instant don't come at the same instant. A call
 * would only fail meanwhile: the pause goes on beyond its time, to longest_us at most. */
typedef struct {
  gint64 down_since_us; /* since when the master has been down, as far as is known; moves on where
                           it is found up, or down for another reason */
  gint64 wake_us;
  gint64 longest_us; /* wake_us or later; 0: wake_us */
} MusterPause;

/* FALSE: G_IO_ERROR_CANCELLED. */
gboolean muster_pause (MusterPause *self, MusterMaster *master, MusterClock *clock,
                       GCancellable *cancellable, GError **error);

G_END_DECLS
