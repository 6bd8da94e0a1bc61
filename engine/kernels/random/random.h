// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

#include <string.h>

G_BEGIN_DECLS

/* What random kernels share: a generator's words one by one, converted to numbers like TensorFlow
 * does. */

/* Convert words to numbers in [0, 1): the low bits become the mantissa of a number in [1, 2). */
static inline float
muster_unit_float (guint32 word)
{
  const guint32 bits = 127u << 23 | (word & 0x7fffffu);
  float value;
  memcpy (&value, &bits, sizeof value);
  return value - 1.0f;
}

static inline double
muster_unit_double (guint32 high, guint32 low)
{
  const guint64 bits = (guint64)1023 << 52 | (guint64)(high & 0xfffffu) << 32 | low;
  double value;
  memcpy (&value, &bits, sizeof value);
  return value - 1.0;
}

/* The words of a generator, in order: a plain struct. */
typedef struct {
  MusterPhilox philox;
  guint32 words[4];
  int n_left; /* number of unused words, the last ones */
} MusterWords;

static inline guint32
muster_words_next (MusterWords *self)
{
  if (self->n_left == 0) {
    muster_philox_next (&self->philox, self->words);
    self->n_left = 4;
  }
  return self->words[4 - self->n_left--];
}

float muster_words_float (MusterWords *self);
double muster_words_double (MusterWords *self);
/* Uniform in [0, n); n isn't 0. */
guint32 muster_words_below (MusterWords *self, guint32 n);
guint64 muster_words_below64 (MusterWords *self, guint64 n);

/* Uniform numbers in [0, 1) and normal ones: two from each block, the last one first. */
typedef struct {
  double values[2];
  int n_left;
} MusterPair;

double muster_pair_uniform (MusterPair *self, MusterPhilox *philox);
double muster_pair_normal (MusterPair *self, MusterPhilox *philox);

G_END_DECLS
