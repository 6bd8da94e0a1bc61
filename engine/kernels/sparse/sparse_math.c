// SPDX-License-Identifier: Apache-2.0
/* Products of a sparse matrix and a dense one. */
#include "engine/kernels/math/arithmetic.h"
#include "engine/kernels/math/complex.h"
#include "engine/kernels/sparse/sparse_op_tables.h"

#include <string.h>

/* The shapes for out[row, :] += value × b[col, :], or b's transpose. */
typedef struct {
  gint64 rows, cols, n; /* a is rows × cols, the product rows × n */
  gboolean adjoint_a, adjoint_b;
  gint64 b_rows, b_cols;
} Shapes;

static gboolean
read_shapes (MusterKernel *k, Shapes *s, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 1);
  MusterTensor *b = muster_kernel_input (k, 3);
  gint64 dims[2];
  if (muster_tensor_n_dims (b) != 2)
    return muster_invalid (error, "Tensor 'b' is not a matrix");
  if (muster_tensor_n_dims (muster_kernel_input (k, 2)) != 1)
    return muster_invalid (error, "Tensor 'a_shape' is not a vector");
  if (muster_tensor_n_elements (muster_kernel_input (k, 2)) != 2)
    return muster_invalid (error, "Tensor 'a_shape' must have 2 elements");
  if (muster_tensor_n_dims (values) != 1)
    return muster_invalid (error, "Tensor 'a_values' is not a vector");
  if (muster_tensor_n_dims (indices) != 2)
    return muster_invalid (error, "Tensor 'a_indices' is not a matrix");
  if (muster_tensor_dims (indices)[0] != muster_tensor_dims (values)[0])
    return muster_invalid (error, "Number of rows of a_indices does not match number of entries in "
                                  "a_values");
  if (muster_tensor_dims (indices)[1] != 2)
    return muster_invalid (error, "Number of columns of a_indices does not match number of entries "
                                  "in a_shape");
  if (muster_kernel_input_ints (k, 2, dims, 2, error) < 0)
    return FALSE;
  s->adjoint_a = muster_kernel_attr_bool (k, "adjoint_a", FALSE);
  s->adjoint_b = muster_kernel_attr_bool (k, "adjoint_b", FALSE);
  s->rows = dims[s->adjoint_a];
  s->cols = dims[!s->adjoint_a];
  s->b_rows = muster_tensor_dims (b)[0];
  s->b_cols = muster_tensor_dims (b)[1];
  s->n = s->adjoint_b ? s->b_rows : s->b_cols;
  if (s->cols != (s->adjoint_b ? s->b_cols : s->b_rows))
    return muster_invalid (error,
                           "Cannot multiply A and B because inner dimension does not match: "
                           "%" G_GINT64_FORMAT " vs. %" G_GINT64_FORMAT
                           ".  Did you forget a transpose?  Dimensions of A: [%" G_GINT64_FORMAT
                           ", %" G_GINT64_FORMAT ").",
                           s->cols, s->adjoint_b ? s->b_cols : s->b_rows, dims[0], dims[1]);
  return TRUE;
}

static gboolean
check_indices (MusterTensor *indices, const Shapes *s, GError **error)
{
  for (gint64 i = 0; i < muster_tensor_dims (indices)[0]; i++) {
    const gint64 row = muster_int_at (indices, 2 * i + s->adjoint_a);
    const gint64 col = muster_int_at (indices, 2 * i + !s->adjoint_a);
    if (row < 0 || row >= s->rows || col < 0 || col >= s->cols)
      return muster_invalid (error,
                             "k (%" G_GINT64_FORMAT ") from index[%" G_GINT64_FORMAT
                             ",%d] out of bounds (>=%" G_GINT64_FORMAT ")",
                             col < 0 || col >= s->cols ? col : row, i,
                             col < 0 || col >= s->cols ? !s->adjoint_a : s->adjoint_a,
                             col < 0 || col >= s->cols ? s->cols : s->rows);
  }
  return TRUE;
}

#define MULTIPLY(suffix, T)                                                                        \
  static void multiply_##suffix (const Shapes *s, MusterTensor *indices, const void *pvalues,      \
                                 const void *pb, void *pout)                                       \
  {                                                                                                \
    const T *values = pvalues, *b = pb;                                                            \
    T *out = pout;                                                                                 \
    const gint64 step = s->adjoint_b ? s->b_cols : 1;                                              \
    for (gint64 i = 0; i < muster_tensor_dims (indices)[0]; i++) {                                 \
      const gint64 row = muster_int_at (indices, 2 * i + s->adjoint_a);                            \
      const gint64 col = muster_int_at (indices, 2 * i + !s->adjoint_a);                           \
      const T *from = b + (s->adjoint_b ? col : col * s->b_cols);                                  \
      T *to = out + row * s->n;                                                                    \
      for (gint64 j = 0; j < s->n; j++)                                                            \
        to[j] = (T)(to[j] + (T)(values[i] * from[j * step]));                                      \
    }                                                                                              \
  }
MULTIPLY (f32, float)
MULTIPLY (f64, double)
/* integers wrap */
MULTIPLY (i32, guint32)
MULTIPLY (i64, guint64)
MULTIPLY (u64, guint64)
MULTIPLY (c64, float complex)
MULTIPLY (c128, double complex)

typedef void (*Multiply) (const Shapes *s, MusterTensor *indices, const void *values, const void *b,
                          void *out);
static const Multiply multiplies[] = MUSTER_NUMBER_TABLE (multiply);

/* The adjoint of a complex matrix is also conjugated. */
static MusterTensor *
number_input (MusterKernel *k, int i, gboolean is_adjoint, GError **error)
{
  MusterTensor *x = muster_number_input (k, i, error);
  if (x == NULL || !is_adjoint || !muster_dtype_is_complex (muster_tensor_dtype (x)))
    return x;
  g_autoptr (MusterTensor) plain = x;
  MusterTensor *conjugates = muster_kernel_temporary (
      k, muster_tensor_dtype (x), muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (conjugates != NULL)
    muster_conjugate (muster_tensor_dtype (x), muster_tensor_n_elements (x), muster_tensor_data (x),
                      muster_tensor_data_mutable (conjugates));
  return conjugates;
}

static gboolean
compute_multiply (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) values = NULL, b = NULL;
  MusterTensor *out;
  Shapes s;
  if (!read_shapes (k, &s, error))
    return FALSE;
  const gboolean is_empty = s.rows == 0 || s.n == 0 || s.cols == 0; /* its indices don't matter */
  if ((!is_empty && !check_indices (muster_kernel_input (k, 0), &s, error)) ||
      (values = number_input (k, 1, s.adjoint_a, error)) == NULL ||
      (b = number_input (k, 3, s.adjoint_b, error)) == NULL ||
      (out = muster_number_output (k, 0, 2, (gint64[]){s.rows, s.n}, error)) == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (out) > 0)
    memset (muster_tensor_data_mutable (out), 0, muster_tensor_n_bytes (out));
  if (!is_empty)
    multiplies[muster_loop_index (muster_tensor_dtype (values))](
        &s, muster_kernel_input (k, 0), muster_tensor_data (values), muster_tensor_data (b),
        muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

const MusterOp muster_sparse_math_ops[] = {
    {"SparseTensorDenseMatMul", "a_indices:Tindices, a_values:T, a_shape:int64, b:T -> product:T",
     "T:number Tindices:int64|int32 adjoint_a adjoint_b", compute_multiply, 0},
    {NULL, NULL, NULL, NULL, 0},
};
