// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_walk_private.h"

#include "graph/graph_nodes_private.h"

#include <string.h>

#define LONGEST_PATH 100

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
  return muster_functions_are_called (muster_graph_functions (self), op_of (self, node));
}

/* --- what is passed on --- */

/* Whether a node passes its first input on: a variable itself, or at least its value. */
static gboolean
passes_on (const MusterNode *node, gboolean is_variable)
{
  static const char *const references[] = {"RefEnter", "RefIdentity", "RefSwitch", NULL};
  static const char *const tensors[] = {"Enter", "Identity", "Switch", NULL};
  static const char *const values[] = {"ReadVariableOp", "Snapshot", NULL};
  const char *op = node->kind->op;
  if (g_strv_contains (references, op))
    return TRUE;
  if (g_strv_contains (tensors, op))
    return !is_variable || muster_node_dtype (node, "T", MUSTER_INVALID) == MUSTER_RESOURCE;
  return !is_variable && g_strv_contains (values, op);
}

static gssize
find_origin (MusterGraph *graph, gsize node, gsize input, gboolean is_variable)
{
  const MusterNode *def = muster_graph_node (graph, node);
  for (int i = 0; i < LONGEST_PATH; i++) {
    if (input >= def->n_input || muster_node_input_is_control (def, input))
      return -1;
    const gsize from = muster_node_input (def, input, NULL);
    def = muster_graph_node (graph, from);
    if (!passes_on (def, is_variable))
      return (gssize)from;
    input = 0;
  }
  return -1;
}

gssize
muster_graph_origin (MusterGraph *self, gsize node, gsize input)
{
  return find_origin (self, node, input, FALSE);
}

/* --- what is written --- */

/* TRUE for an op that changes a variable, other than a call. */
static gboolean
op_writes (const char *op)
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
  return begins_with_one_of (op, writers) && !g_strv_contains (pure, op);
}

/* Adds the variables that a function call may change. */
static void
written_by_call (MusterGraph *graph, gsize node, GArray *written)
{
  const MusterNode *def = muster_graph_node (graph, node);
  const MusterFunctions *functions = muster_graph_functions (graph);
  for (gsize i = 0; i < def->n_input; i++) {
    const gssize from = find_origin (graph, node, i, TRUE);
    const gsize variable = (gsize)from;
    if (from >= 0 && strcmp (op_of (graph, variable), "VarHandleOp") == 0 &&
        muster_functions_may_write (functions, def, i))
      g_array_append_val (written, variable);
  }
}

gboolean
muster_graph_writes (MusterGraph *self, gsize node)
{
  g_autoptr (GArray) written = NULL;

  if (!muster_graph_calls (self, node))
    return op_writes (op_of (self, node));
  written = g_array_new (FALSE, FALSE, sizeof (gsize));
  written_by_call (self, node, written);
  return written->len > 0;
}

/* An op that applies a gradient writes its variable and the optimizer's; the others write their
 * first input. */
void
muster_graph_written (MusterGraph *self, gsize node, GArray *written)
{
  static const char *const several[] = {"Apply", "SparseApply", "ResourceApply",
                                        "ResourceSparseApply", NULL};
  const MusterNode *def = muster_graph_node (self, node);
  const gboolean has_several = begins_with_one_of (def->kind->op, several);
  if (muster_graph_calls (self, node)) {
    written_by_call (self, node, written);
    return;
  }
  if (!op_writes (def->kind->op))
    return;
  for (gsize i = 0; i < (has_several ? def->n_input : MIN (def->n_input, 1)); i++) {
    const gssize from = find_origin (self, node, i, has_several);
    if (from < 0 || !g_strv_contains (variables, op_of (self, (gsize)from)))
      continue;
    const gsize variable = (gsize)from;
    g_array_append_val (written, variable);
  }
}

static gboolean
is_one_of (const char *op, const char *name, const char *reference)
{
  return strcmp (op, name) == 0 || strcmp (op, reference) == 0;
}

/* --- what follows --- */

/* The consumers of node i: nodes[first[i]] to before nodes[first[i + 1]]. */
typedef struct {
  guint32 *first; /* (owned) */
  guint32 *nodes; /* (owned) */
} Consumers;

static void
consumers_clear (Consumers *self)
{
  g_clear_pointer (&self->first, g_free);
  g_clear_pointer (&self->nodes, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Consumers, consumers_clear)

static Consumers
find_consumers (MusterGraph *graph)
{
  const gsize n = muster_graph_n_nodes (graph);
  Consumers self = {.first = g_new0 (guint32, n + 2)};
  for (gsize node = 0; node < n; node++) {
    const MusterNode *def = muster_graph_node (graph, node);
    for (gsize i = 0; i < def->n_input; i++)
      self.first[muster_node_input (def, i, NULL) + 2]++;
  }
  for (gsize i = 2; i < n + 2; i++)
    self.first[i] += self.first[i - 1];
  self.nodes = g_new (guint32, self.first[n + 1] + 1);
  for (gsize node = 0; node < n; node++) {
    const MusterNode *def = muster_graph_node (graph, node);
    for (gsize i = 0; i < def->n_input; i++)
      self.nodes[self.first[muster_node_input (def, i, NULL) + 1]++] = (guint32)node;
  }
  return self;
}

void
muster_graph_mark_following (MusterGraph *self, guint8 *marked, const char *end,
                             const char *reference_end)
{
  const gsize n = muster_graph_n_nodes (self);
  g_auto (Consumers) all = find_consumers (self);
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (gsize));
  for (gsize i = 0; i < n; i++)
    if (marked[i])
      g_array_append_val (stack, i);
  while (stack->len > 0) {
    const gsize at = g_array_index (stack, gsize, stack->len - 1);
    g_array_set_size (stack, stack->len - 1);
    for (guint32 i = all.first[at]; i < all.first[at + 1]; i++) {
      const gsize node = all.nodes[i];
      if (marked[node])
        continue;
      marked[node] = TRUE;
      if (end == NULL || !is_one_of (op_of (self, node), end, reference_end))
        g_array_append_val (stack, node);
    }
  }
}

