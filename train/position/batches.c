// SPDX-License-Identifier: Apache-2.0
#include "train/position/batches.h"

#include "base/error.h"
#include "base/require.h"

#include <string.h>

struct _MusterBatches {
  gatomicrefcount refs;
  MusterTensor **arrays; /* (owned) n_arrays */
  gsize n_arrays;
  gint64 n_rows;
  gint64 batch_size;
  guint64 seed;
  gint64 position;
  gint64 epoch;  /* the epoch of this order; -1: none yet */
  gint64 *order; /* (owned) n_rows */
};

/* SplitMix64: well-mixed random numbers from any seed. */
static guint64
mix (guint64 *state)
{
  guint64 z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void
shuffle (MusterBatches *self, gint64 epoch)
{
  guint64 state = self->seed ^ ((guint64)epoch * 0xd1342543de82ef95u);
  for (gint64 i = 0; i < self->n_rows; i++)
    self->order[i] = i;
  for (gint64 i = self->n_rows - 1; i > 0; i--) {
    gint64 j = (gint64)(mix (&state) % (guint64)(i + 1));
    gint64 swapped = self->order[i];
    self->order[i] = self->order[j];
    self->order[j] = swapped;
  }
  self->epoch = epoch;
}

static gint64
rows_of (const MusterTensor *array)
{
  return muster_tensor_n_dims (array) == 0 ? 0 : muster_tensor_dims (array)[0];
}

MusterBatches *
muster_batches_new (MusterTensor *const *arrays, gsize n_arrays, gint64 batch_size, guint64 seed,
                    GError **error)
{
  muster_require_array (error, NULL, arrays, n_arrays);
  for (gsize i = 0; i < n_arrays; i++)
    muster_require (error, NULL, arrays[i]);
  if (n_arrays == 0) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "muster_batches_new: no arrays");
    return NULL;
  }
  gint64 n_rows = rows_of (arrays[0]);
  for (gsize i = 0; i < n_arrays; i++)
    if (rows_of (arrays[i]) != n_rows || muster_tensor_dtype (arrays[i]) == MUSTER_STRING) {
      muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                   "array %" G_GSIZE_FORMAT " has %" G_GINT64_FORMAT
                   " rows of %s, the first has %" G_GINT64_FORMAT
                   ": arrays of numbers with as many rows are "
                   "needed",
                   i, rows_of (arrays[i]), muster_dtype_name (muster_tensor_dtype (arrays[i])),
                   n_rows);
      return NULL;
    }
  if (batch_size < 1 || batch_size > n_rows) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid batch size %" G_GINT64_FORMAT ", number of rows: %" G_GINT64_FORMAT,
                 batch_size, n_rows);
    return NULL;
  }
  MusterBatches *self = g_new0 (MusterBatches, 1);
  g_atomic_ref_count_init (&self->refs);
  self->arrays = g_new (MusterTensor *, n_arrays);
  for (gsize i = 0; i < n_arrays; i++)
    self->arrays[i] = muster_tensor_ref (arrays[i]);
  self->n_arrays = n_arrays;
  self->n_rows = n_rows;
  self->batch_size = batch_size;
  self->seed = seed;
  self->epoch = -1;
  self->order = g_new (gint64, n_rows);
  return self;
}

G_DEFINE_BOXED_TYPE (MusterBatches, muster_batches, muster_batches_ref, muster_batches_free)

MusterBatches *
muster_batches_ref (MusterBatches *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_batches_free (MusterBatches *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  for (gsize i = 0; i < self->n_arrays; i++)
    muster_tensor_unref (self->arrays[i]);
  g_free (self->arrays);
  g_free (self->order);
  g_free (self);
}

/* Copies n rows of an array, in the given order, to a new tensor. */
static MusterTensor *
gather (const MusterTensor *array, const gint64 *rows, gint64 n)
{
  int n_dims = muster_tensor_n_dims (array);
  gint64 dims[MUSTER_MAX_DIMS];
  memcpy (dims, muster_tensor_dims (array), (gsize)n_dims * sizeof *dims);
  gsize row_size = muster_tensor_n_bytes (array) / (gsize)dims[0];
  dims[0] = n;
  MusterTensor *batch = muster_tensor_new (muster_tensor_dtype (array), n_dims, dims);
  guint8 *to = muster_tensor_data_mutable (batch);
  const guint8 *from = muster_tensor_data (array);
  for (gint64 i = 0; i < n; i++)
    memcpy (to + (gsize)i * row_size, from + (gsize)rows[i] * row_size, row_size);
  return batch;
}

void
muster_batches_next (MusterBatches *self, MusterTensor **batch)
{
  g_return_if_fail (self != NULL && batch != NULL);
  gint64 per_epoch = muster_batches_per_epoch (self);
  gint64 epoch = self->position / per_epoch;
  if (epoch != self->epoch)
    shuffle (self, epoch);
  const gint64 *rows = self->order + (self->position % per_epoch) * self->batch_size;
  for (gsize i = 0; i < self->n_arrays; i++)
    batch[i] = gather (self->arrays[i], rows, self->batch_size);
  self->position++;
}

GPtrArray *
muster_batches_next_list (MusterBatches *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  GPtrArray *batch = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  g_ptr_array_set_size (batch, (gint)self->n_arrays);
  muster_batches_next (self, (MusterTensor **)batch->pdata);
  return batch;
}

gint64
muster_batches_per_epoch (MusterBatches *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_rows / self->batch_size;
}

gint64
muster_batches_position (MusterBatches *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->position;
}

void
muster_batches_seek (MusterBatches *self, gint64 position)
{
  g_return_if_fail (self != NULL);
  g_return_if_fail (position >= 0);
  self->position = position;
}
