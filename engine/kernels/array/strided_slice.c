// SPDX-License-Identifier: Apache-2.0
/* StridedSlice, Python's x[a:b:c, ..., None, i], its gradient, and assignments to it. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/broadcast.h"

#include <string.h>

/* The slice as the node gives it: one entry for each index in the brackets. */
typedef struct {
  int n;
  gint64 begin[MUSTER_MAX_DIMS], end[MUSTER_MAX_DIMS], stride[MUSTER_MAX_DIMS];
  guint64 begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask;
} Spec;

/* The slice applied to a shape: a start and a stride for each dimension. */
typedef struct {
  int n;
  gint64 begin[MUSTER_MAX_DIMS], stride[MUSTER_MAX_DIMS], sizes[MUSTER_MAX_DIMS];
  int n_out; /* the result's shape, with new axes and without single indices */
  gint64 out[MUSTER_MAX_DIMS];
} View;

/* Masks have 64 bits; TensorFlow's have 32. */
#define MAX_SPEC 32

static gboolean
bit (guint64 mask, int i)
{
  return (mask >> i & 1) != 0;
}

static gboolean
read_spec (MusterKernel *k, int first, Spec *spec, GError **error)
{
  int n, n_end, n_stride;
  if (!muster_check_vector (k, first, "begin", error) ||
      !muster_check_vector (k, first + 1, "end", error) ||
      !muster_check_vector (k, first + 2, "strides", error))
    return FALSE;
  n = muster_kernel_input_ints (k, first, spec->begin, MAX_SPEC, error);
  if (n < 0)
    return FALSE;
  n_end = muster_kernel_input_ints (k, first + 1, spec->end, MAX_SPEC, error);
  if (n_end < 0)
    return FALSE;
  n_stride = muster_kernel_input_ints (k, first + 2, spec->stride, MAX_SPEC, error);
  if (n_stride < 0)
    return FALSE;
  if (n_end != n || n_stride != n)
    return muster_invalid (error,
                           "Expected begin, end, and strides to be 1D equal size tensors, but got "
                           "shapes [%d], [%d], and [%d] instead.",
                           n, n_end, n_stride);
  spec->n = n;
  spec->begin_mask = (guint64)muster_kernel_attr_int (k, "begin_mask", 0);
  spec->end_mask = (guint64)muster_kernel_attr_int (k, "end_mask", 0);
  spec->ellipsis_mask = (guint64)muster_kernel_attr_int (k, "ellipsis_mask", 0);
  spec->new_axis_mask = (guint64)muster_kernel_attr_int (k, "new_axis_mask", 0);
  spec->shrink_mask = (guint64)muster_kernel_attr_int (k, "shrink_axis_mask", 0);
  return TRUE;
}

/* Clamps a bound to the dimension; a negative one counts from the end. */
static gint64
clamp_bound (gint64 bound, gint64 dim, gint64 stride)
{
  gint64 low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
  if (bound < 0)
    bound += dim;
  return CLAMP (bound, low, high);
}

/* Applies index i of the brackets to the shape's next dimension. */
static gboolean
take_index (const Spec *spec, int i, gint64 dim, View *view, GError **error)
{
  gint64 stride = spec->stride[i], begin = spec->begin[i], end, length;
  int d = view->n++;
  if (stride == 0)
    return muster_invalid (error, "strides[%d] must be non-zero", i);
  if (bit (spec->shrink_mask, i)) {
    if (stride < 0)
      return muster_invalid (error, "only stride 1 allowed on non-range indexing.");
    if (begin < -dim || begin >= dim)
      return muster_invalid (
          error, "slice index %" G_GINT64_FORMAT " of dimension %d out of bounds.", begin, d);
    view->begin[d] = begin < 0 ? begin + dim : begin;
    view->stride[d] = 1;
    view->sizes[d] = 1;
    return TRUE;
  }
  begin = bit (spec->begin_mask, i) ? (stride > 0 ? 0 : dim - 1) : clamp_bound (begin, dim, stride);
  end = bit (spec->end_mask, i) ? (stride > 0 ? dim : -1) : clamp_bound (spec->end[i], dim, stride);
  length = end - begin;
  view->begin[d] = begin;
  view->stride[d] = stride;
  view->sizes[d] =
      length == 0 || (length < 0) != (stride < 0) ? 0 : length / stride + (length % stride != 0);
  view->out[view->n_out++] = view->sizes[d];
  return TRUE;
}

