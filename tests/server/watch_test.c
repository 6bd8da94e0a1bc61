// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/fake_clock.h"
#include "tests/server/served.h"

#include "base/unpack.h"
#include "master/lease.h"
#include "wire/proto/muster.pb-c.h"

/* The next turn in words: "ready", "missing v, w", "gate", or "error CODE". */
static char *
next_words (MusterWatch *watch, GError **error)
{
  g_auto (MusterTurn) turn = {0};
  if (!muster_watch_next (watch, &turn, NULL, error))
    return g_strdup ("error");
  if (!turn.gate_open)
    return g_strdup ("gate");
  if (turn.is_ready)
    return g_strdup ("ready");
  g_autofree char *names = turn.missing != NULL ? g_strjoinv (", ", turn.missing) : NULL;
  return g_strconcat ("missing ", names, NULL);
}

#define EXPECT_NEXT(watch, words)                                                                  \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    g_autofree char *heard_ = next_words (watch, &error_);                                         \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
    MUSTER_EXPECT_STREQ (heard_, words);                                                           \
  } while (0)

static void
expect_end (MusterWatch *watch, MusterError code)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *heard = next_words (watch, &error);
  MUSTER_EXPECT_STREQ (heard, "error");
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

static MusterWatch *
watch_ready (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterWatch *watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = NULL, .ready_op = ready_op},
      patience (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

static Muster__StatusResponse *
about (Served *f, MusterArena *arena)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  MusterRpcOptions options = {.deadline_us = patience ()};
  g_autoptr (GBytes) response = muster_rpc_client_call (f->bare, "/muster.Readiness/Status",
                                                        &request, &options, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (response == NULL)
    return NULL;
  return muster_unpack (&muster__status_response__descriptor, g_bytes_get_data (response, NULL),
                        g_bytes_get_size (response), arena, "StatusResponse", NULL);
}

MUSTER_TEST (Watch, tells_the_present_turn_at_once)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterWatch) watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);

  EXPECT_NEXT (watch, "missing v, w");
}

MUSTER_TEST (Watch, is_told_when_another_session_makes_the_model_ready)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (chief);
  MUSTER_ASSERT_NOT_NULL (worker);
  g_autoptr (MusterWatch) watch = watch_ready (worker, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  EXPECT_NEXT (watch, "missing v, w");

  MUSTER_ASSERT_TRUE (served_run (chief, "init_v", &error));
  EXPECT_NEXT (watch, "missing w");
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  EXPECT_NEXT (watch, "ready");
}

/* The same graph, but an answer of its own. */
MUSTER_TEST (Watch, of_an_isolated_session_hears_of_its_own_variables)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (GBytes) config = g_bytes_new_static ("\x78\x01", 2); /* isolate_session_state */
  g_autoptr (MusterSession) isolated =
      muster_master_create_session (f.remote, graph, config, patience (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_NOT_NULL (worker);
  g_autoptr (MusterWatch) shared = watch_ready (worker, ready_op);
  g_autoptr (MusterWatch) own = watch_ready (isolated, ready_op);
  MUSTER_ASSERT_NOT_NULL (shared);
  MUSTER_ASSERT_NOT_NULL (own);
  EXPECT_NEXT (shared, "missing v, w");
  EXPECT_NEXT (own, "missing v, w");

  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  EXPECT_NEXT (shared, "ready");
  MUSTER_ASSERT_TRUE (served_run (isolated, "init_v", &error));
  EXPECT_NEXT (own, "missing w");
  MUSTER_ASSERT_TRUE (served_run (isolated, "init", &error));
  EXPECT_NEXT (own, "ready");
}

MUSTER_TEST (Watch, is_told_of_the_gate)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = ready_op, .ready_op = NULL},
      patience (), &error);
  MUSTER_ASSERT_NO_ERROR (error);

  EXPECT_NEXT (watch, "gate");
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  EXPECT_NEXT (watch, "ready");
}

