// SPDX-License-Identifier: Apache-2.0
#include "ready/backoff.h"
#include "tests/server/served.h"

/* The next turn in words: "ready", "missing v, w", "gate", or "error CODE". */
static char *
next_words (MusterWatch *watch, GError **error)
{
  g_auto (MusterReadiness) readiness = {0};
  if (!muster_watch_next (watch, &readiness, NULL, error))
    return g_strdup ("error");
  if (!readiness.gate_open)
    return g_strdup ("gate");
  if (readiness.is_ready)
    return g_strdup ("ready");
  g_autofree char *names = readiness.missing != NULL ? g_strjoinv (", ", readiness.missing) : NULL;
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

/* A server, and a session there that watches whether its variables have values. */
typedef struct {
  Served served;
  char *ready_op;
  MusterSession *session;
  MusterWatch *watch;
} Watched;

static void
watched_clear (Watched *self)
{
  g_clear_object (&self->watch);
  g_clear_object (&self->session);
  g_clear_pointer (&self->ready_op, g_free);
  served_clear (&self->served);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Watched, watched_clear)

static Watched
watched_start (void)
{
  Watched self = {.served = served_start ()};
  self.session = served_session (&self.served, &self.ready_op);
  self.watch = served_watch_ready (self.session, self.ready_op);
  EXPECT_NEXT (self.watch, "missing v, w");
  return self;
}

MUSTER_TEST (Watch, reports_the_present_readiness_at_once)
{
  g_auto (Watched) w = watched_start ();
}

/* A client's deadline passes while the server has nothing to say. */
MUSTER_TEST (Watch, that_sees_no_change_before_its_deadline_blames_no_silence)
{
  g_auto (Watched) w = watched_start ();
  g_autoptr (GError) error = NULL;
  const MusterWatchFor what = {.ready_op = w.ready_op};
  g_autoptr (MusterWatch) brief =
      muster_session_watch (w.session, &what, test_deadline_in (3 * MUSTER_SECOND), &error);
  MUSTER_ASSERT_NOT_NULL (brief);
  EXPECT_NEXT (brief, "missing v, w");

  g_autofree char *heard = next_words (brief, &error);
  MUSTER_EXPECT_STREQ (heard, "error");
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "didn't change");
}

MUSTER_TEST (Watch, of_an_op_whose_name_would_fill_the_memory_is_refused)
{
  g_auto (Watched) w = watched_start ();
  g_autoptr (GError) error = NULL;
  g_autofree char *endless = g_strnfill (100000, 'w');
  const MusterWatchFor what = {.ready_op = endless};
  g_autoptr (MusterWatch) watch = muster_session_watch (w.session, &what, test_deadline (), &error);
  MUSTER_ASSERT_NOT_NULL (watch);

  g_autofree char *heard = next_words (watch, &error);
  MUSTER_EXPECT_STREQ (heard, "error");
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "ready op");
}

MUSTER_TEST (Watch, is_notified_when_another_session_makes_the_model_ready)
{
  g_autoptr (GError) error = NULL;
  g_auto (Watched) w = watched_start ();
  g_autoptr (MusterSession) chief = served_session (&w.served, NULL);
  MUSTER_ASSERT_NOT_NULL (chief);

  MUSTER_ASSERT_TRUE (served_run (chief, "init_v", &error));
  EXPECT_NEXT (w.watch, "missing w");
  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  EXPECT_NEXT (w.watch, "ready");
}

