// SPDX-License-Identifier: Apache-2.0
/* Crossed columns: for each row, all combinations of one feature from each column, as joined
 * strings or as hashes. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/sparse/sparse_op_tables.h"
#include "engine/resources/hashes.h"

#include <string.h>

typedef struct {
  MusterTensor *values;  /* (not owned) int64 or string */
  MusterTensor *indices; /* (not owned) (nullable) of a sparse one; else values is a matrix */
  gint64 n;              /* values of a sparse one, columns of a dense one */
  gint64 next, last;   /* of a sparse one: the first value of the next row, and the row before it */
  gint64 first, count; /* the features of the current row */
} Column;

typedef enum {
  JOINED,      /* strings */
  HASHED,      /* SparseCross with hashed_output: from a seed */
  KEYED,       /* SparseCrossHashed */
  KEYED_STRONG /* the same with strong_hash */
} Kind;

typedef struct {
  Kind kind;
  MusterString separator;
  guint64 key[2]; /* of KEYED_STRONG; key[0] is the seed of HASHED */
  guint64 n_buckets;
  int n_sparse, n_columns;
  Column *columns; /* (owned) */
  gint64 n_rows, row;
  gint64 n_crosses, most; /* in all rows, and the maximum in one */
} Cross;

static void
cross_clear (Cross *self)
{
  g_clear_pointer (&self->columns, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Cross, cross_clear)

static gboolean
check_sparse (MusterKernel *k, int i, int n, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, i), *values = muster_kernel_input (k, n + i);
  MusterTensor *shape = muster_kernel_input (k, 2 * n + i);
  g_autofree char *indices_text = muster_shape_text (indices);
  g_autofree char *values_text = muster_shape_text (values);
  g_autofree char *shape_text = muster_shape_text (shape);

  if (muster_tensor_n_dims (indices) != 2)
    return muster_invalid (error,
                           "Input indices should be a matrix but received shape %s at position %d",
                           indices_text, i);
  if (muster_tensor_dims (indices)[1] != 2)
    return muster_invalid (error,
                           "Expected D2 of index to be 2 got %" G_GINT64_FORMAT " at position %d",
                           muster_tensor_dims (indices)[1], i);
  if (muster_tensor_n_dims (values) != 1)
    return muster_invalid (error,
                           "Input values should be a vector but received shape %s at position %d",
                           values_text, i);
  if (muster_tensor_dims (indices)[0] != muster_tensor_dims (values)[0])
    return muster_invalid (error,
                           "Expected size of values to be %" G_GINT64_FORMAT
                           " got %" G_GINT64_FORMAT " at position %d",
                           muster_tensor_dims (indices)[0], muster_tensor_dims (values)[0], i);
  if (muster_tensor_n_dims (shape) != 1)
    return muster_invalid (error,
                           "Input shapes should be a vector but received shape %s at position %d",
                           shape_text, i);
  if (muster_tensor_dims (shape)[0] != 2)
    return muster_invalid (error, "shape should imply a 2D tensor, but got %s at position %d",
                           shape_text, i);
  return TRUE;
}

static gboolean
check_rows (gint64 wanted, gint64 got, const char *at, int i, GError **error)
{
  return wanted == got || muster_invalid (error,
                                          "Expected batch size %" G_GINT64_FORMAT
                                          " got %" G_GINT64_FORMAT " at %s %d",
                                          wanted, got, at, i);
}

/* Reads the inputs before the last n_others: N indices, N values, N shapes and the dense
 * columns. */
