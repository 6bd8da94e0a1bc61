// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <stdio.h>

G_BEGIN_DECLS

/* Prints a tensor's values as numpy does, a line for each row: of a large one the first and last
 * three of each dimension, numbers to five digits, long strings cut; is_full prints all of all.
 * indent columns stand before each line. */
void muster_values_print (FILE *to, const MusterTensor *tensor, gboolean is_full, int indent);

G_END_DECLS
