// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c_private.h"

#include <string.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (crc32c, is_castagnolis_whole_or_in_pieces)
{
  static const char digits[] = "123456789"; /* RFC 3720, B.4, has more of its values */
  const guint32 first = muster_crc32c_extend (0, digits, 4);
  MUSTER_EXPECT_EQ (muster_crc32c_extend (0, digits, 9), 0xe3069283u);
  MUSTER_EXPECT_EQ (muster_crc32c_extend (first, digits + 4, 5), 0xe3069283u);
  MUSTER_EXPECT_EQ (muster_crc32c_combine (first, muster_crc32c_extend (0, digits + 4, 5), 5),
                    0xe3069283u);
}

#ifdef __x86_64__
#define KEEP(n) "vextractf128 $1, %%ymm" #n ", 16*" #n "(%0)\n\t"

/* What the upper halves of this thread's vector registers hold. */
__attribute__ ((target ("avx"))) static void
read_upper_halves (guint8 (*halves)[16])
{
  __asm__ volatile(KEEP (0) KEEP (1) KEEP (2) KEEP (3) KEEP (4) KEEP (5) KEEP (6) KEEP (7) KEEP (8)
                       KEEP (9) KEEP (10) KEEP (11) KEEP (12) KEEP (13) KEEP (14) KEEP (15)
                   :
                   : "r"(halves)
                   : "memory");
}

/* SSE instructions are slow while they hold anything: training was, after each save. */
MUSTER_TEST (crc32c, leaves_nothing_in_the_upper_halves_of_vector_registers)
{
  static const guint8 nothing[16][16];
  g_autofree guint8 *bytes = g_malloc0 (1 << 16);
  if (!__builtin_cpu_supports ("avx"))
    MUSTER_SKIP ("this processor has no AVX");
  for (gsize size = 1; size <= 1 << 16; size *= 2) {
    guint8 halves[16][16];
    (void)muster_crc32c_extend (0, bytes, size);
    read_upper_halves (halves);
    MUSTER_EXPECT_TRUE (memcmp (halves, nothing, sizeof halves) == 0);
  }
}
#endif
