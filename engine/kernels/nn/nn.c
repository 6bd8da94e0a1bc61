// SPDX-License-Identifier: Apache-2.0
/* Output layers: softmax and its losses, biases, and InTopK. */
#include "engine/kernels/common/dispatch.h"
#include "engine/kernels/nn/nn_op_tables.h"

#include <complex.h>
#include <string.h>
#include <tgmath.h>

/* A row of classes, minus its largest so that nothing overflows, and the log of the sum of its
 * exponentials. */
/* These macros define functions NAME_f32 and NAME_f64. */

/* Writes a row minus its largest value to out; returns the sum of the exponentials. */
#define SHIFT_ROW(suffix, T)                                                                       \
  static T shift_row_##suffix (gint64 n, const T *x, T *out)                                       \
  {                                                                                                \
    T largest = -INFINITY, sum = 0;                                                                \
    for (gint64 i = 0; i < n; i++)                                                                 \
      largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;                                   \
    for (gint64 i = 0; i < n; i++) {                                                               \
      out[i] = x[i] - largest;                                                                     \
      sum += exp (out[i]);                                                                         \
    }                                                                                              \
    return sum;                                                                                    \
  }
MUSTER_FLOAT_TYPES (SHIFT_ROW)

#define SOFTMAX(suffix, T)                                                                         \
  static void softmax_##suffix (gint64 rows, gint64 n, const void *x, void *out, gboolean is_log)  \
  {                                                                                                \
    for (gint64 r = 0; r < rows; r++) {                                                            \
      T *to = (T *)out + r * n, sum = shift_row_##suffix (n, (const T *)x + r * n, to);            \
      T log_sum = log (sum);                                                                       \
      for (gint64 i = 0; i < n; i++)                                                               \
        to[i] = is_log ? to[i] - log_sum : exp (to[i]) / sum;                                      \
    }                                                                                              \
  }
MUSTER_FLOAT_TYPES (SOFTMAX)

/* Logits and labels of a batch; a stride of 0 broadcasts size one. */
typedef struct {
  gint64 rows, n;
  gint64 logits_row, logits_step, labels_row, labels_step;
} Classes;

/* loss = sum (labels * (log (sum) - x)); its gradient = softmax - labels. work holds a row. */
#define CROSS_ENTROPY(suffix, T)                                                                   \
  static void cross_entropy_##suffix (const Classes *c, const void *logits, const void *labels,    \
                                      void *work, void *losses, void *gradients)                   \
  {                                                                                                \
    T *row = work;                                                                                 \
    for (gint64 r = 0; r < c->rows; r++) {                                                         \
      const T *x = (const T *)logits + r * c->logits_row,                                          \
              *y = (const T *)labels + r * c->labels_row;                                          \
      T *to = (T *)gradients + r * c->n, sum, log_sum, loss = 0;                                   \
      for (gint64 i = 0; i < c->n; i++)                                                            \
        row[i] = x[i * c->logits_step];                                                            \
      sum = shift_row_##suffix (c->n, row, to);                                                    \
      log_sum = log (sum);                                                                         \
      for (gint64 i = 0; i < c->n; i++) {                                                          \
        const T label = y[i * c->labels_step];                                                     \
        loss += label * (log_sum - to[i]);                                                         \
        to[i] = exp (to[i]) / sum - label;                                                         \
      }                                                                                            \
      ((T *)losses)[r] = loss;                                                                     \
    }                                                                                              \
  }
MUSTER_FLOAT_TYPES (CROSS_ENTROPY)

/* The same with class numbers as labels. */
#define SPARSE_CROSS_ENTROPY(suffix, T)                                                            \
  static void sparse_cross_entropy_##suffix (gint64 rows, gint64 n, const void *logits,            \
                                             MusterTensor *labels, void *losses, void *gradients)  \
  {                                                                                                \
    for (gint64 r = 0; r < rows; r++) {                                                            \
      T *to = (T *)gradients + r * n, sum = shift_row_##suffix (n, (const T *)logits + r * n, to); \
      gint64 label = muster_int_at (labels, r);                                                    \
      ((T *)losses)[r] = log (sum) - to[label];                                                    \
      for (gint64 i = 0; i < n; i++)                                                               \
        to[i] = exp (to[i]) / sum;                                                                 \
      to[label] -= 1;                                                                              \
    }                                                                                              \
  }
