// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <string.h>

/* Multiply two words into 128 bits and fold them: each input bit reaches every output bit. */
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

guint64
muster_hash_bytes (const void *data, gsize size, guint64 seed)
{
  const guint8 *at = data;
  gsize left = size;
  guint64 one = seed ^ SALT_C, two = seed ^ SALT_B;
  /* Two lanes, so that one's multiplication hides the other's latency. */
  for (; left >= 32; at += 32, left -= 32) {
    one = fold (load (at) ^ SALT_A, load (at + 8) ^ one);
    two = fold (load (at + 16) ^ SALT_C, load (at + 24) ^ two);
  }
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
