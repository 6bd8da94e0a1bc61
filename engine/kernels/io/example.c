// SPDX-License-Identifier: Apache-2.0
/* Parses tensorflow.Examples to tensors: a column for each requested feature. */
#include "engine/kernels/io/example_parser.h"
#include "engine/kernels/io/io_op_tables.h"

#include "base/hash_private.h"
#include "engine/kernels/common/strings.h"

#include <string.h>

typedef enum {
  FIXED,  /* each example has the same number of values */
  PADDED, /* rows of values, padded to the longest example */
  SPARSE,
  RAGGED
} Kind;

/* A feature to parse. */
typedef struct {
  MusterString key;
  Kind kind;
  MusterDType dtype, splits; /* splits: RAGGED */
  int n_dims;                /* FIXED and PADDED: of the shape in the node's attribute */
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 stride;          /* number of values in an example, or in a row */
  MusterTensor *fallback; /* (not owned) the default. FIXED: as many values, or none; PADDED: one */
  int values, where, size; /* outputs; where: a ragged one's splits */
} Column;

/* A feature's values in one example. */
typedef struct {
  MusterString feature;
  gint64 n; /* number of values; -1: the example lacks the feature */
} Cell;

typedef struct {
  MusterKernel *k;
  gboolean is_single;               /* one example; the outputs have no dimension for it */
  MusterTensor *serialized, *names; /* (not owned) names: nullable */
  gint64 n;                         /* examples */
  Column *columns;                  /* (owned) */
  guint n_columns;
  GHashTable *by_key;  /* (owned) MusterString to Column */
  Cell *cells;         /* (owned) by example and column */
  MusterText features; /* of the current example */
} Parse;

/* The maximum memory of a key in a GHashTable, while the table grows. */
#define KEY_SIZE 96

static guint
hash_key (gconstpointer key)
{
  const MusterString *string = key;
  return (guint)muster_hash_bytes (string->data, string->size, (guint64)(gsize)&hash_key);
}

static gboolean
same_key (gconstpointer a, gconstpointer b)
{
  const MusterString *left = a, *right = b;
  return left->size == right->size &&
         (left->size == 0 || memcmp (left->data, right->data, left->size) == 0);
}

static void
parse_clear (Parse *p)
{
  g_clear_pointer (&p->columns, g_free);
  g_clear_pointer (&p->by_key, g_hash_table_unref);
  g_clear_pointer (&p->cells, g_free);
  muster_text_clear (&p->features);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parse, parse_clear)

/* The columns, from attributes and from inputs, whose positions differ from op to op. */

static const Tensorflow__AttrValue__ListValue *
list_of (MusterKernel *k, const char *name)
{
  static const Tensorflow__AttrValue__ListValue none = TENSORFLOW__ATTR_VALUE__LIST_VALUE__INIT;
  const Tensorflow__AttrValue *attr = muster_kernel_attr (k, name);
  return attr != NULL && attr->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST &&
                 attr->list != NULL
             ? attr->list
             : &none;
}

/* Only the first dimension of a shape may be unknown. */
static gboolean
read_shape (const Tensorflow__TensorShapeProto *shape, guint i, Column *column, GError **error)
{
  gboolean is_known = !shape->unknown_rank && shape->n_dim < MUSTER_MAX_DIMS;
  column->n_dims = is_known ? (int)shape->n_dim : -1;
  for (int d = 0; d < column->n_dims; d++) {
    column->dims[d] = shape->dim[d]->size;
    is_known = is_known && column->dims[d] >= (d == 0 ? -1 : 0);
  }
  if (!is_known) {
    g_autofree char *text = muster_shape_to_string (column->n_dims, column->dims);
    return muster_invalid (
        error, "dense_shapes[%u] has unknown rank or unknown inner dimensions: %s", i, text);
  }
  const int open = column->n_dims > 0 && column->dims[0] < 0 ? 1 : 0;
  column->kind = open ? PADDED : FIXED;
  column->stride = muster_shape_n_elements (column->n_dims - open, column->dims + open);
  return column->stride >= 0 || muster_invalid (error, "dense_shapes[%u] has too many elements", i);
}

