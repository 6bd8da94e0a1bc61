// SPDX-License-Identifier: Apache-2.0
/* Sum, maximum and softmax along dimensions of a sparse tensor. */
#include "engine/kernels/math/complex.h"
#include "engine/kernels/sparse/sparse.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <math.h>
#include <string.h>

/* The rows, sorted by the dimensions that are kept: each group, which is reduced to one element, is
 * contiguous. */
typedef struct {
  MusterSparse s;
  gboolean keeps_dims;
  gboolean is_reduced[MUSTER_MAX_DIMS];
  int axes[MUSTER_MAX_DIMS], n_axes; /* the kept ones, then the reduced ones */
  int n_dims;                        /* of the result */
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 *order; /* (owned) */
} Groups;

static void
groups_clear (Groups *self)
{
  g_clear_pointer (&self->order, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Groups, groups_clear)

static gboolean
read_axes (MusterKernel *k, Groups *g, GError **error)
{
  MusterTensor *axes = muster_kernel_input (k, 3);
  if (muster_tensor_n_dims (axes) > 1)
    return muster_invalid (error, "Expected reduction_axes to be a scalar or a vector; got rank %d",
                           muster_tensor_n_dims (axes));
  for (gint64 i = 0; i < muster_tensor_n_elements (axes); i++) {
    const gint64 axis = muster_int_at (axes, i);
    if (axis < -g->s.n_dims || axis >= g->s.n_dims)
      return muster_invalid (
          error, "Invalid reduction dimension %" G_GINT64_FORMAT ", for input with %d dimensions.",
          axis, g->s.n_dims);
    g->is_reduced[axis < 0 ? axis + g->s.n_dims : axis] = TRUE;
  }
  return TRUE;
}

static gboolean
read_groups (MusterKernel *k, Groups *g, GError **error)
{
  int n = 0;
  if (!muster_sparse_read (k, 0, 1, 2, &g->s, error) || !muster_sparse_check_size (&g->s, error) ||
      !read_axes (k, g, error))
    return FALSE;
  g->keeps_dims = muster_kernel_attr_bool (k, "keep_dims", FALSE);
  for (int d = 0; d < g->s.n_dims; d++) {
    if (!g->is_reduced[d])
      g->axes[n++] = d;
    if (!g->is_reduced[d] || g->keeps_dims)
      g->dims[g->n_dims++] = g->is_reduced[d] ? 1 : g->s.dims[d];
  }
  g->n_axes = n;
  for (int d = 0; d < g->s.n_dims; d++)
    if (g->is_reduced[d])
      g->axes[n++] = d;
  g->order = muster_sparse_sort (k, muster_tensor_data (g->s.indices), g->s.n, g->s.n_dims, g->axes,
                                 n, error);
  return g->order != NULL;
}

static const gint64 *
row_at (const Groups *g, gint64 i)
{
  return (const gint64 *)muster_tensor_data (g->s.indices) + g->order[i] * g->s.n_dims;
}

/* The end of the group that begins at i. */
static gint64
group_end (const Groups *g, gint64 i)
{
  const gint64 *first = row_at (g, i);
  gint64 end = i + 1;
  for (; end < g->s.n; end++)
    for (int d = 0; d < g->n_axes; d++)
      if (row_at (g, end)[g->axes[d]] != first[g->axes[d]])
        return end;
  return end;
}

/* The position of the group's result in a dense tensor; -1 if it is outside. */
static gint64
group_offset (const Groups *g, gint64 i)
{
  gint64 place = 0;
  for (int d = 0; d < g->n_axes; d++) {
    const gint64 index = row_at (g, i)[g->axes[d]], size = g->s.dims[g->axes[d]];
    if (index < 0 || index >= size)
      return -1;
    place = place * size + index;
  }
  return place;
}

typedef void (*Reduce) (const void *x, const gint64 *order, gint64 n, void *out, gint64 at);

#define SUM(suffix, T)                                                                             \
  static void sum_##suffix (const void *px, const gint64 *order, gint64 n, void *pout, gint64 at)  \
  {                                                                                                \
    T sum = 0;                                                                                     \
    for (gint64 i = 0; i < n; i++)                                                                 \
      sum = (T)(sum + ((const T *)px)[order[i]]);                                                  \
    ((T *)pout)[at] = sum;                                                                         \
  }
SUM (f32, float)
SUM (f64, double)
/* integers wrap */
SUM (i32, guint32)
SUM (i64, guint64)
SUM (u64, guint64)
SUM (c64, float complex)
SUM (c128, double complex)

#define LARGEST(suffix, T)                                                                         \
  static void largest_##suffix (const void *px, const gint64 *order, gint64 n, void *pout,         \
                                gint64 at)                                                         \
  {                                                                                                \
    T most = ((const T *)px)[order[0]];                                                            \
    for (gint64 i = 1; i < n; i++)                                                                 \
      most = MAX (most, ((const T *)px)[order[i]]);                                                \
    ((T *)pout)[at] = most;                                                                        \
  }
