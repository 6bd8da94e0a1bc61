// SPDX-License-Identifier: Apache-2.0
#include "ready/retries_private.h"

#include "tests/gtest_shim.h"

static MusterFailure
failure_of (GQuark domain, int code)
{
  g_autoptr (GError) error = g_error_new_literal (domain, code, "failed");
  return muster_failure_of (error);
}

MUSTER_TEST (Retry, puts_each_error_into_its_class)
{
  const struct {
    MusterError code;
    MusterFailure failure;
  } cases[] = {
      {MUSTER_ERROR_UNAVAILABLE, MUSTER_FAILURE_UNREACHABLE},
      {MUSTER_ERROR_ABORTED, MUSTER_FAILURE_LOST_SESSION},
      {MUSTER_ERROR_CANCELLED, MUSTER_FAILURE_PREEMPTED},
      {MUSTER_ERROR_DATA_LOSS, MUSTER_FAILURE_LOST_DATA},
      {MUSTER_ERROR_INVALID_ARGUMENT, MUSTER_FAILURE_MISTAKE},
      {MUSTER_ERROR_DEADLINE_EXCEEDED, MUSTER_FAILURE_MISTAKE},
      {MUSTER_ERROR_FAILED_PRECONDITION, MUSTER_FAILURE_MISTAKE},
      {MUSTER_ERROR_OUT_OF_RANGE, MUSTER_FAILURE_MISTAKE},
      {MUSTER_ERROR_INTERNAL, MUSTER_FAILURE_MISTAKE},
      {MUSTER_ERROR_RESOURCE_EXHAUSTED, MUSTER_FAILURE_MISTAKE},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    MUSTER_TRACE ("%s", muster_error_name (cases[i].code));
    MUSTER_EXPECT_EQ ((int)failure_of (MUSTER_ERROR, cases[i].code), (int)cases[i].failure);
  }
}

/* The user's own cancellation has the number of another domain's errors: it is no preemption. */
MUSTER_TEST (Retry, never_takes_the_users_cancellation_for_a_preemption)
{
  MUSTER_EXPECT_EQ ((int)failure_of (G_IO_ERROR, G_IO_ERROR_CANCELLED),
                    (int)MUSTER_FAILURE_MISTAKE);
  MUSTER_EXPECT_EQ ((int)failure_of (G_IO_ERROR, MUSTER_ERROR_CANCELLED),
                    (int)MUSTER_FAILURE_MISTAKE);
  MUSTER_EXPECT_EQ ((int)muster_failure_of (NULL), (int)MUSTER_FAILURE_MISTAKE);
}

MUSTER_TEST (Retry, names_the_classes)
{
  MUSTER_EXPECT_STREQ (muster_failure_name (MUSTER_FAILURE_UNREACHABLE), "unreachable");
  MUSTER_EXPECT_STREQ (muster_failure_name (MUSTER_FAILURE_LOST_SESSION), "lost session");
  MUSTER_EXPECT_STREQ (muster_failure_name (MUSTER_FAILURE_PREEMPTED), "preempted");
  MUSTER_EXPECT_STREQ (muster_failure_name (MUSTER_FAILURE_LOST_DATA), "lost data");
  MUSTER_EXPECT_STREQ (muster_failure_name (MUSTER_FAILURE_MISTAKE), "mistake");
}

static guint
count_retries (const MusterRetryPolicy *policy, MusterFailure failure, guint most)
{
  MusterRetries retries = {.policy = policy};
  gint64 pause_us;
  guint n = 0;
  while (n < most && muster_retries_next (&retries, failure, 0, 0.5, &pause_us))
    n++;
  MUSTER_EXPECT_EQ (retries.counts[failure], n);
  MUSTER_EXPECT_EQ (muster_retries_total (&retries), n);
  return n;
}

MUSTER_TEST (Retry, lets_a_waiter_outlive_its_master_but_no_mistake)
{
  const MusterRetryPolicy *policy = &muster_retry_waiting;
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_UNREACHABLE, 10000), 10000u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_LOST_SESSION, 10000), 10000u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_PREEMPTED, 10000), 10000u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_LOST_DATA, 10000), 0u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_MISTAKE, 10000), 0u);
}

MUSTER_TEST (Retry, lets_a_chief_begin_again_three_times)
{
  const MusterRetryPolicy *policy = &muster_retry_preparing;
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_UNREACHABLE, 10000), 10000u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_LOST_SESSION, 10000), 3u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_PREEMPTED, 10000), 3u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_LOST_DATA, 10000), 0u);
  MUSTER_EXPECT_EQ (count_retries (policy, MUSTER_FAILURE_MISTAKE, 10000), 0u);
}

MUSTER_TEST (Retry, gives_each_class_a_budget_of_its_own)
{
  const MusterRetryPolicy policy = {
      .budget = {[MUSTER_FAILURE_UNREACHABLE] = 2, [MUSTER_FAILURE_LOST_SESSION] = 1}};
  MusterRetries retries = {.policy = &policy};
  gint64 pause_us;
  MUSTER_EXPECT_TRUE (
      muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE, 0, 0.5, &pause_us));
  MUSTER_EXPECT_TRUE (
      muster_retries_next (&retries, MUSTER_FAILURE_LOST_SESSION, 0, 0.5, &pause_us));
  MUSTER_EXPECT_FALSE (
      muster_retries_next (&retries, MUSTER_FAILURE_LOST_SESSION, 0, 0.5, &pause_us));
  MUSTER_EXPECT_TRUE (
      muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE, 0, 0.5, &pause_us));
  MUSTER_EXPECT_FALSE (
      muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE, 0, 0.5, &pause_us));
  MUSTER_EXPECT_EQ (muster_retries_total (&retries), 3u);
}

