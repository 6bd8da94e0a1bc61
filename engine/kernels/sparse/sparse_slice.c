// SPDX-License-Identifier: Apache-2.0
/* Concatenation, slices and splits of sparse tensors. */
#include "engine/kernels/sparse/sparse.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <string.h>

static gboolean
set_shape (MusterKernel *k, int i, int n_dims, const gint64 *dims, GError **error)
{
  MusterTensor *shape = muster_kernel_output (k, i, 1, (gint64[]){n_dims}, error);
  if (shape != NULL && n_dims > 0)
    memcpy (muster_tensor_data_mutable (shape), dims, (gsize)n_dims * sizeof *dims);
  return shape != NULL;
}

/* Checks that the shapes are equal except along the axis. */
static gboolean
check_joined (const MusterSparse *first, const MusterSparse *other, int axis, int i, GError **error)
{
  if (first->n_dims != other->n_dims)
    return muster_invalid (error,
                           "Ranks of all input tensors must match: expected %d but got %d at "
                           "position %d",
                           first->n_dims, other->n_dims, i);
  for (int d = 0; d < first->n_dims; d++)
    if (d != axis && first->dims[d] != other->dims[d])
      return muster_invalid (error,
                             "Input shapes must match: expected %" G_GINT64_FORMAT
                             " for dimension %d but got %" G_GINT64_FORMAT " at position %d",
                             first->dims[d], d, other->dims[d], i);
  return TRUE;
}

/* The indices of the concatenation along the axis, not sorted (transfer full). *joined receives its
 * shape and number of rows. */
static gint64 *
join_indices (MusterKernel *k, const MusterSparse *parts, int n, int axis, MusterSparse *joined,
              GError **error)
{
  const int n_dims = parts[0].n_dims;
  gint64 *indices, *to, first = 0;
  *joined = parts[0];
  joined->n = joined->dims[axis] = 0;
  for (int i = 0; i < n; i++)
    if (__builtin_add_overflow (joined->dims[axis], parts[i].dims[axis], &joined->dims[axis])) {
      muster_invalid (error, "The joined dense shape has too many elements");
      return NULL;
    } else {
      joined->n += parts[i].n;
    }
  to = indices = muster_kernel_alloc (k, joined->n, (gsize)n_dims * sizeof *to, error);
  if (indices == NULL)
    return NULL;
  for (int i = 0; i < n; i++) {
    const gint64 *from = muster_tensor_data (parts[i].indices);
    for (gint64 row = 0; row < parts[i].n; row++, to += n_dims, from += n_dims) {
      memcpy (to, from, (gsize)n_dims * sizeof *to);
      to[axis] = (gint64)((guint64)to[axis] + (guint64)first);
    }
    first += parts[i].dims[axis];
  }
  return indices;
}

static gboolean
join_values (MusterKernel *k, const MusterSparse *parts, int n, const gint64 *order,
             MusterResult *result, GError **error)
{
  g_autofree guint8 *all = muster_kernel_alloc (k, result->n, result->size, error);
  guint8 *to = all;

  if (all == NULL)
    return FALSE;
  for (int i = 0; i < n; i++) {
    MusterElements from = muster_elements (parts[i].values);
    if (parts[i].n > 0)
      memcpy (to, from.data, (gsize)parts[i].n * result->size);
    to += (gsize)parts[i].n * result->size;
  }
  for (gint64 i = 0; i < result->n; i++)
    memcpy (result->data + (gsize)i * result->size, all + (gsize)order[i] * result->size,
            result->size);
  return TRUE;
}

