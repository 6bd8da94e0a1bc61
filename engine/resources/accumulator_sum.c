// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/accumulator_sum.h"

#include "base/error.h"
#include "base/memory_account_private.h"

#include <string.h>

void
muster_accumulator_sum_clear (MusterAccumulatorSum *self)
{
  g_clear_pointer (&self->values, muster_tensor_unref);
  g_clear_pointer (&self->indices, muster_tensor_unref);
  g_clear_pointer (&self->counts, g_free);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->n_counted);
  self->n_counted = 0;
}

/* to = a + b; each may be the same memory as to. half is rounded after each operation, as Eigen
 * does. */
static void
add (MusterDType dtype, gint64 n, const void *a, const void *b, void *to)
{
  if (dtype == MUSTER_FLOAT) {
    const float *x = a, *y = b;
    float *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = x[i] + y[i];
  } else if (dtype == MUSTER_DOUBLE) {
    const double *x = a, *y = b;
    double *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = x[i] + y[i];
  } else {
    const guint16 *x = a, *y = b;
    guint16 *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = muster_half_from_float (muster_half_to_float (x[i]) + muster_half_to_float (y[i]));
  }
}

static void
divide (MusterDType dtype, gint64 n, const void *a, gint32 by, void *to)
{
  if (dtype == MUSTER_FLOAT) {
    const float *x = a, divisor = (float)by;
    float *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = x[i] / divisor;
  } else if (dtype == MUSTER_DOUBLE) {
    const double *x = a;
    double *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = x[i] / by;
  } else {
    const guint16 *x = a;
    const float divisor = muster_half_to_float (muster_half_from_float ((float)by));
    guint16 *z = to;
    for (gint64 i = 0; i < n; i++)
      z[i] = muster_half_from_float (muster_half_to_float (x[i]) / divisor);
  }
}

/* A write to the values, in place or to a new tensor. `from` is valid until end_write (). */
typedef struct {
  const void *from;
  void *to;             /* NULL: not enough memory */
  MusterTensor *before; /* (owned) (nullable) */
} Write;

static Write
begin_write (MusterAccumulatorSum *self, GError **error)
{
  MusterTensor *values = self->values;
  if (muster_tensor_is_exclusive (values)) {
    void *data = muster_tensor_data_mutable (values);
    return (Write){.from = data, .to = data};
  }
  MusterTensor *fresh =
      muster_tensor_try_new (muster_tensor_dtype (values), muster_tensor_n_dims (values),
                             muster_tensor_dims (values), error);
  if (fresh == NULL)
    return (Write){0};
  self->values = fresh;
  return (Write){.from = muster_tensor_data (values),
                 .to = muster_tensor_data_mutable (fresh),
                 .before = values};
}

static void
end_write (Write *write)
{
  g_clear_pointer (&write->before, muster_tensor_unref);
}

gboolean
muster_accumulator_sum_add (MusterAccumulatorSum *self, MusterTensor *gradient, GError **error)
{
  if (self->values == NULL) {
    self->values = muster_tensor_keep (gradient);
    return TRUE;
  }
  Write write = begin_write (self, error);
  if (write.to == NULL)
    return FALSE;
  add (muster_tensor_dtype (gradient), muster_tensor_n_elements (gradient), write.from,
       muster_tensor_data (gradient), write.to);
  end_write (&write);
  return TRUE;
}

gboolean
muster_accumulator_sum_divide (MusterAccumulatorSum *self, gint32 n, GError **error)
{
  if (n == 1)
    return TRUE;
  Write write = begin_write (self, error);
  if (write.to == NULL)
    return FALSE;
  divide (muster_tensor_dtype (self->values), muster_tensor_n_elements (self->values), write.from,
          n, write.to);
  end_write (&write);
  return TRUE;
}

/* A list of rows to merge. */
typedef struct {
  const gint64 *indices;
  const guint8 *values;
  const gint32 *counts; /* (nullable) */
  gint64 n;
} Rows;

typedef struct {
  MusterDType dtype;
  gint64 n_row;   /* elements of a row */
  gsize row_size; /* bytes of it */
  gint64 *indices;
  guint8 *values;
  gint32 *counts;
} Merged;

static Rows
rows_of (const MusterTensor *indices, const MusterTensor *values, const gint32 *counts)
{
  return (Rows){.indices = muster_tensor_data (indices),
                .values = muster_tensor_data (values),
                .counts = counts,
                .n = muster_tensor_n_elements (indices)};
}

static gint32
count_at (const Rows *rows, gint64 i)
{
  return rows->counts != NULL ? rows->counts[i] : 1;
}

