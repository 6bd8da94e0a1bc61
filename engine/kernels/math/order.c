// SPDX-License-Identifier: Apache-2.0
/* Ops by order: TopK, search in sorted rows, Bucketize and histograms. */
#include "engine/kernels/math/arithmetic.h"
#include "engine/kernels/math/math_op_tables.h"

#include <math.h>
#include <string.h>

/* Larger values first, then earlier ones. */
#define ORDER(suffix, T)                                                                           \
  static gint order_##suffix (gconstpointer pa, gconstpointer pb, gpointer data)                   \
  {                                                                                                \
    const gint64 a = *(const gint64 *)pa, b = *(const gint64 *)pb;                                 \
    const T x = ((const T *)data)[a], y = ((const T *)data)[b];                                    \
    return x > y ? -1 : x < y ? 1 : a < b ? -1 : a > b;                                            \
  }
MUSTER_WIDE_TYPES (ORDER)
static const GCompareDataFunc orders[] = MUSTER_WIDE_TABLE (order);

/* If k is below this fraction of the row, only the first k are kept sorted. */
#define FEW 16

static void
find_largest (GCompareDataFunc order, const void *row, gint64 n, gint64 k, gint64 *places)
{
  gint64 kept = 0;
  if (k > n / FEW) {
    for (gint64 i = 0; i < n; i++)
      places[i] = i;
    g_qsort_with_data (places, (gint)n, sizeof *places, order, (gpointer)row);
    return;
  }
  for (gint64 i = 0; i < n && k > 0; i++) {
    gint64 at = kept;
    if (kept == k && order (&i, &places[k - 1], (gpointer)row) > 0)
      continue;
    if (kept == k)
      at = k - 1;
    else
      kept++;
    for (; at > 0 && order (&i, &places[at - 1], (gpointer)row) < 0; at--)
      places[at] = places[at - 1];
    places[at] = i;
  }
}

static gboolean
top_k (MusterKernel *k, gint64 count, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *values, *places;
  int n_dims = muster_tensor_n_dims (x);
  gint64 dims[MUSTER_MAX_DIMS], n, rows;
  gsize size = muster_dtype_size (muster_tensor_dtype (x));
  g_autoptr (MusterTensor) wide = NULL;
  g_autofree gint64 *found = NULL;
  GCompareDataFunc order;

  if (count < 0)
    return muster_invalid (error, "Need k >= 0, got %" G_GINT64_FORMAT, count);
  if (n_dims < 1)
    return muster_invalid (error, "input must be >= 1-D, got shape []");
  n = muster_tensor_dims (x)[n_dims - 1];
  if (n < count)
    return muster_invalid (error,
                           "input must have at least k columns. Had %" G_GINT64_FORMAT
                           ", needed %" G_GINT64_FORMAT,
                           n, count);
  if (n > G_MAXINT)
    return muster_invalid (error, "A row of %" G_GINT64_FORMAT " is too long to be sorted", n);
  memcpy (dims, muster_tensor_dims (x), (gsize)n_dims * sizeof *dims);
  dims[n_dims - 1] = count;
  if ((wide = muster_wide_input (k, 0, error)) == NULL ||
      (values = muster_kernel_output (k, 0, n_dims, dims, error)) == NULL ||
      (places = muster_kernel_output (k, 1, n_dims, dims, error)) == NULL)
    return FALSE;
  rows = muster_dims_product (dims, 0, n_dims - 1);
  order = orders[muster_wide (muster_tensor_dtype (wide))];
  if (!muster_kernel_may_sort (k, n, sizeof (gint64), error) ||
      (found = muster_kernel_alloc (k, n, sizeof (gint64), error)) == NULL)
    return FALSE;
  for (gint64 r = 0; r < rows && count > 0; r++) {
    const gsize wide_size = muster_dtype_size (muster_tensor_dtype (wide));
    find_largest (order, (const guint8 *)muster_tensor_data (wide) + (gsize)(r * n) * wide_size, n,
                  count, found);
    for (gint64 i = 0; i < count; i++) {
      muster_put_int (places, r * count + i, found[i]);
      memcpy ((guint8 *)muster_tensor_data_mutable (values) + (gsize)(r * count + i) * size,
              (const guint8 *)muster_tensor_data (x) + (gsize)(r * n + found[i]) * size, size);
    }
  }
  return TRUE;
}

static gboolean
compute_top_k_v2 (MusterKernel *k, GError **error)
{
  return muster_check_scalar (k, 1, "k", error) && top_k (k, muster_kernel_input_int (k, 1), error);
}

