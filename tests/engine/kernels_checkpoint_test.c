// SPDX-License-Identifier: Apache-2.0
/* SaveV2, RestoreV2 and MergeV2Checkpoints as a session runs them, and shapes that no machine has
 * the memory for. */
#include "base/error.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/gtest_shim.h"

#include <string.h>

static MusterSession *
session_over (MusterStorage *storage, MusterGraphBuilder *builder)
{
  g_autoptr (MusterMaster) master = muster_local_master_new_with (storage, 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MusterSession *session = NULL;

  MUSTER_EXPECT_NO_ERROR (error);
  if (graph != NULL)
    session = muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

static MusterSession *
session_of (MusterGraphBuilder *builder)
{
  return session_over (NULL, builder);
}

static void
text (MusterGraphBuilder *b, const char *name, const char *value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_string (value);
  muster_graph_builder_constant (b, name, tensor);
}

static void
texts (MusterGraphBuilder *b, const char *name, const char *const *values)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_strv (values);
  muster_graph_builder_constant (b, name, tensor);
}

/* A node "save" that writes a float and a string vector, and nodes that read. */
static void
add_save (MusterGraphBuilder *b, const char *node, const char *prefix, const char *prefix_node)
{
  static const char *const names[] = {"number", "words", NULL};
  static const char *const slices[] = {"", "", NULL};
  static const MusterDType dtypes[] = {MUSTER_FLOAT, MUSTER_STRING};
  static const char *const words[] = {"a", "", "long enough", NULL};
  g_autoptr (MusterTensor) number = muster_tensor_new_float (2.5f);
  text (b, prefix_node, prefix);
  texts (b, "names", names);
  texts (b, "slices", slices);
  muster_graph_builder_constant (b, "number", number);
  texts (b, "words", words);
  muster_graph_builder_node (b, "SaveV2", node);
  muster_graph_builder_input (b, prefix_node);
  muster_graph_builder_input (b, "names");
  muster_graph_builder_input (b, "slices");
  muster_graph_builder_input (b, "number");
  muster_graph_builder_input (b, "words");
  muster_graph_builder_attr_types (b, "dtypes", dtypes, 2);
}

static void
add_restore (MusterGraphBuilder *b, const char *node, const char *prefix_node, const char *name,
             MusterDType dtype)
{
  g_autofree char *list = g_strconcat (node, "_names", NULL);
  g_autofree char *slices = g_strconcat (node, "_slices", NULL);

  texts (b, list, (const char *[]){name, NULL});
  texts (b, slices, (const char *[]){"", NULL});
  muster_graph_builder_node (b, "RestoreV2", node);
  muster_graph_builder_input (b, prefix_node);
  muster_graph_builder_input (b, list);
  muster_graph_builder_input (b, slices);
  muster_graph_builder_attr_types (b, "dtypes", &dtype, 1);
}

static void
expect_fetch_fails (MusterSession *session, const char *tensor, int code, const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, tensor, MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (value);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, words);
}

