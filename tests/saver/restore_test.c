// SPDX-License-Identifier: Apache-2.0
#include "saver/restore.h"

#include "base/protowire.h"
#include "bundle/bundle_index.h"
#include "bundle/bundle_writer.h"
#include "bundle/checkpoint_record.h"
#include "bundle/checkpoint_state.h"
#include "bundle/object_graph.h"
#include "bundle/set_aside.h"
#include "engine/local_master.h"
#include "saver/checkpoint_fit.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>

/* Restoring on the real engine, with options; and what falls back. */

static const MusterSmallVariable three[] = {
    {"v", MUSTER_FLOAT, 1, {2, 0}},
    {"w", MUSTER_INT64, 0, {0, 0}},
    {"u", MUSTER_FLOAT, 2, {2, 3}},
};

typedef struct {
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSession *session;
  MusterRestored restored;
  GError *error;
} Fixture;

static Fixture
set_up (const MusterSmallVariable *variables, gsize n)
{
  Fixture f = {.meta_graph = muster_small_model_new (variables, n, 5)};

  f.saver = muster_saver_new (f.meta_graph, NULL, &f.error);
  f.master = muster_local_master_new ();
  f.session = muster_master_create_session (f.master, muster_meta_graph_graph (f.meta_graph), NULL,
                                            MUSTER_WAIT_FOREVER, NULL, &f.error);
  MUSTER_EXPECT_NO_ERROR (f.error);

  return f;
}

static void
tear_down (Fixture *f)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->saver);
  g_clear_pointer (&f->meta_graph, muster_meta_graph_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static char *
path_of (const char *name)
{
  return g_build_filename (muster_test_tmpdir (), name, NULL);
}

static char *
write_as (const char *name, const MusterSmallVariable *variables, gsize n, int value)
{
  char *prefix = path_of (name);

  if (!muster_small_model_write (prefix, variables, n, value, NULL))
    MUSTER_FAIL ("can't write '%s'", prefix);

  return prefix;
}

/* Names checkpoints in the state file, the last one being the latest. */
static void
write_state (const char *first, ...)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  va_list args;

  va_start (args, first);
  for (const char *prefix = first; prefix; prefix = va_arg (args, const char *)) {
    g_free (state->latest);
    state->latest = g_strdup (prefix);
    g_ptr_array_add (state->all, g_strdup (prefix));
  }
  va_end (args);
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_state_write (muster_local_storage (), muster_test_tmpdir (), state, NULL));
}

static void
damage (const char *prefix)
{
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *bytes = NULL;
  gsize size = 0;

  g_file_get_contents (path, &bytes, &size, NULL);
  MUSTER_ASSERT_TRUE (size > 0);
  bytes[0] ^= 0x40;
  g_file_set_contents (path, bytes, (gssize)size, NULL);
}

static gboolean
restore (Fixture *f, const char *prefix, MusterRestoreOptions options)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);

  return muster_saver_restore_with (f->saver, f->session, prefix, &options, &f->restored,
                                    MUSTER_WAIT_FOREVER, NULL, &f->error);
}

static gboolean
restore_latest (Fixture *f, MusterRestoreOptions options)
{
  muster_restored_clear (&f->restored);
  g_clear_error (&f->error);

  return muster_saver_restore_latest_with (f->saver, f->session, muster_test_tmpdir (), &options,
                                           &f->restored, MUSTER_WAIT_FOREVER, NULL, &f->error);
}

/* The first byte of a variable's value; -1 where it has none. */
static int
byte_of (Fixture *f, const char *variable)
{
  g_autofree char *name = g_strconcat (variable, "/read:0", NULL);
  g_autoptr (MusterTensor) tensor =
      muster_session_fetch (f->session, name, MUSTER_WAIT_FOREVER, NULL, NULL);

  return tensor ? *(const guint8 *)muster_tensor_data (tensor) : -1;
}

static gboolean
initialise (Fixture *f)
{
  return muster_session_run_op (f->session, "init", MUSTER_WAIT_FOREVER, NULL, NULL);
}

