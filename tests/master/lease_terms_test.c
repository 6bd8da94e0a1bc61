// SPDX-License-Identifier: Apache-2.0
#include "master/remote/lease_terms_private.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#define SHORTEST (50 * MUSTER_MILLISECOND)
#define LONGEST  (2 * MUSTER_SECOND)

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

static MusterLeaseTerms
granted (gint64 lease_us)
{
  MusterLeaseTerms terms = {0};
  muster_lease_terms_grant (&terms, lease_us);
  return terms;
}

/* The next renewal comes after half of this pause to all of it. */
static void
expect_pause (MusterLeaseTerms *terms, MusterError failure, gint64 pause_us)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, failure, "");
  const gint64 before_us = now_us ();
  const gint64 next_us = muster_lease_terms_next_us (terms, error);
  MUSTER_EXPECT_GE (next_us, before_us + pause_us / 2);
  MUSTER_EXPECT_LE (next_us, now_us () + pause_us);
}

MUSTER_TEST (LeaseTerms, renew_three_times_during_a_lease)
{
  MusterLeaseTerms terms = granted (15 * MUSTER_SECOND);
  const gint64 before_us = now_us ();
  const gint64 next_us = muster_lease_terms_next_us (&terms, NULL);
  MUSTER_EXPECT_GE (next_us, before_us + 5 * MUSTER_SECOND);
  MUSTER_EXPECT_LE (next_us, now_us () + 5 * MUSTER_SECOND);
}

MUSTER_TEST (LeaseTerms, bound_what_a_server_grants)
{
  MUSTER_EXPECT_EQ (granted (0).lease_us, 30 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (granted (-1).lease_us, 30 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_EQ (granted (G_MAXINT64).lease_us, 3600 * MUSTER_SECOND);
}

MUSTER_TEST (LeaseTerms, pause_longer_after_each_failure_and_briefly_after_a_success)
{
  MusterLeaseTerms terms = granted (15 * MUSTER_SECOND);
  gint64 pause_us = SHORTEST;
  for (int i = 0; i < 12; i++) {
    expect_pause (&terms, MUSTER_ERROR_UNAVAILABLE, pause_us);
    pause_us = MIN (2 * pause_us, LONGEST);
  }
  (void)muster_lease_terms_next_us (&terms, NULL);
  expect_pause (&terms, MUSTER_ERROR_UNAVAILABLE, SHORTEST);
}

MUSTER_TEST (LeaseTerms, pause_no_longer_than_between_renewals)
{
  MusterLeaseTerms terms = granted (30 * MUSTER_MILLISECOND);
  expect_pause (&terms, MUSTER_ERROR_UNAVAILABLE, 10 * MUSTER_MILLISECOND);
  expect_pause (&terms, MUSTER_ERROR_UNAVAILABLE, 10 * MUSTER_MILLISECOND);
}

/* So that a server that was stopped soon finds a renewal. */
MUSTER_TEST (LeaseTerms, repeat_what_was_not_answered_after_the_shortest_pause)
{
  MusterLeaseTerms terms = granted (15 * MUSTER_SECOND);
  for (int i = 0; i < 5; i++)
    expect_pause (&terms, MUSTER_ERROR_UNAVAILABLE, MIN (SHORTEST << i, LONGEST));
  expect_pause (&terms, MUSTER_ERROR_DEADLINE_EXCEEDED, SHORTEST);
  expect_pause (&terms, MUSTER_ERROR_DEADLINE_EXCEEDED, SHORTEST);
}
