// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "saver/restore.h"
#include "server/server.h"
#include "tests/doubles/crash_storage.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <unistd.h>

/* A restore by a master on a socket, which reads the files for itself: what it finds damaged, and
 * the chief doesn't, is passed over as well. Each has a store of its own with the same files, so no
 * probe finds one directory. */

#define DIRECTORY "/run"
enum { OLDER = 1, NEWER = 2, OTHER = 9 };

typedef struct {
  MusterShardedModel model;
  MusterCrashStorage *chiefs, *masters; /* (owned) stores */
  MusterMaster *local;                  /* (owned) behind the server */
  MusterServer *server;
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  MusterRestored restored;
  GError *error;
} Served;

static MusterSession *
session_on (MusterMaster *master, MusterMetaGraph *meta_graph)
{
  return muster_master_create_session (master, muster_meta_graph_graph (meta_graph), NULL,
                                       MUSTER_WAIT_FOREVER, NULL, NULL);
}

/* The chief's store gets a checkpoint of each value from the first to NEWER. */
static void
save_values (Served *f, MusterMetaGraph *meta_graph, guint8 first)
{
  g_autoptr (MusterMaster) master = muster_local_master_new_with (MUSTER_STORAGE (f->chiefs), 0);
  g_autoptr (MusterSession) session = session_on (master, meta_graph);
  g_autoptr (GError) error = NULL;
  muster_storage_make_directory (MUSTER_STORAGE (f->chiefs), DIRECTORY, NULL);
  for (guint8 value = first; value <= NEWER; value++) {
    (void)muster_sharded_model_set (&f->model, session, value, &error);
    g_autofree char *prefix =
        muster_saver_save (f->saver, session, DIRECTORY, value, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

static void
serve (Served *f, MusterMetaGraph *meta_graph)
{
  f->masters = muster_crash_storage_copy (f->chiefs);
  f->local = muster_local_master_new_with (MUSTER_STORAGE (f->masters), 0);
  f->server = muster_server_new (f->local, NULL);
  const int port = muster_server_listen (f->server, "127.0.0.1:0", NULL);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  muster_server_start (f->server);
  f->master = muster_master_new_for_target (target, NULL);
  f->session = session_on (f->master, meta_graph);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&f->model, f->session, OTHER, &f->error));
  MUSTER_EXPECT_NO_ERROR (f->error);
}

static Served
set_up (MusterShardedModel model, guint8 first)
{
  Served f = {.model = model, .chiefs = muster_crash_storage_new ()};
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&f.model);
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (f.chiefs), .no_probe = TRUE};
  f.saver = muster_saver_new (meta_graph, &options, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);
  save_values (&f, meta_graph, first);
  serve (&f, meta_graph);
  return f;
}

static void
tear_down (Served *f)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_pointer (&f->server, muster_server_free);
  g_clear_object (&f->local);
  g_clear_object (&f->saver);
  g_clear_object (&f->masters);
  g_clear_object (&f->chiefs);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Served, tear_down)

/* Writes a file of the store anew: other values, or nothing at all. */
static void
damage (MusterCrashStorage *storage, const char *name, gsize size)
{
  g_autofree char *path = g_build_filename (DIRECTORY, name, NULL);
  g_autofree char *zeros = g_malloc0 (size + 1);
  MusterStorageFile *file = muster_storage_create (MUSTER_STORAGE (storage), path, NULL);

  MUSTER_ASSERT_TRUE (file != NULL);
  muster_storage_append (MUSTER_STORAGE (storage), file, zeros, size, NULL);
  muster_storage_close (MUSTER_STORAGE (storage), file, NULL);
}

static gboolean
restore_latest (Served *f, MusterRestoreOptions options)
{
  options.directory = DIRECTORY;
  return muster_saver_restore (f->saver, f->session, &options, &f->restored,
                               g_get_monotonic_time () + 60 * MUSTER_SECOND, NULL, &f->error);
}

static const MusterShardedModel whole = {.is_whole = TRUE, .max_to_keep = 5},
                                sharded = {.max_to_keep = 5};

static char *
reason_of (Served *f, const char *name)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (MUSTER_STORAGE (f->chiefs), DIRECTORY, NULL);
  const MusterSideCheckpoint *one =
      record != NULL ? muster_checkpoint_record_find (record, name) : NULL;
  return g_strdup (one != NULL ? one->bad : NULL);
}

