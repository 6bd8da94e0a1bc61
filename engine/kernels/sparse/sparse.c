// SPDX-License-Identifier: Apache-2.0
/* Sparse tensors. Each is three tensors: the indices of the elements, their values, and the dense
 * shape. */
#include "engine/kernels/sparse/sparse.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <string.h>

/* Reads the dense shape in input i. Returns the number of dimensions; -1 with an error. */
static int
read_shape (MusterKernel *k, int i, gint64 *dims, GError **error)
{
  int n;
  if (muster_tensor_n_dims (muster_kernel_input (k, i)) != 1) {
    g_autofree char *shape = muster_shape_text (muster_kernel_input (k, i));
    muster_invalid (error, "Input shape should be a vector, got shape: %s", shape);
    return -1;
  }
  n = muster_kernel_input_ints (k, i, dims, MUSTER_MAX_DIMS, error);
  for (int d = 0; d < n; d++)
    if (dims[d] < 0) {
      muster_invalid (error, "Dimension %d of a dense shape is negative: %" G_GINT64_FORMAT, d,
                      dims[d]);
      return -1;
    }
  return n;
}

/* Checks that indices is a matrix with a row of n_dims for each value, and values (nullable) a
 * vector. */
static gboolean
check_sparse (MusterTensor *indices, MusterTensor *values, int n_dims, GError **error)
{
  if (muster_tensor_n_dims (indices) != 2) {
    g_autofree char *shape = muster_shape_text (indices);
    return muster_invalid (error, "Input indices should be a matrix but received shape %s", shape);
  }
  if (values != NULL && muster_tensor_n_dims (values) != 1) {
    g_autofree char *shape = muster_shape_text (values);
    return muster_invalid (error, "Input values should be a vector but received shape %s", shape);
  }
  if (values != NULL && muster_tensor_dims (indices)[0] != muster_tensor_dims (values)[0])
    return muster_invalid (error,
                           "Number of values must match first dimension of indices. Got "
                           "%" G_GINT64_FORMAT " values, %" G_GINT64_FORMAT " indices",
                           muster_tensor_dims (values)[0], muster_tensor_dims (indices)[0]);
  if (muster_tensor_dims (indices)[1] != n_dims)
    return muster_invalid (error,
                           "Number of dimensions must match second dimension of indices. Got %d "
                           "dimensions, indices shape of width %" G_GINT64_FORMAT,
                           n_dims, muster_tensor_dims (indices)[1]);
  return TRUE;
}

gboolean
muster_sparse_read (MusterKernel *k, int indices, int values, int shape, MusterSparse *self,
                    GError **error)
{
  self->indices = muster_kernel_input (k, indices);
  self->values = muster_kernel_input (k, values);
  self->n_dims = read_shape (k, shape, self->dims, error);
  if (self->n_dims < 0 || !check_sparse (self->indices, self->values, self->n_dims, error))
    return FALSE;
  self->n = muster_tensor_dims (self->values)[0];
  return TRUE;
}

gboolean
muster_sparse_check_size (const MusterSparse *self, GError **error)
{
  if (muster_shape_n_elements (self->n_dims, self->dims) >= 0)
    return TRUE;
  g_autofree char *shape = muster_shape_to_string (self->n_dims, self->dims);
  return muster_invalid (error, "The dense shape %s has too many elements", shape);
}

gboolean
muster_sparse_check_inside (const MusterSparse *self, GError **error)
{
  const gint64 *index = muster_tensor_data (self->indices);
  for (gint64 i = 0; i < self->n; i++, index += self->n_dims)
    for (int d = 0; d < self->n_dims; d++)
      if (index[d] < 0 || index[d] >= self->dims[d])
        return muster_sparse_refuse_index (self->indices, i, self->n_dims, self->dims, error);
  return TRUE;
}

