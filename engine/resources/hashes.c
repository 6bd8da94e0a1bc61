// SPDX-License-Identifier: Apache-2.0
/* The hashes that TensorFlow uses, so that a model trained there finds its buckets here. */
#include "engine/resources/hashes.h"

#include <string.h>

static guint64
fetch64 (const guint8 *at)
{
  guint64 word;
  memcpy (&word, at, sizeof word);
  return GUINT64_FROM_LE (word);
}

static guint64
fetch32 (const guint8 *at)
{
  guint32 word;
  memcpy (&word, at, sizeof word);
  return GUINT32_FROM_LE (word);
}

static guint64
rotate (guint64 x, int by)
{
  return x >> by | x << (64 - by);
}

/* FarmHash's fingerprint (farmhashna), which never changes. */
static const guint64 k0 = G_GUINT64_CONSTANT (0xc3a5c85c97cb3127);
static const guint64 k1 = G_GUINT64_CONSTANT (0xb492b66fbe98f273);
static const guint64 k2 = G_GUINT64_CONSTANT (0x9ae16a3b2f90404f);

typedef struct {
  guint64 first, second;
} Pair;

static guint64
shift_mix (guint64 x)
{
  return x ^ x >> 47;
}

static guint64
mix_pair (guint64 u, guint64 v, guint64 factor)
{
  const guint64 a = shift_mix ((u ^ v) * factor);
  return shift_mix ((v ^ a) * factor) * factor;
}

static guint64
farm_to_16 (const guint8 *s, guint64 n)
{
  const guint64 factor = k2 + n * 2;
  if (n >= 8) {
    const guint64 a = fetch64 (s) + k2, b = fetch64 (s + n - 8);
    return mix_pair (rotate (b, 37) * factor + a, (rotate (a, 25) + b) * factor, factor);
  }
  if (n >= 4)
    return mix_pair (n + (fetch32 (s) << 3), fetch32 (s + n - 4), factor);
  if (n > 0) {
    const guint32 y = s[0] + ((guint32)s[n >> 1] << 8), z = (guint32)n + ((guint32)s[n - 1] << 2);
    return shift_mix (y * k2 ^ z * k0) * k2;
  }
  return k2;
}

static guint64
farm_to_32 (const guint8 *s, guint64 n)
{
  const guint64 factor = k2 + n * 2;
  const guint64 a = fetch64 (s) * k1, b = fetch64 (s + 8);
  const guint64 c = fetch64 (s + n - 8) * factor, d = fetch64 (s + n - 16) * k2;
  return mix_pair (rotate (a + b, 43) + rotate (c, 30) + d, a + rotate (b + k2, 18) + c, factor);
}

static guint64
farm_to_64 (const guint8 *s, guint64 n)
{
  const guint64 factor = k2 + n * 2;
  const guint64 a = fetch64 (s) * k2, b = fetch64 (s + 8);
  const guint64 c = fetch64 (s + n - 8) * factor, d = fetch64 (s + n - 16) * k2;
  const guint64 y = rotate (a + b, 43) + rotate (c, 30) + d;
  const guint64 z = mix_pair (y, a + rotate (b + k2, 18) + c, factor);
  const guint64 e = fetch64 (s + 16) * factor, f = fetch64 (s + 24);
  const guint64 g = (y + fetch64 (s + n - 32)) * factor, h = (z + fetch64 (s + n - 24)) * factor;
  return mix_pair (rotate (e + f, 43) + rotate (g, 30) + h, e + rotate (f + a, 18) + g, factor);
}

static Pair
weak_hash (const guint8 *s, guint64 a, guint64 b)
{
  const guint64 w = fetch64 (s), x = fetch64 (s + 8), y = fetch64 (s + 16), z = fetch64 (s + 24);
  a += w;
  b = rotate (b + a + z, 21);
  const guint64 c = a;
  a += x + y;
  b += rotate (a, 44);
  return (Pair){a + z, b + c};
}

typedef struct {
  guint64 x, y, z;
  Pair v, w;
} FarmState;

