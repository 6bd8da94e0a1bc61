// SPDX-License-Identifier: Apache-2.0
#include "base/unpack_private.h"
#include "master/remote/remote_master.h"
#include "rpc/proto/muster.pb-c.h"
#include "rpc/server/rpc_server_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

/* A server that sends one roster, the test's, and notes what is reported. */
typedef struct {
  MusterRpcServer *server; /* (owned) */
  MusterMaster *master;    /* (owned) */
  Muster__Roster roster;
  GAsyncQueue *joined;   /* (owned) calls that aren't answered to the end yet */
  GAsyncQueue *reported; /* (owned) the batches, plus 1 */
} Tiny;

static void
answer_join (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  const Tiny *f = data;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&f->roster.base);
  muster_rope_append (&rope, packed);
  muster_rpc_call_send (call, &rope);
  g_async_queue_push (f->joined, call);
}

static void
answer_report (MusterRpcCall *call, GBytes *request, gpointer data)
{
  const Tiny *f = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__MemberReport *report =
      muster_unpack (&muster__member_report__descriptor, g_bytes_get_data (request, NULL),
                     g_bytes_get_size (request), arena, "report", NULL);
  g_async_queue_push (f->reported, GINT_TO_POINTER ((int)report->batches + 1));
  muster_rpc_call_reply (call, NULL);
}

static void
tiny_start (Tiny *f, gboolean keeps_members)
{
  g_autoptr (GError) error = NULL;
  f->server = muster_rpc_server_new ();
  f->joined = g_async_queue_new ();
  f->reported = g_async_queue_new ();
  muster__roster__init (&f->roster);
  if (keeps_members) {
    muster_rpc_server_add_method (f->server, "/muster.Readiness/Join", answer_join, f);
    muster_rpc_server_add_method (f->server, "/muster.Readiness/Report", answer_report, f);
  }
  int port = muster_rpc_server_listen (f->server, "127.0.0.1:0", NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_rpc_server_start (f->server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  f->master = muster_remote_master_new (target, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
tiny_clear (Tiny *f)
{
  g_clear_object (&f->master);
  for (MusterRpcCall *call; (call = g_async_queue_try_pop (f->joined)) != NULL;)
    muster_rpc_call_finish (call, NULL);
  g_clear_pointer (&f->server, muster_rpc_server_free);
  g_clear_pointer (&f->joined, g_async_queue_unref);
  g_clear_pointer (&f->reported, g_async_queue_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Tiny, tiny_clear)

static MusterMembership *
join (Tiny *f, gint slot, GError **error)
{
  const MusterJoin wanted = {.model = "digits", .slot = slot, .n_slots = 8};
  return muster_master_join (f->master, &wanted, test_deadline (), NULL, error);
}

static int
next_report (Tiny *f)
{
  return GPOINTER_TO_INT (g_async_queue_timeout_pop (f->reported, 30 * MUSTER_SECOND)) - 1;
}

static guint32 taken[] = {1, 3};

static void
set_good (Tiny *f)
{
  f->roster.member = 7;
  f->roster.slot = 3;
  f->roster.lease_us = 60 * MUSTER_MILLISECOND;
  f->roster.n_slots = 8;
  f->roster.taken = taken;
  f->roster.n_taken = G_N_ELEMENTS (taken);
}

MUSTER_TEST (RemoteMembership, is_renewed_with_what_was_reported)
{
  g_auto (Tiny) f = {0};
  g_autoptr (GError) error = NULL;
  tiny_start (&f, TRUE);
  set_good (&f);
  g_autoptr (MusterMembership) member = join (&f, -1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_membership_slot (member), 3u);
  g_autoptr (MusterRoster) roster = muster_membership_roster (member);
  MUSTER_EXPECT_EQ (roster->n_tasks, 2u); /* the server says nothing of tasks */
  MUSTER_EXPECT_EQ (roster->min_tasks, 0u);
  MUSTER_EXPECT_EQ (next_report (&f), 0);

  muster_membership_report (member, 5);

  int n_batches = next_report (&f);
  while (n_batches == 0)
    n_batches = next_report (&f);
  MUSTER_EXPECT_EQ (n_batches, 5);
  MUSTER_EXPECT_EQ (next_report (&f), 5); /* it goes on */
  MUSTER_EXPECT_TRUE (muster_membership_check (member, &error));
}

MUSTER_TEST (RemoteMembership, isnt_taken_from_a_server_that_talks_nonsense)
{
  static guint32 twice[] = {3, 3}, descending[] = {3, 1}, beyond[] = {3, 8};
  const struct {
    gint32 n_slots, slot;
    guint64 member;
    guint32 *taken;
    gint32 tasks, min_tasks;
  } cases[] = {
      {0, 3, 7, taken, 0, 0}, {-1, 3, 7, taken, 0, 0}, {MUSTER_MAX_SLOTS + 1, 3, 7, taken, 0, 0},
      {8, 3, 7, twice, 0, 0}, {8, 3, 7, beyond, 0, 0}, {8, 3, 7, descending, 0, 0},
      {8, 9, 7, taken, 0, 0}, {8, -1, 7, taken, 0, 0}, {8, 3, 0, taken, 0, 0},
      {1, 0, 7, taken, 0, 0}, {8, 3, 7, taken, 3, 0},  {8, 3, 7, taken, -1, 0},
      {8, 3, 7, taken, 2, 9}, {8, 3, 7, taken, 2, -1},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Tiny) f = {0};
    g_autoptr (GError) error = NULL;
    tiny_start (&f, TRUE);
    set_good (&f);
    f.roster.n_slots = cases[i].n_slots;
    f.roster.slot = cases[i].slot;
    f.roster.member = cases[i].member;
    f.roster.taken = cases[i].taken;
    f.roster.tasks = cases[i].tasks;
    f.roster.min_tasks = cases[i].min_tasks;

    MUSTER_EXPECT_NULL (join (&f, -1, &error));

    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "an invalid roster");
  }
}

MUSTER_TEST (RemoteMembership, isnt_another_slot_than_the_one_that_was_wanted)
{
  g_auto (Tiny) f = {0};
  g_autoptr (GError) error = NULL;
  tiny_start (&f, TRUE);
  set_good (&f);

  MUSTER_EXPECT_NULL (join (&f, 2, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "the slot that it grants");
}

MUSTER_TEST (RemoteMembership, needs_a_server_that_keeps_members)
{
  g_auto (Tiny) f = {0};
  g_autoptr (GError) error = NULL;
  tiny_start (&f, FALSE);

  MUSTER_EXPECT_NULL (join (&f, -1, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                      "keeps no members: start `muster serve --master=grpc://");
}
