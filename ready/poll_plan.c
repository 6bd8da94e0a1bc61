// SPDX-License-Identifier: Apache-2.0
#include "ready/poll_plan_private.h"

/* When all clients know that the model is ready: only the opposite would be a change. */
#define SETTLED_US (10 * MUSTER_SECOND)
/* While clients wait: one poller for all may poll more often than each of them would. */
#define MAX_INTERVAL_US MUSTER_SECOND

static void
start_countdown (MusterPollPlan *self, gint64 now_us)
{
  muster_countdown_start (&self->countdown, now_us, MUSTER_WAIT_FOREVER, MAX_INTERVAL_US);
}

void
muster_poll_plan_init (MusterPollPlan *self, gint64 now_us)
{
  *self = (MusterPollPlan){0};
  start_countdown (self, now_us);
  muster_rate_limiter_init (&self->limiter);
}

gboolean
muster_poll_plan_suspect (MusterPollPlan *self, gint64 now_us)
{
  if (self->is_settled)
    return FALSE;
  muster_rate_limiter_note_change (&self->limiter, now_us);
  return TRUE;
}

gint64
muster_poll_plan_due_us (const MusterPollPlan *self)
{
  return MIN (self->poll_us, self->limiter.due_us);
}

gboolean
muster_poll_plan_is_old (const MusterPollPlan *self, gint64 now_us)
{
  return now_us - self->polled_us > MAX_INTERVAL_US;
}

void
muster_poll_plan_begin (MusterPollPlan *self, gint64 now_us)
{
  self->polled_us = now_us;
  self->was_suspected = muster_rate_limiter_begin_poll (&self->limiter, now_us);
}

void
muster_poll_plan_end (MusterPollPlan *self, gint64 now_us)
{
  gint64 cost_us = now_us - self->polled_us;
  muster_countdown_polled (&self->countdown, cost_us);
  if (self->was_suspected)
    muster_rate_limiter_end_poll (&self->limiter, now_us, cost_us);
}

void
muster_poll_plan_next (MusterPollPlan *self, gint64 now_us, gboolean is_settled,
                       gboolean has_polled, double chance)
{
  gboolean has_changed = is_settled != self->is_settled;
  self->is_settled = is_settled;
  if (!has_polled && !has_changed)
    return;
  if (has_changed) { /* later changes start again */
    gint64 cost_us = self->countdown.costs_us[0];
    start_countdown (self, now_us);
    muster_countdown_polled (&self->countdown, cost_us);
  }
  self->poll_us = is_settled ? muster_deadline_after (now_us, SETTLED_US)
                             : muster_countdown_next_us (&self->countdown, now_us, chance);
}
