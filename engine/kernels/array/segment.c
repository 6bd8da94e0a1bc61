// SPDX-License-Identifier: Apache-2.0
/* Reductions of rows by segment: sorted, unsorted, and of rows selected by an index, with their
 * gradients. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/math/arithmetic.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef enum { SUM, PRODUCT, LEAST, LARGEST } Reduction;

static const MusterLoop2 *
loops_of (Reduction reduction)
{
  static const MusterLoop2 *const loops[] = {muster_add_loops, muster_mul_loops, muster_min_loops,
                                             muster_max_loops};
  return loops[reduction];
}

/* The value of an empty segment in an unsorted reduction, in the wide type. */
static void
start_value (Reduction reduction, MusterDType dtype, guint64 *wide)
{
  const gboolean is_signed = dtype == MUSTER_INT8 || dtype == MUSTER_INT16 ||
                             dtype == MUSTER_INT32 || dtype == MUSTER_INT64;
  const int bits = (int)muster_dtype_size (dtype) * 8 - (is_signed ? 1 : 0);
  const guint64 most = bits == 64 ? G_MAXUINT64 : ((guint64)1 << bits) - 1;
  const double most_float = dtype == MUSTER_DOUBLE     ? DBL_MAX
                            : dtype == MUSTER_HALF     ? 65504.0
                            : dtype == MUSTER_BFLOAT16 ? (double)muster_bfloat16_to_float (0x7f7f)
                                                       : (double)FLT_MAX;
  double value = reduction == SUM ? 0 : reduction == PRODUCT ? 1 : most_float;
  gint64 number = reduction == SUM ? 0 : reduction == PRODUCT ? 1 : (gint64)most;
  if (reduction == LARGEST) {
    value = -value;
    number = is_signed ? -number - 1 : 0;
  }
  switch (muster_wide (dtype)) {
  case MUSTER_F32:
    *(float *)wide = (float)value;
    return;
  case MUSTER_F64:
    *(double *)wide = value;
    return;
  case MUSTER_I32:
    *(gint32 *)wide = (gint32)number;
    return;
  default:
    *(gint64 *)wide = number;
  }
}

/* The real type of a dtype: of a complex one, that of its parts. */
static MusterDType
part_of (MusterDType dtype)
{
  return muster_dtype_is_complex (dtype) ? muster_complex_part (dtype) : dtype;
}

/* Fills rows with one value. */
static void
fill (MusterDType dtype, Reduction reduction, guint8 *to, gint64 n)
{
  const gsize size = muster_dtype_size (dtype);
  gint64 one = 1, zero = 0;
  const MusterDType part = part_of (dtype);
  guint64 wide = 0, value[2] = {0};
  start_value (reduction, part, &wide);
  muster_narrow (part, &wide, 1, value);
  muster_copy_block (size, 1, &n, to, &one, value, &zero);
}

/* The new row comes first: of two that can't be compared it is the larger, and the smaller. */
static void
reduce_row (MusterDType dtype, const MusterLoop2 *loops, gint64 run, guint8 *to, const guint8 *from)
{
  muster_run_loop2 (loops, dtype, dtype, run, from, 1, to, 1, to);
}

/* Multiplies a row of floats or of complex numbers. */
static void
scale_row (MusterDType dtype, gint64 run, guint8 *row, double by)
{
  const float single = (float)by;
  const MusterDType part = part_of (dtype);
  guint64 factor[2] = {0};
  muster_narrow (part, part == MUSTER_DOUBLE ? (const void *)&by : &single, 1, factor);
  muster_run_loop2 (muster_mul_loops, dtype, dtype, run, row, 1, factor, 0, row);
}

static gboolean
check_arithmetic (MusterTensor *data, Reduction reduction, GError **error)
{
  return muster_check_loop2 (loops_of (reduction), muster_tensor_dtype (data), error);
}