gboolean
muster_sparse_check_sorted (const MusterSparse *self, GError **error)
{
  const gint64 *index = muster_tensor_data (self->indices);
  if (!muster_sparse_check_inside (self, error))
    return FALSE;
  for (gint64 i = 0; i < self->n; i++, index += self->n_dims) {
    const int order =
        i == 0 ? -1 : muster_sparse_compare (index - self->n_dims, index, self->n_dims);
    if (order >= 0)
      return muster_invalid (error, "indices[%" G_GINT64_FORMAT "] is %s", i,
                             order == 0 ? "repeated"
                                        : "out of order. Many sparse ops require sorted indices.");
  }
  return TRUE;
}

gint64
muster_sparse_offset (MusterTensor *indices, gint64 i, int n_dims, const gint64 *dims)
{
  gint64 at = 0;
  for (int d = 0; d < n_dims; d++) {
    const gint64 index = muster_int_at (indices, i * n_dims + d);
    if (index < 0 || index >= dims[d])
      return -1;
    at = at * dims[d] + index;
  }
  return at;
}

gboolean
muster_sparse_refuse_index (MusterTensor *indices, gint64 i, int n_dims, const gint64 *dims,
                            GError **error)
{
  g_autofree char *shape = muster_shape_to_string (n_dims, dims);
  g_autoptr (GString) row = g_string_new (NULL);

  for (int d = 0; d < n_dims; d++)
    g_string_append_printf (row, "%s%" G_GINT64_FORMAT, d > 0 ? "," : "",
                            muster_int_at (indices, i * n_dims + d));
  return muster_invalid (error,
                         "indices[%" G_GINT64_FORMAT "] = [%s] is out of bounds: need 0 <= index < "
                         "%s",
                         i, row->str, shape);
}

/* SparseToDense is older than the other ops and accepts more: indices may be a scalar or a vector,
 * and one value may serve all n indices. */
static gboolean
check_to_dense (MusterKernel *k, int n_dims, gint64 n, GError **error)
{
  const MusterTensor *indices = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 2);
  const int rank = muster_tensor_n_dims (indices), values_rank = muster_tensor_n_dims (values);
  if (rank > 2)
    return muster_invalid (
        error, "sparse_indices should be a scalar, vector, or matrix, got rank %d", rank);
  if ((rank == 2 ? muster_tensor_dims (indices)[1] : 1) != n_dims)
    return muster_invalid (error, "output_shape has incorrect number of elements: %d", n_dims);
  if (values_rank > 1 || (values_rank == 1 && muster_tensor_dims (values)[0] != n))
    return muster_invalid (
        error, "sparse_values has incorrect shape, should be [] or [%" G_GINT64_FORMAT "]", n);
  if (muster_tensor_n_dims (muster_kernel_input (k, 3)) != 0)
    return muster_invalid (error, "default_value should be a scalar.");
  return TRUE;
}

/* Writes the values to their n indices, which must be in order if validates is TRUE. */
static gboolean
put_values (MusterKernel *k, MusterResult *result, gint64 n, gboolean validates, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 2);
  const MusterElements from = muster_elements (values);
  const gsize step = muster_tensor_n_dims (values) == 0 ? 0 : result->size;
  gint64 last = -1;
  for (gint64 i = 0; i < n; i++) {
    gint64 at = muster_sparse_offset (indices, i, result->n_dims, result->dims);
    if (at < 0)
      return muster_sparse_refuse_index (indices, i, result->n_dims, result->dims, error);
    if (validates && at <= last)
      return muster_invalid (error, "indices[%" G_GINT64_FORMAT "] is %s", i,
                             at == last ? "repeated" : "out of order");
    last = at;
    memcpy (result->data + (gsize)at * result->size, from.data + (gsize)i * step, result->size);
  }
  return TRUE;
}