/* --- loops --- */

/* Outside values can enter a loop's frame only through an Enter. */
guint8 *
muster_graph_mark_loops (MusterGraph *self)
{
  const gsize n = muster_graph_n_nodes (self);
  guint8 *in_loop = g_malloc0 (n + 1);
  for (gsize i = 0; i < n; i++)
    in_loop[i] = is_one_of (op_of (self, i), "Enter", "RefEnter");
  if (memchr (in_loop, TRUE, n) == NULL)
    return in_loop;
  muster_graph_mark_following (self, in_loop, "Exit", "RefExit");
  for (gsize i = 0; i < n; i++)
    in_loop[i] = in_loop[i] && !is_one_of (op_of (self, i), "Exit", "RefExit");
  return in_loop;
}

/* --- branches --- */

/* In how many conditionals' branches an input is. A Switch leads into a branch, but not that of a
 * loop. */
static gint
input_level (MusterGraph *graph, const gint *levels, const MusterNode *node, gsize i)
{
  const gsize from = muster_node_input (node, i, NULL);
  const MusterNode *def = muster_graph_node (graph, from);
  const gint level = MAX (levels[from], 0);
  return muster_node_input_is_control (node, i) ||
                 !is_one_of (def->kind->op, "Switch", "RefSwitch") || def->n_input < 2 ||
                 strcmp (op_of (graph, muster_node_input (def, 1, NULL)), "LoopCond") == 0
             ? level
             : level + 1;
}

static gint
level_of (MusterGraph *graph, const gint *levels, gsize node)
{
  const MusterNode *def = muster_graph_node (graph, node);
  gint level = 0;
  gboolean ends_branch = is_one_of (def->kind->op, "Merge", "RefMerge");
  for (gsize i = 0; i < def->n_input; i++) {
    level = MAX (level, input_level (graph, levels, def, i));
    ends_branch = ends_branch && !is_one_of (op_of (graph, muster_node_input (def, i, NULL)),
                                             "NextIteration", "RefNextIteration");
  }
  return ends_branch ? MAX (level - 1, 0) : level;
}

enum { UNSEEN = -2, OPEN = -1 };

/* Sets the level of a node, and of those before it that have none. */
static void
find_level (MusterGraph *graph, gint *levels, gsize from)
{
  g_autoptr (GArray) stack = g_array_new (FALSE, FALSE, sizeof (gsize));
  g_array_append_val (stack, from);
  while (stack->len > 0) {
    const gsize at = g_array_index (stack, gsize, stack->len - 1);
    const MusterNode *node = muster_graph_node (graph, at);
    const gboolean is_first = levels[at] == UNSEEN;
    if (!is_first)
      g_array_set_size (stack, stack->len - 1);
    if (levels[at] == OPEN)
      levels[at] = level_of (graph, levels, at);
    if (!is_first)
      continue;
    levels[at] = OPEN;
    for (gsize i = 0; i < node->n_input; i++) {
      const gsize input = muster_node_input (node, i, NULL);
      if (levels[input] == UNSEEN)
        g_array_append_val (stack, input);
    }
  }
}

/* The first Merge that runs a node; -1: none. */
static gssize
find_merge (MusterGraph *graph, gsize of)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *follows = g_malloc0 (n);
  follows[of] = TRUE;
  muster_graph_mark_following (graph, follows, "Merge", "RefMerge");
  for (gsize i = 0; i < n; i++)
    if (i != of && follows[i] && is_one_of (op_of (graph, i), "Merge", "RefMerge"))
      return (gssize)i;
  return -1;
}

static gboolean
has_switch (MusterGraph *graph)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    if (is_one_of (op_of (graph, i), "Switch", "RefSwitch"))
      return TRUE;
  return FALSE;
}

gsize
muster_graph_whole_of_branch (MusterGraph *self, gsize node)
{
  const gsize n = muster_graph_n_nodes (self);
  gsize at = node;
  if (!has_switch (self))
    return node;
  g_autofree gint *levels = g_new (gint, n);
  for (gsize i = 0; i < n; i++)
    levels[i] = UNSEEN;
  for (int i = 0; i < LONGEST_PATH; i++) {
    find_level (self, levels, at);
    const gssize merge = levels[at] > 0 ? find_merge (self, at) : (gssize)at;
    if (merge < 0 || (gsize)merge == at)
      return merge < 0 ? node : at;
    at = (gsize)merge;
  }
  return node;
}