static gboolean
set_joined (MusterKernel *k, const MusterSparse *parts, int n, int axis, GError **error)
{
  MusterSparse joined;
  g_autofree gint64 *indices = join_indices (k, parts, n, axis, &joined, error), *order = NULL;
  int axes[MUSTER_MAX_DIMS];
  MusterTensor *out;
  gint64 *to;
  g_auto (MusterResult) values = {0};

  if (indices == NULL)
    return FALSE;
  for (int d = 0; d < joined.n_dims; d++)
    axes[d] = d;
  order = muster_sparse_sort (k, indices, joined.n, joined.n_dims, axes, joined.n_dims, error);
  out = order == NULL ? NULL
                      : muster_kernel_output (k, 0, 2, (gint64[]){joined.n, joined.n_dims}, error);
  if (out == NULL || !set_shape (k, 2, joined.n_dims, joined.dims, error) ||
      !muster_result_begin (&values, k, muster_tensor_dtype (joined.values), 1, &joined.n, error))
    return FALSE;
  to = muster_tensor_data_mutable (out);
  for (gint64 i = 0; i < joined.n; i++)
    memcpy (to + i * joined.n_dims, indices + order[i] * joined.n_dims,
            (gsize)joined.n_dims * sizeof *to);
  return join_values (k, parts, n, order, &values, error) &&
         muster_result_end (&values, k, 1, error);
}

/* The size of a joined part must be one that can be. */
static gboolean
check_size (MusterKernel *k, int i, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_check_vector (k, i, "Input shapes", error)
                         ? muster_kernel_input_ints (k, i, dims, MUSTER_MAX_DIMS, error)
                         : -1;
  return n_dims >= 0 && (muster_shape_n_elements (n_dims, dims) >= 0 ||
                         muster_fail (error, MUSTER_ERROR_INTERNAL,
                                      "Encountered overflow from large input shape."));
}

static gboolean
compute_concat (MusterKernel *k, GError **error)
{
  const int n = muster_kernel_n_inputs (k) / 3;
  const gint64 wanted = muster_kernel_attr_int (k, "concat_dim", 0);
  g_autofree MusterSparse *parts = muster_kernel_alloc (k, n, sizeof *parts, error);
  gint64 axis = wanted;

  if (parts == NULL)
    return FALSE;
  if (n == 0)
    return muster_invalid (error, "SparseConcat has no inputs");
  for (int i = 0; i < 2 * n; i++)
    if (muster_tensor_n_dims (muster_kernel_input (k, i)) != (i < n ? 2 : 1))
      return muster_invalid (error, "Input %s at position %d",
                             i < n ? "indices should be a matrix" : "values should be a vector",
                             i % n);
  for (int i = 0; i < n; i++)
    if (!check_size (k, 2 * n + i, error))
      return FALSE;
  for (int i = 0; i < n; i++) {
    if (!muster_sparse_read (k, i, n + i, 2 * n + i, &parts[i], error))
      return FALSE;
    if (i == 0) {
      axis = wanted < 0 ? wanted + parts[0].n_dims : wanted;
      if (axis < 0 || axis >= parts[0].n_dims)
        return muster_invalid (error,
                               "Concat dimension must be in range [%d, %d), got %" G_GINT64_FORMAT,
                               -parts[0].n_dims, parts[0].n_dims, wanted);
    }
    if (!check_joined (&parts[0], &parts[i], (int)axis, i, error))
      return FALSE;
  }
  return set_joined (k, parts, n, (int)axis, error);
}

/* A block of a sparse tensor, and the shape of the result: less at the tensor's end. */
typedef struct {
  gint64 start[MUSTER_MAX_DIMS], size[MUSTER_MAX_DIMS], shape[MUSTER_MAX_DIMS];
} Box;

static gboolean
is_within (const Box *box, const gint64 *index, int n_dims)
{
  for (int d = 0; d < n_dims; d++)
    if (index[d] < box->start[d] ||
        (guint64)index[d] - (guint64)box->start[d] >= (guint64)box->size[d])
      return FALSE;
  return TRUE;
}

/* Sets outputs i, i + step and i + 2 × step to the box's elements, with indices relative to its
 * start. */
