// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/unpack_private.h"
#include "engine/session/local_master.h"
#include "master/lease.h"
#include "rpc/proto/health.pb-c.h"
#include "server/core/server_private.h"
#include "server/http/pages.h"
#include "server/services/health_service.h"
#include "server/services/status_service.h"

#include <glib/gstdio.h>
#include <string.h>

#define NAME_OF(status) GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##status

/* A server that offers health on both its ports. */
typedef struct {
  MusterServer *server;    /* (owned) */
  MusterMaster *remote;    /* (owned) at the main port */
  MusterRpcClient *main;   /* (owned) */
  MusterRpcClient *health; /* (owned) the health port */
} Fixture;

static char *
loopback (int port)
{
  return g_strdup_printf ("127.0.0.1:%d", port);
}

static Fixture
fixture_start (MusterMaster *master)
{
  g_autoptr (GError) error = NULL;
  Fixture f = {.server = muster_server_new (master, NULL)};
  g_autofree char *main_at = loopback (muster_server_listen (f.server, "127.0.0.1:0", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *health_at =
      loopback (muster_server_listen_health (f.server, "127.0.0.1:0", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f.server);
  f.remote = muster_remote_master_new (main_at, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  f.main = muster_rpc_client_new (main_at, NULL);
  f.health = muster_rpc_client_new (health_at, NULL);
  return f;
}

static Fixture
fixture_start_local (void)
{
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  return fixture_start (local);
}

static void
fixture_clear (Fixture *f)
{
  g_clear_object (&f->remote);
  g_clear_pointer (&f->main, muster_rpc_client_unref);
  g_clear_pointer (&f->health, muster_rpc_client_unref);
  g_clear_pointer (&f->server, muster_server_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static void
pack_request (MusterRope *rope, const char *service)
{
  Grpc__Health__V1__HealthCheckRequest request = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
  request.service = (char *)service;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (rope, packed);
}

/* The status an answer holds, or -1. */
static int
status_of (GBytes *answer, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Grpc__Health__V1__HealthCheckResponse *response = muster_unpack (
      &grpc__health__v1__health_check_response__descriptor, g_bytes_get_data (answer, NULL),
      g_bytes_get_size (answer), arena, "HealthCheckResponse", error);
  return response != NULL ? (int)response->status : -1;
}

static int
check (MusterRpcClient *client, const char *service, GError **error)
{
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  pack_request (&request, service);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (GBytes) answer = muster_rpc_client_call (client, "/grpc.health.v1.Health/Check",
                                                      &request, &options, NULL, error);
  return answer != NULL ? status_of (answer, error) : -1;
}

static MusterRpcStream *
watch (MusterRpcClient *client, const char *service)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  pack_request (&request, service);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  MusterRpcStream *stream =
      muster_rpc_client_open (client, "/grpc.health.v1.Health/Watch", &request, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

/* The next status of a watch, or -1 at its end. */
static int
next (MusterRpcStream *stream, GError **error)
{
  g_autoptr (GBytes) answer =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, error);
  return answer != NULL ? status_of (answer, error) : -1;
}

#define EXPECT_STATUS(call, status)                                                                \
  do {                                                                                             \
    g_autoptr (GError) error_ = NULL;                                                              \
    MUSTER_EXPECT_EQ (call, NAME_OF (status));                                                     \
    MUSTER_EXPECT_NO_ERROR (error_);                                                               \
  } while (0)
#define EXPECT_CHECK(client, status) EXPECT_STATUS (check (client, "", &error_), status)
#define EXPECT_NEXT(stream, status)  EXPECT_STATUS (next (stream, &error_), status)

static void
expect_end (MusterRpcStream *stream)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_EQ (next (stream, &error), -1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
}

MUSTER_TEST (Health, of_the_server_is_serving_on_both_ports)
{
  g_auto (Fixture) f = fixture_start_local ();
  EXPECT_CHECK (f.main, SERVING);
  EXPECT_CHECK (f.health, SERVING);
}

MUSTER_TEST (Health, of_an_unknown_service_is_not_found)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_start_local ();
  MUSTER_EXPECT_EQ (check (f.main, "no.Such", &error), -1);

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "'no.Such'");
}

MUSTER_TEST (Health, of_a_malformed_request_is_an_invalid_argument)
{
  static const char *const methods[] = {"Check", "Watch"};
  g_auto (Fixture) f = fixture_start_local ();
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *method = g_strconcat ("/grpc.health.v1.Health/", methods[i], NULL);
    g_auto (MusterRope) request = MUSTER_ROPE_INIT;
    g_autoptr (GBytes) not_utf8 = g_bytes_new_static ("\x0a\x02\xff\xfe", 4);
    muster_rope_append (&request, not_utf8);
    MusterRpcOptions options = {.deadline_us = test_deadline ()};

    g_autoptr (GBytes) answer =
        muster_rpc_client_call (f.health, method, &request, &options, NULL, &error);

    MUSTER_EXPECT_NULL (answer);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (Health, watched_reports_the_state_at_once_and_not_serving_before_the_end)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autoptr (MusterRpcStream) at_main = watch (f.main, "");
  g_autoptr (MusterRpcStream) at_health = watch (f.health, "");
  MUSTER_ASSERT_TRUE (at_main != NULL && at_health != NULL);
  EXPECT_NEXT (at_main, SERVING);
  EXPECT_NEXT (at_health, SERVING);

  muster_server_stop (f.server, 10 * MUSTER_SECOND);

  EXPECT_NEXT (at_main, NOT_SERVING);
  EXPECT_NEXT (at_health, NOT_SERVING);
  expect_end (at_main);
  expect_end (at_health);
}

/* That nothing follows until the server stops shows in what ends it: the stop, not the answer. */
MUSTER_TEST (Health, watched_of_an_unknown_service_is_unknown_and_stays_open)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_start_local ();
  g_autoptr (MusterRpcStream) stream = watch (f.main, "no.Such");
  MUSTER_ASSERT_TRUE (stream != NULL);

  EXPECT_NEXT (stream, SERVICE_UNKNOWN);
  EXPECT_CHECK (f.main, SERVING);
  muster_server_stop (f.server, 10 * MUSTER_SECOND);

  MUSTER_EXPECT_EQ (next (stream, &error), -1);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "stopping");
}

MUSTER_TEST (Health, watches_that_are_given_up_are_forgotten)
{
  enum { N = 32 };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterChiefRegistry) registry = muster_chief_registry_new (NULL, MUSTER_SECOND);
  g_autoptr (MusterReadinessHub) hub = muster_readiness_hub_new (master, registry, NULL);
  g_autoptr (MusterHealthService) health = muster_health_service_new (hub, registry);
  g_autoptr (MusterRpcServer) rpc = muster_rpc_server_new ();
  muster_health_service_enter (health, rpc);
  g_autofree char *at = loopback (muster_rpc_server_listen (rpc, "127.0.0.1:0", NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  muster_rpc_server_start (rpc);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (at, NULL);
  g_autoptr (MusterRpcStream) kept = watch (client, "");
  EXPECT_NEXT (kept, SERVING);

  for (int i = 0; i < N; i++) {
    g_autoptr (MusterRpcStream) given_up = watch (client, "");
    if (i % 3 != 0) /* the others may be gone before they are listed */
      EXPECT_NEXT (given_up, SERVING);
  }

  gint64 until = test_deadline ();
  while (muster_health_service_n_watchers (health) > 1 &&
         muster_clock_now_us (muster_system_clock ()) < until)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (muster_health_service_n_watchers (health), 1);
}

MUSTER_TEST (Health, port_offers_nothing_else)
{
  static const char *const methods[] = {
      "/tensorflow.MasterService/CreateSession",
      "/tensorflow.MasterService/Reset",
      "/muster.Readiness/Status",
      "/muster.Readiness/Watch",
  };
  g_auto (Fixture) f = fixture_start_local ();
  for (guint i = 0; i < G_N_ELEMENTS (methods); i++) {
    g_autoptr (GError) error = NULL;
    g_auto (MusterRope) request = MUSTER_ROPE_INIT;
    MusterRpcOptions options = {.deadline_us = test_deadline ()};

    g_autoptr (GBytes) answer =
        muster_rpc_client_call (f.health, methods[i], &request, &options, NULL, &error);

    MUSTER_EXPECT_NULL (answer);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  }
}

MUSTER_TEST (Health, port_that_is_taken_is_said)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_start_local ();
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  g_autoptr (MusterServer) other = muster_server_new (local, NULL);
  const char *taken = muster_rpc_client_address (f.health);
  MUSTER_EXPECT_EQ (muster_server_listen_health (other, taken, &error), 0);

  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, taken) != NULL);
}

