// SPDX-License-Identifier: Apache-2.0
/* Statistics of a tensor's values, and how much two tensors differ. */
#include "graph/tensor_stats.h"

#include <math.h>
#include <string.h>

#define BLOCK 1024 /* elements that are doubles at a time */

/* Count, mean and sum of squared deviations, combined by Chan's method, which keeps digits that a
 * sum of squares loses. */
typedef struct {
  gint64 n;
  double mean, squares;
} Spread;

#define TO_DOUBLES(type)                                                                           \
  for (gint64 i = 0; i < n; i++)                                                                   \
    out[i] = (double)((const type *)data)[from + i];                                               \
  break

static void
to_doubles (const MusterTensor *tensor, gint64 from, gint64 n, double *out)
{
  const void *data = muster_tensor_data (tensor);
  switch (muster_tensor_dtype (tensor)) {
  case MUSTER_FLOAT:
    TO_DOUBLES (float);
  case MUSTER_DOUBLE:
    TO_DOUBLES (double);
  case MUSTER_INT8:
    TO_DOUBLES (gint8);
  case MUSTER_BOOL:
  case MUSTER_UINT8:
    TO_DOUBLES (guint8);
  case MUSTER_INT16:
    TO_DOUBLES (gint16);
  case MUSTER_UINT16:
    TO_DOUBLES (guint16);
  case MUSTER_INT32:
    TO_DOUBLES (gint32);
  case MUSTER_UINT32:
    TO_DOUBLES (guint32);
  case MUSTER_INT64:
    TO_DOUBLES (gint64);
  case MUSTER_UINT64:
    TO_DOUBLES (guint64);
  case MUSTER_HALF:
    for (gint64 i = 0; i < n; i++)
      out[i] = (double)muster_half_to_float (((const guint16 *)data)[from + i]);
    break;
  case MUSTER_BFLOAT16:
    for (gint64 i = 0; i < n; i++)
      out[i] = (double)muster_bfloat16_to_float (((const guint16 *)data)[from + i]);
    break;
  case MUSTER_COMPLEX64:
    for (gint64 i = 2 * from; i < 2 * (from + n); i += 2)
      *out++ = hypot ((double)((const float *)data)[i], (double)((const float *)data)[i + 1]);
    break;
  case MUSTER_COMPLEX128:
    for (gint64 i = 2 * from; i < 2 * (from + n); i += 2)
      *out++ = hypot (((const double *)data)[i], ((const double *)data)[i + 1]);
    break;
  default:
    g_assert_not_reached ();
  }
}

static void
join (Spread *self, const Spread *other)
{
  if (other->n == 0)
    return;
  const double n = (double)(self->n + other->n), delta = other->mean - self->mean;
  self->squares += other->squares + delta * delta * (double)self->n * (double)other->n / n;
  self->mean += delta * (double)other->n / n;
  self->n += other->n;
}

static void
add_block (MusterTensorStats *stats, Spread *spread, gint64 from, const double *values, gint64 n)
{
  double finite[BLOCK];
  Spread block = {0};
  for (gint64 i = 0; i < n; i++) {
    const double value = values[i];
    stats->n_nan += isnan (value) != 0;
    stats->n_inf += isinf (value) != 0;
    stats->n_zero += value == 0;
    if (!isfinite (value))
      continue;
    finite[block.n++] = value;
    block.mean += value;
    if (stats->min_at < 0 || value < stats->min)
      stats->min_at = from + i, stats->min = value;
    if (stats->max_at < 0 || value > stats->max)
      stats->max_at = from + i, stats->max = value;
  }
  block.mean /= (double)MAX (block.n, 1);
  for (gint64 i = 0; i < block.n; i++)
    block.squares += (finite[i] - block.mean) * (finite[i] - block.mean);
  join (spread, &block);
}

static void
of_strings (const MusterTensor *tensor, MusterTensorStats *stats)
{
  for (gint64 i = 0; i < stats->n; i++) {
    const gsize size = muster_tensor_string (tensor, i).size;
    stats->shortest = i == 0 ? size : MIN (stats->shortest, size);
    stats->longest = MAX (stats->longest, size);
    stats->total += size;
  }
}

