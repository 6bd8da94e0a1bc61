// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* The arithmetic of an accumulator: a sum of gradients under way. Not locked. The first gradient is
 * held as it came; memory is taken for the second. */

typedef struct {
  MusterTensor *values;  /* (owned) (nullable) */
  MusterTensor *indices; /* (owned) (nullable) of a sparse one: int64 */
  gint32 *counts;        /* (owned) (nullable) how often each row was added to; NULL: once each */
} MusterAccumulatorSum;

void muster_accumulator_sum_clear (MusterAccumulatorSum *self);

/* Adds another of the same shape; FALSE with RESOURCE_EXHAUSTED and nothing changed. */
gboolean muster_accumulator_sum_add (MusterAccumulatorSum *self, MusterTensor *gradient,
                                     GError **error);
/* Adds rows that go along with those there are: like TensorFlow it merges two lists as if both were
 * sorted, and an index that comes twice in one stays twice. */
gboolean muster_accumulator_sum_add_rows (MusterAccumulatorSum *self, MusterTensor *indices,
                                          MusterTensor *values, GError **error);

/* Divides all by n, or each row by its count. */
gboolean muster_accumulator_sum_divide (MusterAccumulatorSum *self, gint32 n, GError **error);
gboolean muster_accumulator_sum_divide_rows (MusterAccumulatorSum *self, GError **error);

G_END_DECLS
