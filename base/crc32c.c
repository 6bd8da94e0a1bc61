// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c_private.h"

#include <isa-l.h>

/* The library counts bytes in an int. */
#define CHUNK_MAX ((gsize)1 << 30)

/* On processors with AVX-512, ISA-L leaves the upper halves of the vector registers in use. Until
 * they are cleared, the thread's SSE instructions depend on their old contents: after a save, steps
 * took up to twice their processor time. */
#ifdef __x86_64__
__attribute__ ((target ("avx"))) static void
clear_by_avx (void)
{
  __builtin_ia32_vzeroupper ();
}

static void
clear_upper_halves (void)
{
  if (__builtin_cpu_supports ("avx"))
    clear_by_avx ();
}
#else
static void
clear_upper_halves (void)
{
}
#endif

guint32
muster_crc32c_extend (guint32 crc, const void *data, gsize size)
{
  const guint8 *at = data;
  guint32 state = ~crc; /* its caller inverts, before and after */
  while (size > 0) {
    const gsize n = MIN (size, CHUNK_MAX);
    state = crc32_iscsi ((unsigned char *)at, (int)n, state);
    clear_upper_halves ();
    at += n;
    size -= n;
  }
  return ~state;
}

/* Sums are polynomials over the field of two elements, the bit for x^0 the highest. */
#define POLYNOMIAL 0x82f63b78u
#define ONE        0x80000000u
#define X_TO_8     0x00800000u /* moves a sum by a byte of zeros */

static guint32
multiply (guint32 a, guint32 b)
{
  guint32 product = 0;
  for (guint32 bit = ONE; bit != 0; bit >>= 1) {
    if ((a & bit) != 0)
      product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ POLYNOMIAL : b >> 1;
  }
  return product;
}

guint32
muster_crc32c_combine (guint32 first, guint32 second, guint64 second_size)
{
  guint32 moved = first, power = X_TO_8;
  for (; second_size > 0; second_size >>= 1) {
    if ((second_size & 1) != 0)
      moved = multiply (moved, power);
    power = multiply (power, power);
  }
  return moved ^ second;
}
