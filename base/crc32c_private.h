// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* CRC32C (Castagnoli), as in checkpoints. A sum starts at 0 and is extended piece by piece. */
guint32 muster_crc32c_extend (guint32 crc, const void *data, gsize size);

/* The sum of two concatenated pieces, from the sums of both and the size of the second. */
guint32 muster_crc32c_combine (guint32 first, guint32 second, guint64 second_size);

/* A sum that is stored among summed bytes is masked, as in LevelDB. */
static inline guint32
muster_crc32c_mask (guint32 crc)
{
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static inline guint32
muster_crc32c_unmask (guint32 masked)
{
  const guint32 rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

G_END_DECLS
