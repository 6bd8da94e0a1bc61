// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* Statistics of a tensor's values, and of the difference between two tensors. Plain structs.
 * Numbers are converted to double, complex ones to their magnitude. */

/**
 * MusterTensorStats:
 * @n: elements
 * @n_nan: elements that are NaN
 * @n_inf: infinite elements
 * @n_zero: elements that are zero
 * @min_at: the index of the first element with the minimum; -1: no element is finite
 * @max_at: the index of the first element with the maximum; -1: no element is finite
 * @min: the least finite element
 * @max: the greatest finite element
 * @mean: the mean of the finite elements
 * @std: their standard deviation
 * @n_true: of a bool tensor: elements that are true
 * @shortest: of a string tensor: bytes of the shortest element
 * @longest: bytes of the longest
 * @total: bytes of all
 *
 * Statistics of a tensor's values. Numbers are converted to double, complex ones to their
 * magnitude. Without a finite element, the minimum, maximum, mean and standard deviation are NaN.
 */
typedef struct {
  gint64 n;
  gint64 n_nan, n_inf, n_zero;
  gint64 min_at, max_at;
  double min, max, mean, std;
  gint64 n_true;
  guint64 shortest, longest, total;
} MusterTensorStats;

/**
 * muster_tensor_stats:
 * @tensor: a tensor
 * @stats: (out caller-allocates): its statistics
 *
 * Computes the statistics of a tensor's values.
 */
void muster_tensor_stats (const MusterTensor *tensor, MusterTensorStats *stats);

/**
 * MusterTensorDifference:
 * @n: elements
 * @n_differ: elements whose bits differ
 * @first: index of the first that differs, or -1
 * @max_abs: the largest difference of two numbers, NaN ignored
 * @nan: of two elements that differ, one is NaN
 *
 * How two tensors differ.
 */
typedef struct {
  gint64 n, n_differ;
  gint64 first;
  double max_abs;
  gboolean nan;
} MusterTensorDifference;

/**
 * muster_tensor_difference:
 * @a: a tensor
 * @b: another, of the same type and shape
 * @difference: (out caller-allocates): how they differ
 *
 * Compares two tensors. Both must have the same dtype and shape.
 */
void muster_tensor_difference (const MusterTensor *a, const MusterTensor *b,
                               MusterTensorDifference *difference);

G_END_DECLS
