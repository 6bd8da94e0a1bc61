// SPDX-License-Identifier: Apache-2.0
#include "jobs/cluster.h"

#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#include <string.h>

/* --- nodes share nothing (B003.14) --- */

/* An engine, which others reach by a server in front of it. */
typedef struct {
  MusterMaster *engine;
  MusterServer *server;
  int port;
} Served;

static void
served_set_up (Served *self)
{
  g_autoptr (GError) error = NULL;
  self->engine = muster_local_master_new ();
  self->server = muster_server_new (self->engine, NULL);
  self->port = muster_server_listen (self->server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (self->server);
}

static void
served_tear_down (Served *self)
{
  muster_server_free (self->server);
  g_object_unref (self->engine);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Served, served_tear_down)

/* NULL: the engine itself. */
static MusterMaster *
master_at (Served *self, const char *format)
{
  g_autoptr (GError) error = NULL;
  if (format == NULL)
    return g_object_ref (self->engine);
  g_autofree char *port = g_strdup_printf ("%d", self->port);
  g_auto (GStrv) parts = g_strsplit (format, "PORT", 2);
  g_autofree char *target = g_strjoinv (port, parts);
  MusterMaster *master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
  return master;
}

MUSTER_TEST (Cluster, refuses_a_second_node_on_one_master)
{
  static const struct {
    const char *first, *second;
    gboolean only_when_open; /* the names don't show it */
  } cases[] = {{NULL, NULL, FALSE},
               {"grpc://127.0.0.1:PORT", "grpc://127.0.0.1:PORT", FALSE},
               {"grpc://127.0.0.1:PORT", "grpc://localhost:PORT", TRUE},
               {NULL, "grpc://127.0.0.1:PORT", TRUE}};
  g_auto (Served) served = {0};
  g_autoptr (MusterMetaGraph) model = job_model_new ();
  served_set_up (&served);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterCluster) cluster = muster_cluster_new (NULL);
    g_autoptr (MusterMaster) first = master_at (&served, cases[i].first);
    g_autoptr (MusterMaster) second = master_at (&served, cases[i].second);
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("case %u", (guint)i);
    MUSTER_EXPECT_TRUE (muster_cluster_add (cluster, "a", first, model, &error));
    MUSTER_EXPECT_EQ (muster_cluster_add (cluster, "b", second, model, &error),
                      cases[i].only_when_open);
    if (cases[i].only_when_open)
      MUSTER_EXPECT_FALSE (muster_cluster_open (cluster, 30 * MUSTER_SECOND, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (
        g_str_has_prefix (SAID (error), "Node 'b' can't be on the master of node 'a'"));
    MUSTER_EXPECT_TRUE (strstr (SAID (error), "give each node a master of its own") != NULL);
    MUSTER_EXPECT_NULL (muster_cluster_node (cluster, "a")->session);
  }
}

/* Two engines in one process are two masters, though both are called "local". */
MUSTER_TEST (Cluster, distinguishes_two_masters_of_one_name)
{
  static const char *const nodes[] = {"a", "b", NULL};
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, nodes);

  MUSTER_EXPECT_TRUE (muster_session_run_op (muster_cluster_node (f.cluster, "a")->session, "init",
                                             MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (job_value (&f, "a", "total"), 100);
  g_autoptr (MusterTensor) other =
      muster_session_fetch (muster_cluster_node (f.cluster, "b")->session, "total/read:0",
                            MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}