/* Takes a whole dimension, for the ellipsis. */
static void
take_whole (gint64 dim, View *view)
{
  int d = view->n++;
  view->begin[d] = 0;
  view->stride[d] = 1;
  view->sizes[d] = dim;
  view->out[view->n_out++] = dim;
}

/* The number of dimensions that the indices after the ellipsis need. */
static int
needed_after (const Spec *spec, int i)
{
  int n = 0;
  for (i++; i < spec->n; i++)
    n += !bit (spec->new_axis_mask, i) && !bit (spec->ellipsis_mask, i);
  return n;
}

static gboolean
resolve (const Spec *spec, int n_dims, const gint64 *dims, View *view, GError **error)
{
  if ((spec->ellipsis_mask & (spec->ellipsis_mask - 1)) != 0)
    return muster_invalid (error, "Multiple ellipses in slice spec not allowed");
  if (n_dims > MUSTER_MAX_DIMS - MAX_SPEC)
    return muster_invalid (error, "Unhandled input dimensions %d", n_dims);
  view->n = view->n_out = 0;
  for (int i = 0; i < spec->n; i++) {
    if (bit (spec->ellipsis_mask, i)) {
      for (int after = needed_after (spec, i); view->n < n_dims - after;)
        take_whole (dims[view->n], view);
    } else if (bit (spec->new_axis_mask, i)) {
      view->out[view->n_out++] = 1;
    } else if (view->n == n_dims) {
      return muster_invalid (error, "Index out of range using input dim %d; input has only %d dims",
                             view->n, n_dims);
    } else if (!take_index (spec, i, dims[view->n], view, error)) {
      return FALSE;
    }
  }
  while (view->n < n_dims)
    take_whole (dims[view->n], view);
  return TRUE;
}

/* Returns the view's first element, and its strides in a dense tensor. */
static gint64
view_steps (const View *view, const gint64 *dims, gint64 *steps)
{
  gint64 start = 0;
  muster_dense_steps (view->n, dims, steps);
  for (int i = 0; i < view->n; i++) {
    start += view->begin[i] * steps[i];
    steps[i] *= view->stride[i];
  }
  return start;
}