/* IDs of a sorted reduction: a vector of non-negative, non-decreasing numbers. */
static gboolean
check_sorted (MusterTensor *ids, GError **error)
{
  if (muster_tensor_n_dims (ids) != 1)
    return muster_invalid (error, "segment_ids should be a vector.");
  for (gint64 i = 0, last = 0; i < muster_tensor_n_elements (ids); i++) {
    gint64 id = muster_int_at (ids, i);
    if (id < 0)
      return muster_invalid (error, "segment ids must be >= 0");
    if (id < last)
      return muster_invalid (error, "segment ids are not increasing");
    last = id;
  }
  return TRUE;
}

static gint64
n_sorted (MusterTensor *ids)
{
  gint64 n = muster_tensor_n_elements (ids);
  return n == 0 ? 0 : muster_int_at (ids, n - 1) + 1;
}

/* A result with the given number of rows, otherwise shaped as data. */
static gboolean
begin_rows (MusterResult *result, MusterKernel *k, MusterTensor *data, int skip, gint64 rows,
            gint64 *run, GError **error)
{
  int n = muster_tensor_n_dims (data) - skip + 1;
  gint64 dims[MUSTER_MAX_DIMS + 1];
  dims[0] = rows;
  for (int d = 1; d < n; d++)
    dims[d] = muster_tensor_dims (data)[skip + d - 1];
  *run = muster_dims_product (dims, 1, n);
  return muster_result_begin (result, k, muster_tensor_dtype (data), n, dims, error);
}

/* Divides a row by a number of rows; integers are truncated. */
static void
divide_row (MusterDType dtype, gint64 run, guint8 *row, gint64 count)
{
  const MusterWide wide = muster_wide (part_of (dtype));
  const gint32 small = (gint32)count;
  guint64 divisor = 0;
  if (wide == MUSTER_F32 || wide == MUSTER_F64) {
    scale_row (dtype, run, row, 1.0 / (double)count);
    return;
  }
  muster_narrow (dtype, dtype == MUSTER_INT32 ? (const void *)&small : &count, 1, &divisor);
  muster_run_loop2 (muster_div_loops, dtype, dtype, run, row, 1, &divisor, 0, row);
}

static gboolean
check_sorted_inputs (MusterTensor *data, MusterTensor *ids, Reduction reduction, GError **error)
{
  if (muster_tensor_n_dims (data) < 1)
    return muster_invalid (error, "input must be at least rank 1");
  if (!check_arithmetic (data, reduction, error) || !check_sorted (ids, error))
    return FALSE;
  if (muster_tensor_dims (data)[0] != muster_tensor_n_elements (ids))
    return muster_invalid (error, "segment_ids should be the same size as dimension 0 of input.");
  return TRUE;
}

static gboolean
sorted (MusterKernel *k, Reduction reduction, gboolean is_mean, GError **error)
{
  MusterTensor *data = muster_kernel_input (k, 0), *ids = muster_kernel_input (k, 1);
  const gint64 n = muster_tensor_n_elements (ids);
  const guint8 *from = muster_tensor_data (data);
  g_auto (MusterResult) result = {0};
  gint64 run;
  if (!check_sorted_inputs (data, ids, reduction, error) ||
      !begin_rows (&result, k, data, 1, n_sorted (ids), &run, error))
    return FALSE;
  if (reduction == PRODUCT)
    fill (result.dtype, PRODUCT, result.data, result.n);
  const gsize size = (gsize)run * result.size;
  for (gint64 i = 0, next; i < n && run > 0; i = next) {
    const gint64 id = muster_int_at (ids, i);
    guint8 *row = result.data + (gsize)id * size;
    memcpy (row, from + (gsize)i * size, size);
    for (next = i + 1; next < n && muster_int_at (ids, next) == id; next++)
      reduce_row (result.dtype, loops_of (reduction), run, row, from + (gsize)next * size);
    if (is_mean && next - i > 1)
      divide_row (result.dtype, run, row, next - i);
  }
  return muster_result_end (&result, k, 0, error);
}

