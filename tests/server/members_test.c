// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "master/membership.h"
#include "ready/member_registry_state_private.h"
#include "server/core/server_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/heard.h"
#include "tests/held_port.h"
#include "tests/server/served.h"

#include <string.h>

#define N_SLOTS 4

/* A server that doesn't take anyone for silent while a test lasts. */
static Served
start_patient (void)
{
  const MusterServerOptions options = {.chief_lease_us = 3600 * MUSTER_SECOND};
  return served_start_with (NULL, &options);
}

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

/* A task of a job that needs so many. */
static MusterMembership *
join_for (MusterMaster *master, guint min_tasks)
{
  g_autoptr (GError) error = NULL;
  const MusterJoin wanted = {
      .model = "digits", .slot = -1, .n_slots = N_SLOTS, .min_tasks = min_tasks};
  MusterMembership *member = muster_master_join (master, &wanted, test_deadline (), NULL, &error);
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
  g_auto (Served) f = start_patient ();
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL);
  expect_roster (other, "0 1 of 4, no chief 0");

  g_clear_object (&one);

  expect_roster (other, "1 of 4, no chief 0");
}

MUSTER_TEST (Member, that_leaves_is_no_member_any_more)
{
  g_auto (Served) f = start_patient ();
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
  g_auto (Served) f = start_patient ();
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

static void
note_call (MusterMembership *member G_GNUC_UNUSED, gpointer calls)
{
  g_async_queue_push (calls, GINT_TO_POINTER (1));
}

MUSTER_TEST (Member, calls_its_listener_for_each_roster)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GAsyncQueue) calls = g_async_queue_new ();
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  MUSTER_ASSERT_NOT_NULL (one);
  muster_membership_set_listener (one, note_call, g_async_queue_ref (calls),
                                  (GDestroyNotify)g_async_queue_unref);

  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");

  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (calls, 30 * MUSTER_SECOND) != NULL);
}

/* --- a server that goes and comes --- */

MUSTER_TEST (Member, joins_a_restarted_server_again_in_its_slot)
{
  g_autofree char *address = NULL;
  g_autoptr (GSocket) held = test_hold_port (&address);
  g_auto (Served) f = served_start_at (address);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) member = join_slot (f.remote, "worker:0", 2, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterRoster) before = muster_membership_roster (member);
  muster_server_free (f.server);
  f.server = muster_server_new (f.local, NULL);
  MUSTER_ASSERT_TRUE (muster_server_listen (f.server, address, &error) != 0);

  muster_server_start (f.server);

  MUSTER_EXPECT_TRUE (
      muster_membership_wait (member, before->version, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterRoster) after = muster_membership_roster (member);
  MUSTER_EXPECT_EQ (before->n_joins, 1u);
  MUSTER_EXPECT_EQ (after->n_joins, 2u);
  MUSTER_EXPECT_TRUE (muster_roster_has (after, 2));
  MUSTER_EXPECT_EQ (muster_membership_slot (member), 2u);
}

MUSTER_TEST (Member, is_lost_where_another_has_its_slot_when_the_server_is_back)
{
  g_autofree char *address = NULL;
  g_autoptr (GSocket) held = test_hold_port (&address);
  g_auto (Served) f = served_start_at (address);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) member = join (f.remote, "worker:0");
  MUSTER_ASSERT_NOT_NULL (member);
  muster_server_free (f.server);
  f.server = muster_server_new (f.local, NULL);
  const MusterMemberRequest usurper = {
      .model = "digits", .task = "usurper", .who = "", .slot = -1, .n_slots = N_SLOTS};
  guint slot;
  MUSTER_ASSERT_TRUE (muster_member_registry_join (f.server->members, &usurper, &slot, &error) !=
                      0);
  MUSTER_ASSERT_TRUE (muster_server_listen (f.server, address, &error) != 0);

  muster_server_start (f.server);

  MUSTER_EXPECT_FALSE (
      muster_membership_wait (member, G_MAXUINT64, test_deadline (), NULL, &error));
  MUSTER_EXPECT_SAYS (
      error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
      "slot 0 of 'digits' is lost: slot 0 of 'digits' has a living member, usurper");
}

