// SPDX-License-Identifier: Apache-2.0
/* Samples of distributions whose parameters are inputs: classes by their logits, gamma and Poisson.
 * With fixed seeds, every step draws the same samples as in TensorFlow. */
#include "engine/kernels/random/random.h"
#include "engine/kernels/random/random_op_tables.h"
#include "engine/kernels/random/random_source.h"

#include <math.h>

/* The number of blocks of words reserved for each sample. */
#define BLOCKS_RESERVED 256

/* For each sample, draws a point in the cumulative distribution and finds the class that contains
 * it. */
static void
sample_classes (const double *logits, gint64 n, MusterWords *words, double *ends, gint64 *drawn,
                gint64 n_samples)
{
  double most = -G_MAXDOUBLE, total = 0;
  for (gint64 i = 0; i < n; i++)
    if (isfinite (logits[i]))
      most = MAX (most, logits[i]);
  for (gint64 i = 0; i < n; i++)
    ends[i] = total += isfinite (logits[i]) ? exp (logits[i] - most) : 0;
  for (gint64 i = 0; i < n_samples; i++) {
    const double point = muster_words_double (words) * total;
    gint64 low = 0, high = n;
    while (low < high) {
      const gint64 middle = low + (high - low) / 2;
      if (ends[middle] > point)
        high = middle;
      else
        low = middle + 1;
    }
    drawn[i] = low;
  }
}

static gboolean
check_logits (MusterKernel *k, GError **error)
{
  MusterTensor *logits = muster_kernel_input (k, 0), *count = muster_kernel_input (k, 1);
  const gint64 n_samples = muster_kernel_input_int (k, 1);
  g_autofree char *shape = muster_shape_text (logits), *count_shape = muster_shape_text (count);
  if (muster_tensor_n_dims (logits) != 2)
    return muster_invalid (error, "logits should be a matrix, got shape %s", shape);
  if (muster_tensor_n_dims (count) != 0)
    return muster_invalid (error, "num_samples should be a scalar, got shape %s", count_shape);
  if (n_samples < 0)
    return muster_invalid (error, "num_samples should be non-negative, got %" G_GINT64_FORMAT,
                           n_samples);
  if (muster_tensor_dims (logits)[1] <= 0)
    return muster_invalid (error, "num_classes should be positive, got %" G_GINT64_FORMAT,
                           muster_tensor_dims (logits)[1]);
  return TRUE;
}

static double
real_at (const MusterTensor *x, gint64 i)
{
  const void *data = muster_tensor_data (x);
  switch (muster_tensor_dtype (x)) {
  case MUSTER_DOUBLE:
    return ((const double *)data)[i];
  case MUSTER_FLOAT:
    return (double)((const float *)data)[i];
  case MUSTER_HALF:
    return (double)muster_half_to_float (((const guint16 *)data)[i]);
  case MUSTER_BFLOAT16:
    return (double)muster_bfloat16_to_float (((const guint16 *)data)[i]);
  default:
    return (double)muster_int_at (x, i);
  }
}

static gboolean
fill_classes (MusterKernel *k, MusterPhilox philox, MusterTensor *out, GError **error)
{
  MusterTensor *logits = muster_kernel_input (k, 0);
  const gint64 n = muster_tensor_dims (logits)[1], n_samples = muster_tensor_dims (out)[1];
  g_autofree double *row = muster_kernel_alloc (k, n, 2 * sizeof (double), error);
  g_autofree gint64 *drawn =
      row == NULL ? NULL : muster_kernel_alloc (k, n_samples, sizeof (gint64), error);
  MusterWords words = {.philox = philox};
  if (drawn == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_dims (out)[0]; i++) {
    for (gint64 j = 0; j < n; j++)
      row[j] = real_at (logits, i * n + j);
    sample_classes (row, n, &words, row + n, drawn, n_samples);
    for (gint64 j = 0; j < n_samples; j++)
      muster_put_int (out, i * n_samples + j, drawn[j]);
  }
  return TRUE;
}

/* Reserves as many words of the generator as TensorFlow: two for each sample, rounded up to four.
 */
