// SPDX-License-Identifier: Apache-2.0
/* Diagonals: of tensors, and of batches of matrices, one or a band of them. */
#include "engine/kernels/array/array_op_tables.h"
#include "engine/kernels/common/dispatch.h"

#include <string.h>

/* The diagonals from lower to upper (0: the main one) of matrices, and their layout in a tensor of
 * diagonals: each aligned left or right, the uppermost first. */
typedef struct {
  gint64 lower, upper, rows, cols, longest;
  gboolean right_above, right_below;
} Band;

static gint64
diagonal_length (const Band *b, gint64 d)
{
  return MIN (b->rows + MIN (d, 0), b->cols - MAX (d, 0));
}

/* The position of element (row, col) among a matrix's diagonals; -1 outside the band. */
static gint64
offset_in_band (const Band *b, gint64 row, gint64 col)
{
  const gint64 d = col - row;
  gint64 at = MIN (row, col);
  if (d < b->lower || d > b->upper)
    return -1;
  if ((d >= 0 && b->right_above) || (d <= 0 && b->right_below))
    at += b->longest - diagonal_length (b, d);
  return (b->upper - d) * b->longest + at;
}

static void
read_align (MusterKernel *k, Band *b)
{
  g_autofree char *align = muster_node_string (muster_kernel_node (k), "align");

  if (align == NULL) { /* the default of version 3; the earlier versions align left */
    b->right_above = g_str_has_suffix (muster_kernel_node (k)->kind->op, "V3");
    return;
  }
  b->right_above = g_str_has_prefix (align, "RIGHT_");
  b->right_below = g_str_has_suffix (align, "_RIGHT");
}

/* Input i: one diagonal, or the first and the last of a band. */
static gboolean
read_band (MusterKernel *k, int i, Band *b, GError **error)
{
  MusterTensor *given = muster_kernel_input (k, i);
  gint64 n = muster_tensor_n_elements (given);
  if (muster_tensor_n_dims (given) > 1 || n < 1 || n > 2)
    return muster_invalid (
        error, "diag_index must be a scalar or vector, received shape: %s with one or two elements",
        muster_tensor_n_dims (given) > 1 ? "a matrix" : "a vector");
  b->lower = muster_int_at (given, 0);
  b->upper = muster_int_at (given, n - 1);
  if (b->lower > b->upper)
    return muster_invalid (error,
                           "lower_diag_index must not be larger than upper_diag_index: "
                           "%" G_GINT64_FORMAT " > %" G_GINT64_FORMAT,
                           b->lower, b->upper);
  return TRUE;
}

static gboolean
check_band (Band *b, GError **error)
{
  const gboolean one = b->lower == 0 && b->upper == 0;
  if (!one && (b->lower <= -b->rows || b->lower >= b->cols) && b->lower != 0)
    return muster_invalid (error,
                           "lower_diag_index is out of bound: %" G_GINT64_FORMAT
                           " It must be between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           b->lower, -b->rows, b->cols);
  if (!one && (b->upper <= -b->rows || b->upper >= b->cols) && b->upper != 0)
    return muster_invalid (error,
                           "upper_diag_index is out of bound: %" G_GINT64_FORMAT
                           " It must be between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                           b->upper, -b->rows, b->cols);
  b->longest = MIN (b->rows + MIN (b->upper, 0), b->cols - MAX (b->lower, 0));
  return TRUE;
}

static gboolean
check_padding (MusterKernel *k, int i, const guint8 **padding, MusterElements *elements,
               GError **error)
{
  if (muster_kernel_n_inputs (k) <= i)
    return TRUE;
  if (muster_tensor_n_elements (muster_kernel_input (k, i)) != 1)
    return muster_invalid (error, "padding_value must be a scalar");
  *elements = muster_elements (muster_kernel_input (k, i));
  *padding = elements->data;
  return TRUE;
}

static void
fill (MusterResult *result, const guint8 *padding)
{
  for (gint64 i = 0; padding != NULL && i < result->n; i++)
    memcpy (result->data + (gsize)i * result->size, padding, result->size);
}

/* The matrices' size; if it isn't given, the smallest that the diagonals fit in. */
static gboolean
size_matrices (MusterKernel *k, Band *b, GError **error)
{
  const gint64 rows = b->longest - MIN (b->upper, 0), cols = b->longest + MAX (b->lower, 0);
  const int n = muster_kernel_n_inputs (k);
  if ((n > 2 && !muster_check_scalar (k, 2, "num_rows", error)) ||
      (n > 3 && !muster_check_scalar (k, 3, "num_cols", error)) ||
      (n > 4 && !muster_check_scalar (k, 4, "padding_value", error)))
    return FALSE;
  b->rows = n > 2 ? muster_kernel_input_int (k, 2) : -1;
  b->cols = n > 3 ? muster_kernel_input_int (k, 3) : -1;
  if (b->rows == -1 && b->cols == -1)
    b->rows = b->cols = MAX (rows, cols);
  b->rows = b->rows == -1 ? rows : b->rows;
  b->cols = b->cols == -1 ? cols : b->cols;
  if (b->rows < rows)
    return muster_invalid (error, "The number of rows is too small.");
  if (b->cols < cols)
    return muster_invalid (error, "The number of columns is too small.");
  if (b->rows != rows && b->cols != cols)
    return muster_invalid (error, "The number of rows or columns is not consistent with the "
                                  "specified d_lower, d_upper, and diagonal.");
  return TRUE;
}

static gboolean
compute_matrix_diag (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x), batch_dims;
  gint64 dims[MUSTER_MAX_DIMS + 2];
  const guint8 *padding = NULL;
  MusterElements pad = {0};
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  Band b = {0};
  if (n < 1)
    return muster_invalid (error, "diagonal must be at least 1-dim, received shape: []");
  if (muster_kernel_n_inputs (k) > 1 && !read_band (k, 1, &b, error))
    return FALSE;
  if (b.lower != b.upper && (n < 2 || muster_tensor_dims (x)[n - 2] != b.upper - b.lower + 1))
    return muster_invalid (error, "The number of diagonals provided in the input does not match "
                                  "the lower_diag_index and upper_diag_index range.");
  read_align (k, &b);
  b.longest = muster_tensor_dims (x)[n - 1];
  if (!size_matrices (k, &b, error) || !check_padding (k, 4, &padding, &pad, error))
    return FALSE;
  batch_dims = n - (b.lower == b.upper ? 1 : 2);
  memcpy (dims, muster_tensor_dims (x), (gsize)batch_dims * sizeof *dims);
  dims[batch_dims] = b.rows;
  dims[batch_dims + 1] = b.cols;
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), batch_dims + 2, dims, error))
    return FALSE;
  fill (&result, padding);
  for (gint64 i = 0; i < result.n; i++) {
    gint64 at = offset_in_band (&b, i / b.cols % b.rows, i % b.cols);
    if (at >= 0)
      memcpy (result.data + (gsize)i * result.size,
              from.data +
                  (gsize)(i / (b.rows * b.cols) * (b.upper - b.lower + 1) * b.longest + at) *
                      result.size,
              result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

/* The band of input 0's matrices; band: the input that gives it, -1 for the main diagonal. */
static gboolean
band_of_matrices (MusterKernel *k, int band, Band *b, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x);
  if (n < 2) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "input must be at least 2-dim, received shape: %s", shape);
  }
  b->rows = muster_tensor_dims (x)[n - 2];
  b->cols = muster_tensor_dims (x)[n - 1];
  read_align (k, b);
  return (band < 0 || read_band (k, band, b, error)) && check_band (b, error);
}

