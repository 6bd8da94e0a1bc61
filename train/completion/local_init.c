// SPDX-License-Identifier: Apache-2.0
#include "train/completion/local_init.h"

#include "graph/after_restore.h"
#include "graph/feed_option.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "train/completion/train_ops.h"

/* The collection that a scaffold makes its local init op of (train/monitored/scaffold.h). */
static const char *
collection_of (MusterMetaGraph *meta_graph)
{
  const char *const *ops = muster_meta_graph_collection (meta_graph, "local_init_op");

  return ops != NULL && ops[0] != NULL && *ops[0] ? "local_init_op" : "table_initializer";
}

/* The iterator that is read by a node, or begun; -1: none. */
static gssize
iterator_of (MusterGraph *graph, gsize node, gboolean is_begun)
{
  static const char *const reads[] = {"IteratorGetNext", "IteratorGetNextSync",
                                      "IteratorGetNextAsOptional", NULL};
  const char *op = muster_graph_node (graph, node)->kind->op;

  if (is_begun)
    return g_str_equal (op, "MakeIterator") ? muster_graph_origin (graph, node, 1) : -1;
  return g_strv_contains (reads, op) ? muster_graph_origin (graph, node, 0) : -1;
}

static void
add_missing (GPtrArray *missing, MusterGraph *graph, gsize node, const guint8 *is_run)
{
  const char *name = muster_graph_node (graph, node)->name;

  if (!is_run[node] && muster_feed_needed_by (graph, name) == NULL)
    g_ptr_array_add (missing, g_strdup (name));
}

/* For each iterator that a train op reads the one op that begins it; -1 where several do, of which
 * the program chose one at a time. (transfer full): one for each node */
static gssize *
beginnings (MusterGraph *graph, const GPtrArray *train_ops)
{
  enum { UNREAD = -3, READ = -2, SEVERAL = -1 };
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *needed = muster_train_ops_needed (graph, train_ops);
  gssize *begun = g_new (gssize, n + 1);

  for (gsize i = 0; i < n; i++)
    begun[i] = UNREAD;
  for (gsize i = 0; i < n; i++) {
    const gssize read = needed[i] ? iterator_of (graph, i, FALSE) : -1;
    if (read >= 0)
      begun[read] = READ;
  }
  for (gsize i = 0; i < n; i++) {
    const gssize by = iterator_of (graph, i, TRUE);
    if (by >= 0 && begun[by] != UNREAD)
      begun[by] = begun[by] == READ ? (gssize)i : SEVERAL;
  }
  return begun;
}

GPtrArray *
muster_local_init_missing (MusterMetaGraph *meta_graph, const GPtrArray *train_ops)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const gsize n = muster_graph_n_nodes (graph);
  const char *const *run = muster_meta_graph_collection (meta_graph, collection_of (meta_graph));
  const char *const *tables = muster_meta_graph_collection (meta_graph, "table_initializer");
  g_autofree guint8 *is_run = g_malloc0 (n + 1);
  g_autofree gssize *begun = beginnings (graph, train_ops);
  GPtrArray *missing = g_ptr_array_new_with_free_func (g_free);

  if (muster_graph_has_node (graph, MUSTER_AFTER_RESTORE))
    return missing;
  for (; run != NULL && *run != NULL; run++)
    muster_graph_mark_needs (graph, *run, is_run);
  for (gsize i = 0; i < n; i++)
    if (begun[i] >= 0)
      add_missing (missing, graph, (gsize)begun[i], is_run);
  for (; tables != NULL && *tables != NULL; tables++) {
    const gssize at = muster_graph_find_named (graph, *tables);
    if (at >= 0)
      add_missing (missing, graph, (gsize)at, is_run);
  }
  return missing;
}

MusterMetaGraph *
muster_local_init_add (MusterMetaGraph *meta_graph, const GPtrArray *missing, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autoptr (GPtrArray) ops = g_ptr_array_new ();

  for (guint i = 0; i < missing->len; i++)
    g_ptr_array_add (ops, missing->pdata[i]);
  g_ptr_array_add (ops, NULL);
  muster_graph_builder_group (builder, MUSTER_AFTER_RESTORE, (const char *const *)ops->pdata);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, error);
  if (extra == NULL)
    return NULL;
  g_autoptr (MusterGraph) whole =
      muster_graph_extended (muster_meta_graph_graph (meta_graph), extra);
  return muster_meta_graph_with_variables (meta_graph, whole, NULL, 0, NULL, 0, error);
}
