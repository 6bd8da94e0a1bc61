// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterRateLimiter decides when to look at a master because something may have changed, where
 * nobody can tell whether it has; it does no waiting and reads no clock. A plain struct.
 *
 * However many hunches come, a look is due at once for the first few in a row; then each look costs
 * a pause of 20 times what it took (at least 10 ms), so that all of them together take a twentieth
 * of the time. A hunch is never dropped: a look follows it, if later. */

typedef struct {
  gint64 due_us;   /* when a look is due; MUSTER_WAIT_FOREVER: there is no hunch */
  gint64 paced_us; /* by when the looks so far have been paid for */
} MusterRateLimiter;

void muster_rate_limiter_init (MusterRateLimiter *self);

/* Something may have changed by now. */
void muster_rate_limiter_note_change (MusterRateLimiter *self, gint64 now_us);

/* A look begins, for whatever reason: it is what the hunch so far has asked for. TRUE if it was due
 * for that reason: then muster_rate_limiter_end_poll () is to follow. */
gboolean muster_rate_limiter_begin_poll (MusterRateLimiter *self, gint64 now_us);
/* That look has ended, and took cost_us. */
void muster_rate_limiter_end_poll (MusterRateLimiter *self, gint64 now_us, gint64 cost_us);

G_END_DECLS