MUSTER_TEST (Watch, by_many_tells_each_of_them_each_turn_once)
{
  enum { N = 32 };
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (chief);
  MusterSession *workers[N];
  MusterWatch *watches[N];
  for (int i = 0; i < N; i++) {
    workers[i] = served_session (&f, NULL);
    watches[i] = workers[i] != NULL ? watch_ready (workers[i], ready_op) : NULL;
    MUSTER_ASSERT_NOT_NULL (watches[i]);
    EXPECT_NEXT (watches[i], "missing v, w");
  }

  MUSTER_EXPECT_TRUE (served_run (chief, "init_v", &error));
  for (int i = 0; i < N; i++)
    EXPECT_NEXT (watches[i], "missing w");
  MUSTER_EXPECT_TRUE (served_run (chief, "init_v", &error)); /* changes nothing */
  MUSTER_EXPECT_TRUE (served_run (chief, "init", &error));
  for (int i = 0; i < N; i++)
    EXPECT_NEXT (watches[i], "ready");

  for (int i = 0; i < N; i++) {
    g_object_unref (watches[i]);
    g_object_unref (workers[i]);
  }
}

MUSTER_TEST (Watch, ends_when_the_master_is_reset)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterWatch) watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  EXPECT_NEXT (watch, "ready");

  MUSTER_ASSERT_TRUE (muster_master_reset (f.remote, NULL, patience (), NULL, &error));

  expect_end (watch, MUSTER_ERROR_ABORTED);
}

/* The master is reset by somebody else in its process: the server hears of it all the same. */
MUSTER_TEST (Watch, ends_when_the_master_is_reset_behind_the_server)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterWatch) watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  EXPECT_NEXT (watch, "ready");

  MUSTER_ASSERT_TRUE (muster_master_reset (f.local, NULL, patience (), NULL, &error));

  expect_end (watch, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Watch, ends_with_its_session_while_others_go_on)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) closed = served_session (&f, &ready_op);
  g_autoptr (MusterSession) other = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (closed);
  MUSTER_ASSERT_NOT_NULL (other);
  g_autoptr (MusterWatch) ending = watch_ready (closed, ready_op);
  g_autoptr (MusterWatch) going_on = watch_ready (other, ready_op);
  MUSTER_ASSERT_NOT_NULL (ending);
  MUSTER_ASSERT_NOT_NULL (going_on);
  EXPECT_NEXT (ending, "missing v, w");
  EXPECT_NEXT (going_on, "missing v, w");

  MUSTER_ASSERT_TRUE (muster_session_close (closed, patience (), NULL, &error));
  expect_end (ending, MUSTER_ERROR_ABORTED);
  MUSTER_ASSERT_TRUE (served_run (other, "init", &error));
  EXPECT_NEXT (going_on, "ready");
}

MUSTER_TEST (Watch, of_an_unknown_session_is_aborted)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (muster_session_close (session, patience (), NULL, NULL));

  g_autoptr (MusterWatch) watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);

  expect_end (watch, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Watch, of_an_op_that_is_missing_ends_with_its_error)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = watch_ready (session, "nowhere");
  MUSTER_ASSERT_NOT_NULL (watch);

  g_autofree char *heard = next_words (watch, &error);

  MUSTER_EXPECT_STREQ (heard, "error");
  MUSTER_ASSERT_TRUE (error != NULL);
  EXPECT_SAYS (error, "nowhere");
}

MUSTER_TEST (Watch, ends_when_the_server_stops)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  EXPECT_NEXT (watch, "missing v, w");

  muster_server_stop (f.server, 10 * MUSTER_SECOND);

  expect_end (watch, MUSTER_ERROR_CANCELLED);
}

/* The server notices in its own time that a caller has gone. */
static void
expect_no_watchers (Served *f)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gint64 until = patience ();
  while (about (f, arena)->watchers > 0 && muster_clock_now_us (muster_system_clock ()) < until)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (about (f, arena)->watchers, 0);
}

MUSTER_TEST (Watch, that_is_given_up_is_forgotten)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  MusterWatch *watch = watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);
  EXPECT_NEXT (watch, "missing v, w");
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MUSTER_EXPECT_EQ (about (&f, arena)->watchers, 1);

  g_object_unref (watch);

  expect_no_watchers (&f);
}

/* Hears what comes until the watch ends. */
static void
hear_out (MusterWatch *watch, GError **error)
{
  gboolean is_over = FALSE;
  while (!is_over) {
    g_autofree char *heard = next_words (watch, error);
    is_over = g_str_equal (heard, "error");
  }
}

