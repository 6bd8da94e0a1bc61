// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/data_flow/queue_batch.h"

#include "engine/kernels/common/dispatch.h"
#include "graph/tensor_private.h"

#include <string.h>

/* An element's memory in addition to its bytes: the tensor's header and the entry in the queue. */
#define ELEMENT_OVERHEAD 128

/* The memory of the batch's elements as separate tensors. */
static gsize
sliced_size (const MusterTensor *batch)
{
  const gint64 n_elements = muster_tensor_n_elements (batch);
  gsize size = muster_tensor_n_bytes (batch), n_heads;
  if (muster_tensor_dtype (batch) == MUSTER_STRING)
    for (gint64 i = 0; i < n_elements; i++)
      size += sizeof (MusterString) + muster_tensor_string (batch, i).size;
  return g_size_checked_mul (&n_heads, (gsize)muster_tensor_dims (batch)[0], ELEMENT_OVERHEAD) &&
                 g_size_checked_add (&size, size, n_heads)
             ? size
             : G_MAXSIZE;
}

gboolean
muster_queue_take_slices (MusterTensor *const *tuple, guint n_components, MusterKernel *k,
                          GError **error)
{
  for (guint c = 0; c < n_components; c++)
    if (!muster_budget_take_owned (muster_kernel_budget (k), sliced_size (tuple[c]), error))
      return FALSE;
  return TRUE;
}

MusterTensor *
muster_queue_slice (const MusterTensor *batch, gint64 index, GError **error)
{
  const int n_dims = muster_tensor_n_dims (batch) - 1;
  const gint64 *dims = muster_tensor_dims (batch) + 1;
  const gint64 n = muster_dims_product (dims, 0, n_dims);
  if (muster_tensor_dtype (batch) == MUSTER_STRING)
    return muster_tensor_try_new_strings (NULL, n_dims, dims,
                                          muster_tensor_strings (batch) + index * n, error);
  const gsize size = (gsize)n * muster_dtype_size (muster_tensor_dtype (batch));
  MusterTensor *slice =
      muster_tensor_try_new_within (NULL, muster_tensor_dtype (batch), n_dims, dims, error);
  if (slice != NULL && size > 0)
    memcpy (muster_tensor_data_mutable (slice),
            (const guint8 *)muster_tensor_data (batch) + (gsize)index * size, size);
  return slice;
}

/* The shape of component c in a batch of n. */
static void
batch_shape (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n, guint c,
             gint64 *dims)
{
  const MusterQueueShape *shape = &spec->shapes[c];
  dims[0] = n;
  for (int j = 0; j < shape->n_dims; j++) {
    dims[j + 1] = MAX (shape->dims[j], 0);
    for (gint64 i = 0; shape->dims[j] < 0 && i < n; i++)
      dims[j + 1] = MAX (dims[j + 1], muster_tensor_dims (elements[i * spec->n_components + c])[j]);
  }
}

/* Copies an element of shape from to the start of each dimension of a larger one of shape to, row
 * by row. */
static void
copy_corner (const guint8 *data, const gint64 *from, guint8 *place, const gint64 *to, int n_dims,
             gsize size)
{
  if (n_dims == 0 || memcmp (from, to, (gsize)n_dims * sizeof *from) == 0 || n_dims == 1) {
    const gsize all = (gsize)muster_dims_product (from, 0, n_dims) * size;
    if (all > 0)
      memcpy (place, data, all);
    return;
  }
  const gsize row = (gsize)muster_dims_product (from, 1, n_dims) * size;
  const gsize capacity = (gsize)muster_dims_product (to, 1, n_dims) * size;
  for (gint64 i = 0; i < from[0]; i++)
    copy_corner (data + (gsize)i * row, from + 1, place + (gsize)i * capacity, to + 1, n_dims - 1,
                 size);
}

static gboolean
batch_component (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n, guint c,
                 MusterKernel *k, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  g_auto (MusterResult) result = {0};
  const int n_dims = spec->shapes[c].n_dims;
  batch_shape (spec, elements, n, c, dims);
  if (!muster_result_begin (&result, k, (MusterDType)spec->dtypes[c], n_dims + 1, dims, error))
    return FALSE;
  const gsize place = (gsize)muster_dims_product (dims, 1, n_dims + 1) * result.size;
  for (gint64 i = 0; i < n; i++) {
    const MusterTensor *element = elements[i * spec->n_components + c];
    MusterElements from = muster_elements (element);
    copy_corner (from.data, muster_tensor_dims (element), result.data + (gsize)i * place, dims + 1,
                 n_dims, result.size);
  }
  return muster_result_end (&result, k, (int)c, error);
}

gboolean
muster_queue_batch (const MusterQueueSpec *spec, MusterTensor *const *elements, gint64 n,
                    MusterKernel *k, GError **error)
{
  for (guint c = 0; c < spec->n_components; c++)
    if (!batch_component (spec, elements, n, c, k, error))
      return FALSE;
  return TRUE;
}