/* --- of a gateway --- */

static MusterServer *
start_behind (const char *at)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  MusterServer *server = muster_server_new (local, NULL);
  MUSTER_EXPECT_NE (muster_server_listen (server, at, &error), 0);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (server);
  return server;
}

static void
expect_master_failure (MusterServer *gateway, const char *words)
{
  gboolean is_ready;
  g_autoptr (MusterServerStatus) status = muster_server_status_new (gateway);
  g_autofree char *text = muster_pages_ready (gateway, &is_ready);
  MUSTER_EXPECT_EQ (is_ready, words == NULL);
  if (words == NULL)
    MUSTER_EXPECT_STREQ (muster_server_status_read (status)->master_failure, "");
  else
    MUSTER_EXPECT_TRUE (strstr (text, "the gateway can't use its master") != NULL &&
                        strstr (muster_server_status_read (status)->master_failure, words) != NULL);
}

MUSTER_TEST (Health, of_a_gateway_is_serving_while_its_master_can_be_used)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *directory = g_dir_make_tmp ("muster-XXXXXX", NULL);
  g_autofree char *at = g_strconcat ("unix:", directory, "/s", NULL);
  g_autofree char *lock = g_strconcat (directory, "/s.lock", NULL);
  g_autoptr (MusterMaster) remote = muster_remote_master_new (at, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_auto (Fixture) f = fixture_start (remote);
  EXPECT_CHECK (f.main, NOT_SERVING);
  expect_master_failure (f.server, at);
  g_autoptr (MusterRpcStream) stream = watch (f.health, "");
  EXPECT_NEXT (stream, NOT_SERVING);

  MusterServer *behind = start_behind (at);
  EXPECT_NEXT (stream, SERVING);
  expect_master_failure (f.server, NULL);

  muster_server_free (behind);
  EXPECT_NEXT (stream, NOT_SERVING);
  expect_master_failure (f.server, at);
  MUSTER_EXPECT_TRUE (muster_server_check (f.server, 30 * MUSTER_SECOND, &error));
  MUSTER_EXPECT_NO_ERROR (error); /* its manager shall not end it for that */
  MUSTER_EXPECT_TRUE (g_unlink (lock) == 0 && g_rmdir (directory) == 0);
}

