// SPDX-License-Identifier: Apache-2.0
/* Random tensors: with fixed seeds the same numbers as TensorFlow's CPU kernels, step after step.
 */
#include "engine/kernels/random/random.h"
#include "engine/kernels/random/random_op_tables.h"

#include "engine/kernels/random/random_source.h"

#include <math.h>

/* The number of words that TensorFlow reserves for each element of a truncated distribution, where
 * the number used isn't known beforehand. */
#define RESERVED 256

/* Two normal numbers from two uniform ones (Box-Muller). */
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

float
muster_words_float (MusterWords *self)
{
  return muster_unit_float (muster_words_next (self));
}

double
muster_words_double (MusterWords *self)
{
  const guint32 high = muster_words_next (self);
  return muster_unit_double (high, muster_words_next (self));
}

static guint64
next64 (MusterWords *self)
{
  const guint64 low = muster_words_next (self);
  return low | (guint64)muster_words_next (self) << 32;
}

/* Rejects the first 2^bits mod n words, which would make some numbers more likely. */
guint32
muster_words_below (MusterWords *self, guint32 n)
{
  const guint32 skipped = (n & (n - 1)) == 0 ? 0 : G_MAXUINT32 % n + 1;
  guint32 word;
  do
    word = muster_words_next (self);
  while (word < skipped);
  return word % n;
}

guint64
muster_words_below64 (MusterWords *self, guint64 n)
{
  const guint64 skipped = (n & (n - 1)) == 0 ? 0 : G_MAXUINT64 % n + 1;
  guint64 word;
  do
    word = next64 (self);
  while (word < skipped);
  return word % n;
}

double
muster_pair_uniform (MusterPair *self, MusterPhilox *philox)
{
  if (self->n_left == 0) {
    guint32 words[4];
    muster_philox_next (philox, words);
    for (int i = 0; i < 2; i++)
      self->values[i] = muster_unit_double (words[2 * i], words[2 * i + 1]);
    self->n_left = 2;
  }
  return self->values[--self->n_left];
}

double
muster_pair_normal (MusterPair *self, MusterPhilox *philox)
{
  if (self->n_left == 0) {
    guint32 words[4];
    muster_philox_next (philox, words);
    normal_doubles (words, self->values);
    self->n_left = 2;
  }
  return self->values[--self->n_left];
}

/* half and bfloat16 use the low bits of a word. */
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

/* Converts one block of four words to four elements of a dtype, or to two doubles. */
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
fill (FillBlock block, MusterPhilox random, MusterTensor *out)
{
  MusterDType dtype = muster_tensor_dtype (out);
  gint64 n = muster_tensor_n_elements (out), per_block = dtype == MUSTER_DOUBLE ? 2 : 4;
  gsize size = muster_dtype_size (dtype);
  guint8 *to = muster_tensor_data_mutable (out);
  guint32 words[4], values[4];
  for (gint64 i = 0; i < n; i += per_block) {
    muster_philox_next (&random, words);
    block (dtype, words, values);
    memcpy (to + i * size, values, MIN (per_block, n - i) * size);
  }
}

static gboolean
draw_uniform (MusterKernel *k G_GNUC_UNUSED, MusterPhilox random, int input G_GNUC_UNUSED,
              MusterTensor *out, GError **error G_GNUC_UNUSED)
{
  fill (uniform_block, random, out);
  return TRUE;
}

static gboolean
draw_normal (MusterKernel *k G_GNUC_UNUSED, MusterPhilox random, int input G_GNUC_UNUSED,
             MusterTensor *out, GError **error G_GNUC_UNUSED)
{
  fill (normal_block, random, out);
  return TRUE;
}

/* Normal numbers within two standard deviations. Each group of elements uses its own part of the
 * generator's sequence, as in TensorFlow, where threads fill the groups in parallel. */
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
draw_truncated (MusterKernel *k G_GNUC_UNUSED, MusterPhilox random, int input G_GNUC_UNUSED,
                MusterTensor *out, GError **error G_GNUC_UNUSED)
{
  MusterDType dtype = muster_tensor_dtype (out);
  gint64 n = muster_tensor_n_elements (out), group = dtype == MUSTER_DOUBLE ? 2 : 4;
  gsize size = muster_dtype_size (dtype);
  for (gint64 i = 0; i < n; i += group) {
    double values[2];
    truncated_group (random, dtype, values);
    memcpy ((guint8 *)muster_tensor_data_mutable (out) + i * size, values,
            MIN (group, n - i) * size);
    muster_philox_skip (&random, (guint64)group * RESERVED / 4);
  }
  return TRUE;
}

/* Integers: low plus the word modulo range (0: all values of the dtype). */
static void
fill_integers (MusterPhilox random, guint64 low, guint64 range, MusterTensor *out)
{
  gint64 n = muster_tensor_n_elements (out);
  gboolean is_short = muster_dtype_size (muster_tensor_dtype (out)) == sizeof (guint32);
  guint8 *to = muster_tensor_data_mutable (out);
  guint32 words[4];
  for (gint64 i = 0; i < n;) {
    muster_philox_next (&random, words);
    for (int j = 0; j < 4 && i < n && is_short; j++)
      ((guint32 *)to)[i++] = (guint32)(low + (range == 0 ? words[j] : words[j] % (guint32)range));
    for (int j = 0; j < 4 && i < n && !is_short; j += 2) {
      const guint64 word = words[j] | (guint64)words[j + 1] << 32;
      ((guint64 *)to)[i++] = low + (range == 0 ? word : word % range);
    }
  }
}

