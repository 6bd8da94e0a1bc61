// SPDX-License-Identifier: Apache-2.0
#include "train/feed_check.h"

#include "base/error.h"
#include "graph/feed_option.h"
#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"
#include "train/hooks/hooks_private.h"
#include "train/position/batches_private.h"

/* An array's rows don't go into a single value. */
static gboolean
check_rows (MusterGraph *graph, const char *feed, const MusterTensor *array, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  g_autofree char *op = NULL;

  (void)muster_graph_split_input (feed, &op);
  if (array == NULL || muster_tensor_n_dims (array) == 0 ||
      muster_graph_feed_shape (graph, muster_graph_find_node (graph, op), dims, MUSTER_MAX_DIMS) !=
          0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' takes a single value, but is fed with an array of %" G_GINT64_FORMAT
                      " rows; feed a number, as in --feed=%s=1",
                      feed, muster_tensor_dims (array)[0], feed);
}

static gboolean
check_feeds (const MusterTraining *training, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (training->scaffold);

  for (gsize i = 0; i < training->n_feeds; i++) {
    MusterTensor *array =
        training->batches != NULL ? muster_batches_array (training->batches, i) : NULL;
    if (!muster_hook_need_node (training->scaffold, training->feeds[i], error) ||
        !check_rows (graph, training->feeds[i], array, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_train_check_feeds (const MusterTraining *training, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (training->scaffold);
  const char *const roots[] = {muster_scaffold_train_op (training->scaffold), training->loss};
  g_autofree guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);

  if (!check_feeds (training, error))
    return FALSE;
  for (gsize i = 0; i < training->n_feeds; i++)
    muster_graph_mark_fed (graph, training->feeds[i], marked);
  for (gsize i = 0; i < G_N_ELEMENTS (roots); i++)
    muster_graph_mark_needs (graph, roots[i], marked);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    marked[i] = marked[i] == TRUE;
  g_autofree char *options = muster_feed_options (graph, marked);
  if (options != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "training needs values for placeholders; add %s "
                        "(`muster inspect` describes the graph)",
                        options);
  return muster_batches_check_feeds (training->batches, training->n_feeds, error);
}