static gboolean
check_fallback (const Column *column, guint i, GError **error)
{
  const MusterTensor *fallback = column->fallback;
  g_autofree char *own = muster_shape_text (fallback);
  g_autofree char *shape = muster_shape_to_string (column->n_dims, column->dims);
  const gint64 n = muster_tensor_n_elements (fallback);
  if (column->kind == PADDED)
    return n == 1 || muster_invalid (
                         error,
                         "dense_shape[%u] is a variable length shape: %s, therefore def_value[%u] "
                         "must contain a single element (the padding element).  But its shape "
                         "is: %s",
                         i, shape, i, own);
  return n == 0 || strcmp (own, shape) == 0 ||
         muster_invalid (
             error, "def_value[%u].shape() == %s is not compatible with dense_shapes_[%u] == %s", i,
             own, i, shape);
}

static gboolean
check_dtype (MusterDType dtype, GError **error)
{
  return dtype == MUSTER_STRING || dtype == MUSTER_FLOAT || dtype == MUSTER_INT64 ||
         muster_invalid (error, "Received input dtype: %s", muster_dtype_name (dtype));
}

typedef struct {
  const Tensorflow__AttrValue__ListValue *sparse, *dense, *ragged, *splits, *shapes;
  gsize n_sparse, n_dense, n_ragged;
} Wanted;

static gboolean
check_wanted (const Wanted *w, gint64 n_outputs, GError **error)
{
  if (w->n_sparse != w->sparse->n_type)
    return muster_invalid (error, "len(sparse_keys) != len(sparse_types)");
  if (w->n_dense != w->dense->n_type)
    return muster_invalid (error, "len(dense_keys) != len(dense_types)");
  if (w->n_dense != w->shapes->n_shape)
    return muster_invalid (error, "len(dense_keys) != len(dense_shapes)");
  if (w->n_ragged != w->ragged->n_type)
    return muster_invalid (error, "len(ragged_keys) != len(ragged_value_types)");
  if (w->n_ragged != w->splits->n_type)
    return muster_invalid (error, "len(ragged_keys) != len(ragged_split_types)");
  return (gint64)(3 * w->n_sparse + w->n_dense + 2 * w->n_ragged) == n_outputs ||
         muster_invalid (error, "num_sparse is not the number of sparse_types");
}

/* Sets all of the columns but the keys. The defaults are the inputs from first_default on. */
static gboolean
begin_columns (Parse *p, const Wanted *w, int first_default, GError **error)
{
  const int ns = (int)w->n_sparse, nd = (int)w->n_dense, nr = (int)w->n_ragged;
  if (!check_wanted (w, muster_kernel_n_outputs (p->k), error))
    return FALSE;
  p->n_columns = (guint)(ns + nd + nr);
  p->columns = muster_kernel_alloc0 (p->k, (gint64)p->n_columns + 1, sizeof *p->columns, error);
  if (p->columns == NULL ||
      !muster_budget_take_items (muster_kernel_budget (p->k), p->n_columns, KEY_SIZE, error))
    return FALSE;
  for (int i = 0; i < ns; i++)
    p->columns[i] = (Column){.kind = SPARSE,
                             .dtype = (MusterDType)w->sparse->type[i],
                             .where = i,
                             .values = ns + i,
                             .size = 2 * ns + i};
  for (int i = 0; i < nd; i++) {
    Column *column = &p->columns[ns + i];
    column->dtype = (MusterDType)w->dense->type[i];
    column->values = 3 * ns + i;
    column->fallback = muster_kernel_input (p->k, first_default + i);
    if (!read_shape (w->shapes->shape[i], (guint)i, column, error) ||
        !check_fallback (column, (guint)i, error))
      return FALSE;
  }
  for (int i = 0; i < nr; i++)
    p->columns[ns + nd + i] = (Column){.kind = RAGGED,
                                       .dtype = (MusterDType)w->ragged->type[i],
                                       .splits = (MusterDType)w->splits->type[i],
                                       .values = 3 * ns + nd + i,
                                       .where = 3 * ns + nd + nr + i};
  for (guint i = 0; i < p->n_columns; i++) {
    const Column *column = &p->columns[i];
    if (!check_dtype (column->dtype, error))
      return FALSE;
    if (column->kind == RAGGED && column->splits != MUSTER_INT32 && column->splits != MUSTER_INT64)
      return muster_invalid (error, "Invalid ragged_split_type: %s",
                             muster_dtype_name (column->splits));
  }
  return TRUE;
}