static gboolean
compute_strided_slice (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 steps[MUSTER_MAX_DIMS], to[MUSTER_MAX_DIMS], start;
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  Spec spec;
  View view;
  if (!read_spec (k, 1, &spec, error) ||
      !resolve (&spec, muster_tensor_n_dims (x), muster_tensor_dims (x), &view, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (x), view.n_out, view.out, error))
    return FALSE;
  if (result.n > 0) {
    start = view_steps (&view, muster_tensor_dims (x), steps);
    muster_dense_steps (view.n, view.sizes, to);
    muster_copy_block (result.size, view.n, view.sizes, result.data, to,
                       from.data + start * (gint64)from.size, steps);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_strided_slice_grad (MusterKernel *k, GError **error)
{
  MusterTensor *dy = muster_kernel_input (k, 4);
  gint64 dims[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS], from_steps[MUSTER_MAX_DIMS], start;
  int n = muster_kernel_input_ints (k, 0, dims, MUSTER_MAX_DIMS, error);
  MusterElements from = muster_elements (dy);
  g_auto (MusterResult) result = {0};
  Spec spec;
  View view;
  if (n < 0 || !read_spec (k, 1, &spec, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (dy), n, dims, error) ||
      !resolve (&spec, n, dims, &view, error))
    return FALSE;
  if (view.n_out != muster_tensor_n_dims (dy) ||
      (view.n_out > 0 &&
       memcmp (view.out, muster_tensor_dims (dy), view.n_out * sizeof (gint64)) != 0)) {
    g_autofree char *wanted = muster_shape_to_string (view.n_out, view.out);
    g_autofree char *given = muster_shape_text (dy);
    return muster_invalid (error, "shape of dy was %s instead of %s", given, wanted);
  }
  if (muster_tensor_n_elements (dy) > 0) {
    start = view_steps (&view, dims, steps);
    muster_dense_steps (view.n, view.sizes, from_steps);
    muster_copy_block (result.size, view.n, view.sizes, result.data + start * (gint64)result.size,
                       steps, from.data, from_steps);
  }
  return muster_result_end (&result, k, 0, error);
}

/* The value's step in each dimension of the view, 0 where it is repeated; FALSE if it can't be
 * broadcast. The result's dimensions are the view's but for some of size 1. */
static gboolean
broadcast_steps (const View *view, MusterTensor *value, gint64 *steps)
{
  const gint64 *dims = muster_tensor_dims (value);
  gint64 step = 1;
  int d = view->n;
  memset (steps, 0, sizeof (gint64) * MUSTER_MAX_DIMS);
  for (int out = view->n_out - 1, i = muster_tensor_n_dims (value) - 1; i >= 0; out--, i--) {
    const gint64 size = out >= 0 ? view->out[out] : 1;
    if (dims[i] != size && dims[i] != 1)
      return FALSE;
    while (size != 1 && view->sizes[--d] == 1)
      ;
    if (dims[i] != 1)
      steps[d] = step;
    step *= dims[i];
  }
  return TRUE;
}

/* Writes a value to the view's elements. */
static gboolean
put_view (MusterKernel *k, int n_dims, const gint64 *dims, guint8 *to, GError **error)
{
  MusterTensor *value = muster_kernel_input (k, 4);
  gint64 steps[MUSTER_MAX_DIMS], from_steps[MUSTER_MAX_DIMS], start;
  MusterElements from = muster_elements (value);
  Spec spec;
  View view;
  if (!read_spec (k, 1, &spec, error) || !resolve (&spec, n_dims, dims, &view, error))
    return FALSE;
  if (muster_shape_n_elements (view.n_out, view.out) == 0)
    return TRUE;
  if (!broadcast_steps (&view, value, from_steps)) {
    g_autofree char *wanted = muster_shape_to_string (view.n_out, view.out);
    g_autofree char *given = muster_shape_text (value);
    return muster_invalid (
        error, "the value's shape %s can't be broadcast to that of the slice, %s", given, wanted);
  }
  start = view_steps (&view, dims, steps);
  muster_copy_block (from.size, view.n, view.sizes, to + start * (gint64)from.size, steps,
                     from.data, from_steps);
  return TRUE;
}

static gboolean
compute_assign_slice (MusterKernel *k, GError **error)
{
  MusterVariable *variable = muster_kernel_variable (k, 0);
  MusterDType dtype = muster_tensor_dtype (muster_kernel_input (k, 4));
  gboolean done;
  void *data;
  if (!muster_check_variable_dtype (variable, dtype, error))
    return FALSE;
  if (dtype == MUSTER_STRING)
    return muster_invalid (error, "Strings of a variable can't be updated in place");
  data = muster_variable_begin_update (variable);
  if (data == NULL) {
    muster_variable_set_not_updated (variable, error);
    return FALSE;
  }
  done = put_view (k, muster_tensor_n_dims (muster_variable_peek (variable)),
                   muster_tensor_dims (muster_variable_peek (variable)), data, error);
  muster_variable_end_update (variable);
  if (done && muster_kernel_n_outputs (k) > 0)
    muster_kernel_forward_ref (k, 0, 0);
  return done;
}

static gboolean
compute_update_slice (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), muster_tensor_n_dims (x),
                            muster_tensor_dims (x), error))
    return FALSE;
  if (result.n > 0)
    memcpy (result.data, from.data, (gsize)result.n * result.size);
  if (!put_view (k, result.n_dims, result.dims, result.data, error))
    return FALSE;
  return muster_result_end (&result, k, 0, error);
}

#define BOUNDS "begin:Index, end:Index, strides:Index, value:T"
#define MASKS  " begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask"

const MusterOp muster_strided_slice_ops[] = {
    {"StridedSlice", "input:T, begin:Index, end:Index, strides:Index -> output:T",
     "T:any|resource Index:int32|int64|int16" MASKS, compute_strided_slice, MUSTER_OP_HANDLES},
    {"StridedSliceGrad", "shape:Index, begin:Index, end:Index, strides:Index, dy:T -> output:T",
     "T:any Index:int32|int64" MASKS, compute_strided_slice_grad, 0},
    {"StridedSliceAssign", "ref:&T, " BOUNDS " -> output_ref:&T", "T:any Index:int32|int64" MASKS,
     compute_assign_slice, MUSTER_OP_STATEFUL},
    {"ResourceStridedSliceAssign", "ref:resource, " BOUNDS " ->", "T:any Index:int32|int64" MASKS,
     compute_assign_slice, MUSTER_OP_STATEFUL},
    {"TensorStridedSliceUpdate", "input:T, " BOUNDS " -> output:T", "T:any Index:int32|int64" MASKS,
     compute_update_slice, 0},
    {NULL, NULL, NULL, NULL, 0},
};