/* SAV.62: variables need not be initialised before; they are after. */
MUSTER_TEST (RestoreWith, initialises_by_restoring)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), -1);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "w"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 7);
  MUSTER_EXPECT_STREQ (f.restored.prefix, prefix);
  MUSTER_EXPECT_EQ (f.restored.n_tensors, 3u);
  MUSTER_EXPECT_EQ (f.restored.bytes, 40u);
  MUSTER_EXPECT_NULL (f.restored.warning);
}

/* SAV.67: a file that was written anew is read anew. */
MUSTER_TEST (RestoreWith, reads_a_rewritten_file_anew)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
  g_autofree char *again = write_as ("model.ckpt-7", three, 3, 9);
  MUSTER_EXPECT_TRUE (restore (&f, again, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 9);
}

/* What is fed must not be the session's to change: the saver keeps nothing of it. */
MUSTER_TEST (RestoreWith, restores_twice_from_one_file)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_TRUE (initialise (&f));
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 0);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 7);
}

/* SAV.63 [diff] 9 */
MUSTER_TEST (RestoreWith, initialises_what_the_checkpoint_lacks)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 2, 7);

  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){.allow_missing = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "w"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 0);
  MUSTER_ASSERT_TRUE (f.restored.initialised != NULL);
  MUSTER_EXPECT_EQ (g_strv_length (f.restored.initialised), 1u);
  MUSTER_EXPECT_STREQ (f.restored.initialised[0], "u");
  MUSTER_EXPECT_TRUE (strstr (f.restored.warning, "lacks 1 variable, initialised: u"));
}

/* SAV.63: what the graph doesn't know is ignored, unless that is refused. */
MUSTER_TEST (RestoreWith, may_refuse_what_the_graph_does_not_know)
{
  g_auto (Fixture) f = set_up (three, 2);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){.refuse_unexpected = TRUE}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (f.error->message, "\n  u  float [2,3] in the checkpoint, not in the graph"));
}

MUSTER_TEST (RestoreWith, reads_under_other_names)
{
  const MusterSmallVariable renamed[] = {
      {"old/v", MUSTER_FLOAT, 1, {2, 0}},
      {"w", MUSTER_INT64, 0, {0, 0}},
      {"u", MUSTER_FLOAT, 2, {2, 3}},
  };
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", renamed, 3, 7);
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);

  g_hash_table_insert (names, (gpointer) "v", (gpointer) "old/v");
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){.names = names}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 7);

  g_hash_table_insert (names, (gpointer) "vv", (gpointer) "old/v");
  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){.names = names}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* SAV.65: another shape is a fault; with reshape the number of elements counts. */