MUSTER_TEST (Member, that_is_silent_for_a_lease_loses_its_slot)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  const MusterServerOptions options = {.clock = MUSTER_CLOCK (clock)};
  muster_fake_clock_hold (clock);
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) member = join (f.remote, "worker:0");
  MUSTER_ASSERT_NOT_NULL (member);

  for (guint i = 0; i < 100 && muster_membership_check (member, NULL); i++) {
    muster_fake_clock_wait_for_waiters (clock, 1);
    muster_fake_clock_crank (clock); /* the server's time passes, and the client's hardly does */
    (void)muster_membership_wait (member, G_MAXUINT64, test_deadline_in (50 * MUSTER_MILLISECOND),
                                  NULL, NULL);
  }

  MUSTER_EXPECT_FALSE (muster_membership_check (member, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the server heard nothing of it for 15.0 s");
}

MUSTER_TEST (Member, stays_one_when_the_master_is_reset)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  MUSTER_ASSERT_NOT_NULL (one);

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  expect_roster (other, "0 1 of 4, no chief 0");
}

MUSTER_TEST (Member, joins_a_gateway_as_it_joins_a_server)
{
  g_auto (Served) behind = served_start ();
  g_auto (Served) f = served_start_over (behind.remote);
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL && session != NULL);

  g_autoptr (MusterLease) lease = served_claim (session, NULL);

  expect_roster (one, "0 1 of 4, chief 1");
}

MUSTER_TEST (Member, is_refused_by_a_master_that_keeps_none)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  MUSTER_EXPECT_NULL (join_slot (local, "worker:0", -1, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                      "'local' keeps no members; start a server with `muster serve");
}

/* --- one that comes back as its stream ends --- */