/* Of two columns with the same key, the first one gets the feature. */
static void
index_columns (Parse *p)
{
  p->by_key = g_hash_table_new (hash_key, same_key);
  for (guint i = 0; i < p->n_columns; i++)
    if (!g_hash_table_contains (p->by_key, &p->columns[i].key))
      g_hash_table_insert (p->by_key, &p->columns[i].key, &p->columns[i]);
}

/* Reading examples. */

static gboolean
refuse_example (const Parse *p, gint64 e, const Column *column, GError **error, const char *format,
                ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *key = muster_string_text (column->key);
  if (p->is_single)
    return muster_invalid (error, "Key: %s.  %s", key, what);
  g_autofree char *name = p->names != NULL ? muster_string_text (muster_tensor_string (p->names, e))
                                           : g_strdup ("<unknown>");
  return muster_invalid (error, "Name: %s, Key: %s, Index: %" G_GINT64_FORMAT ".  %s", name, key, e,
                         what);
}

static const char *
kind_of_list (MusterDType dtype)
{
  return dtype == MUSTER_STRING ? "bytes" : muster_dtype_name (dtype);
}

static gboolean
refuse_bytes (const Parse *p, gint64 e, const Column *column, GError **error)
{
  const char *list = kind_of_list (column->dtype);
  if (!p->is_single)
    return refuse_example (p, e, column, error, "Can't parse serialized Example.");
  if (column->dtype == MUSTER_STRING && column->kind != FIXED)
    return refuse_example (
        p, e, column, error,
        "Can't parse serialized Example: Could not get num elements in bytes_list.");
  return refuse_example (p, e, column, error,
                         "Can't parse serialized Example: Parsing %s_list failed.", list);
}

static gboolean
refuse_count (const Parse *p, gint64 e, const Column *column, gint64 n, GError **error)
{
  const char *list = kind_of_list (column->dtype);
  g_autofree char *shape = muster_shape_to_string (column->n_dims, column->dims);
  g_autofree char *key = muster_string_text (column->key);
  if (p->is_single && column->kind == FIXED)
    return refuse_example (p, e, column, error,
                           "Can't parse serialized Example: Some %s_list slice was not parsed.",
                           list);
  if (p->is_single)
    return muster_invalid (error,
                           "Error while parsing feature with key %s: number of elements should be "
                           "divisible by %" G_GINT64_FORMAT ", found %" G_GINT64_FORMAT " instead",
                           key, column->stride, n);
  if (column->kind == FIXED)
    return refuse_example (p, e, column, error,
                           "Number of %s values != expected.  Values size: %" G_GINT64_FORMAT
                           " but output shape: %s",
                           list, n, shape);
  return refuse_example (
      p, e, column, error,
      "Number of %s values is not a multiple of stride length. Saw %" G_GINT64_FORMAT
      " values but output shape is: %s",
      list, n, shape);
}

static gboolean
refuse_dtype (const Parse *p, gint64 e, const Column *column, MusterDType dtype, GError **error)
{
  const char *own = muster_dtype_name (column->dtype), *other = muster_dtype_name (dtype);
  if (column->kind == FIXED || column->kind == PADDED)
    return refuse_example (p, e, column, error,
                           "Data types don't match. Data type: %s but expected type: %s", other,
                           own);
  return refuse_example (p, e, column, error,
                         "Data types don't match. Expected type: %s, Actual type: %s", own, other);
}

