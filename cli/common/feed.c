// SPDX-License-Identifier: Apache-2.0
/* Reads --feed: values in JSON, or rows of a NumPy file; and prints tensors as JSON. */
#include "cli/common/feed.h"

#include "base/error.h"
#include "cli/common/usage_error.h"
#include "graph/graph_nodes_private.h"
#include "graph/npy.h"

#include <math.h>
#include <string.h>

#define DEEPEST 32

typedef struct {
  MusterDType dtype;
  gint64 dims[DEEPEST];
  int n_dims;
  GPtrArray *leaves; /* (owned) (element-type JsonNode) not owned by the array */
} Literal;

/* Walks nested lists: takes the shape from the first branch, and checks that all others have the
 * same. */
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
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "its lists are nested to different depths");
  }
  JsonArray *list = json_node_get_array (node);
  gint64 n = json_array_get_length (list);
  if (depth == DEEPEST ||
      (self->n_dims >= 0 && (depth >= self->n_dims || self->dims[depth] != n))) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "its lists have different lengths");
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

/* The range of an integer dtype; of the unsigned 64 bits, what JSON has. FALSE for another dtype.
 */
static gboolean
range_of (MusterDType dtype, gint64 *low, gint64 *high)
{
  static const struct {
    MusterDType dtype;
    gint64 low, high;
  } ranges[] = {{MUSTER_INT8, G_MININT8, G_MAXINT8},    {MUSTER_UINT8, 0, G_MAXUINT8},
                {MUSTER_INT16, G_MININT16, G_MAXINT16}, {MUSTER_UINT16, 0, G_MAXUINT16},
                {MUSTER_INT32, G_MININT32, G_MAXINT32}, {MUSTER_UINT32, 0, G_MAXUINT32},
                {MUSTER_INT64, G_MININT64, G_MAXINT64}, {MUSTER_UINT64, 0, G_MAXINT64}};
  for (gsize i = 0; i < G_N_ELEMENTS (ranges); i++)
    if (ranges[i].dtype == dtype) {
      *low = ranges[i].low;
      *high = ranges[i].high;
      return TRUE;
    }
  return FALSE;
}

/* FALSE for 0.5 or 300 where the dtype has no such number. */
static gboolean
is_exact (MusterDType dtype, JsonNode *leaf)
{
  gint64 low, high;
  if (!range_of (dtype, &low, &high) || json_node_get_value_type (leaf) == G_TYPE_BOOLEAN)
    return TRUE;
  const double real = json_node_get_double (leaf);
  if (json_node_get_value_type (leaf) != G_TYPE_INT64)
    return real == trunc (real) && real >= (double)low && real <= (double)high &&
           fabs (real) < 9e18;
  const gint64 whole = json_node_get_int (leaf);
  return whole >= low && whole <= high;
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
    if (json_node_get_value_type (leaf) == G_TYPE_STRING || !is_exact (self->dtype, leaf) ||
        !store_number (muster_tensor_data_mutable (tensor), self->dtype, i, leaf)) {
      muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                   "element %u can't be converted to %s; feed a .npy file with @FILE", i,
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
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid value '%s' (use a number, a list such as [[1, 2], [3, 4]], or @FILE.npy)",
                 text);
    return NULL;
  }
  g_autoptr (GPtrArray) leaves = g_ptr_array_new ();
  Literal literal = {.dtype = dtype, .n_dims = -1, .leaves = leaves};
  if (!collect (&literal, json_parser_get_root (parser), 0, error))
    return NULL;
  return dtype == MUSTER_STRING ? strings_of (&literal) : numbers_of (&literal, error);
}

/* An output's dtype, from its node's attributes: "dtype" of a placeholder, else "T". */
static MusterDType
dtype_of (const MusterNode *node, GError **error)
{
  MusterDType dtype =
      muster_node_dtype (node, "dtype", muster_node_dtype (node, "T", MUSTER_INVALID));
  if (!muster_dtype_is_supported (dtype)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the dtype of '%s' (a %s) is unknown; feed a .npy file with @FILE", node->name,
                 node->kind->op);
    return MUSTER_INVALID;
  }
  return dtype;
}

static gboolean
read_bound (const char *text, gint64 fallback, gint64 *bound)
{
  *bound = fallback;
  return *text == '\0' || g_ascii_string_to_signed (text, 10, 0, G_MAXINT64, bound, NULL);
}

static MusterTensor *
rows_of_strings (MusterTensor *array, gint64 first, gint64 end)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_tensor_n_dims (array);
  const gint64 n = muster_tensor_n_elements (array) / muster_tensor_dims (array)[0];
  g_autofree MusterString *strings = g_new0 (MusterString, (gsize)(n * (end - first)) + 1);
  memcpy (dims, muster_tensor_dims (array), (gsize)n_dims * sizeof *dims);
  dims[0] = end - first;
  for (gint64 i = 0; i < n * dims[0]; i++)
    strings[i] = muster_tensor_string (array, n * first + i);
  return muster_tensor_new_strings (n_dims, dims, strings);
}

