// SPDX-License-Identifier: Apache-2.0
/* Which of the ops in the collection train: those that no other one and no queue runner runs.
 * Two that write one variable in no order are refused. */
#include "train/completion/train_ops_private.h"

#include "base/error.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "train/completion/global_step_private.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/completion/sync_replicas_private.h"

guint8 *
muster_train_ops_needed (MusterGraph *graph, const GPtrArray *ops)
{
  guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  for (guint i = 0; i < ops->len; i++)
    muster_graph_mark_needs (graph, ops->pdata[i], marked);
  return marked;
}

guint8 *
muster_train_ops_queued (MusterMetaGraph *meta_graph)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  g_autoptr (GPtrArray) runners = muster_queue_runners_of (meta_graph, NULL);
  g_auto (MusterSyncReplicas) sync = {0};
  for (guint i = 0; runners != NULL && i < runners->len; i++) {
    const MusterQueueRunner *runner = runners->pdata[i];
    for (guint k = 0; k < runner->enqueues->len; k++)
      muster_graph_mark_needs (graph, runner->enqueues->pdata[k], marked);
  }
  if (muster_sync_replicas_find (meta_graph, &sync))
    muster_graph_mark_needs (graph, sync.update, marked);
  return marked;
}

/* --- which ops train --- */

static gboolean
add_op (GPtrArray *found, MusterGraph *graph, const char *item, gboolean is_asked,
        const guint8 *queued, GError **error)
{
  const gssize named = muster_graph_find_named (graph, item);
  const gssize at = named >= 0 ? (gssize)muster_graph_whole_of_branch (graph, (gsize)named) : named;
  const char *op = at >= 0 ? muster_graph_node (graph, (gsize)at)->name : NULL;
  if (at < 0 && is_asked)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The graph has no op '%s', which was given as a train op", item);
  if (at < 0 || (!is_asked && queued[at]) ||
      g_ptr_array_find_with_equal_func (found, op, g_str_equal, NULL))
    return TRUE;
  g_ptr_array_add (found, g_strdup (op));
  return TRUE;
}

/* Without those that another one runs. */
static GPtrArray *
roots_of (MusterGraph *graph, const GPtrArray *ops)
{
  GPtrArray *roots = g_ptr_array_new_with_free_func (g_free);
  g_autofree guint8 *run = g_malloc0 (muster_graph_n_nodes (graph)); /* by another node */

  for (guint i = 0; i < ops->len; i++) {
    const MusterNode *op = muster_graph_find_node (graph, ops->pdata[i]);
    for (gsize k = 0; k < op->n_input; k++)
      muster_graph_mark_needed (graph, muster_node_input (op, k, NULL), run);
  }
  for (guint i = 0; i < ops->len; i++)
    if (!run[muster_graph_find_named (graph, ops->pdata[i])])
      g_ptr_array_add (roots, g_strdup (ops->pdata[i]));
  return roots;
}

/* Without those, too, that run in an op which advances the global step, if none of them does:
 * estimators collect what the optimizers return and run a count of the steps after it. */
static GPtrArray *
counted (MusterMetaGraph *meta_graph, GPtrArray *ops, const guint8 *queued)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterVariableInfo *step = muster_global_step_of (meta_graph);
  const gsize n = muster_graph_n_nodes (graph);
  if (step == NULL || ops->len == 0)
    return ops;
  g_autofree guint8 *run = muster_train_ops_needed (graph, ops);
  g_autoptr (GArray) by_any = muster_train_ops_writers (meta_graph, step, NULL);
  for (guint i = 0; i < by_any->len; i++)
    if (run[g_array_index (by_any, gsize, i)] || queued[g_array_index (by_any, gsize, i)])
      return ops;
  for (guint i = 0; i < by_any->len; i++) {
    const gsize counts = g_array_index (by_any, gsize, i);
    g_autofree guint8 *needed = g_malloc0 (n + 1);
    gboolean runs_all = TRUE;
    muster_graph_mark_needed (graph, counts, needed);
    for (guint k = 0; k < ops->len; k++)
      runs_all = runs_all && needed[muster_graph_find_named (graph, ops->pdata[k])];
    if (runs_all) {
      g_ptr_array_set_size (ops, 0);
      g_ptr_array_add (ops, g_strdup (muster_graph_node (graph, counts)->name));
      break;
    }
  }
  return ops;
}