/* The server may hear of the end, whichever side it comes from, while it still opens the watch. */
static gpointer
open_and_end (gpointer data)
{
  Served *f = data;
  for (int i = 0; i < 40; i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *ready_op = NULL;
    g_autoptr (MusterSession) session = served_session (f, &ready_op);
    g_autoptr (MusterWatch) watch = session != NULL ? watch_ready (session, ready_op) : NULL;
    if (watch == NULL)
      return NULL;
    if (i % 2 == 0)
      continue; /* given up */
    MUSTER_EXPECT_TRUE (muster_session_close (session, patience (), NULL, NULL));
    hear_out (watch, &error);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  }
  return NULL;
}

MUSTER_TEST (Watch, may_end_while_it_is_opened)
{
  g_auto (Served) f = served_start ();
  GThread *threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("watches", open_and_end, &f);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);

  expect_no_watchers (&f);
}

/* Opens one watch after another, until the server is gone. */
typedef struct {
  MusterSession *session; /* (owned) (nullable) */
  char *ready_op;         /* (owned) */
  gint n_heard;           /* atomic */
} Opener;

static gpointer
open_until_end (gpointer data)
{
  Opener *self = data;
  g_autoptr (GError) error = NULL;
  while (error == NULL) {
    g_autoptr (MusterWatch) watch = watch_ready (self->session, self->ready_op);
    if (watch == NULL)
      break;
    g_free (next_words (watch, &error));
    g_atomic_int_inc (&self->n_heard);
  }
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_CANCELLED) ||
                      muster_error_is (error, MUSTER_ERROR_UNAVAILABLE));
  return NULL;
}

MUSTER_TEST (Watch, may_be_opened_while_the_server_stops)
{
  g_auto (Served) f = served_start ();
  Opener openers[4] = {0};
  GThread *threads[G_N_ELEMENTS (openers)];
  for (gsize i = 0; i < G_N_ELEMENTS (openers); i++) {
    openers[i].session = served_session (&f, &openers[i].ready_op);
    MUSTER_ASSERT_NOT_NULL (openers[i].session);
    threads[i] = g_thread_new ("opener", open_until_end, &openers[i]);
  }
  gint64 until = patience ();
  for (gsize i = 0; i < G_N_ELEMENTS (openers); i++)
    while (g_atomic_int_get (&openers[i].n_heard) < 5 &&
           muster_clock_now_us (muster_system_clock ()) < until)
      g_thread_yield ();

  muster_server_stop (f.server, MUSTER_SECOND);

  for (gsize i = 0; i < G_N_ELEMENTS (openers); i++) {
    g_thread_join (threads[i]);
    g_object_unref (openers[i].session);
    g_free (openers[i].ready_op);
  }
}

/* --- of a model that chiefs announce --- */

