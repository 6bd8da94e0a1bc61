// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* A product of two matrices: m × depth and depth × n, or their transposes. */
typedef struct {
  gint64 m, n, depth;
  gboolean transposes_a, transposes_b;
} MusterProduct;

/* Sets c to the product; dtype is wide or complex. */
void muster_multiply (const MusterProduct *p, MusterDType dtype, const void *a, const void *b,
                      void *c);

G_END_DECLS
