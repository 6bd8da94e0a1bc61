// SPDX-License-Identifier: Apache-2.0
#include "ready/retries_private.h"

#define FIRST_PAUSE_US (100 * MUSTER_MILLISECOND)
#define LAST_PAUSE_US  MUSTER_SECOND
/* Minimum pause, whatever the random number, so that retries are never a tight loop. */
#define MIN_PAUSE_US (10 * MUSTER_MILLISECOND)
/* A master that has lost a session answers, so the first pause only spreads the clients: a worker
 * is back before the chief that has reset the master has finished. */
#define LOST_SESSION_SHARE 4
/* An attempt that worked for this long has succeeded: the next pause is the first again. A master
 * that loses sessions at once is retried as rarely as one that can't be reached. */
#define STABLE_AFTER_US (10 * MUSTER_SECOND)
/* Maximum number of doublings, so that a ceiling of hours doesn't overflow. */
#define MAX_DOUBLINGS 30

static gint64
draw_pause_us (const MusterRetryPolicy *policy, MusterFailure failure, guint in_a_row,
               double chance)
{
  gint64 first_us = policy->first_pause_us > 0 ? policy->first_pause_us : FIRST_PAUSE_US;
  gint64 last_us = policy->last_pause_us > 0 ? policy->last_pause_us : LAST_PAUSE_US;
  gint64 ceiling_us = MIN (first_us, last_us);
  if (failure == MUSTER_FAILURE_LOST_SESSION && in_a_row == 0)
    return MAX ((gint64)((double)ceiling_us / LOST_SESSION_SHARE * chance), MIN_PAUSE_US);
  for (guint i = 0; i < MIN (in_a_row, MAX_DOUBLINGS) && ceiling_us < last_us; i++)
    ceiling_us = ceiling_us > last_us / 2 ? last_us : ceiling_us * 2;
  return MAX ((gint64)((double)ceiling_us * chance), MIN_PAUSE_US);
}

gboolean
muster_retries_next (MusterRetries *self, MusterFailure failure, gint64 uptime_us, double chance,
                     gint64 *pause_us)
{
  g_return_val_if_fail (self != NULL && pause_us != NULL, FALSE);

  g_return_val_if_fail ((guint)failure < MUSTER_N_FAILURES, FALSE);
  guint budget = self->policy->budget[failure];

  if (failure == MUSTER_FAILURE_MISTAKE ||
      (budget != MUSTER_RETRY_UNTIL_DEADLINE && self->counts[failure] >= budget))
    return FALSE;
  if (uptime_us >= STABLE_AFTER_US)
    self->in_a_row = 0;
  *pause_us = draw_pause_us (self->policy, failure, self->in_a_row, chance);
  self->in_a_row++;
  self->counts[failure]++;
  return TRUE;
}

guint
muster_retries_total (const MusterRetries *self)
{
  g_return_val_if_fail (self != NULL, 0);

  guint total = 0;
  for (guint i = 0; i < MUSTER_N_FAILURES; i++)
    total += self->counts[i];
  return total;
}
