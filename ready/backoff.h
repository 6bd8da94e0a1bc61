// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* Decides what is retried, how often, and after which pause. Each class of failure has its own
 * budget of retries. Pauses grow exponentially with full jitter, so that a thousand workers don't
 * retry at the same time. Reads no clock and doesn't wait. A plain struct. */

typedef enum {
  MUSTER_FAILURE_UNREACHABLE,  /* UNAVAILABLE: no answer */
  MUSTER_FAILURE_LOST_SESSION, /* ABORTED: the master restarted or was reset */
  MUSTER_FAILURE_PREEMPTED,    /* CANCELLED by a master that is stopping */
  MUSTER_FAILURE_LOST_DATA,    /* DATA_LOSS: a checkpoint is damaged */
  MUSTER_FAILURE_MISTAKE,      /* all others: never retried, since a retry can't help */
  MUSTER_N_FAILURES
} MusterFailure;

/* "unreachable", "lost session", … */
const char *muster_failure_name (MusterFailure failure);

/* Classifies an error (nullable). No other function does. */
MusterFailure muster_failure_of (const GError *error);

/* In the error of a session that was ended by a reset of muster's server or engine. It is in the
 * text because the status is only ABORTED. */
#define MUSTER_BY_RESET "by a reset of the master"
/* TRUE for such an error (nullable): the master works, and a chief starts again. */
gboolean muster_failure_is_reset (const GError *error);

#define MUSTER_RETRY_UNTIL_DEADLINE G_MAXUINT

typedef struct {
  guint budget[MUSTER_N_FAILURES]; /* maximum number of retries, or MUSTER_RETRY_UNTIL_DEADLINE */
  gint64 first_pause_us;           /* 0: 100 ms; a quarter of it after a lost session */
  gint64 last_pause_us;            /* maximum pause; 0: 1 s */
} MusterRetryPolicy;

/* For waiters: unreachable, lost session and preempted until the deadline, lost data and mistakes
 * never. */
extern const MusterRetryPolicy muster_retry_waiting;
/* For chiefs: unreachable until the deadline, lost session and preempted three times, lost data and
 * mistakes never. */
extern const MusterRetryPolicy muster_retry_preparing;

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
