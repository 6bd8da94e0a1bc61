// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* Statistics of a tensor's values, and of the difference between two tensors. Plain structs.
 * Numbers are converted to double, complex ones to their magnitude. */

typedef struct {
  gint64 n; /* elements */

  /* For numbers. The minimum, maximum, mean and standard deviation are those of the finite
   * elements; without any, min_at and max_at are -1 and the others NaN. */
  gint64 n_nan, n_inf, n_zero;
  gint64 min_at, max_at; /* the first element with that value */
  double min, max, mean, std;

  gint64 n_true; /* bool */

  guint64 shortest, longest, total; /* strings: bytes */
} MusterTensorStats;

void muster_tensor_stats (const MusterTensor *tensor, MusterTensorStats *stats);

typedef struct {
  gint64 n, n_differ; /* elements; elements whose bits differ */
  gint64 first;       /* index of the first that differs, or -1 */
  double max_abs;     /* the largest difference of two numbers, NaN ignored */
  gboolean nan;       /* of two elements that differ, one is NaN */
} MusterTensorDifference;

/* Both tensors must have the same dtype and shape. */
void muster_tensor_difference (const MusterTensor *a, const MusterTensor *b,
                               MusterTensorDifference *difference);

G_END_DECLS
