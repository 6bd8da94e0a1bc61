// SPDX-License-Identifier: Apache-2.0
#include "graph/feed_option.h"

#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"

#include <string.h>

gboolean
muster_feed_is_needed (const MusterNode *node)
{
  return strcmp (node->kind->op, "Placeholder") == 0 ||
         strcmp (node->kind->op, "PlaceholderV2") == 0;
}

const MusterNode *
muster_feed_needed_by (MusterGraph *graph, const char *name)
{
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *needed = g_malloc0 (n + 1);

  muster_graph_mark_needs (graph, name, needed);
  for (gsize i = 0; i < n; i++)
    if (needed[i] && muster_feed_is_needed (muster_graph_node (graph, i)))
      return muster_graph_node (graph, i);
  return NULL;
}

char *
muster_feed_type (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const char *dtype = muster_dtype_name (muster_node_dtype (placeholder, "dtype", MUSTER_INVALID));
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims < 0 || n_dims > MUSTER_MAX_DIMS)
    return g_strdup_printf ("%s, any shape", dtype);
  if (n_dims == 0)
    return g_strdup (dtype);
  g_autoptr (GString) text = g_string_new (dtype);
  for (int i = 0; i < n_dims; i++) {
    g_string_append_c (text, i > 0 ? ',' : '[');
    if (dims[i] < 0)
      g_string_append_c (text, '?');
    else
      g_string_append_printf (text, "%" G_GINT64_FORMAT, dims[i]);
  }
  return g_strconcat (text->str, "]", NULL);
}

/* Ops that take no single value. */
static gboolean
takes_rows (const char *op)
{
  static const char *const prefixes[] = {
      "MatMul",  "BatchMatMul", "Conv",    "Gather", "Reshape",          "Sparse",
      "Softmax", "OneHot",      "Dynamic", "Concat", "SquaredDifference"};
  for (gsize i = 0; i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (op, prefixes[i]))
      return TRUE;
  return FALSE;
}

gboolean
muster_feed_takes_rows (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims >= 0)
    return n_dims > 0;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    for (gsize k = 0; k < node->n_input && takes_rows (node->kind->op); k++)
      if (!muster_node_input_is_control (node, k) &&
          muster_graph_node (graph, muster_node_input (node, k, NULL)) == placeholder)
        return TRUE;
  }
  return FALSE;
}

const char *
muster_feed_example (const MusterNode *placeholder)
{
  const MusterDType dtype = muster_node_dtype (placeholder, "dtype", MUSTER_INVALID);
  return dtype == MUSTER_BOOL ? "true" : dtype == MUSTER_STRING ? "text" : "1";
}

/* A value of no shape is mostly a single one: a rate, a flag. */
static const char *
value_of (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims != 0)
    return n_dims < 0 ? "VALUE" : "@FILE.npy";
  switch (muster_node_dtype (placeholder, "dtype", MUSTER_INVALID)) {
  case MUSTER_BOOL:
    return "true";
  case MUSTER_STRING:
    return "TEXT";
  default:
    return "NUMBER";
  }
}

char *
muster_feed_option (MusterGraph *graph, const MusterNode *placeholder)
{
  return g_strdup_printf ("--feed=%s:0=%s", placeholder->name, value_of (graph, placeholder));
}

char *
muster_feed_options (MusterGraph *graph, const guint8 *marked)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    if (!marked[i] || !muster_feed_is_needed (node))
      continue;
    g_autofree char *option = muster_feed_option (graph, node);
    g_autofree char *type = muster_feed_type (graph, node);
    g_string_append_printf (text, "%s%s (%s)", text->len > 0 ? ", " : "", option, type);
  }
  return text->len > 0 ? g_strdup (text->str) : NULL;
}
