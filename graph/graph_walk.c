// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_walk_private.h"

#include "graph/graph_nodes_private.h"

#include <string.h>

#define LONGEST_PATH 100

static const char *const calls[] = {"StatefulPartitionedCall", "If", "While", "Case", NULL};
static const char *const variables[] = {"VarHandleOp", "VariableV2", "Variable",
                                        "TemporaryVariable", NULL};

static const char *
op_of (MusterGraph *graph, gsize node)
{
  return muster_graph_node (graph, node)->kind->op;
}

static gboolean
begins_with_one_of (const char *op, const char *const *prefixes)
{
  for (; *prefixes; prefixes++)
    if (g_str_has_prefix (op, *prefixes))
      return TRUE;
  return FALSE;
}

void
muster_graph_mark_needed (MusterGraph *self, gsize from, guint8 *marked)
{
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (gsize));
  if (marked[from])
    return;
  marked[from] = TRUE;
  g_array_append_val (stack, from);
  while (stack->len > 0) {
    const MusterNode *node = muster_graph_node (self, g_array_index (stack, gsize, stack->len - 1));
    g_array_set_size (stack, stack->len - 1);
    for (gsize i = 0; i < node->n_input; i++) {
      const gsize input = muster_node_input (node, i, NULL);
      if (marked[input])
        continue;
      marked[input] = TRUE;
      g_array_append_val (stack, input);
    }
  }
}

void
muster_graph_mark_needs (MusterGraph *self, const char *name, guint8 *marked)
{
  const gssize from = muster_graph_find_named (self, name);
  if (from >= 0)
    muster_graph_mark_needed (self, (gsize)from, marked);
}

void
muster_graph_mark_fed (MusterGraph *self, const char *name, guint8 *marked)
{
  const gssize node = muster_graph_find_named (self, name);
  if (node >= 0)
    marked[node] = MUSTER_GRAPH_FED;
}

gboolean
muster_graph_calls (MusterGraph *self, gsize node)
{
  return g_strv_contains (calls, op_of (self, node));
}

static gboolean
takes_a_variable (MusterGraph *graph, gsize node)
{
  const MusterNode *def = muster_graph_node (graph, node);
  for (gsize i = 0; i < def->n_input; i++) {
    int output;
    const gsize from = muster_node_input (def, i, &output);
    if (output >= 0 && strcmp (op_of (graph, from), "VarHandleOp") == 0)
      return TRUE;
  }
  return FALSE;
}

gboolean
muster_graph_writes (MusterGraph *self, gsize node)
{
  static const char *const writers[] = {"Assign",
                                        "Apply",
                                        "SparseApply",
                                        "ResourceApply",
                                        "Scatter",
                                        "ResourceScatter",
                                        "StridedSliceAssign",
                                        "ResourceStridedSliceAssign",
                                        "ResourceSparseApply",
                                        "CountUpTo",
                                        "ResourceCountUpTo",
                                        NULL};
  static const char *const pure[] = {"ScatterNd", "ScatterNdNonAliasingAdd", NULL};
  const char *op = op_of (self, node);
  return (begins_with_one_of (op, writers) && !g_strv_contains (pure, op)) ||
         (muster_graph_calls (self, node) && takes_a_variable (self, node));
}

gssize
muster_graph_origin (MusterGraph *self, gsize node, gsize input)
{
  static const char *const pass[] = {"Identity", "ReadVariableOp", "Enter",
                                     "RefEnter", "Snapshot",       NULL};
  const MusterNode *def = muster_graph_node (self, node);
  for (int i = 0; i < LONGEST_PATH; i++) {
    if (input >= def->n_input || muster_node_input_is_control (def, input))
      return -1;
    const gsize from = muster_node_input (def, input, NULL);
    def = muster_graph_node (self, from);
    if (!g_strv_contains (pass, def->kind->op))
      return (gssize)from;
    input = 0;
  }
  return -1;
}

/* An op that applies a gradient writes its variable and the optimizer's, which come first and
 * directly; the others write their first input. */
void
muster_graph_written (MusterGraph *self, gsize node, GArray *written)
{
  static const char *const several[] = {"Apply", "SparseApply", "ResourceApply",
                                        "ResourceSparseApply", NULL};
  if (!muster_graph_writes (self, node))
    return;
  const MusterNode *def = muster_graph_node (self, node);
  const gboolean has_several =
      muster_graph_calls (self, node) || begins_with_one_of (def->kind->op, several);
  for (gsize i = 0; i < (has_several ? def->n_input : MIN (def->n_input, 1)); i++) {
    if (muster_node_input_is_control (def, i))
      continue;
    const gssize from = has_several ? (gssize)muster_node_input (def, i, NULL)
                                    : muster_graph_origin (self, node, i);
    if (from < 0 || !g_strv_contains (variables, op_of (self, (gsize)from)))
      continue;
    const gsize variable = (gsize)from;
    g_array_append_val (written, variable);
  }
}
