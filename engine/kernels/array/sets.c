// SPDX-License-Identifier: Apache-2.0
/* Set operations: each row of the last dimension is a set of values; the other dimensions select
 * the sets to combine. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/strings.h"

#include <string.h>

typedef enum { A_MINUS_B, B_MINUS_A, INTERSECTION, UNION } Operation;

/* The values of one group, sorted and without duplicates. */
typedef struct {
  MusterDType dtype;
  const guint8 *data;
  gsize size;
} Values;

static gint
compare_values (gconstpointer pa, gconstpointer pb, gpointer data)
{
  const Values *v = data;
  const guint8 *a = *(const guint8 *const *)pa, *b = *(const guint8 *const *)pb;
  if (v->dtype == MUSTER_STRING) {
    MusterString x = *(const MusterString *)a, y = *(const MusterString *)b;
    gsize n = MIN (x.size, y.size);
    int order = n == 0 ? 0 : memcmp (x.data, y.data, n);
    return order != 0 ? order : (x.size > y.size) - (x.size < y.size);
  }
  gint64 x = 0, y = 0;
  if (v->dtype == MUSTER_INT32) {
    x = *(const gint32 *)a;
    y = *(const gint32 *)b;
  } else {
    muster_widen (v->dtype, a, 1, &x);
    muster_widen (v->dtype, b, 1, &y);
  }
  return (x > y) - (x < y);
}

static void
sort_unique (const Values *v, GPtrArray *set)
{
  guint kept = 0;
  g_ptr_array_sort_with_data (set, compare_values, (gpointer)v);
  for (guint i = 0; i < set->len; i++)
    if (i == 0 || compare_values (&set->pdata[i], &set->pdata[kept - 1], (gpointer)v) != 0)
      set->pdata[kept++] = set->pdata[i];
  g_ptr_array_set_size (set, (gint)kept);
}

/* One input: dense (values in the last dimension) or sparse (indices, values, shape). */
typedef struct {
  Values values;
  MusterElements elements;
  MusterTensor *indices; /* (not owned) (nullable) */
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 n, groups, each;
  gint64 at; /* the next sparse value */
} Input;

static gboolean
input_finish (Input *self, MusterTensor *values, GError **error)
{
  if (self->n_dims < 2)
    return muster_invalid (error, "Input rank %d is too small: the minimum is 2", self->n_dims);
  self->elements = muster_elements (values);
  self->values = (Values){muster_tensor_dtype (values), self->elements.data, self->elements.size};
  self->n = muster_tensor_n_elements (values);
  self->groups = muster_shape_n_elements (self->n_dims - 1, self->dims);
  self->each = self->dims[self->n_dims - 1];
  return muster_shape_n_elements (self->n_dims, self->dims) >= 0 ||
         muster_invalid (error, "The shape of a set has too many elements");
}

static gboolean
read_dense (MusterKernel *k, int i, Input *self, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  self->n_dims = muster_tensor_n_dims (x);
  memcpy (self->dims, muster_tensor_dims (x), (gsize)self->n_dims * sizeof *self->dims);
  return input_finish (self, x, error);
}

/* The group of a row of indices; -1 outside the shape. */
static gint64
group_of (const Input *self, gint64 row)
{
  gint64 group = 0;
  for (int d = 0; d < self->n_dims; d++) {
    gint64 index = muster_int_at (self->indices, row * self->n_dims + d);
    if (index < 0 || index >= self->dims[d])
      return -1;
    if (d < self->n_dims - 1)
      group = group * self->dims[d] + index;
  }
  return group;
}

/* TRUE if a row of the last one's group isn't behind it. */
static gboolean
is_repeated (const Input *self, gint64 row)
{
  const gint64 at = row * self->n_dims + self->n_dims - 1;
  return group_of (self, row - 1) == group_of (self, row) &&
         muster_int_at (self->indices, at - self->n_dims) >= muster_int_at (self->indices, at);
}

