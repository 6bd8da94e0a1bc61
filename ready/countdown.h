// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterCountdown decides when to look again while waiting; it does no waiting and reads no clock.
 * A plain struct.
 *
 * The interval is max (10 ms, 20 times what a look costs, 1 % of the time waited so far), with
 * jitter, never above ceiling_us (recovery_wait_secs) (decision 7). It grows when the cost rises
 * above its own minimum: then others are looking too. The last look starts early enough to end by
 * the deadline. */

typedef struct {
  gint64 started_us;
  gint64 deadline_us;
  gint64 ceiling_us;
  gint64 least_cost_us; /* the cheapest look so far; 0 before the first */
  gint64 last_cost_us;
  guint looks;
} MusterCountdown;

void muster_countdown_start (MusterCountdown *self, gint64 now_us, gint64 deadline_us,
                             gint64 ceiling_us);

/* Tells it of a look that took cost_us. */
void muster_countdown_looked (MusterCountdown *self, gint64 cost_us);

/* When to look next: an instant from now_us on (chance in [0, 1) is the jitter), or 0 if no further
 * look can end by the deadline: give up. */
gint64 muster_countdown_next_us (const MusterCountdown *self, gint64 now_us, double chance);

G_END_DECLS