MUSTER_TEST (Health, of_a_gateway_that_has_just_started_is_its_masters)
{
  g_auto (Fixture) behind = fixture_start_local ();
  g_auto (Fixture) f = fixture_start (behind.remote);
  EXPECT_CHECK (f.main, SERVING);
  EXPECT_CHECK (f.health, SERVING);
}

/* --- of a model --- */

static MusterSession *
session_of (Fixture *f, char **ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (ready_op);
  MusterSession *session =
      muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static void
announce (MusterLease *lease, MusterChiefPhase phase)
{
  g_autoptr (GError) error = NULL;
  muster_lease_announce_phase (lease, phase, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* Claims "digits", initialises it, and says so. */
static MusterLease *
prepare (MusterSession *chief, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  MusterLease *lease = served_claim (chief, ready_op);
  if (lease == NULL)
    return NULL;
  announce (lease, MUSTER_CHIEF_INITIALISING);
  MUSTER_EXPECT_TRUE (served_run (chief, "init", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  announce (lease, MUSTER_CHIEF_PREPARED);
  return lease;
}

/* The same, and what a watch of the model hears of it. */
static MusterLease *
prepare_watched (MusterSession *chief, const char *ready_op, MusterRpcStream *stream)
{
  EXPECT_NEXT (stream, SERVICE_UNKNOWN);
  MusterLease *lease = prepare (chief, ready_op);
  if (lease == NULL)
    return NULL;
  EXPECT_NEXT (stream, NOT_SERVING);
  EXPECT_NEXT (stream, SERVING);
  return lease;
}

MUSTER_TEST (Health, of_a_model_is_serving_from_its_readiness_to_its_end)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = session_of (&f, &ready_op);
  g_autoptr (MusterRpcStream) stream = watch (f.health, "digits");
  EXPECT_NEXT (stream, SERVICE_UNKNOWN);

  g_autoptr (MusterLease) lease = prepare (chief, ready_op);
  MUSTER_ASSERT_NOT_NULL (lease);

  EXPECT_NEXT (stream, NOT_SERVING);
  EXPECT_NEXT (stream, SERVING);
  EXPECT_STATUS (check (f.main, "digits", &error_), SERVING);
  announce (lease, MUSTER_CHIEF_TRAINING); /* no change */
  announce (lease, MUSTER_CHIEF_OVER);
  EXPECT_NEXT (stream, NOT_SERVING);
  EXPECT_STATUS (check (f.main, "digits", &error_), NOT_SERVING);
}

MUSTER_TEST (Health, of_a_model_outlives_its_chief)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = session_of (&f, &ready_op);
  g_autoptr (MusterRpcStream) stream = watch (f.health, "digits");
  MusterLease *lease = prepare_watched (chief, ready_op, stream);
  MUSTER_ASSERT_NOT_NULL (lease);

  g_object_unref (lease);
  MUSTER_EXPECT_TRUE (muster_session_close (chief, test_deadline (), NULL, NULL));

  EXPECT_STATUS (check (f.main, "digits", &error_), SERVING);
  /* Nothing was said of it meanwhile: the next is the reset's. */
  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));
  EXPECT_NEXT (stream, NOT_SERVING);
}

MUSTER_TEST (Health, of_a_model_is_withdrawn_at_a_reset_and_returns)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) first = session_of (&f, &ready_op);
  g_autoptr (MusterRpcStream) stream = watch (f.main, "digits");
  MusterLease *lease = prepare_watched (first, ready_op, stream);
  MUSTER_ASSERT_NOT_NULL (lease);

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, NULL));
  EXPECT_NEXT (stream, NOT_SERVING);

  /* The chief makes another session; its lease it still has. */
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) second = session_of (&f, NULL);
  announce (lease, MUSTER_CHIEF_INITIALISING);
  MUSTER_EXPECT_TRUE (served_run (second, "init", &error));
  announce (lease, MUSTER_CHIEF_PREPARED);
  EXPECT_NEXT (stream, SERVING);
  g_object_unref (lease);
}

