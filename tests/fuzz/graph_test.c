// SPDX-License-Identifier: Apache-2.0
/* Random damage to valid graphs and tensors: whatever comes of it, each reader gives exactly one of
 * a result and an error, and a sanitizer finds nothing. MUSTER_LONG=1 tries a thousand times more.
 */
#include <string.h>

#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/ready_op.h"
#include "graph/tensor_proto_private.h"
#include "tests/gtest_shim.h"

#define SEED 20260101

static guint
n_rounds (void)
{
  return g_getenv ("MUSTER_LONG") != NULL ? 3000000 : 3000;
}

/* Changes, cuts out or doubles a few bytes. */
static GBytes *
damaged (GRand *random, const guint8 *data, gsize size)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  g_byte_array_append (bytes, data, (guint)size);
  for (gint n = g_rand_int_range (random, 1, 5); n > 0 && bytes->len > 1; n--) {
    const guint at = (guint)g_rand_int_range (random, 0, (gint)bytes->len);
    const guint wanted = (guint)g_rand_int_range (random, 1, 9);
    const guint run = MIN (wanted, bytes->len - at);
    switch (g_rand_int_range (random, 0, 5)) {
    case 0:
      bytes->data[at] = (guint8)g_rand_int (random);
      break;
    case 1:
      bytes->data[at] ^= (guint8)(1 << g_rand_int_range (random, 0, 8));
      break;
    case 2:
      g_byte_array_remove_range (bytes, at, run);
      break;
    case 3: {
      g_autofree guint8 *copy = g_memdup2 (bytes->data + at, run);
      g_byte_array_append (bytes, copy, run);
      break;
    }
    default:
      bytes->data[at] = 0xff; /* large lengths and endless varints */
    }
  }
  return g_bytes_new (bytes->data, bytes->len);
}

static MusterGraph *
model (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const gint64 dims[] = {2, 3};
  g_autoptr (MusterTensor) zeros = muster_tensor_new (MUSTER_FLOAT, 2, dims);
  memset (muster_tensor_data_mutable (zeros), 0, 24);
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, -1, NULL);
  muster_graph_builder_variable (builder, "w", zeros);
  muster_graph_builder_node (builder, "MatMul", "y");
  muster_graph_builder_input (builder, "x");
  muster_graph_builder_input (builder, "w/read:0");
  muster_graph_builder_group (builder, "init", (const char *[]){"w/Assign", NULL});
  return muster_graph_builder_end (builder, NULL);
}

static void
read_all (MusterGraph *graph)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    gint64 dims[2];
    g_autofree char *text = muster_node_string (node, "container");
    (void)muster_node_dtype (node, "dtype", MUSTER_INVALID);
    (void)muster_node_shape (node, "shape", dims, 2);
    MUSTER_EXPECT_EQ (muster_graph_find (graph, node->name, strlen (node->name)), (gssize)i);
  }
}

MUSTER_TEST (fuzz, damaged_graphs_are_read_or_refused)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (SEED);
  g_autoptr (MusterGraph) whole = model ();
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_graph_bytes (whole), &size);
  for (guint i = 0; i < n_rounds (); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = damaged (random, data, size);
    g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
    MUSTER_TRACE ("round %u", i);
    MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error) == (error == NULL));
    read_all (graph);
  }
}

MUSTER_TEST (fuzz, damaged_meta_graphs_are_read_or_refused)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (SEED);
  g_autoptr (MusterGraph) whole = model ();
  g_autoptr (MusterMetaGraph) whole_meta = muster_meta_graph_new_for_graph (whole);
  g_autoptr (GByteArray) grown = g_byte_array_new ();
  gsize size;
  const guint8 *data = g_bytes_get_data (muster_meta_graph_bytes (whole_meta), &size);
  static const char rest[] = "\x1a\7\x0a\5saver"
                             "\x22\x16\x0a\x09variables\x12\x09\x12\7\x0a\5\x0a\3w:0"
                             "\x22\x15\x0a\7init_op\x12\x0a\x0a\x08\x0a\6"
                             "init:0";
  g_byte_array_append (grown, data, (guint)size);
  g_byte_array_append (grown, (const guint8 *)rest, sizeof rest - 1);
  for (guint i = 0; i < n_rounds (); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *op = NULL;
    gsize n;
    g_autoptr (GBytes) bytes = damaged (random, grown->data, grown->len);
    g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new (bytes, &error);
    MUSTER_TRACE ("round %u", i);
    MUSTER_EXPECT_TRUE ((meta == NULL) == (error != NULL));
    if (meta == NULL)
      continue;
    (void)muster_meta_graph_variables (meta, &n);
    g_autoptr (MusterGraph) ready = muster_graph_with_ready_op (meta, TRUE, &op, NULL);
    MUSTER_EXPECT_TRUE (ready == NULL || muster_graph_parse (ready, NULL));
  }
}

static const char *const tensors[] = {
    "\x08\1\x12\4\x12\2\x08\2\x2a\x08"
    "abcdefgh",
    "\x08\3\x12\4\x12\2\x08\3\x3a\2\5\6",
    "\x08\7\x12\4\x12\2\x08\3\x42\3abc\x42\1z",
    "\x08\x13\x12\x08\x12\2\x08\2\x12\2\x08\2\x6a\3\5\6\7",
    "\x08\x08\x12\4\x12\2\x08\2\x4a\x10"
    "abcdefghijklmnop",
    "\x08\x0a\x12\4\x12\2\x08\3\x58\1\x58\2",
    "\x08\1\x12\4\x12\2\x08\2\x22\x08"
    "abcdefgh",
};

MUSTER_TEST (fuzz, damaged_tensors_are_read_or_refused)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (SEED);
  for (guint i = 0; i < n_rounds (); i++) {
    const char *whole = tensors[i % G_N_ELEMENTS (tensors)];
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = damaged (random, (const guint8 *)whole, strlen (whole));
    gsize size;
    gconstpointer data = g_bytes_get_data (bytes, &size);
    g_autoptr (MusterTensor) tensor = muster_tensor_proto_read (data, size, bytes, &error);
    MUSTER_TRACE ("round %u", i);
    MUSTER_EXPECT_TRUE ((tensor == NULL) == (error != NULL));
    if (tensor == NULL || muster_tensor_n_elements (tensor) > 1000)
      continue;
    g_autofree char *text = muster_tensor_to_string (tensor, 100);
    g_autoptr (GBytes) again = muster_tensor_proto_write (tensor);
    g_autoptr (MusterTensor) back = muster_tensor_proto_read (
        g_bytes_get_data (again, NULL), g_bytes_get_size (again), again, NULL);
    MUSTER_EXPECT_TRUE (back != NULL && muster_tensor_equal (back, tensor));
  }
}
