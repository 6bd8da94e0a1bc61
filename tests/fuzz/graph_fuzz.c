// SPDX-License-Identifier: Apache-2.0
/* A GraphDef as a server gets it: read, looked around in, extended by itself. */
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void
read_node (MusterGraph *graph, gsize index)
{
  const MusterNode *node = muster_graph_node (graph, index);
  gint64 dims[4];
  g_assert_cmpint (muster_graph_find (graph, node->name, strlen (node->name)), ==, (gssize)index);
  g_assert_true (muster_graph_find_node (graph, node->name) == node);
  for (gsize i = 0; i < node->n_input; i++) {
    int output, again;
    const gsize from = muster_node_input (node, i, &output);
    g_autofree char *name = NULL, *text = muster_graph_input_text (graph, node, i);
    again = muster_graph_split_input (text, &name);
    g_assert_cmpint (again, ==, output);
    g_assert_cmpint (muster_graph_find (graph, name, strlen (name)), ==, (gssize)from);
  }
  for (gsize i = 0; i < node->kind->n_attr; i++) {
    const char *key = node->kind->attr[i]->key;
    g_autofree char *text = muster_node_string (node, key);
    (void)text;
    (void)muster_node_dtype (node, key, MUSTER_INVALID);
    (void)muster_node_int (node, key, 0);
    (void)muster_node_bool (node, key, FALSE);
    (void)muster_node_float (node, key, 0);
    (void)muster_node_shape (node, key, dims, G_N_ELEMENTS (dims));
  }
}

/* What is read of each node is what the whole, unpacked in one, has. */
static void
compare (MusterGraph *graph, const guint8 *data, gsize size)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__GraphDef *def =
      muster_unpack (&tensorflow__graph_def__descriptor, data, size, arena, "graph", NULL);
  g_assert_cmpuint (def->n_node, ==, muster_graph_n_nodes (graph));
  for (gsize i = 0; i < def->n_node; i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    const Tensorflow__NodeDef *wanted = def->node[i];
    g_assert_cmpstr (node->name, ==, wanted->name);
    g_assert_cmpstr (node->kind->op, ==, wanted->op);
    g_assert_cmpstr (node->kind->device, ==, wanted->device);
    g_assert_cmpuint (node->n_input, ==, wanted->n_input);
    gsize n = 0;
    for (gsize j = 0; j < wanted->n_attr; j++) {
      if (wanted->attr[j]->key[0] == '_')
        continue;
      g_assert_cmpuint (n, <, node->kind->n_attr);
      g_autoptr (GBytes) mine = muster_pack (&node->kind->attr[n++]->base);
      g_autoptr (GBytes) other = muster_pack (&wanted->attr[j]->base);
      g_assert_true (g_bytes_equal (mine, other));
    }
    g_assert_cmpuint (n, ==, node->kind->n_attr);
  }
}

const gsize muster_fuzz_n_picks = 0;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  const gboolean is_good = muster_graph_parse (graph, &error);
  g_assert_true (is_good == (error == NULL));
  if (!is_good)
    g_assert_cmpuint (muster_graph_n_nodes (graph), ==, 0);
  else
    compare (graph, data, size);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    read_node (graph, i);
  g_autoptr (MusterGraph) twice = muster_graph_extended (graph, graph);
  g_assert_true (muster_graph_n_nodes (twice) == 0 || muster_graph_n_nodes (graph) == 0);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  muster_fuzz_seed_graphs (NULL);
}
