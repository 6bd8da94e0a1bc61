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

/* Reads it from these inputs, checked except for the values of the indices. */
gboolean muster_sparse_read (MusterKernel *k, int indices, int values, int shape,
                             MusterSparse *self, GError **error);

/* The index of row i in a dense tensor, whose number of elements doesn't overflow; -1 if outside.
 */
gint64 muster_sparse_place (MusterTensor *indices, gint64 i, int n_dims, const gint64 *dims);

/* INVALID_ARGUMENT for a row that is outside. Always returns FALSE. */
gboolean muster_sparse_refuse_place (MusterTensor *indices, gint64 i, int n_dims,
                                     const gint64 *dims, GError **error);

/* A stable sort of n rows of int64 indices by these columns (transfer full). NULL with
 * RESOURCE_EXHAUSTED. */
gint64 *muster_sparse_sort (MusterKernel *k, const gint64 *indices, gint64 n, int n_dims,
                            const int *axes, int n_axes, GError **error);

/* Compares two rows. */
int muster_sparse_compare (const gint64 *a, const gint64 *b, int n_dims);

G_END_DECLS
