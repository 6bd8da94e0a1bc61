// SPDX-License-Identifier: Apache-2.0
#include "cli/feed.h"

#include "base/error.h"
#include "graph/graph_nodes.h"
#include "train/npy.h"

#include <string.h>

#define DEEPEST 32

typedef struct {
  MusterDType dtype;
  gint64 dims[DEEPEST];
  int n_dims;
  GPtrArray *leaves; /* (owned) (element-type JsonNode) not owned by the array */
} Literal;

/* Walks nested lists: fills the shape on the way down its first branch, and checks that every other
 * has the same. */
static gboolean
collect (Literal *self, JsonNode *node, int depth, GError **error)
{
  if (!JSON_NODE_HOLDS_ARRAY (node)) {
    if (self->n_dims < 0)
      self->n_dims = depth;
    if (depth == self->n_dims && JSON_NODE_HOLDS_VALUE (node)) {
      g_ptr_array_add (self->leaves, node);
      return TRUE;
    }
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "its lists are not nested evenly");
    return FALSE;
  }
  JsonArray *list = json_node_get_array (node);
  gint64 n = json_array_get_length (list);
  if (depth == DEEPEST ||
      (self->n_dims >= 0 && (depth >= self->n_dims || self->dims[depth] != n))) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "its lists are not of one length at each depth");
    return FALSE;
  }
  if (self->n_dims < 0)
    self->dims[depth] = n;
  if (n == 0 && self->n_dims < 0)
    self->n_dims = depth + 1;
  for (gint64 i = 0; i < n; i++)
    if (!collect (self, json_array_get_element (list, i), depth + 1, error))
      return FALSE;
  return TRUE;
}

static gboolean
store_number (void *to, MusterDType dtype, gint64 i, JsonNode *leaf)
{
  double real = json_node_get_double (leaf);
  gint64 whole =
      json_node_get_value_type (leaf) == G_TYPE_INT64 ? json_node_get_int (leaf) : (gint64)real;
  switch (dtype) {
  case MUSTER_FLOAT:
    ((float *)to)[i] = (float)real;
    return TRUE;
  case MUSTER_DOUBLE:
    ((double *)to)[i] = real;
    return TRUE;
  case MUSTER_HALF:
    ((guint16 *)to)[i] = muster_half_from_float ((float)real);
    return TRUE;
  case MUSTER_BFLOAT16:
    ((guint16 *)to)[i] = muster_bfloat16_from_float ((float)real);
    return TRUE;
  case MUSTER_INT64:
  case MUSTER_UINT64:
    ((gint64 *)to)[i] = whole;
    return TRUE;
  case MUSTER_INT32:
  case MUSTER_UINT32:
    ((gint32 *)to)[i] = (gint32)whole;
    return TRUE;
  case MUSTER_INT16:
  case MUSTER_UINT16:
    ((gint16 *)to)[i] = (gint16)whole;
    return TRUE;
  case MUSTER_INT8:
  case MUSTER_UINT8:
    ((gint8 *)to)[i] = (gint8)whole;
    return TRUE;
  case MUSTER_BOOL:
    ((guint8 *)to)[i] = json_node_get_boolean (leaf) || whole != 0;
    return TRUE;
  default:
    return FALSE;
  }
}

static MusterTensor *
strings_of (const Literal *self)
{
  g_autofree MusterString *strings = g_new0 (MusterString, self->leaves->len + 1);
  for (guint i = 0; i < self->leaves->len; i++) {
    const char *text = json_node_get_string (g_ptr_array_index (self->leaves, i));
    strings[i] =
        (MusterString){.data = text != NULL ? text : "", .size = text != NULL ? strlen (text) : 0};
  }
  return muster_tensor_new_strings (self->n_dims, self->dims, strings);
}

static MusterTensor *
numbers_of (const Literal *self, GError **error)
{
  g_autoptr (MusterTensor) tensor =
      muster_tensor_try_new (self->dtype, self->n_dims, self->dims, error);
  if (tensor == NULL)
    return NULL;
  for (guint i = 0; i < self->leaves->len; i++) {
    JsonNode *leaf = g_ptr_array_index (self->leaves, i);
    if (json_node_get_value_type (leaf) == G_TYPE_STRING ||
        !store_number (muster_tensor_data_mutable (tensor), self->dtype, i, leaf)) {
      g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                   "element %u can't be read as %s; feed a .npy file with @FILE", i,
                   muster_dtype_name (self->dtype));
      return NULL;
    }
  }
  return g_steal_pointer (&tensor);
}

static MusterTensor *
parse_literal (const char *text, MusterDType dtype, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GError) malformed = NULL;
  if (!json_parser_load_from_data (parser, text, -1, &malformed) ||
      json_parser_get_root (parser) == NULL) {
    if (dtype == MUSTER_STRING)
      return muster_tensor_new_string (text);
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is neither a number nor a list of them such as [[1, 2], [3, 4]]", text);
    return NULL;
  }
  g_autoptr (GPtrArray) leaves = g_ptr_array_new ();
  Literal literal = {.dtype = dtype, .n_dims = -1, .leaves = leaves};
  if (!collect (&literal, json_parser_get_root (parser), 0, error))
    return NULL;
  return dtype == MUSTER_STRING ? strings_of (&literal) : numbers_of (&literal, error);
}

