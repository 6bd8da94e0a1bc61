// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/save_nodes_private.h"

#include <string.h>

#define MAX_CHAIN 16 /* maximum number of nodes in a row that only pass a value on */

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp ((*(const MusterNode *const *)a)->name, (*(const MusterNode *const *)b)->name);
}

GPtrArray *
muster_save_nodes_behind (MusterGraph *graph, const char *op)
{
  GPtrArray *saves = g_ptr_array_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);
  g_autoptr (GPtrArray) left = g_ptr_array_new ();
  const gssize from = op != NULL ? muster_graph_find_named (graph, op) : -1;
  if (from >= 0)
    g_ptr_array_add (left, (gpointer)muster_graph_node (graph, (gsize)from));
  while (left->len > 0) {
    const MusterNode *node = g_ptr_array_steal_index (left, left->len - 1);
    if (strcmp (node->kind->op, "SaveV2") == 0) {
      g_ptr_array_add (saves, (gpointer)node);
      continue;
    }
    for (gsize i = 0; i < node->n_input; i++) {
      const MusterNode *input = muster_graph_node (graph, muster_node_input (node, i, NULL));
      if (g_hash_table_add (seen, (gpointer)input))
        g_ptr_array_add (left, (gpointer)input);
    }
  }
  g_ptr_array_sort (saves, compare_names);
  return saves;
}

MusterDType
muster_save_node_dtype (const MusterNode *save, gsize input)
{
  const Tensorflow__AttrValue *dtypes = muster_node_attr (save, "dtypes");
  if (input < MUSTER_SAVE_TENSORS || dtypes == NULL ||
      dtypes->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST ||
      input - MUSTER_SAVE_TENSORS >= dtypes->list->n_type)
    return MUSTER_INVALID;
  return (MusterDType)dtypes->list->type[input - MUSTER_SAVE_TENSORS];
}

const MusterNode *
muster_save_node_source (MusterGraph *graph, const MusterNode *node, gsize input)
{
  for (int i = 0; i < MAX_CHAIN; i++) {
    node = muster_graph_node (graph, muster_node_input (node, input, NULL));
    if (strcmp (node->kind->op, "Identity") != 0 || node->n_input == 0)
      break;
    input = 0;
  }
  return node;
}
