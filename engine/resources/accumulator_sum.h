// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* The sum of an accumulator's gradients. Not locked. The first gradient is referenced; memory is
 * allocated for the second. */

typedef struct {
  MusterTensor *values;  /* (owned) (nullable) */
  MusterTensor *indices; /* (owned) (nullable) of a sparse one: int64 */
  gint32 *counts;        /* (owned) (nullable) number of additions to each row; NULL: 1 */
  gsize n_counted;       /* their bytes, in the process's memory */
} MusterAccumulatorSum;

void muster_accumulator_sum_clear (MusterAccumulatorSum *self);

/* Adds a gradient of the same shape. FALSE with RESOURCE_EXHAUSTED, nothing changed. */
gboolean muster_accumulator_sum_add (MusterAccumulatorSum *self, MusterTensor *gradient,
                                     GError **error);
/* Adds rows. Like TensorFlow it merges the two lists as if both were sorted; an index that occurs
 * twice in one list stays twice. */
gboolean muster_accumulator_sum_add_rows (MusterAccumulatorSum *self, MusterTensor *indices,
                                          MusterTensor *values, GError **error);

/* Divides everything by n, or each row by its count. */
gboolean muster_accumulator_sum_divide (MusterAccumulatorSum *self, gint32 n, GError **error);
gboolean muster_accumulator_sum_divide_rows (MusterAccumulatorSum *self, GError **error);

G_END_DECLS