static gboolean
read_columns (MusterKernel *k, Cross *c, int n_others, GError **error)
{
  const int n = (int)muster_kernel_attr_int (k, "N", 0);
  c->n_sparse = n;
  c->n_columns = muster_kernel_n_inputs (k) - n_others - 2 * n;
  c->columns = muster_kernel_alloc0 (k, (gint64)c->n_columns + 1, sizeof *c->columns, error);
  if (c->columns == NULL)
    return FALSE;
  for (int i = 0; i < n; i++) {
    if (!check_sparse (k, i, n, error))
      return FALSE;
    c->columns[i].indices = muster_kernel_input (k, i);
    c->columns[i].values = muster_kernel_input (k, n + i);
    c->columns[i].n = muster_tensor_dims (c->columns[i].values)[0];
  }
  for (int i = n; i < c->n_columns; i++) {
    MusterTensor *x = c->columns[i].values = muster_kernel_input (k, 2 * n + i);
    if (muster_tensor_n_dims (x) != 2) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error,
                             "Dense inputs should be a matrix but received shape %s at position %d",
                             shape, i - n);
    }
    c->columns[i].n = muster_tensor_dims (x)[1];
  }
  if (c->n_columns > 0)
    c->n_rows = n > 0 ? muster_int_at (muster_kernel_input (k, 2 * n), 0)
                      : muster_tensor_dims (c->columns[0].values)[0];
  if (c->n_rows < 0)
    return muster_invalid (error, "The batch size is negative: %" G_GINT64_FORMAT, c->n_rows);
  for (int i = 0; i < c->n_columns; i++)
    if (!(i < n ? check_rows (c->n_rows, muster_int_at (muster_kernel_input (k, 2 * n + i), 0),
                              "position", i, error)
                : check_rows (c->n_rows, muster_tensor_dims (c->columns[i].values)[0],
                              "dense tensor", i - n, error)))
      return FALSE;
  return TRUE;
}

static gint64
row_of (const Column *column, gint64 i)
{
  return muster_int_at (column->indices, 2 * i);
}

/* Skips the rows before `row`. Returns FALSE at the end of the column; as in TensorFlow, a row out
 * of order is the end. */
static gboolean
column_seek (Column *self, gint64 row)
{
  while (self->next < self->n && row_of (self, self->next) < row &&
         row_of (self, self->next) >= self->last)
    self->last = row_of (self, self->next++);
  return self->next < self->n && row_of (self, self->next) >= self->last;
}

/* Advances to the next row in which every column has a feature. */
static gboolean
next_row (Cross *c)
{
  gint64 row = c->row + 1, furthest;
  for (;; row = furthest) {
    furthest = row;
    for (int i = 0; i < c->n_sparse; i++) {
      if (!column_seek (&c->columns[i], row))
        return FALSE;
      furthest = MAX (furthest, row_of (&c->columns[i], c->columns[i].next));
    }
    if (furthest >= c->n_rows)
      return FALSE;
    if (furthest == row)
      break;
  }
  c->row = row;
  for (int i = 0; i < c->n_columns; i++) {
    Column *column = &c->columns[i];
    if (column->indices == NULL) {
      column->first = row * column->n;
      column->count = column->n;
      continue;
    }
    column->first = column->next;
    while (column->next < column->n && row_of (column, column->next) == row)
      column->next++;
    column->count = column->next - column->first;
    column->last = row;
  }
  return TRUE;
}

static void
rewind_rows (Cross *c)
{
  c->row = -1;
  for (int i = 0; i < c->n_columns; i++)
    c->columns[i].next = c->columns[i].last = 0;
}

static gboolean
count_crosses (Cross *c, GError **error)
{
  gboolean has_none = c->n_columns == 0;
  for (int i = c->n_sparse; i < c->n_columns; i++)
    has_none = has_none || c->columns[i].n == 0;
  rewind_rows (c);
  while (!has_none && next_row (c)) {
    gint64 n = 1;
    gboolean is_too_much = FALSE;
    for (int i = 0; i < c->n_columns; i++)
      is_too_much = is_too_much || __builtin_mul_overflow (n, c->columns[i].count, &n);
    if (is_too_much || __builtin_add_overflow (c->n_crosses, n, &c->n_crosses))
      return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                          "Row %" G_GINT64_FORMAT " has more crosses than can be counted", c->row);
    c->most = MAX (c->most, n);
  }
  return TRUE;
}

static void
append_feature (const Column *column, gint64 i, MusterText *text)
{
  if (muster_tensor_dtype (column->values) == MUSTER_STRING) {
    muster_text_append_string (text, muster_tensor_string (column->values, i));
  } else {
    char number[24];
    g_snprintf (number, sizeof number, "%" G_GINT64_FORMAT, muster_int_at (column->values, i));
    muster_text_put (text, number);
  }
}

/* Where TensorFlow hashes numbers, it hashes only the first four of their eight bytes: it passes
 * the size of the dtype enum instead of the number's. */
