// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterCountdown decides when to poll next during a wait. It doesn't wait and reads no clock. A
 * plain struct.
 *
 * The interval is max (10 ms, 10 % of the time waited so far but at most 200 ms, 1 % of it, 20
 * times the cost of a poll), with jitter, at most ceiling_us (recovery_wait_secs). The cost of a
 * poll is the lowest of the last three, since a master that is busy for a moment, perhaps with the
 * awaited init, makes one poll slow. The first polls count less, since the master then plans the
 * step, for all clients that started together: after the first the pause is its cost, then twice
 * the cost, up to 20 times. The interval grows when the cost rises above its minimum, as other
 * clients then poll too. The last poll starts early enough to end by the deadline. */

#define MUSTER_COUNTDOWN_MEMORY 3

typedef struct {
  gint64 started_us;
  gint64 deadline_us;
  gint64 ceiling_us;
  gint64 least_cost_us;                     /* the cheapest poll so far; 0 before the first */
  gint64 costs_us[MUSTER_COUNTDOWN_MEMORY]; /* of the last polls, latest first */
  guint polls;
} MusterCountdown;

void muster_countdown_start (MusterCountdown *self, gint64 now_us, gint64 deadline_us,
                             gint64 ceiling_us);

/* Records a poll that took cost_us. */
void muster_countdown_polled (MusterCountdown *self, gint64 cost_us);

/* The instant of the next poll, at now_us or later (chance in [0, 1) is the jitter), or 0 if no
 * poll can end by the deadline. */
gint64 muster_countdown_next_us (const MusterCountdown *self, gint64 now_us, double chance);

G_END_DECLS
