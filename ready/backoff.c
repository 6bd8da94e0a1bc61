// SPDX-License-Identifier: Apache-2.0
#include "ready/backoff.h"

#include "base/fields_private.h"

#include <string.h>

const MusterRetryPolicy muster_retry_waiting = {
    .budget = {[MUSTER_FAILURE_UNREACHABLE] = MUSTER_RETRY_UNTIL_DEADLINE,
               [MUSTER_FAILURE_LOST_SESSION] = MUSTER_RETRY_UNTIL_DEADLINE,
               [MUSTER_FAILURE_PREEMPTED] = MUSTER_RETRY_UNTIL_DEADLINE},
};

const MusterRetryPolicy muster_retry_preparing = {
    .budget = {[MUSTER_FAILURE_UNREACHABLE] = MUSTER_RETRY_UNTIL_DEADLINE,
               [MUSTER_FAILURE_LOST_SESSION] = 3,
               [MUSTER_FAILURE_PREEMPTED] = 3},
};

const char *
muster_failure_name (MusterFailure failure)
{
  static const char *const names[MUSTER_N_FAILURES] = {
      [MUSTER_FAILURE_UNREACHABLE] = "unreachable", [MUSTER_FAILURE_LOST_SESSION] = "lost session",
      [MUSTER_FAILURE_PREEMPTED] = "preempted",     [MUSTER_FAILURE_LOST_DATA] = "lost data",
      [MUSTER_FAILURE_MISTAKE] = "mistake",
  };
  return (guint)failure < MUSTER_N_FAILURES ? names[failure] : names[MUSTER_FAILURE_MISTAKE];
}

MusterFailure
muster_failure_of (const GError *error)
{
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE))
    return MUSTER_FAILURE_UNREACHABLE;
  if (error == NULL || error->domain != MUSTER_ERROR)
    return MUSTER_FAILURE_MISTAKE;

  switch (error->code) {
  case MUSTER_ERROR_UNAVAILABLE:
    return MUSTER_FAILURE_UNREACHABLE;
  case MUSTER_ERROR_ABORTED:
    return MUSTER_FAILURE_LOST_SESSION;
  case MUSTER_ERROR_CANCELLED:
    return MUSTER_FAILURE_PREEMPTED;
  case MUSTER_ERROR_DATA_LOSS:
    return MUSTER_FAILURE_LOST_DATA;
  default:
    return MUSTER_FAILURE_MISTAKE;
  }
}

gboolean
muster_failure_is_reset (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_ABORTED) &&
         strstr (error->message, MUSTER_BY_RESET) != NULL;
}

MUSTER_DEFINE_VALUE (MusterRetryPolicy, muster_retry_policy)

MusterRetryPolicy *
muster_retry_policy_new_waiting (void)
{
  return muster_retry_policy_copy (&muster_retry_waiting);
}

MusterRetryPolicy *
muster_retry_policy_new_preparing (void)
{
  return muster_retry_policy_copy (&muster_retry_preparing);
}

void
muster_retry_policy_set_budget (MusterRetryPolicy *self, MusterFailure failure, guint retries)
{
  g_return_if_fail (self != NULL && (guint)failure < MUSTER_N_FAILURES);
  self->budget[failure] = retries;
}
