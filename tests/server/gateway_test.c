// SPDX-License-Identifier: Apache-2.0
#include "server/gateway/gateway_private.h"

#include "ready/backoff.h"
#include "rpc/proto/master.pb-c.h"
#include "rpc/server/rpc_server_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include <glib/gstdio.h>

/* A gateway in front of a server: both are Served, the one in front of the other's remote master.
 */
typedef struct {
  Served behind, front;
} Gateway;

static Gateway
gateway_start (MusterMaster *master, const MusterServerOptions *options)
{
  Gateway f = {.behind = master != NULL ? served_start_over (master) : served_start ()};
  f.front = served_start_with (f.behind.remote, options);
  return f;
}

static void
gateway_clear (Gateway *f)
{
  served_clear (&f->front);
  served_clear (&f->behind);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Gateway, gateway_clear)

static int
n_sessions (Served *served)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *status = served_status (served, arena);
  return status != NULL ? status->sessions : -1;
}

static int
n_steps (Served *served)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__StatusResponse *status = served_status (served, arena);
  return status != NULL ? (int)status->steps : -1;
}

MUSTER_TEST (Gateway, gives_its_clients_the_masters_own_handle)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  MUSTER_EXPECT_TRUE (
      served_bare_step (&f.behind, muster_session_handle (session), "init", &error));

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Gateway, passes_steps_and_counts_them)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterTensor) sum = served_fetch (session, "sum:0", 40, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (sum), 42);
  MUSTER_EXPECT_EQ (n_steps (&f.front), 1);
}

MUSTER_TEST (Gateway, passes_callables)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  g_autoptr (MusterTensor) x = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) sum = NULL;
  const MusterFeed feed = {"x:0", NULL};
  const char *fetch = "sum:0";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  MUSTER_ASSERT_NOT_NULL (session);

  gint64 callable = muster_session_make_callable (session, &step, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  muster_session_run_callable (session, callable, &x, 1, test_deadline (), &sum, NULL, NULL,
                               &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (sum), 3);
  MUSTER_EXPECT_TRUE (
      muster_session_release_callable (session, callable, test_deadline (), NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Gateway, says_what_the_master_says_of_a_step)
{
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) at_gateway = served_session (&f.front, NULL);
  g_autoptr (MusterSession) at_master = served_session (&f.behind, NULL);
  MUSTER_ASSERT_TRUE (at_gateway != NULL && at_master != NULL);
  g_autoptr (GError) there = NULL;
  g_autoptr (GError) here = NULL;

  g_autoptr (MusterTensor) none = served_fetch (at_gateway, "v/read:0", 0, NULL, &there);
  g_autoptr (MusterTensor) neither = served_fetch (at_master, "v/read:0", 0, NULL, &here);

  MUSTER_EXPECT_TRUE (none == NULL && neither == NULL);
  MUSTER_EXPECT_EQ (there->code, here->code);
  MUSTER_EXPECT_STREQ (there->message, here->message);
}

MUSTER_TEST (Gateway, knows_no_other_sessions_than_its_own)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.behind, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  MUSTER_EXPECT_FALSE (
      served_bare_step (&f.front, muster_session_handle (session), "init", &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                      "is not found. Possibly, this master has restarted.");
}

MUSTER_TEST (Gateway, refuses_a_request_that_is_malformed)
{
  static const char *const methods[] = {"RunStep", "ExtendSession", "CloseSession",
                                        "CreateSession"};
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (GBytes) cut = g_bytes_new_static ("\x0a\x7f"
                                               "x",
                                               3);
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) answer = served_call (&f.front, methods[i], cut, &error);
    MUSTER_EXPECT_NULL (answer);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (Gateway, closes_the_masters_session_with_its_own)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_EXPECT_EQ (n_sessions (&f.behind), 1);

  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (n_sessions (&f.front), 0);
  MUSTER_EXPECT_EQ (n_sessions (&f.behind), 0);
}

