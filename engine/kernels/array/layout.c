// SPDX-License-Identifier: Apache-2.0
/* Ops that move elements: concatenation, splitting, tiling, transposition. They work for all
 * dtypes, as they don't interpret elements, except for the conjugate of complex numbers. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/math/complex.h"

#include <string.h>

static gboolean
transpose (MusterKernel *k, gboolean conjugates, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 perm[MUSTER_MAX_DIMS], dims[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS];
  gint64 own_steps[MUSTER_MAX_DIMS], to_steps[MUSTER_MAX_DIMS];
  int n = !muster_check_vector (k, 1, "perm", error)
              ? -1
              : muster_kernel_input_ints (k, 1, perm, MUSTER_MAX_DIMS, error);
  gboolean seen[MUSTER_MAX_DIMS] = {FALSE};
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (n < 0)
    return FALSE;
  if (n != muster_tensor_n_dims (x))
    return muster_invalid (error,
                           "transpose expects a vector of size %d. But input(1) is a vector "
                           "of size %d",
                           muster_tensor_n_dims (x), n);
  muster_dense_steps (n, muster_tensor_dims (x), own_steps);
  for (int i = 0; i < n; i++) {
    gint64 axis = perm[i] < 0 ? perm[i] + n : perm[i];
    if (axis < 0 || axis >= n)
      return muster_invalid (error, "%" G_GINT64_FORMAT " is out of range [0 .. %d)", perm[i], n);
    if (seen[axis])
      return muster_invalid (error,
                             "%" G_GINT64_FORMAT " is missing from {perm}, which isn't a "
                             "permutation",
                             axis);
    seen[axis] = TRUE;
    dims[i] = muster_tensor_dims (x)[axis];
    steps[i] = own_steps[axis];
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, dims, error))
    return FALSE;
  muster_dense_steps (n, dims, to_steps);
  muster_copy_block (result.size, n, dims, result.data, to_steps, from.data, steps);
  if (conjugates && muster_dtype_is_complex (result.dtype))
    muster_conjugate (result.dtype, result.n, result.data, result.data);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_transpose (MusterKernel *k, GError **error)
{
  return transpose (k, FALSE, error);
}

static gboolean
compute_conjugate_transpose (MusterKernel *k, GError **error)
{
  return transpose (k, TRUE, error);
}

/* Concatenation. A tensor consists of rows (the dimensions before the axis) of runs (the axis and
 * those after it). Row i of the result is the concatenation of row i of all inputs. */

/* Copies an input's rows, each a run of elements, to their places in the result. */
static void
copy_rows (gsize size, gint64 rows, guint8 *to, gint64 to_run, const guint8 *from, gint64 from_run,
           gint64 run)
{
  gint64 dims[] = {rows, run}, to_steps[] = {to_run, 1}, from_steps[] = {from_run, 1};
  muster_copy_block (size, 2, dims, to, to_steps, from, from_steps);
}

static gboolean
check_part (MusterTensor *first, MusterTensor *part, int index, int axis, GError **error)
{
  int n = muster_tensor_n_dims (first);
  gboolean fits = n == muster_tensor_n_dims (part);
  g_autofree char *a = NULL, *b = NULL;

  for (int i = 0; fits && i < n; i++)
    fits = i == axis || muster_tensor_dims (first)[i] == muster_tensor_dims (part)[i];
  if (fits)
    return TRUE;
  a = muster_shape_text (first);
  b = muster_shape_text (part);
  if (n != muster_tensor_n_dims (part))
    return muster_invalid (
        error,
        "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = "
        "%s",
        a, index, b);
  return muster_invalid (
      error,
      "ConcatOp : Dimension %d in both shapes must be equal: shape[0] = %s vs. shape[%d] = "
      "%s",
      axis, a, index, b);
}

