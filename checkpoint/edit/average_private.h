// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

G_BEGIN_DECLS

/* Means of floating point and complex numbers, as stored: little-endian. */

/* TRUE for a type that has a mean. */
gboolean muster_average_has (MusterDType dtype);

/* The size of a real number: a complex one is two. */
gsize muster_average_size (MusterDType dtype);

/* Adds n real numbers to sums. */
void muster_average_add (MusterDType dtype, const void *numbers, gsize n, double *sums);

/* Rounds sums, divided by `by`, once to numbers of the type. */
void muster_average_round (MusterDType dtype, const double *sums, gsize n, double by,
                           void *numbers);

G_END_DECLS
