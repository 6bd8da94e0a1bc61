// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterDenseTable is TensorFlow's MutableDenseHashTable: two arrays of buckets, keys and values.
 * One key value marks an empty bucket and one a deleted bucket. Exports and checkpoints contain
 * these arrays as they are, so the buckets are the same as TensorFlow's: same hash, same probing.
 * Not locked: MusterLookupTable does that. */

typedef struct _MusterDenseTable MusterDenseTable;

/* A key has the shape and dtype of these two, a scalar's or a vector's. Values can't be strings. */
typedef struct {
  MusterTensor *empty_key, *deleted_key;
  MusterDType value_dtype;
  gint64 n_row; /* elements of a value */
  gint64 n_buckets;
  float max_load;
} MusterDenseSpec;

MusterDenseTable *muster_dense_table_new (const MusterDenseSpec *spec, MusterBudget *budget,
                                          GError **error);
void muster_dense_table_free (MusterDenseTable *self); /* accepts NULL */

gint64 muster_dense_table_size (const MusterDenseTable *self);

/* The shape of a key; its dimensions are borrowed. */
int muster_dense_table_key_shape (const MusterDenseTable *self, const gint64 **dims);

/* Sets values, one for each key, to what is found or to row 0 of fallback. */
gboolean muster_dense_table_find (const MusterDenseTable *self, const MusterTensor *keys,
                                  const MusterTensor *fallback, void *values, GError **error);

gboolean muster_dense_table_insert (MusterDenseTable *self, const MusterTensor *keys,
                                    const MusterTensor *values, MusterBudget *budget,
                                    GError **error);
gboolean muster_dense_table_remove (MusterDenseTable *self, const MusterTensor *keys,
                                    GError **error);

/* Export all buckets (transfer full), and replace them. */
gboolean muster_dense_table_export (const MusterDenseTable *self, MusterTensor **keys,
                                    MusterTensor **values, MusterBudget *budget, GError **error);
gboolean muster_dense_table_import (MusterDenseTable *self, const MusterTensor *keys,
                                    const MusterTensor *values, MusterBudget *budget,
                                    GError **error);

G_END_DECLS