static gboolean
compute_bucketize (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  const Tensorflow__AttrValue *value = muster_kernel_attr (k, "boundaries");
  const gboolean is_list = value != NULL &&
                           value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST &&
                           value->list != NULL;
  const float *bounds = is_list ? value->list->f : NULL;
  gsize n = is_list ? value->list->n_f : 0;
  for (gsize i = 1; i < n; i++)
    if (bounds[i] < bounds[i - 1])
      return muster_invalid (error, "Expected sorted boundaries");
  out = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    const double v = muster_double_at (x, i);
    gsize low = 0, high = n;
    while (low < high) {
      gsize middle = (low + high) / 2;
      if (!(v < bounds[middle])) /* NaN is behind all */
        low = middle + 1;
      else
        high = middle;
    }
    ((gint32 *)muster_tensor_data_mutable (out))[i] = (gint32)low;
  }
  return TRUE;
}

/* For each value, the first position in the sorted row whose value isn't smaller (lower), or is
 * larger. Nothing is smaller or larger than NaN. */
static gboolean
search (MusterKernel *k, gboolean lower, GError **error)
{
  MusterTensor *sorted = muster_kernel_input (k, 0), *values = muster_kernel_input (k, 1), *out;
  MusterDType dtype = muster_tensor_dtype (values);
  gsize size = muster_dtype_size (dtype);
  gint64 rows, n, each;
  if (muster_tensor_n_dims (sorted) != 2)
    return muster_invalid (error, "sorted input argument must be a matrix");
  if (muster_tensor_n_dims (values) != 2 ||
      muster_tensor_dims (sorted)[0] != muster_tensor_dims (values)[0])
    return muster_invalid (error, "Leading dim_size of both tensors must match.");
  rows = muster_tensor_dims (sorted)[0];
  n = muster_tensor_dims (sorted)[1];
  each = muster_tensor_dims (values)[1];
  out = muster_kernel_output (k, 0, 2, muster_tensor_dims (values), error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < rows * each; i++) {
    const guint8 *row = (const guint8 *)muster_tensor_data (sorted) + (gsize)(i / each * n) * size;
    const guint8 *value = (const guint8 *)muster_tensor_data (values) + (gsize)i * size;
    gint64 low = 0, high = n;
    while (low < high) {
      gint64 middle = (low + high) / 2;
      const guint8 *at = row + (gsize)middle * size;
      guint8 is_less;
      muster_run_loop2 (muster_less_loops, dtype, MUSTER_BOOL, 1, lower ? at : value, 1,
                        lower ? value : at, 1, &is_less);
      if (is_less == lower)
        low = middle + 1;
      else
        high = middle;
    }
    muster_put_int (out, i, low);
  }
  return TRUE;
}

static gboolean
compute_lower_bound (MusterKernel *k, GError **error)
{
  return search (k, TRUE, error);
}

static gboolean
compute_upper_bound (MusterKernel *k, GError **error)
{
  return search (k, FALSE, error);
}

static gboolean
compute_histogram (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *range = muster_kernel_input (k, 1), *out;
  gint64 n_bins;
  double low, high, step;
  if (muster_tensor_n_dims (range) != 1 || muster_tensor_n_elements (range) != 2)
    return muster_invalid (error, "value_range should be a vector of 2 elements.");
  if (!muster_check_scalar (k, 2, "nbins", error))
    return FALSE;
  n_bins = muster_kernel_input_int (k, 2);
  if (n_bins <= 0)
    return muster_invalid (
        error, "nbins should be a positive number, but got '%" G_GINT64_FORMAT "'", n_bins);
  low = muster_double_at (range, 0);
  high = muster_double_at (range, 1);
  if (!(low < high))
    return muster_invalid (error,
                           "value_range should satisfy value_range[0] < value_range[1], but got "
                           "'[%g, %g]'",
                           low, high);
  out = muster_kernel_output (k, 0, 1, &n_bins, error);
  if (out == NULL)
    return FALSE;
  memset (muster_tensor_data_mutable (out), 0, muster_tensor_n_bytes (out));
  step = (high - low) / (double)n_bins;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    if (n_bins > 1 && isnan (muster_double_at (x, i)))
      return muster_invalid (error, "Histogram values must not contain NaN");
    const double at = (MAX (muster_double_at (x, i), low) - low) / step;
    const gint64 bin = at < (double)(n_bins - 1) ? (gint64)at : n_bins - 1;
    muster_put_int (out, bin, muster_int_at (out, bin) + 1);
  }
  return TRUE;
}

