// SPDX-License-Identifier: Apache-2.0
#include "master/remote/lease_terms_private.h"

#include "base/error.h"

#define RENEWALS_PER_LEASE 3
/* Limits of the duration that a server gives. */
#define LEAST_LEASE_US (30 * MUSTER_MILLISECOND)
#define MOST_LEASE_US  (3600 * MUSTER_SECOND)
/* Minimum timeout of a renewal. */
#define LEAST_ANSWER_US (1 * MUSTER_SECOND)
/* Pauses, doubled after each failure. */
#define FIRST_PAUSE_US (50 * MUSTER_MILLISECOND)
#define MOST_PAUSE_US  (2 * MUSTER_SECOND)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

void
muster_lease_terms_grant (MusterLeaseTerms *self, gint64 lease_us)
{
  self->lease_us = CLAMP (lease_us, LEAST_LEASE_US, MOST_LEASE_US);
  self->pause_us = 0;
}

/* The interval between two renewals. */
static gint64
interval_us (const MusterLeaseTerms *self)
{
  return self->lease_us / RENEWALS_PER_LEASE;
}

gint64
muster_lease_terms_deadline_us (const MusterLeaseTerms *self)
{
  return now_us () + MAX (interval_us (self), LEAST_ANSWER_US);
}

gint64
muster_lease_terms_retry_us (MusterLeaseTerms *self)
{
  const gint64 most_us = MIN (MOST_PAUSE_US, interval_us (self));
  const double share = 0.5 + muster_clock_random (muster_system_clock ()) / 2; /* jitter */
  self->pause_us = MIN (MAX (2 * self->pause_us, FIRST_PAUSE_US), most_us);
  return now_us () + (gint64)((double)self->pause_us * share);
}

gint64
muster_lease_terms_next_us (MusterLeaseTerms *self, const GError *failure)
{
  if (failure == NULL || muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    self->pause_us = 0;
  return failure == NULL ? now_us () + interval_us (self) : muster_lease_terms_retry_us (self);
}