static gboolean
draw_classes (MusterKernel *k, gboolean is_seeded, GError **error)
{
  MusterPhilox philox;
  if (is_seeded && !muster_seeded_philox (k, 2, &philox, error))
    return FALSE;
  if (!check_logits (k, error))
    return FALSE;
  const gint64 dims[] = {muster_tensor_dims (muster_kernel_input (k, 0))[0],
                         muster_kernel_input_int (k, 1)};
  MusterTensor *out = muster_kernel_output (k, 0, 2, dims, error);
  if (out == NULL || muster_tensor_n_elements (out) == 0)
    return out != NULL;
  if (!is_seeded)
    philox = muster_kernel_philox_blocks (k, (guint64)dims[0] * (guint64)((dims[1] + 3) / 4 * 8) *
                                                 BLOCKS_RESERVED);
  return fill_classes (k, philox, out, error);
}

static gboolean
compute_classes (MusterKernel *k, GError **error)
{
  return draw_classes (k, FALSE, error);
}

static gboolean
compute_seeded_classes (MusterKernel *k, GError **error)
{
  return draw_classes (k, TRUE, error);
}

/* Marsaglia and Tsang's method: transforms a normal number, with rejection. */
static double
sample_gamma (double alpha, double most G_GNUC_UNUSED, MusterPhilox *philox)
{
  const gboolean is_small = alpha < 1;
  const double d = alpha + (is_small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt (d);
  MusterPair normal = {.n_left = 0}, uniform = {.n_left = 0};
  if (alpha == 1)
    return -log1p (-muster_pair_uniform (&uniform, philox));
  for (;;) {
    const double x = muster_pair_normal (&normal, philox);
    double v = 1 + c * x;
    if (v <= 0)
      continue;
    v = v * v * v;
    const double u = muster_pair_uniform (&uniform, philox);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log (u) < 0.5 * x * x + d * (1 - v + log (v)))
      return is_small ? d * v * pow (muster_pair_uniform (&uniform, philox), 1 / alpha) : d * v;
  }
}

/* Knuth's method: counts the events whose times sum up to one. */
static double
sample_few (double rate, MusterPhilox *philox)
{
  const double end = exp (-rate);
  MusterPair uniform = {.n_left = 0};
  double product = muster_pair_uniform (&uniform, philox), n = 0;
  for (; product > end; n++)
    product *= muster_pair_uniform (&uniform, philox);
  return n;
}

