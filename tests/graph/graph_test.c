// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"
#include "graph/meta_graph/meta_graph_io.h"

#include <string.h>

#include "base/error.h"
#include "base/memory_account_private.h"
#include "base/protowire_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "tests/gtest_shim.h"

static MusterGraph *
end (MusterGraphBuilder *builder)
{
  g_autoptr (GError) error = NULL;
  MusterGraph *graph = muster_graph_builder_end (builder, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return graph;
}

/* x -> two -> sum -> after */
static MusterGraph *
small_graph (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_constant (builder, "two", two);
  muster_graph_builder_node (builder, "AddV2", "sum");
  muster_graph_builder_input (builder, "x");
  muster_graph_builder_input (builder, "two:0");
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  muster_graph_builder_group (builder, "after", (const char *[]){"sum", NULL});
  return end (builder);
}

static MusterGraph *
copy_of (MusterGraph *graph)
{
  GBytes *bytes = muster_graph_bytes (graph);
  g_autoptr (GBytes) copy = g_bytes_new (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  return muster_graph_new (copy);
}

MUSTER_TEST (graph, finds_its_nodes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = small_graph ();
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (graph), 4u);
  MUSTER_EXPECT_TRUE (muster_graph_has_node (graph, "sum"));
  MUSTER_EXPECT_FALSE (muster_graph_has_node (graph, "su"));
  MUSTER_EXPECT_FALSE (muster_graph_has_node (graph, ""));
  MUSTER_EXPECT_EQ (muster_graph_find (graph, "sum:0", 3), 2);
  MUSTER_EXPECT_EQ (muster_graph_find (graph, "x\0y", 3), -1);
  MUSTER_EXPECT_EQ (muster_graph_find (graph, "nobody", 6), -1);
  MUSTER_EXPECT_STREQ (muster_graph_node (graph, 1)->kind->op, "Const");
  MUSTER_EXPECT_NULL (muster_graph_node (graph, 4));
  MUSTER_EXPECT_NULL (muster_graph_find_node (graph, "nobody"));
  g_autofree char *input =
      muster_graph_input_text (graph, muster_graph_find_node (graph, "after"), 0);
  MUSTER_EXPECT_STREQ (input, "^sum");
}

MUSTER_TEST (graph, finds_every_one_of_many_nodes)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (int i = 0; i < 5000; i++) {
    g_autofree char *name = g_strdup_printf ("scope/node_%d", i);
    muster_graph_builder_node (builder, "NoOp", name);
  }
  g_autoptr (MusterGraph) graph = end (builder);
  for (int i = 0; i < 5000; i++) {
    g_autofree char *name = g_strdup_printf ("scope/node_%d", i);
    MUSTER_ASSERT_EQ (muster_graph_find (graph, name, strlen (name)), i);
  }
}

/* Wherever an input is: it is looked for first where the last ones were. */
MUSTER_TEST (graph, finds_every_input_of_many_nodes)
{
  enum { N = 300 };
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (int i = 0; i < N; i++) {
    g_autofree char *name = g_strdup_printf ("scope/node_%d", i);
    muster_graph_builder_node (builder, "NoOp", name);
    for (int j = 0; j < i % 7; j++) {
      g_autofree char *input = g_strdup_printf ("^scope/node_%d", (i * 31 + j * j * 17) % N);
      muster_graph_builder_input (builder, input);
    }
  }
  g_autoptr (MusterGraph) graph = end (builder);
  MUSTER_ASSERT_TRUE (muster_graph_parse (graph, NULL));
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i % 7; j++) {
      int output;
      MUSTER_ASSERT_EQ (
          (int)muster_node_input (muster_graph_node (graph, (gsize)i), (gsize)j, &output),
          (i * 31 + j * j * 17) % N);
      MUSTER_EXPECT_EQ (output, -1);
    }
}

MUSTER_TEST (graph, is_its_bytes)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterGraph) same = copy_of (graph);
  g_autoptr (MusterGraph) extended = muster_graph_extended (graph, graph);
  MUSTER_EXPECT_TRUE (muster_graph_equal (graph, same));
  MUSTER_EXPECT_EQ (muster_graph_hash (graph), muster_graph_hash (same));
  MUSTER_EXPECT_FALSE (muster_graph_equal (graph, extended));
  MUSTER_EXPECT_NE (muster_graph_hash (graph), muster_graph_hash (extended));
}

MUSTER_TEST (graph, may_be_empty)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (nothing);
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (graph), 0u);
  MUSTER_EXPECT_FALSE (muster_graph_has_node (graph, "x"));
  g_autoptr (MusterGraph) small = small_graph ();
  g_autoptr (MusterGraph) extended = muster_graph_extended (graph, small);
  MUSTER_EXPECT_TRUE (muster_graph_equal (extended, small));
}