static void
expect_the_one_before (Served *f)
{
  MUSTER_EXPECT_TRUE (restore_latest (f, (MusterRestoreOptions){0}));

  MUSTER_ASSERT_NO_ERROR (f->error);
  MUSTER_EXPECT_STREQ (f->restored.prefix, DIRECTORY "/model.ckpt-1");
  MUSTER_EXPECT_EQ (muster_sharded_model_get (f->session, NULL), OLDER);
  MUSTER_ASSERT_TRUE (f->restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (f->restored.passed_over, "model.ckpt-2.bad"));
  MUSTER_EXPECT_FALSE (
      muster_checkpoint_exists (MUSTER_STORAGE (f->chiefs), DIRECTORY "/model.ckpt-2"));
  g_autofree char *reason = reason_of (f, "model.ckpt-2.bad");
  MUSTER_ASSERT_TRUE (reason != NULL);
  MUSTER_EXPECT_TRUE (strstr (reason, "not for the master"));
}

MUSTER_TEST (RestoreServed, passes_over_what_the_master_finds_damaged)
{
  g_auto (Served) f = set_up (whole, OLDER);
  damage (f.masters, "model.ckpt-2.data-00000-of-00001", 48);

  expect_the_one_before (&f);
}

MUSTER_TEST (RestoreServed, passes_over_what_is_too_short_for_the_master)
{
  g_auto (Served) f = set_up (whole, OLDER);
  damage (f.masters, "model.ckpt-2.data-00000-of-00001", 3);

  expect_the_one_before (&f);
}

MUSTER_TEST (RestoreServed, passes_over_one_whose_second_shard_is_damaged)
{
  g_auto (Served) f = set_up (sharded, OLDER);
  damage (f.masters, "model.ckpt-2.data-00001-of-00002", 24);

  expect_the_one_before (&f);
}

/* Not even of the shard that is whole. */
static void
expect_nothing_assigned (const char *shard)
{
  g_auto (Served) f = set_up (sharded, NEWER);
  damage (f.masters, shard, 24);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (f.session, NULL), OTHER);
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_exists (MUSTER_STORAGE (f.chiefs), DIRECTORY "/model.ckpt-2"));
}

MUSTER_TEST (RestoreServed, assigns_nothing_where_the_first_shard_is_damaged)
{
  expect_nothing_assigned ("model.ckpt-2.data-00000-of-00002");
}

MUSTER_TEST (RestoreServed, assigns_nothing_where_the_second_shard_is_damaged)
{
  expect_nothing_assigned ("model.ckpt-2.data-00001-of-00002");
}

MUSTER_TEST (RestoreServed, takes_no_other_where_that_is_refused)
{
  g_auto (Served) f = set_up (whole, OLDER);
  damage (f.masters, "model.ckpt-2.data-00000-of-00001", 48);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){.fall_back_off = TRUE}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (f.session, NULL), OTHER);
}

/* That the master sees nothing of the directory is no damage: the chief reads. */
MUSTER_TEST (RestoreServed, feeds_what_the_master_does_not_see)
{
  g_auto (Served) f = set_up (whole, OLDER);
  g_auto (GStrv) files = muster_storage_list (MUSTER_STORAGE (f.masters), DIRECTORY, NULL);
  for (char **file = files; *file; file++) {
    g_autofree char *path = g_build_filename (DIRECTORY, *file, NULL);
    muster_storage_remove (MUSTER_STORAGE (f.masters), path, NULL);
  }

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (f.session, NULL), NEWER);
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_exists (MUSTER_STORAGE (f.chiefs), DIRECTORY "/model.ckpt-2"));
}

static char *
write_values (const char *name, MusterCheckpointState *state, const MusterSmallVariable *variables,
              int value)
{
  char *prefix = g_build_filename (muster_test_tmpdir (), name, NULL);
  MUSTER_EXPECT_TRUE (muster_small_model_write (prefix, variables, 2, value, NULL));
  g_free (state->latest);
  state->latest = g_strdup (prefix);
  g_ptr_array_add (state->all, g_strdup (prefix));
  return prefix;
}

/* TensorFlow's word for a data file that ends too early. */
MUSTER_TEST (RestoreServed, takes_out_of_range_for_damage)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterFakeMaster) master = muster_fake_master_new (clock);
  g_autoptr (MusterSession) session = muster_master_create_session (
      MUSTER_MASTER (master), NULL, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (MusterMetaGraph) meta_graph = muster_small_model_new (muster_small_variables, 2, 5);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autofree char *older = write_values ("model.ckpt-1", state, muster_small_variables, 1);
  g_autofree char *newer = write_values ("model.ckpt-2", state, muster_small_variables, 1);
  g_auto (MusterRestored) restored = {0};
  g_autoptr (GError) error = NULL;
  muster_small_model_play (master);
  muster_fake_master_fail (master, "save/restore_all", 1, 1, MUSTER_ERROR_OUT_OF_RANGE,
                           "Read less bytes than requested");
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, NULL));

  const MusterRestoreOptions latest = {.directory = muster_test_tmpdir ()};
  MUSTER_EXPECT_TRUE (
      muster_saver_restore (saver, session, &latest, &restored, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (restored.prefix, older);
  MUSTER_ASSERT_TRUE (restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (restored.passed_over, "Read less bytes than requested"));
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, newer));
}

