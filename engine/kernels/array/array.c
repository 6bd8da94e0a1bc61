// SPDX-License-Identifier: Apache-2.0
/* Ops on shapes: reading a tensor's, changing it, and creating tensors from a shape. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/broadcast.h"

#include <math.h>
#include <string.h>

/* Writes sizes as an int32 or int64 tensor; returns FALSE if one doesn't fit. */
static gboolean
put_ints (MusterKernel *k, int i, int n_dims, const gint64 *dims, int n, const gint64 *values,
          GError **error)
{
  MusterTensor *out = muster_kernel_output (k, i, n_dims, dims, error);
  if (out == NULL)
    return FALSE;
  for (int j = 0; j < n; j++) {
    if (muster_tensor_dtype (out) != MUSTER_INT64 && values[j] > G_MAXINT32)
      return muster_invalid (error, "Shape output type is 32-bit but dim %d is %" G_GINT64_FORMAT,
                             j, values[j]);
    muster_put_int (out, j, values[j]);
  }
  return TRUE;
}

static gboolean
compute_shape (MusterKernel *k, GError **error)
{
  for (int i = 0; i < muster_kernel_n_inputs (k); i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    gint64 n = muster_tensor_n_dims (x);
    if (!put_ints (k, i, 1, &n, (int)n, muster_tensor_dims (x), error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
compute_size (MusterKernel *k, GError **error)
{
  gint64 n = muster_tensor_n_elements (muster_kernel_input (k, 0));
  return put_ints (k, 0, 0, NULL, 1, &n, error);
}

static gboolean
compute_rank (MusterKernel *k, GError **error)
{
  gint64 n = muster_tensor_n_dims (muster_kernel_input (k, 0));
  return put_ints (k, 0, 0, NULL, 1, &n, error);
}

static void
share (MusterKernel *k, int n_dims, const gint64 *dims)
{
  muster_kernel_set_output (k, 0, muster_tensor_reshape (muster_kernel_input (k, 0), n_dims, dims));
}

/* The product of the non-zero sizes; -1 if it is too large. */
static gint64
product_of_sizes (int n_dims, const gint64 *dims)
{
  gint64 product = 1;
  for (int i = 0; i < n_dims; i++)
    if (dims[i] > 0 && !(product <= G_MAXINT64 / dims[i] && (product *= dims[i])))
      return -1;
  return product;
}

/* Computes the size given as -1. If another size is 0, zeros are ignored on both sides, as in
 * TensorFlow: an empty [0,3] becomes [0,-1] = [0,3]. */
static gboolean
infer_size (MusterTensor *x, int n_dims, gint64 *dims, int unknown, GError **error)
{
  gint64 n = muster_tensor_n_elements (x), known = product_of_sizes (n_dims, dims);
  gboolean has_zero = FALSE;
  for (int i = 0; i < n_dims; i++)
    has_zero = has_zero || dims[i] == 0;
  if (has_zero)
    n = product_of_sizes (muster_tensor_n_dims (x), muster_tensor_dims (x));
  if (n >= 0 && known > 0 && (has_zero || n % known == 0)) {
    dims[unknown] = n / known;
    return TRUE;
  }
  return muster_invalid (error,
                         "Input to reshape is a tensor with %" G_GINT64_FORMAT
                         " values, but the requested shape requires a multiple of "
                         "%" G_GINT64_FORMAT,
                         muster_tensor_n_elements (x), known);
}

static gboolean
compute_reshape (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 dims[MUSTER_MAX_DIMS], n = muster_tensor_n_elements (x);
  int n_dims = muster_kernel_input_ints (k, 1, dims, MUSTER_MAX_DIMS, error), unknown = -1;
  if (n_dims < 0)
    return FALSE;
  for (int i = 0; i < n_dims; i++) {
    if (dims[i] == -1 && unknown >= 0)
      return muster_invalid (error, "Only one input size may be -1, not both %d and %d", unknown,
                             i);
    if (dims[i] == -1)
      unknown = i;
    else if (dims[i] < 0)
      return muster_invalid (error, "Size %d must be non-negative, not %" G_GINT64_FORMAT, i,
                             dims[i]);
  }
  if (unknown >= 0 && !infer_size (x, n_dims, dims, unknown, error))
    return FALSE;
  if (muster_shape_n_elements (n_dims, dims) != n)
    return muster_invalid (error,
                           "Input to reshape is a tensor with %" G_GINT64_FORMAT
                           " values, but the requested shape has %" G_GINT64_FORMAT,
                           n, muster_shape_n_elements (n_dims, dims));
  share (k, n_dims, dims);
  return TRUE;
}

static gboolean
compute_expand_dims (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x), axis = 0;
  gint64 dims[MUSTER_MAX_DIMS], wanted;
  if (n >= MUSTER_MAX_DIMS)
    return muster_invalid (error, "The tensor has %d dimensions already", n);
  if (muster_tensor_n_elements (muster_kernel_input (k, 1)) != 1)
    return muster_invalid (error, "'dim' must be a tensor with a single value");
  wanted = muster_kernel_input_int (k, 1);
  if (wanted < -1 - n || wanted > n)
    return muster_invalid (
        error, "Tried to expand dim index %" G_GINT64_FORMAT " for tensor with %d dimensions.",
        wanted, n);
  if (!muster_check_axis (wanted, n + 1, &axis, error))
    return FALSE;
  for (int i = 0; i <= n; i++)
    dims[i] = i == axis ? 1 : muster_tensor_dims (x)[i > axis ? i - 1 : i];
  share (k, n + 1, dims);
  return TRUE;
}

/* Marks the axes in squeeze_dims (or axis); if none are given, all of size one. */
static gboolean
mark_squeezed (MusterKernel *k, gboolean *squeezed, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  const Tensorflow__AttrValue *attr = muster_kernel_attr (k, "squeeze_dims");
  gsize n = 0;
  int n_dims = muster_tensor_n_dims (x);
  if (attr != NULL && attr->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST)
    n = attr->list->n_i;
  for (int i = 0; n == 0 && i < n_dims; i++)
    squeezed[i] = muster_tensor_dims (x)[i] == 1;
  for (gsize i = 0; i < n; i++) {
    gint64 axis = attr->list->i[i];
    if (axis < -n_dims || axis >= n_dims)
      return muster_invalid (
          error, "Tried to squeeze dim index %" G_GINT64_FORMAT " for tensor with %d dimensions.",
          axis, n_dims);
    axis += axis < 0 ? n_dims : 0;
    if (muster_tensor_dims (x)[axis] != 1)
      return muster_invalid (error,
                             "Can not squeeze dim[%" G_GINT64_FORMAT
                             "], expected a dimension of 1, got %" G_GINT64_FORMAT,
                             axis, muster_tensor_dims (x)[axis]);
    squeezed[axis] = TRUE;
  }
  return TRUE;
}

static gboolean
compute_squeeze (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gboolean squeezed[MUSTER_MAX_DIMS] = {FALSE};
  gint64 dims[MUSTER_MAX_DIMS];
  int n = 0;
  if (!mark_squeezed (k, squeezed, error))
    return FALSE;
  for (int i = 0; i < muster_tensor_n_dims (x); i++)
    if (!squeezed[i])
      dims[n++] = muster_tensor_dims (x)[i];
  share (k, n, dims);
  return TRUE;
}

/* Fills a block with copies of one element, doubling. */
static void
fill (guint8 *to, gsize size, gint64 n, const void *value)
{
  gsize total = (gsize)n * size, done = size;
  if (n == 0)
    return;
  memcpy (to, value, size);
  for (; done < total; done += MIN (done, total - done))
    memcpy (to + done, to, MIN (done, total - done));
}

static gboolean
compute_fill (MusterKernel *k, GError **error)
{
  MusterTensor *value = muster_kernel_input (k, 1);
  MusterElements from = muster_elements (value);
  g_auto (MusterResult) result = {0};
  gint64 dims[MUSTER_MAX_DIMS];
  int n = muster_kernel_input_ints (k, 0, dims, MUSTER_MAX_DIMS, error);
  if (n < 0)
    return FALSE;
  if (muster_tensor_n_dims (value) > 1 || muster_tensor_n_elements (value) != 1) {
    g_autofree char *shape = muster_shape_text (value);
    return muster_invalid (error, "value must be a scalar, got shape %s", shape);
  }
  for (int i = 0; i < n; i++)
    if (dims[i] < 0)
      return muster_invalid (error, "Dimension %" G_GINT64_FORMAT " must be >= 0", dims[i]);
  if (!muster_result_begin (&result, k, muster_tensor_dtype (value), n, dims, error))
    return FALSE;
  fill (result.data, result.size, result.n, from.data);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_zeros_like (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_auto (MusterResult) result = {0};
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), muster_tensor_n_dims (x),
                            muster_tensor_dims (x), error))
    return FALSE;
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_ones_like (MusterKernel *k, GError **error)
{
  static const float one_f32 = 1;
  static const double one_f64 = 1;
  static const gint64 one_int = 1;
  MusterTensor *x = muster_kernel_input (k, 0), *y;
  MusterDType dtype = muster_tensor_dtype (x);
  const MusterDType part = muster_dtype_is_complex (dtype) ? muster_complex_part (dtype) : dtype;
  MusterWide wide = muster_wide (part);
  guint64 one[2] = {0};
  if (wide == MUSTER_N_WIDE)
    return muster_invalid (error, "OnesLike isn't supported for dtype %s",
                           muster_dtype_name (dtype));
  muster_narrow (part,
                 wide == MUSTER_F32   ? (const void *)&one_f32
                 : wide == MUSTER_F64 ? (const void *)&one_f64
                                      : (const void *)&one_int,
                 1, one);
  y = muster_kernel_output_like (k, 0, x, error);
  if (y == NULL)
    return FALSE;
  fill (muster_tensor_data_mutable (y), muster_dtype_size (dtype), muster_tensor_n_elements (x),
        one);
  return TRUE;
}

/* The number of steps from start to limit; -1 with an error. */
static gint64
count_steps (double start, double limit, double delta, GError **error)
{
  double n;
  if (delta == 0 || isnan (delta)) {
    muster_invalid (error, "Requires delta != 0: %g", delta);
    return -1;
  }
  if (delta > 0 ? start > limit : start < limit) {
    muster_invalid (error, "Requires start %s limit when delta %s 0: %g/%g",
                    delta > 0 ? "<=" : ">=", delta > 0 ? ">" : "<", start, limit);
    return -1;
  }
  n = ceil ((limit - start) / delta);
  if (n >= 0 && n < 9e18)
    return (gint64)n;
  muster_invalid (error, "Requires ((limit - start) / delta) <= 2^63 - 1");
  return -1;
}

/* The same for integers, exactly: the distance is computed unsigned. */
static gint64
count_int_steps (gint64 start, gint64 limit, gint64 delta, GError **error)
{
  guint64 distance = delta > 0 ? (guint64)limit - (guint64)start : (guint64)start - (guint64)limit;
  guint64 step = delta > 0 ? (guint64)delta : 0 - (guint64)delta;
  if (count_steps (start, limit, delta, error) < 0)
    return -1;
  return (gint64)MIN (distance / step + (distance % step != 0), (guint64)G_MAXINT64);
}

#define PROGRESS(suffix, T)                                                                        \
  static void progress_##suffix (gint64 n, const void *start, const void *delta, void *out)        \
  {                                                                                                \
    T value = *(const T *)start;                                                                   \
    for (gint64 i = 0; i < n; i++) {                                                               \
      ((T *)out)[i] = value;                                                                       \
      value = ADVANCE (T, value, *(const T *)delta);                                               \
    }                                                                                              \
  }
#define ADVANCE(T, a, b) ((a) + (b))
MUSTER_FLOAT_TYPES (PROGRESS)
#undef ADVANCE
#define ADVANCE(T, a, b) ((T)((guint64)(a) + (guint64)(b)))
MUSTER_INT_TYPES (PROGRESS)

static gboolean
compute_range (MusterKernel *k, GError **error)
{
  static void (*const loops[]) (gint64, const void *, const void *, void *) =
      MUSTER_WIDE_TABLE (progress);
  g_autoptr (MusterTensor) start = NULL, delta = NULL;
  MusterTensor *out;
  MusterWide wide;
  gint64 n;

  if (!muster_check_one (k, 0, "start", error) || !muster_check_one (k, 1, "limit", error) ||
      !muster_check_one (k, 2, "delta", error))
    return FALSE;
  start = muster_wide_input (k, 0, error);
  delta = start == NULL ? NULL : muster_wide_input (k, 2, error);
  if (delta == NULL)
    return FALSE;
  wide = muster_wide (muster_tensor_dtype (start));
  n = wide == MUSTER_F32 || wide == MUSTER_F64
          ? count_steps (muster_kernel_input_double (k, 0), muster_kernel_input_double (k, 1),
                         muster_kernel_input_double (k, 2), error)
          : count_int_steps (muster_kernel_input_int (k, 0), muster_kernel_input_int (k, 1),
                             muster_kernel_input_int (k, 2), error);
  out = n < 0 ? NULL : muster_wide_output (k, 0, 1, &n, error);
  if (out == NULL)
    return FALSE;
  loops[wide](n, muster_tensor_data (start), muster_tensor_data (delta),
              muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

static gboolean
compute_broadcast_to (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  gint64 dims[MUSTER_MAX_DIMS], own_steps[MUSTER_MAX_DIMS];
  gint64 steps[MUSTER_MAX_DIMS], to_steps[MUSTER_MAX_DIMS];
  int n = !muster_check_vector (k, 1, "shape", error)
              ? -1
              : muster_kernel_input_ints (k, 1, dims, MUSTER_MAX_DIMS, error);
  int front = n - muster_tensor_n_dims (x);
  if (n < 0)
    return FALSE;
  muster_dense_steps (muster_tensor_n_dims (x), muster_tensor_dims (x), own_steps);
  for (int i = 0; i < n || front < 0; i++) {
    gint64 dim = i < front ? 1 : muster_tensor_dims (x)[MAX (i - front, 0)];
    if (front < 0 || (dim != 1 && dim != dims[i])) {
      g_autofree char *a = muster_shape_text (x), *b = muster_shape_to_string (n, dims);
      return muster_invalid (error, "Incompatible shapes: %s vs. %s", a, b);
    }
    steps[i] = dim == 1 ? 0 : own_steps[i - front];
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, dims, error))
    return FALSE;
  muster_dense_steps (n, dims, to_steps);
  muster_copy_block (result.size, n, dims, result.data, to_steps, from.data, steps);
  return muster_result_end (&result, k, 0, error);
}

/* Two shapes given as vectors, the shorter one padded in front with ones. */
typedef struct {
  int n;
  gint64 a[MUSTER_MAX_DIMS], b[MUSTER_MAX_DIMS];
} ShapePair;

static gboolean
read_pair (MusterKernel *k, ShapePair *pair, GError **error)
{
  gint64 a[MUSTER_MAX_DIMS], b[MUSTER_MAX_DIMS];
  const gboolean fits =
      muster_check_vector (k, 0, "In[0]", error) && muster_check_vector (k, 1, "In[1]", error);
  int n_a = !fits ? -1 : muster_kernel_input_ints (k, 0, a, MUSTER_MAX_DIMS, error);
  int n_b = n_a < 0 ? -1 : muster_kernel_input_ints (k, 1, b, MUSTER_MAX_DIMS, error);

  if (n_b < 0)
    return FALSE;
  pair->n = MAX (n_a, n_b);
  for (int i = 0; i < pair->n; i++) {
    int from_a = i - (pair->n - n_a), from_b = i - (pair->n - n_b);
    pair->a[i] = from_a < 0 ? 1 : a[from_a];
    pair->b[i] = from_b < 0 ? 1 : b[from_b];
    if (pair->a[i] != pair->b[i] && pair->a[i] != 1 && pair->b[i] != 1) {
      g_autofree char *a_text = muster_shape_to_string (n_a, a);
      g_autofree char *b_text = muster_shape_to_string (n_b, b);
      return muster_invalid (error, "Incompatible shapes: %s vs. %s", a_text, b_text);
    }
  }
  return TRUE;
}

static gboolean
compute_broadcast_args (MusterKernel *k, GError **error)
{
  ShapePair pair;
  gint64 n;
  if (!read_pair (k, &pair, error))
    return FALSE;
  for (int i = 0; i < pair.n; i++)
    if (pair.a[i] == 1)
      pair.a[i] = pair.b[i];
  n = pair.n;
  return put_ints (k, 0, 1, &n, pair.n, pair.a, error);
}

/* The axes over which each operand's gradient is summed: those that were broadcast. As in
 * TensorFlow, an axis of size 1 in both is in both lists, unless the shapes are equal. */
static gboolean
compute_broadcast_gradient_args (MusterKernel *k, GError **error)
{
  gint64 axes_a[MUSTER_MAX_DIMS], axes_b[MUSTER_MAX_DIMS], n_a = 0, n_b = 0;
  gboolean same = muster_same_shape (muster_kernel_input (k, 0), muster_kernel_input (k, 1));
  ShapePair pair;
  if (!read_pair (k, &pair, error))
    return FALSE;
  for (int i = 0; same && i < pair.n; i++)
    same = pair.a[i] == pair.b[i];
  for (int i = 0; !same && i < pair.n; i++) {
    if (pair.a[i] == 1)
      axes_a[n_a++] = i;
    if (pair.b[i] == 1)
      axes_b[n_b++] = i;
  }
  return put_ints (k, 0, 1, &n_a, (int)n_a, axes_a, error) &&
         put_ints (k, 1, 1, &n_b, (int)n_b, axes_b, error);
}

/* The offset of each tensor in their concatenation along an axis. */
static gboolean
compute_concat_offset (MusterKernel *k, GError **error)
{
  int n = muster_kernel_n_inputs (k) - 1, axis = 0;
  gint64 first[MUSTER_MAX_DIMS], dims[MUSTER_MAX_DIMS], at[MUSTER_MAX_DIMS] = {0}, length;
  int n_dims = muster_kernel_input_ints (k, 1, first, MUSTER_MAX_DIMS, error);
  if (n_dims < 0 || !muster_check_scalar (k, 0, "Concat dim", error))
    return FALSE;
  for (int i = 0; i < n; i++)
    if (!muster_check_vector (k, i + 1, "shape", error))
      return FALSE;
  if (!muster_check_axis (muster_kernel_input_int (k, 0), n_dims, &axis, error))
    return FALSE;
  for (int i = 0; i < n; i++) {
    int own = muster_kernel_input_ints (k, i + 1, dims, MUSTER_MAX_DIMS, error);
    if (own < 0)
      return FALSE;
    for (int d = 0; d < MAX (n_dims, own); d++)
      if (own != n_dims || (d != axis && dims[d] != first[d]))
        return muster_invalid (error,
                               "All dimensions except %d must match. Input %d doesn't match input "
                               "0.",
                               axis, i);
    length = n_dims;
    if (!put_ints (k, i, 1, &length, n_dims, at, error))
      return FALSE;
    at[axis] += dims[axis];
  }
  return TRUE;
}

#define OUT_TYPE "T:any|resource out_type:int32|int64"
#define INTS     "T:int32|int64"

const MusterOp muster_array_ops[] = {
    {"Shape", "input:T -> output:out_type", OUT_TYPE, compute_shape, MUSTER_OP_HANDLES},
    {"ShapeN", "input:N*T -> output:N*out_type", OUT_TYPE, compute_shape, MUSTER_OP_HANDLES},
    {"Size", "input:T -> output:out_type", OUT_TYPE, compute_size, MUSTER_OP_HANDLES},
    {"Rank", "input:T -> output:int32", "T:any|resource", compute_rank, MUSTER_OP_HANDLES},
    {"Reshape", "tensor:T, shape:Tshape -> output:T", "T:any|resource Tshape:int32|int64",
     compute_reshape, MUSTER_OP_HANDLES},
    {"ExpandDims", "input:T, dim:Tdim -> output:T", "T:any|resource Tdim:int32|int64",
     compute_expand_dims, MUSTER_OP_HANDLES},
    {"Squeeze", "input:T -> output:T", "T:any|resource squeeze_dims", compute_squeeze,
     MUSTER_OP_HANDLES},
    {"Fill", "dims:index_type, value:T -> output:T", "T:any index_type:int32|int64", compute_fill,
     0},
    {"ZerosLike", "x:T -> y:T", "T:any", compute_zeros_like, 0},
    {"OnesLike", "x:T -> y:T", "T:any", compute_ones_like, 0},
    {"Range", "start:Tidx, limit:Tidx, delta:Tidx -> output:Tidx", "Tidx:real", compute_range, 0},
    {"BroadcastTo", "input:T, shape:Tidx -> output:T", "T:any Tidx:int32|int64",
     compute_broadcast_to, 0},
    {"BroadcastArgs", "s0:T, s1:T -> r0:T", INTS, compute_broadcast_args, 0},
    {"BroadcastGradientArgs", "s0:T, s1:T -> r0:T, r1:T", INTS, compute_broadcast_gradient_args, 0},
    {"ConcatOffset", "concat_dim:int32, shape:N*shape_type -> offset:N*shape_type",
     "shape_type:int32|int64 N>=2", compute_concat_offset, 0},
    {NULL, NULL, NULL, NULL, 0},
};
