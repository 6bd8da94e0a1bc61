// SPDX-License-Identifier: Apache-2.0
/* One task of an elastic job: what it makes of the rosters and the answers that it gets. */
#include "train/elastic/elastic_private.h"

#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/gtest_shim.h"

#define N_SLOTS     4
#define PATIENCE_US (30 * MUSTER_SECOND)

typedef struct {
  MusterServer *server;
  MusterMaster *master;
} Fixture;

static Fixture
set_up (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  Fixture f = {.server = muster_server_new (engine, NULL)};
  const int port = muster_server_listen (f.server, "127.0.0.1:0", &error);
  g_assert_no_error (error);
  muster_server_start (f.server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  f.master = muster_master_new_for_target (target, &error);
  g_assert_no_error (error);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->master);
  muster_server_free (f->server);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static MusterElastic *
make_task (MusterMaster *master, guint min_tasks)
{
  const MusterElasticOptions options = {
      .master = master, .model = "seen", .n_slots = N_SLOTS, .min_tasks = min_tasks};
  return muster_elastic_new (&options);
}

/* The server sends it no other roster meanwhile, since no other task joins. */
static void
receive (MusterElastic *task, gboolean is_gathering)
{
  guint own = 0;
  const MusterRoster roster = {
      .n_slots = N_SLOTS, .n_members = 1, .slots = &own, .is_gathering = is_gathering};
  muster_membership_set_roster (task->membership, own, &roster);
}

static gboolean
has_task (MusterElastic *task, guint slot)
{
  MusterPositionSlots *slots = muster_elastic_slots (task);
  return MUSTER_POSITION_SLOTS_GET_IFACE (slots)->has_task (slots, slot);
}

MUSTER_TEST (ElasticTask, takes_no_slot_for_free_while_the_server_gathers_its_members)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (MusterElastic) task = make_task (f.master, 0);
  MusterElasticRole role;
  MUSTER_ASSERT_TRUE (muster_elastic_next (task, PATIENCE_US, NULL, &role, NULL));

  receive (task, TRUE);
  MUSTER_EXPECT_TRUE (has_task (task, 1));
  receive (task, FALSE);
  MUSTER_EXPECT_FALSE (has_task (task, 1));
  MUSTER_EXPECT_TRUE (has_task (task, 0));
}
