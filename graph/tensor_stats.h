// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* What a person wants to know of a tensor's values, and of what has changed between two. Plain
 * structs; numbers are taken as doubles, a complex one as its magnitude. */

typedef struct {
  gint64 n; /* elements */

  /* Numbers. The least, the largest, the mean and the standard deviation are those of the finite
   * ones; where there is none, min_at and max_at are -1 and the others NaN. */
  gint64 n_nan, n_inf, n_zero;
  gint64 min_at, max_at; /* where the first of them stands */
  double min, max, mean, std;

  gint64 n_true; /* bool */

  guint64 shortest, longest, total; /* strings: bytes */
} MusterTensorStats;

void muster_tensor_stats (const MusterTensor *tensor, MusterTensorStats *stats);

typedef struct {
  gint64 n, n_differ; /* elements; those whose bits differ */
  gint64 first;       /* the first that differs, or -1 */
  double max_abs;     /* the largest difference; of numbers, where neither is NaN */
  gboolean nan;       /* one of two that differ is NaN */
} MusterTensorDifference;

/* Of two tensors of one dtype and shape. */
void muster_tensor_difference (const MusterTensor *a, const MusterTensor *b,
                               MusterTensorDifference *difference);

G_END_DECLS
