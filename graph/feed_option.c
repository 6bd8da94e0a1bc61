// SPDX-License-Identifier: Apache-2.0
/* What a tensor that is fed may be: its type, whether it takes rows or a single value, and an
 * example for a command. It is found from the placeholder and from the ops that use it. */
#include "graph/feed_option_private.h"

#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"

#include <string.h>

#define MOST_PICKED 64 /* elements of a list */

gboolean
muster_feed_is_own (const MusterNode *node)
{
  return g_str_has_prefix (node->name, "muster/");
}

gboolean
muster_feed_is_needed (const MusterNode *node)
{
  return (strcmp (node->kind->op, "Placeholder") == 0 ||
          strcmp (node->kind->op, "PlaceholderV2") == 0) &&
         !muster_feed_is_own (node);
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

/* --- who takes what --- */

typedef struct {
  guint32 node;
  guint32 input;
} Use;

struct _MusterFeedUsers {
  MusterGraph *graph; /* (not owned) */
  gsize *first;       /* (owned) for each node the first of its uses, and their end */
  Use *uses;          /* (owned) by what they use */
};

MusterFeedUsers *
muster_feed_users_new (MusterGraph *graph)
{
  const gsize n = muster_graph_n_nodes (graph);
  MusterFeedUsers *self = g_new0 (MusterFeedUsers, 1);
  g_autofree gsize *next = g_new0 (gsize, n + 1);
  self->graph = graph;
  self->first = g_new0 (gsize, n + 1);
  for (gsize i = 0; i < n; i++)
    for (gsize k = 0; k < muster_graph_node (graph, i)->n_input; k++)
      self->first[muster_node_input (muster_graph_node (graph, i), k, NULL) + 1]++;
  for (gsize i = 0; i < n; i++)
    next[i + 1] = self->first[i + 1] += self->first[i];
  self->uses = g_new (Use, self->first[n] + 1);
  for (gsize i = 0; i < n; i++)
    for (gsize k = 0; k < muster_graph_node (graph, i)->n_input; k++) {
      const gsize used = muster_node_input (muster_graph_node (graph, i), k, NULL);
      self->uses[next[used]++] = (Use){(guint32)i, (guint32)k};
    }
  return self;
}

void
muster_feed_users_free (MusterFeedUsers *self)
{
  if (self == NULL)
    return;
  g_free (self->first);
  g_free (self->uses);
  g_free (self);
}

/* The next use of a node, but by gradients: they take all shapes. *at is 0 first. */
static const MusterNode *
next_user (const MusterFeedUsers *self, gsize of, gsize *at, gsize *input)
{
  while (self->first[of] + *at < self->first[of + 1]) {
    const Use *use = &self->uses[self->first[of] + (*at)++];
    const MusterNode *node = muster_graph_node (self->graph, use->node);
    *input = use->input;
    if (!muster_node_input_is_control (node, use->input) &&
        strstr (node->name, "gradients/") == NULL)
      return node;
  }
  return NULL;
}

static gsize
index_of (const MusterFeedUsers *self, const MusterNode *node)
{
  return (gsize)muster_graph_find_named (self->graph, node->name);
}

/* --- what they tell --- */

/* What the ops that use a tensor tell about its shape. */
typedef enum {
  TELLS_NOTHING,
  TELLS_SINGLE,
  TELLS_ROWS,
} Tells;

/* Inputs that are a shape or a size. */
static gboolean
takes_shape (const MusterNode *node, gsize input)
{
  static const char *const first[] = {
      "Fill", "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", NULL};
  static const char *const others[] = {
      "Reshape",        "BroadcastTo",           "Tile", "Slice", "StridedSlice",
      "ResizeBilinear", "ResizeNearestNeighbor", NULL};
  return g_strv_contains (input == 0 ? first : others, node->kind->op);
}

/* A shape of single values: [batch_size, 10]. */
static gboolean
packs_shape (const MusterFeedUsers *users, const MusterNode *node)
{
  const MusterNode *user;
  gsize input;
  if (strcmp (node->kind->op, "Pack") != 0)
    return FALSE;
  for (gsize at = 0; (user = next_user (users, index_of (users, node), &at, &input)) != NULL;)
    if (takes_shape (user, input))
      return TRUE;
  return FALSE;
}

/* A predicate, a rate of an optimizer or of a dropout, a size. */
static gboolean
takes_single (const MusterFeedUsers *users, const MusterNode *node, gsize input)
{
  const char *op = node->kind->op;
  if (strcmp (op, "Switch") == 0 || strcmp (op, "OneHot") == 0)
    return input == 1;
  return strcmp (op, "Range") == 0 || strstr (op, "Apply") != NULL ||
         strstr (node->name, "dropout") != NULL || packs_shape (users, node);
}

/* Ops that take no single value. */
static const char *const row_ops[] = {"MatMul",
                                      "BatchMatMul",
                                      "BatchMatMulV2",
                                      "BatchMatMulV3",
                                      "Conv2D",
                                      "Conv2DBackpropInput",
                                      "Conv3D",
                                      "Conv3DBackpropInputV2",
                                      "DepthwiseConv2dNative",
                                      "Gather",
                                      "GatherNd",
                                      "GatherV2",
                                      "ResourceGather",
                                      "ResourceGatherNd",
                                      "SparseMatMul",
                                      "SparseTensorDenseAdd",
                                      "SparseTensorDenseMatMul",
                                      "SparseReorder",
                                      "SparseReshape",
                                      "SparseToDense",
                                      "SparseConcat",
                                      "SparseFillEmptyRows",
                                      "SparseReduceSum",
                                      "SparseSegmentMean",
                                      "SparseSegmentSqrtN",
                                      "SparseSegmentSum",
                                      "SparseSlice",
                                      "SparseSoftmax",
                                      "SparseSoftmaxCrossEntropyWithLogits",
                                      "Softmax",
                                      "SoftmaxCrossEntropyWithLogits",
                                      "Concat",
                                      "ConcatV2",
                                      "SquaredDifference",
                                      "Split",
                                      "SplitV",
                                      "DynamicPartition",
                                      "DynamicStitch",
                                      NULL};

static gboolean
takes_rows (const MusterNode *node, gsize input)
{
  static const char *const first[] = {"Reshape", "OneHot", "Shape", "Transpose",
                                      "ArgMax",  "Rank",   NULL};
  return g_strv_contains (row_ops, node->kind->op) ||
         (input == 0 && g_strv_contains (first, node->kind->op));
}

/* Ops of a value of the same shape: 1 - keep_prob, a cast. */
static gboolean
passes_on (MusterGraph *graph, const MusterNode *node)
{
  static const char *const ops[] = {"Identity", "Cast",    "Neg", "Sub",   "Mul", "Add",
                                    "AddV2",    "RealDiv", "Div", "Enter", NULL};
  gsize n_constant = 0;
  if (!g_strv_contains (ops, node->kind->op))
    return FALSE;
  for (gsize i = 0; i < node->n_input; i++) {
    const MusterNode *input = muster_graph_node (graph, muster_node_input (node, i, NULL));
    n_constant += muster_node_input_is_control (node, i) || strcmp (input->kind->op, "Const") == 0;
  }
  return n_constant + 1 >= node->n_input;
}

/* Names that programs usually give to a rate. */
static gboolean
is_called_single (const char *name)
{
  const char *slash = strrchr (name, '/');
  const char *own = slash != NULL ? slash + 1 : name;
  return strstr (own, "keep") != NULL || strstr (own, "dropout") != NULL ||
         g_str_has_suffix (own, "rate") || strcmp (own, "lr") == 0;
}

static Tells
ask_users (const MusterFeedUsers *users, const MusterNode *of, int depth)
{
  Tells told = TELLS_NOTHING;
  const MusterNode *node;
  gsize input;
  for (gsize at = 0; told != TELLS_ROWS &&
                     (node = next_user (users, index_of (users, of), &at, &input)) != NULL;) {
    const Tells one = takes_rows (node, input)            ? TELLS_ROWS
                      : takes_single (users, node, input) ? TELLS_SINGLE
                      : depth > 0 && passes_on (users->graph, node)
                          ? ask_users (users, node, depth - 1)
                          : TELLS_NOTHING;
    told = MAX (told, one);
  }
  return told;
}

/* The element that is taken from a list, as in keep[0]; -1: another use. */
static gint64
picked_by (MusterGraph *graph, const MusterNode *node, gsize input)
{
  if (strcmp (node->kind->op, "StridedSlice") != 0 || input != 0 || node->n_input < 2 ||
      !(muster_node_int (node, "shrink_axis_mask", 0) & 1))
    return -1;
  g_autoptr (MusterTensor) at =
      muster_node_constant (muster_graph_node (graph, muster_node_input (node, 1, NULL)));
  const gboolean is_one =
      at != NULL && muster_tensor_dtype (at) == MUSTER_INT32 && muster_tensor_n_elements (at) == 1;
  const gint64 first = is_one ? *(const gint32 *)muster_tensor_data (at) : -1;
  return first < MOST_PICKED ? first : -1;
}

/* The elements of a list that are taken one by one; 0 if it has other users. */
static gint64
n_picked (const MusterFeedUsers *users, const MusterNode *placeholder)
{
  const MusterNode *node;
  gsize input;
  gint64 n = 0;
  for (gsize at = 0;
       (node = next_user (users, index_of (users, placeholder), &at, &input)) != NULL;) {
    const gint64 picked = picked_by (users->graph, node, input);
    if (picked < 0)
      return 0;
    n = MAX (n, picked + 1);
  }
  return n;
}

gboolean
muster_feed_takes_rows (const MusterFeedUsers *users, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (users->graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims >= 0)
    return n_dims > 1 || (n_dims == 1 && n_picked (users, placeholder) == 0);
  switch (ask_users (users, placeholder, 3)) {
  case TELLS_ROWS:
    return TRUE;
  case TELLS_SINGLE:
    return FALSE;
  default: /* a label, as in pred - label, is met more often than a rate of another name */
    return muster_node_dtype (placeholder, "dtype", MUSTER_INVALID) != MUSTER_BOOL &&
           !is_called_single (placeholder->name);
  }
}

/* Returns TRUE for the input of a node that takes the indices of a sparse tensor. */
static gboolean
takes_indices (const MusterNode *node, gsize input)
{
  const char *op = node->kind->op;
  if (strcmp (op, "CTCLoss") == 0)
    return input == 1;
  return input == 0 && (g_str_has_prefix (op, "SparseTensor") || g_str_has_prefix (op, "SparseRe"));
}

gboolean
muster_feed_is_sparse (const MusterFeedUsers *users, const MusterNode *placeholder)
{
  const MusterNode *node;
  gsize input;
  if (muster_node_dtype (placeholder, "dtype", MUSTER_INVALID) != MUSTER_INT64)
    return FALSE;
  if (g_str_has_suffix (placeholder->name, "/indices")) {
    g_autofree char *values = g_strdup_printf (
        "%.*s/values", (int)(strlen (placeholder->name) - strlen ("/indices")), placeholder->name);
    return muster_graph_has_node (users->graph, values);
  }
  for (gsize at = 0;
       (node = next_user (users, index_of (users, placeholder), &at, &input)) != NULL;)
    if (takes_indices (node, input))
      return TRUE;
  return FALSE;
}

char *
muster_feed_example (const MusterFeedUsers *users, const MusterNode *placeholder)
{
  const MusterDType dtype = muster_node_dtype (placeholder, "dtype", MUSTER_INVALID);
  const char *one = dtype == MUSTER_BOOL ? "true" : dtype == MUSTER_STRING ? "text" : "1";
  const gint64 n = n_picked (users, placeholder);
  g_autoptr (GString) text = g_string_new (n > 0 ? "[" : one);
  for (gint64 i = 0; i < n; i++)
    g_string_append_printf (text, "%s%s%s", i > 0 ? "," : "", one, i + 1 == n ? "]" : "");
  return g_strdup (text->str);
}

/* A value of no shape is mostly a single one: a rate, a flag. */
static const char *
value_of (const MusterFeedUsers *users, const MusterNode *placeholder)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_graph_feed_shape (users->graph, placeholder, dims, MUSTER_MAX_DIMS);
  if (n_dims != 0)
    return n_dims < 0 ? "VALUE" : n_picked (users, placeholder) > 0 ? "[VALUE]" : "@FILE.npy";
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
muster_feed_options (MusterGraph *graph, const guint8 *marked)
{
  g_autoptr (MusterFeedUsers) users = muster_feed_users_new (graph);
  g_autoptr (GString) text = g_string_new (NULL);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    if (!marked[i] || !muster_feed_is_needed (node))
      continue;
    g_autofree char *type = muster_feed_type (graph, node);
    g_string_append_printf (text, "%s--feed=%s:0=%s (%s)", text->len > 0 ? ", " : "", node->name,
                            value_of (users, node), type);
  }
  return text->len > 0 ? g_strdup (text->str) : NULL;
}