void
muster_tensor_stats (const MusterTensor *tensor, MusterTensorStats *stats)
{
  g_return_if_fail (tensor != NULL && stats != NULL);
  double values[BLOCK];
  Spread spread = {0};
  *stats = (MusterTensorStats){
      .n = muster_tensor_n_elements (tensor), .min_at = -1, .max_at = -1, .min = NAN, .max = NAN};
  if (muster_tensor_dtype (tensor) == MUSTER_STRING) {
    of_strings (tensor, stats);
  } else {
    for (gint64 from = 0; from < stats->n; from += BLOCK) {
      const gint64 n = MIN (BLOCK, stats->n - from);
      to_doubles (tensor, from, n, values);
      add_block (stats, &spread, from, values, n);
    }
  }
  stats->mean = spread.n > 0 ? spread.mean : NAN;
  stats->std = spread.n > 0 ? sqrt (spread.squares / (double)spread.n) : NAN;
  if (muster_tensor_dtype (tensor) == MUSTER_BOOL)
    stats->n_true = stats->n - stats->n_zero;
}

static gboolean
is_complex (const MusterTensor *tensor)
{
  return muster_tensor_dtype (tensor) == MUSTER_COMPLEX64 ||
         muster_tensor_dtype (tensor) == MUSTER_COMPLEX128;
}

static double
complex_distance (const MusterTensor *a, const MusterTensor *b, gint64 i)
{
  if (muster_tensor_dtype (a) == MUSTER_COMPLEX64) {
    const float *x = (const float *)muster_tensor_data (a) + 2 * i,
                *y = (const float *)muster_tensor_data (b) + 2 * i;
    return hypot ((double)x[0] - (double)y[0], (double)x[1] - (double)y[1]);
  }
  const double *x = (const double *)muster_tensor_data (a) + 2 * i,
               *y = (const double *)muster_tensor_data (b) + 2 * i;
  return hypot (x[0] - y[0], x[1] - y[1]);
}

static double
integer_distance (const MusterTensor *a, const MusterTensor *b, gint64 i)
{
  const guint64 x = ((const guint64 *)muster_tensor_data (a))[i],
                y = ((const guint64 *)muster_tensor_data (b))[i];
  const gboolean is_less = muster_tensor_dtype (a) == MUSTER_INT64 ? (gint64)x < (gint64)y : x < y;
  return (double)(is_less ? y - x : x - y);
}

/* Of doubles, 64-bit integers would lose their last digits. */
static double
distance_of (const MusterTensor *a, const MusterTensor *b, gint64 i, double x, double y)
{
  if (is_complex (a))
    return complex_distance (a, b, i);
  const MusterDType dtype = muster_tensor_dtype (a);
  return dtype == MUSTER_INT64 || dtype == MUSTER_UINT64 ? integer_distance (a, b, i)
                                                         : fabs (x - y);
}

static void
note_difference (MusterTensorDifference *self, const MusterTensor *a, const MusterTensor *b,
                 gint64 i)
{
  if (self->n_differ++ == 0)
    self->first = i;
  if (muster_tensor_dtype (a) == MUSTER_STRING)
    return;
  double x, y;
  to_doubles (a, i, 1, &x);
  to_doubles (b, i, 1, &y);
  const double distance = distance_of (a, b, i, x, y);
  if (isnan (x) || isnan (y))
    self->nan = TRUE;
  else if (!(distance <= self->max_abs))
    self->max_abs = distance;
}

static void
compare_strings (const MusterTensor *a, const MusterTensor *b, MusterTensorDifference *difference)
{
  for (gint64 i = 0; i < difference->n; i++) {
    const MusterString s = muster_tensor_string (a, i), t = muster_tensor_string (b, i);
    if (s.size != t.size || (s.size > 0 && memcmp (s.data, t.data, s.size) != 0))
      note_difference (difference, a, b, i);
  }
}

void
muster_tensor_difference (const MusterTensor *a, const MusterTensor *b,
                          MusterTensorDifference *difference)
{
  g_return_if_fail (a != NULL && b != NULL && difference != NULL);
  g_return_if_fail (muster_tensor_dtype (a) == muster_tensor_dtype (b));
  g_return_if_fail (muster_tensor_n_elements (a) == muster_tensor_n_elements (b));
  const gsize size = muster_dtype_size (muster_tensor_dtype (a));
  const guint8 *x = muster_tensor_data (a), *y = muster_tensor_data (b);
  *difference = (MusterTensorDifference){.n = muster_tensor_n_elements (a), .first = -1};
  if (muster_tensor_dtype (a) == MUSTER_STRING) {
    compare_strings (a, b, difference);
    return;
  }
  for (gint64 from = 0; from < difference->n; from += BLOCK) {
    const gint64 end = MIN (from + BLOCK, difference->n);
    const gsize at = (gsize)from * size;
    if (memcmp (x + at, y + at, (gsize)(end - from) * size) == 0) /* most are alike */
      continue;
    for (gint64 i = from; i < end; i++)
      if (memcmp (x + (gsize)i * size, y + (gsize)i * size, size) != 0)
        note_difference (difference, a, b, i);
  }
}
