// SPDX-License-Identifier: Apache-2.0
#include "master/membership.h"
#include "tests/server/served.h"

#define N_SLOTS 4

static MusterMembership *
join_slot (MusterMaster *master, const char *task, gint slot, GError **error)
{
  const MusterJoin wanted = {.model = "digits", .task = task, .slot = slot, .n_slots = N_SLOTS};
  return muster_master_join (master, &wanted, test_deadline (), NULL, error);
}

static MusterMembership *
join (MusterMaster *master, const char *task)
{
  g_autoptr (GError) error = NULL;
  MusterMembership *member = join_slot (master, task, -1, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return member;
}

/* "0 2 of 4, chief 1": a roster in words. */
static char *
words_of (const MusterRoster *roster)
{
  GString *text = g_string_new (NULL);
  gsize n;
  const guint *slots = muster_roster_slots (roster, &n);
  for (gsize i = 0; i < n; i++)
    g_string_append_printf (text, "%u ", slots[i]);
  g_string_append_printf (text, "of %u, %s %d%s", roster->n_slots,
                          roster->has_chief ? "chief" : "no chief", (int)roster->epoch,
                          roster->is_over ? ", over" : "");
  return g_string_free (text, FALSE);
}

/* Waits until the member has heard that. */
static void
expect_roster (MusterMembership *member, const char *wanted)
{
  g_autoptr (GError) error = NULL;
  for (;;) {
    g_autoptr (MusterRoster) roster = muster_membership_roster (member);
    g_autofree char *words = words_of (roster);
    if (g_str_equal (words, wanted))
      return;
    if (!muster_membership_wait (member, roster->version, test_deadline (), NULL, &error)) {
      MUSTER_FAIL ("heard '%s', not '%s': %s", words, wanted, error->message);
      return;
    }
  }
}

MUSTER_TEST (Member, gets_the_lowest_free_slot_and_hears_who_else_is_there)
{
  g_auto (Served) f = served_start ();

  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");

  MUSTER_ASSERT_TRUE (one != NULL && other != NULL);
  MUSTER_EXPECT_EQ (muster_membership_slot (one), 0);
  MUSTER_EXPECT_EQ (muster_membership_slot (other), 1);
  expect_roster (one, "0 1 of 4, no chief 0");
  expect_roster (other, "0 1 of 4, no chief 0");
}

MUSTER_TEST (Member, that_is_dropped_is_gone_at_once_for_the_others)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL);
  expect_roster (other, "0 1 of 4, no chief 0");

  g_clear_object (&one);

  expect_roster (other, "1 of 4, no chief 0");
}

MUSTER_TEST (Member, that_leaves_is_no_member_any_more)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL);

  MUSTER_EXPECT_TRUE (muster_membership_leave (one, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  expect_roster (other, "1 of 4, no chief 0");
  MUSTER_EXPECT_FALSE (muster_membership_check (one, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "it has left");
}

MUSTER_TEST (Member, hears_of_the_chief)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) member = join (f.remote, "worker:0");
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (member != NULL && session != NULL);

  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  expect_roster (member, "0 of 4, chief 1");
  g_clear_object (&lease);
  expect_roster (member, "0 of 4, no chief 1");
  lease = served_claim (session, NULL);
  MUSTER_ASSERT_NOT_NULL (lease);
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_OVER, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  expect_roster (member, "0 of 4, chief 2, over");
}

MUSTER_TEST (Member, is_refused_where_its_slot_has_another)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) one = join_slot (f.remote, "worker:7", 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_membership_slot (one), 2);

  g_autoptr (MusterMembership) other = join_slot (f.remote, "worker:8", 2, &error);

  MUSTER_EXPECT_NULL (other);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "slot 2 of 'digits' has a living member, worker:7 (");
}