/* Its sessions end, so the answer is asked anew: not serving until then. */
MUSTER_TEST (Health, of_a_model_returns_by_itself_after_a_reset_of_another_container)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = session_of (&f, &ready_op);
  g_autoptr (MusterRpcStream) stream = watch (f.main, "digits");
  MusterLease *lease = prepare_watched (chief, ready_op, stream);
  MUSTER_ASSERT_NOT_NULL (lease);
  g_object_unref (lease);

  const char *const others[] = {"other", NULL};
  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, others, test_deadline (), NULL, NULL));
  EXPECT_NEXT (stream, NOT_SERVING);
  EXPECT_NEXT (stream, SERVING);

  const char *const its[] = {"other", "localhost", NULL};
  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, its, test_deadline (), NULL, NULL));
  EXPECT_NEXT (stream, NOT_SERVING);
  g_autoptr (MusterAnnouncement) after = muster_chief_registry_find (f.server->registry, "digits");
  MUSTER_EXPECT_FALSE (after->prepared);
}

MUSTER_TEST (Health, of_a_model_whose_ready_op_fails_is_not_serving)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autoptr (MusterSession) chief = session_of (&f, NULL);
  g_autoptr (MusterLease) lease = prepare (chief, "no_such_op");
  MUSTER_ASSERT_NOT_NULL (lease);

  EXPECT_STATUS (check (f.main, "digits", &error_), NOT_SERVING);
}

