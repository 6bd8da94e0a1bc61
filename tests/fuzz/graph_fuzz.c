// SPDX-License-Identifier: Apache-2.0
/* A GraphDef as a server gets it: read, looked around in, extended by itself. */
#include "graph/graph_nodes.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void
read_node (MusterGraph *graph, gsize index)
{
  const Tensorflow__NodeDef *node = muster_graph_node (graph, index);
  gint64 dims[4];
  g_assert_cmpint (muster_graph_find (graph, node->name, strlen (node->name)), ==, (gssize)index);
  g_assert_true (muster_graph_find_node (graph, node->name) == node);
  for (gsize i = 0; i < node->n_input; i++) {
    g_autofree char *name = NULL;
    (void)muster_graph_split_input (node->input[i], &name);
    g_assert_true (muster_graph_has_node (graph, name));
  }
  for (gsize i = 0; i < node->n_attr; i++) {
    const char *key = node->attr[i]->key;
    g_autofree char *text = muster_node_string (node, key);
    (void)text;
    (void)muster_node_dtype (node, key, MUSTER_INVALID);
    (void)muster_node_int (node, key, 0);
    (void)muster_node_bool (node, key, FALSE);
    (void)muster_node_float (node, key, 0);
    (void)muster_node_shape (node, key, dims, G_N_ELEMENTS (dims));
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