static gboolean
read_sparse (MusterKernel *k, int i, gboolean validates, Input *self, GError **error)
{
  MusterTensor *values = muster_kernel_input (k, i + 1);
  gint64 last = 0;
  self->indices = muster_kernel_input (k, i);
  self->n_dims = muster_kernel_input_ints (k, i + 2, self->dims, MUSTER_MAX_DIMS, error);
  if (self->n_dims < 0)
    return FALSE;
  if (muster_tensor_n_dims (self->indices) != 2 || muster_tensor_n_dims (values) != 1 ||
      muster_tensor_dims (self->indices)[0] != muster_tensor_dims (values)[0] ||
      muster_tensor_dims (self->indices)[1] != self->n_dims)
    return muster_invalid (error, "The indices, values and shape of a sparse set don't fit");
  if (!input_finish (self, values, error))
    return FALSE;
  for (gint64 row = 0; row < self->n; row++) {
    gint64 group = group_of (self, row);
    if (group < 0)
      return muster_invalid (error, "Sparse index %" G_GINT64_FORMAT " is out of bounds", row);
    if (group < last)
      return muster_invalid (error, "%s: sparse index %" G_GINT64_FORMAT,
                             validates ? "Indices are out of order" : "Sets need sorted indices",
                             row);
    last = group;
    if (validates && row > 0 && is_repeated (self, row))
      return muster_invalid (error, "indices[%" G_GINT64_FORMAT "] is repeated or out of order",
                             row);
  }
  return TRUE;
}

/* Returns the values of a group; call it for the groups in order. */
static GPtrArray *
take_group (Input *self, gint64 group)
{
  GPtrArray *set = g_ptr_array_new ();
  if (self->indices == NULL)
    for (gint64 i = 0; i < self->each; i++)
      g_ptr_array_add (
          set, (gpointer)(self->values.data + (gsize)(group * self->each + i) * self->values.size));
  else
    for (; self->at < self->n && group_of (self, self->at) == group; self->at++)
      g_ptr_array_add (set, (gpointer)(self->values.data + (gsize)self->at * self->values.size));
  sort_unique (&self->values, set);
  return set;
}

/* Merges both sorted sets. */
static GPtrArray *
combine (const Values *v, const GPtrArray *a, const GPtrArray *b, Operation operation)
{
  GPtrArray *out = g_ptr_array_new ();
  for (guint i = 0, j = 0; i < a->len || j < b->len;) {
    int order = i == a->len   ? 1
                : j == b->len ? -1
                              : compare_values (&a->pdata[i], &b->pdata[j], (gpointer)v);
    gboolean takes = order < 0   ? operation == A_MINUS_B || operation == UNION
                     : order > 0 ? operation == B_MINUS_A || operation == UNION
                                 : operation == INTERSECTION || operation == UNION;
    if (takes)
      g_ptr_array_add (out, order <= 0 ? a->pdata[i] : b->pdata[j]);
    i += order <= 0;
    j += order >= 0;
  }
  return out;
}

/* Writes the groups' sets as one sparse tensor. */
static gboolean
set_sparse (MusterKernel *k, const Input *a, GPtrArray *const *sets, GError **error)
{
  gint64 total = 0, most = 0, at = 0, rank = a->n_dims;
  MusterTensor *indices, *shape;
  gint64 *to;
  g_auto (MusterResult) values = {0};
  for (gint64 g = 0; g < a->groups; g++) {
    total += sets[g]->len;
    most = MAX (most, sets[g]->len);
  }
  indices = muster_kernel_output (k, 0, 2, (gint64[]){total, rank}, error);
  shape = indices == NULL ? NULL : muster_kernel_output (k, 2, 1, &rank, error);
  if (shape == NULL || !muster_result_begin (&values, k, a->values.dtype, 1, &total, error))
    return FALSE;
  to = muster_tensor_data_mutable (indices);
  for (gint64 g = 0; g < a->groups; g++)
    for (guint i = 0; i < sets[g]->len; i++, at++) {
      gint64 rest = g;
      for (int d = a->n_dims - 2; d >= 0; d--) {
        to[at * rank + d] = rest % a->dims[d];
        rest /= a->dims[d];
      }
      to[at * rank + rank - 1] = i;
      memcpy (values.data + (gsize)at * values.size, sets[g]->pdata[i], values.size);
    }
  memcpy (muster_tensor_data_mutable (shape), a->dims, (gsize)rank * sizeof *a->dims);
  ((gint64 *)muster_tensor_data_mutable (shape))[rank - 1] = most;
  return muster_result_end (&values, k, 1, error);
}

