// SPDX-License-Identifier: Apache-2.0
/* Ops that move elements along an axis (Roll, ReverseSequence, MirrorPad), or reinterpret them
 * (Bitcast). */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/math/arithmetic.h"

#include <string.h>

/* The source index of each position along each dimension. */
typedef struct {
  int n;
  gint64 *from[MUSTER_MAX_DIMS]; /* (owned) */
} Maps;

static gboolean
maps_init (Maps *self, MusterKernel *k, int n, const gint64 *dims, GError **error)
{
  for (self->n = 0; self->n < n; self->n++) {
    self->from[self->n] = muster_kernel_alloc (k, dims[self->n], sizeof (gint64), error);
    if (self->from[self->n] == NULL)
      return FALSE;
  }
  return TRUE;
}

static void
maps_clear (Maps *self)
{
  for (int i = 0; i < self->n; i++)
    g_free (self->from[i]);
  self->n = 0;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Maps, maps_clear)

/* The source element of position i in a tensor of shape dims, for a dense source with these
 * strides. */
static gint64
source_of (const Maps *maps, const gint64 *dims, const gint64 *steps, gint64 i)
{
  gint64 at = 0;
  for (int d = maps->n - 1; d >= 0; d--) {
    at += maps->from[d][i % dims[d]] * steps[d];
    i /= dims[d];
  }
  return at;
}

static gboolean
copy_mapped (MusterKernel *k, const Maps *maps, const gint64 *dims, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 steps[MUSTER_MAX_DIMS];
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), maps->n, dims, error))
    return FALSE;
  muster_dense_steps (maps->n, muster_tensor_dims (x), steps);
  for (gint64 i = 0; i < result.n; i++)
    memcpy (result.data + (gsize)i * result.size,
            from.data + (gsize)source_of (maps, dims, steps, i) * result.size, result.size);
  return muster_result_end (&result, k, 0, error);
}

static gint64
modulo (gint64 a, gint64 n)
{
  gint64 rest = n == 0 ? 0 : a % n;
  return rest < 0 ? rest + n : rest;
}

static gboolean
compute_roll (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *shifts = muster_kernel_input (k, 1);
  MusterTensor *axes = muster_kernel_input (k, 2);
  int n = muster_tensor_n_dims (x), axis = 0;
  gint64 by[MUSTER_MAX_DIMS] = {0};
  g_auto (Maps) maps = {0};
  if (n < 1)
    return muster_invalid (error, "input must be 1-D or higher");
  if (muster_tensor_n_dims (shifts) > 1)
    return muster_invalid (error, "shift must be a scalar or a 1-D vector.");
  if (muster_tensor_n_dims (axes) > 1)
    return muster_invalid (error, "axis must be a scalar or a 1-D vector.");
  if (!muster_same_shape (shifts, axes))
    return muster_invalid (error, "shift and axis must have the same size");
  for (gint64 i = 0; i < muster_tensor_n_elements (axes); i++) {
    /* TensorFlow takes the lower half of either. */
    if (!muster_check_axis ((gint32)muster_int_at (axes, i), n, &axis, error))
      return FALSE;
    by[axis] = modulo (by[axis] + (gint32)muster_int_at (shifts, i), muster_tensor_dims (x)[axis]);
  }
  if (!maps_init (&maps, k, n, muster_tensor_dims (x), error))
    return FALSE;
  for (int d = 0; d < n; d++)
    for (gint64 i = 0; i < muster_tensor_dims (x)[d]; i++)
      maps.from[d][i] = modulo (i - by[d], muster_tensor_dims (x)[d]);
  return copy_mapped (k, &maps, muster_tensor_dims (x), error);
}

