// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/math/arithmetic.h"

G_BEGIN_DECLS

/* A sparse tensor, from three inputs. */
typedef struct {
  MusterTensor *indices; /* (not owned) a row for each value */
  MusterTensor *values;  /* (not owned) */
  gint64 n;
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS]; /* of the dense tensor: not negative, possibly too many elements */
} MusterSparse;

/* Reads a sparse tensor from these inputs and checks it, except for the values of the indices. */
gboolean muster_sparse_read (MusterKernel *k, int indices, int values, int shape,
                             MusterSparse *self, GError **error);

/* FALSE with INVALID_ARGUMENT if the dense tensor would have too many elements, where TensorFlow
 * refuses that. */
gboolean muster_sparse_check_size (const MusterSparse *self, GError **error);

/* FALSE with INVALID_ARGUMENT if a row of indices is outside of the shape, or not behind the row
 * before it. */
gboolean muster_sparse_check_sorted (const MusterSparse *self, GError **error);

/* FALSE with INVALID_ARGUMENT if a row of indices is outside of the shape. */
gboolean muster_sparse_check_inside (const MusterSparse *self, GError **error);

/* The position of row i in a dense tensor, whose size mustn't overflow; -1 if it is outside. */
gint64 muster_sparse_offset (MusterTensor *indices, gint64 i, int n_dims, const gint64 *dims);

/* Sets INVALID_ARGUMENT for a row outside of the shape. Always returns FALSE. */
gboolean muster_sparse_refuse_index (MusterTensor *indices, gint64 i, int n_dims,
                                     const gint64 *dims, GError **error);

/* The order of n rows of int64 indices, sorted stably by these columns (transfer full). NULL with
 * RESOURCE_EXHAUSTED. */
gint64 *muster_sparse_sort (MusterKernel *k, const gint64 *indices, gint64 n, int n_dims,
                            const int *axes, int n_axes, GError **error);

/* Compares two rows of indices: negative, 0 or positive. */
int muster_sparse_compare (const gint64 *a, const gint64 *b, int n_dims);

G_END_DECLS