MUSTER_TEST (RestoreWith, reshapes_on_request)
{
  const MusterSmallVariable flat[] = {
      {"v", MUSTER_FLOAT, 1, {2, 0}},
      {"w", MUSTER_INT64, 0, {0, 0}},
      {"u", MUSTER_FLOAT, 1, {6, 0}},
  };
  const MusterSmallVariable longer[] = {
      {"v", MUSTER_FLOAT, 1, {2, 0}},
      {"w", MUSTER_INT64, 0, {0, 0}},
      {"u", MUSTER_FLOAT, 1, {7, 0}},
  };
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", flat, 3, 7);
  g_autofree char *other = write_as ("model.ckpt-8", longer, 3, 8);

  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){.reshape = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  g_autoptr (MusterTensor) u =
      muster_session_fetch (f.session, "u/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_ASSERT_TRUE (u != NULL);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (u), 2);

  MUSTER_EXPECT_FALSE (restore (&f, other, (MusterRestoreOptions){.reshape = TRUE}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
}

/* SAV.61 */
/* A field of the object graph that is a message. */
static void
put_message (GByteArray *to, guint field, GByteArray *message)
{
  muster_proto_put_bytes (to, field, message->data, message->len);
  g_byte_array_unref (message);
}

/* As TensorFlow 2 writes the variables of objects: the root's children, each with a value. */
static char *
write_objects (const MusterSmallVariable *variables, guint n)
{
  char *prefix = path_of ("objects-1");
  g_autoptr (GByteArray) graph = g_byte_array_new (), values = g_byte_array_new ();
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (NULL, prefix, NULL);
  GByteArray *root = g_byte_array_new ();

  for (guint i = 0; i < n; i++) {
    g_autofree char *key = g_strdup_printf ("part%u/.ATTRIBUTES/VARIABLE_VALUE", i);
    g_autofree char *child_name = g_strdup_printf ("part%u", i);
    GByteArray *child = g_byte_array_new (), *node = g_byte_array_new ();
    GByteArray *attribute = g_byte_array_new ();
    g_autoptr (MusterTensor) tensor =
        muster_tensor_new (variables[i].dtype, variables[i].n_dims, variables[i].dims);
    memset (muster_tensor_data_mutable (tensor), 9, muster_tensor_n_bytes (tensor));
    muster_bundle_writer_add (writer, key, tensor, NULL);
    muster_proto_put_uint (child, 1, i + 1);
    muster_proto_put_string (child, 2, child_name);
    put_message (root, 1, child);
    muster_proto_put_string (attribute, 1, "VARIABLE_VALUE");
    muster_proto_put_string (attribute, 2, variables[i].name);
    muster_proto_put_string (attribute, 3, key);
    put_message (node, 2, attribute);
    put_message (values, 1, node);
  }
  put_message (graph, 1, root);
  g_byte_array_append (graph, values->data, values->len);
  const MusterString text = {(const char *)graph->data, graph->len};
  g_autoptr (MusterTensor) message = muster_tensor_new_strings (0, NULL, &text);
  muster_bundle_writer_add (writer, MUSTER_OBJECT_GRAPH_KEY, message, NULL);
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));

  return prefix;
}

/* SAV.64: found by the names that the objects' variables have, and told */
MUSTER_TEST (RestoreWith, takes_a_checkpoint_of_objects)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_objects (three, 3);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 9);
  MUSTER_EXPECT_EQ (byte_of (&f, "w"), 9);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 9);
  MUSTER_EXPECT_TRUE (f.restored.warning && strstr (f.restored.warning, "object"));
}

/* SAV.64 */
MUSTER_TEST (RestoreWith, says_what_a_checkpoint_of_objects_lacks)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_objects (three, 2);

  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.error->message, "u"));
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);
}

