// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/countdown.h"
#include "ready/rate_limiter.h"

G_BEGIN_DECLS

/* MusterPollPlan decides when one question is asked again at a master that can't tell of changes:
 * as MusterCountdown says while somebody waits, at least once a second; every ten seconds once the
 * answer is settled (ready, or the job is over); and soon where a change is suspected, as
 * MusterRateLimiter says. It does no waiting and reads no clock. A plain struct. */

typedef struct {
  gint64 polled_us; /* when the last poll began, … */
  gint64 poll_us;   /* … and when the next is due, if no change is suspected before */
  MusterCountdown countdown;
  MusterRateLimiter limiter;
  gboolean was_suspected; /* the last poll was due to that */
  gboolean is_settled;    /* nobody waits for the answer to change */
} MusterPollPlan;

void muster_poll_plan_init (MusterPollPlan *self, gint64 now_us);

/* Something may have changed. FALSE where nobody waits for it. */
gboolean muster_poll_plan_suspect (MusterPollPlan *self, gint64 now_us);

/* When the next poll is due. */
gint64 muster_poll_plan_due_us (const MusterPollPlan *self);
/* TRUE if the answer is so old that nobody who comes in should hear it. */
gboolean muster_poll_plan_is_old (const MusterPollPlan *self, gint64 now_us);

void muster_poll_plan_begin (MusterPollPlan *self, gint64 now_us);
void muster_poll_plan_end (MusterPollPlan *self, gint64 now_us);

/* Plans the next poll: after one (has_polled), or when the answer begins or ends to be settled;
 * chance in [0, 1) is the jitter. */
void muster_poll_plan_next (MusterPollPlan *self, gint64 now_us, gboolean is_settled,
                            gboolean has_polled, double chance);

G_END_DECLS
