// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <stdio.h>

G_BEGIN_DECLS

/* Prints a tensor's values like NumPy, one line a row. Of a large tensor, the first and last three
 * of each dimension, numbers with five digits, long strings truncated; is_full prints everything.
 * Each line is indented by indent columns. */
void muster_values_print (FILE *to, const MusterTensor *tensor, gboolean is_full, int indent);

G_END_DECLS