static void
expect_refused (MusterGraph *taken, const char *names)
{
  g_autoptr (MusterGraph) graph = taken;
  for (int i = 0; i < 2; i++) { /* the verdict is kept */
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (muster_graph_parse (graph, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, names);
  }
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (graph), 0u);
  MUSTER_EXPECT_NULL (muster_graph_node (graph, 0));
  MUSTER_EXPECT_FALSE (muster_graph_has_node (graph, "x"));
  MUSTER_EXPECT_EQ (muster_graph_find (graph, "x", 1), -1);
}

static MusterGraph *
graph_of (const char *bytes, gsize size)
{
  g_autoptr (GBytes) held = g_bytes_new (bytes, size);
  return muster_graph_new (held);
}

static MusterGraph *
node_with_input (const char *input)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "NoOp", "lonely");
  muster_graph_builder_input (builder, input);
  return end (builder);
}

MUSTER_TEST (graph, refuses_what_is_malformed_and_names_it)
{
  g_autoptr (MusterGraph) small = small_graph ();
  expect_refused (graph_of ("\x0a\5abc", 5), "graph");
  expect_refused (graph_of ("\x0a\6\x0a\0\x12\2Op", 8), "'Op'");
  expect_refused (muster_graph_extended (small, small), "'x'");
  expect_refused (node_with_input ("gone:1"), "'lonely' has the input 'gone:1'");
  expect_refused (node_with_input ("^gone"), "'^gone'");
  expect_refused (node_with_input ("lonely:"), "'lonely:'");
  expect_refused (node_with_input (":0"), "':0'");
  expect_refused (node_with_input ("^"), "'^'");
}

MUSTER_TEST (graph, takes_inputs_that_come_later)
{
  g_autoptr (MusterGraph) graph = node_with_input ("lonely:1"); /* itself: a loop is no mistake */
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, NULL));
}

MUSTER_TEST (graph, grows_by_another_ones_nodes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "Identity", "again");
  muster_graph_builder_input (builder, "sum");
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  g_autoptr (MusterGraph) extra = end (builder);

  g_autoptr (MusterGraph) both = muster_graph_extended (graph, extra);

  MUSTER_EXPECT_TRUE (muster_graph_parse (both, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (both), 5u);
  MUSTER_EXPECT_STREQ (muster_graph_node (both, 4)->name, "again");
}

/* A node that takes another's value. */
static MusterGraph *
follower (const char *name, const char *input)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  muster_graph_builder_node (builder, "Identity", name);
  muster_graph_builder_input (builder, input);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  return end (builder);
}

MUSTER_TEST (graph, is_not_parsed_again_when_it_is_extended)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterGraph) extra = follower ("again", "sum");
  g_autoptr (MusterGraph) both = muster_graph_extended (graph, extra);
  int output;
  MUSTER_EXPECT_TRUE (muster_graph_node (both, 2) == muster_graph_node (graph, 2));
  MUSTER_EXPECT_EQ (muster_graph_find (both, "sum", 3), 2);
  MUSTER_EXPECT_EQ (muster_graph_find (both, "again", 5), 4);
  MUSTER_EXPECT_EQ (muster_graph_find (both, "gone", 4), -1);
  MUSTER_EXPECT_EQ (muster_node_input (muster_graph_node (both, 2), 1, &output), 1u);
  MUSTER_EXPECT_EQ (muster_node_input (muster_graph_node (both, 4), 0, &output), 2u);
  MUSTER_EXPECT_NULL (muster_graph_node (both, 5));
  expect_refused (muster_graph_extended (both, extra), "'again'");
  expect_refused (muster_graph_extended (both, graph), "'x'");
}

MUSTER_TEST (graph, may_be_extended_any_number_of_times)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autofree char *last = g_strdup ("sum");
  for (int i = 0; i < 30; i++) {
    char *name = g_strdup_printf ("n%d", i);
    g_autoptr (MusterGraph) extra = follower (name, last);
    MusterGraph *both = muster_graph_extended (graph, extra);
    g_autoptr (MusterGraph) before = g_steal_pointer (&graph);
    g_autoptr (MusterGraph) added = muster_graph_added (both, before);
    graph = both;
    g_free (last);
    last = name;
    MUSTER_EXPECT_TRUE (muster_graph_equal (added, extra));
  }
  g_autoptr (MusterGraph) read_again = copy_of (graph);
  MUSTER_EXPECT_TRUE (muster_graph_equal (graph, read_again));
  MUSTER_ASSERT_EQ (muster_graph_n_nodes (graph), 34u);
  MUSTER_ASSERT_EQ (muster_graph_n_nodes (read_again), 34u);
  for (gsize i = 4; i < 34; i++) {
    int output;
    MUSTER_EXPECT_EQ (muster_node_input (muster_graph_node (graph, i), 0, &output),
                      i == 4 ? 2 : i - 1);
    MUSTER_EXPECT_STREQ (muster_graph_node (graph, i)->name,
                         muster_graph_node (read_again, i)->name);
  }
}