/* Concatenates inputs first..first+n along axis. */
static gboolean
concat (MusterKernel *k, int first, int n, gint64 wanted_axis, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, first);
  int n_dims = muster_tensor_n_dims (x), axis = 0;
  gint64 dims[MUSTER_MAX_DIMS], rows, inner, done = 0, run;
  g_auto (MusterResult) result = {0};
  if (wanted_axis < -n_dims || wanted_axis >= n_dims)
    return muster_invalid (error,
                           "ConcatOp : Expected concatenating dimensions in the range [%d, %d), "
                           "but got %" G_GINT64_FORMAT,
                           -n_dims, n_dims, wanted_axis);
  if (!muster_check_axis (wanted_axis, n_dims, &axis, error))
    return FALSE;
  memcpy (dims, muster_tensor_dims (x), n_dims * sizeof *dims);
  for (int i = 1; i < n; i++) {
    MusterTensor *part = muster_kernel_input (k, first + i);
    if (!check_part (x, part, i, axis, error))
      return FALSE;
    dims[axis] = (gint64)((guint64)dims[axis] + (guint64)muster_tensor_dims (part)[axis]);
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n_dims, dims, error))
    return FALSE;
  rows = muster_dims_product (dims, 0, axis);
  inner = muster_dims_product (dims, axis + 1, n_dims);
  run = (gint64)((guint64)dims[axis] * (guint64)inner);
  for (int i = 0; i < n && result.n > 0; i++) {
    MusterTensor *part = muster_kernel_input (k, first + i);
    MusterElements from = muster_elements (part);
    gint64 own = muster_tensor_dims (part)[axis] * inner;
    copy_rows (result.size, rows, result.data + done * (gint64)result.size, run, from.data, own,
               own);
    done += own;
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_concat (MusterKernel *k, GError **error)
{
  return muster_check_one (k, 0, "Concat dim", error) &&
         concat (k, 1, muster_kernel_n_inputs (k) - 1, muster_kernel_input_int (k, 0), error);
}

static gboolean
compute_concat_v2 (MusterKernel *k, GError **error)
{
  int n = muster_kernel_n_inputs (k) - 1;
  return muster_check_one (k, n, "Concat dim", error) &&
         concat (k, 0, n, muster_kernel_input_int (k, n), error);
}

/* Pack concatenates tensors along a new axis; each input has size one there. */
static gboolean
compute_pack (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n_dims = muster_tensor_n_dims (x), n = muster_kernel_n_inputs (k), axis = 0;
  gint64 dims[MUSTER_MAX_DIMS + 1], rows, run;
  g_auto (MusterResult) result = {0};
  if (!muster_check_axis (muster_kernel_attr_int (k, "axis", 0), n_dims + 1, &axis, error))
    return FALSE;
  for (int i = 1; i < n; i++)
    if (!muster_same_shape (x, muster_kernel_input (k, i))) {
      g_autofree char *a = muster_shape_text (x);
      g_autofree char *b = muster_shape_text (muster_kernel_input (k, i));
      return muster_invalid (
          error, "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
          a, i, b);
    }
  for (int i = 0; i <= n_dims; i++)
    dims[i] = i == axis ? n : muster_tensor_dims (x)[i > axis ? i - 1 : i];
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n_dims + 1, dims, error))
    return FALSE;
  rows = muster_dims_product (dims, 0, axis);
  run = muster_dims_product (dims, axis + 1, n_dims + 1);
  for (int i = 0; i < n && result.n > 0; i++) {
    MusterElements from = muster_elements (muster_kernel_input (k, i));
    copy_rows (result.size, rows, result.data + i * run * (gint64)result.size, n * run, from.data,
               run, run);
  }
  return muster_result_end (&result, k, 0, error);
}

/* Splitting: output i takes sizes[i] along axis; with drops, the axis is removed. */
static gboolean
cut (MusterKernel *k, MusterTensor *x, int axis, const gint64 *sizes, int n, gboolean drops,
     GError **error)
{
  int n_dims = muster_tensor_n_dims (x), n_out = 0;
  const gint64 *dims = muster_tensor_dims (x);
  gint64 rows = muster_dims_product (dims, 0, axis), done = 0;
  gint64 inner = muster_dims_product (dims, axis + 1, n_dims);
  MusterElements from = muster_elements (x);
  gint64 out[MUSTER_MAX_DIMS];
  for (int i = 0; i < n_dims; i++)
    if (i != axis || !drops)
      out[n_out++] = dims[i];
  for (int i = 0; i < n; i++) {
    g_auto (MusterResult) result = {0};
    gint64 own = sizes[i] * inner;
    if (!drops)
      out[axis] = sizes[i];
    if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n_out, out, error))
      return FALSE;
    if (result.n > 0)
      copy_rows (result.size, rows, result.data, own, from.data + done * (gint64)from.size,
                 dims[axis] * inner, own);
    done += own;
    if (!muster_result_end (&result, k, i, error))
      return FALSE;
  }
  return TRUE;
}