/* Features are read from the last to the first, as the last one of a name is used. In a batch, that
 * includes an empty one, unless the column is dense. */
static gboolean
take_feature (const Parse *p, gint64 e, const Column *column, MusterString feature, GError **error)
{
  Cell *cell = &p->cells[e * p->n_columns + (gsize)(column - p->columns)];
  const gboolean is_dense = column->kind == FIXED || column->kind == PADDED;
  MusterDType dtype;
  if (!muster_feature_dtype (feature, &dtype))
    return muster_invalid (error, "Unsupported datatype.");
  if (cell->n >= 0)
    return TRUE;
  if (dtype == MUSTER_INVALID) {
    if (!is_dense && !p->is_single)
      cell->n = 0;
    return TRUE;
  }
  if (dtype != column->dtype)
    return refuse_dtype (p, e, column, dtype, error);
  const gint64 n = muster_feature_count (feature, dtype);
  if (n < 0 || (column->kind == FIXED && dtype == MUSTER_STRING && n > column->stride))
    return refuse_bytes (p, e, column, error);
  if ((column->kind == FIXED && n != column->stride) ||
      (column->kind == PADDED && (column->stride == 0 ? n != 0 : n % column->stride != 0)))
    return refuse_count (p, e, column, n, error);
  *cell = (Cell){.feature = feature, .n = n};
  return TRUE;
}

static gboolean
check_missing (const Parse *p, gint64 e, GError **error)
{
  for (guint c = 0; c < p->n_columns; c++) {
    const Column *column = &p->columns[c];
    if (column->kind != FIXED || p->cells[e * p->n_columns + c].n >= 0 ||
        muster_tensor_n_elements (column->fallback) > 0)
      continue;
    g_autofree char *key = muster_string_text (column->key);
    g_autofree char *name = p->names != NULL
                                ? muster_string_text (muster_tensor_string (p->names, e))
                                : g_strdup ("<unknown>");
    return muster_invalid (error,
                           "%s%s%sFeature: %s (data type: %s) is required but could not be found.",
                           p->is_single ? "" : "Name: ", p->is_single ? "" : name,
                           p->is_single ? "" : ", ", key, muster_dtype_name (column->dtype));
  }
  return TRUE;
}

static gboolean
parse_example (Parse *p, gint64 e, GError **error)
{
  const MusterString bytes = muster_tensor_string (p->serialized, e);
  p->features.size = 0;
  g_autoptr (GError) own = NULL;
  const gboolean is_read = muster_example_read (bytes, &p->features, &own);
  if (muster_error_is (own, MUSTER_ERROR_RESOURCE_EXHAUSTED)) {
    g_propagate_error (error, g_steal_pointer (&own));
    return FALSE;
  }
  if (!is_read) {
    g_autofree char *text =
        muster_string_text ((MusterString){.data = bytes.data, .size = MIN (bytes.size, 256)});
    return muster_invalid (error, "Could not parse example input, value: '%s'", text);
  }
  for (gsize i = muster_example_n_features (&p->features); i-- > 0;) {
    const MusterFeature *feature = muster_example_feature (&p->features, i);
    const Column *column = g_hash_table_lookup (p->by_key, &feature->name);
    if (column != NULL && !take_feature (p, e, column, feature->value, error))
      return FALSE;
  }
  return check_missing (p, e, error);
}

static gboolean
parse_all (Parse *p, GError **error)
{
  p->cells = muster_kernel_alloc (p->k, p->n, p->n_columns * sizeof (Cell), error);
  if (p->cells == NULL)
    return FALSE;
  for (gsize i = 0; i < (gsize)p->n * p->n_columns; i++)
    p->cells[i] = (Cell){.n = -1};
  p->features = (MusterText)MUSTER_TEXT_INIT (p->k);
  for (gint64 e = 0; e < p->n; e++)
    if (!parse_example (p, e, error))
      return FALSE;
  return TRUE;
}