MUSTER_TEST (graph, is_mended_by_the_node_that_it_lacks)
{
  g_autoptr (MusterGraph) graph = follower ("second", "first");
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  muster_graph_builder_placeholder (builder, "first", MUSTER_FLOAT, 0, NULL);
  g_autoptr (MusterGraph) extra = end (builder);
  g_autoptr (MusterGraph) both = muster_graph_extended (graph, extra);

  MUSTER_EXPECT_FALSE (muster_graph_parse (graph, NULL));
  MUSTER_EXPECT_TRUE (muster_graph_parse (both, NULL));
  MUSTER_EXPECT_EQ (muster_graph_find (both, "first", 5), 1);
}

MUSTER_TEST (graph, has_nothing_behind_itself)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterGraph) added = muster_graph_added (graph, graph);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (added), 0u);
  MUSTER_EXPECT_TRUE (muster_graph_parse (added, NULL));
}

static void
expect_split (const char *input, const char *wanted_name, int wanted_output)
{
  g_autofree char *name = NULL;
  MUSTER_EXPECT_EQ (muster_graph_split_input (input, &name), wanted_output);
  MUSTER_EXPECT_STREQ (name, wanted_name);
}

MUSTER_TEST (graph, takes_inputs_apart)
{
  expect_split ("name", "name", 0);
  expect_split ("name:3", "name", 3);
  expect_split ("scope/name:12", "scope/name", 12);
  expect_split ("^name", "name", -1);
  expect_split ("a:b", "a:b", 0);
  expect_split ("a:1:2", "a:1", 2);
  expect_split ("name7", "name7", 0);
  expect_split ("name:", "name:", 0);
  expect_split (":0", ":0", 0);
  expect_split ("name:99999999999", "name:99999999999", 0);
  expect_split ("", "", 0);
}

static void
expect_load_fails (const char *path)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_graph_load (path, &error));
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, path) != NULL);
}

MUSTER_TEST (graph, is_loaded_from_either_kind_of_file)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new_for_graph (graph);
  static const char *const names[] = {"graph.pb", "meta.pb", "model.meta"};
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (muster_test_tmpdir (), names[i], NULL);
    GBytes *bytes = i == 0 ? muster_graph_bytes (graph) : muster_meta_graph_bytes (meta);
    g_file_set_contents (path, g_bytes_get_data (bytes, NULL), (gssize)g_bytes_get_size (bytes),
                         &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autoptr (MusterGraph) loaded = muster_graph_load (path, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_graph_equal (loaded, graph));
  }
  g_autofree char *bad = g_build_filename (muster_test_tmpdir (), "bad.pb", NULL);
  g_autofree char *bad_meta = g_build_filename (muster_test_tmpdir (), "bad.meta", NULL);
  g_file_set_contents (bad, "\x0a\5abc", 5, NULL);
  g_file_set_contents (bad_meta, "\x0a\5abc", 5, NULL);
  expect_load_fails (bad);
  expect_load_fails (bad_meta);
  expect_load_fails ("/nowhere/at/all.pb");
}

MUSTER_TEST (graph, survives_truncation_at_any_byte)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_graph_bytes (graph), &size);
  for (gsize cut = 0; cut < size; cut++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = g_bytes_new (data, cut);
    g_autoptr (MusterGraph) part = muster_graph_new (bytes);
    MUSTER_EXPECT_TRUE (muster_graph_parse (part, &error) == (error == NULL));
  }
}

static gpointer
parse_in_thread (gpointer data)
{
  MusterGraph *graph = data;
  return GSIZE_TO_POINTER (muster_graph_n_nodes (graph) + (muster_graph_hash (graph) == 0));
}

MUSTER_TEST (graph, is_parsed_by_many_threads_at_once)
{
  for (int round = 0; round < 50; round++) {
    g_autoptr (MusterGraph) graph = small_graph ();
    GThread *threads[4];
    for (guint i = 0; i < 4; i++)
      threads[i] = g_thread_new ("parse", parse_in_thread, graph);
    for (guint i = 0; i < 4; i++)
      MUSTER_EXPECT_EQ (GPOINTER_TO_SIZE (g_thread_join (threads[i])), 4u);
  }
}