static MusterRpcStream *
join_as (Served *f, guint64 member)
{
  g_autoptr (GError) error = NULL;
  Muster__JoinRequest request = MUSTER__JOIN_REQUEST__INIT;
  request.model = (char *)"digits";
  request.n_slots = N_SLOTS;
  request.member = member;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  MusterRpcStream *stream =
      muster_rpc_client_open (f->bare, "/muster.Readiness/Join", &rope, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

/* The number that it is granted; 0: none. */
static guint64
read_grant (MusterRpcStream *stream)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GBytes) bytes = muster_rpc_stream_next_until (stream, test_deadline (), NULL, &error);
  const Muster__Roster *roster =
      bytes == NULL ? NULL
                    : muster_unpack (&muster__roster__descriptor, g_bytes_get_data (bytes, NULL),
                                     g_bytes_get_size (bytes), arena, "roster", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return roster != NULL ? roster->member : 0;
}

static gboolean
report_as (Served *f, guint64 member)
{
  g_autoptr (GError) error = NULL;
  Muster__MemberReport report = MUSTER__MEMBER_REPORT__INIT;
  report.member = member;
  g_autoptr (GBytes) answer =
      served_ask (f, "/muster.Readiness/Report", &report.base, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return answer != NULL;
}

/* The server hears of both at once. */
MUSTER_TEST (Member, that_joins_again_as_its_stream_ends_is_a_member)
{
  g_auto (Served) f = start_patient ();
  g_autoptr (MusterRpcStream) stream = join_as (&f, 0);
  guint64 member = read_grant (stream);
  for (int i = 0; i < 500 && member != 0; i++) {
    g_mutex_lock (&f.server->members->lock);
    muster_rpc_stream_free (g_steal_pointer (&stream));
    stream = join_as (&f, member);
    g_usleep ((gulong)(i % 50) * 10);
    g_mutex_unlock (&f.server->members->lock);
    member = read_grant (stream);
    MUSTER_EXPECT_TRUE (report_as (&f, member));
  }
}

/* --- one that doesn't read --- */

/* So that their rosters don't fit into the buffers on the way, nor among those that the client
 * reads ahead. */
#define MANY    20000
#define CHANGES 600

/* Adds members without processes. */
static void
add_members (Served *f, guint n)
{
  const MusterMemberRequest request = {
      .model = "crowd", .task = "", .who = "", .slot = -1, .n_slots = MUSTER_MAX_SLOTS};
  guint slot;
  for (guint i = 0; i < n; i++)
    MUSTER_EXPECT_TRUE (muster_member_registry_join (f->server->members, &request, &slot, NULL) !=
                        0);
}

static MusterRpcStream *
join_bare (Served *f)
{
  g_autoptr (GError) error = NULL;
  Muster__JoinRequest request = MUSTER__JOIN_REQUEST__INIT;
  request.model = (char *)"crowd";
  request.slot = -1;
  request.n_slots = MUSTER_MAX_SLOTS;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  /* It is open for long: all changes come before it is read. */
  MusterRpcOptions options = {.deadline_us = test_deadline_in (240 * MUSTER_SECOND)};
  MusterRpcStream *stream =
      muster_rpc_client_open (f->bare, "/muster.Readiness/Join", &rope, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

static void
expect_members (MusterMembership *member, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRoster) roster = muster_membership_roster (member);
  while (roster->n_members < n) {
    if (!muster_membership_wait (member, roster->version, test_deadline (), NULL, &error)) {
      MUSTER_FAIL ("heard of %d members: %s", (int)roster->n_members, error->message);
      return;
    }
    muster_roster_free (roster);
    roster = muster_membership_roster (member);
  }
}

/* Reads rosters until one with n members; the number of those with at least as many as counted. */
static guint
read_until (MusterRpcStream *stream, gsize counted, gsize n)
{
  guint n_read = 0;
  for (gsize n_members = 0; n_members < n; n_read += n_members >= counted) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterArena) arena = muster_arena_new ();
    g_autoptr (GBytes) bytes =
        muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
    const Muster__Roster *roster =
        bytes == NULL ? NULL
                      : muster_unpack (&muster__roster__descriptor, g_bytes_get_data (bytes, NULL),
                                       g_bytes_get_size (bytes), arena, "roster", &error);
    MUSTER_EXPECT_NO_ERROR (error);
    if (roster == NULL)
      return n_read;
    n_members = roster->n_taken;
  }
  return n_read;
}

MUSTER_TEST (Member, that_doesnt_read_is_told_few_of_many_rosters_and_the_last)
{
  g_auto (Served) f = start_patient ();
  g_autoptr (GError) error = NULL;
  const MusterJoin wanted = {.model = "crowd", .slot = -1, .n_slots = MUSTER_MAX_SLOTS};
  g_autoptr (MusterMembership) fast =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterRpcStream) slow = join_bare (&f);
  MUSTER_ASSERT_NOT_NULL (slow);
  expect_members (fast, 2);

  add_members (&f, MANY);
  for (gsize i = 0; i < CHANGES; i++) {
    add_members (&f, 1);
    expect_members (fast, 2 + MANY + i + 1); /* each has been sent */
  }

  MUSTER_EXPECT_LT (read_until (slow, 2 + MANY, 2 + MANY + CHANGES), CHANGES / 2);
}

/* --- what others see --- */

/* A call of Status that waits for other than `after` changes. */
typedef struct {
  Served *f;
  gint64 after;
} Looking;

static gpointer
look_for_change (gpointer data)
{
  const Looking *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__StatusRequest request = MUSTER__STATUS_REQUEST__INIT;
  request.after = self->after;
  request.wait_us = 60 * MUSTER_SECOND;
  g_autoptr (GBytes) answer =
      served_ask (self->f, "/muster.Readiness/Status", &request.base, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (answer == NULL)
    return NULL;
  const Muster__StatusResponse *status =
      muster_unpack (&muster__status_response__descriptor, g_bytes_get_data (answer, NULL),
                     g_bytes_get_size (answer), arena, "status", &error);
  MUSTER_EXPECT_TRUE (status != NULL && status->changes > self->after);
  return GINT_TO_POINTER (status != NULL ? (int)status->n_jobs + 1 : 0);
}

/* Waits until so many calls are open there. */
static void
await_calls (Served *f, guint n)
{
  for (gint64 until_us = test_deadline (); muster_rpc_server_n_calls (f->server->rpc) != n &&
                                           muster_clock_now_us (muster_system_clock ()) < until_us;)
    g_thread_yield ();
}

MUSTER_TEST (Status, that_waits_for_a_change_is_answered_when_a_task_joins)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *before = served_status (&f, arena);
  MUSTER_ASSERT_NOT_NULL (before);
  Looking looking = {&f, before->changes};
  await_calls (&f, 0);
  GThread *thread = g_thread_new ("looks", look_for_change, &looking);
  await_calls (&f, 1);

  g_autoptr (MusterMembership) member = join (f.remote, "worker:0");

  MUSTER_EXPECT_EQ (GPOINTER_TO_INT (g_thread_join (thread)), 2);
}