MUSTER_TEST (Gateway, drops_a_session_that_its_master_has_lost)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_autofree char *lost = g_strdup (muster_session_handle (session));
  g_autoptr (GBytes) empty = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) done = served_call (&f.behind, "Reset", empty, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (served_run (session, "init", &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED, lost);
  MUSTER_EXPECT_EQ (n_sessions (&f.front), 0);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (served_bare_step (&f.front, lost, "init", &error));
  MUSTER_EXPECT_TRUE (muster_failure_is_reset (error)); /* the gateway itself knows it by now */
}

MUSTER_TEST (Gateway, says_which_master_is_out_of_reach)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  g_clear_pointer (&f.behind.server, muster_server_free);

  MUSTER_EXPECT_FALSE (served_run (session, "init", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  EXPECT_SAYS (error, "gets no answer from its master");
  EXPECT_SAYS (error, muster_master_target (f.behind.remote) + strlen ("grpc://"));
}

MUSTER_TEST (Gateway, resets_its_master)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  MUSTER_EXPECT_TRUE (served_run (session, "init", &error));

  MUSTER_EXPECT_TRUE (muster_master_reset (f.front.remote, NULL, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (n_sessions (&f.front), 0);
  MUSTER_EXPECT_EQ (n_sessions (&f.behind), 0);
  g_autoptr (MusterSession) another = served_session (&f.front, NULL);
  g_autoptr (MusterTensor) none = served_fetch (another, "v/read:0", 0, NULL, &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (Gateway, does_not_speak_of_a_reset_that_its_master_has_refused)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Gateway) f = gateway_start (MUSTER_MASTER (master), NULL);
  g_autofree char *handle = served_bare_session (&f.front, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (muster_master_reset (f.front.remote, NULL, test_deadline (), NULL, NULL));

  MUSTER_EXPECT_FALSE (served_bare_step (&f.front, handle, "init", &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_FALSE (muster_failure_is_reset (error));
}

MUSTER_TEST (Gateway, lists_the_masters_devices)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (f.front.remote, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (devices->len, 1u);
}

/* --- limits --- */

MUSTER_TEST (Gateway, holds_to_its_own_limits)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  gsize n_bytes = g_bytes_get_size (muster_graph_bytes (graph));
  const MusterServerOptions options = {.limits = {.sessions = 1, .graph_bytes = n_bytes + 100}};
  g_auto (Gateway) f = gateway_start (NULL, &options);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterSession) second =
      muster_master_create_session (f.front.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NULL (second);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-sessions");
  g_clear_error (&error);

  MUSTER_EXPECT_FALSE (muster_session_extend (session, graph, test_deadline (), NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-graph-bytes");
  g_clear_error (&error);

  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, &error));
  g_autoptr (MusterSession) third =
      muster_master_create_session (f.front.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* --- steps that are stuck --- */

MUSTER_TEST (Gateway, passes_on_that_a_step_is_given_up)
{
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Gateway) f = gateway_start (MUSTER_MASTER (master), NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  MUSTER_ASSERT_NOT_NULL (session);
  ServedStuck stuck;
  served_stuck_start (&stuck, session, cancellable);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));

  g_cancellable_cancel (cancellable);

  g_autoptr (GError) error = served_stuck_join (&stuck);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 0));
}

/* All of a gateway's calls share one connection to the master: a step over the limit is refused,
 * and doesn't wait there for another one to end. */
MUSTER_TEST (Gateway, is_refused_steps_and_not_stopped_where_its_master_is_full)
{
  enum { N = 3 };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  const MusterServerOptions few = {.limits = {.steps = N, .watchers = 1}};
  g_auto (Gateway) f = {.behind = served_start_with (MUSTER_MASTER (master), &few)};
  f.front = served_start_with (f.behind.remote, NULL);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  ServedStuck stuck[N];
  for (guint i = 0; i < N; i++)
    served_stuck_start (&stuck[i], session, NULL);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, N));

  for (int i = 0; i < 10; i++) {
    g_autoptr (MusterTensor) none = served_fetch (session, "quick:0", 0, NULL, &error);
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-steps");
    g_clear_error (&error);
  }
  g_autoptr (MusterSession) another = served_session (&f.front, NULL);
  MUSTER_EXPECT_TRUE (another != NULL);

  stuck_master_let_go (master);
  for (guint i = 0; i < N; i++) {
    g_autoptr (GError) failure = served_stuck_join (&stuck[i]);
    MUSTER_EXPECT_NO_ERROR (failure);
  }
  g_autoptr (MusterTensor) one = served_fetch (session, "quick:0", 0, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Gateway, keeps_no_thread_for_a_step_that_is_stuck)
{
  enum { N = 100 };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  const MusterServerOptions options = {.limits = {.steps = N}};
  g_auto (Gateway) f = gateway_start (MUSTER_MASTER (master), &options);
  g_autoptr (MusterSession) session = served_session (&f.front, NULL);
  MUSTER_ASSERT_NOT_NULL (session);
  ServedStuck stuck[N];
  for (guint i = 0; i < N; i++)
    served_stuck_start (&stuck[i], session, NULL);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, N));

  g_autoptr (MusterTensor) none = served_fetch (session, "quick:0", 0, NULL, &error);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, "--max-steps");
  g_clear_error (&error);

  stuck_master_let_go (master);
  for (guint i = 0; i < N; i++) {
    g_autoptr (GError) failure = served_stuck_join (&stuck[i]);
    MUSTER_EXPECT_NO_ERROR (failure);
  }
  g_autoptr (MusterTensor) one = served_fetch (session, "quick:0", 0, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* --- readiness --- */

/* The next turn in words. */
static char *
next_words (MusterWatch *watch)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterReadiness) readiness = {0};
  if (!muster_watch_next (watch, &readiness, NULL, &error))
    return g_strdup_printf ("error %d", error->code);
  return g_strdup (readiness.is_ready ? "ready" : "not ready");
}

