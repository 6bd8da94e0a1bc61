// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "master/lease.h"
#include "master/remote/remote_master.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* Leases between this client and muster's own server. */
typedef struct {
  MusterMaster *local;
  MusterServer *server;
  int port;
  MusterMaster *remote;
} Fixture;

static void
serve (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", f->port);
  f->local = muster_local_master_new ();
  f->server = muster_server_new (f->local, NULL);
  f->port = muster_server_listen (f->server, address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f->server);
}

static void
stop (Fixture *f)
{
  g_clear_pointer (&f->server, muster_server_free);
  g_clear_object (&f->local);
}

static Fixture
set_up (void)
{
  g_autoptr (GError) error = NULL;
  Fixture f = {0};
  serve (&f);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", f.port);
  f.remote = muster_remote_master_new (target, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->remote);
  stop (f);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterSession *
open_session (Fixture *f, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  return muster_master_create_session (f->remote, graph, NULL, test_deadline (), NULL, error);
}

static MusterLease *
claim (MusterSession *session, const char *task, gint64 epoch, GError **error)
{
  MusterClaim claim = {.model = "digits", .task = task, .epoch = epoch};
  return muster_session_claim (session, &claim, NULL, test_deadline (), NULL, error);
}

static gboolean
announce (MusterLease *lease, MusterChiefPhase phase, GError **error)
{
  return muster_lease_announce_phase (lease, phase, test_deadline (), NULL, error);
}

/* Hears turns until one says so. */
static void
expect_readiness (MusterWatch *watch, MusterChiefPhase phase, gboolean is_alive, gboolean is_ready)
{
  for (;;) {
    g_autoptr (GError) error = NULL;
    g_auto (MusterReadiness) readiness = {0};
    muster_watch_next (watch, &readiness, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (readiness.keeps_announcements);
    if (readiness.chief != NULL && readiness.chief->phase == phase &&
        readiness.chief->alive == is_alive && readiness.is_ready == is_ready)
      return;
  }
}

MUSTER_TEST (LeaseOnServer, is_what_watchers_receive)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) chief = open_session (&f, &error);
  g_autoptr (MusterSession) worker = open_session (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterLease *lease = claim (chief, "worker:0", 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterWatch) watch = muster_session_watch (
      worker, &(MusterWatchFor){.model = "digits", .task = "worker:1"}, test_deadline (), &error);
  MUSTER_ASSERT_NO_ERROR (error);

  expect_readiness (watch, MUSTER_CHIEF_STARTING, TRUE, FALSE);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_INITIALISING, &error));
  expect_readiness (watch, MUSTER_CHIEF_INITIALISING, TRUE, FALSE);
  MUSTER_EXPECT_TRUE (announce (lease, MUSTER_CHIEF_PREPARED, &error));
  expect_readiness (watch, MUSTER_CHIEF_PREPARED, TRUE, TRUE);
  g_object_unref (lease);
  expect_readiness (watch, MUSTER_CHIEF_PREPARED, FALSE, TRUE);
}

MUSTER_TEST (LeaseOnServer, is_lost_to_a_higher_epoch_with_its_session)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) refused = NULL;
  g_autoptr (GError) lost = NULL;
  g_autoptr (GError) gone = NULL;
  g_autoptr (MusterSession) one = open_session (&f, &error);
  g_autoptr (MusterSession) two = open_session (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterLease) first = claim (one, "worker:0", 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_NULL (claim (two, "worker:1", 0, &refused));
  g_autoptr (MusterLease) second = claim (two, "worker:1", 5, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_FALSE (announce (first, MUSTER_CHIEF_PREPARED, &lost));
  MUSTER_EXPECT_SAYS (lost, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "worker:1");
  MUSTER_EXPECT_FALSE (muster_lease_check (first, NULL));
  MUSTER_EXPECT_FALSE (muster_session_run_op (one, "any", test_deadline (), NULL, &gone));
  MUSTER_EXPECT_ERROR (gone, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_TRUE (announce (second, MUSTER_CHIEF_PREPARED, &error));
}

/* Until the client has found its server again. */
static gboolean
is_unreachable (const GError *error)
{
  gint64 soon_us = test_deadline_in (20 * MUSTER_MILLISECOND);
  return muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) &&
         muster_clock_wait_until (muster_system_clock (), soon_us, NULL, NULL);
}

MUSTER_TEST (LeaseOnServer, passes_to_the_next_session_when_the_server_restarts)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_session (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterLease) lease = claim (session, "worker:0", 3, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  stop (&f);
  serve (&f);

  do {
    g_clear_error (&error);
    MUSTER_EXPECT_FALSE (announce (lease, MUSTER_CHIEF_TRAINING, &error));
  } while (is_unreachable (error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_clear_error (&error);
  MUSTER_EXPECT_TRUE (muster_lease_check (lease, &error));
  g_autoptr (MusterSession) next = open_session (&f, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterLease) again = claim (next, "worker:0", muster_lease_epoch (lease), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (announce (again, MUSTER_CHIEF_RESTORING, &error));
}

MUSTER_TEST (RemoteCallable, what_it_fetches_needs_a_place)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_constant (builder, "two", two);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  const char *fetches[] = {"two:0"};
  const MusterStep step = {.fetches = fetches, .n_fetches = 1};
  const gint64 callable =
      muster_session_make_callable (session, &step, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, NULL, 0, test_deadline (),
                                                    NULL, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
