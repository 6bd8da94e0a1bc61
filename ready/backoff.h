// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterFailure:
 * @MUSTER_FAILURE_UNREACHABLE: UNAVAILABLE: no answer; or G_IO_ERROR_HOST_UNREACHABLE: none of a
 *   store
 * @MUSTER_FAILURE_LOST_SESSION: ABORTED: the master restarted or was reset
 * @MUSTER_FAILURE_PREEMPTED: CANCELLED by a master that is stopping
 * @MUSTER_FAILURE_LOST_DATA: DATA_LOSS: a checkpoint is damaged
 * @MUSTER_FAILURE_MISTAKE: all others: never retried, since a retry can't help
 * @MUSTER_N_FAILURES: the number of classes
 *
 * The classes of failures: what is retried, how often, and after which pause. Each class has its
 * own budget of retries ([struct@RetryPolicy]).
 */
typedef enum {
  MUSTER_FAILURE_UNREACHABLE,
  MUSTER_FAILURE_LOST_SESSION,
  MUSTER_FAILURE_PREEMPTED,
  MUSTER_FAILURE_LOST_DATA,
  MUSTER_FAILURE_MISTAKE,
  MUSTER_N_FAILURES
} MusterFailure;

/**
 * muster_failure_name:
 * @failure: a class
 *
 * The class's name: "unreachable", "lost session", …
 *
 * Returns: the name
 */
const char *muster_failure_name (MusterFailure failure);

/**
 * muster_failure_of:
 * @error: (nullable): an error
 *
 * Classifies an error. No other function does.
 *
 * Returns: its class; %MUSTER_FAILURE_MISTAKE for %NULL
 */
MusterFailure muster_failure_of (const GError *error);

/**
 * MUSTER_BY_RESET:
 *
 * In the error of a session that was ended by a reset of muster's server or engine. It is in the
 * text because the status is only ABORTED.
 */
#define MUSTER_BY_RESET "by a reset of the master"

/**
 * muster_failure_is_reset:
 * @error: (nullable): an error
 *
 * Tests whether a session was ended by a reset: the master works, and a chief starts again.
 *
 * Returns: %TRUE if so
 */
gboolean muster_failure_is_reset (const GError *error);

/**
 * MUSTER_RETRY_UNTIL_DEADLINE:
 *
 * A budget without limit.
 */
#define MUSTER_RETRY_UNTIL_DEADLINE G_MAXUINT

/**
 * MusterRetryPolicy:
 * @budget: (array fixed-size=5): by #MusterFailure: the maximum number of retries, or
 *   %MUSTER_RETRY_UNTIL_DEADLINE
 * @first_pause_us: the first pause in microseconds; 0: 100 ms; a quarter of it after a lost session
 * @last_pause_us: the maximum pause in microseconds; 0: 1 s
 *
 * What is retried, how often, and after which pause. Pauses grow exponentially with full jitter, so
 * that a thousand workers don't retry at the same time.
 */
typedef struct {
  guint budget[MUSTER_N_FAILURES];
  gint64 first_pause_us;
  gint64 last_pause_us;
} MusterRetryPolicy;

/* Data, for C: see muster_retry_policy_new_waiting () and muster_retry_policy_new_preparing ().
 * For waiters: unreachable, lost session and preempted until the deadline, lost data and mistakes
 * never. */
extern const MusterRetryPolicy muster_retry_waiting;
/* For chiefs: unreachable until the deadline, lost session and preempted three times, lost data and
 * mistakes never. */
extern const MusterRetryPolicy muster_retry_preparing;

#define MUSTER_TYPE_RETRY_POLICY (muster_retry_policy_get_type ())
GType muster_retry_policy_get_type (void);

/**
 * muster_retry_policy_new_waiting:
 *
 * The policy of waiters: unreachable, lost session and preempted until the deadline, lost data and
 * mistakes never.
 *
 * Returns: (transfer full): a copy of muster_retry_waiting
 */
MusterRetryPolicy *muster_retry_policy_new_waiting (void);

/**
 * muster_retry_policy_new_preparing:
 *
 * The policy of chiefs: unreachable until the deadline, lost session and preempted three times,
 * lost data and mistakes never.
 *
 * Returns: (transfer full): a copy of muster_retry_preparing
 */
MusterRetryPolicy *muster_retry_policy_new_preparing (void);

/**
 * muster_retry_policy_set_budget:
 * @self: a policy
 * @failure: a class of failures
 * @retries: the maximum number of retries, or %MUSTER_RETRY_UNTIL_DEADLINE
 *
 * Sets the budget of a class.
 */
void muster_retry_policy_set_budget (MusterRetryPolicy *self, MusterFailure failure, guint retries);

G_END_DECLS
