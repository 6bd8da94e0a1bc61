// SPDX-License-Identifier: Apache-2.0
#include "base/hash_private.h"

#include <string.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (hash, depends_on_every_byte_and_on_the_length)
{
  guint8 bytes[100];
  for (guint i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8)(i * 7);
  for (gsize size = 0; size <= sizeof bytes; size++) {
    const guint64 hash = muster_hash_bytes (bytes, size, 1);
    MUSTER_EXPECT_EQ (muster_hash_bytes (bytes, size, 1), hash);
    MUSTER_EXPECT_NE (muster_hash_bytes (bytes, size, 2), hash);
    if (size > 0)
      MUSTER_EXPECT_NE (muster_hash_bytes (bytes, size - 1, 1), hash);
    for (gsize i = 0; i < size; i++) {
      bytes[i] ^= 0x10;
      MUSTER_EXPECT_NE (muster_hash_bytes (bytes, size, 1), hash);
      bytes[i] ^= 0x10;
    }
  }
}

MUSTER_TEST (hash, distinguishes_zeros_of_different_lengths)
{
  const guint8 zeros[64] = {0};
  for (gsize size = 1; size <= sizeof zeros; size++)
    MUSTER_EXPECT_NE (muster_hash_bytes (zeros, size, 0), muster_hash_bytes (zeros, size - 1, 0));
}

MUSTER_TEST (hash, spreads_numbered_names)
{
  guint filled[256] = {0};
  for (int i = 0; i < 25600; i++) {
    g_autofree char *name = g_strdup_printf ("layer_%d/kernel", i);
    filled[muster_hash_bytes (name, strlen (name), 3) & 255]++;
  }
  for (int i = 0; i < 256; i++)
    MUSTER_EXPECT_TRUE (filled[i] > 40 && filled[i] < 180);
}

MUSTER_TEST (hash, of_pieces_is_that_of_the_whole)
{
  guint8 bytes[200];
  for (guint i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8)(i * 7);
  for (gsize size = 0; size <= sizeof bytes; size += 13)
    for (gsize first = 0; first <= size; first++)
      for (gsize second = 0; second <= MIN (size - first, 40); second++) {
        MusterHash hash;
        muster_hash_begin (&hash, 5);
        muster_hash_add (&hash, bytes, first);
        muster_hash_add (&hash, bytes + first, second);
        muster_hash_add (&hash, bytes + first + second, size - first - second);
        MUSTER_ASSERT_EQ (muster_hash_end (&hash), muster_hash_bytes (bytes, size, 5));
      }
}