/* Rows of negative segments are dropped. */
static gboolean
unsorted (MusterKernel *k, Reduction reduction, GError **error)
{
  MusterTensor *data = muster_kernel_input (k, 0), *ids = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (data), n_ids = muster_tensor_n_dims (ids);
  gint64 rows, run;
  g_auto (MusterResult) result = {0};
  if (!muster_check_scalar (k, 2, "num_segments", error) ||
      !check_arithmetic (data, reduction, error))
    return FALSE;
  for (int d = 0; d < n_ids; d++)
    if (d >= n || muster_tensor_dims (data)[d] != muster_tensor_dims (ids)[d]) {
      g_autofree char *a = muster_shape_text (data), *b = muster_shape_text (ids);
      return muster_invalid (error, "data.shape = %s does not start with segment_ids.shape = %s", a,
                             b);
    }
  rows = muster_kernel_input_int (k, 2);
  if (rows < 0)
    return muster_invalid (
        error, "Input num_segments == %" G_GINT64_FORMAT " must not be negative.", rows);
  if (!begin_rows (&result, k, data, n_ids, rows, &run, error))
    return FALSE;
  if (reduction != SUM)
    fill (result.dtype, reduction, result.data, result.n);
  for (gint64 i = 0; i < muster_tensor_n_elements (ids); i++) {
    const gsize size = (gsize)run * result.size;
    gint64 id = muster_int_at (ids, i);
    if (id >= rows)
      return muster_invalid (error,
                             "segment_ids[%" G_GINT64_FORMAT "] = %" G_GINT64_FORMAT
                             " is out of range [0, %" G_GINT64_FORMAT ")",
                             i, id, rows);
    if (id >= 0 && run > 0)
      reduce_row (result.dtype, loops_of (reduction), run, result.data + (gsize)id * size,
                  (const guint8 *)muster_tensor_data (data) + (gsize)i * size);
  }
  return muster_result_end (&result, k, 0, error);
}

typedef enum { NOTHING, COUNT, ROOT } Divisor;

static double
factor_of (Divisor divisor, gint64 count)
{
  return divisor == NOTHING ? 1 : divisor == COUNT ? 1.0 / (double)count : 1 / sqrt ((double)count);
}

/* indices and segment_ids are vectors of one size, each index below limit if they are
 * used. */
static gboolean
check_picks (MusterTensor *indices, MusterTensor *ids, gint64 limit, gboolean are_used,
             GError **error)
{
  if (muster_tensor_n_dims (indices) != 1)
    return muster_invalid (error, "indices should be a vector.");
  if (muster_tensor_n_dims (ids) != 1)
    return muster_invalid (error, "segment_ids should be a vector.");
  if (muster_tensor_n_elements (indices) != muster_tensor_n_elements (ids))
    return muster_invalid (error, "segment_ids and indices should have same size.");
  for (gint64 i = 0; are_used && i < muster_tensor_n_elements (indices); i++) {
    gint64 index = muster_int_at (indices, i);
    if (index < 0 || index >= limit)
      return muster_invalid (error,
                             "Bad: indices[%" G_GINT64_FORMAT "] == %" G_GINT64_FORMAT
                             " out of range [0, %" G_GINT64_FORMAT ")",
                             i, index, limit);
  }
  return TRUE;
}

/* Sums the rows of data selected by indices, by segment; inputs: data, indices, segment_ids, and
 * the number of segments if the op has it. */