MUSTER_TEST (RestoreWith, says_that_there_is_no_such_checkpoint)
{
  g_auto (Fixture) f = set_up (three, 3);

  MUSTER_EXPECT_FALSE (restore (&f, "/nowhere/model", (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

/* SAV.60 */
MUSTER_TEST (RestoreWith, refuses_no_prefix)
{
  g_auto (Fixture) f = set_up (three, 3);

  MUSTER_EXPECT_FALSE (restore (&f, NULL, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (f.error->message, "Can't load save_path when it is None.");
  MUSTER_EXPECT_FALSE (restore (&f, "", (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static MusterSaver *
saver_of (const char *model)
{
  g_autofree char *path = g_strdup_printf ("tests/fixtures/%s.meta", model);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, NULL);

  return meta_graph ? muster_saver_new (meta_graph, NULL, NULL) : NULL;
}

/* SAV.63, SAV.65, SAV.66 [diff] 21: as data. */
MUSTER_TEST (Fit, tells_of_every_difference)
{
  const MusterSmallVariable file[] = {
      {"v", MUSTER_INT32, 1, {2, 0}},
      {"uu", MUSTER_FLOAT, 2, {2, 3}},
      {"w", MUSTER_INT64, 1, {5, 0}},
  };
  const MusterMisfitKind kinds[] = {MUSTER_MISFIT_DTYPE, MUSTER_MISFIT_SHAPE, MUSTER_MISFIT_MISSING,
                                    MUSTER_MISFIT_UNEXPECTED};
  const char *const names[] = {"v", "w", "u", "uu"};
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", file, 3, 7);
  g_auto (MusterCheckpointFit) fit = {0};

  MUSTER_ASSERT_TRUE (muster_saver_fit (f.saver, prefix, NULL, &fit, &f.error));
  MUSTER_ASSERT_EQ (fit.misfits->len, 4u);
  for (guint i = 0; i < 4; i++) {
    const MusterMisfit *misfit = &g_array_index (fit.misfits, MusterMisfit, i);
    MUSTER_EXPECT_EQ (misfit->kind, kinds[i]);
    MUSTER_EXPECT_STREQ (misfit->name, names[i]);
    MUSTER_EXPECT_EQ (misfit->is_fault, i < 3);
  }
  MUSTER_EXPECT_STREQ (g_array_index (fit.misfits, MusterMisfit, 2).nearest, "uu");
  MUSTER_EXPECT_EQ (g_array_index (fit.misfits, MusterMisfit, 1).there[0], 5);
  MUSTER_EXPECT_EQ (fit.n_faults, 3u);
  MUSTER_EXPECT_EQ (fit.n_wanted, 3u);
}

/* A wrong name is no reason to read, and a damaged value none to differ. */
MUSTER_TEST (Fit, reads_the_index_alone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  g_auto (MusterCheckpointFit) fit = {0};

  damage (prefix);
  MUSTER_EXPECT_TRUE (muster_saver_fit (f.saver, prefix, NULL, &fit, &f.error));
  MUSTER_EXPECT_EQ (fit.n_faults, 0u);
  MUSTER_EXPECT_EQ (fit.bytes, 40u);
}

MUSTER_TEST (Fit, knows_both_kinds_of_variables)
{
  g_autoptr (MusterSaver) saver = saver_of ("mlp_adam_resource");
  g_auto (MusterCheckpointFit) fit = {0};
  g_autoptr (GError) error = NULL;

  MUSTER_ASSERT_TRUE (saver != NULL);
  MUSTER_EXPECT_TRUE (
      muster_saver_fit (saver, "tests/fixtures/mlp_adam_ref.after5", NULL, &fit, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (fit.n_faults, 0u);
}

static gboolean
exists (const char *name)
{
  g_autofree char *prefix = path_of (name);

  return muster_checkpoint_exists (muster_local_storage (), prefix);
}

/* diff 15 */
MUSTER_TEST (RestoreLatest, sets_a_damaged_one_aside_and_takes_the_one_before)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  write_state (whole, bad, NULL);
  damage (bad);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 3);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  g_autofree char *aside =
      g_strdup_printf ("\n  set aside as %s.bad; nothing was read from it", bad);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (f.restored.passed_over, aside));
  MUSTER_EXPECT_FALSE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4.bad"));
  g_auto (GStrv) kept = muster_saver_last_checkpoints (f.saver);
  MUSTER_EXPECT_EQ (g_strv_length (kept), 1u);
}

/* Where nothing can be written it is passed over, and that is said. */
MUSTER_TEST (RestoreLatest, passes_a_damaged_one_over_where_it_may_not_write)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  g_autofree char *lock = path_of (".muster.lock");
  write_state (whole, bad, NULL);
  damage (bad);
  MUSTER_ASSERT_EQ (g_mkdir (lock, 0777), 0); /* nobody gets that lock */

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (f.restored.passed_over, "passed over; nothing was read from it (Setting"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_TRUE (f.restored.warning && strstr (f.restored.warning, "it isn't noted"));
}

MUSTER_TEST (RestoreLatest, leaves_a_damaged_one_on_request)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  write_state (whole, bad, NULL);
  damage (bad);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.keep_damaged = TRUE}));
  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_EXPECT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){.fall_back_off = TRUE}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
}

/* Nothing is put aside where nothing would be left. */
MUSTER_TEST (RestoreLatest, moves_nothing_where_none_is_whole)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);
  damage (older);
  damage (newer);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (f.error->message, "None of 2 checkpoints in "));
  MUSTER_EXPECT_TRUE (strstr (f.error->message, "model.ckpt-4"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-3"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);
}

/* B002.22 [diff] 14: an unreadable state isn't none, but the files may stand in for it. */
MUSTER_TEST (RestoreLatest, falls_back_to_the_files_only_on_request)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-10", three, 3, 10);
  g_autofree char *state = path_of ("checkpoint");
  g_file_set_contents (state, "model_checkpoint_path: \"mod", -1, NULL);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.fall_back_to_files = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.restored.prefix, newer);
  MUSTER_EXPECT_TRUE (f.restored.warning != NULL);
}