static gint64 *
equal_sizes (MusterKernel *k, int n, gint64 size, GError **error)
{
  gint64 *sizes = muster_kernel_alloc (k, n, sizeof *sizes, error);
  for (int i = 0; sizes != NULL && i < n; i++)
    sizes[i] = size;
  return sizes;
}

static gboolean
compute_unpack (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_kernel_n_outputs (k), axis = 0;
  g_autofree gint64 *sizes = equal_sizes (k, n, 1, error);

  if (sizes == NULL || !muster_check_axis (muster_kernel_attr_int (k, "axis", 0),
                                           muster_tensor_n_dims (x), &axis, error))
    return FALSE;
  if (muster_tensor_dims (x)[axis] != n)
    return muster_invalid (error,
                           "Input shape axis %d must equal %d, got shape with %" G_GINT64_FORMAT,
                           axis, n, muster_tensor_dims (x)[axis]);
  return cut (k, x, axis, sizes, n, TRUE, error);
}

static gboolean
compute_split (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 1);
  int n = muster_kernel_n_outputs (k), axis = 0;
  g_autofree gint64 *sizes = NULL;
  gint64 size;

  if (!muster_check_scalar (k, 0, "split_dim", error) ||
      !muster_check_axis (muster_kernel_input_int (k, 0), muster_tensor_n_dims (x), &axis, error))
    return FALSE;
  size = muster_tensor_dims (x)[axis];
  if (n <= 0 || size % n != 0)
    return muster_invalid (error,
                           "Number of ways to split should evenly divide the split dimension, but "
                           "got split_dim %d (size = %" G_GINT64_FORMAT ") and num_split %d",
                           axis, size, n);
  sizes = equal_sizes (k, n, size / n, error);
  return sizes != NULL && cut (k, x, axis, sizes, n, FALSE, error);
}

/* One size may be -1: the rest. */
static gboolean
complete_sizes (gint64 *sizes, int n, gint64 total, GError **error)
{
  gint64 sum = 0;
  int unknown = -1;
  for (int i = 0; i < n; i++) {
    if (sizes[i] < -1 || (sizes[i] == -1 && unknown >= 0) || sizes[i] > total - sum)
      return muster_invalid (error,
                             "Determined shape must either match input shape along split_dim "
                             "exactly if fully specified, or be less than the size of the input "
                             "along split_dim if not fully specified.  Got: %" G_GINT64_FORMAT,
                             sizes[i]);
    if (sizes[i] == -1)
      unknown = i;
    else
      sum += sizes[i];
  }
  if (unknown >= 0)
    sizes[unknown] = total - sum;
  else if (sum != total)
    return muster_invalid (error,
                           "Determined shape must either match input shape along split_dim exactly "
                           "if fully specified, or be less than the size of the input along "
                           "split_dim if not fully specified.  Got: %" G_GINT64_FORMAT,
                           sum);
  return TRUE;
}

static gboolean
compute_split_v (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_kernel_n_outputs (k), axis = 0;
  g_autofree gint64 *sizes = muster_kernel_alloc (k, n, sizeof *sizes, error);
  int given = sizes == NULL || !muster_check_vector (k, 1, "size_splits", error)
                  ? -1
                  : muster_kernel_input_ints (k, 1, sizes, n, error);

  if (given < 0)
    return FALSE;
  if (muster_tensor_n_elements (muster_kernel_input (k, 2)) != 1)
    return muster_invalid (error, "split_dim_tensor must have exactly one element.");
  if (!muster_check_axis (muster_kernel_input_int (k, 2), muster_tensor_n_dims (x), &axis, error))
    return FALSE;
  if (given != n)
    return muster_invalid (error, "size_splits has %d values, but there are %d outputs", given, n);
  return complete_sizes (sizes, n, muster_tensor_dims (x)[axis], error) &&
         cut (k, x, axis, sizes, n, FALSE, error);
}