static gboolean
picked (MusterKernel *k, Divisor divisor, GError **error)
{
  MusterTensor *data = muster_kernel_input (k, 0), *indices = muster_kernel_input (k, 1);
  MusterTensor *ids = muster_kernel_input (k, 2);
  gint64 n = muster_tensor_n_elements (ids), rows, run;
  const guint8 *from = muster_tensor_data (data);
  g_auto (MusterResult) result = {0};
  if (muster_tensor_n_dims (data) < 1)
    return muster_invalid (error, "input must be at least rank 1");
  if (!check_arithmetic (data, SUM, error) ||
      !check_picks (indices, ids, muster_tensor_dims (data)[0], TRUE, error) ||
      !check_sorted (ids, error))
    return FALSE;
  rows = n_sorted (ids);
  if (rows > G_MAXINT32)
    return muster_invalid (error, "Last segment id must be < kintmax");
  if (muster_kernel_n_inputs (k) > 3) {
    if (!muster_check_scalar (k, 3, "num_segments", error))
      return FALSE;
    if (muster_kernel_input_int (k, 3) < rows)
      return muster_invalid (error, "segment ids must be < num_segments");
    rows = muster_kernel_input_int (k, 3);
  }
  if (!begin_rows (&result, k, data, 1, rows, &run, error))
    return FALSE;
  for (gint64 i = 0, next; i < n && run > 0; i = next) {
    gint64 id = muster_int_at (ids, i);
    const gsize size = (gsize)run * result.size;
    guint8 *row = result.data + (gsize)id * size;
    memcpy (row, from + (gsize)muster_int_at (indices, i) * size, size);
    for (next = i + 1; next < n && muster_int_at (ids, next) == id; next++)
      reduce_row (result.dtype, muster_add_loops, run, row,
                  from + (gsize)muster_int_at (indices, next) * size);
    if (divisor != NOTHING && next - i > 1)
      scale_row (result.dtype, run, row, factor_of (divisor, next - i));
  }
  return muster_result_end (&result, k, 0, error);
}

/* Counts the selected rows of each segment. */
static gint64 *
count_ids (MusterKernel *k, MusterTensor *ids, gint64 limit, GError **error)
{
  g_autofree gint64 *counts = muster_kernel_alloc0 (k, limit, sizeof (gint64), error);

  for (gint64 i = 0; counts != NULL && i < muster_tensor_n_elements (ids); i++) {
    gint64 id = muster_int_at (ids, i);
    if (id < 0 || id >= limit) {
      muster_invalid (error,
                      "Segment id %" G_GINT64_FORMAT " out of range [0, %" G_GINT64_FORMAT ").", id,
                      limit);
      return NULL;
    }
    counts[id]++;
  }
  return g_steal_pointer (&counts);
}

static int
compare_ints (gconstpointer a, gconstpointer b)
{
  const gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;
  return (x > y) - (x < y);
}

/* The distinct indices in ascending order. */
typedef struct {
  gint64 *indices; /* (owned) (nullable) */
  gint64 n;
} Rows;