/* B002.24 [diff] 15 */
MUSTER_TEST (RestoreLatest, looks_at_the_files_where_those_named_are_gone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *there = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *gone = path_of ("model.ckpt-4");
  write_state (gone, NULL);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.fall_back_to_files = TRUE}));
  MUSTER_EXPECT_STREQ (f.restored.prefix, there);
}

static const char *
life_in_record (void)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), muster_test_tmpdir (), NULL);

  return record && record->life ? g_intern_string (record->life) : NULL;
}

/* One process that restores and dies without a word. */
static char *
live_and_die (void)
{
  g_auto (Fixture) f = set_up (three, 3);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);

  return g_path_get_basename (f.restored.prefix ? f.restored.prefix : "none");
}

MUSTER_TEST (Lives, set_a_checkpoint_aside_that_killed_three_running)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 3; i++) {
    g_autofree char *from = live_and_die ();
    MUSTER_EXPECT_STREQ (from, "model.ckpt-4");
  }
  g_auto (Fixture) f = set_up (three, 3);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, older);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.restored.passed_over, "died at once 3 times running"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4.bad"));
  MUSTER_EXPECT_STREQ (life_in_record (), "model.ckpt-3");
}

MUSTER_TEST (Lives, that_outlive_their_checkpoint_clear_it)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 2; i++)
    g_free (live_and_die ());
  {
    g_auto (Fixture) good = set_up (three, 3);
    MUSTER_EXPECT_TRUE (restore_latest (&good, (MusterRestoreOptions){.count_deaths = TRUE}));
    MUSTER_EXPECT_TRUE (muster_saver_outlived (good.saver, NULL));
    MUSTER_EXPECT_NULL (life_in_record ());
    MUSTER_EXPECT_TRUE (muster_saver_outlived (good.saver, NULL));
  }
  for (int i = 0; i < 3; i++) {
    g_autofree char *from = live_and_die ();
    MUSTER_EXPECT_STREQ (from, "model.ckpt-4");
  }
}

/* One that ended for another reason is neither a death nor a proof. */
MUSTER_TEST (Lives, that_are_excused_do_not_count)
{
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);

  for (int i = 0; i < 2; i++)
    g_free (live_and_die ());
  for (int i = 0; i < 3; i++) {
    g_auto (Fixture) f = set_up (three, 3);
    MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));
    MUSTER_EXPECT_STREQ (f.restored.prefix, newer);
    MUSTER_EXPECT_TRUE (muster_saver_excuse (f.saver, NULL));
  }
  g_free (live_and_die ());
  g_autofree char *from = live_and_die ();
  MUSTER_EXPECT_STREQ (from, "model.ckpt-3");
}

/* A verb that tries again is still the same life. */
MUSTER_TEST (Lives, are_not_ended_by_another_restore_of_the_same_saver)
{
  g_autofree char *only = write_as ("model.ckpt-4", three, 3, 4);
  write_state (only, NULL);
  g_auto (Fixture) f = set_up (three, 3);

  for (int i = 0; i < 5; i++)
    MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, only);
}

MUSTER_TEST (Lives, are_not_counted_unless_asked)
{
  g_autofree char *only = write_as ("model.ckpt-4", three, 3, 4);
  write_state (only, NULL);
  g_auto (Fixture) f = set_up (three, 3);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NULL (life_in_record ());
}

/* A partitioned variable: SAV.31. */
static void
write_slices (const char *prefix, const char *const *slices, const gint64 (*dims)[2], gsize n)
{
  g_autoptr (MusterBundleWriter) writer =
      muster_bundle_writer_new (muster_local_storage (), prefix, NULL);
  float next = 0;

  for (gsize i = 0; i < n; i++) {
    g_autoptr (MusterTensor) part = muster_tensor_new (MUSTER_FLOAT, 2, dims[i]);
    float *values = muster_tensor_data_mutable (part);
    for (gint64 k = 0; k < muster_tensor_n_elements (part); k++)
      values[k] = next++;
    MUSTER_EXPECT_TRUE (muster_bundle_writer_add_slice (writer, "u", slices[i], part, NULL));
  }
  MUSTER_EXPECT_TRUE (muster_bundle_writer_finish (writer, NULL));
}

