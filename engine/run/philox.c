// SPDX-License-Identifier: Apache-2.0
#include "engine/run/philox.h"

enum { ROUNDS = 10 };

static const guint32 multipliers[2] = {0xD2511F53, 0xCD9E8D57};
static const guint32 weyl[2] = {0x9E3779B9, 0xBB67AE85};

MusterPhilox
muster_philox_new (guint64 seed, guint64 seed2)
{
  return (MusterPhilox){.key = {(guint32)seed, (guint32)(seed >> 32)},
                        .counter = {0, 0, (guint32)seed2, (guint32)(seed2 >> 32)}};
}

void
muster_philox_next (MusterPhilox *self, guint32 words[4])
{
  guint32 a = self->counter[0], b = self->counter[1], c = self->counter[2], d = self->counter[3];
  guint32 key0 = self->key[0], key1 = self->key[1];
  for (int round = 0; round < ROUNDS; round++) {
    const guint64 product0 = (guint64)multipliers[0] * a;
    const guint64 product1 = (guint64)multipliers[1] * c;
    a = (guint32)(product1 >> 32) ^ b ^ key0;
    c = (guint32)(product0 >> 32) ^ d ^ key1;
    b = (guint32)product1;
    d = (guint32)product0;
    key0 += weyl[0];
    key1 += weyl[1];
  }
  words[0] = a;
  words[1] = b;
  words[2] = c;
  words[3] = d;
  muster_philox_skip (self, 1);
}

void
muster_philox_skip (MusterPhilox *self, guint64 n)
{
  const guint64 low = self->counter[0] | (guint64)self->counter[1] << 32;
  const guint64 sum = low + n;
  self->counter[0] = (guint32)sum;
  self->counter[1] = (guint32)(sum >> 32);
  if (sum < low && ++self->counter[2] == 0)
    self->counter[3]++;
}
