// SPDX-License-Identifier: Apache-2.0
/* Random tensors: with fixed seeds the same numbers as TensorFlow's CPU kernels, step after step.
 */
#include "engine/kernels/random.h"

#include <math.h>

/* TensorFlow sets this many words aside for each element of a truncated distribution, which can't
 * tell how many it takes. */
#define RESERVED 256

/* Two normal numbers from two uniform ones (Box and Muller). */
static void
normal_floats (guint32 x, guint32 y, float *out)
{
  float u = fmaxf (muster_unit_float (x), 1.0e-7f);
  float angle = (float)(2.0f * M_PI * muster_unit_float (y));
  float radius = sqrtf (-2.0f * logf (u));

  out[0] = sinf (angle) * radius;
  out[1] = cosf (angle) * radius;
}

static void
normal_doubles (const guint32 *words, double *out)
{
  double u = fmax (muster_unit_double (words[0], words[1]), 1.0e-7);
  double angle = 2 * M_PI * muster_unit_double (words[2], words[3]);
  double radius = sqrt (-2.0 * log (u));

  out[0] = sin (angle) * radius;
  out[1] = cos (angle) * radius;
}

/* half and bfloat16 keep the low bits of a word. */
static guint16
unit_half (guint32 word)
{
  return muster_half_from_float (muster_half_to_float ((guint16)(15u << 10 | (word & 0x3ffu))) -
                                 1.0f);
}

static guint16
unit_bfloat16 (guint32 word)
{
  return muster_bfloat16_from_float (
      muster_bfloat16_to_float ((guint16)(127u << 7 | (word & 0x7fu))) - 1.0f);
}

/* One block of four words to elements of a dtype: four of them, or two doubles. */
typedef void (*FillBlock) (MusterDType dtype, const guint32 *words, void *out);

static void
uniform_block (MusterDType dtype, const guint32 *words, void *out)
{
  for (int i = 0; i < 4; i++)
    if (dtype == MUSTER_FLOAT)
      ((float *)out)[i] = muster_unit_float (words[i]);
    else if (dtype == MUSTER_HALF)
      ((guint16 *)out)[i] = unit_half (words[i]);
    else if (dtype == MUSTER_BFLOAT16)
      ((guint16 *)out)[i] = unit_bfloat16 (words[i]);
    else if (i < 2)
      ((double *)out)[i] = muster_unit_double (words[2 * i], words[2 * i + 1]);
}

static void
normal_block (MusterDType dtype, const guint32 *words, void *out)
{
  float values[4];

  if (dtype == MUSTER_DOUBLE) {
    normal_doubles (words, out);
    return;
  }
  normal_floats (words[0], words[1], values);
  normal_floats (words[2], words[3], values + 2);
  muster_narrow (dtype, values, 4, out);
}

static void
fill (MusterKernel *k, FillBlock block, MusterTensor *out)
{
  MusterDType dtype = muster_tensor_dtype (out);
  gint64 n = muster_tensor_n_elements (out), per_block = dtype == MUSTER_DOUBLE ? 2 : 4;
  MusterPhilox random = muster_kernel_philox (k);
  gsize size = muster_dtype_size (dtype);
  guint8 *to = muster_tensor_data_mutable (out);
  guint32 words[4], values[4];

  for (gint64 i = 0; i < n; i += per_block) {
    muster_philox_next (&random, words);
    block (dtype, words, values);
    memcpy (to + i * size, values, MIN (per_block, n - i) * size);
  }
}

static MusterTensor *
shaped_output (MusterKernel *k, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  int n = muster_kernel_input_ints (k, 0, dims, MUSTER_MAX_DIMS, error);

  for (int i = 0; i < n; i++)
    if (dims[i] < 0) {
      muster_invalid (error, "Dimension %" G_GINT64_FORMAT " must be >= 0", dims[i]);
      return NULL;
    }
  return n < 0 ? NULL : muster_kernel_output (k, 0, n, dims, error);
}

static gboolean
compute_uniform (MusterKernel *k, GError **error)
{
  MusterTensor *out = shaped_output (k, error);

  if (out == NULL)
    return FALSE;
  fill (k, uniform_block, out);
  return TRUE;
}

