// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/countdown_private.h"
#include "ready/rate_limiter_private.h"

G_BEGIN_DECLS

/* MusterPollPlan decides when to poll a master that doesn't report changes: at the intervals of
 * MusterCountdown, at least once a second, while clients wait; every ten seconds once the result is
 * settled (ready, or the job is over); and soon after a suspected change, as MusterRateLimiter
 * allows. It doesn't wait and reads no clock. A plain struct. */

typedef struct {
  gint64 polled_us; /* when the last poll began, … */
  gint64 poll_us;   /* … and when the next is due, if no change is suspected before */
  MusterCountdown countdown;
  MusterRateLimiter limiter;
  gboolean was_suspected; /* a possible change caused the last poll */
  gboolean is_settled;    /* no client waits for another result */
} MusterPollPlan;

void muster_poll_plan_init (MusterPollPlan *self, gint64 now_us);

/* Notes a possible change. FALSE if no client waits for it. */
gboolean muster_poll_plan_suspect (MusterPollPlan *self, gint64 now_us);

/* When the next poll is due. */
gint64 muster_poll_plan_due_us (const MusterPollPlan *self);
/* TRUE if the last result is too old for a new client. */
gboolean muster_poll_plan_is_old (const MusterPollPlan *self, gint64 now_us);

void muster_poll_plan_begin (MusterPollPlan *self, gint64 now_us);
void muster_poll_plan_end (MusterPollPlan *self, gint64 now_us);

/* Plans the next poll, after one (has_polled) or when is_settled changes. chance in [0, 1) is the
 * jitter. */
void muster_poll_plan_next (MusterPollPlan *self, gint64 now_us, gboolean is_settled,
                            gboolean has_polled, double chance);

G_END_DECLS