MUSTER_TEST (Health, of_a_model_is_not_serving_until_its_ready_op_says_yes)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) chief = session_of (&f, &ready_op);
  g_autoptr (MusterRpcStream) stream = watch (f.main, "digits");
  EXPECT_NEXT (stream, SERVICE_UNKNOWN);
  g_autoptr (MusterLease) lease = served_claim (chief, ready_op);
  MUSTER_ASSERT_NOT_NULL (lease);
  EXPECT_NEXT (stream, NOT_SERVING);
  announce (lease, MUSTER_CHIEF_PREPARED); /* as it thinks */
  for (int i = 0; i < 200; i++)
    EXPECT_STATUS (check (f.main, "digits", &error_), NOT_SERVING);

  MUSTER_EXPECT_TRUE (served_run (chief, "init", NULL));

  EXPECT_NEXT (stream, SERVING);
}

MUSTER_TEST (Health, of_a_model_is_withdrawn_while_another_chief_prepares_it)
{
  g_auto (Fixture) f = fixture_start_local ();
  g_autofree char *ready_op = NULL;
  g_autoptr (MusterSession) first = session_of (&f, &ready_op);
  g_autoptr (MusterSession) second = session_of (&f, NULL);
  g_autoptr (MusterRpcStream) stream = watch (f.main, "digits");
  EXPECT_NEXT (stream, SERVICE_UNKNOWN);
  g_autoptr (MusterLease) old = prepare (first, ready_op);
  MUSTER_ASSERT_NOT_NULL (old);
  EXPECT_NEXT (stream, NOT_SERVING);
  EXPECT_NEXT (stream, SERVING);

  MusterClaim bold = {.model = "digits", .ready_op = ready_op, .take_over = TRUE};
  g_autoptr (MusterLease) new =
      muster_session_claim (second, &bold, NULL, test_deadline (), NULL, NULL);
  MUSTER_ASSERT_NOT_NULL (new);

  EXPECT_NEXT (stream, NOT_SERVING);
  announce (new, MUSTER_CHIEF_PREPARED); /* the variables have their values still */
  EXPECT_NEXT (stream, SERVING);
}

/* --- while a step is stuck --- */

static gpointer
get_stuck (gpointer session)
{
  const char *fetch = "stuck";
  g_autoptr (MusterTensor) got = NULL;
  MusterStep step = {.fetches = &fetch, .n_fetches = 1, .deadline_us = test_deadline ()};
  return GINT_TO_POINTER (muster_session_run (session, &step, &got, NULL, NULL, NULL));
}

static gpointer
stop_with_grace (gpointer server)
{
  muster_server_stop (server, 30 * MUSTER_SECOND);
  return NULL;
}

MUSTER_TEST (Health, is_not_serving_on_its_port_while_steps_are_given_time_to_end)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStuckMaster) master = stuck_master_new ();
  g_auto (Fixture) f = fixture_start (MUSTER_MASTER (master));
  g_autoptr (MusterGraph) graph = served_graph (NULL);
  MUSTER_ASSERT_NOT_NULL (graph);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterRpcStream) stream = watch (f.main, "");
  MUSTER_ASSERT_TRUE (stream != NULL);
  EXPECT_NEXT (stream, SERVING);
  GThread *step = g_thread_new ("step", get_stuck, session);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (master, 1));
  EXPECT_CHECK (f.main, SERVING);

  GThread *stop = g_thread_new ("stop", stop_with_grace, f.server);
  EXPECT_NEXT (stream, NOT_SERVING); /* it stops */
  EXPECT_CHECK (f.health, NOT_SERVING);
  g_autoptr (MusterRpcStream) late = watch (f.health, "");
  EXPECT_NEXT (late, NOT_SERVING);
  expect_end (late);

  stuck_master_let_go (master);
  MUSTER_EXPECT_TRUE (GPOINTER_TO_INT (g_thread_join (step)));
  g_thread_join (stop);
}