/* Writing tensors. */

static const Cell *
cell_of (const Parse *p, const Column *column, gint64 e)
{
  return &p->cells[e * p->n_columns + (gsize)(column - p->columns)];
}

static gboolean
write_dense (const Parse *p, const Column *column, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS + 1] = {p->n}, longest = 0;
  const int lead = p->is_single ? 0 : 1;
  g_auto (MusterResult) result = {0};
  if (column->n_dims > 0)
    memcpy (dims + lead, column->dims, (gsize)column->n_dims * sizeof *dims);
  for (gint64 e = 0; e < p->n; e++)
    longest = MAX (longest, cell_of (p, column, e)->n);
  if (column->kind == PADDED)
    dims[lead] = column->stride > 0 ? longest / column->stride : 0;
  if (!muster_result_begin (&result, p->k, column->dtype, column->n_dims + lead, dims, error))
    return FALSE;
  MusterElements fallback = muster_elements (column->fallback);
  const gint64 n_each = p->n > 0 ? result.n / p->n : 0;
  for (gint64 i = 0; column->kind == PADDED && i < result.n; i++)
    memcpy (result.data + (gsize)i * result.size, fallback.data, result.size);
  for (gint64 e = 0; e < p->n && n_each > 0; e++) {
    const Cell *cell = cell_of (p, column, e);
    guint8 *to = result.data + (gsize)(e * n_each) * result.size;
    if (cell->n >= 0)
      muster_feature_copy (cell->feature, column->dtype, to);
    else if (column->kind == FIXED)
      memcpy (to, fallback.data, (gsize)n_each * result.size);
  }
  return muster_result_end (&result, p->k, column->values, error);
}

/* Writes the values of all examples in order; *n is their number. */
static gboolean
write_values (const Parse *p, const Column *column, gint64 *n, gint64 *longest, GError **error)
{
  g_auto (MusterResult) result = {0};
  gint64 at = 0;
  *n = *longest = 0;
  for (gint64 e = 0; e < p->n; e++) {
    const gint64 own = MAX (cell_of (p, column, e)->n, 0);
    *n += own;
    *longest = MAX (*longest, own);
  }
  if (!muster_result_begin (&result, p->k, column->dtype, 1, n, error))
    return FALSE;
  for (gint64 e = 0; e < p->n; e++) {
    const Cell *cell = cell_of (p, column, e);
    if (cell->n <= 0)
      continue;
    muster_feature_copy (cell->feature, column->dtype, result.data + (gsize)at * result.size);
    at += cell->n;
  }
  return muster_result_end (&result, p->k, column->values, error);
}

static gboolean
write_sparse (const Parse *p, const Column *column, GError **error)
{
  gint64 n, longest;
  const gint64 rank = p->is_single ? 1 : 2;
  if (!write_values (p, column, &n, &longest, error))
    return FALSE;
  MusterTensor *where = muster_kernel_output (p->k, column->where, 2, (gint64[]){n, rank}, error);
  MusterTensor *size =
      where != NULL ? muster_kernel_output (p->k, column->size, 1, &rank, error) : NULL;
  if (size == NULL)
    return FALSE;
  gint64 *at = muster_tensor_data_mutable (where), *dims = muster_tensor_data_mutable (size);
  for (gint64 e = 0; e < p->n; e++)
    for (gint64 i = 0; i < cell_of (p, column, e)->n; i++) {
      if (!p->is_single)
        *at++ = e;
      *at++ = i;
    }
  dims[0] = p->n;
  dims[rank - 1] = longest;
  return TRUE;
}

