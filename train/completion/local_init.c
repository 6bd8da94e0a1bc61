// SPDX-License-Identifier: Apache-2.0
/* Finds the iterators and tables that no init op begins, and adds what begins them. */
#include "train/completion/local_init_private.h"

#include "base/error.h"
#include "graph/after_restore_private.h"
#include "graph/feed_option_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "train/completion/train_ops_private.h"

#include <string.h>

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

enum { UNREAD = -3, READ = -2, SEVERAL = -1 };

/* For each iterator that a train op reads the one op that begins it; READ where none does, SEVERAL
 * where several do, of which the program chose one at a time. (transfer full): one for each node */
static gssize *
beginnings (MusterGraph *graph, const GPtrArray *train_ops)
{
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

/* TRUE if the init ops begin it. */
static gboolean
is_begun_by (MusterGraph *graph, gssize iterator, const guint8 *run)
{
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    if (run[i] && iterator_of (graph, i, TRUE) == iterator)
      return TRUE;
  return FALSE;
}

static gboolean
check_beginning (MusterGraph *graph, gsize iterator, gssize begun, GError **error)
{
  const char *name = muster_graph_node (graph, iterator)->name;
  const char *by = begun >= 0 ? muster_graph_node (graph, (gsize)begun)->name : NULL;
  const MusterNode *placeholder = by != NULL ? muster_feed_needed_by (graph, by) : NULL;
  if (begun == SEVERAL)
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "iterator '%s' has several initialisers and no init op runs one; add one to "
        "the collection 'table_initializer'",
        name);
  return placeholder == NULL ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the iterator '%s' is initialised by '%s', which needs the placeholder '%s', "
                      "but init ops run without feeds; export the graph with a constant or a file "
                      "in its place",
                      name, by, placeholder->name);
}

/* Refuses an iterator whose state the saver restores: that fails before the iterator is
 * initialised, and the initialiser, which runs after a restore, would set it back. */
static gboolean
check_saved_iterators (MusterMetaGraph *meta_graph, const gssize *begun, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterSaverInfo *saver = muster_meta_graph_saver (meta_graph);
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *restored = g_malloc0 (n + 1);
  if (saver != NULL)
    muster_graph_mark_needs (graph, saver->restore_op, restored);
  for (gsize i = 0; i < n; i++) {
    const gboolean sets =
        strcmp (muster_graph_node (graph, i)->kind->op, "DeserializeIterator") == 0;
    const gssize iterator = sets && restored[i] ? muster_graph_origin (graph, i, 0) : -1;
    if (iterator >= 0 && begun[iterator] != UNREAD)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "the graph's saver saves the state of the iterator '%s', but a restore "
                          "comes before the iterator is initialised, so the job couldn't be "
                          "resumed; export the graph with a saver without it",
                          muster_graph_node (graph, (gsize)iterator)->name);
  }
  return TRUE;
}

gboolean
muster_local_init_check (MusterMetaGraph *meta_graph, const GPtrArray *train_ops, GError **error)
{
  static const char *const keys[] = {"init_op", "local_init_op", "table_initializer"};
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *run = g_malloc0 (n + 1);
  g_autofree gssize *begun = beginnings (graph, train_ops);

  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    for (const char *const *op = muster_meta_graph_collection (meta_graph, keys[i]);
         op != NULL && *op != NULL; op++)
      muster_graph_mark_needs (graph, *op, run);
  for (gsize i = 0; i < n; i++)
    if (begun[i] > READ && !is_begun_by (graph, (gssize)i, run) &&
        !check_beginning (graph, i, begun[i], error))
      return FALSE;
  return check_saved_iterators (meta_graph, begun, error);
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
