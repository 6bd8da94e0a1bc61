// SPDX-License-Identifier: Apache-2.0
/* Ops that gather and scatter elements by index or condition. Every index is checked. */
#include "engine/kernels/array/gather.h"
#include "engine/kernels/array/array_op_tables.h"

#include "engine/kernels/math/arithmetic.h"
#include "engine/run/parallel.h"

#include <string.h>

gboolean
muster_check_index (gint64 index, gint64 limit, gint64 position, GError **error)
{
  if (index >= 0 && index < limit)
    return TRUE;
  return muster_invalid (error,
                         "indices[%" G_GINT64_FORMAT "] = %" G_GINT64_FORMAT
                         " is not in [0, %" G_GINT64_FORMAT ")",
                         position, index, limit);
}

/* Names the index in errors as TensorFlow does: "indices[1,0]". */
static gboolean
check_index_at (MusterTensor *indices, gint64 i, gint64 limit, GError **error)
{
  gint64 index = muster_int_at (indices, i), rest = i;
  g_autoptr (GString) place = NULL;
  if (index >= 0 && index < limit)
    return TRUE;
  place = g_string_new ("");
  for (int d = muster_tensor_n_dims (indices) - 1; d >= 0; d--) {
    g_autofree char *number =
        g_strdup_printf ("%" G_GINT64_FORMAT, rest % muster_tensor_dims (indices)[d]);
    g_string_prepend (place, number);
    if (d > 0)
      g_string_prepend_c (place, ',');
    rest /= muster_tensor_dims (indices)[d];
  }
  if (place->len > 0) {
    g_string_prepend_c (place, '[');
    g_string_append_c (place, ']');
  }
  return muster_invalid (error,
                         "indices%s = %" G_GINT64_FORMAT " is not in [0, %" G_GINT64_FORMAT ")",
                         place->str, index, limit);
}

/* Runs of bytes, picked by indices: batch by batch, in each of `outer` groups of `limit` runs. */
typedef struct {
  MusterInts indices;
  const guint8 *from;
  guint8 *to;
  gint64 outer, limit, picks;
  gsize run;
} Gather;

static void
gather_piece (gint64 begin, gint64 end, gpointer data)
{
  const Gather *self = data;
  for (gint64 at = begin; at < end; at++) {
    const gint64 group = at / self->picks;
    const gint64 pick = group / self->outer * self->picks + at % self->picks;
    memcpy (self->to + (gsize)at * self->run,
            self->from +
                (gsize)(group * self->limit + muster_ints_at (&self->indices, pick)) * self->run,
            self->run);
  }
}

gboolean
muster_gather (MusterKernel *k, MusterTensor *params, MusterTensor *indices, int axis, int batch,
               GError **error)
{
  int n = muster_tensor_n_dims (params), n_index = muster_tensor_n_dims (indices), n_out = 0;
  const gint64 *dims = muster_tensor_dims (params);
  gint64 out[2 * MUSTER_MAX_DIMS], inner;
  MusterElements from = muster_elements (params);
  g_auto (MusterResult) result = {0};
  for (int i = 0; i < axis; i++)
    out[n_out++] = dims[i];
  for (int i = batch; i < n_index; i++)
    out[n_out++] = muster_tensor_dims (indices)[i];
  for (int i = axis + 1; i < n; i++)
    out[n_out++] = dims[i];
  const MusterInts ints = muster_ints (indices);
  const gboolean is_empty = muster_shape_n_elements (n_out, out) == 0; /* nothing is read */
  for (gint64 i = 0; !is_empty && i < muster_tensor_n_elements (indices); i++)
    if ((guint64)muster_ints_at (&ints, i) >= (guint64)dims[axis])
      return check_index_at (indices, i, dims[axis], error);
  if (!muster_result_begin_unset (&result, k, muster_tensor_dtype (params), n_out, out, error))
    return FALSE;
  inner = muster_dims_product (dims, axis + 1, n);
  if (result.n > 0)
    muster_parallel_for (
        result.n / inner, muster_parallel_piece (inner), gather_piece,
        &(Gather){.indices = ints,
                  .from = from.data,
                  .to = result.data,
                  .outer = muster_dims_product (dims, batch, axis),
                  .limit = dims[axis],
                  .picks = muster_dims_product (muster_tensor_dims (indices), batch, n_index),
                  .run = (gsize)inner * result.size});
  return muster_result_end (&result, k, 0, error);
}