static gboolean
write_ragged (const Parse *p, const Column *column, GError **error)
{
  gint64 n, longest, at = 0;
  const gint64 n_splits = p->is_single ? 0 : p->n + 1;
  if (!write_values (p, column, &n, &longest, error))
    return FALSE;
  if (column->splits == MUSTER_INT32 && n > G_MAXINT32)
    return muster_invalid (error, "Too many values for splits of dtype int32");
  MusterTensor *splits = muster_kernel_output (p->k, column->where, 1, &n_splits, error);
  if (splits == NULL)
    return FALSE;
  for (gint64 e = 0; e < n_splits; e++) {
    if (column->splits == MUSTER_INT32)
      ((gint32 *)muster_tensor_data_mutable (splits))[e] = (gint32)at;
    else
      ((gint64 *)muster_tensor_data_mutable (splits))[e] = at;
    at += e < p->n ? MAX (cell_of (p, column, e)->n, 0) : 0;
  }
  return TRUE;
}

static gboolean
run (Parse *p, GError **error)
{
  index_columns (p);
  if (!parse_all (p, error))
    return FALSE;
  for (guint i = 0; i < p->n_columns; i++) {
    const Column *column = &p->columns[i];
    if (!(column->kind == SPARSE   ? write_sparse (p, column, error)
          : column->kind == RAGGED ? write_ragged (p, column, error)
                                   : write_dense (p, column, error)))
      return FALSE;
  }
  return TRUE;
}

/* The ops. */

static gboolean
begin (Parse *p, MusterKernel *k, int max_dims, GError **error)
{
  MusterTensor *serialized = muster_kernel_input (k, 0), *names = muster_kernel_input (k, 1);
  g_autofree char *shape = muster_shape_text (serialized);
  g_autofree char *other = muster_shape_text (names);
  const int n_dims = muster_tensor_n_dims (serialized);
  *p = (Parse){.k = k,
               .is_single = n_dims == 0,
               .serialized = serialized,
               .names = muster_tensor_n_elements (names) > 0 ? names : NULL,
               .n = muster_tensor_n_elements (serialized)};
  if (max_dims < 0 ? n_dims != 1 : n_dims > max_dims)
    return muster_invalid (error, "Expected serialized to be a %s, got shape: %s",
                           max_dims < 0 ? "vector" : "scalar or vector", shape);
  return p->names == NULL || muster_same_shape (names, serialized) ||
         muster_invalid (error,
                         "Expected names have the same shape as serialized: name.shape=%s, "
                         "serialized.shape=%s",
                         other, shape);
}

static Wanted
wanted_of (MusterKernel *k)
{
  Wanted w = {.sparse = list_of (k, "sparse_types"),
              .dense = list_of (k, "Tdense"),
              .ragged = list_of (k, "ragged_value_types"),
              .splits = list_of (k, "ragged_split_types"),
              .shapes = list_of (k, "dense_shapes")};
  w.n_sparse = w.sparse->n_type;
  w.n_dense = w.dense->n_type;
  w.n_ragged = w.ragged->n_type;
  return w;
}

static gboolean
compute_parse_example (MusterKernel *k, GError **error)
{
  g_auto (Parse) p = {0};
  Wanted w = wanted_of (k);
  w.n_sparse = (gsize)muster_kernel_attr_int (k, "Nsparse", 0);
  w.n_dense = (gsize)muster_kernel_attr_int (k, "Ndense", 0);
  if (!begin (&p, k, -1, error) ||
      !begin_columns (&p, &w, 2 + (int)(w.n_sparse + w.n_dense), error))
    return FALSE;
  for (guint i = 0; i < p.n_columns; i++) {
    if (!muster_check_one (k, 2 + (int)i, i < w.n_sparse ? "sparse_keys" : "dense_keys", error))
      return FALSE;
    p.columns[i].key = muster_tensor_string (muster_kernel_input (k, 2 + (int)i), 0);
  }
  return run (&p, error);
}

