// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_reaper.h"
#include "tests/doubles/fake_clock.h"
#include "tests/doubles/heard.h"
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "engine/session/local_master.h"

/* --- the table and its collector alone, on a clock that is theirs --- */

typedef struct {
  MusterFakeClock *clock;      /* (owned) */
  MusterStuckMaster *master;   /* (owned) */
  MusterLimits *limits;        /* (owned) */
  MusterSessions *sessions;    /* (owned) */
  MusterSessionReaper *reaper; /* (owned) */
} Fixture;

static void
close_all (GPtrArray *expired, gpointer data G_GNUC_UNUSED)
{
  for (guint i = 0; i < expired->len; i++)
    muster_session_close_quietly (((MusterServed *)expired->pdata[i])->session);
}

static Fixture
fixture_start (void)
{
  Fixture f = {.clock = muster_fake_clock_new (), .master = stuck_master_new ()};
  MusterClock *clock = MUSTER_CLOCK (f.clock);
  muster_fake_clock_hold (f.clock);
  f.limits = muster_limits_new (&(MusterServerLimits){0});
  f.sessions = muster_sessions_new (clock, f.limits);
  f.reaper = muster_session_reaper_new (f.sessions, clock, close_all, NULL);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  muster_session_reaper_free (f->reaper);
  muster_sessions_free (f->sessions);
  muster_limits_free (f->limits);
  g_object_unref (f->master);
  g_object_unref (f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* A random handle is the same each time while chance doesn't change. */
static char *
add (Fixture *f, double chance, gint64 lease_us)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (MusterSession) session = muster_master_create_session (
      MUSTER_MASTER (f->master), graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_limits_take (f->limits, MUSTER_LIMIT_SESSIONS, &error));
  muster_fake_clock_set_random (f->clock, chance);
  g_autoptr (MusterServed) served = muster_sessions_add (f->sessions, session, 0, 0, lease_us);
  if (lease_us > 0)
    muster_session_reaper_watch (f->reaper, lease_us);
  return g_strdup (served->handle);
}

/* Lets the collector look again, at the next instant at which it wants to. */
static void
next_poll (Fixture *f)
{
  muster_fake_clock_wait_for_waiters (f->clock, 1);
  muster_fake_clock_crank (f->clock);
  muster_fake_clock_wait_for_waiters (f->clock, 1);
}

static gboolean
is_there (Fixture *f, const char *handle)
{
  g_autoptr (MusterServed) served = muster_sessions_find (f->sessions, handle, NULL);
  return served != NULL;
}

MUSTER_TEST (Leases, end_a_session_that_nobody_renews)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *handle = add (&f, 0.1, 10 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));

  next_poll (&f);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
  next_poll (&f);

  MUSTER_EXPECT_FALSE (is_there (&f, handle));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 10 * MUSTER_SECOND);
  MUSTER_EXPECT_EQ (muster_session_reaper_n_expired (f.reaper), 1u);
  MusterLimitUse usage;
  muster_limits_read (f.limits, MUSTER_LIMIT_SESSIONS, &usage);
  MUSTER_EXPECT_EQ (usage.used, (guint64)0);
}

MUSTER_TEST (Leases, begin_anew_when_they_are_renewed)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *handle = add (&f, 0.1, 10 * MUSTER_SECOND);
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  muster_fake_clock_pass (f.clock, 6 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (
      muster_sessions_renew (f.sessions, handle, muster_clock_now_us (MUSTER_CLOCK (f.clock))));

  next_poll (&f);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 9 * MUSTER_SECOND);
  next_poll (&f);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 15 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
  next_poll (&f);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 16 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (is_there (&f, handle));
}

MUSTER_TEST (Leases, last_as_long_as_a_step_runs_and_then_once_more)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *handle = add (&f, 0.1, 10 * MUSTER_SECOND);
  g_autoptr (MusterServed) used = muster_sessions_begin_call (f.sessions, handle, NULL);
  MUSTER_ASSERT_NOT_NULL (used);

  for (int i = 0; i < 20; i++)
    next_poll (&f);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 180 * MUSTER_SECOND);
  muster_fake_clock_pass (f.clock, 5 * MUSTER_SECOND);
  muster_served_end_call (used, muster_clock_now_us (MUSTER_CLOCK (f.clock)));
  for (int i = 0; i < 2; i++) { /* at 189 and 194 seconds */
    next_poll (&f);
    MUSTER_EXPECT_TRUE (is_there (&f, handle));
  }
  next_poll (&f);

  MUSTER_EXPECT_FALSE (is_there (&f, handle));
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 195 * MUSTER_SECOND);
}

/* It reads what has come in the meantime only after its clock. */
MUSTER_TEST (Leases, do_not_end_because_the_server_slept)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *handle = add (&f, 0.1, 10 * MUSTER_SECOND);
  muster_fake_clock_wait_for_waiters (f.clock, 1);

  muster_fake_clock_pass (f.clock, 100 * MUSTER_SECOND);
  next_poll (&f);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 100 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
  MUSTER_EXPECT_TRUE (
      muster_sessions_renew (f.sessions, handle, muster_clock_now_us (MUSTER_CLOCK (f.clock))));
  next_poll (&f);

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 101 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
}