/* Adds each number's weight, or one, to its bin; numbers from size on are ignored. */
static void
count_row (MusterDType dtype, MusterTensor *x, gint64 from, gint64 n, const guint8 *weights,
           gint64 size, gboolean is_binary, guint8 *bins)
{
  const gsize each = muster_dtype_size (dtype);
  const gint32 one32 = 1;
  const gint64 one64 = 1;
  const float onef = 1;
  const double oned = 1;
  const void *one = dtype == MUSTER_FLOAT    ? (const void *)&onef
                    : dtype == MUSTER_DOUBLE ? (const void *)&oned
                    : dtype == MUSTER_INT32  ? (const void *)&one32
                                             : (const void *)&one64;
  for (gint64 i = from; i < from + n; i++) {
    const gint64 bin = muster_int_at (x, i);
    guint8 *to = bins + (gsize)bin * each;
    if (bin >= size)
      continue;
    if (is_binary)
      memcpy (to, one, each);
    else
      muster_run_loop2 (muster_add_loops, dtype, dtype, 1, to, 1,
                        weights != NULL ? weights + (gsize)i * each : one, 1, to);
  }
}

static gboolean
bincount (MusterKernel *k, gboolean is_flat, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *weights = muster_kernel_input (k, 2), *out;
  gboolean is_binary = muster_kernel_attr_bool (k, "binary_output", FALSE);
  MusterDType dtype = muster_tensor_dtype (weights);
  const int n_dims = is_flat ? 1 : muster_tensor_n_dims (x);
  gint64 dims[2], size, rows, n;
  if (!muster_check_scalar (k, 1, "size", error))
    return FALSE;
  size = muster_kernel_input_int (k, 1);
  if (size < 0)
    return muster_invalid (error, "size (%" G_GINT64_FORMAT ") must be non-negative", size);
  if (n_dims > 2)
    return muster_invalid (error, "Shape must be at most rank 2 but is rank %d", n_dims);
  if (muster_tensor_n_elements (weights) != 0 &&
      (is_flat ? muster_tensor_n_elements (weights) != muster_tensor_n_elements (x)
               : !muster_same_shape (weights, x)))
    return muster_invalid (error, "`weights` must be the same shape as `arr` or a length-0 "
                                  "`Tensor`, in which case it acts as all weights equal to 1.");
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++)
    if (muster_int_at (x, i) < 0)
      return muster_invalid (error, "Input arr must be non-negative!");
  rows = n_dims == 2 ? muster_tensor_dims (x)[0] : 1;
  n = n_dims == 2 ? muster_tensor_dims (x)[1] : muster_tensor_n_elements (x);
  dims[0] = rows;
  dims[n_dims == 2] = size;
  out = muster_kernel_output (k, 0, n_dims == 2 ? 2 : 1, dims, error);
  if (out == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (out) > 0)
    memset (muster_tensor_data_mutable (out), 0, muster_tensor_n_bytes (out));
  for (gint64 r = 0; r < rows; r++)
    count_row (dtype, x, r * n, n,
               muster_tensor_n_elements (weights) != 0 ? muster_tensor_data (weights) : NULL, size,
               is_binary,
               (guint8 *)muster_tensor_data_mutable (out) +
                   (gsize)(r * size) * muster_dtype_size (dtype));
  return TRUE;
}

static gboolean
compute_bincount (MusterKernel *k, GError **error)
{
  return bincount (k, TRUE, error);
}

static gboolean
compute_dense_bincount (MusterKernel *k, GError **error)
{
  return bincount (k, FALSE, error);
}

#define TOP    " -> values:T, indices:"
#define BOUNDS "sorted_inputs:T, values:T -> output:out_type"
#define COUNTS "T:int32|int64|float|double"

const MusterOp muster_order_ops[] = {
    {"TopKV2", "input:T, k:Tk" TOP "index_type",
     "T:real Tk:int32|int64|int16 index_type:int32|int64|int16", compute_top_k_v2, 0},
    {"Bucketize", "input:T -> output:int32", COUNTS " boundaries", compute_bucketize, 0},
    {"LowerBound", BOUNDS, "T:real out_type:int32|int64", compute_lower_bound, 0},
    {"UpperBound", BOUNDS, "T:real out_type:int32|int64", compute_upper_bound, 0},
    {"HistogramFixedWidth", "values:T, value_range:T, nbins:int32 -> out:dtype",
     COUNTS " dtype:int32|int64", compute_histogram, 0},
    {"Bincount", "arr:int32, size:int32, weights:T -> bins:T", COUNTS, compute_bincount, 0},
    {"DenseBincount", "input:Tidx, size:Tidx, weights:T -> output:T",
     COUNTS " Tidx:int32|int64 binary_output", compute_dense_bincount, 0},
    {NULL, NULL, NULL, NULL, 0},
};