static gboolean
set_box (MusterKernel *k, int i, int step, const MusterSparse *s, const Box *box, GError **error)
{
  const gint64 *indices = muster_tensor_data (s->indices);
  gint64 n = 0, *to;
  MusterTensor *out;
  MusterElements from = muster_elements (s->values);
  g_auto (MusterResult) values = {0};
  for (gint64 row = 0; row < s->n; row++)
    n += is_within (box, indices + row * s->n_dims, s->n_dims);
  out = muster_kernel_output (k, i, 2, (gint64[]){n, s->n_dims}, error);
  if (out == NULL || !set_shape (k, i + 2 * step, s->n_dims, box->shape, error) ||
      !muster_result_begin (&values, k, muster_tensor_dtype (s->values), 1, &n, error))
    return FALSE;
  to = muster_tensor_data_mutable (out);
  n = 0;
  for (gint64 row = 0; row < s->n; row++) {
    const gint64 *index = indices + row * s->n_dims;
    if (!is_within (box, index, s->n_dims))
      continue;
    for (int d = 0; d < s->n_dims; d++)
      *to++ = index[d] - box->start[d];
    memcpy (values.data + (gsize)n++ * values.size, from.data + (gsize)row * values.size,
            values.size);
  }
  return muster_result_end (&values, k, i + step, error);
}

static gboolean
compute_slice (MusterKernel *k, GError **error)
{
  static const char *const names[] = {"start", "size"};
  MusterSparse s;
  Box box;
  if (!muster_sparse_read (k, 0, 1, 2, &s, error) || !muster_sparse_check_size (&s, error))
    return FALSE;
  for (int i = 0; i < 2; i++) {
    MusterTensor *x = muster_kernel_input (k, 3 + i);
    if (muster_tensor_n_dims (x) != 1) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error, "Input %s should be a vector but received shape %s", names[i],
                             shape);
    }
    if (muster_tensor_n_elements (x) != s.n_dims)
      return muster_invalid (error,
                             "Expected %s to be a vector of length %d but got length "
                             "%" G_GINT64_FORMAT,
                             names[i], s.n_dims, muster_tensor_n_elements (x));
    if (muster_kernel_input_ints (k, 3 + i, i == 0 ? box.start : box.size, MUSTER_MAX_DIMS, error) <
        0)
      return FALSE;
  }
  for (int d = 0; d < s.n_dims; d++) {
    gint64 rest; /* up to the tensor's end */
    if (__builtin_sub_overflow (s.dims[d], box.start[d], &rest))
      rest = G_MAXINT64;
    if (box.size[d] < 0 && box.size[d] < rest)
      return muster_invalid (error, "A slice can't have size %" G_GINT64_FORMAT " (dimension %d)",
                             box.size[d], d);
    box.size[d] = MAX (box.size[d], 0);
    box.shape[d] = MIN (box.size[d], MAX (rest, 0));
  }
  return set_box (k, 0, 1, &s, &box, error);
}

/* The gradient of a slice: zero for the elements outside. The slice has its elements in the input's
 * order. */
static gboolean
check_slice_grad (MusterTensor *grad, MusterTensor *in, MusterTensor *start, MusterTensor *out,
                  GError **error)
{
  if (muster_tensor_n_dims (in) != 2 || muster_tensor_n_dims (out) != 2)
    return muster_invalid (error, "Input and output indices should be matrices");
  if (muster_tensor_n_dims (grad) != 1 || muster_tensor_n_dims (start) != 1)
    return muster_invalid (error, "Input gradient and start should be vectors");
  const gint64 n_out = muster_tensor_dims (out)[0], n_dims = muster_tensor_dims (in)[1];
  if (muster_tensor_dims (out)[1] != n_dims)
    return muster_invalid (error,
                           "The input and output should have the same ndims: got: "
                           "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           n_dims, muster_tensor_dims (out)[1]);
  if (muster_tensor_n_elements (start) != n_dims || n_out > muster_tensor_dims (in)[0] ||
      n_out != muster_tensor_n_elements (grad))
    return muster_invalid (error, "Gradient, start and indices don't fit");
  return TRUE;
}

/* TRUE if row i of in is row j of out, moved by start. */
static gboolean
is_moved (MusterTensor *in, gint64 i, MusterTensor *out, gint64 j, MusterTensor *start)
{
  const gint64 n_dims = muster_tensor_dims (in)[1];
  for (gint64 d = 0; d < n_dims; d++)
    if ((guint64)muster_int_at (in, i * n_dims + d) !=
        (guint64)muster_int_at (out, j * n_dims + d) + (guint64)muster_int_at (start, d))
      return FALSE;
  return TRUE;
}

static gboolean
compute_slice_grad (MusterKernel *k, GError **error)
{
  MusterTensor *grad = muster_kernel_input (k, 0), *in = muster_kernel_input (k, 1);
  MusterTensor *start = muster_kernel_input (k, 2), *out = muster_kernel_input (k, 3), *result;
  const gsize size = muster_dtype_size (muster_tensor_dtype (grad));
  gint64 n, used = 0;
  if (!check_slice_grad (grad, in, start, out, error))
    return FALSE;
  n = muster_tensor_dims (in)[0];
  result = muster_kernel_output (k, 0, 1, &n, error);
  if (result == NULL)
    return FALSE;
  guint8 *to = muster_tensor_data_mutable (result);
  if (n > 0)
    memset (to, 0, (gsize)n * size);
  for (gint64 i = 0; i < n && used < muster_tensor_dims (out)[0]; i++)
    if (is_moved (in, i, out, used, start))
      memcpy (to + (gsize)i * size,
              (const guint8 *)muster_tensor_data (grad) + (gsize)used++ * size, size);
  if (used == muster_tensor_n_elements (grad))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INTERNAL,
                      "Elements of backprop_val_grad aren't all propagated. Num elements:"
                      "%" G_GINT64_FORMAT ", used: %" G_GINT64_FORMAT,
                      muster_tensor_n_elements (grad), used);
}