MUSTER_TEST (node, gives_its_attributes_by_type)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const gint64 dims[] = {3, -1};
  muster_graph_builder_node (builder, "Thing", "thing");
  muster_graph_builder_attr_type (builder, "type", MUSTER_HALF);
  muster_graph_builder_attr_int (builder, "int", -5);
  muster_graph_builder_attr_int (builder, "zero", 0);
  muster_graph_builder_attr_bool (builder, "bool", TRUE);
  muster_graph_builder_attr_bool (builder, "false", FALSE);
  muster_graph_builder_attr_float (builder, "float", 0.25f);
  muster_graph_builder_attr_string (builder, "string", "text");
  muster_graph_builder_attr_shape (builder, "shape", 2, dims);
  muster_graph_builder_attr_shape (builder, "any", -1, NULL);
  muster_graph_builder_attr_shape (builder, "scalar", 0, NULL);
  muster_graph_builder_attr_int (builder, "int", 6); /* the last one wins */
  g_autoptr (MusterGraph) graph = end (builder);
  const MusterNode *node = muster_graph_find_node (graph, "thing");
  MUSTER_ASSERT_NOT_NULL (node);
  gint64 out[2] = {9, 9};
  g_autofree char *text = muster_node_string (node, "string");

  MUSTER_EXPECT_EQ ((int)muster_node_dtype (node, "type", MUSTER_FLOAT), MUSTER_HALF);
  MUSTER_EXPECT_EQ (muster_node_int (node, "int", 1), 6);
  MUSTER_EXPECT_EQ (muster_node_int (node, "zero", 1), 0);
  MUSTER_EXPECT_TRUE (muster_node_bool (node, "bool", FALSE));
  MUSTER_EXPECT_FALSE (muster_node_bool (node, "false", TRUE));
  MUSTER_EXPECT_EQ (muster_node_float (node, "float", 1), 0.25f);
  MUSTER_EXPECT_STREQ (text, "text");
  MUSTER_EXPECT_EQ (muster_node_shape (node, "any", out, 2), -1);
  MUSTER_EXPECT_EQ (muster_node_shape (node, "none", out, 2), -1);
  MUSTER_EXPECT_EQ (muster_node_shape (node, "scalar", out, 2), 0);
  MUSTER_EXPECT_EQ (muster_node_shape (node, "shape", out, 1), 2);
  MUSTER_EXPECT_EQ (out[0], 3);
  MUSTER_EXPECT_EQ (out[1], 9);
  MUSTER_EXPECT_EQ (muster_node_shape (node, "shape", out, 2), 2);
  MUSTER_EXPECT_EQ (out[1], -1);

  MUSTER_EXPECT_EQ (muster_node_int (node, "float", 8), 8);
  MUSTER_EXPECT_EQ ((int)muster_node_dtype (node, "int", MUSTER_FLOAT), MUSTER_FLOAT);
  MUSTER_EXPECT_NULL (muster_node_string (node, "int"));
  MUSTER_EXPECT_NULL (muster_node_attr (node, "none"));
}

/* --- what a graph takes beside its bytes --- */

MUSTER_TEST (graph, takes_less_memory_for_its_nodes_than_for_its_bytes)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  for (int i = 0; i < 40000; i++) {
    g_autofree char *name = g_strdup_printf ("layer_%d/block_%d/kernel", i / 100, i % 100);
    muster_graph_builder_variable (builder, name, zero);
  }
  g_autoptr (MusterGraph) graph = end (builder);
  const guint64 before = muster_memory_used (MUSTER_MEMORY_GRAPHS);
  MUSTER_ASSERT_TRUE (muster_graph_parse (graph, NULL));
  MUSTER_EXPECT_LE (muster_memory_used (MUSTER_MEMORY_GRAPHS) - before,
                    g_bytes_get_size (muster_graph_bytes (graph)));
}

/* So that a large constant isn't held twice. */
MUSTER_TEST (graph, has_its_constants_in_its_bytes)
{
  g_autoptr (MusterGraph) graph = small_graph ();
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_graph_bytes (graph), &size);
  const MusterNode *constant = muster_graph_node (graph, 1);
  const ProtobufCBinaryData *value = &muster_node_attr (constant, "value")->tensor;
  MUSTER_EXPECT_TRUE (value->data > data && value->data + value->len <= data + size);
}