static guint64
feature_hash (const Cross *c, const Column *column, gint64 i)
{
  guint8 bytes[8];
  if (muster_tensor_dtype (column->values) == MUSTER_STRING) {
    MusterString s = muster_tensor_string (column->values, i);
    return c->kind == KEYED_STRONG ? muster_sip_hash (c->key, s.data, s.size)
                                   : muster_farm_hash (s.data, s.size);
  }
  const guint64 number = (guint64)muster_int_at (column->values, i);
  const guint64 little = GUINT64_TO_LE (number);
  memcpy (bytes, &little, sizeof bytes);
  if (c->kind == KEYED_STRONG)
    return muster_sip_hash (c->key, bytes, 4);
  return c->kind == KEYED && column->indices != NULL ? muster_farm_hash (bytes, 4) : number;
}

/* TensorFlow's FingerprintCat64. */
static guint64
join_hashes (guint64 a, guint64 b)
{
  const guint64 m = G_GUINT64_CONSTANT (0xc6a4a7935bd1e995);
  const guint64 mixed = b * m;
  guint64 hash = (a ^ m ^ (mixed ^ mixed >> 47) * m) * m;
  hash = (hash ^ hash >> 47) * m;
  return hash ^ hash >> 47;
}

static gint64
hash_cross (const Cross *c, const gint64 *at)
{
  guint64 hash = c->kind == HASHED ? c->key[0] : 0;
  for (int i = 0; i < c->n_columns; i++) {
    const guint64 feature = feature_hash (c, &c->columns[i], c->columns[i].first + at[i]);
    hash = i == 0 && c->kind != HASHED ? feature : join_hashes (hash, feature);
  }
  return (gint64)(hash % c->n_buckets);
}

static void
join_cross (const Cross *c, const gint64 *at, MusterText *text)
{
  for (int i = 0; i < c->n_columns; i++) {
    if (i > 0)
      muster_text_append_string (text, c->separator);
    append_feature (&c->columns[i], c->columns[i].first + at[i], text);
  }
}

/* The last column varies fastest. */
static gboolean
next_cross (const Cross *c, gint64 *at)
{
  int i = c->n_columns - 1;
  while (i >= 0 && ++at[i] == c->columns[i].count)
    at[i--] = 0;
  return i >= 0;
}

static gboolean
set_crosses (MusterKernel *k, Cross *c, GError **error)
{
  g_autofree gint64 *at = muster_kernel_alloc0 (k, (gint64)c->n_columns + 1, sizeof *at, error);
  g_auto (MusterStrings) strings = {0};
  MusterTensor *indices, *hashes = NULL, *shape;
  gint64 n = 0;

  indices = at == NULL ? NULL : muster_kernel_output (k, 0, 2, (gint64[]){c->n_crosses, 2}, error);
  shape = indices == NULL ? NULL : muster_kernel_output (k, 2, 1, (gint64[]){2}, error);
  if (shape == NULL ||
      !(c->kind == JOINED
            ? muster_strings_begin (&strings, k, 1, &c->n_crosses, error)
            : (hashes = muster_kernel_output (k, 1, 1, &c->n_crosses, error)) != NULL))
    return FALSE;
  memcpy (muster_tensor_data_mutable (shape), (gint64[]){c->n_rows, c->most}, 2 * sizeof (gint64));
  rewind_rows (c);
  while (n < c->n_crosses && !strings.text.failed && next_row (c)) {
    gint64 place = 0;
    do {
      gint64 *index = (gint64 *)muster_tensor_data_mutable (indices) + 2 * n;
      index[0] = c->row;
      index[1] = place++;
      if (c->kind == JOINED) {
        join_cross (c, at, &strings.text);
        muster_strings_close (&strings, n);
      } else {
        ((gint64 *)muster_tensor_data_mutable (hashes))[n] = hash_cross (c, at);
      }
      n++;
    } while (next_cross (c, at) && !strings.text.failed);
  }
  return c->kind != JOINED || muster_strings_end (&strings, k, 1, error);
}

/* 0 stands for the largest number of buckets. */
static guint64
buckets_of (gint64 n)
{
  return n > 0 ? (guint64)n : (guint64)G_MAXINT64;
}