MUSTER_WIDE_TYPES (LARGEST)

static const Reduce sums[] = MUSTER_NUMBER_TABLE (sum);
static const Reduce largest[] = MUSTER_WIDE_TABLE (largest);

/* Groups without elements are zero. */
static gboolean
reduce_to_dense (MusterKernel *k, const Reduce *reduces, GError **error)
{
  g_auto (Groups) g = {0};
  g_autoptr (MusterTensor) values = NULL;
  MusterTensor *out;
  Reduce reduce;
  if (!read_groups (k, &g, error) || (values = muster_number_input (k, 1, error)) == NULL ||
      (out = muster_number_output (k, 0, g.n_dims, g.dims, error)) == NULL)
    return FALSE;
  reduce = reduces[muster_loop_index (muster_tensor_dtype (values))];
  if (muster_tensor_n_bytes (out) > 0)
    memset (muster_tensor_data_mutable (out), 0, muster_tensor_n_bytes (out));
  for (gint64 i = 0, end; i < g.s.n; i = end) {
    const gint64 place = group_offset (&g, i);
    end = group_end (&g, i);
    if (place < 0) {
      muster_tensor_unref (out);
      return muster_fail (error, MUSTER_ERROR_INTERNAL, "A write index is outside of its bounds");
    }
    reduce (muster_tensor_data (values), g.order + i, end - i, muster_tensor_data_mutable (out),
            place);
  }
  return muster_wide_end (k, 0, out, error);
}

static gboolean
reduce_to_sparse (MusterKernel *k, const Reduce *reduces, GError **error)
{
  g_auto (Groups) g = {0};
  g_autoptr (MusterTensor) values = NULL;
  MusterTensor *out, *indices, *shape;
  gint64 n = 0, *to;
  Reduce reduce;
  if (!read_groups (k, &g, error) || (values = muster_number_input (k, 1, error)) == NULL)
    return FALSE;
  for (gint64 i = 0; i < g.s.n; i = group_end (&g, i))
    n++;
  indices = muster_kernel_output (k, 0, 2, (gint64[]){n, g.n_dims}, error);
  shape = indices == NULL ? NULL : muster_kernel_output (k, 2, 1, (gint64[]){g.n_dims}, error);
  out = shape == NULL ? NULL : muster_number_output (k, 1, 1, &n, error);
  if (out == NULL)
    return FALSE;
  if (g.n_dims > 0)
    memcpy (muster_tensor_data_mutable (shape), g.dims, (gsize)g.n_dims * sizeof *g.dims);
  reduce = reduces[muster_loop_index (muster_tensor_dtype (values))];
  to = muster_tensor_data_mutable (indices);
  n = 0;
  for (gint64 i = 0, end; i < g.s.n; i = end) {
    end = group_end (&g, i);
    for (int d = 0; d < g.s.n_dims; d++)
      if (!g.is_reduced[d] || g.keeps_dims)
        *to++ = g.is_reduced[d] ? 0 : row_at (&g, i)[d];
    reduce (muster_tensor_data (values), g.order + i, end - i, muster_tensor_data_mutable (out),
            n++);
  }
  return muster_wide_end (k, 1, out, error);
}

