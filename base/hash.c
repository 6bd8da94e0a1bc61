// SPDX-License-Identifier: Apache-2.0
#include "base/hash_private.h"

#include <string.h>

/* Multiply two words into 128 bits and fold them: each input bit reaches every output bit. */
#define BLOCK  32
#define SALT_A 0x9e3779b97f4a7c15u
#define SALT_B 0xc2b2ae3d27d4eb4fu
#define SALT_C 0xd6e8feb86659fd93u

static inline guint64
fold (guint64 a, guint64 b)
{
  const unsigned __int128 product = (unsigned __int128)a * b;
  return (guint64)product ^ (guint64)(product >> 64);
}

static inline guint64
load (const guint8 *at)
{
  guint64 word;
  memcpy (&word, at, sizeof word);
  return word;
}

/* The last 0 to 15 bytes as two words, unread bytes as 0. */
static inline guint64
fold_rest (const guint8 *at, gsize left, guint64 state)
{
  guint64 words[2] = {0, 0};
  memcpy (words, at, left);
  return fold (words[0] ^ SALT_A, words[1] ^ state);
}

/* Adds as many blocks as there are, in two lanes, so that one's multiplication hides the other's
 * latency. */
static inline const guint8 *
add_blocks (const guint8 *at, gsize n, guint64 *first, guint64 *second)
{
  guint64 one = *first, two = *second;
  for (; n > 0; at += BLOCK, n--) {
    one = fold (load (at) ^ SALT_A, load (at + 8) ^ one);
    two = fold (load (at + 16) ^ SALT_C, load (at + 24) ^ two);
  }
  *first = one;
  *second = two;
  return at;
}

/* The bytes from at on, less than a block, of size in all. */
static inline guint64
finish (const guint8 *at, gsize size, guint64 one, guint64 two)
{
  gsize left = size % BLOCK;
  one ^= two << 29 | two >> 35; /* otherwise the seed in both would cancel out */
  if (left >= 16) {
    one = fold (load (at) ^ SALT_B, load (at + 8) ^ one);
    at += 16;
    left -= 16;
  }
  if (left > 0)
    one = fold_rest (at, left, one);
  return fold (one ^ SALT_B, (guint64)size ^ SALT_A);
}

guint64
muster_hash_bytes (const void *data, gsize size, guint64 seed)
{
  guint64 one = seed ^ SALT_C, two = seed ^ SALT_B;
  const guint8 *at = add_blocks (data, size / BLOCK, &one, &two);
  return finish (at, size, one, two);
}

/* --- in pieces --- */

void
muster_hash_begin (MusterHash *self, guint64 seed)
{
  *self = (MusterHash){.one = seed ^ SALT_C, .two = seed ^ SALT_B};
}

void
muster_hash_add (MusterHash *self, const void *data, gsize size)
{
  const guint8 *at = data;
  const gsize n_open = self->size % BLOCK, fill = MIN (size, BLOCK - n_open);
  if (size == 0)
    return;
  self->size += size;
  if (n_open > 0) {
    memcpy (self->open + n_open, at, fill);
    if (n_open + fill < BLOCK)
      return;
    (void)add_blocks (self->open, 1, &self->one, &self->two);
    at += fill;
    size -= fill;
  }
  at = add_blocks (at, size / BLOCK, &self->one, &self->two);
  if (size % BLOCK > 0)
    memcpy (self->open, at, size % BLOCK);
}

guint64
muster_hash_end (const MusterHash *self)
{
  return finish (self->open, self->size, self->one, self->two);
}