/* Mixes in 64 bytes; the last block has another weight. */
static void
farm_round (FarmState *f, const guint8 *s, guint64 factor, guint64 weight)
{
  f->x = rotate (f->x + f->y + f->v.first + fetch64 (s + 8), 37) * factor;
  f->y = rotate (f->y + f->v.second + fetch64 (s + 48), 42) * factor;
  f->x ^= f->w.second * weight;
  f->y += f->v.first * weight + fetch64 (s + 40);
  f->z = rotate (f->z + f->w.first, 33) * factor;
  f->v = weak_hash (s, f->v.second * factor, f->x + f->w.first);
  f->w = weak_hash (s + 32, f->z + f->w.second, f->y + fetch64 (s + 16));
  const guint64 kept = f->z;
  f->z = f->x;
  f->x = kept;
}

guint64
muster_farm_hash (const void *bytes, guint64 n)
{
  const guint64 seed = 81;
  const guint8 *s = bytes;
  if (n <= 16)
    return farm_to_16 (s, n);
  if (n <= 32)
    return farm_to_32 (s, n);
  if (n <= 64)
    return farm_to_64 (s, n);
  FarmState f = {.x = seed * k2 + fetch64 (s), .y = seed * k1 + 113};
  f.z = shift_mix (f.y * k2 + 113) * k2;
  const guint8 *end = s + (n - 1) / 64 * 64, *last = end + ((n - 1) & 63) - 63;
  for (; s != end; s += 64)
    farm_round (&f, s, k1, 1);
  const guint64 factor = k1 + ((f.z & 0xff) << 1);
  f.w.first += (n - 1) & 63;
  f.v.first += f.w.first;
  f.w.first += f.v.first;
  farm_round (&f, last, factor, 9);
  return mix_pair (mix_pair (f.v.first, f.w.first, factor) + shift_mix (f.y) * k0 + f.z,
                   mix_pair (f.v.second, f.w.second, factor) + f.x, factor);
}

/* The hash of TensorFlow's oldest op: Murmur 2 with 64 bits. */
guint64
muster_murmur_hash (const void *bytes, guint64 n)
{
  const guint8 *s = bytes;
  const guint64 m = G_GUINT64_CONSTANT (0xc6a4a7935bd1e995);
  guint64 hash = G_GUINT64_CONSTANT (0xdecafcaffe) ^ n * m;
  for (; n >= 8; n -= 8, s += 8) {
    guint64 word = fetch64 (s) * m;
    hash = (hash ^ (word ^ word >> 47) * m) * m;
  }
  if (n > 0) {
    for (guint64 i = 0; i < n; i++)
      hash ^= (guint64)s[i] << 8 * i;
    hash *= m;
  }
  hash = (hash ^ hash >> 47) * m;
  return hash ^ hash >> 47;
}

static void
sip_round (guint64 v[4])
{
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotate (v[1], 64 - 13) ^ v[0];
  v[3] = rotate (v[3], 64 - 16) ^ v[2];
  v[0] = rotate (v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotate (v[1], 64 - 17) ^ v[2];
  v[3] = rotate (v[3], 64 - 21) ^ v[0];
  v[2] = rotate (v[2], 32);
}

/* SipHash-2-4. */
guint64
muster_sip_hash (const guint64 key[2], const void *bytes, guint64 n)
{
  const guint8 *s = bytes;
  guint64 v[] = {key[0] ^ G_GUINT64_CONSTANT (0x736f6d6570736575),
                 key[1] ^ G_GUINT64_CONSTANT (0x646f72616e646f6d),
                 key[0] ^ G_GUINT64_CONSTANT (0x6c7967656e657261),
                 key[1] ^ G_GUINT64_CONSTANT (0x7465646279746573)};
  guint64 last = n << 56;
  for (gboolean more = TRUE; more; s += 8, n -= 8) {
    guint64 word = last;
    more = n >= 8;
    if (more)
      word = fetch64 (s);
    else
      for (guint64 i = 0; i < n; i++)
        word |= (guint64)s[i] << 8 * i;
    v[3] ^= word;
    sip_round (v);
    sip_round (v);
    v[0] ^= word;
    if (!more)
      break;
  }
  v[2] ^= 0xff;
  for (int i = 0; i < 4; i++)
    sip_round (v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
