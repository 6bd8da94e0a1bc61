// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

G_BEGIN_DECLS

/* While a thread computes, it takes denormal numbers as zero and returns zero for them, as
 * TensorFlow's threads do: the results are the same, and processors take many times as long for
 * denormals, of which a model that has converged is full. */

/* Returns the thread's mode, to be restored. */
static inline guint64
muster_flush_denormals (void)
{
#if defined(__x86_64__)
  const guint mode = _mm_getcsr ();
  _mm_setcsr (mode | 0x8040); /* "flush to zero", "denormals are zero" */
  return mode;
#elif defined(__aarch64__)
  guint64 mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1u << 24));
  return mode;
#else
  return 0;
#endif
}

static inline void
muster_restore_denormals (guint64 mode)
{
#if defined(__x86_64__)
  _mm_setcsr ((guint)mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
  (void)mode;
#endif
}

G_END_DECLS