static void
rows_clear (Rows *self)
{
  g_clear_pointer (&self->indices, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rows, rows_clear)

static gboolean
sort_unique (MusterKernel *k, MusterTensor *indices, Rows *rows, GError **error)
{
  const gint64 n = muster_tensor_n_elements (indices);
  gint64 *all = rows->indices = muster_kernel_alloc (k, n, sizeof (gint64), error);
  if (all == NULL || !muster_kernel_may_sort (k, n, sizeof (gint64), error))
    return FALSE;
  for (gint64 i = 0; i < n; i++)
    all[i] = muster_int_at (indices, i);
  qsort (all, (gsize)n, sizeof *all, compare_ints);
  for (gint64 i = 0; i < n; i++)
    if (i == 0 || all[i] != all[rows->n - 1])
      all[rows->n++] = all[i];
  return TRUE;
}

static gint64
find_row (const Rows *rows, gint64 index)
{
  gint64 low = 0, high = rows->n;
  while (low < high) {
    gint64 middle = (low + high) / 2;
    if (rows->indices[middle] < index)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static gboolean
set_rows (MusterKernel *k, const Rows *rows, GError **error)
{
  MusterTensor *out = muster_kernel_output (k, 1, 1, &rows->n, error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < rows->n; i++)
    muster_put_int (out, i, rows->indices[i]);
  return TRUE;
}

/* The rows that the forward op selected, after the checks. */
typedef struct {
  MusterTensor *indices, *ids; /* (not owned) */
  const Rows *rows;            /* (not owned) (nullable) if the output has only the selected rows */
  const gint64 *counts;        /* (not owned) number of selected rows by segment */
  Divisor divisor;
} Picks;

/* Adds to each selected row its segment's row of the gradient, divided; scaled has space for one
 * row. */
static void
add_gradient_rows (const Picks *picks, const guint8 *grad, gint64 run, guint8 *scaled,
                   MusterResult *result)
{
  const gsize size = (gsize)run * result->size;
  for (gint64 i = 0; i < muster_tensor_n_elements (picks->ids); i++) {
    const gint64 index = muster_int_at (picks->indices, i), id = muster_int_at (picks->ids, i);
    const gint64 to = picks->rows != NULL ? find_row (picks->rows, index) : index;
    const guint8 *row = grad + (gsize)id * size;
    if (picks->divisor != NOTHING && picks->counts[id] > 1) {
      memcpy (scaled, row, size);
      scale_row (result->dtype, run, scaled, factor_of (picks->divisor, picks->counts[id]));
      row = scaled;
    }
    reduce_row (result->dtype, muster_add_loops, run, result->data + (gsize)to * size, row);
  }
}

static gboolean
check_picked_gradient (MusterKernel *k, GError **error)
{
  MusterTensor *grad = muster_kernel_input (k, 0), *ids = muster_kernel_input (k, 2);
  if (muster_tensor_n_dims (grad) < 1)
    return muster_invalid (error, "input must be at least rank 1");
  if (!muster_check_scalar (k, 3, "output_dim0", error) || !check_arithmetic (grad, SUM, error))
    return FALSE;
  const gint64 n_rows = muster_kernel_input_int (k, 3);
  return check_picks (muster_kernel_input (k, 1), ids, n_rows, n_rows != 0, error);
}

/* The gradient of picked: each selected row receives its segment's row. If the op has a second
 * output, the first contains only the selected rows, and the second their indices. */
static gboolean
picked_gradient (MusterKernel *k, Divisor divisor, GError **error)
{
  MusterTensor *grad = muster_kernel_input (k, 0);
  Picks picks = {
      .indices = muster_kernel_input (k, 1), .ids = muster_kernel_input (k, 2), .divisor = divisor};
  const gboolean is_sparse = muster_kernel_n_outputs (k) > 1;
  g_autofree gint64 *counts = NULL;
  g_autofree guint8 *scaled = NULL;
  g_auto (Rows) rows = {0};
  g_auto (MusterResult) result = {0};
  gint64 run;

  if (!check_picked_gradient (k, error))
    return FALSE;
  const gint64 n_rows = muster_kernel_input_int (k, 3);
  counts = n_rows == 0 ? NULL : count_ids (k, picks.ids, muster_tensor_dims (grad)[0], error);
  if (n_rows != 0 &&
      (counts == NULL || (is_sparse && !sort_unique (k, picks.indices, &rows, error))))
    return FALSE;
  picks.counts = counts;
  picks.rows = is_sparse ? &rows : NULL;
  if (!begin_rows (&result, k, grad, 1, is_sparse ? rows.n : n_rows, &run, error))
    return FALSE;
  scaled = result.n > 0 ? muster_kernel_alloc (k, run, result.size, error) : NULL;
  if (scaled == NULL && result.n > 0)
    return FALSE;
  if (result.n > 0)
    add_gradient_rows (&picks, muster_tensor_data (grad), run, scaled, &result);
  return muster_result_end (&result, k, 0, error) && (!is_sparse || set_rows (k, &rows, error));
}

#define KERNEL(name, CALL)                                                                         \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    return CALL;                                                                                   \
  }
KERNEL (compute_sorted_sum, sorted (k, SUM, FALSE, error))
KERNEL (compute_sorted_mean, sorted (k, SUM, TRUE, error))
KERNEL (compute_sorted_product, sorted (k, PRODUCT, FALSE, error))
KERNEL (compute_sorted_least, sorted (k, LEAST, FALSE, error))
KERNEL (compute_sorted_largest, sorted (k, LARGEST, FALSE, error))
KERNEL (compute_unsorted_sum, unsorted (k, SUM, error))
KERNEL (compute_unsorted_product, unsorted (k, PRODUCT, error))
KERNEL (compute_unsorted_least, unsorted (k, LEAST, error))
KERNEL (compute_unsorted_largest, unsorted (k, LARGEST, error))
KERNEL (compute_picked_sum, picked (k, NOTHING, error))
KERNEL (compute_picked_mean, picked (k, COUNT, error))
KERNEL (compute_picked_sqrt_n, picked (k, ROOT, error))
KERNEL (compute_picked_sum_gradient, picked_gradient (k, NOTHING, error))
KERNEL (compute_picked_mean_gradient, picked_gradient (k, COUNT, error))
KERNEL (compute_picked_sqrt_n_gradient, picked_gradient (k, ROOT, error))

#define SORTED        "data:T, segment_ids:Tindices -> output:T"
#define UNSORTED      "data:T, segment_ids:Tindices, num_segments:Tnumsegments -> output:T"
#define UNSORTED_T    "T:number Tindices:int32|int64 Tnumsegments:int32|int64"
#define UNSORTED_REAL "T:real Tindices:int32|int64 Tnumsegments:int32|int64"
#define PICKED        "data:T, indices:Tidx, segment_ids:Tsegmentids"
#define PICKED_T      "Tidx:int32|int64 Tsegmentids:int32|int64"
#define ROWS          "Tnumsegments:int32|int64"
#define GRADIENT      "grad:T, indices:Tidx, segment_ids:Tsegmentids"
#define BY_SEGMENT(name, T, kernel)                                                                \
  {"SparseSegment" name, PICKED " -> output:T", T " " PICKED_T, kernel, 0},                        \
      {"SparseSegment" name "WithNumSegments", PICKED ", num_segments:Tnumsegments -> output:T",   \
       T " " PICKED_T " " ROWS, kernel, 0},                                                        \
      {"SparseSegment" name "Grad", GRADIENT ", output_dim0:int32 -> output:T",                    \
       "T:float " PICKED_T, kernel##_gradient, 0},                                                 \
  {                                                                                                \
    "SparseSegment" name "GradV2",                                                                 \
        GRADIENT ", dense_output_dim0:int32 -> output:T, sorted_unique_indices:Tidx",              \
        "T:float " PICKED_T, kernel##_gradient, 0                                                  \
  }

const MusterOp muster_segment_ops[] = {
    {"SegmentSum", SORTED, "T:number Tindices:int32|int64", compute_sorted_sum, 0},
    {"SegmentMean", SORTED, "T:number Tindices:int32|int64", compute_sorted_mean, 0},
    {"SegmentProd", SORTED, "T:number Tindices:int32|int64", compute_sorted_product, 0},
    {"SegmentMin", SORTED, "T:real Tindices:int32|int64", compute_sorted_least, 0},
    {"SegmentMax", SORTED, "T:real Tindices:int32|int64", compute_sorted_largest, 0},
    {"UnsortedSegmentSum", UNSORTED, "T:number Tindices:int32|int64|int16 Tnumsegments:int32|int64",
     compute_unsorted_sum, 0},
    {"UnsortedSegmentProd", UNSORTED, UNSORTED_T, compute_unsorted_product, 0},
    {"UnsortedSegmentMin", UNSORTED, UNSORTED_REAL, compute_unsorted_least, 0},
    {"UnsortedSegmentMax", UNSORTED, UNSORTED_REAL, compute_unsorted_largest, 0},
    BY_SEGMENT ("Sum", "T:real", compute_picked_sum),
    BY_SEGMENT ("Mean", "T:float", compute_picked_mean),
    BY_SEGMENT ("SqrtN", "T:float", compute_picked_sqrt_n),
    {NULL, NULL, NULL, NULL, 0},
};
