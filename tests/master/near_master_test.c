// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "master/remote/near_master_private.h"
#include "master/remote/remote_master_private.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>
#include <string.h>

/* A task's own server, and a place for its gateway beside it: both are muster's, and each has its
 * own sessions. */
typedef struct {
  MusterMaster *local;
  MusterServer *far, *gateway;
  MusterMaster *remote, *near;
  char *folder, *address;
} Fixture;

static MusterServer *
serve (Fixture *f, const char *address, int *port)
{
  g_autoptr (GError) error = NULL;
  MusterServer *server = muster_server_new (f->local, NULL);
  *port = muster_server_listen (server, address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (server);
  return server;
}

static void
start_gateway (Fixture *f)
{
  int port;
  f->gateway = serve (f, f->address, &port);
}

static Fixture
set_up (void)
{
  g_autoptr (GError) error = NULL;
  Fixture f = {.local = muster_local_master_new ()};
  int port;
  f.far = serve (&f, "127.0.0.1:0", &port);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  f.folder = g_dir_make_tmp ("near-XXXXXX", &error);
  f.address = g_strdup_printf ("unix:%s/gateway", f.folder);
  f.remote = muster_remote_master_new (target, &error);
  f.near = muster_near_master_new (f.remote, f.address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->near);
  g_clear_object (&f->remote);
  g_clear_pointer (&f->gateway, muster_server_free);
  g_clear_pointer (&f->far, muster_server_free);
  g_clear_object (&f->local);
  (void)g_rmdir (f->folder);
  g_free (f->folder);
  g_free (f->address);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static gboolean
has_session (Fixture *f, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  g_autoptr (MusterSession) session =
      muster_master_create_session (f->near, graph, NULL, test_deadline (), NULL, error);
  return session != NULL;
}

/* A session with this ConfigProto of a task outside the cluster. */
static gboolean
has_outside_session (Fixture *f, const char *config, gsize size, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) packed = g_bytes_new (config, size);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  muster_remote_master_set_outside (MUSTER_REMOTE_MASTER (f->remote), "here:1", "/job:ps/task:0");
  g_autoptr (MusterMaster) near = muster_near_master_new (f->remote, f->address, error);
  g_autoptr (MusterSession) session =
      muster_master_create_session (near, graph, packed, test_deadline (), NULL, error);
  return session != NULL;
}

MUSTER_TEST (NearMaster, of_a_task_outside_the_cluster_needs_a_server_that_shares_variables)
{
  static const char shared[] = "\x38\x01", isolated[] = "\x38\x01\x78\x01";
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (has_outside_session (&f, shared, 2, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (has_outside_session (&f, isolated, 4, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "here:1") != NULL);
  g_clear_error (&error);
  start_gateway (&f);
  MUSTER_EXPECT_TRUE (has_outside_session (&f, shared, 2, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (has_outside_session (&f, isolated, 4, &error));
}

MUSTER_TEST (NearMaster, is_the_tasks_own_server_where_there_is_no_gateway)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (has_session (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (NearMaster, is_the_gateway_as_soon_as_there_is_one)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_clear_pointer (&f.far, muster_server_free);
  start_gateway (&f);

  MUSTER_EXPECT_TRUE (has_session (&f, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* It may be about to start again, and the server behind it outlives it for a moment. */
MUSTER_TEST (NearMaster, does_not_go_past_a_gateway_that_has_ended)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  start_gateway (&f);
  MUSTER_EXPECT_TRUE (has_session (&f, &error));
  g_clear_pointer (&f.gateway, muster_server_free);

  MUSTER_EXPECT_FALSE (has_session (&f, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

/* Anybody could have put a socket there. */
MUSTER_TEST (NearMaster, does_not_use_a_socket_in_a_folder_that_others_write_to)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  g_clear_pointer (&f.far, muster_server_free);
  start_gateway (&f);
  MUSTER_EXPECT_TRUE (muster_near_master_may_use (f.address));
  MUSTER_EXPECT_EQ (g_chmod (f.folder, 0777), 0);

  MUSTER_EXPECT_FALSE (muster_near_master_may_use (f.address));
  MUSTER_EXPECT_FALSE (has_session (&f, &error));
}