MUSTER_TEST (Status, that_waits_is_answered_when_the_server_stops)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *before = served_status (&f, arena);
  MUSTER_ASSERT_NOT_NULL (before);
  Muster__StatusRequest request = MUSTER__STATUS_REQUEST__INIT;
  request.after = before->changes;
  request.wait_us = G_MAXINT64;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  await_calls (&f, 0);
  g_autoptr (MusterRpcStream) waiting =
      muster_rpc_client_open (f.bare, "/muster.Readiness/Status", &rope, &options, NULL);
  await_calls (&f, 1);

  muster_server_stop (f.server, 30 * MUSTER_SECOND);

  g_autoptr (GBytes) answer =
      muster_rpc_stream_next_until (waiting, MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_EXPECT_TRUE (answer != NULL);
}

/* The only job's; in arena. */
static const Muster__Members *
job_of (Served *f, MusterArena *arena)
{
  const Muster__StatusResponse *status = served_status (f, arena);
  MUSTER_EXPECT_TRUE (status != NULL && status->n_jobs == 1);
  return status != NULL && status->n_jobs == 1 ? status->jobs[0] : NULL;
}

MUSTER_TEST (Member, is_shown_with_its_role_and_its_batches)
{
  g_auto (Served) f = served_start ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL && session != NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);

  muster_membership_report (other, 7);

  const Muster__Members *job = job_of (&f, arena);
  while (job != NULL && job->n_members == 2 && job->members[1]->batches == 0)
    job = job_of (&f, arena); /* at most as long as a test may last */
  MUSTER_ASSERT_TRUE (job != NULL && job->n_members == 2);
  MUSTER_EXPECT_STREQ (job->model, "digits");
  MUSTER_EXPECT_EQ (job->n_slots, N_SLOTS);
  MUSTER_EXPECT_STREQ (job->members[0]->task, "worker:0");
  MUSTER_EXPECT_TRUE (job->members[0]->chief);
  MUSTER_EXPECT_FALSE (job->members[1]->chief);
  MUSTER_EXPECT_EQ (job->members[1]->batches, 7);
}

