// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* The times by which a lease on a server is kept, a chief's or a member's. By
 * muster_system_clock (); the caller guards the value. */
typedef struct {
  gint64 lease_us; /* its duration; 0: not granted yet */
  gint64 pause_us; /* the last one; 0: none since the last success */
} MusterLeaseTerms;

/* Takes a duration that a server has granted, within limits. */
void muster_lease_terms_grant (MusterLeaseTerms *self, gint64 lease_us);

/* The deadline of a renewal that begins now. */
gint64 muster_lease_terms_deadline_us (const MusterLeaseTerms *self);

/* When to try again after a failure: pauses grow, and are a part of the interval at most. */
gint64 muster_lease_terms_retry_us (MusterLeaseTerms *self);

/* When to renew next. failure (nullable) is why a renewal failed. One that wasn't answered is
 * repeated after the shortest pause, so that a server that was stopped soon finds one. */
gint64 muster_lease_terms_next_us (MusterLeaseTerms *self, const GError *failure);

G_END_DECLS
