// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/broadcast.h"

G_BEGIN_DECLS

/* Loops used by other kernels (AddN, AssignAdd, scatter); tables of MUSTER_N_LOOPS. */
extern const MusterLoop2 muster_add_loops[];
extern const MusterLoop2 muster_sub_loops[];
extern const MusterLoop2 muster_mul_loops[];
extern const MusterLoop2 muster_div_loops[];
extern const MusterLoop2 muster_min_loops[]; /* the first of two that can't be compared */
extern const MusterLoop2 muster_max_loops[];
extern const MusterLoop2 muster_minimum_loops[]; /* NaN if either is */
extern const MusterLoop2 muster_maximum_loops[];
/* into bool */
extern const MusterLoop2 muster_less_loops[], muster_or_loops[], muster_xor_loops[];

/* TRUE if a divisor contains a zero. */
gboolean muster_has_zero_divisor (MusterTensor *divisor);

/* values times alpha where x isn't above zero, else values. All have the same shape and floating
 * wide type. */
void muster_leaky_relu (MusterTensor *x, MusterTensor *values, float alpha, MusterTensor *out);

G_END_DECLS