MUSTER_FLOAT_TYPES (SPARSE_CROSS_ENTROPY)

static gboolean
softmax (MusterKernel *k, gboolean is_log, GError **error)
{
  g_autoptr (MusterTensor) x = muster_wide_input (k, 0, error);
  MusterTensor *out;
  gint64 n, rows;
  int n_dims;
  if (x == NULL)
    return FALSE;
  n_dims = muster_tensor_n_dims (x);
  if (n_dims < 1)
    return muster_invalid (error, "logits must have >= 1 dimension, got []");
  out = muster_wide_output (k, 0, n_dims, muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  n = muster_tensor_dims (x)[n_dims - 1];
  rows = n == 0 ? 0 : muster_tensor_n_elements (x) / n;
  if (muster_tensor_dtype (x) == MUSTER_FLOAT)
    softmax_f32 (rows, n, muster_tensor_data (x), muster_tensor_data_mutable (out), is_log);
  else
    softmax_f64 (rows, n, muster_tensor_data (x), muster_tensor_data_mutable (out), is_log);
  return muster_wide_end (k, 0, out, error);
}

static gboolean
compute_softmax (MusterKernel *k, GError **error)
{
  return softmax (k, FALSE, error);
}

static gboolean
compute_log_softmax (MusterKernel *k, GError **error)
{
  return softmax (k, TRUE, error);
}

/* The last two dimensions of x; 1 for each that it lacks. */
static void
last_two (MusterTensor *x, gint64 *dims)
{
  const int n = muster_tensor_n_dims (x);
  for (int i = 1; i <= 2; i++)
    dims[2 - i] = i > n ? 1 : muster_tensor_dims (x)[n - i];
}

static gboolean
plan_classes (Classes *c, MusterTensor *logits, MusterTensor *labels, GError **error)
{
  const gboolean is_matrix =
      MAX (muster_tensor_n_dims (logits), muster_tensor_n_dims (labels)) == 2;
  gint64 x[2], y[2];
  gboolean fit = is_matrix;

  last_two (logits, x);
  last_two (labels, y);
  for (int i = 0; i < 2 && fit; i++)
    fit = x[i] == y[i] || x[i] == 1 || y[i] == 1;
  if (!fit) {
    g_autofree char *a = muster_shape_text (logits), *b = muster_shape_text (labels);
    return muster_invalid (error, "logits and labels must be %s: logits_size=%s labels_size=%s",
                           is_matrix ? "broadcastable"
                                     : "either 2-dimensional, or broadcasted to be 2-dimensional",
                           a, b);
  }
  c->rows = x[0] == 1 ? y[0] : x[0];
  c->n = x[1] == 1 ? y[1] : x[1];
  c->logits_row = x[0] == 1 ? 0 : x[1];
  c->labels_row = y[0] == 1 ? 0 : y[1];
  c->logits_step = x[1] == 1 ? 0 : 1;
  c->labels_step = y[1] == 1 ? 0 : 1;
  return TRUE;
}

static gboolean
compute_cross_entropy (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) logits = NULL, labels = NULL, losses = NULL, gradients = NULL;
  g_autofree void *work = NULL;
  Classes c;

  if (!plan_classes (&c, muster_kernel_input (k, 0), muster_kernel_input (k, 1), error) ||
      (logits = muster_wide_input (k, 0, error)) == NULL ||
      (labels = muster_wide_input (k, 1, error)) == NULL ||
      (losses = muster_wide_output (k, 0, 1, &c.rows, error)) == NULL ||
      (gradients = muster_wide_output (k, 1, 2, (gint64[]){c.rows, c.n}, error)) == NULL ||
      (work = muster_kernel_alloc (k, c.n, sizeof (double), error)) == NULL)
    return FALSE;
  if (muster_tensor_dtype (logits) == MUSTER_FLOAT)
    cross_entropy_f32 (&c, muster_tensor_data (logits), muster_tensor_data (labels), work,
                       muster_tensor_data_mutable (losses), muster_tensor_data_mutable (gradients));
  else
    cross_entropy_f64 (&c, muster_tensor_data (logits), muster_tensor_data (labels), work,
                       muster_tensor_data_mutable (losses), muster_tensor_data_mutable (gradients));
  return muster_wide_end (k, 0, g_steal_pointer (&losses), error) &&
         muster_wide_end (k, 1, g_steal_pointer (&gradients), error);
}

