// SPDX-License-Identifier: Apache-2.0
/* FusedBatchNorm and its gradient, over all dimensions but that of the channels. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/nn/nn_op_tables.h"

#include <math.h>
#include <string.h>

/* Loops over elements are faster with -O3 than with the default -O2. */
#pragma GCC optimize("O3")

/* x as outer × channels × inner. */
typedef struct {
  gint64 outer, channels, inner;
  double n; /* elements of a channel */
  double epsilon;
  gboolean is_training, is_first; /* the dimension of the channels is */
} Layout;

static gboolean
read_layout (MusterKernel *k, int x_input, Layout *l, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, x_input);
  const gint64 *dims = muster_tensor_dims (x);
  const int n_dims = muster_tensor_n_dims (x);
  g_autofree char *format = muster_kernel_attr_text (k, "data_format");
  const gboolean is_first = g_str_has_prefix (format, "NC");

  if (n_dims < 4 || n_dims > 5) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "input must be 4 or 5-dimensional%s", shape);
  }
  l->is_first = is_first;
  l->channels = dims[is_first ? 1 : n_dims - 1];
  l->outer = is_first ? dims[0] : muster_dims_product (dims, 0, n_dims - 1);
  l->inner = is_first ? muster_dims_product (dims, 2, n_dims) : 1;
  l->n = (double)l->outer * (double)l->inner;
  l->epsilon = (double)muster_kernel_attr_float (k, "epsilon", 0.0001f);
  l->is_training = muster_kernel_attr_bool (k, "is_training", TRUE);
  return TRUE;
}

/* Checks that input i is a vector, with a number for each channel unless l is NULL. */
static gboolean
check_vector (MusterKernel *k, int i, const char *name, const Layout *l, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, i);
  if (muster_tensor_n_dims (x) != 1) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "%s must be 1-dimensional%s", name, shape);
  }
  return l == NULL || muster_tensor_dims (x)[0] == l->channels ||
         muster_invalid (error,
                         "%s must have the same number of elements as the channels of x, got "
                         "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                         name, muster_tensor_dims (x)[0], l->channels);
}

/* Runs the statement for each element (o, c, i); "at" is its position in x. */
#define EACH(l, ...)                                                                               \
  for (gint64 o = 0, row = 0; o < (l)->outer; o++)                                                 \
    for (gint64 c = 0; c < (l)->channels; c++, row++)                                              \
      for (gint64 at = row * (l)->inner; at < (row + 1) * (l)->inner; at++)                        \
  __VA_ARGS__

/* Sums x, or (x - centre) × with, by channel. */
static void
add_up (const Layout *l, const float *x, const double *centre, const float *with, double *sums)
{
  memset (sums, 0, (gsize)l->channels * sizeof *sums);
  if (with == NULL) {
    EACH (l, sums[c] += (double)x[at]);
  } else {
    EACH (l, sums[c] += ((double)x[at] - centre[c]) * (double)with[at]);
  }
}

static void
add_squares (const Layout *l, const float *x, const double *centre, double *sums)
{
  memset (sums, 0, (gsize)l->channels * sizeof *sums);
  EACH (l, {
    const double d = (double)x[at] - centre[c];
    sums[c] += d * d;
  });
}

/* The kernel's state: float inputs, and buffers by channel. */
typedef struct {
  Layout l;
  MusterTensor *inputs[5];         /* (owned) */
  double *mean, *variance, *a, *b; /* (owned) mean owns all */
} Norm;

