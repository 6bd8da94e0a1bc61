// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_data.h"

#include "base/error.h"
#include "cli/common/cli.h"
#include "cli/common/feed.h"
#include "graph/graph_nodes.h"

#include <string.h>

#define DEFAULT_BATCH 32

void
muster_train_data_clear (MusterTrainData *self)
{
  for (gsize i = 0; self->arrays != NULL && i < self->n_feeds; i++)
    muster_tensor_unref (self->arrays[i]);
  g_clear_pointer (&self->arrays, g_free);
  g_clear_pointer (&self->feeds, g_strfreev);
}

/* --- one feed --- */

static const char *
numpy_name (MusterDType dtype)
{
  const char *name = muster_dtype_name (dtype);
  return dtype == MUSTER_FLOAT ? "float32" : dtype == MUSTER_DOUBLE ? "float64" : name;
}

/* "[?,64]" */
static char *
shape_text (int n_dims, const gint64 *dims)
{
  g_autoptr (GString) text = g_string_new ("[");
  for (int i = 0; i < n_dims; i++)
    if (dims[i] < 0)
      g_string_append (text, i > 0 ? ",?" : "?");
    else
      g_string_append_printf (text, "%s%" G_GINT64_FORMAT, i > 0 ? "," : "", dims[i]);
  g_string_append_c (text, ']');
  return g_strdup (text->str);
}

/* The batch size must be that of the placeholder, if it has one. */
static gboolean
check_batch (MusterTrainData *self, const char *feed, gint64 rows, GError **error)
{
  if (rows < 0)
    return TRUE;
  if (self->batch_size == 0)
    self->batch_size = rows;
  return self->batch_size == rows ||
         muster_cli_usage_error (error,
                                 "--batch-size=%" G_GINT64_FORMAT
                                 ": the graph's '%s' needs %" G_GINT64_FORMAT " rows at a time",
                                 self->batch_size, feed, rows);
}

static gboolean
check_compatible (MusterTrainData *self, const MusterNode *node, const char *argument,
                  const char *feed, const MusterTensor *array, GError **error)
{
  gint64 wanted[MUSTER_MAX_DIMS];
  const int n_dims = muster_tensor_n_dims (array);
  const gint64 *dims = muster_tensor_dims (array);
  const MusterDType dtype = muster_node_dtype (node, "dtype", MUSTER_INVALID);
  if (dtype != MUSTER_INVALID && dtype != muster_tensor_dtype (array))
    return muster_cli_usage_error (error,
                                   "--feed=%s: its type is %s, but '%s' of the graph needs %s; "
                                   "convert it with a.astype (numpy.%s)",
                                   argument, numpy_name (muster_tensor_dtype (array)), feed,
                                   numpy_name (dtype), numpy_name (dtype));
  const int rank = muster_node_shape (node, "shape", wanted, MUSTER_MAX_DIMS);
  gboolean fits =
      rank <= 0 || rank == n_dims; /* 0: unknown, as early TensorFlow versions wrote it */
  for (int i = 1; fits && i < rank; i++)
    fits = wanted[i] < 0 || wanted[i] == dims[i];
  if (!fits) {
    g_autofree char *has = shape_text (n_dims, dims), *wants = shape_text (rank, wanted);
    return muster_cli_usage_error (error,
                                   "--feed=%s: its shape is %s, but '%s' of the graph needs %s",
                                   argument, has, feed, wants);
  }
  return rank <= 0 || check_batch (self, feed, wanted[0], error);
}

static gboolean
check_rows (MusterTrainData *self, const char *argument, const MusterTensor *array, GError **error)
{
  if (muster_tensor_n_dims (array) == 0 || muster_tensor_dims (array)[0] == 0)
    return muster_cli_usage_error (error, "--feed=%s: the array has no rows", argument);
  const gint64 n = muster_tensor_dims (array)[0];
  if (self->n_feeds > 0 && n != self->n_rows)
    return muster_cli_usage_error (error,
                                   "--feed=%s: the array has %" G_GINT64_FORMAT
                                   " rows, but that of '%s' has %" G_GINT64_FORMAT
                                   "; all arrays need the same number of rows",
                                   argument, n, self->feeds[0], self->n_rows);
  self->n_rows = n;
  return TRUE;
}