static gboolean
check_labels (MusterTensor *labels, gint64 n, GError **error)
{
  g_autofree char *values = NULL;

  for (gint64 i = 0; i < muster_tensor_n_elements (labels); i++) {
    gint64 label = muster_int_at (labels, i);
    if (label >= 0 && label < n)
      continue;
    values = muster_tensor_to_string (labels, 10);
    return muster_invalid (error,
                           "Received a label value of %" G_GINT64_FORMAT
                           " which is outside the valid range of [0, %" G_GINT64_FORMAT
                           ").  Label values: %s",
                           label, n, values);
  }
  return TRUE;
}

static gboolean
check_sparse (MusterTensor *logits, MusterTensor *labels, GError **error)
{
  const gint64 *dims = muster_tensor_dims (logits);
  if (muster_tensor_n_dims (logits) == 2 && muster_tensor_n_dims (labels) == 1 &&
      dims[0] == muster_tensor_dims (labels)[0] && dims[1] > 0)
    return check_labels (labels, dims[1], error);
  g_autofree char *a = muster_shape_text (logits), *b = muster_shape_text (labels);
  if (muster_tensor_n_dims (logits) != 2)
    return muster_invalid (error, "logits must be 2-D, but got shape %s", a);
  if (muster_tensor_n_dims (labels) != 1)
    return muster_invalid (error, "labels must be 1-D, but got shape %s", b);
  if (dims[0] != muster_tensor_dims (labels)[0])
    return muster_invalid (error,
                           "logits and labels must have the same first dimension, got logits shape "
                           "%s and labels shape %s",
                           a, b);
  return muster_invalid (error, "Must have at least one class, but got logits shape %s", a);
}

static gboolean
compute_sparse_cross_entropy (MusterKernel *k, GError **error)
{
  MusterTensor *labels = muster_kernel_input (k, 1);
  g_autoptr (MusterTensor) logits = NULL, losses = NULL, gradients = NULL;
  const gint64 *dims;
  if (!check_sparse (muster_kernel_input (k, 0), labels, error) ||
      (logits = muster_wide_input (k, 0, error)) == NULL)
    return FALSE;
  dims = muster_tensor_dims (logits);
  if ((losses = muster_wide_output (k, 0, 1, dims, error)) == NULL ||
      (gradients = muster_wide_output (k, 1, 2, dims, error)) == NULL)
    return FALSE;
  if (muster_tensor_dtype (logits) == MUSTER_FLOAT)
    sparse_cross_entropy_f32 (dims[0], dims[1], muster_tensor_data (logits), labels,
                              muster_tensor_data_mutable (losses),
                              muster_tensor_data_mutable (gradients));
  else
    sparse_cross_entropy_f64 (dims[0], dims[1], muster_tensor_data (logits), labels,
                              muster_tensor_data_mutable (losses),
                              muster_tensor_data_mutable (gradients));
  return muster_wide_end (k, 0, g_steal_pointer (&losses), error) &&
         muster_wide_end (k, 1, g_steal_pointer (&gradients), error);
}

/* The channel: the last dimension, or with NCHW the second. */
static gboolean
channel_axis (MusterKernel *k, int n_dims, int *axis, GError **error)
{
  const Tensorflow__AttrValue *format = muster_kernel_attr (k, "data_format");
  gboolean is_nchw = format != NULL && format->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S &&
                     format->s.len == 4 && memcmp (format->s.data, "NCHW", 4) == 0;
  if (n_dims < (is_nchw ? 3 : 2) && !(is_nchw && n_dims == 2))
    return muster_invalid (error, "Input tensor must be at least 2D, not %dD", n_dims);
  *axis = is_nchw ? 1 : n_dims - 1;
  return TRUE;
}

#define BIAS_ADD(suffix, T)                                                                        \
  static void bias_add_##suffix (gint64 outer, gint64 n, gint64 inner, const void *px,             \
                                 const void *pb, void *out)                                        \
  {                                                                                                \
    const T *x = px, *b = pb;                                                                      \
    T *y = out;                                                                                    \
    for (gint64 o = 0; o < outer; o++)                                                             \
      if (inner == 1) {                                                                            \
        MUSTER_IVDEP                                                                               \
        for (gint64 c = 0; c < n; c++)                                                             \
          y[o * n + c] = (T)ADD (x[o * n + c], b[c]);                                              \
      } else {                                                                                     \
        for (gint64 c = 0; c < n; c++)                                                             \
          for (gint64 i = 0; i < inner; i++)                                                       \
            y[(o * n + c) * inner + i] = (T)ADD (x[(o * n + c) * inner + i], b[c]);                \
      }                                                                                            \
  }