#define EXPECT_NEXT(watch, words)                                                                  \
  do {                                                                                             \
    g_autofree char *heard_ = next_words (watch);                                                  \
    MUSTER_EXPECT_STREQ (heard_, words);                                                           \
  } while (0)

/* The gateway's clock stands still, so that no poll is ever due. */
MUSTER_TEST (Gateway, notifies_those_who_wait_when_a_step_through_it_has_made_the_model_ready)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  const MusterServerOptions options = {.clock = MUSTER_CLOCK (clock)};
  g_auto (Gateway) f = gateway_start (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) worker = served_session (&f.front, &ready_op);
  g_autoptr (MusterSession) chief = served_session (&f.front, NULL);
  MUSTER_ASSERT_TRUE (worker != NULL && chief != NULL);
  g_autoptr (MusterWatch) watch = served_watch_ready (worker, ready_op);
  EXPECT_NEXT (watch, "not ready");

  MUSTER_EXPECT_TRUE (served_run (chief, "init", &error));

  MUSTER_EXPECT_NO_ERROR (error);
  EXPECT_NEXT (watch, "ready");
}

MUSTER_TEST (Gateway, ends_the_watch_of_a_session_that_its_master_has_lost)
{
  g_autoptr (GError) error = NULL;
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) worker = served_session (&f.front, &ready_op);
  MUSTER_ASSERT_NOT_NULL (worker);
  g_autoptr (MusterWatch) watch = served_watch_ready (worker, ready_op);
  EXPECT_NEXT (watch, "not ready");
  g_autoptr (GBytes) empty = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) done = served_call (&f.behind, "Reset", empty, &error);

  EXPECT_NEXT (watch, "error 10");
}

