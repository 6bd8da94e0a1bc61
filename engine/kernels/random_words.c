// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/random.h"

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
