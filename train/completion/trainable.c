// SPDX-License-Identifier: Apache-2.0
#include "train/completion/trainable_private.h"

#include "base/error.h"
#include "graph/feed_option_private.h"
#include "graph/graph_nodes_private.h"
#include "train/completion/global_step_private.h"
#include "train/completion/local_init_private.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/completion/sync_replicas_private.h"
#include "train/completion/train_ops_private.h"

#include <string.h>

/* "--train-op=a --train-op=b" of what was collected: muster/train runs it. (transfer full) */
static char *
options_of (MusterGraph *graph, const char *op)
{
  const MusterNode *node = muster_graph_find_node (graph, op);
  g_autoptr (GString) text = g_string_new (NULL);
  if (node == NULL || strcmp (op, MUSTER_TRAIN) != 0)
    return g_strdup_printf ("--train-op=%s", op);
  for (gsize i = 0; i < node->n_input; i++)
    g_string_append_printf (text, "%s--train-op=%s", i > 0 ? " " : "",
                            muster_graph_node (graph, muster_node_input (node, i, NULL))->name);
  return g_strdup (text->str);
}

static gboolean
check_step (MusterMetaGraph *meta_graph, const GPtrArray *ops, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  const MusterVariableInfo *step = muster_global_step_of (meta_graph);
  if (step == NULL) /* what needs one says so */
    return TRUE;
  g_autofree guint8 *needed = muster_train_ops_needed (graph, ops);
  g_autofree guint8 *queued = muster_train_ops_queued (meta_graph);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    needed[i] |= queued[i];
  g_autoptr (GArray) by_step = muster_train_ops_writers (meta_graph, step, needed);
  g_autoptr (GArray) by_any = muster_train_ops_writers (meta_graph, step, NULL);
  if (by_step->len > 0 || by_any->len == 0)
    return TRUE;
  const char *other = muster_graph_node (graph, g_array_index (by_any, gsize, 0))->name;
  g_autofree char *options = options_of (graph, ops->pdata[0]);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the train op '%s' doesn't advance the global step '%s', but '%s' does; "
                      "train both: %s --train-op=%s",
                      (const char *)ops->pdata[0], step->name, other, options, other);
}

/* A queue runner's op is run by itself, without the step's feeds. */
static gboolean
check_queue_runner (MusterGraph *graph, const MusterQueueRunner *runner, GError **error)
{
  for (guint i = 0; i < runner->enqueues->len; i++) {
    const char *enqueue = runner->enqueues->pdata[i];
    const MusterNode *placeholder = muster_feed_needed_by (graph, enqueue);
    if (placeholder != NULL)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "the queue runner's op '%s' needs the placeholder '%s', but queue "
                          "runners run without feeds; export the graph without that queue "
                          "runner, or with a constant or a reader in the placeholder's place",
                          enqueue, placeholder->name);
  }
  return TRUE;
}

static gboolean
check_queue_runners (MusterMetaGraph *meta_graph, GError **error)
{
  g_autoptr (GPtrArray) runners = muster_queue_runners_of (meta_graph, error);
  for (guint i = 0; runners != NULL && i < runners->len; i++)
    if (!check_queue_runner (muster_meta_graph_graph (meta_graph), runners->pdata[i], error))
      return FALSE;
  return runners != NULL;
}

/* Its queues of gradients and tokens are filled by the program's own loop, and stale gradients are
 * told by conditions in the graph. */
static gboolean
check_synchronised (MusterMetaGraph *meta_graph, GError **error)
{
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_auto (MusterSyncReplicas) sync = {0};
  if (muster_sync_replicas_find (meta_graph, &sync))
    return TRUE;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    g_autofree char *shared = g_str_has_prefix (node->kind->op, "FIFOQueue")
                                  ? muster_node_string (node, "shared_name")
                                  : NULL;
    if (shared != NULL && g_str_has_suffix (shared, "sync_token_q"))
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "queue '%s' belongs to a SyncReplicasOptimizer of TensorFlow before 0.12, "
          "whose program fills it; export the graph with TensorFlow 0.12 or later",
          node->name);
  }
  return TRUE;
}

static gboolean
refuse_without_op (const char *collected, GError **error)
{
  if (collected == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the meta graph has no train op; name it with --train-op=NAME, or add it "
                        "to the collection 'train_op' before exporting");
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the collection 'train_op' has '%s', which isn't in the graph, as an op of a "
                      "function isn't; name another one with --train-op=NAME (`muster inspect` may "
                      "propose one)",
                      collected);
}

gboolean
muster_trainable_check (MusterMetaGraph *meta_graph, GError **error)
{
  if (!muster_graph_parse (muster_meta_graph_graph (meta_graph), error))
    return FALSE;
  g_autoptr (GPtrArray) ops = muster_train_ops_find (meta_graph, NULL, error);
  if (ops == NULL)
    return FALSE;
  if (ops->len == 0)
    return refuse_without_op (muster_meta_graph_op (meta_graph, "train_op"), error);
  return muster_train_ops_check (meta_graph, ops, error) && check_step (meta_graph, ops, error) &&
         check_queue_runners (meta_graph, error) && check_synchronised (meta_graph, error) &&
         muster_local_init_check (meta_graph, ops, error);
}