/* The number of rows in the merged list. */
static gint64
count_merged (const Rows *a, const Rows *b)
{
  gint64 n = 0;
  for (gint64 i = 0, j = 0; i < a->n || j < b->n; n++) {
    const gboolean from_a = j == b->n || (i < a->n && a->indices[i] <= b->indices[j]);
    const gboolean from_b = i == a->n || (j < b->n && b->indices[j] <= a->indices[i]);
    i += from_a;
    j += from_b;
  }
  return n;
}

static void
merge (const Merged *to, const Rows *a, const Rows *b)
{
  gint64 n = 0;
  for (gint64 i = 0, j = 0; i < a->n || j < b->n; n++) {
    const gboolean from_a = j == b->n || (i < a->n && a->indices[i] <= b->indices[j]);
    const gboolean from_b = i == a->n || (j < b->n && b->indices[j] <= a->indices[i]);
    const guint8 *row_a = a->values + (gsize)i * to->row_size;
    const guint8 *row_b = b->values + (gsize)j * to->row_size;
    guint8 *row = to->values + (gsize)n * to->row_size;
    to->indices[n] = from_a ? a->indices[i] : b->indices[j];
    to->counts[n] = from_a ? count_at (a, i) + (from_b ? 1 : 0) : 1;
    if (from_a && from_b)
      add (to->dtype, to->n_row, row_a, row_b, row);
    else if (to->row_size > 0)
      memcpy (row, from_a ? row_a : row_b, to->row_size);
    i += from_a;
    j += from_b;
  }
}

/* The number of elements in a row. */
static gint64
row_length (const MusterTensor *values)
{
  return muster_shape_n_elements (muster_tensor_n_dims (values) - 1,
                                  muster_tensor_dims (values) + 1);
}

gboolean
muster_accumulator_sum_add_rows (MusterAccumulatorSum *self, MusterTensor *indices,
                                 MusterTensor *values, GError **error)
{
  if (self->values == NULL) {
    self->indices = muster_tensor_keep (indices);
    self->values = muster_tensor_keep (values);
    return TRUE;
  }
  const Rows a = rows_of (self->indices, self->values, self->counts);
  const Rows b = rows_of (indices, values, NULL);
  const gint64 n = count_merged (&a, &b);
  gint64 dims[MUSTER_MAX_DIMS];
  memcpy (dims, muster_tensor_dims (values), (gsize)muster_tensor_n_dims (values) * sizeof *dims);
  dims[0] = n;
  g_autoptr (MusterTensor) sums = muster_tensor_try_new (
      muster_tensor_dtype (values), muster_tensor_n_dims (values), dims, error);
  g_autoptr (MusterTensor) places =
      sums != NULL ? muster_tensor_try_new (MUSTER_INT64, 1, &n, error) : NULL;
  const gsize n_counted = ((gsize)n + 1) * sizeof (gint32);
  if (places == NULL || !muster_memory_take (MUSTER_MEMORY_RESOURCES, n_counted, error))
    return FALSE;
  g_autofree gint32 *counts = g_try_malloc (n_counted);
  if (counts == NULL) {
    muster_memory_release (MUSTER_MEMORY_RESOURCES, n_counted);
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "not enough memory for %" G_GINT64_FORMAT " accumulated rows", n);
  }
  const gint64 n_row = row_length (values);
  const Merged to = {.dtype = muster_tensor_dtype (values),
                     .n_row = n_row,
                     .row_size = (gsize)n_row * muster_dtype_size (muster_tensor_dtype (values)),
                     .indices = muster_tensor_data_mutable (places),
                     .values = muster_tensor_data_mutable (sums),
                     .counts = counts};
  merge (&to, &a, &b);
  muster_accumulator_sum_clear (self);
  *self = (MusterAccumulatorSum){.values = g_steal_pointer (&sums),
                                 .indices = g_steal_pointer (&places),
                                 .counts = g_steal_pointer (&counts),
                                 .n_counted = n_counted};
  return TRUE;
}

gboolean
muster_accumulator_sum_divide_rows (MusterAccumulatorSum *self, GError **error)
{
  if (self->counts == NULL)
    return TRUE;
  Write write = begin_write (self, error);
  if (write.to == NULL)
    return FALSE;
  const MusterDType dtype = muster_tensor_dtype (self->values);
  const gint64 n = muster_tensor_n_elements (self->indices), n_row = row_length (self->values);
  const gsize size = (gsize)n_row * muster_dtype_size (dtype);
  for (gint64 i = 0; i < n; i++)
    divide (dtype, n_row, (const guint8 *)write.from + (gsize)i * size, self->counts[i],
            (guint8 *)write.to + (gsize)i * size);
  end_write (&write);
  return TRUE;
}