/* The dtype of an output as its node's attributes tell: a placeholder's "dtype", else "T". */
static MusterDType
dtype_of (MusterGraph *graph, const char *tensor, GError **error)
{
  g_autofree char *name = NULL;
  muster_graph_split_input (tensor, &name);
  const Tensorflow__NodeDef *node = muster_graph_find_node (graph, name);
  if (node == NULL) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "the graph has no '%s' to feed",
                 name);
    return MUSTER_INVALID;
  }
  MusterDType dtype =
      muster_node_dtype (node, "dtype", muster_node_dtype (node, "T", MUSTER_INVALID));
  if (!muster_dtype_is_supported (dtype)) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the dtype of '%s' (a %s) isn't known: feed a .npy file with @FILE", name,
                 node->op);
    return MUSTER_INVALID;
  }
  return dtype;
}

MusterTensor *
muster_cli_read_feed (MusterGraph *graph, const char *argument, char **name, GError **error)
{
  const char *equals = strchr (argument, '=');
  if (equals == NULL || equals == argument) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "--feed='%s' isn't NAME=VALUE or NAME=@FILE.npy", argument);
    return NULL;
  }
  g_autofree char *tensor_name = g_strndup (argument, equals - argument);
  MusterTensor *tensor = NULL;
  if (equals[1] == '@') {
    tensor = muster_npy_load (equals + 2, error);
  } else {
    MusterDType dtype = dtype_of (graph, tensor_name, error);
    if (dtype != MUSTER_INVALID)
      tensor = parse_literal (equals + 1, dtype, error);
  }
  if (tensor == NULL)
    g_prefix_error (error, "--feed=%s: ", tensor_name);
  else
    *name = g_steal_pointer (&tensor_name);
  return tensor;
}

static void
element_json (JsonBuilder *builder, const MusterTensor *tensor, gint64 i)
{
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_FLOAT:
    json_builder_add_double_value (builder, ((const float *)data)[i]);
    return;
  case MUSTER_DOUBLE:
    json_builder_add_double_value (builder, ((const double *)data)[i]);
    return;
  case MUSTER_HALF:
    json_builder_add_double_value (builder, muster_half_to_float (((const guint16 *)data)[i]));
    return;
  case MUSTER_BFLOAT16:
    json_builder_add_double_value (builder, muster_bfloat16_to_float (((const guint16 *)data)[i]));
    return;
  case MUSTER_INT64:
  case MUSTER_UINT64:
    json_builder_add_int_value (builder, ((const gint64 *)data)[i]);
    return;
  case MUSTER_INT32:
    json_builder_add_int_value (builder, ((const gint32 *)data)[i]);
    return;
  case MUSTER_UINT32:
    json_builder_add_int_value (builder, ((const guint32 *)data)[i]);
    return;
  case MUSTER_INT16:
    json_builder_add_int_value (builder, ((const gint16 *)data)[i]);
    return;
  case MUSTER_UINT16:
    json_builder_add_int_value (builder, ((const guint16 *)data)[i]);
    return;
  case MUSTER_INT8:
    json_builder_add_int_value (builder, ((const gint8 *)data)[i]);
    return;
  case MUSTER_UINT8:
    json_builder_add_int_value (builder, ((const guint8 *)data)[i]);
    return;
  case MUSTER_BOOL:
    json_builder_add_boolean_value (builder, ((const guint8 *)data)[i] != 0);
    return;
  case MUSTER_COMPLEX64:
    json_builder_begin_array (builder);
    json_builder_add_double_value (builder, ((const float *)data)[2 * i]);
    json_builder_add_double_value (builder, ((const float *)data)[2 * i + 1]);
    json_builder_end_array (builder);
    return;
  case MUSTER_COMPLEX128:
    json_builder_begin_array (builder);
    json_builder_add_double_value (builder, ((const double *)data)[2 * i]);
    json_builder_add_double_value (builder, ((const double *)data)[2 * i + 1]);
    json_builder_end_array (builder);
    return;
  case MUSTER_STRING: {
    MusterString string = muster_tensor_string (tensor, i);
    g_autofree char *text = g_utf8_make_valid (string.data, (gssize)string.size);
    json_builder_add_string_value (builder, text);
    return;
  }
  default:
    json_builder_add_null_value (builder);
  }
}

static gint64
dimension_json (JsonBuilder *builder, const MusterTensor *tensor, int dim, gint64 next)
{
  if (dim == muster_tensor_n_dims (tensor)) {
    element_json (builder, tensor, next);
    return next + 1;
  }
  json_builder_begin_array (builder);
  for (gint64 i = 0; i < muster_tensor_dims (tensor)[dim]; i++)
    next = dimension_json (builder, tensor, dim + 1, next);
  json_builder_end_array (builder);
  return next;
}

void
muster_cli_tensor_json (JsonBuilder *builder, const MusterTensor *tensor)
{
  dimension_json (builder, tensor, 0, 0);
}
