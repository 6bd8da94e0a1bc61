// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/broadcast.h"

#include <complex.h>

/* From C11; glibc's header defines them only for GCC. */
#ifndef CMPLX
#define CMPLX(x, y)  __builtin_complex ((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex ((float)(x), (float)(y))
#endif

G_BEGIN_DECLS

/* C has no complex log1p. The plain formula loses the digits of small numbers. */
double complex muster_complex_log1p (double complex a);

/* The conjugates of n complex elements; out may be x. */
void muster_conjugate (MusterDType dtype, gint64 n, const void *x, void *out);

G_END_DECLS
