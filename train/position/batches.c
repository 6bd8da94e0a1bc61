// SPDX-License-Identifier: Apache-2.0
/* Batches of rows of arrays, in an order that seed and epoch decide, so that a position is a
 * number. */
#include "base/error.h"
#include "base/require_private.h"
#include "train/position/batches_private.h"

#include <string.h>

struct _MusterBatches {
  gatomicrefcount refs;
  MusterTensor **arrays; /* (owned) n_arrays, the constants last */
  gsize n_arrays;
  gsize n_constants;
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

static gboolean
has_rows (const MusterTensor *array)
{
  return muster_tensor_n_dims (array) > 0;
}

/* The number of rows of all arrays that have any; -1, with an error, if they differ. */
static gint64
common_rows (MusterTensor *const *arrays, gsize n_arrays, GError **error)
{
  gint64 n_rows = 0;
  gssize first = -1;
  for (gsize i = 0; i < n_arrays; i++) {
    if (!has_rows (arrays[i]))
      continue;
    const gint64 rows = muster_tensor_dims (arrays[i])[0];
    if (first < 0) {
      first = (gssize)i;
      n_rows = rows;
    } else if (rows != n_rows) {
      muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                   "array %" G_GSIZE_FORMAT " has %" G_GINT64_FORMAT
                   " rows, array %" G_GSSIZE_FORMAT " has %" G_GINT64_FORMAT
                   "; all arrays need the same number of rows",
                   i, rows, first, n_rows);
      return -1;
    }
  }
  return n_rows;
}

static gboolean
has_any_rows (MusterTensor *const *arrays, gsize n_arrays)
{
  for (gsize i = 0; i < n_arrays; i++)
    if (has_rows (arrays[i]))
      return TRUE;
  return FALSE;
}

MusterBatches *
muster_batches_new (MusterTensor *const *arrays, gsize n_arrays, gint64 batch_size, guint64 seed,
                    GError **error)
{
  muster_require_array (error, NULL, arrays, n_arrays);
  for (gsize i = 0; i < n_arrays; i++)
    muster_require (error, NULL, arrays[i]);
  const gint64 n_rows = common_rows (arrays, n_arrays, error);
  if (n_rows < 0)
    return NULL;
  if (has_any_rows (arrays, n_arrays) && (batch_size < 1 || batch_size > n_rows)) {
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
  self->batch_size = n_rows > 0 ? batch_size : 0;
  self->seed = seed;
  self->epoch = -1;
  self->order = g_new (gint64, n_rows);
  return self;
}

void
muster_batches_add_constant (MusterBatches *self, MusterTensor *array)
{
  g_return_if_fail (self != NULL && array != NULL);
  g_return_if_fail (self->position == 0);
  self->arrays = g_renew (MusterTensor *, self->arrays, self->n_arrays + 1);
  self->arrays[self->n_arrays++] = muster_tensor_ref (array);
  self->n_constants++;
}

gboolean
muster_batches_check_feeds (MusterBatches *self, gsize n_feeds, GError **error)
{
  const gsize n_arrays = self != NULL ? self->n_arrays : 0;
  if (n_arrays == n_feeds && (self == NULL || n_arrays > 0))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "the batches have %" G_GSIZE_FORMAT " arrays for %" G_GSIZE_FORMAT
                      " tensors to feed; name one tensor for each array",
                      n_arrays, n_feeds);
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

static MusterTensor *
gather_strings (const MusterTensor *array, const gint64 *rows, int n_dims, const gint64 *dims)
{
  gint64 width = 1;
  for (int i = 1; i < n_dims; i++)
    width *= dims[i];
  g_autofree MusterString *strings = g_new (MusterString, dims[0] * width + 1);
  for (gint64 i = 0; i < dims[0]; i++)
    for (gint64 k = 0; k < width; k++)
      strings[i * width + k] = muster_tensor_string (array, rows[i] * width + k);
  return muster_tensor_new_strings (n_dims, dims, strings);
}

/* Copies n rows of an array, in the given order, to a new tensor. */
static MusterTensor *
gather (const MusterTensor *array, const gint64 *rows, gint64 n)
{
  int n_dims = muster_tensor_n_dims (array);
  gint64 dims[MUSTER_MAX_DIMS];
  memcpy (dims, muster_tensor_dims (array), (gsize)n_dims * sizeof *dims);
  const gsize row_size = muster_tensor_n_bytes (array) / (gsize)dims[0];
  dims[0] = n;
  if (muster_tensor_dtype (array) == MUSTER_STRING)
    return gather_strings (array, rows, n_dims, dims);
  MusterTensor *batch = muster_tensor_new (muster_tensor_dtype (array), n_dims, dims);
  guint8 *to = muster_tensor_data_mutable (batch);
  const guint8 *from = muster_tensor_data (array);
  for (gint64 i = 0; i < n; i++)
    memcpy (to + (gsize)i * row_size, from + (gsize)rows[i] * row_size, row_size);
  return batch;
}

/* The rows of the batch at the position; NULL if no array has rows. */
static const gint64 *
next_rows (MusterBatches *self)
{
  const gint64 per_epoch = muster_batches_per_epoch (self);
  if (per_epoch == 0)
    return NULL;
  const gint64 epoch = self->position / per_epoch;
  if (epoch != self->epoch)
    shuffle (self, epoch);
  return self->order + (self->position % per_epoch) * self->batch_size;
}

static gboolean
is_dealt (const MusterBatches *self, gsize index)
{
  return index < self->n_arrays - self->n_constants && has_rows (self->arrays[index]);
}

const MusterTensor *
muster_batches_fed (const MusterBatches *self, gsize index, gint64 *n_rows)
{
  if (index >= self->n_arrays)
    return NULL;
  *n_rows = is_dealt (self, index) ? self->batch_size : -1;
  return self->arrays[index];
}

static void
gather_all (const MusterBatches *self, const gint64 *rows, gint64 n, MusterTensor **batch)
{
  for (gsize i = 0; i < self->n_arrays; i++)
    batch[i] = is_dealt (self, i) ? gather (self->arrays[i], rows, n)
                                  : muster_tensor_ref (self->arrays[i]);
}

void
muster_batches_next (MusterBatches *self, MusterTensor **batch)
{
  g_return_if_fail (self != NULL && (batch != NULL || self->n_arrays == 0));
  gather_all (self, next_rows (self), self->batch_size, batch);
  self->position++;
}

gint64
muster_batches_rows (const MusterBatches *self, gint64 first, MusterTensor **batch)
{
  const gint64 n = MIN (self->batch_size, self->n_rows - first);
  if (n <= 0)
    return 0;
  g_autofree gint64 *rows = g_new (gint64, n);
  for (gint64 i = 0; i < n; i++)
    rows[i] = first + i;
  gather_all (self, rows, n, batch);
  return n;
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
  return self->batch_size > 0 ? self->n_rows / self->batch_size : 0;
}

MusterTensor *
muster_batches_array (MusterBatches *self, gsize index)
{
  g_return_val_if_fail (self != NULL, NULL);
  return index < self->n_arrays ? self->arrays[index] : NULL;
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