gboolean
muster_gather_batched (MusterKernel *k, MusterTensor *params, MusterTensor *indices, int axis,
                       gint64 batch, GError **error)
{
  const int n_index = muster_tensor_n_dims (indices);
  batch += batch < 0 ? n_index : 0;
  if (batch < 0 || batch > n_index || batch > axis)
    return muster_invalid (error,
                           "batch_dims (%" G_GINT64_FORMAT ") must be at most axis (%d) and "
                           "the rank of indices (%d)",
                           batch, axis, n_index);
  for (int i = 0; i < batch; i++)
    if (muster_tensor_dims (params)[i] != muster_tensor_dims (indices)[i])
      return muster_invalid (error, "params.shape[%d] should be equal to indices.shape[%d]", i, i);
  return muster_gather (k, params, indices, axis, (int)batch, error);
}

static gboolean
compute_gather_v2 (MusterKernel *k, GError **error)
{
  MusterTensor *params = muster_kernel_input (k, 0);
  int axis = 0;
  return muster_check_scalar (k, 2, "axis", error) &&
         muster_check_axis (muster_kernel_input_int (k, 2), muster_tensor_n_dims (params), &axis,
                            error) &&
         muster_gather_batched (k, params, muster_kernel_input (k, 1), axis,
                                muster_kernel_attr_int (k, "batch_dims", 0), error);
}

static gboolean
compute_gather (MusterKernel *k, GError **error)
{
  if (muster_tensor_n_dims (muster_kernel_input (k, 0)) < 1)
    return muster_invalid (error, "params must be at least 1 dimensional");
  return muster_gather (k, muster_kernel_input (k, 0), muster_kernel_input (k, 1), 0, 0, error);
}