MUSTER_TEST (checkpoint_kernels, restore_what_was_saved)
{
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-1", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  add_save (b, "save", prefix, "prefix");
  add_restore (b, "number_again", "prefix", "number", MUSTER_FLOAT);
  add_restore (b, "words_again", "prefix", "words", MUSTER_STRING);
  add_restore (b, "other_dtype", "prefix", "number", MUSTER_INT64);
  add_restore (b, "absent", "prefix", "nobody", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = session_of (b);
  MUSTER_ASSERT_NOT_NULL (session);

  expect_fetch_fails (session, "number_again:0", MUSTER_ERROR_NOT_FOUND,
                      "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                      "files for ");
  muster_session_run_op (session, "save", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterTensor) number =
      muster_session_fetch (session, "number_again:0", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (2.5, *(const float *)muster_tensor_data (number));
  g_autoptr (MusterTensor) words =
      muster_session_fetch (session, "words_again:0", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterString last = muster_tensor_string (words, 2);
  MUSTER_EXPECT_MEMEQ ("long enough", 11, last.data, last.size);
  expect_fetch_fails (session, "absent:0", MUSTER_ERROR_NOT_FOUND,
                      "Key nobody not found in checkpoint");
  expect_fetch_fails (session, "other_dtype:0", MUSTER_ERROR_INVALID_ARGUMENT,
                      "Expected to restore a tensor of type int64, got a tensor of type float");
}

/* What is remembered of one step's names is no other's. */
MUSTER_TEST (checkpoint_kernels, save_under_the_names_of_each_step)
{
  static const char *const names[][3] = {{"b", "a", NULL}, {"c", "b", NULL}, {"d", "d", NULL}};
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-5", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_save (b, "save", prefix, "prefix");
  g_autoptr (MusterSession) session = session_of (b);
  MUSTER_ASSERT_NOT_NULL (session);

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) fed = muster_tensor_new_strv (names[i]);
    const MusterFeed feed = {"names:0", fed};
    const char *target = "save";
    const MusterStep step = {.feeds = &feed,
                             .n_feeds = 1,
                             .targets = &target,
                             .n_targets = 1,
                             .deadline_us = MUSTER_WAIT_FOREVER};
    const gboolean is_saved = muster_session_run (session, &step, NULL, NULL, NULL, &error);
    MUSTER_TRACE ("step %d", (int)i);
    MUSTER_EXPECT_EQ (is_saved, i < 2);
    if (i == 2) {
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ALREADY_EXISTS);
      continue;
    }
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
    g_autoptr (MusterTensor) number = muster_bundle_reader_read (reader, names[i][0], NULL);
    g_autoptr (MusterTensor) words = muster_bundle_reader_read (reader, names[i][1], NULL);
    MUSTER_EXPECT_EQ (muster_bundle_reader_n_entries (reader), (gsize)2);
    MUSTER_EXPECT_EQ (muster_tensor_dtype (number), MUSTER_FLOAT);
    MUSTER_EXPECT_EQ (muster_tensor_dtype (words), MUSTER_STRING);
  }
}

MUSTER_TEST (checkpoint_kernels, merge_the_shards_of_a_sharded_saver)
{
  g_autofree char *folder = g_build_filename (muster_test_tmpdir (), "part", NULL);
  g_autofree char *part = g_build_filename (folder, "part-00000-of-00001", NULL);
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-2", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  add_save (b, "save", part, "part");
  texts (b, "parts", (const char *[]){part, NULL});
  text (b, "prefix", prefix);
  muster_graph_builder_node (b, "MergeV2Checkpoints", "merge");
  muster_graph_builder_input (b, "parts");
  muster_graph_builder_input (b, "prefix");
  muster_graph_builder_input (b, "^save");
  add_restore (b, "number_again", "prefix", "number", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = session_of (b);
  MUSTER_ASSERT_NOT_NULL (session);

  muster_session_run_op (session, "merge", MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) number =
      muster_session_fetch (session, "number_again:0", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (2.5, *(const float *)muster_tensor_data (number));
  MUSTER_EXPECT_FALSE (g_file_test (folder, G_FILE_TEST_EXISTS));
}

/* Save, merge and restore of one sharded model; FALSE with the first error. */
static gboolean
save_merge_restore (MusterStorage *storage, const char *name, GError **error)
{
  g_autofree char *part = g_build_filename (muster_test_tmpdir (), name, "part", NULL);
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), name, "whole", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_save (b, "save", part, "part");
  texts (b, "parts", (const char *[]){part, NULL});
  text (b, "prefix", prefix);
  muster_graph_builder_node (b, "MergeV2Checkpoints", "merge");
  muster_graph_builder_input (b, "parts");
  muster_graph_builder_input (b, "prefix");
  add_restore (b, "again", "prefix", "number", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = session_over (storage, b);
  if (!muster_session_run_op (session, "save", MUSTER_WAIT_FOREVER, NULL, error) ||
      !muster_session_run_op (session, "merge", MUSTER_WAIT_FOREVER, NULL, error))
    return FALSE;
  g_autoptr (MusterTensor) again =
      muster_session_fetch (session, "again:0", MUSTER_WAIT_FOREVER, NULL, error);
  return again != NULL;
}

MUSTER_TEST (checkpoint_kernels, go_through_the_storage_of_their_master)
{
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (save_merge_restore (MUSTER_STORAGE (storage), "all", &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (strstr (storage->log->str, "rename to part.index") != NULL);
  MUSTER_EXPECT_TRUE (strstr (storage->log->str, "rename to whole.index") != NULL);
  MUSTER_EXPECT_TRUE (strstr (storage->log->str, "read whole.index") != NULL);
  MUSTER_EXPECT_TRUE (strstr (storage->log->str, "make directory all; ") != NULL);
}

/* The test's folder "data", and all that is below it. */
static MusterStorage *
storage_within_data (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = g_build_filename (muster_test_tmpdir (), "data", NULL);
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (muster_local_storage (), data, &error));
  MusterStorage *storage =
      muster_local_storage_new_within ((const char *const[]){data, NULL}, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return storage;
}

MUSTER_TEST (checkpoint_kernels, write_and_read_only_in_the_data_directories)
{
  g_autoptr (MusterStorage) storage = storage_within_data ();
  g_autofree char *outside = g_build_filename (muster_test_tmpdir (), "outside", NULL);
  g_autofree char *prefix = g_build_filename (outside, "read", NULL);
  g_autofree char *inside = g_build_filename (muster_test_tmpdir (), "data", "x", NULL);
  g_autoptr (GError) error = NULL, of_save = NULL, of_merge = NULL;
  MUSTER_EXPECT_TRUE (save_merge_restore (storage, "data/run", &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (save_merge_restore (storage, "made/run", &of_save));
  MUSTER_EXPECT_ERROR (of_save, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
  g_autofree char *made = g_build_filename (muster_test_tmpdir (), "made", NULL);
  MUSTER_EXPECT_FALSE (g_file_test (made, G_FILE_TEST_EXISTS));

  /* A checkpoint that is outside is neither read nor merged, which would remove it. */
  MUSTER_ASSERT_TRUE (save_merge_restore (NULL, "outside", &error));
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autofree char *whole = g_build_filename (outside, "whole", NULL);
  add_save (b, "save", prefix, "prefix");
  text (b, "whole", whole);
  add_restore (b, "again", "whole", "number", MUSTER_FLOAT);
  texts (b, "parts", (const char *[]){whole, NULL});
  text (b, "inside", inside);
  muster_graph_builder_node (b, "MergeV2Checkpoints", "merge");
  muster_graph_builder_input (b, "parts");
  muster_graph_builder_input (b, "inside");
  g_autoptr (MusterSession) session = session_over (storage, b);
  expect_fetch_fails (session, "again:0", MUSTER_ERROR_PERMISSION_DENIED, outside);
  MUSTER_EXPECT_FALSE (
      muster_session_run_op (session, "merge", MUSTER_WAIT_FOREVER, NULL, &of_merge));
  MUSTER_EXPECT_ERROR (of_merge, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, whole, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* The op takes what (a scalar or a vector of n) and a shape of two sizes of 2^31. */
static void
expect_too_large (const char *op, gboolean shape_first, gboolean is_vector, const char *shape_attr)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  static const gint64 sizes[] = {(gint64)1 << 31, (gint64)1 << 31}, two = 2;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT64, 1, &two, sizes, sizeof sizes, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  static const gint64 ones[] = {1, 1};
  g_autoptr (MusterTensor) vector = muster_tensor_reshape (one, 2, ones);
  muster_graph_builder_constant (b, "shape", shape);
  muster_graph_builder_constant (b, "value", is_vector ? vector : one);
  muster_graph_builder_node (b, op, "large");
  muster_graph_builder_input (b, shape_first ? "shape" : "value");
  muster_graph_builder_input (b, shape_first ? "value" : "shape");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, shape_attr, MUSTER_INT64);
  g_autoptr (MusterSession) session = session_of (b);
  MUSTER_ASSERT_NOT_NULL (session);

  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, "large:0", MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (value);
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_RESOURCE_EXHAUSTED) ||
                      muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
}

MUSTER_TEST (kernels, refuse_shapes_that_no_machine_has_the_memory_for)
{
  expect_too_large ("Fill", TRUE, FALSE, "index_type");
  expect_too_large ("BroadcastTo", FALSE, FALSE, "Tidx");
  expect_too_large ("Tile", FALSE, TRUE, "Tmultiples");
}
