// SPDX-License-Identifier: Apache-2.0
#include "ready/countdown.h"

#define LEAST_PAUSE_US   (10 * MUSTER_MILLISECOND)
#define PAUSES_PER_LOOK  20  /* a waiter spends at most a twentieth of its time looking */
#define WAITED_PER_PAUSE 100 /* at most a hundredth of the wait is lost after it is over */
/* How far a look that has become dearer lengthens the pause: one slow look shouldn't blind it. */
#define MOST_CROWDING 8
#define NOISE_US      MUSTER_MILLISECOND /* looks that are cheaper than this differ by chance */
/* A look that fails for everybody at once is not repeated by everybody at once. */
#define JITTER 0.25

void
muster_countdown_start (MusterCountdown *self, gint64 now_us, gint64 deadline_us, gint64 ceiling_us)
{
  *self =
      (MusterCountdown){.started_us = now_us, .deadline_us = deadline_us, .ceiling_us = ceiling_us};
}

void
muster_countdown_looked (MusterCountdown *self, gint64 cost_us)
{
  self->last_cost_us = MAX (cost_us, 0);
  if (self->looks == 0 || self->last_cost_us < self->least_cost_us)
    self->least_cost_us = self->last_cost_us;
  self->looks++;
}

static gint64
pause_us (const MusterCountdown *self, gint64 now_us, double chance)
{
  double cost = (double)self->last_cost_us;
  double crowding = cost / (double)MAX (self->least_cost_us, NOISE_US);
  double pause = MAX (LEAST_PAUSE_US, (double)(now_us - self->started_us) / WAITED_PER_PAUSE);

  pause = MAX (pause, cost * PAUSES_PER_LOOK * CLAMP (crowding, 1, MOST_CROWDING));
  pause = MIN (pause, (double)self->ceiling_us) * (1 - JITTER * chance);

  return MAX ((gint64)pause, 1);
}

/* The last instant at which a look may start and still end by the deadline: a quarter of its cost
 * is left for one that takes a little longer. */
static gint64
last_start_us (const MusterCountdown *self)
{
  if (self->deadline_us == MUSTER_WAIT_FOREVER)
    return MUSTER_WAIT_FOREVER;

  return self->deadline_us - self->last_cost_us - self->last_cost_us / 4;
}

gint64
muster_countdown_next_us (const MusterCountdown *self, gint64 now_us, double chance)
{
  gint64 last_us = last_start_us (self);

  if (self->looks == 0)
    return now_us <= self->deadline_us ? now_us : 0;
  if (last_us <= now_us)
    return 0;

  return MIN (muster_deadline_after (now_us, pause_us (self, now_us, chance)), last_us);
}