#define BIAS_GRAD(suffix, T)                                                                       \
  static void bias_grad_##suffix (gint64 outer, gint64 n, gint64 inner, const void *px,            \
                                  const void *unused G_GNUC_UNUSED, void *out)                     \
  {                                                                                                \
    const T *x = px;                                                                               \
    T *y = out;                                                                                    \
    memset (y, 0, (gsize)n * sizeof (T));                                                          \
    for (gint64 o = 0; o < outer; o++)                                                             \
      for (gint64 c = 0; c < n; c++)                                                               \
        for (gint64 i = 0; i < inner; i++)                                                         \
          y[c] = (T)ADD (y[c], x[(o * n + c) * inner + i]);                                        \
  }
#define ADD(a, b) ((a) + (b))
MUSTER_FLOAT_TYPES (BIAS_ADD)
MUSTER_COMPLEX_TYPES (BIAS_ADD)
MUSTER_FLOAT_TYPES (BIAS_GRAD)
MUSTER_COMPLEX_TYPES (BIAS_GRAD)
#undef ADD
#define ADD(a, b) ((guint64)(a) + (guint64)(b))
MUSTER_INT_TYPES (BIAS_ADD)
MUSTER_INT_TYPES (BIAS_GRAD)

typedef void (*BiasLoop) (gint64 outer, gint64 n, gint64 inner, const void *x, const void *bias,
                          void *out);