static gboolean
compute_to_dense (MusterKernel *k, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 2);
  const gboolean validates = muster_kernel_attr_bool (k, "validate_indices", TRUE);
  const MusterElements other = muster_elements (muster_kernel_input (k, 3));
  const gint64 n = muster_tensor_n_dims (indices) > 0 ? muster_tensor_dims (indices)[0] : 1;
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = read_shape (k, 1, dims, error);
  g_auto (MusterResult) result = {0};
  if (n_dims < 0 || !check_to_dense (k, n_dims, n, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (values), n_dims, dims, error))
    return FALSE;
  for (gint64 i = 0; i < result.n; i++)
    memcpy (result.data + (gsize)i * result.size, other.data, result.size);
  return put_values (k, &result, n, validates, error) && muster_result_end (&result, k, 0, error);
}

/* Computes the size given as -1, if any, from the total number of elements. */
static gboolean
infer_size (gint64 *to, int n_to, gint64 total, GError **error)
{
  gint64 known = 1;
  int unknown = -1;
  for (int d = 0; d < n_to; d++) {
    if (to[d] == -1 && unknown >= 0)
      return muster_invalid (error, "only one output dimension may be -1, not both %d and %d",
                             unknown, d);
    if (to[d] < -1)
      return muster_invalid (error, "size %d must be non-negative, not %" G_GINT64_FORMAT, d,
                             to[d]);
    if (to[d] == -1)
      unknown = d;
    else if (__builtin_mul_overflow (known, to[d], &known))
      return muster_invalid (error, "The target shape has too many elements");
  }
  if (unknown < 0 && known != total)
    return muster_invalid (error,
                           "Input to reshape is a tensor with %" G_GINT64_FORMAT
                           " dense values, but the requested shape has %" G_GINT64_FORMAT,
                           total, known);
  if (unknown < 0)
    return TRUE;
  if (known == 0)
    return muster_invalid (error, "reshape cannot infer the missing input size for an empty tensor "
                                  "unless all specified input sizes are non-zero");
  to[unknown] = total / known;
  if (to[unknown] * known == total)
    return TRUE;
  return muster_invalid (error,
                         "Input to reshape is a SparseTensor with %" G_GINT64_FORMAT
                         " dense values, but the requested shape requires a multiple of "
                         "%" G_GINT64_FORMAT,
                         total, known);
}

/* Reads the target shape for `total` elements. Returns the number of dimensions; -1 with an
 * error. */
static int
read_target (MusterKernel *k, gint64 total, gint64 *to, GError **error)
{
  int n_to = -1;
  if (muster_tensor_n_dims (muster_kernel_input (k, 2)) != 1)
    muster_invalid (error, "Target shape should be a vector");
  else
    n_to = muster_kernel_input_ints (k, 2, to, MUSTER_MAX_DIMS, error);
  if (n_to < 0)
    return -1;
  if (total < 0) {
    muster_invalid (error, "The input's dense shape has too many elements");
    return -1;
  }
  return infer_size (to, n_to, total, error) ? n_to : -1;
}

/* Converts indices into shape dims to indices into shape to, neither of which is empty. As in
 * TensorFlow, one outside of its shape is the place that it would have there. */
static void
move_indices (MusterTensor *indices, int n_dims, const gint64 *dims, int n_to, const gint64 *to,
              gint64 *moved)
{
  const gint64 n = muster_tensor_dims (indices)[0];
  for (gint64 i = 0; i < n; i++, moved += n_to) {
    guint64 place = 0;
    for (int d = 0; d < n_dims; d++)
      place = place * (guint64)dims[d] + (guint64)muster_int_at (indices, i * n_dims + d);
    gint64 at = (gint64)place;
    for (int d = n_to - 1; d > 0; d--) {
      moved[d] = at % to[d];
      at /= to[d];
    }
    if (n_to > 0)
      moved[0] = at;
  }
}