static gboolean
draw_integer (MusterKernel *k, MusterPhilox random, int input, MusterTensor *out, GError **error)
{
  gint64 low, high;
  if (!muster_check_scalar (k, input, "minval", error) ||
      !muster_check_scalar (k, input + 1, "maxval", error))
    return FALSE;
  low = muster_kernel_input_int (k, input);
  high = muster_kernel_input_int (k, input + 1);
  if (low >= high)
    return muster_invalid (
        error, "Need minval < maxval, got %" G_GINT64_FORMAT " >= %" G_GINT64_FORMAT, low, high);
  fill_integers (random, (guint64)low, (guint64)high - (guint64)low, out);
  return TRUE;
}

static gboolean
draw_word (MusterKernel *k G_GNUC_UNUSED, MusterPhilox random, int input G_GNUC_UNUSED,
           MusterTensor *out, GError **error G_GNUC_UNUSED)
{
  fill_integers (random, 0, 0, out);
  return TRUE;
}

/* Defines a kernel that draws from a generator of that source. */
#define DRAW(compute, source, draw)                                                                \
  static gboolean compute (MusterKernel *k, GError **error)                                        \
  {                                                                                                \
    return source (k, draw, error);                                                                \
  }
DRAW (compute_own_uniform, muster_draw_own, draw_uniform)
DRAW (compute_own_normal, muster_draw_own, draw_normal)
DRAW (compute_own_truncated, muster_draw_own, draw_truncated)
DRAW (compute_own_integer, muster_draw_own, draw_integer)
DRAW (compute_seeded_uniform, muster_draw_seeded, draw_uniform)
DRAW (compute_seeded_normal, muster_draw_seeded, draw_normal)
DRAW (compute_seeded_truncated, muster_draw_seeded, draw_truncated)
DRAW (compute_seeded_integer, muster_draw_seeded, draw_integer)
DRAW (compute_seeded_word, muster_draw_seeded, draw_word)
DRAW (compute_keyed_uniform, muster_draw_keyed, draw_uniform)
DRAW (compute_keyed_normal, muster_draw_keyed, draw_normal)
DRAW (compute_keyed_truncated, muster_draw_keyed, draw_truncated)
DRAW (compute_keyed_integer, muster_draw_keyed, draw_integer)
DRAW (compute_keyed_word, muster_draw_keyed, draw_word)

#define SHAPED   "shape:T -> output:dtype"
#define FLOATS   "T:int32|int64 dtype:float"
#define R        MUSTER_OP_READER
#define SEEDED   "shape:T, seed:Tseed"
#define SEEDED_T "T:int32|int64 Tseed:int64|int32 "
#define KEYED    "shape:Tshape, key:uint64, counter:uint64, alg:int32"
#define KEYED_T  "Tshape:int32|int64 "
#define RANGE    ", minval:dtype, maxval:dtype -> output:dtype"
#define TO       " -> output:dtype"
#define WORDS    "dtype:uint64|int32|int64|uint32"

const MusterOp muster_random_ops[] = {
    {"RandomUniform", SHAPED, FLOATS " seed seed2", compute_own_uniform, R},
    {"RandomStandardNormal", SHAPED, FLOATS " seed seed2", compute_own_normal, R},
    {"TruncatedNormal", SHAPED, FLOATS " seed seed2", compute_own_truncated, R},
    {"RandomUniformInt", "shape:T, minval:Tout, maxval:Tout -> output:Tout",
     "T:int32|int64 Tout:int32|int64 seed seed2", compute_own_integer, R},
    {"StatelessRandomUniform", SEEDED TO, SEEDED_T "dtype:float", compute_seeded_uniform, 0},
    {"StatelessRandomNormal", SEEDED TO, SEEDED_T "dtype:float", compute_seeded_normal, 0},
    {"StatelessTruncatedNormal", SEEDED TO, SEEDED_T "dtype:float", compute_seeded_truncated, 0},
    {"StatelessRandomUniformInt", SEEDED RANGE, SEEDED_T "dtype:int32|int64",
     compute_seeded_integer, 0},
    {"StatelessRandomUniformFullInt", SEEDED TO, SEEDED_T WORDS, compute_seeded_word, 0},
    {"StatelessRandomUniformV2", KEYED TO, KEYED_T "dtype:float", compute_keyed_uniform, 0},
    {"StatelessRandomNormalV2", KEYED TO, KEYED_T "dtype:float", compute_keyed_normal, 0},
    {"StatelessTruncatedNormalV2", KEYED TO, KEYED_T "dtype:float", compute_keyed_truncated, 0},
    {"StatelessRandomUniformIntV2", KEYED RANGE, KEYED_T "dtype:int32|int64", compute_keyed_integer,
     0},
    {"StatelessRandomUniformFullIntV2", KEYED TO, KEYED_T WORDS, compute_keyed_word, 0},
    {NULL, NULL, NULL, NULL, 0},
};