static gboolean
set_keys (Parse *p, int input, guint first, gsize n, const char *what, const char *count,
          GError **error)
{
  const MusterTensor *keys = muster_kernel_input (p->k, input);
  if (muster_tensor_n_elements (keys) != (gint64)n)
    return muster_invalid (
        error, "Expected len(%s) == %s but got: %" G_GINT64_FORMAT " vs. %" G_GSIZE_FORMAT, what,
        count, muster_tensor_n_elements (keys), n);
  for (gsize i = 0; i < n; i++)
    p->columns[first + i].key = muster_tensor_string (keys, (gint64)i);
  return TRUE;
}

static gboolean
compute_parse_example_v2 (MusterKernel *k, GError **error)
{
  g_auto (Parse) p = {0};
  Wanted w = wanted_of (k);
  w.n_sparse = (gsize)muster_kernel_attr_int (k, "num_sparse", 0);
  const guint ns = (guint)w.n_sparse, nd = (guint)w.n_dense;
  return begin (&p, k, 1, error) && begin_columns (&p, &w, 5, error) &&
         set_keys (&p, 3, ns, nd, "dense_keys", "len(dense_types)", error) &&
         set_keys (&p, 2, 0, ns, "sparse_keys", "num_sparse", error) &&
         set_keys (&p, 4, ns + nd, w.n_ragged, "ragged_keys", "len(ragged_value_types)", error) &&
         run (&p, error);
}

static gboolean
compute_parse_single_example (MusterKernel *k, GError **error)
{
  MusterTensor *serialized = muster_kernel_input (k, 0);
  const Tensorflow__AttrValue__ListValue *sparse = list_of (k, "sparse_keys");
  const Tensorflow__AttrValue__ListValue *dense = list_of (k, "dense_keys");
  g_auto (Parse) p = {.k = k, .is_single = TRUE, .serialized = serialized, .n = 1};
  Wanted w = wanted_of (k);
  if (muster_tensor_n_dims (serialized) != 0) {
    g_autofree char *shape = muster_shape_text (serialized);
    return muster_invalid (error, "Expected serialized to be a scalar, got shape: %s", shape);
  }
  w.n_sparse = sparse->n_s;
  w.n_dense = dense->n_s;
  if (!begin_columns (&p, &w, 1, error))
    return FALSE;
  for (guint i = 0; i < p.n_columns; i++) {
    const ProtobufCBinaryData *key = i < sparse->n_s ? &sparse->s[i] : &dense->s[i - sparse->n_s];
    p.columns[i].key = (MusterString){.data = (const char *)key->data, .size = key->len};
  }
  return run (&p, error);
}

#define SPARSE_OUT(n)                                                                              \
  "sparse_indices:" n "*int64, sparse_values:*sparse_types, sparse_shapes:" n                      \
  "*int64, dense_values:*Tdense"
#define COLUMNS "sparse_types>=0 Tdense>=0 dense_shapes"

const MusterOp muster_example_ops[] = {
    {"ParseExample",
     "serialized:string, names:string, sparse_keys:Nsparse*string, dense_keys:Ndense*string, "
     "dense_defaults:*Tdense -> " SPARSE_OUT ("Nsparse"),
     "Nsparse>=0 Ndense>=0 " COLUMNS, compute_parse_example, 0},
    {"ParseExampleV2",
     "serialized:string, names:string, sparse_keys:string, dense_keys:string, ragged_keys:string, "
     "dense_defaults:*Tdense -> " SPARSE_OUT (
         "num_sparse") ", ragged_values:*ragged_value_types, ragged_row_splits:*ragged_split_types",
     "num_sparse>=0 ragged_value_types>=0 ragged_split_types>=0 " COLUMNS, compute_parse_example_v2,
     0},
    {"ParseSingleExample",
     "serialized:string, dense_defaults:*Tdense -> " SPARSE_OUT ("num_sparse"),
     "num_sparse>=0 sparse_keys dense_keys " COLUMNS, compute_parse_single_example, 0},
    {NULL, NULL, NULL, NULL, 0},
};