/* SAV.31: from slices into a whole. */
MUSTER_TEST (RestoreWith, puts_slices_together)
{
  static const char *const slices[] = {"2 3 0,1:-", "2 3 1,1:-"};
  static const gint64 dims[][2] = {{1, 3}, {1, 3}};
  const MusterSmallVariable *u = &three[2];
  g_auto (Fixture) f = set_up (u, 1);
  g_autofree char *prefix = path_of ("model.ckpt-1");

  write_slices (prefix, slices, dims, 2);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (f.restored.bytes, 24u);
  g_autoptr (MusterTensor) value =
      muster_session_fetch (f.session, "u/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_ASSERT_TRUE (value != NULL);
  for (int i = 0; i < 6; i++)
    MUSTER_EXPECT_EQ (((const float *)muster_tensor_data (value))[i], (float)i);
}

typedef struct {
  guint64 done, total;
  guint calls;
} Told;

static void
note_progress (guint64 done, guint64 total, gpointer user_data)
{
  Told *told = user_data;

  MUSTER_EXPECT_GE (done, told->done);
  *told = (Told){done, total, told->calls + 1};
}

MUSTER_TEST (RestoreWith, tells_how_far_it_is)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  Told told = {0};

  MUSTER_EXPECT_TRUE (
      restore (&f, prefix, (MusterRestoreOptions){.progress = note_progress, .user_data = &told}));

  MUSTER_EXPECT_GT (told.calls, 0u);
  MUSTER_EXPECT_EQ (told.done, told.total);
}

/* While it is being removed a checkpoint isn't there any more. */
MUSTER_TEST (RestoreWith, takes_one_that_is_being_removed_for_gone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  g_autofree char *index = muster_bundle_index_path (prefix);
  MusterStorageLock *lock =
      muster_storage_lock (muster_local_storage (), index, MUSTER_LOCK_UNUSED, NULL);
  MUSTER_ASSERT_TRUE (lock != NULL);

  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);

  muster_storage_unlock (muster_local_storage (), lock);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
}

static void
try_to_remove (guint64 done, guint64 total, gpointer user_data)
{
  g_autoptr (GError) error = NULL;

  (void)done;
  (void)total;
  MUSTER_EXPECT_FALSE (muster_remove_checkpoint (muster_local_storage (), user_data, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_BUSY);
}

/* [diff] 22: what a reader holds isn't deleted. */
MUSTER_TEST (RestoreWith, keeps_a_checkpoint_from_being_removed_meanwhile)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (
      restore (&f, prefix, (MusterRestoreOptions){.progress = try_to_remove, .user_data = prefix}));
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (muster_local_storage (), prefix, NULL));
}

/* diff 21: also where several ops read, each its own shard, nothing is assigned unless all is
 * whole. */
MUSTER_TEST (RestoreLatest, assigns_no_shard_of_a_checkpoint_with_a_damaged_one)
{
  const MusterShardedModel model = {.max_to_keep = 5};
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&model);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autofree char *directory = path_of ("sharded");
  g_autoptr (GError) error = NULL;
  char *saved[2];

  for (int i = 0; i < 2; i++) {
    MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, session, (guint8)(i + 1), NULL));
    saved[i] =
        muster_saver_save (saver, session, directory, i + 1, MUSTER_WAIT_FOREVER, NULL, NULL);
    MUSTER_ASSERT_TRUE (saved[i] != NULL);
  }
  g_autofree char *older = saved[0];
  g_autofree char *newer = saved[1];
  g_autofree char *shard = g_strconcat (newer, ".data-00001-of-00002", NULL);
  g_autofree char *bytes = NULL;
  gsize size = 0;
  MUSTER_ASSERT_TRUE (g_file_get_contents (shard, &bytes, &size, NULL) && size > 0);
  bytes[size - 1] ^= 1;
  g_file_set_contents (shard, bytes, (gssize)size, NULL);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, session, 9, NULL));

  MUSTER_EXPECT_FALSE (
      muster_saver_restore (saver, session, newer, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (session, NULL), 9);

  g_autofree char *restored = NULL;
  MUSTER_EXPECT_TRUE (muster_saver_restore_latest (saver, session, directory, &restored, NULL,
                                                   MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_STREQ (restored, older);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (session, NULL), 1);
}