/* The same graph, but an answer of its own. */
MUSTER_TEST (Watch, of_an_isolated_session_receives_its_own_variables)
{
  g_autoptr (GError) error = NULL;
  g_auto (Watched) shared = watched_start ();
  g_autoptr (MusterSession) chief = served_session (&shared.served, NULL);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (GBytes) config = g_bytes_new_static ("\x78\x01", 2); /* isolate_session_state */
  g_autoptr (MusterSession) isolated = muster_master_create_session (
      shared.served.remote, graph, config, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterWatch) own = served_watch_ready (isolated, shared.ready_op);
  MUSTER_ASSERT_NOT_NULL (own);
  EXPECT_NEXT (own, "missing v, w");

  MUSTER_ASSERT_TRUE (served_run (chief, "init", &error));
  EXPECT_NEXT (shared.watch, "ready");
  MUSTER_ASSERT_TRUE (served_run (isolated, "init_v", &error));
  EXPECT_NEXT (own, "missing w");
  MUSTER_ASSERT_TRUE (served_run (isolated, "init", &error));
  EXPECT_NEXT (own, "ready");
}

MUSTER_TEST (Watch, is_notified_of_the_gate)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      session, &(MusterWatchFor){.ready_for_local_init_op = ready_op, .ready_op = NULL},
      test_deadline (), &error);
  MUSTER_ASSERT_NO_ERROR (error);

  EXPECT_NEXT (watch, "gate");
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  EXPECT_NEXT (watch, "ready");
}

MUSTER_TEST (Watch, by_many_reports_each_readiness_once_to_each)
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
    watches[i] = workers[i] != NULL ? served_watch_ready (workers[i], ready_op) : NULL;
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

static void
expect_end_by_reset_of (Watched *w, MusterMaster *master)
{
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (served_run (w->session, "init", &error));
  EXPECT_NEXT (w->watch, "ready");

  MUSTER_ASSERT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, &error));

  expect_end (w->watch, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Watch, ends_when_the_master_is_reset)
{
  g_auto (Watched) w = watched_start ();
  expect_end_by_reset_of (&w, w.served.remote);
}

MUSTER_TEST (Watch, is_notified_whether_a_reset_has_ended_it)
{
  const gboolean is_reset[] = {TRUE, FALSE};
  for (gsize i = 0; i < G_N_ELEMENTS (is_reset); i++) {
    g_autoptr (GError) error = NULL;
    g_auto (Watched) w = watched_start ();
    MUSTER_TRACE ("%s", is_reset[i] ? "reset" : "closed");

    if (is_reset[i])
      MUSTER_ASSERT_TRUE (
          muster_master_reset (w.served.remote, NULL, test_deadline (), NULL, &error));
    else
      MUSTER_ASSERT_TRUE (muster_session_close (w.session, test_deadline (), NULL, &error));

    g_autofree char *heard = next_words (w.watch, &error);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
    MUSTER_EXPECT_EQ (muster_failure_is_reset (error), is_reset[i]);
  }
}

/* The master is reset by somebody else in its process: the server hears of it all the same. */
MUSTER_TEST (Watch, ends_when_the_master_is_reset_behind_the_server)
{
  g_auto (Watched) w = watched_start ();
  expect_end_by_reset_of (&w, w.served.local);
}

MUSTER_TEST (Watch, ends_with_its_session_while_others_go_on)
{
  g_autoptr (GError) error = NULL;
  g_auto (Watched) closed = watched_start ();
  g_autoptr (MusterSession) other = served_session (&closed.served, NULL);
  MUSTER_ASSERT_NOT_NULL (other);
  g_autoptr (MusterWatch) going_on = served_watch_ready (other, closed.ready_op);
  MUSTER_ASSERT_NOT_NULL (going_on);
  EXPECT_NEXT (going_on, "missing v, w");

  MUSTER_ASSERT_TRUE (muster_session_close (closed.session, test_deadline (), NULL, &error));
  expect_end (closed.watch, MUSTER_ERROR_ABORTED);
  MUSTER_ASSERT_TRUE (served_run (other, "init", &error));
  EXPECT_NEXT (going_on, "ready");
}

