// SPDX-License-Identifier: Apache-2.0
#include "graph/feed_option.h"

#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"

#include <string.h>

#define MOST_PICKED 64 /* elements of a list */

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
muster_feed_type_of (MusterDType dtype, int n_dims, const gint64 *dims)
{
  const char *name = muster_dtype_name (dtype);
  if (n_dims < 0 || n_dims > MUSTER_MAX_DIMS)
    return g_strdup_printf ("%s, any shape", name);
  if (n_dims == 0)
    return g_strdup (name);
  g_autoptr (GString) text = g_string_new (name);
  for (int i = 0; i < n_dims; i++) {
    g_string_append_c (text, i > 0 ? ',' : '[');
    if (dims[i] < 0)
      g_string_append_c (text, '?');
    else
      g_string_append_printf (text, "%" G_GINT64_FORMAT, dims[i]);
  }
  return g_strconcat (text->str, "]", NULL);
}

char *
muster_feed_type (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  return muster_feed_type_of (muster_node_dtype (placeholder, "dtype", MUSTER_INVALID), n_dims,
                              dims);
}

/* What the users of a tensor tell about its shape. */
typedef enum {
  TELLS_NOTHING,
  TELLS_SINGLE,
  TELLS_ROWS,
} Tells;

static gboolean
has_prefix (const char *op, const char *const *prefixes)
{
  for (; *prefixes != NULL; prefixes++)
    if (g_str_has_prefix (op, *prefixes))
      return TRUE;
  return FALSE;
}

/* A predicate, a rate of an optimizer or of a dropout, a size. */
static gboolean
takes_single (const MusterNode *node, gsize input)
{
  static const char *const sizes[] = {"Pack", "Range", NULL};
  const char *op = node->kind->op;
  if (strcmp (op, "Switch") == 0)
    return input == 1;
  return has_prefix (op, sizes) || strstr (op, "Apply") != NULL ||
         strstr (node->name, "dropout") != NULL;
}

/* Ops that take no single value. */
static gboolean
takes_rows (const MusterNode *node)
{
  static const char *const ops[] = {
      "MatMul",  "BatchMatMul", "Conv",   "Gather", "Reshape",
      "Sparse",  "Softmax",     "OneHot", "Concat", "SquaredDifference",
      "Shape",   "Transpose",   "ArgMax", "Split",  "Rank",
      "Dynamic", NULL};
  const char *op = node->kind->op;
  return has_prefix (op, ops) && strstr (op, "Apply") == NULL;
}

/* Ops of a value of the same shape: 1 - keep_prob, a cast. */
static gboolean
passes_on (MusterGraph *graph, const MusterNode *node)
{
  static const char *const ops[] = {"Identity", "Cast",    "Neg", "Sub",   "Mul",
                                    "Add",      "RealDiv", "Div", "Enter", NULL};
  gsize n_constant = 0;
  if (!has_prefix (node->kind->op, ops))
    return FALSE;
  for (gsize i = 0; i < node->n_input; i++) {
    const MusterNode *input = muster_graph_node (graph, muster_node_input (node, i, NULL));
    n_constant += muster_node_input_is_control (node, i) || strcmp (input->kind->op, "Const") == 0;
  }
  return n_constant + 1 >= node->n_input;
}

/* What programs mostly call a rate. */
static gboolean
is_called_single (const char *name)
{
  const char *slash = strrchr (name, '/');
  const char *own = slash != NULL ? slash + 1 : name;
  return strstr (own, "keep") != NULL || strstr (own, "dropout") != NULL ||
         g_str_has_suffix (own, "rate") || strcmp (own, "lr") == 0;
}

