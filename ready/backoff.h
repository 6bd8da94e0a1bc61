// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* What is tried again, how often, and after which pause. Failures fall into classes, each with a
 * budget of its own; pauses grow exponentially with full jitter, so that a thousand workers don't
 * retry together. Pure: reads no clock, waits for nothing. A plain struct. */

typedef enum {
  MUSTER_FAILURE_UNREACHABLE,  /* UNAVAILABLE: nobody answers */
  MUSTER_FAILURE_LOST_SESSION, /* ABORTED: the master has restarted, or was reset */
  MUSTER_FAILURE_PREEMPTED,    /* CANCELLED by a master that is stopping */
  MUSTER_FAILURE_LOST_DATA,    /* DATA_LOSS: a checkpoint is damaged */
  MUSTER_FAILURE_MISTAKE,      /* all else: trying again can't help; never retried */
  MUSTER_N_FAILURES
} MusterFailure;

/* "unreachable", "lost session", … */
const char *muster_failure_name (MusterFailure failure);

/* The one place that decides what kind of failure an error (nullable) is. */
MusterFailure muster_failure_of (const GError *error);

/* What a session fails with, once a reset of muster's server or engine has ended it; part of the
 * text, since on the wire there is only ABORTED for it. */
#define MUSTER_BY_RESET "by a reset of the master"
/* TRUE for such an error (nullable): the master is well, and a chief begins anew. */
gboolean muster_failure_is_reset (const GError *error);

#define MUSTER_RETRY_UNTIL_DEADLINE G_MAXUINT

typedef struct {
  guint budget[MUSTER_N_FAILURES]; /* retries at most, or MUSTER_RETRY_UNTIL_DEADLINE */
  gint64 first_pause_us;           /* 0: 100 ms; for a lost session a quarter of it */
  gint64 last_pause_us;            /* the pauses' ceiling; 0: 1 s */
} MusterRetryPolicy;

/* A waiter's: unreachable, lost session and preempted until the deadline, lost data and mistakes
 * never. */
extern const MusterRetryPolicy muster_retry_waiting;
/* A chief's: unreachable until the deadline, lost session and preempted three times, lost data and
 * mistakes never. */
extern const MusterRetryPolicy muster_retry_preparing;

typedef struct {
  const MusterRetryPolicy *policy; /* (not owned) */
  guint counts[MUSTER_N_FAILURES]; /* retries so far */
  guint in_a_row;
} MusterRetries;

/* TRUE if the failure is to be tried again: counts it, and *pause_us is how long to pause first.
 * chance is in [0, 1). uptime_us is how long the attempt held before it failed: one that held for
 * ten seconds begins the pauses anew. */
gboolean muster_retries_next (MusterRetries *self, MusterFailure failure, gint64 uptime_us,
                              double chance, gint64 *pause_us);

guint muster_retries_total (const MusterRetries *self);

G_END_DECLS