static gboolean
compute_reshape (MusterKernel *k, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0);
  gint64 dims[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS];
  const int n_dims = read_shape (k, 1, dims, error);
  if (n_dims < 0 || !check_sparse (indices, NULL, n_dims, error))
    return FALSE;
  const gint64 total = muster_shape_n_elements (n_dims, dims);
  const int n_to = read_target (k, total, to, error);
  if (n_to < 0)
    return FALSE;
  if (n_to == n_dims && memcmp (to, dims, (gsize)n_dims * sizeof *to) == 0) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (indices));
    muster_kernel_set_output (k, 1, muster_tensor_ref (muster_kernel_input (k, 1)));
    return TRUE;
  }
  if (total == 0 && muster_tensor_dims (indices)[0] > 0)
    return muster_invalid (error, "The input has elements, but its shape has none");
  const gint64 out_dims[] = {muster_tensor_dims (indices)[0], n_to};
  MusterTensor *out = muster_kernel_output (k, 0, 2, out_dims, error);
  MusterTensor *shape = out == NULL ? NULL : muster_kernel_output (k, 1, 1, &out_dims[1], error);
  if (shape == NULL)
    return FALSE;
  if (n_to > 0)
    memcpy (muster_tensor_data_mutable (shape), to, (gsize)n_to * sizeof *to);
  move_indices (indices, n_dims, dims, n_to, to, muster_tensor_data_mutable (out));
  return TRUE;
}

/* The rows of the result of SparseFillEmptyRows. */
typedef struct {
  gint64 n_rows, n, n_out;
  gint64 *first; /* (owned) by row: the position of its first value in the result */
} Rows;

static void
rows_clear (Rows *self)
{
  g_clear_pointer (&self->first, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rows, rows_clear)

static gboolean
count_rows (MusterKernel *k, MusterTensor *indices, int n_dims, Rows *rows, MusterTensor *is_empty,
            GError **error)
{
  gint64 *counts = muster_kernel_alloc0 (k, rows->n_rows, sizeof (gint64), error), at = 0;
  rows->first = counts;
  if (counts == NULL)
    return FALSE;
  for (gint64 i = 0; i < rows->n; i++) {
    gint64 row = muster_int_at (indices, i * n_dims);
    if (row < 0 || row >= rows->n_rows)
      return muster_invalid (error,
                             "indices(%" G_GINT64_FORMAT ", 0) is invalid: %" G_GINT64_FORMAT
                             " >= %" G_GINT64_FORMAT,
                             i, row, rows->n_rows);
    counts[row]++;
  }
  for (gint64 row = 0; row < rows->n_rows; row++) {
    gint64 count = counts[row];
    ((guint8 *)muster_tensor_data_mutable (is_empty))[row] = count == 0;
    counts[row] = at;
    at += MAX (count, 1);
  }
  rows->n_out = at;
  return TRUE;
}

/* Copies the values, and adds the default to each row without one. */
static gboolean
fill_rows (MusterKernel *k, Rows *rows, int n_dims, MusterTensor *is_empty, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 1);
  MusterTensor *out, *back;
  gint64 *to;
  MusterElements from = muster_elements (values);
  MusterElements other = muster_elements (muster_kernel_input (k, 3));
  g_auto (MusterResult) result = {0};
  out = muster_kernel_output (k, 0, 2, (gint64[]){rows->n_out, n_dims}, error);
  back = out == NULL ? NULL : muster_kernel_output (k, 3, 1, &rows->n, error);
  if (back == NULL ||
      !muster_result_begin (&result, k, muster_tensor_dtype (values), 1, &rows->n_out, error))
    return FALSE;
  to = muster_tensor_data_mutable (out);
  if (muster_tensor_n_bytes (out) > 0)
    memset (to, 0, muster_tensor_n_bytes (out));
  for (gint64 row = 0; row < rows->n_rows; row++)
    if (((const guint8 *)muster_tensor_data (is_empty))[row]) {
      to[rows->first[row] * n_dims] = row;
      memcpy (result.data + (gsize)rows->first[row] * result.size, other.data, result.size);
    }
  for (gint64 i = 0; i < rows->n; i++) {
    gint64 at = rows->first[muster_int_at (indices, i * n_dims)]++;
    for (int d = 0; d < n_dims; d++)
      to[at * n_dims + d] = muster_int_at (indices, i * n_dims + d);
    memcpy (result.data + (gsize)at * result.size, from.data + (gsize)i * result.size, result.size);
    ((gint64 *)muster_tensor_data_mutable (back))[i] = at;
  }
  return muster_result_end (&result, k, 1, error);
}