static MusterWatch *
watch_model (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterWatch *watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_op = ready_op, .model = "digits", .task = "worker:3"},
      patience (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

static MusterLease *
claim (MusterSession *session)
{
  g_autoptr (GError) error = NULL;
  MusterClaim claim = {.model = "digits", .task = "worker:0"};
  MusterLease *lease = muster_session_claim (session, &claim, NULL, patience (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

static void
announce (MusterLease *lease, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement told = MUSTER_ANNOUNCEMENT_INIT;
  told.phase = phase;
  told.step = step;
  muster_lease_announce (lease, &told, patience (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The next turn: "initialising, gate: WHY", or "training, ready". */
static char *
next_of_model (MusterWatch *watch, GError **error)
{
  g_auto (MusterTurn) turn = {0};
  if (!muster_watch_next (watch, &turn, NULL, error))
    return g_strdup ("error");
  const char *phase = turn.chief != NULL ? muster_chief_phase_name (turn.chief->phase) : "nobody";
  const char *alive = turn.chief == NULL || turn.chief->alive ? "" : " once";
  MUSTER_EXPECT_TRUE (turn.keeps_announcements);
  if (turn.is_ready)
    return g_strdup_printf ("%s%s, ready", phase, alive);
  return g_strdup_printf ("%s%s, %s", phase, alive,
                          turn.gate_open ? turn.why_not_ready : turn.why_gate);
}

/* Hears turns until one begins and ends as it should. */
static void
expect_of_model (MusterWatch *watch, const char *start, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *heard = next_of_model (watch, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (!g_str_has_prefix (heard, start) || strstr (heard, part) == NULL)
    MUSTER_EXPECT_STREQ (heard, start); /* shows both */
}

MUSTER_TEST (Watch, of_a_model_hears_of_its_chief_from_the_claim_to_the_end)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "Variables not initialized: v, w");

  g_autoptr (MusterLease) lease = claim (chief);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "the chief worker:0");
  announce (lease, MUSTER_CHIEF_INITIALISING, -1);
  expect_of_model (watch, "initialising, ", "is initialising it");
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  /* The variables have their values, but the chief isn't done. */
  announce (lease, MUSTER_CHIEF_PREPARED, -1);
  expect_of_model (watch, "prepared, ", "ready");
  announce (lease, MUSTER_CHIEF_TRAINING, 1);
  expect_of_model (watch, "training, ", "ready");
  announce (lease, MUSTER_CHIEF_TRAINING, 2); /* no news */
  announce (lease, MUSTER_CHIEF_OVER, 1000);
  expect_of_model (watch, "over, ", "at step 1000");
}

MUSTER_TEST (Watch, of_a_model_is_told_when_its_chief_dies_over_it)
{
  g_autoptr (GError) error = NULL;
  MusterServerOptions options = {.chief_lease_us = 3600 * MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error)); /* as some model before */
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "ready");
  MusterLease *lease = claim (chief);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "starting");

  g_object_unref (lease);

  expect_of_model (watch, "starting once, ", "died while starting to prepare it");
}

MUSTER_TEST (Watch, of_a_model_is_told_when_a_silent_chiefs_lease_runs_out)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  MusterServerOptions options = {.clock = MUSTER_CLOCK (clock),
                                 .chief_lease_us = 5 * MUSTER_SECOND};
  g_auto (Served) f = served_start_with (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  muster_fake_clock_set_random (clock, 0.25); /* chance is in the session's handle */
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "nobody, ", "Variables");
  g_autoptr (MusterLease) lease = claim (chief);
  MUSTER_ASSERT_NOT_NULL (lease);
  expect_of_model (watch, "starting, ", "starting");

  /* Who looks after chiefs' leases, and who looks after sessions', which last longer. */
  muster_fake_clock_wait_for_waiters (clock, 2);
  muster_fake_clock_crank (clock);

  expect_of_model (watch, "starting once, ", "died while");
}

MUSTER_TEST (Watch, of_a_model_hears_after_a_reset_of_no_phase)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = claim (chief);
  MUSTER_ASSERT_NOT_NULL (lease);
  announce (lease, MUSTER_CHIEF_TRAINING, 7);

  MUSTER_ASSERT_TRUE (muster_master_reset (f.remote, NULL, patience (), NULL, NULL));

  g_autoptr (MusterSession) worker = served_session (&f, &ready_op);
  g_autoptr (MusterWatch) watch = watch_model (worker, ready_op);
  expect_of_model (watch, "unknown, ", "Variables not initialized: v, w");
}

MUSTER_TEST (Watch, that_names_no_model_hears_the_ops_alone)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = served_session (&f, &ready_op);
  g_autoptr (MusterSession) worker = served_session (&f, NULL);
  g_autoptr (MusterLease) lease = claim (chief);
  MUSTER_ASSERT_NOT_NULL (lease);
  g_autoptr (MusterWatch) watch = watch_ready (worker, ready_op);
  EXPECT_NEXT (watch, "missing v, w");

  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));

  EXPECT_NEXT (watch, "ready");
}

MUSTER_TEST (Watch, with_a_hostile_name_is_refused)
{
  g_auto (Served) f = served_start ();
  g_autofree char *endless = g_strnfill (300, 'm');
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch =
      muster_session_watch (session, &(MusterWatchFor){.model = endless}, patience (), NULL);
  MUSTER_ASSERT_NOT_NULL (watch);

  expect_end (watch, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Status, tells_what_serves_here)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterArena) arena = muster_arena_new ();

  Muster__StatusResponse *told = about (&f, arena);

  MUSTER_ASSERT_NOT_NULL (told);
  MUSTER_EXPECT_TRUE (*told->version != '\0');
  MUSTER_EXPECT_EQ (told->sessions, 1);
  MUSTER_EXPECT_EQ (told->steps, (gint64)1);
  MUSTER_EXPECT_GT (told->uptime_us, (gint64)0);
  MUSTER_EXPECT_GT (told->memory_bytes, (gint64)1000000);
}
