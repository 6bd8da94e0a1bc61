// SPDX-License-Identifier: Apache-2.0
#include "ready/rate_limiter_private.h"

#define PAUSES_PER_POLL 20
#define MIN_PAUSE_US    (10 * MUSTER_MILLISECOND)
/* Polls that are due at once: a chief's init, its local init and its own check of the ready op
 * follow each other closely. */
#define AT_ONCE 3

void
muster_rate_limiter_init (MusterRateLimiter *self)
{
  *self = (MusterRateLimiter){.due_us = MUSTER_WAIT_FOREVER};
}

void
muster_rate_limiter_note_change (MusterRateLimiter *self, gint64 now_us)
{
  self->due_us = MIN (self->due_us, MAX (now_us, self->paused_until_us));
}

gboolean
muster_rate_limiter_begin_poll (MusterRateLimiter *self, gint64 now_us)
{
  gboolean was_due = self->due_us <= now_us;
  self->due_us = MUSTER_WAIT_FOREVER;
  return was_due;
}

/* The pauses lag behind by the polls that are due at once. */
void
muster_rate_limiter_end_poll (MusterRateLimiter *self, gint64 now_us, gint64 cost_us)
{
  gint64 pause_us = MAX (cost_us * PAUSES_PER_POLL, MIN_PAUSE_US);
  self->paused_until_us = MAX (self->paused_until_us, now_us - AT_ONCE * pause_us) + pause_us;
}