GPtrArray *
muster_train_ops_find (MusterMetaGraph *meta_graph, const char *const *ops, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const gboolean is_asked = ops != NULL && *ops != NULL;
  const char *const *items = is_asked ? ops : muster_meta_graph_collection (meta_graph, "train_op");
  g_autofree guint8 *queued = muster_train_ops_queued (meta_graph);
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_free);
  g_auto (MusterSyncReplicas) sync = {0};

  for (; items != NULL && *items != NULL; items++)
    if (!add_op (found, graph, *items, is_asked, queued, error))
      return NULL;
  if (found->len == 0 && muster_sync_replicas_find (meta_graph, &sync))
    g_ptr_array_add (found, g_strdup (sync.train));
  GPtrArray *roots = found->len > 1 ? roots_of (graph, found) : g_steal_pointer (&found);
  return is_asked ? roots : counted (meta_graph, roots, queued);
}

/* --- what they write --- */

/* A variable that a node runs twice in one step, in no order. */
static const char *
find_conflict (MusterGraph *graph, const guint8 *one, const guint8 *other)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *written = g_malloc0 (n);
  g_autoptr (GArray) variables = g_array_new (FALSE, FALSE, sizeof (gsize));

  for (gsize i = 0; i < n; i++)
    if (one[i] && !other[i] && !muster_graph_calls (graph, i))
      muster_graph_written (graph, i, variables);
  for (guint i = 0; i < variables->len; i++)
    written[g_array_index (variables, gsize, i)] = TRUE;
  for (gsize i = 0; i < n; i++) {
    g_array_set_size (variables, 0);
    if (other[i] && !one[i] && !muster_graph_calls (graph, i))
      muster_graph_written (graph, i, variables);
    for (guint k = 0; k < variables->len; k++)
      if (written[g_array_index (variables, gsize, k)])
        return muster_graph_node (graph, g_array_index (variables, gsize, k))->name;
  }
  return NULL;
}

gboolean
muster_train_ops_check (MusterMetaGraph *meta_graph, const GPtrArray *ops, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  for (guint i = 0; i < ops->len; i++) {
    g_autofree guint8 *one = g_malloc0 (muster_graph_n_nodes (graph));
    muster_graph_mark_needs (graph, ops->pdata[i], one);
    for (guint k = i + 1; k < ops->len; k++) {
      g_autofree guint8 *other = g_malloc0 (muster_graph_n_nodes (graph));
      muster_graph_mark_needs (graph, ops->pdata[k], other);
      const char *variable = find_conflict (graph, one, other);
      if (variable != NULL)
        return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                            "the train ops '%s' and '%s' both write '%s', so they can't be one "
                            "step; choose one with --train-op=NAME",
                            (const char *)ops->pdata[i], (const char *)ops->pdata[k], variable);
    }
  }
  return TRUE;
}

gboolean
muster_train_ops_restores (MusterGraph *graph, gsize node)
{
  static const char *const restore_ops[] = {"RestoreV2", "RestoreSlice", "Restore", NULL};
  const gssize from = muster_graph_origin (graph, node, 1);
  return from >= 0 &&
         g_strv_contains (restore_ops, muster_graph_node (graph, (gsize)from)->kind->op);
}

GArray *
muster_train_ops_writers (MusterMetaGraph *meta_graph, const MusterVariableInfo *variable,
                          const guint8 *marked)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const gssize wanted = muster_graph_find_named (graph, variable->name);
  const gssize first = muster_graph_find_named (graph, variable->initializer);
  GArray *writers = g_array_new (FALSE, FALSE, sizeof (gsize));
  g_autoptr (GArray) written = g_array_new (FALSE, FALSE, sizeof (gsize));
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    if ((marked != NULL && !marked[i]) || (gssize)i == first)
      continue;
    g_array_set_size (written, 0);
    muster_graph_written (graph, i, written);
    for (guint k = 0; k < written->len; k++)
      if ((gssize)g_array_index (written, gsize, k) == wanted &&
          !muster_train_ops_restores (graph, i)) {
        g_array_append_val (writers, i);
        break;
      }
  }
  return writers;
}