/* A policy can't ask for it either. */
MUSTER_TEST (Retry, never_repeats_a_mistake)
{
  const MusterRetryPolicy policy = {
      .budget = {[MUSTER_FAILURE_MISTAKE] = MUSTER_RETRY_UNTIL_DEADLINE}};
  MUSTER_EXPECT_EQ (count_retries (&policy, MUSTER_FAILURE_MISTAKE, 10), 0u);
}

static void
expect_pauses (const MusterRetryPolicy *policy, double chance, const gint64 *pauses_us, gsize n)
{
  MusterRetries retries = {.policy = policy};
  for (gsize i = 0; i < n; i++) {
    gint64 pause_us = -1;
    MUSTER_TRACE ("pause %u at chance %g", (guint)i, chance);
    MUSTER_EXPECT_TRUE (
        muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE, 0, chance, &pause_us));
    MUSTER_EXPECT_EQ (pause_us, pauses_us[i]);
  }
}

MUSTER_TEST (Retry, doubles_its_pauses_up_to_their_ceiling)
{
  const gint64 half[] = {50000, 100000, 200000, 400000, 500000, 500000};
  expect_pauses (&muster_retry_waiting, 0.5, half, G_N_ELEMENTS (half));
}

/* Full jitter: a pause may be anything below its ceiling; but for ten milliseconds nobody retries.
 */
MUSTER_TEST (Retry, draws_each_pause_from_nothing_to_its_ceiling)
{
  const gint64 least[] = {10000, 10000, 10000, 10000};
  const gint64 quarter[] = {25000, 50000, 100000, 200000, 250000};
  expect_pauses (&muster_retry_waiting, 0.0, least, G_N_ELEMENTS (least));
  expect_pauses (&muster_retry_waiting, 0.25, quarter, G_N_ELEMENTS (quarter));
}

MUSTER_TEST (Retry, keeps_to_the_pauses_of_its_policy)
{
  const MusterRetryPolicy slow = {.budget = {[MUSTER_FAILURE_UNREACHABLE] = 5},
                                  .first_pause_us = 4 * MUSTER_SECOND,
                                  .last_pause_us = 10 * MUSTER_SECOND};
  const gint64 half[] = {2 * MUSTER_SECOND, 4 * MUSTER_SECOND, 5 * MUSTER_SECOND,
                         5 * MUSTER_SECOND};
  const MusterRetryPolicy short_ceiling = {.budget = {[MUSTER_FAILURE_UNREACHABLE] = 5},
                                           .last_pause_us = 40 * MUSTER_MILLISECOND};
  const gint64 at_most[] = {20000, 20000, 20000};
  expect_pauses (&slow, 0.5, half, G_N_ELEMENTS (half));
  expect_pauses (&short_ceiling, 0.5, at_most, G_N_ELEMENTS (at_most));
}

MUSTER_TEST (Retry, survives_an_endless_ceiling)
{
  const MusterRetryPolicy endless = {
      .budget = {[MUSTER_FAILURE_UNREACHABLE] = MUSTER_RETRY_UNTIL_DEADLINE},
      .last_pause_us = MUSTER_WAIT_FOREVER};
  MusterRetries retries = {.policy = &endless, .in_a_row = G_MAXUINT - 1};
  gint64 pause_us = -1;
  MUSTER_EXPECT_TRUE (
      muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE, 0, 0.5, &pause_us));
  MUSTER_EXPECT_GT (pause_us, 0);
}

MUSTER_TEST (Retry, begins_its_pauses_anew_after_ten_seconds_of_work)
{
  MusterRetries retries = {.policy = &muster_retry_waiting};
  const struct {
    gint64 uptime_us;
    gint64 pause_us;
  } lives[] = {
      {0, 50000}, {9999999, 100000}, {0, 200000}, {10 * MUSTER_SECOND, 50000}, {0, 100000}};

  for (gsize i = 0; i < G_N_ELEMENTS (lives); i++) {
    gint64 pause_us = -1;
    MUSTER_TRACE ("life %u", (guint)i);
    MUSTER_EXPECT_TRUE (muster_retries_next (&retries, MUSTER_FAILURE_UNREACHABLE,
                                             lives[i].uptime_us, 0.5, &pause_us));
    MUSTER_EXPECT_EQ (pause_us, lives[i].pause_us);
  }
}

/* The master answers: only a worker that loses session after session keeps away for longer. */
MUSTER_TEST (Retry, pauses_for_25_ms_at_most_after_a_session_that_was_lost)
{
  MusterRetries retries = {.policy = &muster_retry_waiting};
  const struct {
    gint64 uptime_us;
    gint64 pause_us;
  } lives[] = {{0, 24975}, {0, 199800}, {0, 399600}, {10 * MUSTER_SECOND, 24975}};

  for (gsize i = 0; i < G_N_ELEMENTS (lives); i++) {
    gint64 pause_us = -1;
    MUSTER_TRACE ("life %u", (guint)i);
    MUSTER_EXPECT_TRUE (muster_retries_next (&retries, MUSTER_FAILURE_LOST_SESSION,
                                             lives[i].uptime_us, 0.999, &pause_us));
    MUSTER_EXPECT_EQ (pause_us, lives[i].pause_us);
  }
}
