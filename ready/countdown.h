// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterCountdown decides when to look again while waiting; it does no waiting and reads no clock.
 * A plain struct.
 *
 * The interval is max (10 ms, 10 % of the time waited so far but at most 200 ms, 1 % of it, 20
 * times what a look costs), with jitter, never above ceiling_us (recovery_wait_secs). What a look
 * costs is the cheapest of the last three: a master that is busy for a moment, perhaps with the
 * very init that is waited for, makes one look dear. The first looks count less, since in them the
 * master lays out the step, and for all who come together at once: after the first the pause is
 * what it cost, then twice that, and so on up to 20 times. The interval grows when the cost rises
 * above its own minimum: then others are looking too. The last look starts early enough to end by
 * the deadline. */

#define MUSTER_COUNTDOWN_MEMORY 3

typedef struct {
  gint64 started_us;
  gint64 deadline_us;
  gint64 ceiling_us;
  gint64 least_cost_us;                     /* the cheapest look so far; 0 before the first */
  gint64 costs_us[MUSTER_COUNTDOWN_MEMORY]; /* of the last looks, the latest first */
  guint polls;
} MusterCountdown;

void muster_countdown_start (MusterCountdown *self, gint64 now_us, gint64 deadline_us,
                             gint64 ceiling_us);

/* Tells it of a look that took cost_us. */
void muster_countdown_polled (MusterCountdown *self, gint64 cost_us);

/* When to look next: an instant from now_us on (chance in [0, 1) is the jitter), or 0 if no further
 * look can end by the deadline: give up. */
gint64 muster_countdown_next_us (const MusterCountdown *self, gint64 now_us, double chance);

G_END_DECLS
