// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/backoff.h"

G_BEGIN_DECLS

/* Decides what is retried, how often, and after which pause, by a policy. Reads no clock and
 * doesn't wait. A plain struct. */

typedef struct {
  const MusterRetryPolicy *policy; /* (not owned) */
  guint counts[MUSTER_N_FAILURES]; /* retries so far */
  guint in_a_row;
} MusterRetries;

/* TRUE if the failure should be retried: counts it, and sets *pause_us to the pause before. chance
 * is in [0, 1). uptime_us is how long the attempt worked before it failed: after ten seconds the
 * pauses start from the shortest again. */
gboolean muster_retries_next (MusterRetries *self, MusterFailure failure, gint64 uptime_us,
                              double chance, gint64 *pause_us);

guint muster_retries_total (const MusterRetries *self);

G_END_DECLS
