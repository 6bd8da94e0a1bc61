// SPDX-License-Identifier: Apache-2.0
/* How often a restore reads a checkpoint: what it takes is mostly that. */
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "saver/restore.h"
#include "server/server.h"
#include "tests/doubles/counting_storage.h"
#include "tests/doubles/sharded_model.h"
#include "tests/gtest_shim.h"

/* Of each half of the larger variable: several reads long. */
#define ROWS (1 << 20)
enum { BEFORE = 9, SAVED = 5 };

typedef struct {
  MusterCountingStorage *storage; /* (owned) the chief's and the master's */
  MusterMaster *local;            /* (owned) */
  MusterServer *server;           /* (nullable) */
  MusterMaster *master;           /* (owned) the chief's */
  MusterSession *session;         /* (owned) */
  MusterSaver *saver;             /* (owned) */
  MusterShardedModel model;
} Fixture;

static void
serve (Fixture *f)
{
  f->server = muster_server_new (f->local, NULL);
  const int port = muster_server_listen (f->server, "127.0.0.1:0", NULL);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  muster_server_start (f->server);
  g_object_unref (f->master);
  f->master = muster_master_new_for_target (target, NULL);
}

/* A model that was saved, and has other values now. */
static Fixture
set_up (gboolean is_whole, gboolean is_served, const char *directory)
{
  Fixture f = {.storage = muster_counting_storage_new (),
               .model = {.is_whole = is_whole, .rows = ROWS}};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&f.model);
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (f.storage)};
  guint often;
  f.local = muster_local_master_new_with (MUSTER_STORAGE (f.storage), 0);
  f.master = g_object_ref (f.local);
  if (is_served)
    serve (&f);
  f.session = muster_master_create_session (f.master, muster_meta_graph_graph (meta_graph), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, &error);
  f.saver = muster_saver_new (meta_graph, &options, &error);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&f.model, f.session, SAVED, &error));
  g_autofree char *prefix =
      muster_saver_save (f.saver, f.session, directory, 1, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&f.model, f.session, BEFORE, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  (void)muster_counting_storage_take (f.storage, &often);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_pointer (&f->server, muster_server_free);
  g_clear_object (&f->local);
  g_clear_object (&f->saver);
  g_clear_object (&f->storage);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Restores as a chief does that starts, and returns how often a byte was read at most. */
static guint
restore (Fixture *f, const char *directory, const MusterRestoreOptions *how)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterRestored) restored = {0};
  MusterRestoreOptions options = how != NULL ? *how : (MusterRestoreOptions){0};
  guint often = 0;
  options.directory = directory;
  MUSTER_EXPECT_TRUE (muster_saver_restore (f->saver, f->session, &options, &restored,
                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_GE (muster_counting_storage_take (f->storage, &often), restored.bytes);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (f->session, &error), SAVED);
  return often;
}

MUSTER_TEST (RestoreReads, each_byte_once_where_the_master_is_in_this_process)
{
  for (int is_whole = 0; is_whole < 2; is_whole++) {
    g_autofree char *directory =
        g_build_filename (muster_test_tmpdir (), is_whole ? "whole" : "sharded", NULL);
    g_auto (Fixture) f = set_up (is_whole, FALSE, directory);
    MUSTER_EXPECT_EQ (restore (&f, directory, NULL), 1u);
  }
}

MUSTER_TEST (RestoreReads, each_byte_twice_at_most_over_a_wire)
{
  for (int is_whole = 0; is_whole < 2; is_whole++) {
    g_autofree char *directory =
        g_build_filename (muster_test_tmpdir (), is_whole ? "whole" : "sharded", NULL);
    g_auto (Fixture) f = set_up (is_whole, TRUE, directory);
    MUSTER_EXPECT_LE (restore (&f, directory, NULL), 2u);
  }
}

MUSTER_TEST (RestoreReads, each_byte_twice_at_most_where_it_is_fed)
{
  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "fed", NULL);
  const MusterRestoreOptions reshape = {.reshape = TRUE};
  g_auto (Fixture) f = set_up (FALSE, TRUE, directory);

  MUSTER_EXPECT_LE (restore (&f, directory, &reshape), 2u);
}
