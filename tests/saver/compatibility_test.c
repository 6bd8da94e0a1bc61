// SPDX-License-Identifier: Apache-2.0
#include "base/protowire_private.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/format/object_graph.h"
#include "saver/compatibility_private.h"
#include "tests/saver/restore_fixture.h"

/* What a checkpoint has and what the graph wants: names, shapes, types, slices, objects. */

static gboolean
compare (MusterMatch *match, MusterSaver *saver, const char *prefix, GError **error)
{
  static const MusterRestoreOptions plain;
  return muster_match_make (match, saver, muster_saver_storage (saver), prefix, &plain, error);
}

/* SAV.63, DIFF.9 */
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

/* All of those that are named, or none: half of them isn't what was meant. */
MUSTER_TEST (RestoreWith, initialises_what_it_may_lack)
{
  static const char *const both[] = {"w", "u", NULL}, *const other[] = {"v", NULL};
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *one = write_as ("model.ckpt-7", three, 1, 7);
  g_autofree char *two = write_as ("model.ckpt-8", three, 2, 8);

  MUSTER_EXPECT_FALSE (restore (&f, one, (MusterRestoreOptions){.may_lack = other}));
  MUSTER_EXPECT_FALSE (restore (&f, two, (MusterRestoreOptions){.may_lack = both}));
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);

  MUSTER_EXPECT_TRUE (restore (&f, one, (MusterRestoreOptions){.may_lack = both}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 0);
  MUSTER_ASSERT_TRUE (f.restored.initialised != NULL);
  MUSTER_EXPECT_EQ (g_strv_length (f.restored.initialised), 2u);
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

/* As `muster checkpoint rename` takes them, but the graph's name comes first. */
MUSTER_TEST (RestoreWith, reads_all_of_a_scope_under_another)
{
  const MusterSmallVariable here[] = {{"new/v", MUSTER_FLOAT, 1, {2, 0}},
                                      {"new/w", MUSTER_INT64, 0, {0, 0}},
                                      {"new/in/u", MUSTER_FLOAT, 2, {2, 3}}};
  const MusterSmallVariable there[] = {{"old/v", MUSTER_FLOAT, 1, {2, 0}},
                                       {"w", MUSTER_INT64, 0, {0, 0}},
                                       {"inner/u", MUSTER_FLOAT, 2, {2, 3}}};
  g_auto (Fixture) f = set_up (here, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", there, 3, 7);
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);

  g_hash_table_insert (names, (gpointer) "new/*", (gpointer) "old/*");
  g_hash_table_insert (names, (gpointer) "new/in/*", (gpointer) "inner/*");
  g_hash_table_insert (names, (gpointer) "new/w", (gpointer) "w");
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){.names = names}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "new/v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "new/in/u"), 7);

  g_hash_table_remove_all (names);
  g_hash_table_insert (names, (gpointer) "old/*", (gpointer) "new/*");
  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){.names = names}));
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.error->message, "the graph's name comes first: 'new/*=old/*'"));
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

static MusterSaver *
saver_of (const char *model)
{
  g_autofree char *path = g_strdup_printf ("tests/fixtures/%s.meta", model);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (path, NULL);
  return meta_graph != NULL ? muster_saver_new (meta_graph, NULL, NULL) : NULL;
}

/* SAV.63, SAV.65, SAV.66, DIFF.21: as data. */
MUSTER_TEST (Fit, reports_every_difference)
{
  const MusterSmallVariable file[] = {
      {"v", MUSTER_INT32, 1, {2, 0}},
      {"uu", MUSTER_FLOAT, 2, {2, 3}},
      {"w", MUSTER_INT64, 1, {5, 0}},
  };
  const MusterIncompatibilityKind kinds[] = {MUSTER_INCOMPATIBLE_DTYPE, MUSTER_INCOMPATIBLE_SHAPE,
                                             MUSTER_INCOMPATIBLE_MISSING,
                                             MUSTER_INCOMPATIBLE_UNEXPECTED};
  const char *const names[] = {"v", "w", "u", "uu"};
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", file, 3, 7);
  g_auto (MusterMatch) match = {0};

  MUSTER_ASSERT_TRUE (compare (&match, f.saver, prefix, &f.error));
  MUSTER_ASSERT_EQ (match.incompatibilities->len, 4u);
  for (guint i = 0; i < 4; i++) {
    const MusterIncompatibility *incompatibility =
        &g_array_index (match.incompatibilities, MusterIncompatibility, i);
    MUSTER_EXPECT_EQ (incompatibility->kind, kinds[i]);
    MUSTER_EXPECT_STREQ (incompatibility->name, names[i]);
    MUSTER_EXPECT_EQ (incompatibility->is_fault, i < 3);
  }
  MUSTER_EXPECT_EQ (g_array_index (match.incompatibilities, MusterIncompatibility, 1).there[0], 5);
  MUSTER_EXPECT_EQ (match.n_faults, 3u);
  MUSTER_EXPECT_FALSE (muster_match_check (&match, NULL));
  MUSTER_EXPECT_STREQ (g_array_index (match.incompatibilities, MusterIncompatibility, 2).suggestion,
                       "uu");
}

/* A wrong name is no reason to read, and a damaged value none to differ. */
MUSTER_TEST (Fit, reads_the_index_alone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  g_auto (MusterMatch) match = {0};

  damage (prefix);
  MUSTER_EXPECT_TRUE (compare (&match, f.saver, prefix, &f.error));
  MUSTER_EXPECT_EQ (match.n_faults, 0u);
  MUSTER_EXPECT_EQ (match.bytes, 40u);
}

MUSTER_TEST (Fit, knows_both_kinds_of_variables)
{
  g_autoptr (MusterSaver) saver = saver_of ("mlp_adam_resource");
  g_auto (MusterMatch) match = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (saver != NULL);
  MUSTER_EXPECT_TRUE (compare (&match, saver, "tests/fixtures/mlp_adam_ref.after5", &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (match.n_faults, 0u);
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