MUSTER_TEST (Watch, of_an_unknown_session_is_aborted)
{
  g_auto (Served) f = served_start ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) session = served_session (&f, &ready_op);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (muster_session_close (session, test_deadline (), NULL, NULL));

  g_autoptr (MusterWatch) watch = served_watch_ready (session, ready_op);
  MUSTER_ASSERT_NOT_NULL (watch);

  expect_end (watch, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Watch, of_an_op_that_is_missing_ends_with_its_error)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autoptr (MusterWatch) watch = served_watch_ready (session, "nowhere");
  MUSTER_ASSERT_NOT_NULL (watch);

  g_autofree char *heard = next_words (watch, &error);

  MUSTER_EXPECT_STREQ (heard, "error");
  MUSTER_ASSERT_TRUE (error != NULL);
  EXPECT_SAYS (error, "nowhere");
}

MUSTER_TEST (Watch, ends_when_the_server_stops)
{
  g_auto (Watched) w = watched_start ();
  muster_server_stop (w.served.server, 10 * MUSTER_SECOND);

  expect_end (w.watch, MUSTER_ERROR_CANCELLED);
}

/* The server notices in its own time that a caller has gone. */
static void
expect_no_watchers (Served *f)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gint64 until = test_deadline ();
  while (served_status (f, arena)->watchers > 0 &&
         muster_clock_now_us (muster_system_clock ()) < until)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (served_status (f, arena)->watchers, 0);
}

MUSTER_TEST (Watch, that_is_given_up_is_forgotten)
{
  g_auto (Watched) w = watched_start ();
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MUSTER_EXPECT_EQ (served_status (&w.served, arena)->watchers, 1);

  g_clear_object (&w.watch);

  expect_no_watchers (&w.served);
}

/* Hears what comes until the watch ends. */
static void
receive_all (MusterWatch *watch, GError **error)
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
    g_autoptr (MusterWatch) watch = session != NULL ? served_watch_ready (session, ready_op) : NULL;
    if (watch == NULL)
      return NULL;
    if (i % 2 == 0)
      continue; /* given up */
    MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, NULL));
    receive_all (watch, &error);
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
  gint n_received;        /* atomic */
} Opener;

static gpointer
open_until_end (gpointer data)
{
  Opener *self = data;
  g_autoptr (GError) error = NULL;
  while (error == NULL) {
    g_autoptr (MusterWatch) watch = served_watch_ready (self->session, self->ready_op);
    if (watch == NULL)
      break;
    g_free (next_words (watch, &error));
    g_atomic_int_inc (&self->n_received);
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
  gint64 until = test_deadline ();
  for (gsize i = 0; i < G_N_ELEMENTS (openers); i++)
    while (g_atomic_int_get (&openers[i].n_received) < 5 &&
           muster_clock_now_us (muster_system_clock ()) < until)
      g_thread_yield ();

  muster_server_stop (f.server, MUSTER_SECOND);

  for (gsize i = 0; i < G_N_ELEMENTS (openers); i++) {
    g_thread_join (threads[i]);
    g_object_unref (openers[i].session);
    g_free (openers[i].ready_op);
  }
}

MUSTER_TEST (Watch, with_a_hostile_name_is_refused)
{
  g_auto (Served) f = served_start ();
  g_autofree char *endless = g_strnfill (300, 'm');
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  g_autoptr (MusterWatch) watch =
      muster_session_watch (session, &(MusterWatchFor){.model = endless}, test_deadline (), NULL);
  MUSTER_ASSERT_NOT_NULL (watch);

  expect_end (watch, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Status, reports_what_serves_here)
{
  g_autoptr (GError) error = NULL;
  g_auto (Served) f = served_start ();
  g_autoptr (MusterSession) session = served_session (&f, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_ASSERT_TRUE (served_run (session, "init", &error));
  g_autoptr (MusterArena) arena = muster_arena_new ();

  Muster__StatusResponse *told = served_status (&f, arena);

  MUSTER_ASSERT_NOT_NULL (told);
  MUSTER_EXPECT_TRUE (*told->version != '\0');
  MUSTER_EXPECT_EQ (told->sessions, 1);
  MUSTER_EXPECT_EQ (told->steps, (gint64)1);
  MUSTER_EXPECT_GT (told->uptime_us, (gint64)0);
  MUSTER_EXPECT_GT (told->memory_bytes, (gint64)1000000);
}
