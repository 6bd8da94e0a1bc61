// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/broadcast.h"

G_BEGIN_DECLS

/* Loops that other kernels build on (AddN, AssignAdd, scatter); tables of MUSTER_N_LOOPS. */
extern const MusterLoop2 muster_add_loops[];
extern const MusterLoop2 muster_sub_loops[];
extern const MusterLoop2 muster_mul_loops[];
extern const MusterLoop2 muster_div_loops[];
extern const MusterLoop2 muster_min_loops[];
extern const MusterLoop2 muster_max_loops[];
extern const MusterLoop2 muster_less_loops[], muster_less_equal_loops[]; /* into bool */

/* TRUE if there is a zero among integers: nothing may be divided by that. */
gboolean muster_has_zero_divisor (MusterTensor *divisor);

/* Where x isn't above zero, values times alpha; else values. All are of one shape and one floating
 * wide type. */
void muster_leaky_relu (MusterTensor *x, MusterTensor *values, float alpha, MusterTensor *out);

G_END_DECLS