static gboolean
compute_matrix_diag_part (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x), n_out = n - 2;
  gint64 dims[MUSTER_MAX_DIMS], cells;
  const guint8 *padding = NULL;
  MusterElements pad = {0};
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  Band b = {0};
  if (!band_of_matrices (k, muster_kernel_n_inputs (k) > 1 ? 1 : -1, &b, error) ||
      !check_padding (k, 2, &padding, &pad, error))
    return FALSE;
  memcpy (dims, muster_tensor_dims (x), (gsize)n_out * sizeof *dims);
  if (b.lower != b.upper)
    dims[n_out++] = b.upper - b.lower + 1;
  dims[n_out++] = b.longest;
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n_out, dims, error))
    return FALSE;
  fill (&result, padding);
  cells = b.rows * b.cols;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    gint64 at = offset_in_band (&b, i / b.cols % b.rows, i % b.cols);
    if (at >= 0)
      memcpy (result.data +
                  (gsize)(i / cells * (b.upper - b.lower + 1) * b.longest + at) * result.size,
              from.data + (gsize)i * result.size, result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_matrix_set_diag (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *diagonals = muster_kernel_input (k, 1);
  int n = muster_tensor_n_dims (x), n_wanted = n - 2;
  gint64 wanted[MUSTER_MAX_DIMS], cells;
  MusterElements from = muster_elements (x), set = muster_elements (diagonals);
  g_auto (MusterResult) result = {0};
  Band b = {0};
  if (!band_of_matrices (k, muster_kernel_n_inputs (k) > 2 ? 2 : -1, &b, error))
    return FALSE;
  memcpy (wanted, muster_tensor_dims (x), (gsize)n_wanted * sizeof *wanted);
  if (b.lower != b.upper)
    wanted[n_wanted++] = b.upper - b.lower + 1;
  wanted[n_wanted++] = b.longest;
  if (muster_tensor_n_dims (diagonals) != n_wanted ||
      memcmp (wanted, muster_tensor_dims (diagonals), (gsize)n_wanted * sizeof *wanted) != 0) {
    g_autofree char *a = muster_shape_to_string (n_wanted, wanted);
    g_autofree char *given = muster_shape_text (diagonals);
    return muster_invalid (
        error,
        "must have diagonal.shape == input.shape[:-2] + the band's: expected diagonal shape: %s, "
        "received diagonal shape: %s",
        a, given);
  }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, muster_tensor_dims (x), error))
    return FALSE;
  cells = b.rows * b.cols;
  for (gint64 i = 0; i < result.n; i++) {
    gint64 at = offset_in_band (&b, i / b.cols % b.rows, i % b.cols);
    memcpy (result.data + (gsize)i * result.size,
            at < 0 ? from.data + (gsize)i * result.size
                   : set.data + (gsize)(i / cells * (b.upper - b.lower + 1) * b.longest + at) *
                                    result.size,
            result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_band_part (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  gint64 rows, cols, below, above;
  if (n < 2) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "input must be at least 2-dim, received shape: %s", shape);
  }
  if (!muster_check_scalar (k, 1, "num_lower", error) ||
      !muster_check_scalar (k, 2, "num_upper", error))
    return FALSE;
  rows = muster_tensor_dims (x)[n - 2];
  cols = muster_tensor_dims (x)[n - 1];
  below = muster_kernel_input_int (k, 1);
  above = muster_kernel_input_int (k, 2);
  if (below > rows)
    return muster_invalid (error,
                           "num_lower must be negative or less or equal to number of rows "
                           "(%" G_GINT64_FORMAT ") got: %" G_GINT64_FORMAT,
                           rows, below);
  if (above > cols)
    return muster_invalid (error,
                           "num_upper must be negative or less or equal to number of columns "
                           "(%" G_GINT64_FORMAT ") got: %" G_GINT64_FORMAT,
                           cols, above);
  below = (gint32)below; /* TensorFlow reads the lower half of either */
  above = (gint32)above;
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n, muster_tensor_dims (x), error))
    return FALSE;
  for (gint64 i = 0; i < result.n; i++) {
    const gint64 row = i / cols % rows, col = i % cols;
    if ((below < 0 || row - col <= below) && (above < 0 || col - row <= above))
      memcpy (result.data + (gsize)i * result.size, from.data + (gsize)i * result.size,
              result.size);
  }
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_diag (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x);
  gint64 dims[2 * MUSTER_MAX_DIMS], m = muster_tensor_n_elements (x);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (n < 1)
    return muster_invalid (error, "Input must be at least rank 1, got 0");
  for (int d = 0; d < 2 * n; d++)
    dims[d] = muster_tensor_dims (x)[d % n];
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), 2 * n, dims, error))
    return FALSE;
  for (gint64 i = 0; i < m; i++)
    memcpy (result.data + (gsize)(i * m + i) * result.size, from.data + (gsize)i * result.size,
            result.size);
  return muster_result_end (&result, k, 0, error);
}

