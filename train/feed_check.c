// SPDX-License-Identifier: Apache-2.0
#include "train/round_private.h"

#include "base/error.h"
#include "graph/feed_option_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "train/hooks/hooks_private.h"
#include "train/position/batches_private.h"

/* What a step feeds of an array: all of it, or a number of rows. */
typedef struct {
  const MusterTensor *array; /* (nullable) not owned */
  gint64 n_rows;             /* -1: all of it */
} Value;

static gint64
dim (const Value *value, int i)
{
  return i == 0 && value->n_rows >= 0 ? value->n_rows : muster_tensor_dims (value->array)[i];
}

static char *
type_of (const Value *value)
{
  const int n_dims = muster_tensor_n_dims (value->array);
  g_autofree gint64 *dims = g_new0 (gint64, (gsize)n_dims + 1);

  for (int i = 0; i < n_dims; i++)
    dims[i] = dim (value, i);
  return muster_feed_type_of (muster_tensor_dtype (value->array), n_dims, dims);
}

/* Fails with a remedy of its own for a placeholder of a single value. */
static gboolean
fail_unfit (MusterGraph *graph, const char *feed, const MusterNode *node, const Value *value,
            GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  if (muster_tensor_n_dims (value->array) > 0 &&
      muster_graph_feed_shape (graph, node, dims, MUSTER_MAX_DIMS) == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s' takes a single value, but is fed with an array of %" G_GINT64_FORMAT
                        " rows; feed a number, as in --feed=%s=1",
                        feed, dim (value, 0), feed);
  g_autofree char *takes = muster_feed_type (graph, node);
  g_autofree char *is_fed = type_of (value);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' takes %s, but a step feeds it with %s; feed an array that fits", feed,
                      takes, is_fed);
}

/* Compares what one step feeds with a placeholder. Another tensor has no declared type. */
static gboolean
check_value (MusterGraph *graph, const char *feed, const Value *value, GError **error)
{
  gint64 wanted[MUSTER_MAX_DIMS];
  g_autofree char *op = NULL;
  const MusterDType dtype = muster_graph_placeholder_dtype (graph, feed);

  if (value->array == NULL || dtype == MUSTER_INVALID)
    return TRUE;
  (void)muster_graph_split_input (feed, &op);
  const MusterNode *node = muster_graph_find_node (graph, op);
  const int n_dims = muster_graph_feed_shape (graph, node, wanted, MUSTER_MAX_DIMS);
  gboolean fits = dtype == muster_tensor_dtype (value->array) &&
                  (n_dims < 0 || n_dims == muster_tensor_n_dims (value->array));
  for (int i = 0; fits && i < n_dims; i++)
    fits = wanted[i] < 0 || wanted[i] == dim (value, i);
  return fits || fail_unfit (graph, feed, node, value, error);
}

static gboolean
check_feeds (const MusterTraining *training, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (training->session.scaffold);
  for (gsize i = 0; i < training->n_feeds; i++) {
    Value value = {0};
    if (training->batches != NULL)
      value.array = muster_batches_fed (training->batches, i, &value.n_rows);
    if (!muster_hook_need_node (training->session.scaffold, training->feeds[i], error) ||
        !check_value (graph, training->feeds[i], &value, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_train_check_needs (const MusterTraining *training, const char *what,
                          const char *const *needed, gsize n_needed, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (training->session.scaffold);
  g_autofree guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  for (gsize i = 0; i < training->n_feeds; i++)
    muster_graph_mark_fed (graph, training->feeds[i], marked);
  for (gsize i = 0; i < n_needed; i++)
    muster_graph_mark_needs (graph, needed[i], marked);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++)
    marked[i] = marked[i] == TRUE;
  g_autofree char *options = muster_feed_options (graph, marked);
  if (options != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s needs values for placeholders; add %s (`muster inspect` describes the "
                        "graph)",
                        what, options);
  return muster_batches_check_feeds (training->batches, training->n_feeds, error);
}

/* A fetch in a loop is never answered. */
static gboolean
check_loss (const MusterTraining *training, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (training->session.scaffold);
  const gssize loss = muster_graph_find_named (graph, training->loss);
  g_autofree guint8 *in_loop = loss >= 0 ? muster_graph_mark_loops (graph) : NULL;
  return in_loop == NULL || !in_loop[loss] ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the loss '%s' is in a loop, where it can't be fetched; choose a tensor "
                      "outside it",
                      training->loss);
}

gboolean
muster_train_check_feeds (const MusterTraining *training, GError **error)
{
  const char *const roots[] = {muster_scaffold_train_op (training->session.scaffold),
                               training->loss};
  return check_loss (training, error) && check_feeds (training, error) &&
         muster_train_check_needs (training, "training", roots, G_N_ELEMENTS (roots), error);
}
