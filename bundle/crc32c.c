// SPDX-License-Identifier: Apache-2.0
#include "bundle/crc32c.h"

#include <isa-l.h>

/* The library counts bytes in an int. */
#define CHUNK_MAX ((gsize)1 << 30)

guint32
muster_crc32c_extend (guint32 crc, const void *data, gsize size)
{
  const guint8 *at = data;
  guint32 state = ~crc; /* its caller inverts, before and after */
  while (size > 0) {
    const gsize n = MIN (size, CHUNK_MAX);
    state = crc32_iscsi ((unsigned char *)at, (int)n, state);
    at += n;
    size -= n;
  }
  return ~state;
}