static gboolean
compute_normal (MusterKernel *k, GError **error)
{
  MusterTensor *out = shaped_output (k, error);

  if (out == NULL)
    return FALSE;
  fill (k, normal_block, out);
  return TRUE;
}

/* Normal numbers nearer than two deviations. Each group of elements has a stretch of the generator
 * to itself, as in TensorFlow, where groups are filled by many threads. */
static void
truncated_group (MusterPhilox random, MusterDType dtype, void *out)
{
  guint32 words[4];
  int n = 0;

  if (dtype == MUSTER_DOUBLE) {
    while (n < 2) {
      double pair[2];
      muster_philox_next (&random, words);
      normal_doubles (words, pair);
      for (int i = 0; i < 2 && n < 2; i++)
        if (fabs (pair[i]) < 2)
          ((double *)out)[n++] = pair[i];
    }
    return;
  }
  float values[4];
  while (n < 4) {
    float drawn[4];
    muster_philox_next (&random, words);
    normal_floats (words[0], words[1], drawn);
    normal_floats (words[2], words[3], drawn + 2);
    for (int i = 0; i < 4 && n < 4; i++)
      if (fabsf (drawn[i]) < 2)
        values[n++] = drawn[i];
  }
  muster_narrow (dtype, values, 4, out);
}

static gboolean
compute_truncated (MusterKernel *k, GError **error)
{
  MusterTensor *out = shaped_output (k, error);
  MusterDType dtype;
  gint64 n, group;
  MusterPhilox random;
  gsize size;

  if (out == NULL)
    return FALSE;
  dtype = muster_tensor_dtype (out);
  n = muster_tensor_n_elements (out);
  group = dtype == MUSTER_DOUBLE ? 2 : 4;
  size = muster_dtype_size (dtype);
  random = muster_kernel_philox (k);
  for (gint64 i = 0; i < n; i += group) {
    double values[2];
    truncated_group (random, dtype, values);
    memcpy ((guint8 *)muster_tensor_data_mutable (out) + i * size, values,
            MIN (group, n - i) * size);
    muster_philox_skip (&random, (guint64)group * RESERVED / 4);
  }
  return TRUE;
}

static gboolean
compute_uniform_int (MusterKernel *k, GError **error)
{
  gint64 low, high, n;
  MusterTensor *out;
  MusterPhilox random;
  guint64 range;

  if (!muster_check_scalar (k, 1, "minval", error) || !muster_check_scalar (k, 2, "maxval", error))
    return FALSE;
  low = muster_kernel_input_int (k, 1);
  high = muster_kernel_input_int (k, 2);
  out = shaped_output (k, error);
  if (out == NULL)
    return FALSE;
  n = muster_tensor_n_elements (out);
  if (n == 0)
    return TRUE;
  if (low >= high)
    return muster_invalid (
        error, "Need minval < maxval, got %" G_GINT64_FORMAT " >= %" G_GINT64_FORMAT, low, high);
  range = (guint64)high - (guint64)low;
  random = muster_kernel_philox (k);
  for (gint64 i = 0; i < n;) {
    guint32 words[4];
    muster_philox_next (&random, words);
    if (muster_tensor_dtype (out) == MUSTER_INT32)
      for (int j = 0; j < 4 && i < n; j++)
        ((gint32 *)muster_tensor_data_mutable (out))[i++] =
            (gint32)(guint32)((guint64)low + words[j] % (guint32)range);
    else
      for (int j = 0; j < 4 && i < n; j += 2)
        ((gint64 *)muster_tensor_data_mutable (out))[i++] =
            (gint64)((guint64)low + (words[j] | (guint64)words[j + 1] << 32) % range);
  }
  return TRUE;
}

#define SHAPED "shape:T -> output:dtype"
#define FLOATS "T:int32|int64 dtype:float"
#define S      MUSTER_OP_STATEFUL

const MusterOp muster_random_ops[] = {
    {"RandomUniform", SHAPED, FLOATS, compute_uniform, S},
    {"RandomStandardNormal", SHAPED, FLOATS, compute_normal, S},
    {"TruncatedNormal", SHAPED, FLOATS, compute_truncated, S},
    {"RandomUniformInt", "shape:T, minval:Tout, maxval:Tout -> output:Tout",
     "T:int32|int64 Tout:int32|int64", compute_uniform_int, S},
    {NULL, NULL, NULL, NULL, 0},
};