static gboolean
compute_fill_empty_rows (MusterKernel *k, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *is_empty;
  gint64 dims[MUSTER_MAX_DIMS];
  int n_dims = read_shape (k, 2, dims, error);
  g_auto (Rows) rows = {0};
  if (n_dims < 0)
    return FALSE;
  if (n_dims == 0)
    return muster_invalid (error, "Dense shape cannot be empty.");
  if (!check_sparse (indices, muster_kernel_input (k, 1), n_dims, error))
    return FALSE;
  if (muster_tensor_n_dims (muster_kernel_input (k, 3)) != 0)
    return muster_invalid (error, "default_value must be a scalar");
  rows.n_rows = dims[0];
  rows.n = muster_tensor_dims (indices)[0];
  is_empty = muster_kernel_output (k, 2, 1, &rows.n_rows, error);
  return is_empty != NULL && count_rows (k, indices, n_dims, &rows, is_empty, error) &&
         fill_rows (k, &rows, n_dims, is_empty, error);
}

static gboolean
compute_fill_empty_rows_grad (MusterKernel *k, GError **error)
{
  MusterTensor *back = muster_kernel_input (k, 0), *grad = muster_kernel_input (k, 1);
  MusterDType dtype = muster_tensor_dtype (grad);
  gint64 n = muster_tensor_n_elements (back), n_grad = muster_tensor_n_elements (grad);
  g_autofree guint8 *visited = muster_kernel_alloc0 (k, n_grad, 1, error);
  MusterElements from = muster_elements (grad);
  g_auto (MusterResult) own = {0}, other = {0};

  if (visited == NULL)
    return FALSE;
  if (muster_tensor_n_dims (back) != 1)
    return muster_invalid (error, "reverse_index_map must be a vector");
  if (muster_tensor_n_dims (grad) != 1)
    return muster_invalid (error, "grad_values must be a vector");
  if (muster_wide (dtype) == MUSTER_N_WIDE)
    return muster_invalid (error, "Arithmetic isn't supported for dtype %s",
                           muster_dtype_name (dtype));
  if (!muster_result_begin (&own, k, dtype, 1, &n, error) ||
      !muster_result_begin (&other, k, dtype, 0, NULL, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    gint64 at = muster_int_at (back, i);
    if (at < 0 || at >= n_grad)
      return muster_invalid (error,
                             "Elements in reverse index must be in [0, %" G_GINT64_FORMAT
                             ") but got %" G_GINT64_FORMAT,
                             n_grad, at);
    visited[at] = 1;
    memcpy (own.data + (gsize)i * own.size, from.data + (gsize)at * own.size, own.size);
  }
  for (gint64 i = 0; i < n_grad; i++)
    if (!visited[i])
      muster_run_loop2 (muster_add_loops, dtype, dtype, 1, other.data, 1,
                        from.data + (gsize)i * own.size, 1, other.data);
  return muster_result_end (&own, k, 0, error) && muster_result_end (&other, k, 1, error);
}

int
muster_sparse_compare (const gint64 *a, const gint64 *b, int n_dims)
{
  for (int d = 0; d < n_dims; d++)
    if (a[d] != b[d])
      return a[d] < b[d] ? -1 : 1;
  return 0;
}

typedef struct {
  const gint64 *indices;
  int n_dims, n_axes;
  const int *axes;
} Sorting;

static gint
compare_rows (gconstpointer a, gconstpointer b, gpointer data)
{
  const Sorting *s = data;
  const gint64 *x = s->indices + *(const gint64 *)a * s->n_dims;
  const gint64 *y = s->indices + *(const gint64 *)b * s->n_dims;
  for (int i = 0; i < s->n_axes; i++)
    if (x[s->axes[i]] != y[s->axes[i]])
      return x[s->axes[i]] < y[s->axes[i]] ? -1 : 1;
  return 0;
}

gint64 *
muster_sparse_sort (MusterKernel *k, const gint64 *indices, gint64 n, int n_dims, const int *axes,
                    int n_axes, GError **error)
{
  Sorting sorting = {indices, n_dims, n_axes, axes};
  gboolean is_sorted = TRUE;
  gint64 *order;
  if (n > G_MAXINT) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "%" G_GINT64_FORMAT " values are too many to be sorted", n);
    return NULL;
  }
  if (!muster_kernel_may_sort (k, n, sizeof *order, error) ||
      (order = muster_kernel_alloc (k, n, sizeof *order, error)) == NULL)
    return NULL;
  for (gint64 i = 0; i < n; i++) {
    order[i] = i;
    is_sorted = is_sorted && (i == 0 || compare_rows (&order[i - 1], &order[i], &sorting) <= 0);
  }
  if (!is_sorted)
    g_qsort_with_data (order, (gint)n, sizeof *order, compare_rows, &sorting);
  return order;
}