/* Hörmann's transformed rejection. */
static double
sample_many (double rate, double most, MusterPhilox *philox)
{
  const double log_rate = log (rate), b = 0.931 + 2.53 * sqrt (rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  MusterPair uniform = {.n_left = 0};
  for (;;) {
    const double u = muster_pair_uniform (&uniform, philox) - 0.5;
    const double v = muster_pair_uniform (&uniform, philox);
    const double shifted = 0.5 - fabs (u), n = floor ((2 * a / shifted + b) * u + rate + 0.43);
    if (n > most)
      continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
      return n;
    if (n < 0 || (shifted < 0.013 && v > shifted))
      continue;
    if (log (v * inverse_alpha / (a / (shifted * shifted) + b)) <=
        -rate + n * log_rate - lgamma (n + 1))
      return n;
  }
}

static double
sample_poisson (double rate, double most, MusterPhilox *philox)
{
  return rate < 10 ? sample_few (rate, philox) : sample_many (rate, most, philox);
}

static void
put_real (MusterTensor *out, gint64 i, double value)
{
  const MusterDType dtype = muster_tensor_dtype (out);
  const float narrow = (float)value;
  if (dtype == MUSTER_INT32 || dtype == MUSTER_INT64)
    muster_put_int (out, i, (gint64)value);
  else if (dtype == MUSTER_DOUBLE)
    ((double *)muster_tensor_data_mutable (out))[i] = value;
  else
    muster_narrow (dtype, &narrow, 1,
                   (guint8 *)muster_tensor_data_mutable (out) +
                       (gsize)i * muster_dtype_size (dtype));
}

/* The largest number that TensorFlow draws for a dtype. */
static double
most_of (MusterDType dtype)
{
  switch (dtype) {
  case MUSTER_INT32:
    return G_MAXINT32;
  case MUSTER_INT64:
    return 9223372036854774784.0; /* the largest double below 2^63 */
  case MUSTER_HALF:
    return 65504;
  case MUSTER_FLOAT:
    return (double)G_MAXFLOAT;
  default:
    return G_MAXDOUBLE;
  }
}

typedef double (*Sample) (double parameter, double most, MusterPhilox *philox);

/* Fills a column of the output with samples for each parameter. The output's shape ends with that
 * of the parameters. */
static gboolean
fill_samples (MusterKernel *k, MusterPhilox philox, int input, Sample sample, MusterTensor *out,
              GError **error)
{
  MusterTensor *x = muster_kernel_input (k, input);
  const int n_dims = muster_tensor_n_dims (x), n_more = muster_tensor_n_dims (out) - n_dims;
  for (int i = 0; i < n_dims; i++)
    if (n_more < 0 || muster_tensor_dims (out)[n_more + i] != muster_tensor_dims (x)[i])
      return muster_invalid (error, "Shape passed in must end with broadcasted shape.");
  const gint64 n = muster_tensor_n_elements (x), n_each = muster_tensor_n_elements (out) / n;
  const double most = most_of (muster_tensor_dtype (out));
  for (gint64 i = 0; i < n; i++)
    for (gint64 j = 0; j < n_each; j++) {
      MusterPhilox own = philox;
      muster_philox_skip (&own, (guint64)(i * n_each + j) * BLOCKS_RESERVED);
      put_real (out, j * n + i, sample (real_at (x, i), most, &own));
    }
  return TRUE;
}

static gboolean
draw_gamma (MusterKernel *k, MusterPhilox philox, int input, MusterTensor *out, GError **error)
{
  return fill_samples (k, philox, input, sample_gamma, out, error);
}

/* TensorFlow's sampler doesn't end with such rates. */
static gboolean
check_rates (MusterTensor *rates, MusterDType dtype, GError **error)
{
  for (gint64 i = 0; i < muster_tensor_n_elements (rates); i++)
    if (!(real_at (rates, i) <= most_of (dtype)))
      return muster_invalid (error, "Poisson samples of dtype %s aren't supported at a rate of %g",
                             muster_dtype_name (dtype), real_at (rates, i));
  return TRUE;
}

static gboolean
draw_poisson (MusterKernel *k, MusterPhilox philox, int input, MusterTensor *out, GError **error)
{
  return check_rates (muster_kernel_input (k, input), muster_tensor_dtype (out), error) &&
         fill_samples (k, philox, input, sample_poisson, out, error);
}

/* Defines a kernel that draws from a generator of that source. */
#define DRAW(compute, source, draw)                                                                \
  static gboolean compute (MusterKernel *k, GError **error)                                        \
  {                                                                                                \
    return source (k, draw, error);                                                                \
  }
DRAW (compute_own_each_gamma, muster_draw_own_each, draw_gamma)
DRAW (compute_own_each_poisson, muster_draw_own_each, draw_poisson)
DRAW (compute_seeded_gamma, muster_draw_seeded, draw_gamma)
DRAW (compute_seeded_poisson, muster_draw_seeded, draw_poisson)
DRAW (compute_keyed_gamma, muster_draw_keyed, draw_gamma)

#define S       MUSTER_OP_STATEFUL
#define R       MUSTER_OP_READER
#define CLASSES "logits:T, num_samples:int32"
#define LOGITS  "T:float output_dtype:int64|int32"
#define SEEDED  "T:int32|int64 Tseed:int64|int32 "
#define COUNTS  "dtype:int64|half|float|double|int32"

const MusterOp muster_random_sampled_ops[] = {
    {"Multinomial", CLASSES " -> output:output_dtype", LOGITS " seed seed2", compute_classes, R},
    {"StatelessMultinomial", CLASSES ", seed:Tseed -> output:output_dtype",
     LOGITS " Tseed:int64|int32", compute_seeded_classes, 0},
    {"RandomGamma", "shape:S, alpha:T -> output:T", "S:int32|int64 T:half|float|double seed seed2",
     compute_own_each_gamma, R},
    {"StatelessRandomGammaV2", "shape:T, seed:Tseed, alpha:dtype -> output:dtype",
     SEEDED "dtype:half|float|double", compute_seeded_gamma, 0},
    {"StatelessRandomGammaV3",
     "shape:shape_dtype, key:uint64, counter:uint64, alg:int32, alpha:dtype -> output:dtype",
     "shape_dtype:int32|int64 dtype:half|float|double", compute_keyed_gamma, 0},
    {"RandomPoissonV2", "shape:S, rate:R -> output:dtype",
     "S:int32|int64 R:double|half|float|int32|int64 " COUNTS " seed seed2",
     compute_own_each_poisson, R},
    {"StatelessRandomPoisson", "shape:T, seed:Tseed, lam:Rtype -> output:dtype",
     SEEDED "Rtype:half|float|double|int32|int64 dtype:half|float|double|int32|int64",
     compute_seeded_poisson, 0},
    {NULL, NULL, NULL, NULL, 0},
};