static gboolean
compute_slice (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 begin[MUSTER_MAX_DIMS], size[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS];
  gint64 to_steps[MUSTER_MAX_DIMS], start = 0;
  int n = muster_tensor_n_dims (x);
  const gboolean fits =
      muster_check_vector (k, 1, "begin", error) && muster_check_vector (k, 2, "size", error);
  int n_begin = !fits ? -1 : muster_kernel_input_ints (k, 1, begin, MUSTER_MAX_DIMS, error);
  int n_size = n_begin < 0 ? -1 : muster_kernel_input_ints (k, 2, size, MUSTER_MAX_DIMS, error);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};

  if (n_size < 0)
    return FALSE;
  if (n_begin != n || n_size != n)
    return muster_invalid (error,
                           "Expected begin and size arguments to be 1-D tensors of size %d, but "
                           "got shapes [%d] and [%d] instead.",
                           n, n_begin, n_size);
  muster_dense_steps (n, muster_tensor_dims (x), steps);
  for (int i = 0; i < n; i++) {
    gint64 dim = muster_tensor_dims (x)[i];
    if (begin[i] < 0 || begin[i] > dim)
      return muster_invalid (
          error, "Expected begin[%d] in [0, %" G_GINT64_FORMAT "], but got %" G_GINT64_FORMAT, i,
          dim, begin[i]);
    if (size[i] == -1)
      size[i] = dim - begin[i];
    if (size[i] < 0 || size[i] > dim - begin[i])
      return muster_invalid (
          error, "Expected size[%d] in [0, %" G_GINT64_FORMAT "], but got %" G_GINT64_FORMAT, i,
          dim - begin[i], size[i]);
    start = (gint64)((guint64)start + (guint64)begin[i] * (guint64)steps[i]);
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, size, error))
    return FALSE;
  muster_dense_steps (n, size, to_steps);
  if (result.n > 0)
    muster_copy_block (result.size, n, size, result.data, to_steps,
                       from.data + start * (gint64)from.size, steps);
  return muster_result_end (&result, k, 0, error);
}

/* Tile treats each dimension as two, the copies and the size; the copies' stride is 0. */
static gboolean
compute_tile (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x);
  gint64 times[MUSTER_MAX_DIMS], dims[MUSTER_MAX_DIMS], own[MUSTER_MAX_DIMS];
  gint64 out[MUSTER_MAX_DIMS], sizes[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS];
  int n_times = !muster_check_vector (k, 1, "multiples", error)
                    ? -1
                    : muster_kernel_input_ints (k, 1, times, MUSTER_MAX_DIMS, error);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (n_times < 0)
    return FALSE;
  if (n_times != n || n > MUSTER_MAX_DIMS / 2)
    return muster_invalid (error,
                           "Expected multiples argument to be a vector of length %d but got "
                           "length %d",
                           n, n_times);
  for (int i = 0; i < n; i++) {
    gint64 dim = muster_tensor_dims (x)[i];
    if (times[i] < 0)
      return muster_invalid (error, "Expected multiples[%d] >= 0, but got %" G_GINT64_FORMAT, i,
                             times[i]);
    if (dim > 0 && times[i] > G_MAXINT64 / dim)
      return muster_invalid (error, "The tiled dimension %d is too large", i);
    dims[i] = dim * times[i];
  }
  if (!muster_result_begin_unset (&result, k, muster_tensor_dtype (x), n, dims, error))
    return FALSE;
  muster_dense_steps (n, muster_tensor_dims (x), own);
  muster_dense_steps (n, dims, out);
  for (int i = 0; i < n && result.n > 0; i++) {
    gint64 dim = muster_tensor_dims (x)[i];
    sizes[2 * i] = times[i];
    to[2 * i] = out[i] * dim;
    steps[2 * i] = 0;
    sizes[2 * i + 1] = dim;
    to[2 * i + 1] = out[i];
    steps[2 * i + 1] = own[i];
  }
  if (result.n > 0)
    muster_copy_block (result.size, 2 * n, sizes, result.data, to, from.data, steps);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
pad (MusterKernel *k, MusterTensor *value, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *pads = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (x);
  gint64 dims[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS], start = 0;
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (muster_tensor_n_dims (pads) != 2 || muster_tensor_dims (pads)[0] != n ||
      muster_tensor_dims (pads)[1] != 2) {
    g_autofree char *shape = muster_shape_text (pads);
    return muster_invalid (error, "paddings must be a matrix with %d rows and 2 columns: %s", n,
                           shape);
  }
  for (int i = 0; i < n; i++) {
    gint64 before = muster_int_at (pads, 2 * i), after = muster_int_at (pads, 2 * i + 1);
    gint64 dim = muster_tensor_dims (x)[i];
    if (before < 0 || after < 0)
      return muster_invalid (
          error, "Paddings must be non-negative: %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, before,
          after);
    if (before > G_MAXINT64 - dim || after > G_MAXINT64 - dim - before)
      return muster_invalid (error, "The padded dimension %d is too large", i);
    dims[i] = before + dim + after;
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, dims, error))
    return FALSE;
  if (value != NULL && muster_tensor_n_elements (value) == 1) {
    MusterElements one = muster_elements (value);
    gint64 zero = 0, unit = 1;
    muster_copy_block (result.size, 1, &result.n, result.data, &unit, one.data, &zero);
  }
  muster_dense_steps (n, dims, to);
  muster_dense_steps (n, muster_tensor_dims (x), steps);
  for (int i = 0; i < n && result.n > 0; i++)
    start += muster_int_at (pads, 2 * i) * to[i];
  if (result.n > 0 && muster_tensor_n_elements (x) > 0)
    muster_copy_block (result.size, n, muster_tensor_dims (x),
                       result.data + start * (gint64)result.size, to, from.data, steps);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_pad (MusterKernel *k, GError **error)
{
  return pad (k, NULL, error);
}