static gboolean
compute_one_hot (MusterKernel *k, GError **error)
{
  MusterTensor *indices = muster_kernel_input (k, 0), *on = muster_kernel_input (k, 2);
  int n = muster_tensor_n_dims (indices), axis = 0;
  gint64 dims[MUSTER_MAX_DIMS + 1], depth, inner, unit = 1, zero = 0;
  gint64 wanted = muster_kernel_attr_int (k, "axis", -1);
  MusterElements one = muster_elements (on);
  MusterElements other = muster_elements (muster_kernel_input (k, 3));
  g_auto (MusterResult) result = {0};
  if (!muster_check_scalar (k, 1, "depth", error) ||
      !muster_check_scalar (k, 2, "on_value", error) ||
      !muster_check_scalar (k, 3, "off_value", error) ||
      !muster_check_axis (wanted, n + 1, &axis, error))
    return FALSE;
  depth = muster_kernel_input_int (k, 1);
  if (depth < 0)
    return muster_invalid (error, "depth must be non-negative, got: %" G_GINT64_FORMAT, depth);
  for (int i = 0; i <= n; i++)
    dims[i] = i == axis ? depth : muster_tensor_dims (indices)[i > axis ? i - 1 : i];
  if (!muster_result_begin (&result, k, muster_tensor_dtype (on), n + 1, dims, error))
    return FALSE;
  muster_copy_block (result.size, 1, &result.n, result.data, &unit, other.data, &zero);
  inner = muster_dims_product (dims, axis + 1, n + 1);
  for (gint64 i = 0; result.n > 0 && i < muster_tensor_n_elements (indices); i++) {
    const gint64 index = muster_int_at (indices, i);
    if (index >= 0 && index < depth)
      memcpy (result.data + ((i / inner * depth + index) * inner + i % inner) * (gint64)result.size,
              one.data, result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
is_true (MusterTensor *x, const MusterElements *elements, gint64 i)
{
  static const guint8 zero[16];
  const guint8 *at = elements->data + i * (gint64)elements->size;
  switch (muster_tensor_dtype (x)) {
  case MUSTER_FLOAT: /* -0.0 is zero, too */
    return *(const float *)at != 0;
  case MUSTER_DOUBLE:
    return *(const double *)at != 0;
  default:
    return memcmp (at, zero, elements->size) != 0;
  }
}

/* The coordinates of the true elements, one row each. */
static gboolean
compute_where (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  gint64 n = muster_tensor_n_elements (x), found = 0;
  int n_dims = muster_tensor_n_dims (x);
  MusterElements elements = muster_elements (x);
  gint64 *to;
  if (muster_tensor_dtype (x) == MUSTER_STRING)
    return muster_invalid (error, "Where isn't supported for strings");
  if (n_dims == 0)
    return muster_invalid (error, "WhereOp : Unhandled input dimensions: 0");
  for (gint64 i = 0; i < n; i++)
    found += is_true (x, &elements, i);
  out = muster_kernel_output (k, 0, 2, (gint64[]){found, n_dims}, error);
  if (out == NULL)
    return FALSE;
  to = muster_tensor_data_mutable (out);
  for (gint64 i = 0; i < n; i++) {
    gint64 rest = i;
    if (!is_true (x, &elements, i))
      continue;
    for (int d = n_dims - 1; d >= 0; d--) {
      to[d] = rest % muster_tensor_dims (x)[d];
      rest /= muster_tensor_dims (x)[d];
    }
    to += n_dims;
  }
  return TRUE;
}

/* Select, version 1: the condition has the values' shape, is a scalar, or selects rows. */
static gboolean
compute_select (MusterKernel *k, GError **error)
{
  MusterTensor *condition = muster_kernel_input (k, 0), *x = muster_kernel_input (k, 1);
  MusterTensor *y = muster_kernel_input (k, 2);
  MusterElements then = muster_elements (x);
  MusterElements other = muster_elements (y);
  g_auto (MusterResult) result = {0};
  const guint8 *chooses = muster_tensor_data (condition);
  gint64 n, run;
  if (!muster_same_shape (x, y)) {
    g_autofree char *a = muster_shape_text (x), *b = muster_shape_text (y);
    return muster_invalid (
        error, "'then' and 'else' must have the same size.  but received: %s vs. %s", a, b);
  }
  if (!muster_same_shape (condition, x) && muster_tensor_n_dims (condition) != 0 &&
      (muster_tensor_n_dims (condition) != 1 || muster_tensor_n_dims (x) == 0 ||
       muster_tensor_dims (condition)[0] != muster_tensor_dims (x)[0])) {
    g_autofree char *a = muster_shape_text (condition), *b = muster_shape_text (x);
    return muster_invalid (error,
                           "Inputs to operation Select: condition's shape %s fits neither the "
                           "values' shape %s nor its first dimension",
                           a, b);
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), muster_tensor_n_dims (x),
                            muster_tensor_dims (x), error))
    return FALSE;
  n = muster_tensor_n_elements (condition);
  run = n == 0 ? 0 : result.n / n;
  for (gint64 i = 0; i < n && run > 0; i++)
    memcpy (result.data + i * run * (gint64)result.size,
            (chooses[i] ? then.data : other.data) + i * run * (gint64)result.size,
            (gsize)run * result.size);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_select_v2 (MusterKernel *k, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1),
                              muster_kernel_input (k, 2)};
  MusterElements then = muster_elements (operands[1]);
  MusterElements other = muster_elements (operands[2]);
  g_auto (MusterResult) result = {0};
  const guint8 *chooses = muster_tensor_data (operands[0]);
  MusterPlace place = {0};
  MusterBroadcast b;
  if (!muster_broadcast_init (&b, operands, 3, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (operands[1]), b.n_dims, b.dims, error))
    return FALSE;
  for (gint64 n = 0; n < result.n; n++) {
    memcpy (result.data + n * (gint64)result.size,
            chooses[place.from[0]] ? then.data + place.from[1] * (gint64)result.size
                                   : other.data + place.from[2] * (gint64)result.size,
            result.size);
    muster_broadcast_next (&b, 3, 0, &place);
  }
  return muster_result_end (&result, k, 0, error);
}