static gboolean
compute_sum (MusterKernel *k, GError **error)
{
  return reduce_to_dense (k, sums, error);
}

static gboolean
compute_max (MusterKernel *k, GError **error)
{
  return reduce_to_dense (k, largest, error);
}

static gboolean
compute_sum_sparse (MusterKernel *k, GError **error)
{
  return reduce_to_sparse (k, sums, error);
}

static gboolean
compute_max_sparse (MusterKernel *k, GError **error)
{
  return reduce_to_sparse (k, largest, error);
}

#define SOFTMAX(suffix, T)                                                                         \
  static void softmax_##suffix (const void *px, gint64 n, void *pout)                              \
  {                                                                                                \
    const T *x = px;                                                                               \
    T *out = pout, most = x[0], sum = 0;                                                           \
    for (gint64 i = 1; i < n; i++)                                                                 \
      most = MAX (most, x[i]);                                                                     \
    for (gint64 i = 0; i < n; i++)                                                                 \
      sum += out[i] = (T)exp ((double)(x[i] - most));                                              \
    for (gint64 i = 0; i < n; i++)                                                                 \
      out[i] /= sum;                                                                               \
  }
MUSTER_FLOAT_TYPES (SOFTMAX)

typedef void (*Softmax) (const void *x, gint64 n, void *out);
static const Softmax softmaxes[] = MUSTER_FLOAT_TABLE (softmax);

/* Softmax over the last dimension, for rows in order. */
static gboolean
compute_softmax (MusterKernel *k, GError **error)
{
  MusterSparse s;
  g_autoptr (MusterTensor) values = NULL;
  MusterTensor *out;
  const gint64 *indices;
  gsize size;
  if (!muster_sparse_read (k, 0, 1, 2, &s, error) || !muster_sparse_check_size (&s, error))
    return FALSE;
  if (s.n_dims < 2)
    return muster_invalid (error, "Input should have rank >= 2, but received rank %d", s.n_dims);
  values = muster_wide_input (k, 1, error);
  out = values == NULL ? NULL : muster_wide_output (k, 0, 1, &s.n, error);
  if (out == NULL)
    return FALSE;
  indices = muster_tensor_data (s.indices);
  size = muster_dtype_size (muster_tensor_dtype (values));
  for (gint64 i = 0, end; i < s.n; i = end) {
    for (end = i + 1; end < s.n; end++)
      if (muster_sparse_compare (indices + i * s.n_dims, indices + end * s.n_dims, s.n_dims - 1) !=
          0)
        break;
    softmaxes[muster_wide (muster_tensor_dtype (values))](
        (const guint8 *)muster_tensor_data (values) + (gsize)i * size, end - i,
        (guint8 *)muster_tensor_data_mutable (out) + (gsize)i * size);
  }
  return muster_wide_end (k, 0, out, error);
}

#define REDUCED    "input_indices:int64, input_values:T, input_shape:int64, reduction_axes:int32 -> "
#define SPARSE_OUT "output_indices:int64, output_values:T, output_shape:int64"

const MusterOp muster_sparse_reduce_ops[] = {
    {"SparseReduceSum", REDUCED "output:T", "T:number keep_dims", compute_sum, 0},
    {"SparseReduceMax", REDUCED "output:T", "T:real keep_dims", compute_max, 0},
    {"SparseReduceSumSparse", REDUCED SPARSE_OUT, "T:number keep_dims", compute_sum_sparse, 0},
    {"SparseReduceMaxSparse", REDUCED SPARSE_OUT, "T:real keep_dims", compute_max_sparse, 0},
    {"SparseSoftmax", "sp_indices:int64, sp_values:T, sp_shape:int64 -> output:T",
     "T:float|double|half", compute_softmax, 0},
    {NULL, NULL, NULL, NULL, 0},
};
