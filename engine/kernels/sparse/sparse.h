// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/math/arithmetic.h"

G_BEGIN_DECLS

/* Sparse tensors: three inputs that name the elements that are there. */
typedef struct {
  MusterTensor *indices; /* (not owned) a row for each value */
  MusterTensor *values;  /* (not owned) */
  gint64 n;
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS]; /* of the dense tensor: none negative, maybe too many elements */
} MusterSparse;

/* From these inputs of the kernel, checked but for what the indices are. */
gboolean muster_sparse_read (MusterKernel *k, int indices, int values, int shape,
                             MusterSparse *self, GError **error);

/* The dense shape at input i; the number of dimensions, -1 with an error. */
int muster_sparse_read_shape (MusterKernel *k, int i, gint64 *dims, GError **error);

/* indices is a matrix with a row of n_dims for each value; values (nullable) are a vector. */
gboolean muster_sparse_check (MusterTensor *indices, MusterTensor *values, int n_dims,
                              GError **error);

/* The place of row i in a dense tensor, whose number of elements fits; -1 outside. */
gint64 muster_sparse_place (MusterTensor *indices, gint64 i, int n_dims, const gint64 *dims);

/* INVALID_ARGUMENT for a row that is outside; always FALSE. */
gboolean muster_sparse_refuse_place (MusterTensor *indices, gint64 i, int n_dims,
                                     const gint64 *dims, GError **error);

/* The order of n rows of int64 indices by these columns; rows that are equal keep theirs (transfer
 * full). NULL with RESOURCE_EXHAUSTED. */
gint64 *muster_sparse_sort (MusterKernel *k, const gint64 *indices, gint64 n, int n_dims,
                            const int *axes, int n_axes, GError **error);

/* How two rows compare. */
int muster_sparse_compare (const gint64 *a, const gint64 *b, int n_dims);

G_END_DECLS