/* Splits into parts whose sizes differ by at most one; the first ones are larger. */
static gboolean
compute_split (MusterKernel *k, GError **error)
{
  const gint64 n = muster_kernel_attr_int (k, "num_split", 1);
  MusterSparse s;
  Box box = {.start = {0}};
  gint64 axis, size;
  if (!muster_check_scalar (k, 0, "split_dim", error) ||
      !muster_sparse_read (k, 1, 2, 3, &s, error) || !muster_sparse_check_size (&s, error))
    return FALSE;
  axis = muster_kernel_input_int (k, 0);
  if (axis < -s.n_dims || axis >= s.n_dims)
    return muster_invalid (error,
                           "Input split_dim should be in range [%d, %d), got %" G_GINT64_FORMAT,
                           -s.n_dims, s.n_dims, axis);
  axis += axis < 0 ? s.n_dims : 0;
  if (!muster_sparse_check_inside (&s, error))
    return FALSE;
  size = s.dims[axis];
  if (n < 1 || n > size)
    return muster_invalid (error,
                           "Input num_split should be between 1 and the splitting dimension size "
                           "(%" G_GINT64_FORMAT "), got %" G_GINT64_FORMAT,
                           size, n);
  memcpy (box.size, s.dims, (gsize)s.n_dims * sizeof *box.size);
  memcpy (box.shape, s.dims, (gsize)s.n_dims * sizeof *box.shape);
  for (gint64 i = 0; i < n; i++) {
    box.shape[axis] = box.size[axis] = size / n + (i < size % n);
    if (!set_box (k, (int)i, (int)n, &s, &box, error))
      return FALSE;
    box.start[axis] += box.size[axis];
  }
  return TRUE;
}

#define SPARSE_OUT " -> output_indices:int64, output_values:T, output_shape:int64"

const MusterOp muster_sparse_slice_ops[] = {
    {"SparseConcat", "indices:N*int64, values:N*T, shapes:N*int64" SPARSE_OUT,
     "T:any concat_dim N>=2", compute_concat, 0},
    {"SparseSlice", "indices:int64, values:T, shape:int64, start:int64, size:int64" SPARSE_OUT,
     "T:any", compute_slice, 0},
    {"SparseSliceGrad",
     "backprop_val_grad:T, input_indices:int64, input_start:int64, output_indices:int64 -> "
     "val_grad:T",
     "T:number", compute_slice_grad, 0},
    {"SparseSplit",
     "split_dim:int64, indices:int64, values:T, shape:int64 -> output_indices:num_split*int64, "
     "output_values:num_split*T, output_shape:num_split*int64",
     "T:any", compute_split, 0},
    {NULL, NULL, NULL, NULL, 0},
};
