// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_data.h"

#include "base/error.h"
#include "cli/common/cli.h"
#include "cli/common/feed.h"
#include "graph/graph_nodes_private.h"

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

/* TRUE for what is the same in each step: a value or list of the command line, and a single value
 * of a file. */
static gboolean
is_constant (const char *argument, const MusterTensor *array)
{
  const char *value = strchr (argument, '=') + 1;
  return *value != '@' || muster_tensor_n_dims (array) == 0;
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
check_compatible (MusterTrainData *self, MusterGraph *graph, const MusterNode *node,
                  const char *argument, const char *feed, const MusterTensor *array, GError **error)
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
  const int rank = muster_graph_feed_shape (graph, node, wanted, MUSTER_MAX_DIMS);
  const gboolean is_batched = !is_constant (argument, array);
  gboolean fits = rank < 0 || rank == n_dims;
  if (rank == 0 && !fits)
    return muster_cli_usage_error (error,
                                   "--feed=%s: '%s' of the graph takes a single value, but the "
                                   "array has %" G_GINT64_FORMAT
                                   " rows; feed a number, as in --feed=%s=1",
                                   argument, feed, dims[0], feed);
  for (int i = is_batched; fits && i < rank; i++)
    fits = wanted[i] < 0 || wanted[i] == dims[i];
  if (!fits) {
    g_autofree char *has = shape_text (n_dims, dims), *wants = shape_text (rank, wanted);
    return muster_cli_usage_error (error,
                                   "--feed=%s: its shape is %s, but '%s' of the graph needs %s",
                                   argument, has, feed, wants);
  }
  return rank <= 0 || !is_batched || check_batch (self, feed, wanted[0], error);
}

static gboolean
check_rows (MusterTrainData *self, const char *argument, const MusterTensor *array, GError **error)
{
  const gint64 n = muster_tensor_dims (array)[0];
  if (n == 0)
    return muster_cli_usage_error (error, "--feed=%s: the array has no rows", argument);
  if (self->n_rows > 0 && n != self->n_rows)
    return muster_cli_usage_error (error,
                                   "--feed=%s: the array has %" G_GINT64_FORMAT
                                   " rows, but that of '%s' has %" G_GINT64_FORMAT
                                   "; all files need the same number of rows, and what is the same "
                                   "in each step is a list: --feed=NAME=[0.5,1]",
                                   argument, n, self->first_rows, self->n_rows);
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

/* Takes feed and array. */
static void
insert (MusterTrainData *self, gsize at, char *feed, MusterTensor *array)
{
  const gsize n = self->n_feeds - at;
  memmove (self->feeds + at + 1, self->feeds + at, n * sizeof *self->feeds);
  memmove (self->arrays + at + 1, self->arrays + at, n * sizeof (MusterTensor *));
  self->feeds[at] = feed;
  self->arrays[at] = array;
  self->n_feeds++;
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
  const MusterNode *node = muster_graph_find_node (graph, op);
  if (!check_compatible (self, graph, node, argument, feed, array, error))
    return FALSE;
  if (is_constant (argument, array)) {
    insert (self, self->n_feeds, g_steal_pointer (&feed), g_steal_pointer (&array));
    return TRUE;
  }
  if (!check_rows (self, argument, array, error))
    return FALSE;
  if (self->first_rows == NULL)
    self->first_rows = feed;
  insert (self, self->n_batched++, g_steal_pointer (&feed), g_steal_pointer (&array));
  return TRUE;
}

/* --- all feeds --- */

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
  if (self->batch_size == 0)
    self->batch_size = MIN (DEFAULT_BATCH, self->n_rows);
  if (self->n_rows == 0 && (rows != NULL || batch_size > 0))
    return muster_cli_usage_error (error, "--rows and --batch-size need --feed=NAME=@FILE.npy");
  return self->n_rows == 0 || self->batch_size <= self->n_rows ||
         muster_cli_usage_error (
             error, "--batch-size=%" G_GINT64_FORMAT ": the data has %" G_GINT64_FORMAT " rows",
             self->batch_size, self->n_rows);
}