static gboolean
is_fed (const MusterTrainData *self, const char *feed)
{
  for (gsize i = 0; i < self->n_feeds; i++)
    if (strcmp (self->feeds[i], feed) == 0)
      return TRUE;
  return FALSE;
}

static gboolean
add_feed (MusterTrainData *self, MusterGraph *graph, const char *argument, const char *rows,
          GError **error)
{
  g_autofree char *feed = NULL, *op = NULL;
  g_autoptr (MusterTensor) array = muster_cli_read_feed (graph, argument, rows, &feed, error);
  if (array == NULL)
    return FALSE;
  if (is_fed (self, feed))
    return muster_cli_usage_error (error, "--feed=%s: '%s' is fed twice", argument, feed);
  (void)muster_graph_split_input (feed, &op);
  if (!check_rows (self, argument, array, error) ||
      !check_compatible (self, muster_graph_find_node (graph, op), argument, feed, array, error))
    return FALSE;
  self->feeds[self->n_feeds] = g_steal_pointer (&feed);
  self->arrays[self->n_feeds++] = g_steal_pointer (&array);
  return TRUE;
}

/* --- all feeds --- */

/* A placeholder that the train op needs and that isn't fed would fail the first step. */
static gboolean
check_all_fed (const MusterTrainData *self, MusterScaffold *scaffold, GError **error)
{
  MusterGraph *graph = muster_scaffold_graph (scaffold);
  const char *train_op = muster_scaffold_train_op (scaffold);
  const gsize n_nodes = muster_graph_n_nodes (graph);
  g_autofree gboolean *is_seen = g_new0 (gboolean, n_nodes + 1);
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (gsize));
  const gssize first =
      train_op == NULL ? -1 : muster_graph_find (graph, train_op, strlen (train_op));
  if (first < 0) /* muster_train () reports it */
    return TRUE;
  gsize next = (gsize)first;
  is_seen[next] = TRUE;
  g_array_append_val (open, next);
  while (open->len > 0) {
    const gsize at = g_array_index (open, gsize, open->len - 1);
    const MusterNode *node = muster_graph_node (graph, at);
    g_autofree char *feed = g_strconcat (node->name, ":0", NULL);
    g_array_set_size (open, open->len - 1);
    if (is_fed (self, feed))
      continue;
    if (strcmp (node->kind->op, "Placeholder") == 0)
      return muster_cli_usage_error (
          error, "training needs a value for '%s'; use --feed=%s=@FILE.npy", feed, feed);
    for (gsize i = 0; i < node->n_input; i++) {
      next = muster_node_input (node, i, NULL);
      if (is_seen[next])
        continue;
      is_seen[next] = TRUE;
      g_array_append_val (open, next);
    }
  }
  return TRUE;
}

gboolean
muster_train_data_read (MusterTrainData *self, MusterScaffold *scaffold, char **arguments,
                        const char *rows, gint64 batch_size, GError **error)
{
  const guint n = arguments == NULL ? 0 : g_strv_length (arguments);
  self->batch_size = batch_size;
  self->feeds = g_new0 (char *, n + 1);
  self->arrays = g_new0 (MusterTensor *, n + 1);
  for (guint i = 0; i < n; i++)
    if (!add_feed (self, muster_scaffold_graph (scaffold), arguments[i], rows, error))
      return FALSE;
  if (!check_all_fed (self, scaffold, error))
    return FALSE;
  if (self->batch_size == 0)
    self->batch_size = n == 0 ? 0 : MIN (DEFAULT_BATCH, self->n_rows);
  return n == 0 || self->batch_size <= self->n_rows ||
         muster_cli_usage_error (
             error, "--batch-size=%" G_GINT64_FORMAT ": the data has %" G_GINT64_FORMAT " rows",
             self->batch_size, self->n_rows);
}
