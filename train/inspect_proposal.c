// SPDX-License-Identifier: Apache-2.0
/* Proposes the op that a graph's program may have run as its step, if no collection has it. */
#include "base/require_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "train/completion/train_ops_private.h"
#include "train/inspect_private.h"

#include <string.h>

#define MOST_TRIED 256 /* maximum number of ops that are examined as train ops */

/* Marks each node that writes a trainable variable, outside what writers marks. (transfer full)
 * */
static guint8 *
mark_updates (const MusterInspect *self, const guint8 *writers)
{
  const gsize n = muster_graph_n_nodes (self->graph);
  gsize n_variables;
  const MusterVariableInfo *variables =
      muster_meta_graph_variables (self->meta_graph, &n_variables);
  g_autofree guint8 *trainable = g_malloc0 (n + 1);
  g_autoptr (GArray) written = g_array_new (FALSE, FALSE, sizeof (gsize));
  guint8 *updates = g_malloc0 (n + 1);

  for (gsize i = 0; i < n_variables; i++) {
    const gssize node = muster_graph_find_named (self->graph, variables[i].name);
    if (node >= 0)
      trainable[node] = variables[i].is_trainable;
  }
  for (gsize i = 0; i < n; i++) {
    g_array_set_size (written, 0);
    muster_graph_written (self->graph, i, written);
    for (guint k = 0; k < written->len && !writers[i]; k++)
      updates[i] |= trainable[g_array_index (written, gsize, k)];
    updates[i] = updates[i] && !muster_train_ops_restores (self->graph, i);
  }
  return updates;
}

/* Returns the number of updates that an op runs. They count more if they follow gradients,
 * unlike an assignment of values from elsewhere. */
static gsize
weigh (MusterGraph *graph, gsize op, const guint8 *updates)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *run = g_malloc0 (n + 1);
  gsize n_run = 0;
  gboolean has_gradients = FALSE;

  muster_graph_mark_needed (graph, op, run);
  for (gsize i = 0; i < n; i++) {
    n_run += run[i] && updates[i];
    has_gradients = has_gradients || (run[i] && muster_inspect_is_gradient (graph, i));
  }
  return n_run > 0 && has_gradients ? n_run + n : n_run;
}

/* A step of a program: a group, an update, a conditional or what tf.cond () returns of one. */
static gboolean
may_be_step (MusterGraph *graph, gsize i)
{
  static const char *const groups[] = {"NoOp", "Merge", NULL};
  const MusterNode *node = muster_graph_node (graph, i);
  return g_strv_contains (groups, node->kind->op) || muster_graph_writes (graph, i) ||
         (strcmp (node->kind->op, "Identity") == 0 && node->n_input > 0 &&
          muster_graph_calls (graph, muster_node_input (node, 0, NULL)));
}

/* Returns the last of the ops with the most weight that no other op runs; -1: none. */
static gssize
find_update_of_most (MusterGraph *graph, const guint8 *updates)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *inner = g_malloc0 (n + 1);
  gsize most = 0, n_tried = 0;
  gssize found = -1;

  for (gsize i = 0; i < n; i++)
    for (gsize k = 0; k < muster_graph_node (graph, i)->n_input; k++)
      inner[muster_node_input (muster_graph_node (graph, i), k, NULL)] = TRUE;
  for (gsize i = n; i-- > 0 && n_tried < MOST_TRIED;) {
    if (inner[i] || g_str_has_prefix (muster_graph_node (graph, i)->name, "muster/") ||
        !may_be_step (graph, i))
      continue;
    n_tried++;
    const gsize weight = weigh (graph, i, updates);
    if (weight > most) {
      most = weight;
      found = (gssize)i;
    }
  }
  return found;
}

char *
muster_scaffold_propose_train_op (MusterScaffold *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterMetaGraph *meta_graph = muster_scaffold_meta_graph (self);
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  if (muster_graph_find_named (graph, muster_scaffold_train_op (self)) >= 0)
    return NULL;
  g_autoptr (GPtrArray) none = g_ptr_array_new ();
  g_autofree guint8 *nothing = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  const MusterInspect all = {.scaffold = self,
                             .meta_graph = meta_graph,
                             .graph = graph,
                             .others = none,
                             .trains_by = nothing};
  g_autofree guint8 *writers = muster_inspect_mark_writers (&all);
  g_autofree guint8 *updates = mark_updates (&all, writers);
  const gssize op = find_update_of_most (graph, updates);

  return op >= 0 ? g_strdup (muster_graph_node (graph, (gsize)op)->name) : NULL;
}