MUSTER_TEST (Member, of_a_job_with_too_few_tasks_is_shown_waiting_until_it_is_over)
{
  g_auto (Served) f = start_patient ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMembership) one = join_for (f.remote, 2);
  const Muster__Members *job = job_of (&f, arena);
  MUSTER_ASSERT_NOT_NULL (job);
  MUSTER_EXPECT_EQ (job->min_tasks, 2);
  MUSTER_EXPECT_TRUE (job->waiting);

  g_autoptr (MusterMembership) other = join_for (f.remote, 0);

  expect_roster (one, "0 1 of 4, no chief 0");
  g_autoptr (MusterRoster) roster = muster_membership_roster (one);
  MUSTER_EXPECT_EQ (roster->n_tasks, 2u);
  MUSTER_EXPECT_EQ (roster->min_tasks, 2u);
  job = job_of (&f, arena);
  MUSTER_EXPECT_FALSE (job->waiting);
  g_clear_object (&other);
  expect_roster (one, "0 of 4, no chief 0");
  MUSTER_EXPECT_TRUE (job_of (&f, arena)->waiting);
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = served_claim (session, NULL);
  MUSTER_EXPECT_TRUE (
      muster_lease_announce_phase (lease, MUSTER_CHIEF_OVER, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (job_of (&f, arena)->waiting);
}

MUSTER_TEST (Member, is_in_the_log_when_it_joins_and_when_it_leaves)
{
  g_auto (Served) f = start_patient ();
  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  MUSTER_EXPECT_NULL (join_slot (f.remote, "worker:2", 1, NULL));

  g_clear_object (&one);
  expect_roster (other, "1 of 4, no chief 0");

  MUSTER_EXPECT_EQ (heard_count ("member-joined", "worker:0 joined the job of 'digits' in slot 0"),
                    1u);
  MUSTER_EXPECT_EQ (
      heard_count ("join-refused", "refused a member: slot 1 of 'digits' has a living*"), 1u);
  MUSTER_EXPECT_EQ (
      heard_count ("member-left", "worker:0 is gone from slot 0 of 'digits': its process ended*"),
      1u);
  g_autofree char *reason = heard_field ("member-left", "MUSTER_REASON");
  MUSTER_EXPECT_STREQ (reason, "ended");
  heard_end ();
}

MUSTER_TEST (Member, that_takes_a_slot_over_is_shown_as_the_task_that_it_is)
{
  g_auto (Served) f = start_patient ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  heard_begin (G_LOG_LEVEL_INFO);
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  const Muster__StatusResponse *before = served_status (&f, arena);
  const MusterJoin wanted = {
      .model = "digits", .task = "worker:0", .slot = 2, .n_slots = N_SLOTS, .is_takeover = TRUE};
  g_autoptr (MusterMembership) taken =
      muster_master_join (f.remote, &wanted, test_deadline (), NULL, NULL);
  MUSTER_ASSERT_TRUE (one != NULL && before != NULL && taken != NULL);
  expect_roster (one, "0 2 of 4, no chief 0");
  const Muster__Members *during = job_of (&f, arena);

  MUSTER_EXPECT_TRUE (muster_membership_leave (taken, test_deadline (), NULL, NULL));
  expect_roster (one, "0 of 4, no chief 0");
  const Muster__StatusResponse *after = served_status (&f, arena);

  MUSTER_ASSERT_TRUE (during != NULL && after != NULL && after->n_jobs == 1);
  MUSTER_EXPECT_EQ (during->n, 1);
  MUSTER_EXPECT_EQ (during->n_members, 1u);
  MUSTER_EXPECT_EQ (after->jobs[0]->n_left, 0u);
  MUSTER_EXPECT_EQ (after->changes, before->changes);
  MUSTER_EXPECT_EQ (
      heard_count ("slot-taken-over", "worker:0 takes over slot 2 of 'digits' for one step"), 1u);
  MUSTER_EXPECT_EQ (heard_count ("member-joined", "*"), 1u);
  MUSTER_EXPECT_EQ (heard_count ("member-left", "*"), 0u);
  heard_end ();
}

MUSTER_TEST (Member, is_shown_after_it_left_with_the_reason)
{
  g_auto (Served) f = start_patient ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (MusterMembership) one = join (f.remote, "worker:0");
  g_autoptr (MusterMembership) other = join (f.remote, "worker:1");
  g_autoptr (MusterMembership) last = join (f.remote, "worker:2");
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL && last != NULL);

  MUSTER_EXPECT_TRUE (muster_membership_leave (one, test_deadline (), NULL, NULL));
  g_clear_object (&other);

  expect_roster (last, "2 of 4, no chief 0");
  const Muster__Members *job = job_of (&f, arena);
  MUSTER_ASSERT_TRUE (job != NULL && job->n_members == 1 && job->n_left == 2);
  const gsize of_one = strcmp (job->left[0]->task, "worker:0") == 0 ? 0 : 1;
  MUSTER_EXPECT_STREQ (job->left[of_one]->why, "left");
  MUSTER_EXPECT_STREQ (job->left[1 - of_one]->task, "worker:1");
  MUSTER_EXPECT_STREQ (job->left[1 - of_one]->why, "its process ended, or its connection broke");
}
