// SPDX-License-Identifier: Apache-2.0
/* RandomShuffle; with fixed seeds in TensorFlow's order, step by step. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/dispatch.h"

#include <string.h>

/* Fisher-Yates: swaps each row, from the first, with a random one at or after it. Uses one word for
 * each row except the last. */
static void
permute (MusterKernel *k, gint64 *order, gint64 n)
{
  MusterPhilox random = muster_kernel_philox_blocks (k, (guint64)(n - 1 + 3) / 4);
  guint32 words[4];
  for (gint64 i = 0; i < n; i++)
    order[i] = i;
  for (gint64 i = 0; i < n - 1; i++) {
    if (i % 4 == 0)
      muster_philox_next (&random, words);
    const gint64 other = i + words[i % 4] % (guint32)(n - i);
    const gint64 row = order[i];
    order[i] = order[other];
    order[other] = row;
  }
}

static gboolean
compute_shuffle (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  const int n_dims = muster_tensor_n_dims (x);
  const gint64 *dims = muster_tensor_dims (x);
  g_auto (MusterResult) result = {0};
  if (muster_tensor_n_elements (x) <= 1 || dims[0] <= 1) {
    muster_kernel_set_output (k, 0, muster_tensor_ref (x));
    return TRUE;
  }
  if (dims[0] > G_MAXUINT32)
    return muster_invalid (error, "The input has too many rows to shuffle");
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n_dims, dims, error))
    return FALSE;
  MusterElements from = muster_elements (x);
  g_autofree gint64 *order = muster_kernel_alloc (k, dims[0], sizeof (gint64), error);
  const gsize row = (gsize)muster_dims_product (dims, 1, n_dims) * from.size;
  if (order == NULL)
    return FALSE;
  permute (k, order, dims[0]);
  for (gint64 i = 0; i < dims[0]; i++)
    memcpy (result.data + (gsize)i * row, from.data + (gsize)order[i] * row, row);
  return muster_result_end (&result, k, 0, error);
}

const MusterOp muster_shuffle_ops[] = {
    {"RandomShuffle", "value:T -> output:T", "T:any seed seed2", compute_shuffle, MUSTER_OP_READER},
    {NULL, NULL, NULL, NULL, 0},
};
