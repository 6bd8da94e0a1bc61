// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/broadcast.h"

#include <complex.h>

/* C11's, which glibc's header has for GCC alone. */
#ifndef CMPLX
#define CMPLX(x, y)  __builtin_complex ((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex ((float)(x), (float)(y))
#endif

G_BEGIN_DECLS

/* C has none. The plain formula loses the digits of a small number. */
double complex muster_complex_log1p (double complex a);

/* The conjugates of n complex elements; out may be x. */
void muster_conjugate (MusterDType dtype, gint64 n, const void *x, void *out);

G_END_DECLS