static gboolean
read_operation (MusterKernel *k, Operation *operation, GError **error)
{
  static const char *const names[] = {"a-b", "b-a", "intersection", "union"};
  g_autofree char *text = muster_kernel_attr_text (k, "set_operation");

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_ascii_strcasecmp (text, names[i]) == 0) {
      *operation = (Operation)i;
      return TRUE;
    }
  return muster_invalid (error, "Invalid set_operation %s.", text);
}

/* The memory of an empty set in GLib, and of each value. */
#define SET_OVERHEAD 64
#define SET_VALUE    (4 * sizeof (gpointer))

static gboolean
operate (MusterKernel *k, Input *a, Input *b, GError **error)
{
  Operation operation = UNION;
  g_autofree GPtrArray **sets = NULL;
  gboolean done;

  if (!read_operation (k, &operation, error))
    return FALSE;
  if (a->n_dims != b->n_dims ||
      memcmp (a->dims, b->dims, (gsize)(a->n_dims - 1) * sizeof *a->dims) != 0)
    return muster_invalid (error, "Mismatched group shapes of the two sets");
  sets = muster_kernel_alloc0 (k, a->groups, sizeof *sets, error);
  if (sets == NULL ||
      !muster_budget_take_items (muster_kernel_budget (k), (gsize)a->groups, SET_OVERHEAD, error) ||
      !muster_budget_take_items (muster_kernel_budget (k), (gsize)(a->n + b->n), SET_VALUE, error))
    return FALSE;
  for (gint64 g = 0; g < a->groups; g++) {
    g_autoptr (GPtrArray) x = take_group (a, g), y = take_group (b, g);
    sets[g] = combine (&a->values, x, y, operation);
  }
  done = set_sparse (k, a, sets, error);
  for (gint64 g = 0; g < a->groups; g++)
    g_ptr_array_unref (sets[g]);
  return done;
}

static gboolean
compute_dense_dense (MusterKernel *k, GError **error)
{
  Input a = {0}, b = {0};
  return read_dense (k, 0, &a, error) && read_dense (k, 1, &b, error) && operate (k, &a, &b, error);
}

static gboolean
compute_dense_sparse (MusterKernel *k, GError **error)
{
  gboolean validates = muster_kernel_attr_bool (k, "validate_indices", TRUE);
  Input a = {0}, b = {0};
  return read_dense (k, 0, &a, error) && read_sparse (k, 1, validates, &b, error) &&
         operate (k, &a, &b, error);
}

static gboolean
compute_sparse_sparse (MusterKernel *k, GError **error)
{
  gboolean validates = muster_kernel_attr_bool (k, "validate_indices", TRUE);
  Input a = {0}, b = {0};
  return read_sparse (k, 0, validates, &a, error) && read_sparse (k, 3, validates, &b, error) &&
         operate (k, &a, &b, error);
}

static gboolean
compute_size (MusterKernel *k, GError **error)
{
  gboolean validates = muster_kernel_attr_bool (k, "validate_indices", TRUE);
  Input a = {0};
  MusterTensor *out;
  if (!read_sparse (k, 0, validates, &a, error))
    return FALSE;
  out = muster_kernel_output (k, 0, a.n_dims - 1, a.dims, error);
  if (out == NULL)
    return FALSE;
  for (gint64 g = 0; g < a.groups; g++) {
    g_autoptr (GPtrArray) set = take_group (&a, g);
    ((gint32 *)muster_tensor_data_mutable (out))[g] = (gint32)set->len;
  }
  return TRUE;
}

#define T_SET     "T:int8|int16|int32|int64|uint8|uint16|string"
#define SPARSE(n) "set" n "_indices:int64, set" n "_values:T, set" n "_shape:int64"
#define OPERATION " set_operation"
#define RESULT    " -> result_indices:int64, result_values:T, result_shape:int64"

const MusterOp muster_sets_ops[] = {
    {"DenseToDenseSetOperation", "set1:T, set2:T" RESULT, T_SET OPERATION, compute_dense_dense, 0},
    {"DenseToSparseSetOperation", "set1:T, " SPARSE ("2") RESULT, T_SET OPERATION,
     compute_dense_sparse, 0},
    {"SparseToSparseSetOperation", SPARSE ("1") ", " SPARSE ("2") RESULT, T_SET OPERATION,
     compute_sparse_sparse, 0},
    {"SetSize", "set_indices:int64, set_values:T, set_shape:int64 -> size:int32", T_SET,
     compute_size, 0},
    {NULL, NULL, NULL, NULL, 0},
};