/* The gateway's clock stands still, so that it is by the step that it learns of it. */
MUSTER_TEST (Gateway, notifies_those_who_wait_of_a_reset_behind_it)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  muster_fake_clock_hold (clock);
  const MusterServerOptions options = {.clock = MUSTER_CLOCK (clock)};
  g_auto (Gateway) f = gateway_start (NULL, &options);
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) worker = served_session (&f.front, &ready_op);
  MUSTER_ASSERT_NOT_NULL (worker);
  g_autoptr (MusterWatch) watch = served_watch_ready (worker, ready_op);
  EXPECT_NEXT (watch, "not ready");
  g_autoptr (GBytes) empty = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) done = served_call (&f.behind, "Reset", empty, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_FALSE (served_run (worker, "init", NULL));

  g_auto (MusterReadiness) readiness = {0};
  MUSTER_EXPECT_FALSE (muster_watch_next (watch, &readiness, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_failure_is_reset (error));
}

/* --- gateways that lead to themselves --- */

/* In a broken state, the limit ends what would go on without end. */
static MusterServer *
start_ring_part (const char *at, const char *master)
{
  g_autoptr (GError) error = NULL;
  const MusterServerOptions options = {.limits = {.sessions = 32}};
  g_autoptr (MusterMaster) remote = muster_remote_master_new (master, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MusterServer *server = muster_server_new (remote, &options);
  MUSTER_EXPECT_NE (muster_server_listen (server, at, &error), 0);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (server);
  return server;
}

static void
expect_refused_ring (const char *at, const char *words)
{
  g_autoptr (MusterMaster) remote = muster_remote_master_new (at, NULL);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session =
      muster_master_create_session (remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, words);
  if (!muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION))
    return;
  g_clear_error (&error);
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (remote, test_deadline (), NULL, &error);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, words);
  g_clear_error (&error);
  MUSTER_EXPECT_FALSE (muster_master_reset (remote, NULL, test_deadline (), NULL, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, words);
}

MUSTER_TEST (Gateway, refuses_calls_that_come_back_to_it)
{
  g_autofree char *directory = g_dir_make_tmp ("muster-ring-XXXXXX", NULL);
  g_autofree char *one = g_strconcat ("unix:", directory, "/one", NULL);
  g_autofree char *two = g_strconcat ("unix:", directory, "/two", NULL);

  MusterServer *alone = start_ring_part (one, one);
  expect_refused_ring (one, "is itself");
  muster_server_free (alone);

  MusterServer *first = start_ring_part (one, two), *second = start_ring_part (two, one);
  expect_refused_ring (one, "leads back to it");
  muster_server_free (first);
  muster_server_free (second);
  const char *const locks[] = {"one.lock", "two.lock"};
  for (gsize i = 0; i < G_N_ELEMENTS (locks); i++) {
    g_autofree char *lock = g_build_filename (directory, locks[i], NULL);
    MUSTER_EXPECT_EQ (g_unlink (lock), 0);
  }
  MUSTER_EXPECT_EQ (g_rmdir (directory), 0);
}

/* --- a client that doesn't wait for its session --- */

typedef struct {
  MusterRpcServer *server;
  GAsyncQueue *creating; /* (element-type MusterRpcCall) */
  GAsyncQueue *closing;  /* (element-type utf8) handles */
} Slow;

static void
slow_create (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  g_async_queue_push (((Slow *)data)->creating, muster_rpc_call_ref (call));
}

static void
slow_close (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__CloseSessionRequest *read = muster_unpack (
      &tensorflow__close_session_request__descriptor, g_bytes_get_data (request, NULL),
      g_bytes_get_size (request), arena, "CloseSessionRequest", NULL);
  g_async_queue_push (((Slow *)data)->closing, g_strdup (read != NULL ? read->session_handle : ""));
  muster_rpc_call_reply (call, NULL);
}

static MusterMaster *
slow_start (Slow *self)
{
  g_autoptr (GError) error = NULL;
  self->creating = g_async_queue_new_full ((GDestroyNotify)muster_rpc_call_unref);
  self->closing = g_async_queue_new_full (g_free);
  self->server = muster_rpc_server_new ();
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/CreateSession",
                                slow_create, self);
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/CloseSession", slow_close,
                                self);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  muster_rpc_server_start (self->server);
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", port);
  MusterMaster *master = muster_remote_master_new (address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return master;
}

static void
slow_clear (Slow *self)
{
  muster_rpc_server_free (self->server);
  g_async_queue_unref (self->creating);
  g_async_queue_unref (self->closing);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Slow, slow_clear)