static gboolean
compute_cross (MusterKernel *k, GError **error)
{
  g_auto (Cross) c = {.separator = {"_X_", 3}};
  c.kind = muster_kernel_output_dtype (k, 1) == MUSTER_STRING ? JOINED : HASHED;
  c.key[0] = (guint64)muster_kernel_attr_int (k, "hash_key", 0);
  c.n_buckets = buckets_of (muster_kernel_attr_int (k, "num_buckets", 0));
  if (!read_columns (k, &c, 0, error))
    return FALSE;
  if (muster_kernel_attr_dtype (k, "internal_type") == MUSTER_STRING)
    for (int i = 0; i < c.n_columns; i++)
      if (muster_tensor_dtype (c.columns[i].values) != MUSTER_STRING)
        return muster_invalid (error, "%s should be of internal type string but received int64",
                               i < c.n_sparse ? "Input values" : "Dense inputs");
  return count_crosses (&c, error) && set_crosses (k, &c, error);
}

static gboolean
compute_cross_joined (MusterKernel *k, GError **error)
{
  const int n = muster_kernel_n_inputs (k);
  g_auto (Cross) c = {.kind = JOINED};
  if (!read_columns (k, &c, 1, error))
    return FALSE;
  if (muster_tensor_n_dims (muster_kernel_input (k, n - 1)) != 0)
    return muster_invalid (error, "Input separator should be a scalar.");
  c.separator = muster_tensor_string (muster_kernel_input (k, n - 1), 0);
  return count_crosses (&c, error) && set_crosses (k, &c, error);
}

/* TensorFlow takes one of any rank. */
static gboolean
check_single (MusterKernel *k, int i, const char *name, GError **error)
{
  const gint64 n = muster_tensor_n_elements (muster_kernel_input (k, i));
  return n == 1 || muster_invalid (error,
                                   "Input \"%s\" must have length 1 but has length "
                                   "%" G_GINT64_FORMAT,
                                   name, n);
}

static gboolean
compute_cross_hashed (MusterKernel *k, GError **error)
{
  const int n = muster_kernel_n_inputs (k);
  MusterTensor *salt = muster_kernel_input (k, n - 1);
  g_auto (Cross) c = {0};
  if (!read_columns (k, &c, 3, error) || !check_single (k, n - 3, "num_buckets", error) ||
      !check_single (k, n - 2, "strong_hash", error))
    return FALSE;
  if (muster_tensor_n_elements (salt) != 2)
    return muster_invalid (error,
                           "Input \"salt\" must have length 2 but has length %" G_GINT64_FORMAT,
                           muster_tensor_n_elements (salt));
  c.kind = *(const guint8 *)muster_tensor_data (muster_kernel_input (k, n - 2)) != 0 ? KEYED_STRONG
                                                                                     : KEYED;
  c.n_buckets = buckets_of (muster_kernel_input_int (k, n - 3));
  c.key[0] = (guint64)muster_int_at (salt, 0);
  c.key[1] = (guint64)muster_int_at (salt, 1);
  return count_crosses (&c, error) && set_crosses (k, &c, error);
}

#define COLUMNS "indices:N*int64, values:*sparse_types, shapes:N*int64, dense_inputs:*dense_types"
#define COLUMN_TYPES                                                                               \
  "sparse_types:int64|string dense_types:int64|string N>=0 sparse_types>=0 dense_types>=0"

const MusterOp muster_sparse_cross_ops[] = {
    {"SparseCross", COLUMNS " -> output_indices:int64, output_values:out_type, output_shape:int64",
     COLUMN_TYPES " out_type:int64|string num_buckets hash_key internal_type", compute_cross, 0},
    {"SparseCrossV2",
     COLUMNS ", sep:string -> output_indices:int64, output_values:string, output_shape:int64",
     COLUMN_TYPES, compute_cross_joined, 0},
    {"SparseCrossHashed",
     COLUMNS ", num_buckets:int64, strong_hash:bool, salt:int64 -> output_indices:int64, "
             "output_values:int64, output_shape:int64",
     COLUMN_TYPES, compute_cross_hashed, 0},
    {NULL, NULL, NULL, NULL, 0},
};