static gboolean
compute_pad_v2 (MusterKernel *k, GError **error)
{
  return muster_check_scalar (k, 2, "constant_values", error) &&
         pad (k, muster_kernel_input (k, 2), error);
}

static gboolean
compute_reverse (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *axes = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (x), axis = 0;
  gint64 to[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS], start = 0;
  gboolean reversed[MUSTER_MAX_DIMS] = {FALSE};
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (n == 0 || muster_tensor_n_elements (x) == 0) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (x));
    return TRUE;
  }
  if (!muster_check_vector (k, 1, "axis", error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (x), n, muster_tensor_dims (x), error))
    return FALSE;
  muster_dense_steps (n, muster_tensor_dims (x), to);
  muster_dense_steps (n, muster_tensor_dims (x), steps);
  for (gint64 i = 0; i < muster_tensor_n_elements (axes); i++) {
    if (!muster_check_axis (muster_int_at (axes, i), n, &axis, error))
      return FALSE;
    if (reversed[axis])
      return muster_invalid (error, "axis %d specified more than once.", axis);
    reversed[axis] = TRUE;
    start += (muster_tensor_dims (x)[axis] - 1) * to[axis];
    steps[axis] = -to[axis];
  }
  muster_copy_block (result.size, n, muster_tensor_dims (x), result.data, to,
                     from.data + start * (gint64)from.size, steps);
  return muster_result_end (&result, k, 0, error);
}

const MusterOp muster_layout_ops[] = {
    {"Transpose", "x:T, perm:Tperm -> y:T", "T:any|resource Tperm:int32|int64", compute_transpose,
     MUSTER_OP_HANDLES},
    {"ConjugateTranspose", "x:T, perm:Tperm -> y:T", "T:any Tperm:int32|int64",
     compute_conjugate_transpose, 0},
    {"Concat", "concat_dim:int32, values:N*T -> output:T", "T:any N>=2", compute_concat, 0},
    {"ConcatV2", "values:N*T, axis:Tidx -> output:T", "T:any Tidx:int32|int64 N>=2",
     compute_concat_v2, 0},
    {"Pack", "values:N*T -> output:T", "T:any|resource axis", compute_pack, MUSTER_OP_HANDLES},
    {"Unpack", "value:T -> output:num*T", "T:any|resource axis num>=0", compute_unpack,
     MUSTER_OP_HANDLES},
    {"Split", "split_dim:int32, value:T -> output:num_split*T", "T:any|resource", compute_split,
     MUSTER_OP_HANDLES},
    {"SplitV", "value:T, size_splits:Tlen, split_dim:int32 -> output:num_split*T",
     "T:any Tlen:int64|int32|int8", compute_split_v, 0},
    {"Slice", "input:T, begin:Index, size:Index -> output:T", "T:any Index:int32|int64",
     compute_slice, 0},
    {"Tile", "input:T, multiples:Tmultiples -> output:T", "T:any Tmultiples:int32|int64",
     compute_tile, 0},
    {"Pad", "input:T, paddings:Tpaddings -> output:T", "T:any Tpaddings:int32|int64", compute_pad,
     0},
    {"PadV2", "input:T, paddings:Tpaddings, constant_values:T -> output:T",
     "T:any Tpaddings:int32|int64", compute_pad_v2, 0},
    {"ReverseV2", "tensor:T, axis:Tidx -> output:T", "T:any Tidx:int32|int64", compute_reverse, 0},
    {NULL, NULL, NULL, NULL, 0},
};