/* Sorts the rows by their indices. The shape's rank alone matters. */
static gboolean
compute_reorder (MusterKernel *k, GError **error)
{
  MusterSparse s = {.indices = muster_kernel_input (k, 0), .values = muster_kernel_input (k, 1)};
  int axes[MUSTER_MAX_DIMS];
  MusterTensor *out;
  g_autofree gint64 *order = NULL;
  MusterElements from = {0};
  g_auto (MusterResult) result = {0};

  s.n_dims = muster_kernel_input_ints (k, 2, s.dims, MUSTER_MAX_DIMS, error);
  if (s.n_dims < 0 || !muster_check_vector (k, 2, "Input shape", error) ||
      !check_sparse (s.indices, s.values, s.n_dims, error))
    return FALSE;
  s.n = muster_tensor_dims (s.values)[0];
  for (int d = 0; d < s.n_dims; d++)
    axes[d] = d;
  order =
      muster_sparse_sort (k, muster_tensor_data (s.indices), s.n, s.n_dims, axes, s.n_dims, error);
  out =
      order == NULL ? NULL : muster_kernel_output (k, 0, 2, muster_tensor_dims (s.indices), error);
  if (out == NULL ||
      !muster_result_begin (&result, k, muster_tensor_dtype (s.values), 1, &s.n, error))
    return FALSE;
  from = muster_elements (s.values);
  for (gint64 i = 0; i < s.n; i++) {
    for (int d = 0; d < s.n_dims; d++)
      ((gint64 *)muster_tensor_data_mutable (out))[i * s.n_dims + d] =
          muster_int_at (s.indices, order[i] * s.n_dims + d);
    memcpy (result.data + (gsize)i * result.size, from.data + (gsize)order[i] * result.size,
            result.size);
  }
  return muster_result_end (&result, k, 1, error);
}

const MusterOp muster_sparse_ops[] = {
    {"SparseToDense",
     "sparse_indices:Tindices, output_shape:Tindices, sparse_values:T, default_value:T -> dense:T",
     "T:any Tindices:int32|int64", compute_to_dense, 0},
    {"SparseReshape",
     "input_indices:int64, input_shape:int64, new_shape:int64 -> output_indices:int64, "
     "output_shape:int64",
     "", compute_reshape, 0},
    {"SparseFillEmptyRows",
     "indices:int64, values:T, dense_shape:int64, default_value:T -> output_indices:int64, "
     "output_values:T, empty_row_indicator:bool, reverse_index_map:int64",
     "T:any", compute_fill_empty_rows, 0},
    {"SparseFillEmptyRowsGrad",
     "reverse_index_map:int64, grad_values:T -> d_values:T, d_default_value:T", "T:any",
     compute_fill_empty_rows_grad, 0},
    {"SparseReorder",
     "input_indices:int64, input_values:T, input_shape:int64 -> output_indices:int64, "
     "output_values:T",
     "T:any", compute_reorder, 0},
    {NULL, NULL, NULL, NULL, 0},
};
