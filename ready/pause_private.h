// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* A pause before a retry at a master. It ends when its time is over. It ends at once if the master
 * was down and is up again, or is down for another reason (muster_master_reach ()).
 *
 * A master that is down is probed every max (80 ms, 1.8 % of the outage), less up to a quarter at
 * random. So a waiting client continues within max (100 ms, 2 % of the outage), and a thousand
 * clients that lost it at the same instant are spread out. While it is down a call would fail, so
 * the pause continues beyond its time, until longest_us at most. */
typedef struct {
  gint64 down_since_us; /* since when the master has been down, if known; updated when it is up or
                           down for another reason */
  gint64 wake_us;
  gint64 longest_us; /* wake_us or later; 0: wake_us */
} MusterPause;

/* FALSE with G_IO_ERROR_CANCELLED. */
gboolean muster_pause (MusterPause *self, MusterMaster *master, MusterClock *clock,
                       GCancellable *cancellable, GError **error);

G_END_DECLS