/* The rows FIRST:END; a view of numbers. */
static MusterTensor *
rows_of (MusterTensor *array, const char *rows, GError **error)
{
  const int n_dims = muster_tensor_n_dims (array);
  gint64 dims[MUSTER_MAX_DIMS], first, end;
  g_auto (GStrv) bounds = g_strsplit (rows, ":", 3);
  if (n_dims == 0) {
    muster_cli_usage_error (error, "the array has no rows");
    return NULL;
  }
  memcpy (dims, muster_tensor_dims (array), (gsize)n_dims * sizeof *dims);
  if (g_strv_length (bounds) != 2 || !read_bound (bounds[0], 0, &first) ||
      !read_bound (bounds[1], dims[0], &end)) {
    muster_cli_usage_error (error, "invalid --rows '%s' (use FIRST:END, such as 0:1500 or 1500:)",
                            rows);
    return NULL;
  }
  if (first >= end || end > dims[0]) {
    muster_cli_usage_error (
        error, "--rows=%s is empty or out of range: the array has %" G_GINT64_FORMAT " rows", rows,
        dims[0]);
    return NULL;
  }
  if (muster_tensor_dtype (array) == MUSTER_STRING)
    return rows_of_strings (array, first, end);
  const gsize size = muster_tensor_n_bytes (array) / (gsize)dims[0];
  g_autoptr (GBytes) all = muster_tensor_to_bytes (array);
  g_autoptr (GBytes) some =
      g_bytes_new_from_bytes (all, (gsize)first * size, (gsize)(end - first) * size);
  dims[0] = end - first;
  return muster_tensor_new_from_bytes (muster_tensor_dtype (array), n_dims, dims, some, error);
}

static MusterTensor *
read_file (const char *path, const char *rows, GError **error)
{
  g_autoptr (MusterTensor) whole = muster_npy_load (path, error);
  if (whole == NULL || rows == NULL)
    return g_steal_pointer (&whole);
  return rows_of (whole, rows, error);
}

MusterTensor *
muster_cli_read_feed (MusterGraph *graph, const char *argument, const char *rows, char **name,
                      GError **error)
{
  const char *equals = strchr (argument, '=');
  if (equals == NULL || equals == argument || equals[1] == '\0') {
    muster_cli_usage_error (error, "invalid --feed '%s' (use NAME=VALUE or NAME=@FILE.npy)",
                            argument);
    return NULL;
  }
  g_autofree char *given = g_strndup (argument, (gsize)(equals - argument));
  g_autofree char *op = NULL;
  const int output = muster_graph_split_input (given, &op);
  const MusterNode *node = muster_graph_find_node (graph, op);
  if (node == NULL || output < 0) {
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "--feed=%s: the graph has no tensor '%s'", argument,
                 given);
    return NULL;
  }
  MusterTensor *tensor = NULL;
  if (equals[1] == '@') {
    tensor = read_file (equals + 2, rows, error);
  } else {
    MusterDType dtype = dtype_of (node, error);
    if (dtype != MUSTER_INVALID)
      tensor = parse_literal (equals + 1, dtype, error);
  }
  if (tensor == NULL)
    g_prefix_error (error, "--feed=%s: ", given);
  else
    *name = g_strdup_printf ("%s:%d", op, output);
  return tensor;
}

/* Values that JSON can't represent as numbers are strings: "nan", "inf" and integers beyond 64 bits
 * with a sign. */
static void
number_json (JsonBuilder *builder, const char *text, gboolean is_real)
{
  const double value = g_ascii_strtod (text, NULL);
  gint64 whole;
  if (is_real && isfinite (value))
    json_builder_add_double_value (builder,
                                   value); /* the shortest text of a float, not its exact value */
  else if (!is_real && g_ascii_string_to_signed (text, 10, G_MININT64, G_MAXINT64, &whole, NULL))
    json_builder_add_int_value (builder, whole);
  else
    json_builder_add_string_value (builder, text);
}

static void
complex_json (JsonBuilder *builder, const char *text)
{
  char *imaginary = NULL, *end = NULL; /* "(1+2j)" */
  (void)g_ascii_strtod (text + 1, &imaginary);
  (void)g_ascii_strtod (imaginary, &end);
  g_autofree char *first = g_strndup (text + 1, (gsize)(imaginary - text - 1));
  g_autofree char *second = g_strndup (imaginary, (gsize)(end - imaginary));
  json_builder_begin_array (builder);
  number_json (builder, first, TRUE);
  number_json (builder, *second == '+' ? second + 1 : second, TRUE);
  json_builder_end_array (builder);
}

void
muster_cli_element_json (JsonBuilder *builder, const MusterTensor *tensor, gint64 i)
{
  const MusterDType dtype = muster_tensor_dtype (tensor);
  if (dtype == MUSTER_STRING) {
    const MusterString string = muster_tensor_string (tensor, i);
    g_autofree char *valid = g_utf8_make_valid (string.data, (gssize)string.size);
    json_builder_add_string_value (builder, valid);
    return;
  }
  g_autoptr (GString) text = g_string_new (NULL);
  muster_tensor_append_element (text, tensor, i, G_MAXSIZE);
  if (dtype == MUSTER_BOOL)
    json_builder_add_boolean_value (builder, text->str[0] == 't');
  else if (dtype == MUSTER_COMPLEX64 || dtype == MUSTER_COMPLEX128)
    complex_json (builder, text->str);
  else
    number_json (builder, text->str,
                 dtype == MUSTER_FLOAT || dtype == MUSTER_DOUBLE || dtype == MUSTER_HALF ||
                     dtype == MUSTER_BFLOAT16);
}

static gint64
dimension_json (JsonBuilder *builder, const MusterTensor *tensor, int dim, gint64 next)
{
  if (dim == muster_tensor_n_dims (tensor)) {
    muster_cli_element_json (builder, tensor, next);
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
