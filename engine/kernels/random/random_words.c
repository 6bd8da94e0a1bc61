// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/random/random.h"

#include <math.h>

void
muster_normal_floats (guint32 x, guint32 y, float *out)
{
  float u = fmaxf (muster_unit_float (x), 1.0e-7f);
  float angle = (float)(2.0f * M_PI * muster_unit_float (y));
  float radius = sqrtf (-2.0f * logf (u));

  out[0] = sinf (angle) * radius;
  out[1] = cosf (angle) * radius;
}

void
muster_normal_doubles (const guint32 *words, double *out)
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

/* The first 2^bits mod n words would make the numbers below that likelier: they are passed over. */
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
    muster_normal_doubles (words, self->values);
    self->n_left = 2;
  }
  return self->values[--self->n_left];
}