/* What the master fails with otherwise says nothing of the checkpoint. */
MUSTER_TEST (RestoreServed, quarantines_nothing_for_another_failure)
{
  g_auto (Served) f = set_up (whole, OLDER);
  muster_server_free (g_steal_pointer (&f.server));

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_exists (MUSTER_STORAGE (f.chiefs), DIRECTORY "/model.ckpt-2"));
}

/* --- files that change while they are fed --- */

/* Two batches of a variable each, called otherwise in the file. */
#define ROWS 3400
static const MusterSmallVariable large[] = {{"a", MUSTER_FLOAT, 2, {ROWS, 2500}},
                                            {"b", MUSTER_FLOAT, 2, {ROWS, 2500}}},
                                 stored[] = {{"x", MUSTER_FLOAT, 2, {ROWS, 2500}},
                                             {"y", MUSTER_FLOAT, 2, {ROWS, 2500}}};

typedef struct {
  MusterFakeMaster *master;
  MusterSession *session;
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  GHashTable *names;
  MusterRestored restored;
  GError *error;
  int values[2]; /* assigned to "a" and "b"; 0: nothing yet */
} Fed;

static void
spoil (const char *prefix)
{
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);

  MUSTER_EXPECT_EQ (truncate (path, 0), 0);
  MUSTER_EXPECT_EQ (truncate (path, (off_t)(2 * ROWS * 2500 * sizeof (float))), 0);
}

/* When one variable has been assigned from the newest, the bytes of the other have changed. */
static gboolean
assign (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step,
        MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  Fed *f = user_data;
  g_autofree char *newest = g_build_filename (muster_test_tmpdir (), "model.ckpt-2", NULL);

  for (gsize i = 0; i < step->n_feeds; i++) {
    const int given = *(const guint8 *)muster_tensor_data (step->feeds[i].tensor);
    f->values[g_str_has_suffix (step->feeds[i].name, ":1")] = given;
    if (given == NEWER)
      spoil (newest);
  }
  return TRUE;
}

static void
feed (Fed *f, int first)
{
  g_autoptr (MusterFakeClock) clock = muster_fake_clock_new ();
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  f->master = muster_fake_master_new (clock);
  f->session = muster_master_create_session (MUSTER_MASTER (f->master), NULL, NULL,
                                             MUSTER_WAIT_FOREVER, NULL, NULL);
  f->meta_graph = muster_small_model_new (large, 2, 5);
  f->saver = muster_saver_new (f->meta_graph, NULL, NULL);
  f->names = g_hash_table_new (g_str_hash, g_str_equal);
  g_hash_table_insert (f->names, (gpointer) "a", (gpointer) "x");
  g_hash_table_insert (f->names, (gpointer) "b", (gpointer) "y");
  muster_fake_master_op_calls (f->master, "save/Assign_0", assign, f);
  muster_fake_master_op_calls (f->master, "save/Assign_1", assign, f);
  for (int value = first; value <= NEWER; value++) {
    g_autofree char *name = g_strdup_printf ("model.ckpt-%d", value);
    g_autofree char *prefix = write_values (name, state, stored, value);
  }
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, NULL));
  const MusterRestoreOptions options = {.directory = muster_test_tmpdir (), .names = f->names};

  (void)muster_saver_restore (f->saver, f->session, &options, &f->restored, MUSTER_WAIT_FOREVER,
                              NULL, &f->error);
}

static void
fed_clear (Fed *f)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->names, g_hash_table_unref);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fed, fed_clear)

/* What has been assigned of it is assigned anew. */
MUSTER_TEST (RestoreServed, passes_over_one_that_changes_while_it_is_fed)
{
  g_auto (Fed) f = {0};
  feed (&f, OLDER);

  MUSTER_ASSERT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (f.values[0], OLDER);
  MUSTER_EXPECT_EQ (f.values[1], OLDER);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.restored.passed_over, "some variables have values of it already"));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (f.restored.passed_over,
                                        "model.ckpt-2.bad; all variables were assigned again"));
}

MUSTER_TEST (RestoreServed, says_that_variables_have_values_of_one_that_changed)
{
  g_auto (Fed) f = {0};
  feed (&f, NEWER);

  MUSTER_EXPECT_EQ (f.values[0] + f.values[1], NEWER); /* one of them */
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (f.error &&
                      strstr (f.error->message, "some variables have values of it already"));
}