static gboolean
compute_diag_part (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x);
  const gint64 *dims = muster_tensor_dims (x);
  MusterElements from = muster_elements (x);
  g_auto (MusterResult) result = {0};
  if (n == 0 || n % 2 != 0)
    return muster_invalid (error,
                           "The rank of the tensor should be even and positive, got shape "
                           "of rank %d",
                           n);
  for (int d = 0; d < n / 2; d++)
    if (dims[d] != dims[d + n / 2]) {
      g_autofree char *shape = muster_shape_text (x);
      return muster_invalid (error, "Invalid shape %s: dimensions %d and %d do not match.", shape,
                             d, d + n / 2);
    }
  if (!muster_result_begin (&result, k, muster_tensor_dtype (x), n / 2, dims, error))
    return FALSE;
  for (gint64 i = 0; i < result.n; i++)
    memcpy (result.data + (gsize)i * result.size,
            from.data + (gsize)(i * result.n + i) * result.size, result.size);
  return muster_result_end (&result, k, 0, error);
}

#define SIZES "diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding_value:T -> output:T"

const MusterOp muster_diagonal_ops[] = {
    {"Diag", "diagonal:T -> output:T", "T:number", compute_diag, 0},
    {"DiagPart", "input:T -> diagonal:T", "T:number", compute_diag_part, 0},
    {"MatrixDiag", "diagonal:T -> output:T", "T:any", compute_matrix_diag, 0},
    {"MatrixDiagV2", SIZES, "T:any", compute_matrix_diag, 0},
    {"MatrixDiagV3", SIZES, "T:any align", compute_matrix_diag, 0},
    {"MatrixDiagPart", "input:T -> diagonal:T", "T:any", compute_matrix_diag_part, 0},
    {"MatrixDiagPartV2", "input:T, k:int32, padding_value:T -> diagonal:T", "T:any",
     compute_matrix_diag_part, 0},
    {"MatrixDiagPartV3", "input:T, k:int32, padding_value:T -> diagonal:T", "T:any align",
     compute_matrix_diag_part, 0},
    {"MatrixSetDiag", "input:T, diagonal:T -> output:T", "T:any", compute_matrix_set_diag, 0},
    {"MatrixSetDiagV2", "input:T, diagonal:T, k:int32 -> output:T", "T:any",
     compute_matrix_set_diag, 0},
    {"MatrixSetDiagV3", "input:T, diagonal:T, k:int32 -> output:T", "T:any align",
     compute_matrix_set_diag, 0},
    {"MatrixBandPart", "input:T, num_lower:Tindex, num_upper:Tindex -> band:T",
     "T:any Tindex:int64|int32", compute_band_part, 0},
    {NULL, NULL, NULL, NULL, 0},
};