MUSTER_TEST (graph, holds_once_what_nodes_have_in_common)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (int i = 0; i < 4; i++) {
    const char *const names[] = {"a", "b", "c", "d"};
    muster_graph_builder_placeholder (builder, names[i], i == 2 ? MUSTER_INT32 : MUSTER_FLOAT, 0,
                                      NULL);
  }
  g_autoptr (MusterGraph) graph = end (builder);
  const MusterNodeKind *kind = muster_graph_node (graph, 0)->kind;
  MUSTER_EXPECT_TRUE (muster_graph_node (graph, 1)->kind == kind);
  MUSTER_EXPECT_TRUE (muster_graph_node (graph, 2)->kind != kind);
  MUSTER_EXPECT_TRUE (muster_graph_node (graph, 3)->kind == kind);
  MUSTER_EXPECT_EQ (muster_node_dtype (muster_graph_node (graph, 2), "dtype", 0), MUSTER_INT32);
}

/* Fields in any order, some twice: the last name, op and device count. */
MUSTER_TEST (graph, reads_nodes_whose_fields_are_out_of_order)
{
  static const char one[] = "\x0a\x1c"
                            "\x1a\1b"   /* an input */
                            "\x22\2/x"  /* a device */
                            "\x0a\1x"   /* a name */
                            "\x12\1O"   /* an op */
                            "\x1a\3b:0" /* an input */
                            "\x12\1P"   /* an op */
                            "\x0a\1a"   /* a name */
                            "\x22\2/y"; /* a device */
  static const char other[] = "\x0a\3\x0a\1b";
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_byte_array_append (bytes, (const guint8 *)one, sizeof one - 1);
  g_byte_array_append (bytes, (const guint8 *)other, sizeof other - 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) both = g_byte_array_free_to_bytes (g_steal_pointer (&bytes));
  g_autoptr (MusterGraph) graph = muster_graph_new (both);
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterNode *node = muster_graph_node (graph, 0);
  MUSTER_EXPECT_STREQ (node->name, "a");
  MUSTER_EXPECT_STREQ (node->kind->op, "P");
  MUSTER_EXPECT_STREQ (node->kind->device, "/y");
  MUSTER_ASSERT_EQ (node->n_input, 2u);
  g_autofree char *first = muster_graph_input_text (graph, node, 0);
  g_autofree char *second = muster_graph_input_text (graph, node, 1);
  MUSTER_EXPECT_STREQ (first, "b");
  MUSTER_EXPECT_STREQ (second, "b:0");
}

/* It is compared, counted and hashed in its pieces. */
MUSTER_TEST (graph, is_the_same_as_an_extension_and_in_one)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new_extension ();
  g_autofree char *name = g_strnfill (3000, 'x');
  muster_graph_builder_node (b, "NoOp", name);
  g_autoptr (MusterGraph) extra = end (b);
  g_autoptr (MusterGraph) graph = small_graph ();
  g_autoptr (MusterGraph) extended = muster_graph_extended (graph, extra);
  g_autoptr (MusterGraph) same = muster_graph_extended (graph, extra);
  g_autoptr (MusterGraph) other = muster_graph_extended (extra, graph);
  g_autoptr (MusterGraph) flat = copy_of (same);
  MUSTER_EXPECT_EQ (muster_graph_size (extended), muster_graph_size (flat));
  MUSTER_EXPECT_EQ (muster_graph_hash (extended), muster_graph_hash (flat));
  MUSTER_EXPECT_TRUE (muster_graph_equal (extended, flat));
  MUSTER_EXPECT_FALSE (muster_graph_equal (extended, other));
}

/* TensorFlow's own, which differ in nodes that are the same otherwise. They are checked, too. */
MUSTER_TEST (graph, leaves_internal_attributes_out)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  muster_graph_builder_variable (b, "v", zero);
  muster_graph_builder_variable (b, "w", zero);
  g_autoptr (MusterGraph) graph = end (b);
  const MusterNode *assign = muster_graph_find_node (graph, "v/Assign");
  MUSTER_ASSERT_TRUE (assign != NULL);
  MUSTER_EXPECT_NULL (muster_node_attr (assign, "_class"));
  MUSTER_EXPECT_EQ (muster_node_dtype (assign, "T", MUSTER_INVALID), MUSTER_FLOAT);
  MUSTER_EXPECT_TRUE (assign->kind == muster_graph_find_node (graph, "w/Assign")->kind);

  static const char malformed[] = "\x0a\x10\x0a\1a\x2a\x0b\x0a\6_class\x12\1\xff";
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (malformed, sizeof malformed - 1);
  g_autoptr (MusterGraph) broken = muster_graph_new (bytes);
  MUSTER_EXPECT_FALSE (muster_graph_parse (broken, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "AttrValue");
}