/* DynamicStitch: puts rows of data at indices of a result as long as the largest index requires. */
static gboolean
stitch_shape (MusterKernel *k, int n, gint64 *dims, int *n_dims, GError **error)
{
  MusterTensor *first = muster_kernel_input (k, 0), *rows = muster_kernel_input (k, n);
  int tail = muster_tensor_n_dims (rows) - muster_tensor_n_dims (first);
  gint64 largest = -1;
  for (int i = 0; i < n; i++) {
    MusterTensor *indices = muster_kernel_input (k, i), *data = muster_kernel_input (k, n + i);
    int n_index = muster_tensor_n_dims (indices);
    gboolean fits = tail >= 0 && muster_tensor_n_dims (data) - n_index == tail;
    for (int d = 0; fits && d < n_index; d++)
      fits = muster_tensor_dims (indices)[d] == muster_tensor_dims (data)[d];
    for (int d = 0; fits && d < tail; d++)
      fits = muster_tensor_dims (data)[n_index + d] ==
             muster_tensor_dims (rows)[muster_tensor_n_dims (first) + d];
    if (!fits) {
      g_autofree char *a = muster_shape_text (indices), *b = muster_shape_text (data);
      return muster_invalid (
          error, "data[%d].shape = %s does not start with indices[%d].shape = %s", i, b, i, a);
    }
    for (gint64 j = 0; j < muster_tensor_n_elements (indices); j++) {
      if (muster_int_at (indices, j) < 0 || muster_int_at (indices, j) == G_MAXINT32)
        return muster_invalid (error, "indices[%d] is out of range: %" G_GINT64_FORMAT, i,
                               muster_int_at (indices, j));
      largest = MAX (largest, muster_int_at (indices, j));
    }
  }
  dims[0] = largest + 1;
  for (int d = 0; d < tail; d++)
    dims[d + 1] = muster_tensor_dims (rows)[muster_tensor_n_dims (first) + d];
  *n_dims = tail + 1;
  return TRUE;
}

static gboolean
compute_dynamic_stitch (MusterKernel *k, GError **error)
{
  int n = muster_kernel_n_inputs (k) / 2, n_dims = 0;
  gint64 dims[MUSTER_MAX_DIMS + 1], run;
  g_auto (MusterResult) result = {0};
  if (n == 0 || !stitch_shape (k, n, dims, &n_dims, error) ||
      !muster_result_begin (&result, k, muster_tensor_dtype (muster_kernel_input (k, n)), n_dims,
                            dims, error))
    return FALSE;
  run = muster_dims_product (dims, 1, n_dims);
  for (int i = 0; i < n && result.n > 0; i++) {
    MusterTensor *indices = muster_kernel_input (k, i);
    MusterElements from = muster_elements (muster_kernel_input (k, n + i));
    for (gint64 j = 0; j < muster_tensor_n_elements (indices); j++)
      memcpy (result.data + muster_int_at (indices, j) * run * (gint64)result.size,
              from.data + j * run * (gint64)result.size, (gsize)run * result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_invert_permutation (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *y;
  gint64 n = muster_tensor_n_elements (x);
  if (muster_tensor_n_dims (x) != 1)
    return muster_invalid (error, "invert_permutation expects a 1D vector.");
  y = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  memset (muster_tensor_data_mutable (y), 0xff, muster_tensor_n_bytes (y));
  for (gint64 i = 0; i < n; i++) {
    gint64 to = muster_int_at (x, i);
    if (!muster_check_index (to, n, i, error))
      return FALSE;
    if (muster_int_at (y, to) != -1)
      return muster_invalid (error, "%" G_GINT64_FORMAT " is duplicated in the input.", to);
    muster_put_int (y, to, i);
  }
  return TRUE;
}

#define STITCH "indices:N*int32, data:N*T -> merged:T"
#define CHOICE "condition:bool, t:T, e:T -> output:T"

const MusterOp muster_gather_ops[] = {
    {"Gather", "params:Tparams, indices:Tindices -> output:Tparams",
     "Tparams:any|resource Tindices:int32|int64", compute_gather, MUSTER_OP_HANDLES},
    {"GatherV2", "params:Tparams, indices:Tindices, axis:Taxis -> output:Tparams",
     "Tparams:any|resource Tindices:int32|int64|int16 Taxis:int32|int64 batch_dims",
     compute_gather_v2, MUSTER_OP_HANDLES},
    {"OneHot", "indices:TI, depth:int32, on_value:T, off_value:T -> output:T",
     "T:any TI:int64|int32|uint8|int8 axis", compute_one_hot, 0},
    {"Where", "input:T -> index:int64", "T:any", compute_where, 0},
    {"Select", CHOICE, "T:any", compute_select, 0},
    {"SelectV2", CHOICE, "T:any|resource", compute_select_v2, MUSTER_OP_HANDLES},
    {"DynamicStitch", STITCH, "T:any", compute_dynamic_stitch, 0},
    {"ParallelDynamicStitch", STITCH, "T:any", compute_dynamic_stitch, 0},
    {"InvertPermutation", "x:T -> y:T", "T:int32|int64", compute_invert_permutation, 0},
    {NULL, NULL, NULL, NULL, 0},
};