/* What the gradients take tells nothing: they take all shapes. */
static Tells
ask_users (MusterGraph *graph, const MusterNode *of, int depth)
{
  Tells told = TELLS_NOTHING;
  for (gsize i = 0; i < muster_graph_n_nodes (graph) && told != TELLS_ROWS; i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    for (gsize k = 0; k < node->n_input; k++) {
      if (muster_node_input_is_control (node, k) ||
          muster_graph_node (graph, muster_node_input (node, k, NULL)) != of ||
          strstr (node->name, "gradients/") != NULL)
        continue;
      const Tells one = takes_rows (node)                      ? TELLS_ROWS
                        : takes_single (node, k)               ? TELLS_SINGLE
                        : depth > 0 && passes_on (graph, node) ? ask_users (graph, node, depth - 1)
                                                               : TELLS_NOTHING;
      told = MAX (told, one);
    }
  }
  return told;
}

/* The elements of a list that are taken one by one, as in keep[0]; 0 if it has other users. */
static gint64
n_picked (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 n = 0;
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    for (gsize k = 0; k < node->n_input; k++) {
      if (muster_graph_node (graph, muster_node_input (node, k, NULL)) != placeholder ||
          strstr (node->name, "gradients/") != NULL)
        continue;
      const MusterNode *begin =
          strcmp (node->kind->op, "StridedSlice") == 0 && k == 0 && node->n_input > 1
              ? muster_graph_node (graph, muster_node_input (node, 1, NULL))
              : NULL;
      MusterTensor *at = begin != NULL ? muster_node_constant (begin) : NULL;
      if (at == NULL || !(muster_node_int (node, "shrink_axis_mask", 0) & 1) ||
          muster_tensor_dtype (at) != MUSTER_INT32 || muster_tensor_n_elements (at) != 1)
        return 0;
      const gint32 first = *(const gint32 *)muster_tensor_data (at);
      if (first < 0 || first >= MOST_PICKED)
        return 0;
      n = MAX (n, (gint64)first + 1);
    }
  }
  return n;
}

gboolean
muster_feed_takes_rows (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims >= 0)
    return n_dims > 1 || (n_dims == 1 && n_picked (graph, placeholder) == 0);
  switch (ask_users (graph, placeholder, 3)) {
  case TELLS_ROWS:
    return TRUE;
  case TELLS_SINGLE:
    return FALSE;
  default: /* a label, as in pred - label, is met more often than a rate of another name */
    return muster_node_dtype (placeholder, "dtype", MUSTER_INVALID) != MUSTER_BOOL &&
           !is_called_single (placeholder->name);
  }
}

gboolean
muster_feed_is_sparse (MusterGraph *graph, const MusterNode *placeholder)
{
  if (muster_node_dtype (placeholder, "dtype", MUSTER_INVALID) != MUSTER_INT64)
    return FALSE;
  if (g_str_has_suffix (placeholder->name, "/indices")) {
    g_autofree char *values = g_strdup_printf (
        "%.*s/values", (int)(strlen (placeholder->name) - strlen ("/indices")), placeholder->name);
    return muster_graph_has_node (graph, values);
  }
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    const gsize indices = strcmp (node->kind->op, "CTCLoss") == 0 ? 1 : 0;
    if ((indices == 1 || g_str_has_prefix (node->kind->op, "SparseTensor") ||
         g_str_has_prefix (node->kind->op, "SparseRe")) &&
        node->n_input > indices &&
        muster_graph_node (graph, muster_node_input (node, indices, NULL)) == placeholder)
      return TRUE;
  }
  return FALSE;
}

char *
muster_feed_example (MusterGraph *graph, const MusterNode *placeholder)
{
  const MusterDType dtype = muster_node_dtype (placeholder, "dtype", MUSTER_INVALID);
  const char *one = dtype == MUSTER_BOOL ? "true" : dtype == MUSTER_STRING ? "text" : "1";
  const gint64 n = n_picked (graph, placeholder);
  g_autoptr (GString) text = g_string_new (n > 0 ? "[" : one);
  for (gint64 i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s%s", i > 0 ? "," : "", one, i + 1 == n ? "]" : "");
  return g_strdup (text->str);
}

/* A value of no shape is mostly a single one: a rate, a flag. */
static const char *
value_of (MusterGraph *graph, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims != 0)
    return n_dims < 0 ? "VALUE" : n_picked (graph, placeholder) > 0 ? "[VALUE]" : "@FILE.npy";
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