/* TensorFlow's master keeps CreateSession for as long as a task of its cluster is missing, and
 * makes the session in the end, though nobody waits for it any more. */
MUSTER_TEST (Gateway, closes_a_session_whose_client_did_not_wait_for_it)
{
  g_autoptr (GError) error = NULL;
  g_auto (Slow) slow = {0};
  g_autoptr (MusterMaster) master = slow_start (&slow);
  g_auto (Served) front = served_start_over (master);
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  const gint64 late_us = test_deadline_in (3 * MUSTER_SECOND); /* the master has the call by then */
  g_autoptr (MusterSession) none =
      muster_master_create_session (front.remote, graph, NULL, late_us, NULL, &error);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  /* The gateway got its deadline a little later than the client has set it. */
  muster_clock_wait_until (muster_system_clock (), late_us + MUSTER_SECOND, NULL, NULL);

  g_autoptr (MusterRpcCall) call = g_async_queue_timeout_pop (slow.creating, 30 * MUSTER_SECOND);
  MUSTER_ASSERT_NOT_NULL (call);
  g_auto (MusterRope) answer = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&answer), (const guint8 *)"\x0a\x04late", 6);
  muster_rpc_call_reply (call, &answer);
  g_autofree char *closed = g_async_queue_timeout_pop (slow.closing, 30 * MUSTER_SECOND);
  MUSTER_EXPECT_STREQ (closed, "late");
  MUSTER_EXPECT_EQ (n_sessions (&front), 0);
}

/* --- one graph for many sessions --- */

MUSTER_TEST (Gateway, keeps_one_graph_for_all_sessions_with_its_bytes)
{
  MusterGatewayGraphs *graphs = muster_gateway_graphs_new ();
  g_autoptr (GBytes) bytes = g_bytes_new ("\x0a\x03\x0a\x01", 4);
  g_autoptr (GBytes) same = g_bytes_new ("\x0a\x03\x0a\x01", 4);
  g_autoptr (GBytes) other = g_bytes_new ("\x0a\x03\x0a\x02", 4);
  MusterGraph *one = muster_gateway_graphs_get (graphs, bytes, NULL);
  MusterGraph *two = muster_gateway_graphs_get (graphs, same, NULL);
  MusterGraph *three = muster_gateway_graphs_get (graphs, other, NULL);
  MUSTER_EXPECT_TRUE (one == two);
  MUSTER_EXPECT_TRUE (one != three);
  MUSTER_EXPECT_EQ (muster_gateway_graphs_size (graphs), 2u);

  muster_gateway_graphs_release (graphs, one);
  muster_gateway_graphs_release (graphs, three);
  MUSTER_EXPECT_EQ (muster_gateway_graphs_size (graphs), 1u);
  muster_gateway_graphs_release (graphs, two);
  MUSTER_EXPECT_EQ (muster_gateway_graphs_size (graphs), 0u);
  muster_gateway_graphs_unref (graphs);
}

MUSTER_TEST (Gateway, forgets_a_graph_with_the_last_session_that_had_it)
{
  g_auto (Gateway) f = gateway_start (NULL, NULL);
  MusterGatewayGraphs *graphs = muster_gateway_graphs_new ();
  g_autoptr (GBytes) bytes = g_bytes_new ("\x0a\x03\x0a\x01", 4);
  MusterGraph *graph = muster_gateway_graphs_get (graphs, bytes, NULL);
  MusterSession *session =
      muster_remote_master_adopt (MUSTER_REMOTE_MASTER (f.behind.remote), "h", graph);
  muster_gateway_graphs_keep (graphs, session, graph);
  muster_gateway_graphs_release (graphs, graph);
  MUSTER_EXPECT_EQ (muster_gateway_graphs_size (graphs), 1u);

  muster_remote_session_forget (session);
  g_object_unref (session);

  MUSTER_EXPECT_EQ (muster_gateway_graphs_size (graphs), 0u);
  muster_gateway_graphs_unref (graphs);
}
