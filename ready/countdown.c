// SPDX-License-Identifier: Apache-2.0
#include "ready/countdown_private.h"

#include <string.h>

#define MIN_PAUSE_US (10 * MUSTER_MILLISECOND)
/* A waiter spends at most a twentieth of its time polling. */
#define PAUSES_PER_POLL 20
/* At most a hundredth of the wait is lost after the model is ready. */
#define WAITED_PER_PAUSE 100
/* Other waiters that poll as often don't show in a poll's cost before they are a burden. So after a
 * while a waiter polls only five times a second, and 64 of them leave the server enough time. */
#define EARLY_WAITED_PER_PAUSE 10
#define STEADY_PAUSE_US        (200 * MUSTER_MILLISECOND)
/* Maximum factor by which a higher cost lengthens the pause. */
#define MAX_CROWDING 2
#define NOISE_US     MUSTER_MILLISECOND /* costs below this vary randomly */
/* A poll that fails for all clients at once isn't repeated by all at once. */
#define JITTER 0.25

void
muster_countdown_start (MusterCountdown *self, gint64 now_us, gint64 deadline_us, gint64 ceiling_us)
{
  g_return_if_fail (self != NULL);
  *self =
      (MusterCountdown){.started_us = now_us, .deadline_us = deadline_us, .ceiling_us = ceiling_us};
}

void
muster_countdown_polled (MusterCountdown *self, gint64 cost_us)
{
  g_return_if_fail (self != NULL);
  cost_us = MAX (cost_us, 0);
  memmove (&self->costs_us[1], &self->costs_us[0], sizeof self->costs_us - sizeof cost_us);
  self->costs_us[0] = cost_us;
  if (self->polls == 0 || cost_us < self->least_cost_us)
    self->least_cost_us = cost_us;
  self->polls++;
}

/* The current cost of a poll. */
static double
present_cost_us (const MusterCountdown *self)
{
  gint64 cost_us = self->costs_us[0];
  for (guint i = 1; i < MIN (self->polls, MUSTER_COUNTDOWN_MEMORY); i++)
    cost_us = MIN (cost_us, self->costs_us[i]);
  return (double)cost_us;
}

/* The minimum pause for the time waited so far. */
static gint64
least_pause_us (gint64 waited_us)
{
  gint64 early_us = MIN (waited_us / EARLY_WAITED_PER_PAUSE, STEADY_PAUSE_US);
  return MAX (MAX (MIN_PAUSE_US, early_us), waited_us / WAITED_PER_PAUSE);
}

static gint64
pause_us (const MusterCountdown *self, gint64 now_us, double chance)
{
  double cost = present_cost_us (self);
  double crowding = cost / (double)MAX (self->least_cost_us, NOISE_US);
  int per_poll = MIN (1 << MIN (self->polls - 1, 10), PAUSES_PER_POLL);
  double pause = (double)least_pause_us (now_us - self->started_us);
  pause = MAX (pause, cost * per_poll * CLAMP (crowding, 1, MAX_CROWDING));
  pause = MIN (pause, (double)self->ceiling_us) * (1 - JITTER * chance);
  return MAX ((gint64)pause, 1);
}

/* The last instant at which a poll may start and still end by the deadline, with a quarter of its
 * cost as a reserve. */
static gint64
last_start_us (const MusterCountdown *self)
{
  if (self->deadline_us == MUSTER_WAIT_FOREVER)
    return MUSTER_WAIT_FOREVER;
  return self->deadline_us - self->costs_us[0] - self->costs_us[0] / 4;
}

gint64
muster_countdown_next_us (const MusterCountdown *self, gint64 now_us, double chance)
{
  g_return_val_if_fail (self != NULL, 0);

  gint64 last_us = last_start_us (self);
  if (self->polls == 0)
    return now_us <= self->deadline_us ? now_us : 0;
  if (last_us <= now_us)
    return 0;
  return MIN (muster_deadline_after (now_us, pause_us (self, now_us, chance)), last_us);
}