/* Reverses each batch entry's slices up to its length. */
static gboolean
compute_reverse_sequence (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *lengths = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (x);
  gint64 batch = muster_kernel_attr_int (k, "batch_dim", 0);
  gint64 seq = muster_kernel_attr_int (k, "seq_dim", 0), steps[MUSTER_MAX_DIMS];
  const gint64 *dims = muster_tensor_dims (x);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (batch < 0 || batch >= n || seq < 0 || seq >= n || batch == seq)
    return muster_invalid (error,
                           "batch_dim (%" G_GINT64_FORMAT ") and seq_dim (%" G_GINT64_FORMAT
                           ") must be two dimensions of an input of rank %d",
                           batch, seq, n);
  if (muster_tensor_n_dims (lengths) != 1 || muster_tensor_dims (lengths)[0] != dims[batch])
    return muster_invalid (error,
                           "Length of seq_lengths != input.dims(%" G_GINT64_FORMAT "), "
                           "(%" G_GINT64_FORMAT " vs. %" G_GINT64_FORMAT ")",
                           batch, muster_tensor_n_elements (lengths), dims[batch]);
  for (gint64 i = 0; i < muster_tensor_n_elements (lengths); i++) {
    if (muster_int_at (lengths, i) < 0)
      return muster_invalid (error, "seq_lens(%" G_GINT64_FORMAT ") < 0", i);
    if (muster_int_at (lengths, i) > dims[seq])
      return muster_invalid (
          error, "seq_lens(%" G_GINT64_FORMAT ") > input.dims(%" G_GINT64_FORMAT ")", i, seq);
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, dims, error))
    return FALSE;
  muster_dense_steps (n, dims, steps);
  for (gint64 i = 0; i < result.n; i++) {
    const gint64 at = i / steps[seq] % dims[seq];
    const gint64 length = muster_int_at (lengths, i / steps[batch] % dims[batch]);
    const gint64 source = at < length ? i + (length - 1 - 2 * at) * steps[seq] : i;
    memcpy (result.data + (gsize)i * result.size, from.data + (gsize)source * result.size,
            result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
check_pads_shape (MusterTensor *pads, MusterTensor *x, GError **error)
{
  const int n = muster_tensor_n_dims (x);
  if (muster_tensor_n_dims (pads) == 2 && muster_tensor_dims (pads)[0] == n &&
      muster_tensor_dims (pads)[1] == 2)
    return TRUE;
  g_autofree char *a = muster_shape_text (pads), *b = muster_shape_text (x);
  return muster_invalid (
      error, "paddings must be a matrix with a row of 2 for each dimension: %s %s", a, b);
}

/* Padding may mirror at most the inner elements, without the edge if that is skipped. */
static gboolean
check_pads (gint64 before, gint64 after, gint64 inner, gint64 skip, GError **error)
{
  if (before < 0 || after < 0)
    return muster_invalid (error,
                           "paddings must be non-negative: %" G_GINT64_FORMAT " %" G_GINT64_FORMAT,
                           before, after);
  if (before <= inner - skip && after <= inner - skip)
    return TRUE;
  return muster_invalid (error,
                         "paddings must be %s the dimension size: %" G_GINT64_FORMAT
                         ", %" G_GINT64_FORMAT " %s %" G_GINT64_FORMAT,
                         skip ? "less than" : "no greater than", before, after,
                         skip ? "not less than" : "greater than", inner);
}

/* The source of a mirrored position; `at` counts from the first inner one. */
static gint64
mirrored (gint64 at, gint64 inner, gint64 skip)
{
  if (at < 0)
    return -at - 1 + skip;
  return at < inner ? at : 2 * inner - 1 - skip - at;
}

/* Computes the inner shape, the padded one, and the source of each padded position. The first input
 * has the inner shape or, in the gradient, the padded one. */
static gboolean
mirror (MusterKernel *k, gboolean is_gradient, gint64 *padded, gint64 *inner, Maps *maps,
        GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *pads = muster_kernel_input (k, 1);
  g_autofree char *mode = muster_node_string (muster_kernel_node (k), "mode");
  const gint64 skip = g_strcmp0 (mode, "SYMMETRIC") == 0 ? 0 : 1;
  const gint64 *dims = muster_tensor_dims (x);
  const int n = muster_tensor_n_dims (x);

  if (!check_pads_shape (pads, x, error))
    return FALSE;
  for (int d = 0; d < n; d++) {
    const gint64 before = muster_int_at (pads, 2 * d), after = muster_int_at (pads, 2 * d + 1);
    inner[d] = is_gradient ? dims[d] - before - after : dims[d];
    if (!check_pads (before, after, inner[d], skip, error))
      return FALSE;
    padded[d] = inner[d] + before + after;
  }
  if (!maps_init (maps, k, n, padded, error))
    return FALSE;
  for (int d = 0; d < n; d++)
    for (gint64 i = 0; i < padded[d]; i++)
      maps->from[d][i] = mirrored (i - muster_int_at (pads, 2 * d), inner[d], skip);
  return TRUE;
}

static gboolean
compute_mirror_pad (MusterKernel *k, GError **error)
{
  gint64 padded[MUSTER_MAX_DIMS], inner[MUSTER_MAX_DIMS];
  g_auto (Maps) maps = {0};
  return mirror (k, FALSE, padded, inner, &maps, error) && copy_mapped (k, &maps, padded, error);
}

/* Adds the gradients of mirrored elements to their sources. */
static gboolean
compute_mirror_pad_grad (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gint64 padded[MUSTER_MAX_DIMS], inner[MUSTER_MAX_DIMS], steps[MUSTER_MAX_DIMS];
  MusterDType dtype = muster_tensor_dtype (x);
  const guint8 *from = muster_tensor_data (x);
  g_auto (Maps) maps = {0};
  g_auto (MusterResult) result = {0};
  if (!muster_check_loop2 (muster_add_loops, dtype, error) ||
      !mirror (k, TRUE, padded, inner, &maps, error) ||
      !muster_result_begin (&result, k, dtype, maps.n, inner, error))
    return FALSE;
  muster_dense_steps (maps.n, inner, steps);
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    guint8 *to = result.data + (gsize)source_of (&maps, padded, steps, i) * result.size;
    muster_run_loop2 (muster_add_loops, dtype, dtype, 1, to, 1, from + (gsize)i * result.size, 1,
                      to);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_bitcast (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  gsize from = muster_dtype_size (muster_tensor_dtype (x));
  gsize to = muster_dtype_size (muster_kernel_output_dtype (k, 0));
  gint64 dims[MUSTER_MAX_DIMS + 1];
  int n = muster_tensor_n_dims (x);
  if (from == 0 || to == 0)
    return muster_invalid (error, "Strings can't be bitcast");
  memcpy (dims, muster_tensor_dims (x), (gsize)n * sizeof *dims);
  if (from > to) {
    dims[n++] = (gint64)(from / to);
  } else if (from < to) {
    if (n == 0 || dims[n - 1] != (gint64)(to / from)) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error, "Cannot bitcast from %s to %s: shape %s",
                             muster_dtype_name (muster_tensor_dtype (x)),
                             muster_dtype_name (muster_kernel_output_dtype (k, 0)), shape);
    }
    n--;
  }
  out = muster_kernel_output (k, 0, n, dims, error);
  if (out == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (out) > 0)
    memcpy (muster_tensor_data_mutable (out), muster_tensor_data (x), muster_tensor_n_bytes (out));
  muster_make_bools (out);
  return TRUE;
}

/* Flat indices to coordinates, one column each. */
static gboolean
compute_unravel (MusterKernel *k, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *sizes = muster_kernel_input (k, 1), *out;
  gint64 dims[2], n = muster_tensor_n_elements (indices), most;
  gint64 shape[MUSTER_MAX_DIMS];
  int n_dims;
  if (muster_tensor_n_dims (indices) > 1)
    return muster_invalid (error, "The indices can only be scalar or vector, got a matrix");
  if (n == 0)
    return muster_invalid (error, "received empty tensor indices");
  if (muster_tensor_n_dims (sizes) != 1)
    return muster_invalid (error, "The indices can only be 1-D, got rank %d",
                           muster_tensor_n_dims (sizes));
  n_dims = muster_kernel_input_ints (k, 1, shape, MUSTER_MAX_DIMS, error);
  if (n_dims < 0)
    return FALSE;
  most = muster_shape_n_elements (n_dims, shape);
  for (int d = 0; d < n_dims; d++)
    if (shape[d] <= 0)
      return muster_invalid (error,
                             "Input dims cannot contain a dim of zero or less, but dims contains "
                             "%" G_GINT64_FORMAT " at index %d",
                             shape[d], d);
  for (gint64 i = 0; i < n; i++)
    if (muster_int_at (indices, i) >= most)
      return muster_invalid (error, "index is out of bound as with dims");
  dims[0] = n_dims;
  dims[1] = n;
  out = muster_kernel_output (k, 0, muster_tensor_n_dims (indices) + 1, dims, error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    gint64 rest = muster_int_at (indices, i);
    for (int d = n_dims - 1; d >= 0; d--) {
      muster_put_int (out, d * n + i, rest % shape[d]);
      rest /= shape[d];
    }
  }
  return TRUE;
}

static gboolean
compute_lin_space (MusterKernel *k, GError **error)
{
  gint64 n;
  double first, last;
  MusterTensor *out;
  if (!muster_check_scalar (k, 0, "start", error) || !muster_check_scalar (k, 1, "stop", error) ||
      !muster_check_scalar (k, 2, "num", error))
    return FALSE;
  n = muster_kernel_input_int (k, 2);
  if (n <= 0)
    return muster_invalid (error, "Requires num > 0: %" G_GINT64_FORMAT, n);
  first = muster_kernel_input_double (k, 0);
  last = muster_kernel_input_double (k, 1);
  out = muster_wide_output (k, 0, 1, &n, error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    const double value = i == 0       ? first
                         : i == n - 1 ? last
                                      : first + (last - first) / (double)(n - 1) * i;
    if (muster_tensor_dtype (out) == MUSTER_DOUBLE)
      ((double *)muster_tensor_data_mutable (out))[i] = value;
    else
      ((float *)muster_tensor_data_mutable (out))[i] = (float)value;
  }
  return muster_wide_end (k, 0, out, error);
}

#define PADS "input:T, paddings:Tpaddings -> output:T"

const MusterOp muster_rearrange_ops[] = {
    {"Roll", "input:T, shift:Tshift, axis:Taxis -> output:T",
     "T:any Tshift:int32|int64 Taxis:int32|int64", compute_roll, 0},
    {"ReverseSequence", "input:T, seq_lengths:Tlen -> output:T",
     "T:any Tlen:int64|int32 seq_dim batch_dim", compute_reverse_sequence, 0},
    {"MirrorPad", PADS, "T:any Tpaddings:int32|int64 mode", compute_mirror_pad, 0},
    {"MirrorPadGrad", PADS, "T:number Tpaddings:int32|int64 mode", compute_mirror_pad_grad, 0},
    {"Bitcast", "input:T -> output:type", "T:any type:any", compute_bitcast, 0},
    {"UnravelIndex", "indices:Tidx, dims:Tidx -> output:Tidx", "Tidx:int32|int64", compute_unravel,
     0},
    {"LinSpace", "start:T, stop:T, num:Tidx -> output:T", "T:float Tidx:int32|int64",
     compute_lin_space, 0},
    {NULL, NULL, NULL, NULL, 0},
};