MUSTER_TEST (Leases, are_each_sessions_own)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *lasting = add (&f, 0.1, 0);
  g_autofree char *slow = add (&f, 0.2, 3600 * MUSTER_SECOND);
  muster_fake_clock_wait_for_waiters (f.clock, 1);
  g_autofree char *quick = add (&f, 0.3, 2 * MUSTER_SECOND); /* cuts the collector's sleep short */

  /* Its sleep may still be the long one: cranked, that would pass an hour. */
  gint64 until_us = test_deadline ();
  while (is_there (&f, quick) && muster_clock_now_us (muster_system_clock ()) < until_us) {
    if (muster_fake_clock_n_waits (f.clock) >= 2)
      next_poll (&f);
    g_thread_yield ();
  }
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 2 * MUSTER_SECOND);
  for (int i = 0; i < 2; i++) {
    MUSTER_EXPECT_TRUE (is_there (&f, slow));
    next_poll (&f);
  }

  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (f.clock), 3600 * MUSTER_SECOND);
  MUSTER_EXPECT_FALSE (is_there (&f, slow));
  MUSTER_EXPECT_TRUE (is_there (&f, lasting));
}

MUSTER_TEST (Leases, cost_nothing_where_there_are_none)
{
  g_auto (Fixture) f = fixture_start ();
  g_autofree char *handle = add (&f, 0.1, 0);

  MUSTER_EXPECT_EQ (muster_fake_clock_n_waits (f.clock), 0);
  MUSTER_EXPECT_TRUE (is_there (&f, handle));
}

/* --- on a server --- */

typedef struct {
  MusterFakeClock *clock; /* (owned) */
  Served served;
} OnServer;

static OnServer
on_server (gint64 idle_session_us)
{
  OnServer f = {.clock = muster_fake_clock_new ()};
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  const MusterServerOptions options = {
      .clock = MUSTER_CLOCK (f.clock),
      .idle_session_us = idle_session_us,
  };
  muster_fake_clock_hold (f.clock);
  f.served = served_start_with (local, &options);
  return f;
}

static void
on_server_clear (OnServer *f)
{
  served_clear (&f->served);
  g_object_unref (f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (OnServer, on_server_clear)

/* Lets the server's time go on until it has but n sessions, and tells how long that took. */
static gint64
seconds_until_left (OnServer *f, int n)
{
  gint64 until_us = test_deadline ();
  int left = -1;
  while (left != n && muster_clock_now_us (muster_system_clock ()) < until_us) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const Muster__StatusResponse *status = served_status (&f->served, arena);
    left = status != NULL ? status->sessions : n;
    if (left != n)
      muster_fake_clock_crank (f->clock);
  }
  return muster_fake_clock_elapsed_us (f->clock) / MUSTER_SECOND;
}

MUSTER_TEST (Leases, are_asked_for_by_a_header_and_end_in_tensorflows_words)
{
  g_autoptr (GError) error = NULL;
  g_auto (OnServer) f = on_server (0);
  g_autofree char *handle = served_bare_session (&f.served, "30", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *gone = served_renew (&f.served, handle);
  MUSTER_EXPECT_NULL (gone);

  heard_begin (G_LOG_LEVEL_INFO);
  MUSTER_EXPECT_EQ (seconds_until_left (&f, 0), 30);
  MUSTER_EXPECT_TRUE (heard_wait ("session-reaped", NULL));
  g_autofree char *reaped = heard_field ("session-reaped", "MUSTER_SESSION");
  MUSTER_EXPECT_STREQ (reaped, handle);
  heard_end ();

  MUSTER_EXPECT_FALSE (served_bare_step (&f.served, handle, "none", &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                      "is not found. Possibly, this master has restarted.");
  g_autofree char *gone_by_now = served_renew (&f.served, handle);
  MUSTER_EXPECT_STREQ (gone_by_now, handle);
}

MUSTER_TEST (Leases, end_the_watches_of_a_session)
{
  g_autoptr (GError) error = NULL;
  g_auto (OnServer) f = on_server (30 * MUSTER_SECOND);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f.served, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_op = ready_op}, test_deadline (), &error);
  g_auto (MusterReadiness) readiness = {0};
  MUSTER_ASSERT_TRUE (watch != NULL && muster_watch_next (watch, &readiness, NULL, &error));

  (void)seconds_until_left (&f, 0);

  g_auto (MusterReadiness) none = {0};
  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &none, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Leases, of_an_unmodified_client_never_run_out)
{
  g_autoptr (GError) error = NULL;
  g_auto (OnServer) f = on_server (0);
  g_autofree char *plain = served_bare_session (&f.served, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_fake_clock_set_random (f.clock, 0.1); /* else it would be the same handle */
  g_autofree char *leased = served_bare_session (&f.served, "1", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  muster_fake_clock_pass (f.clock, 365 * 24 * 3600 * MUSTER_SECOND);
  (void)seconds_until_left (&f, 1);

  g_autofree char *gone = served_renew (&f.served, plain);
  MUSTER_EXPECT_NULL (gone);
  g_autofree char *leased_gone = served_renew (&f.served, leased);
  MUSTER_EXPECT_STREQ (leased_gone, leased);
}

MUSTER_TEST (Leases, that_make_no_sense_are_refused)
{
  static const char *const leases[] = {"0", "3601", "-1", "1.5", "soon", "99999999999999999999"};
  g_auto (Served) f = served_start ();
  for (guint i = 0; i < G_N_ELEMENTS (leases); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *handle = served_bare_session (&f, leases[i], &error);
    MUSTER_EXPECT_NULL (handle);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "muster-lease");
  }
}

MUSTER_TEST (Leases, are_renewed_in_requests_of_some_size)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  Muster__RenewRequest request = MUSTER__RENEW_REQUEST__INIT;
  g_autofree char *handle = g_strnfill (5 << 20, 'x');
  request.session_handle = &handle;
  request.n_session_handle = 1;

  g_autoptr (GBytes) answer =
      served_ask (&f, "/muster.Readiness/Renew", &request.base, NULL, &error);

  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
