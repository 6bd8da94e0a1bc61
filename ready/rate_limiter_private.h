// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterRateLimiter decides when to poll a master because something may have changed, if the master
 * doesn't report changes. It doesn't wait and reads no clock. A plain struct.
 *
 * The first polls of a series are due at once, however many possible changes are noted. Then each
 * poll is followed by a pause of 20 times its duration (at least 10 ms), so that together they take
 * a twentieth of the time. Every noted change is followed by a poll, possibly later. */

typedef struct {
  gint64 due_us;          /* when a poll is due; MUSTER_WAIT_FOREVER: no change noted */
  gint64 paused_until_us; /* end of the pauses for the polls so far */
} MusterRateLimiter;

void muster_rate_limiter_init (MusterRateLimiter *self);

/* Notes a possible change. */
void muster_rate_limiter_note_change (MusterRateLimiter *self, gint64 now_us);

/* A poll begins, for any reason; it covers the changes noted so far. TRUE if it was due because of
 * them: then call muster_rate_limiter_end_poll (). */
gboolean muster_rate_limiter_begin_poll (MusterRateLimiter *self, gint64 now_us);
/* That poll has ended, and took cost_us. */
void muster_rate_limiter_end_poll (MusterRateLimiter *self, gint64 now_us, gint64 cost_us);

G_END_DECLS