static gboolean
compute_bias_add (MusterKernel *k, GError **error)
{
  static const BiasLoop loops[] = MUSTER_NUMBER_TABLE (bias_add);
  g_autoptr (MusterTensor) x = muster_number_input (k, 0, error), bias = NULL;
  MusterTensor *out;
  const gint64 *dims;
  int n_dims, axis = 0;
  bias = x == NULL ? NULL : muster_number_input (k, 1, error);
  if (bias == NULL)
    return FALSE;
  n_dims = muster_tensor_n_dims (x);
  dims = muster_tensor_dims (x);
  if (!channel_axis (k, n_dims, &axis, error))
    return FALSE;
  if (muster_tensor_n_dims (bias) != 1 || muster_tensor_dims (bias)[0] != dims[axis]) {
    g_autofree char *a = muster_shape_text (x), *b = muster_shape_text (bias);
    return muster_invalid (
        error, "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
        b, a);
  }
  out = muster_number_output (k, 0, n_dims, dims, error);
  if (out == NULL)
    return FALSE;
  if (muster_tensor_n_elements (x) > 0)
    loops[muster_loop_index (muster_tensor_dtype (x))](
        muster_dims_product (dims, 0, axis), dims[axis],
        muster_dims_product (dims, axis + 1, n_dims), muster_tensor_data (x),
        muster_tensor_data (bias), muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

static gboolean
compute_bias_add_grad (MusterKernel *k, GError **error)
{
  static const BiasLoop loops[] = MUSTER_NUMBER_TABLE (bias_grad);
  g_autoptr (MusterTensor) x = muster_number_input (k, 0, error);
  gboolean is_empty;
  MusterTensor *out;
  const gint64 *dims;
  int n_dims, axis = 0;
  if (x == NULL || !channel_axis (k, muster_tensor_n_dims (x), &axis, error))
    return FALSE;
  n_dims = muster_tensor_n_dims (x);
  dims = muster_tensor_dims (x);
  out = muster_number_output (k, 0, 1, &dims[axis], error);
  if (out == NULL)
    return FALSE;
  is_empty = muster_tensor_n_elements (x) == 0;
  loops[muster_loop_index (muster_tensor_dtype (x))](
      is_empty ? 0 : muster_dims_product (dims, 0, axis), dims[axis],
      is_empty ? 0 : muster_dims_product (dims, axis + 1, n_dims), muster_tensor_data (x), NULL,
      muster_tensor_data_mutable (out));
  return muster_wide_end (k, 0, out, error);
}

static gboolean
compute_l2_loss (MusterKernel *k, GError **error)
{
  g_autoptr (MusterTensor) x = muster_wide_input (k, 0, error);
  MusterTensor *out = x == NULL ? NULL : muster_wide_output (k, 0, 0, NULL, error);
  double sum = 0;
  if (out == NULL)
    return FALSE;
  if (muster_tensor_dtype (x) == MUSTER_FLOAT) {
    const float *values = muster_tensor_data (x);
    for (gint64 i = 0; i < muster_tensor_n_elements (x); i++)
      sum += (double)values[i] * values[i];
    *(float *)muster_tensor_data_mutable (out) = (float)(sum / 2);
  } else {
    const double *values = muster_tensor_data (x);
    for (gint64 i = 0; i < muster_tensor_n_elements (x); i++)
      sum += values[i] * values[i];
    *(double *)muster_tensor_data_mutable (out) = sum / 2;
  }
  return muster_wide_end (k, 0, out, error);
}

/* Returns TRUE if the target is among the k largest of its row; ties count. */
static gboolean
is_in_top (const float *row, gint64 n, gint64 target, gint64 k)
{
  gint64 better = 0;
  if (target < 0 || target >= n || !isfinite (row[target]))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    if (!isfinite (row[i]))
      return FALSE;
    better += row[i] > row[target];
  }
  return better < k;
}

static gboolean
compute_in_top_k (MusterKernel *k, GError **error)
{
  MusterTensor *predictions = muster_kernel_input (k, 0), *targets = muster_kernel_input (k, 1);
  gboolean has_input = muster_kernel_n_inputs (k) == 3;
  gint64 rows, n, best;
  MusterTensor *out;
  if (muster_tensor_n_dims (predictions) != 2)
    return muster_invalid (error, "predictions must be 2-dimensional");
  if (muster_tensor_n_dims (targets) != 1)
    return muster_invalid (error, "targets must be 1-dimensional");
  rows = muster_tensor_dims (predictions)[0];
  n = muster_tensor_dims (predictions)[1];
  if (rows != muster_tensor_dims (targets)[0])
    return muster_invalid (error,
                           "First dimension of predictions %" G_GINT64_FORMAT
                           " must match length of targets %" G_GINT64_FORMAT,
                           rows, muster_tensor_dims (targets)[0]);
  if (has_input && !muster_check_scalar (k, 2, "k", error))
    return FALSE;
  best = has_input ? muster_kernel_input_int (k, 2) : muster_kernel_attr_int (k, "k", 1);
  out = muster_kernel_output (k, 0, 1, &rows, error);
  if (out == NULL)
    return FALSE;
  for (gint64 r = 0; r < rows; r++)
    ((guint8 *)muster_tensor_data_mutable (out))[r] =
        is_in_top ((const float *)muster_tensor_data (predictions) + r * n, n,
                   muster_int_at (targets, r), best);
  return TRUE;
}

#define XENT        "features:T, labels:T -> loss:T, backprop:T"
#define SPARSE_XENT "features:T, labels:Tlabels -> loss:T, backprop:T"

const MusterOp muster_nn_ops[] = {
    {"Softmax", "logits:T -> softmax:T", "T:float", compute_softmax, 0},
    {"LogSoftmax", "logits:T -> logsoftmax:T", "T:float", compute_log_softmax, 0},
    {"SoftmaxCrossEntropyWithLogits", XENT, "T:float", compute_cross_entropy, 0},
    {"SparseSoftmaxCrossEntropyWithLogits", SPARSE_XENT, "T:float Tlabels:int64|int32",
     compute_sparse_cross_entropy, 0},
    {"BiasAdd", "value:T, bias:T -> output:T", "T:number data_format", compute_bias_add, 0},
    {"BiasAddV1", "value:T, bias:T -> output:T", "T:number", compute_bias_add, 0},
    {"BiasAddGrad", "out_backprop:T -> output:T", "T:number data_format", compute_bias_add_grad, 0},
    {"L2Loss", "t:T -> output:T", "T:float", compute_l2_loss, 0},
    {"InTopK", "predictions:float, targets:T -> precision:bool", "T:int32|int64 k",
     compute_in_top_k, 0},
    {"InTopKV2", "predictions:float, targets:T, k:T -> precision:bool", "T:int32|int64",
     compute_in_top_k, 0},
    {NULL, NULL, NULL, NULL, 0},
};
