// SPDX-License-Identifier: Apache-2.0
/* Element-wise ops on two sparse tensors, or on a sparse and a dense one. */
#include "engine/kernels/math/complex.h"
#include "engine/kernels/sparse/sparse.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <math.h>
#include <string.h>

/* The merged rows of two sorted lists: for each row its position in a and in b, -1 if that lacks
 * it. */
typedef struct {
  gint64 n;
  gint64 *a, *b; /* (owned) */
} Merged;

static void
merged_clear (Merged *self)
{
  g_clear_pointer (&self->a, g_free);
  g_clear_pointer (&self->b, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Merged, merged_clear)

static gboolean
merge (MusterKernel *k, const MusterSparse *a, const MusterSparse *b, Merged *merged,
       GError **error)
{
  const gint64 *x = muster_tensor_data (a->indices), *y = muster_tensor_data (b->indices);
  const int n_dims = a->n_dims;
  if ((merged->a = muster_kernel_alloc (k, a->n + b->n, sizeof (gint64), error)) == NULL ||
      (merged->b = muster_kernel_alloc (k, a->n + b->n, sizeof (gint64), error)) == NULL)
    return FALSE;
  for (gint64 i = 0, j = 0; i < a->n || j < b->n; merged->n++) {
    const int order = i == a->n   ? 1
                      : j == b->n ? -1
                                  : muster_sparse_compare (x + i * n_dims, y + j * n_dims, n_dims);
    merged->a[merged->n] = order <= 0 ? i++ : -1;
    merged->b[merged->n] = order >= 0 ? j++ : -1;
  }
  return TRUE;
}

/* Copies the values at those positions; zero for -1. */
static MusterTensor *
gather_values (MusterKernel *k, MusterTensor *values, const gint64 *at, gint64 n, GError **error)
{
  const gsize size = muster_dtype_size (muster_tensor_dtype (values));
  MusterTensor *picked = muster_kernel_temporary (k, muster_tensor_dtype (values), 1, &n, error);
  guint8 *to = picked != NULL ? muster_tensor_data_mutable (picked) : NULL;
  for (gint64 i = 0; picked != NULL && i < n; i++, to += size)
    if (at[i] < 0)
      memset (to, 0, size);
    else
      memcpy (to, (const guint8 *)muster_tensor_data (values) + (gsize)at[i] * size, size);
  return picked;
}

/* Reads both operands, inputs 0 to 2 and 3 to 5, which must have the same shape. */
static gboolean
read_both (MusterKernel *k, MusterSparse *a, MusterSparse *b, GError **error)
{
  if (!muster_sparse_read (k, 0, 1, 2, a, error) || !muster_sparse_read (k, 3, 4, 5, b, error))
    return FALSE;
  if (a->n_dims != b->n_dims)
    return muster_invalid (error, "Operands do not have the same ranks; got shapes: %d and %d",
                           a->n_dims, b->n_dims);
  for (int d = 0; d < a->n_dims; d++)
    if (a->dims[d] != b->dims[d])
      return muster_invalid (error,
                             "Operands' shapes do not match: got %" G_GINT64_FORMAT
                             " and %" G_GINT64_FORMAT " for dimension %d",
                             a->dims[d], b->dims[d], d);
  return TRUE;
}

/* Computes the values of the merged rows. */
static MusterTensor *
combine (MusterKernel *k, const MusterLoop2 *loops, const MusterSparse *a, const MusterSparse *b,
         const Merged *merged, GError **error)
{
  const MusterDType dtype = muster_tensor_dtype (a->values);
  g_autoptr (MusterTensor) x = NULL, y = NULL;
  if (!muster_check_loop2 (loops, dtype, error) ||
      (x = gather_values (k, a->values, merged->a, merged->n, error)) == NULL ||
      (y = gather_values (k, b->values, merged->b, merged->n, error)) == NULL)
    return NULL;
  muster_run_loop2 (loops, dtype, dtype, merged->n, muster_tensor_data (x), 1,
                    muster_tensor_data (y), 1, muster_tensor_data_mutable (x));
  return g_steal_pointer (&x);
}

static gboolean
set_indices (MusterKernel *k, const MusterSparse *a, const MusterSparse *b, const Merged *merged,
             GError **error)
{
  const gsize size = (gsize)a->n_dims * sizeof (gint64);
  MusterTensor *out = muster_kernel_output (k, 0, 2, (gint64[]){merged->n, a->n_dims}, error);
  guint8 *to = out != NULL ? muster_tensor_data_mutable (out) : NULL;
  for (gint64 i = 0; out != NULL && size > 0 && i < merged->n; i++, to += size)
    memcpy (to,
            merged->a[i] >= 0
                ? (const guint8 *)muster_tensor_data (a->indices) + (gsize)merged->a[i] * size
                : (const guint8 *)muster_tensor_data (b->indices) + (gsize)merged->b[i] * size,
            size);
  return out != NULL;
}

/* TRUE if |x| of element i is at least the threshold. */
static gboolean
reaches (MusterTensor *values, gint64 i, MusterTensor *threshold)
{
  const void *data = muster_tensor_data (values), *limit = muster_tensor_data (threshold);
  gint64 x = 0, least = 0;
  switch (muster_tensor_dtype (values)) {
  case MUSTER_FLOAT:
    return *(const float *)limit <= fabsf (((const float *)data)[i]);
  case MUSTER_DOUBLE:
    return *(const double *)limit <= fabs (((const double *)data)[i]);
  case MUSTER_COMPLEX64:
    return *(const float *)limit <= cabsf (((const float complex *)data)[i]);
  case MUSTER_COMPLEX128:
    return *(const double *)limit <= cabs (((const double complex *)data)[i]);
  case MUSTER_INT32:
    return *(const gint32 *)limit <= ABS ((gint64)((const gint32 *)data)[i]);
  default:
    muster_widen (
        muster_tensor_dtype (values),
        (const guint8 *)data + (gsize)i * muster_dtype_size (muster_tensor_dtype (values)), 1, &x);
    muster_widen (muster_tensor_dtype (threshold), limit, 1, &least);
    return x < 0 ? least <= -1 || (guint64)least <= -(guint64)x : least <= x;
  }
}

/* Removes sums below the threshold. Elements of only one operand are kept. */
static void
drop_small_sums (Merged *merged, MusterTensor *sums, MusterTensor *threshold)
{
  const gsize size = muster_dtype_size (muster_tensor_dtype (sums));
  guint8 *data = muster_tensor_data_mutable (sums);
  gint64 kept = 0;
  for (gint64 i = 0; i < merged->n; i++) {
    if (merged->a[i] >= 0 && merged->b[i] >= 0 && !reaches (sums, i, threshold))
      continue;
    merged->a[kept] = merged->a[i];
    merged->b[kept] = merged->b[i];
    if (kept < i)
      memcpy (data + (gsize)kept * size, data + (gsize)i * size, size);
    kept++;
  }
  merged->n = kept;
}

static gboolean
compute_add (MusterKernel *k, GError **error)
{
  MusterSparse a, b;
  g_auto (Merged) merged = {0};
  g_autoptr (MusterTensor) sums = NULL;
  MusterTensor *threshold = muster_kernel_input (k, 6), *out;
  const MusterDType dtype = muster_kernel_output_dtype (k, 1);
  const MusterDType real = muster_dtype_is_complex (dtype) ? muster_complex_part (dtype) : dtype;
  if (muster_tensor_dtype (threshold) != real)
    return muster_invalid (error, "The threshold for %s is %s, not %s", muster_dtype_name (dtype),
                           muster_dtype_name (real),
                           muster_dtype_name (muster_tensor_dtype (threshold)));
  if (!read_both (k, &a, &b, error))
    return FALSE;
  if (muster_tensor_n_dims (threshold) != 0) {
    g_autofree char *shape = muster_shape_text (threshold);
    return muster_invalid (error, "The magnitude threshold must be a scalar: got shape %s", shape);
  }
  if (!merge (k, &a, &b, &merged, error) ||
      (sums = combine (k, muster_add_loops, &a, &b, &merged, error)) == NULL)
    return FALSE;
  drop_small_sums (&merged, sums, threshold);
  out = muster_kernel_output (k, 1, 1, &merged.n, error);
  if (out == NULL || !set_indices (k, &a, &b, &merged, error))
    return FALSE;
  if (merged.n > 0)
    memcpy (muster_tensor_data_mutable (out), muster_tensor_data (sums),
            muster_tensor_n_bytes (out));
  muster_kernel_set_output (k, 2, muster_tensor_ref (muster_kernel_input (k, 2)));
  return TRUE;
}

/* Sets output i: the gradient for each row of indices, zero for rows that aren't in the sum. */
static gboolean
set_gradient (MusterKernel *k, int i, MusterTensor *indices, GError **error)
{
  MusterTensor *grad = muster_kernel_input (k, 0), *sum = muster_kernel_input (k, 3), *out;
  const gint64 n = muster_tensor_dims (indices)[0], n_sum = muster_tensor_dims (sum)[0];
  const int n_dims = (int)muster_tensor_dims (sum)[1];
  const gint64 *x = muster_tensor_data (indices), *y = muster_tensor_data (sum);
  const gsize size = muster_dtype_size (muster_tensor_dtype (grad));
  guint8 *to;
  out = muster_kernel_output (k, i, 1, &n, error);
  if (out == NULL)
    return FALSE;
  to = muster_tensor_data_mutable (out);
  if (n > 0)
    memset (to, 0, (gsize)n * size);
  for (gint64 at = 0, j = 0; at < n && j < n_sum;) {
    const int order = muster_sparse_compare (x + at * n_dims, y + j * n_dims, n_dims);
    if (order == 0)
      memcpy (to + (gsize)at * size, (const guint8 *)muster_tensor_data (grad) + (gsize)j * size,
              size);
    at += order <= 0;
    j += order >= 0;
  }
  return TRUE;
}

static gboolean
compute_add_grad (MusterKernel *k, GError **error)
{
  MusterTensor *grad = muster_kernel_input (k, 0), *sum = muster_kernel_input (k, 3);
  for (int i = 1; i < 4; i++)
    if (muster_tensor_n_dims (muster_kernel_input (k, i)) != 2)
      return muster_invalid (error, "a_indices, b_indices and sum_indices must be matrices");
  if (muster_tensor_n_dims (grad) != 1)
    return muster_invalid (error, "backprop_val_grad must be a vector");
  if (muster_tensor_dims (grad)[0] != muster_tensor_dims (sum)[0])
    return muster_invalid (error,
                           "# elements of backprop_val_grad and # rows of sum_indices should "
                           "match (#nnz of sum): got %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           muster_tensor_dims (grad)[0], muster_tensor_dims (sum)[0]);
  for (int i = 1; i < 3; i++)
    if (muster_tensor_dims (muster_kernel_input (k, i))[1] != muster_tensor_dims (sum)[1])
      return muster_invalid (error, "The densified operands should have the same ndims");
  return set_gradient (k, 0, muster_kernel_input (k, 1), error) &&
         set_gradient (k, 1, muster_kernel_input (k, 2), error);
}

static gboolean
combine_all (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterSparse a, b;
  g_auto (Merged) merged = {0};
  MusterTensor *values;
  if (!read_both (k, &a, &b, error) || !muster_sparse_check_inside (&a, error) ||
      !muster_sparse_check_inside (&b, error) || !merge (k, &a, &b, &merged, error) ||
      (values = combine (k, loops, &a, &b, &merged, error)) == NULL)
    return FALSE;
  muster_kernel_set_output (k, 1, values);
  return set_indices (k, &a, &b, &merged, error);
}

static gboolean
compute_maximum (MusterKernel *k, GError **error)
{
  return combine_all (k, muster_maximum_loops, error);
}

static gboolean
compute_minimum (MusterKernel *k, GError **error)
{
  return combine_all (k, muster_minimum_loops, error);
}

/* Broadcasts a dense tensor to the shape of s: returns the position in it for each element of s. */
static gint64 *
broadcast_offsets (MusterKernel *k, const MusterSparse *s, MusterTensor *dense, GError **error)
{
  const gint64 *index = muster_tensor_data (s->indices), *dims = muster_tensor_dims (dense);
  const int n_dims = muster_tensor_n_dims (dense), behind = s->n_dims - n_dims;
  g_autofree gint64 *places = muster_kernel_alloc (k, s->n, sizeof (gint64), error);

  for (int d = 0; places != NULL && d < n_dims; d++)
    if (behind < 0 || (dims[d] != 1 && dims[d] != s->dims[d + behind]) ||
        dims[d] > s->dims[d + behind]) {
      g_autofree char *a = muster_shape_to_string (s->n_dims, s->dims);
      g_autofree char *b = muster_shape_text (dense);
      muster_invalid (error,
                      "SparseDenseBinaryOpShared broadcasts dense to sparse only; got "
                      "incompatible shapes: %s vs. %s",
                      a, b);
      return NULL;
    }
  if (places == NULL)
    return NULL;
  for (gint64 i = 0; i < s->n; i++, index += s->n_dims) {
    places[i] = 0;
    for (int d = 0; d < s->n_dims; d++) {
      if (index[d] < 0 || index[d] >= s->dims[d]) {
        muster_invalid (error, "Provided indices are out-of-bounds w.r.t. dense side with "
                               "broadcasted shape");
        return NULL;
      }
      if (d >= behind)
        places[i] = places[i] * dims[d - behind] + (dims[d - behind] == 1 ? 0 : index[d]);
    }
  }
  return g_steal_pointer (&places);
}

static gboolean
with_dense (MusterKernel *k, const MusterLoop2 *loops, GError **error)
{
  MusterTensor *dense = muster_kernel_input (k, 3), *out;
  const MusterDType dtype = muster_tensor_dtype (dense);
  MusterSparse s;
  g_autofree gint64 *places = NULL;
  g_autoptr (MusterTensor) picked = NULL;

  if (!muster_sparse_read (k, 0, 1, 2, &s, error) || !muster_sparse_check_size (&s, error) ||
      !muster_check_loop2 (loops, dtype, error) ||
      (places = broadcast_offsets (k, &s, dense, error)) == NULL ||
      (picked = gather_values (k, dense, places, s.n, error)) == NULL)
    return FALSE;
  if (loops == muster_div_loops && muster_has_zero_divisor (picked))
    return muster_invalid (error, "SparseDenseCwiseDiv cannot divide by zero");
  out = muster_kernel_output (k, 0, 1, &s.n, error);
  if (out == NULL)
    return FALSE;
  muster_run_loop2 (loops, dtype, dtype, s.n, muster_tensor_data (s.values), 1,
                    muster_tensor_data (picked), 1, muster_tensor_data_mutable (out));
  return TRUE;
}

static gboolean
compute_dense_add (MusterKernel *k, GError **error)
{
  return with_dense (k, muster_add_loops, error);
}

static gboolean
compute_dense_mul (MusterKernel *k, GError **error)
{
  return with_dense (k, muster_mul_loops, error);
}

static gboolean
compute_dense_div (MusterKernel *k, GError **error)
{
  return with_dense (k, muster_div_loops, error);
}

/* Adds a sparse tensor to a copy of a dense one. */
static gboolean
compute_add_to_dense (MusterKernel *k, GError **error)
{
  MusterTensor *b = muster_kernel_input (k, 3), *out;
  const MusterDType dtype = muster_tensor_dtype (b);
  const gsize size = muster_dtype_size (dtype);
  MusterSparse s;
  guint8 *to;
  if (!muster_sparse_read (k, 0, 1, 2, &s, error) ||
      !muster_check_loop2 (muster_add_loops, dtype, error))
    return FALSE;
  if (s.n_dims != muster_tensor_n_dims (b))
    return muster_invalid (error, "Two operands have different ranks; received: %d and %d",
                           s.n_dims, muster_tensor_n_dims (b));
  for (int d = 0; d < s.n_dims; d++)
    if (s.dims[d] != muster_tensor_dims (b)[d])
      return muster_invalid (error,
                             "Dimension %d does not equal (no broadcasting is supported): sparse "
                             "side %" G_GINT64_FORMAT " vs dense side %" G_GINT64_FORMAT,
                             d, s.dims[d], muster_tensor_dims (b)[d]);
  out = muster_kernel_output (k, 0, s.n_dims, s.dims, error);
  if (out == NULL)
    return FALSE;
  to = muster_tensor_data_mutable (out);
  if (muster_tensor_n_bytes (out) > 0)
    memcpy (to, muster_tensor_data (b), muster_tensor_n_bytes (out));
  for (gint64 i = 0; i < s.n; i++) {
    const gint64 at = muster_sparse_offset (s.indices, i, s.n_dims, s.dims);
    if (at < 0)
      return muster_sparse_refuse_index (s.indices, i, s.n_dims, s.dims, error);
    muster_run_loop2 (muster_add_loops, dtype, dtype, 1, to + (gsize)at * size, 1,
                      (const guint8 *)muster_tensor_data (s.values) + (gsize)i * size, 1,
                      to + (gsize)at * size);
  }
  return TRUE;
}

#define TWO        "a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64"
#define WITH_DENSE "sp_indices:int64, sp_values:T, sp_shape:int64, dense:T -> output:T"

const MusterOp muster_sparse_merge_ops[] = {
    {"SparseAdd", TWO ", thresh:Treal -> sum_indices:int64, sum_values:T, sum_shape:int64",
     "T:float|double|int64|int32|int16|int8|complex64|complex128 "
     "Treal:float|double|int64|int32|int16|int8",
     compute_add, 0},
    {"SparseAddGrad",
     "backprop_val_grad:T, a_indices:int64, b_indices:int64, sum_indices:int64 -> a_val_grad:T, "
     "b_val_grad:T",
     "T:number", compute_add_grad, 0},
    {"SparseSparseMaximum", TWO " -> output_indices:int64, output_values:T", "T:real",
     compute_maximum, 0},
    {"SparseSparseMinimum", TWO " -> output_indices:int64, output_values:T", "T:real",
     compute_minimum, 0},
    {"SparseDenseCwiseAdd", WITH_DENSE, "T:real", compute_dense_add, 0},
    {"SparseDenseCwiseMul", WITH_DENSE, "T:real", compute_dense_mul, 0},
    {"SparseDenseCwiseDiv", WITH_DENSE, "T:real", compute_dense_div, 0},
    {"SparseTensorDenseAdd", "a_indices:Tindices, a_values:T, a_shape:Tindices, b:T -> output:T",
     "T:number Tindices:int64|int32", compute_add_to_dense, 0},
    {NULL, NULL, NULL, NULL, 0},
};