static void
norm_clear (Norm *self)
{
  for (int i = 0; i < 5; i++)
    g_clear_pointer (&self->inputs[i], muster_tensor_unref);
  g_clear_pointer (&self->mean, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Norm, norm_clear)

static gboolean
norm_begin (MusterKernel *k, Norm *n, GError **error)
{
  const gsize channels = (gsize)n->l.channels;
  for (int i = 0; i < 5; i++)
    if ((n->inputs[i] = muster_wide_input (k, i, error)) == NULL)
      return FALSE;
  n->mean = muster_kernel_alloc0 (k, n->l.channels, 4 * sizeof (double), error);
  if (n->mean == NULL)
    return FALSE;
  n->variance = n->mean + channels;
  n->a = n->variance + channels;
  n->b = n->a + channels;
  return TRUE;
}

static const float *
input (const Norm *n, int i)
{
  return muster_tensor_data (n->inputs[i]);
}

static gboolean
set_vector (MusterKernel *k, int i, gint64 n, const double *values, GError **error)
{
  MusterTensor *out = muster_wide_output (k, i, 1, &n, error);
  for (gint64 c = 0; out != NULL && c < n; c++)
    ((float *)muster_tensor_data_mutable (out))[c] = (float)values[c];
  return out != NULL && muster_wide_end (k, i, out, error);
}

/* Computes the mean and variance that normalise the batch and, in a and b, the running ones. */
static void
find_moments (MusterKernel *k, Norm *n)
{
  const double part = (double)muster_kernel_attr_float (k, "exponential_avg_factor", 1);
  const double adjust = n->l.n > 1 ? n->l.n / (n->l.n - 1) : 1; /* Bessel's correction */

  if (n->l.is_training && n->l.n > 0) {
    add_up (&n->l, input (n, 0), NULL, NULL, n->mean);
    for (gint64 c = 0; c < n->l.channels; c++)
      n->mean[c] /= n->l.n;
    add_squares (&n->l, input (n, 0), n->mean, n->variance);
  }
  for (gint64 c = 0; c < n->l.channels; c++) {
    if (n->l.n == 0) {
      n->a[c] = n->b[c] = NAN;
      continue;
    }
    if (!n->l.is_training) {
      n->a[c] = n->mean[c] = (double)input (n, 3)[c];
      n->b[c] = n->variance[c] = (double)input (n, 4)[c];
      continue;
    }
    n->variance[c] /= n->l.n;
    n->a[c] = n->mean[c];
    n->b[c] = n->variance[c] * adjust;
    if (part != 1) {
      n->a[c] = (1 - part) * (double)input (n, 3)[c] + part * n->a[c];
      n->b[c] = (1 - part) * (double)input (n, 4)[c] + part * n->b[c];
    }
  }
}

static gboolean
check_norm (MusterKernel *k, Norm *n, GError **error)
{
  const gboolean keeps =
      !n->l.is_training || muster_kernel_attr_float (k, "exponential_avg_factor", 1) != 1;
  return check_vector (k, 1, "scale", &n->l, error) &&
         check_vector (k, 2, "offset", &n->l, error) &&
         check_vector (k, 3, "estimated_mean", keeps ? &n->l : NULL, error) &&
         check_vector (k, 4, "estimated_variance", keeps ? &n->l : NULL, error);
}

static gboolean
compute_norm (MusterKernel *k, GError **error)
{
  g_auto (Norm) n = {0};
  MusterTensor *x = muster_kernel_input (k, 0), *y;
  if (!read_layout (k, 0, &n.l, error) || !check_norm (k, &n, error) || !norm_begin (k, &n, error))
    return FALSE;
  y = muster_wide_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (y == NULL)
    return FALSE;
  find_moments (k, &n);
  if (!set_vector (k, 1, n.l.channels, n.a, error) ||
      !set_vector (k, 2, n.l.channels, n.b, error) ||
      !set_vector (k, 3, n.l.channels, n.mean, error) ||
      !set_vector (k, 4, n.l.channels, n.variance, error)) {
    muster_tensor_unref (y);
    return FALSE;
  }
  /* y = (x - mean) × a + b */
  for (gint64 c = 0; c < n.l.channels; c++) {
    n.a[c] = (double)input (&n, 1)[c] / sqrt ((double)(float)n.variance[c] + n.l.epsilon);
    n.b[c] = (double)input (&n, 2)[c];
  }
  const float *from = input (&n, 0);
  float *to = muster_tensor_data_mutable (y);
  EACH (&n.l, to[at] = (float)(((double)from[at] - n.mean[c]) * n.a[c] + n.b[c]));
  if (muster_kernel_n_outputs (k) > 5) {
    MusterTensor *rest = muster_kernel_output (k, 5, 0, NULL, error);
    if (rest == NULL) {
      muster_tensor_unref (y);
      return FALSE;
    }
    memset (muster_tensor_data_mutable (rest), 0, muster_tensor_n_bytes (rest));
  }
  return muster_wide_end (k, 0, y, error);
}

/* Outputs: the gradients of x, scale and offset; two unused ones. */
static gboolean
set_gradients (MusterKernel *k, const Norm *n, MusterTensor *dx, GError **error)
{
  const gint64 none = 0;
  if (!set_vector (k, 1, n->l.channels, n->a, error) ||
      !set_vector (k, 2, n->l.channels, n->b, error) ||
      muster_kernel_output (k, 3, 1, &none, error) == NULL ||
      muster_kernel_output (k, 4, 1, &none, error) == NULL) {
    muster_tensor_unref (dx);
    return FALSE;
  }
  return muster_wide_end (k, 0, dx, error);
}

static gboolean
check_norm_grad (MusterKernel *k, const Layout *l, GError **error)
{
  MusterTensor *dy = muster_kernel_input (k, 0), *x = muster_kernel_input (k, 1);
  if (l->is_first && !l->is_training)
    return muster_invalid (error, "The implementation of FusedBatchNormGrad with is_training=False "
                                  "only support NHWC tensor format for now.");
  if (!muster_same_shape (dy, x)) {
    g_autofree char *a = muster_shape_text (dy), *b = muster_shape_text (x);
    return muster_invalid (error,
                           "x and y_backprop must have same shape, but x has shape %s and "
                           "y_backprop has shape %s",
                           b, a);
  }
  return check_vector (k, 2, "scale", l, error) &&
         check_vector (k, 3, "reserve_space_1", l, error) &&
         check_vector (k, 4, "reserve_space_2", l, error);
}

/* The gradient of x, and by channel those of scale and offset, in a and b. */
static void
fill_norm_grad (Norm *n, float *to)
{
  const float *dy = input (n, 0), *from = input (n, 1), *scale = input (n, 2);
  for (gint64 c = 0; c < n->l.channels; c++) {
    n->mean[c] = (double)input (n, 3)[c];
    n->variance[c] = 1 / sqrt ((double)input (n, 4)[c] + n->l.epsilon);
  }
  add_up (&n->l, from, n->mean, dy, n->a);
  add_up (&n->l, dy, NULL, NULL, n->b);
  if (n->l.is_training) {
    EACH (&n->l, {
      const double inverse = n->variance[c], centred = (double)from[at] - n->mean[c];
      to[at] = (float)((double)scale[c] * inverse *
                       ((double)dy[at] - n->b[c] / n->l.n -
                        centred * inverse * inverse * n->a[c] / n->l.n));
    });
  } else {
    EACH (&n->l, to[at] = (float)((double)dy[at] * (double)scale[c] * n->variance[c]));
  }
  for (gint64 c = 0; c < n->l.channels; c++)
    n->a[c] *= n->variance[c];
}

static gboolean
compute_norm_grad (MusterKernel *k, GError **error)
{
  g_auto (Norm) n = {0};
  MusterTensor *x = muster_kernel_input (k, 1), *dx;
  if (!read_layout (k, 1, &n.l, error) || !check_norm_grad (k, &n.l, error) ||
      !norm_begin (k, &n, error))
    return FALSE;
  dx = muster_wide_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (dx == NULL)
    return FALSE;
  fill_norm_grad (&n, muster_tensor_data_mutable (dx));
  return set_gradients (k, &n, dx, error);
}

#define NORM(T, U)                                                                                 \
  "x:" T ", scale:" U ", offset:" U ", mean:" U ", variance:" U " -> y:" T ", batch_mean:" U       \
  ", batch_variance:" U ", reserve_space_1:" U ", reserve_space_2:" U
#define GRAD(T, SCALE, U)                                                                          \
  "y_backprop:" T ", x:" T ", scale:" SCALE ", reserve_space_1:" U ", reserve_space_2:" U
#define GRADS(T, U)                                                                                \
  " -> x_backprop:" T ", scale_backprop:" U ", offset_backprop:" U ", reserve_space_3:" U          \
  ", reserve_space_4:" U
#define TYPES    "T:float|half|bfloat16"
#define ATTRS    " epsilon data_format is_training"
#define AVERAGED ATTRS " exponential_avg_factor"

const MusterOp muster_batch_norm_ops[] = {
    {"FusedBatchNorm", NORM ("float", "float"), "T" AVERAGED, compute_norm, 0},
    {"FusedBatchNormV2", NORM ("T", "float"), TYPES " U" AVERAGED, compute_norm, 0},
    {"FusedBatchNormV3", NORM ("T", "float") ", reserve_space_3:float", TYPES " U" AVERAGED,
     compute_norm, 0},
    {"FusedBatchNormGrad", GRAD ("float", "float", "float") GRADS ("float", "float"), "T" ATTRS,
     compute_norm_grad, 0},
    {"FusedBatchNormGradV2", GRAD ("T", "float", "float") GRADS ("T", "float"), TYPES " U" ATTRS,
     compute_norm_grad, 0},
    {"FusedBatchNormGradV3",
     GRAD ("T", "float", "float") ", reserve_space_3:float" GRADS ("T", "float"), TYPES " U" ATTRS,
     compute_norm_grad, 0},
    {NULL, NULL, NULL, NULL, 0},
};
