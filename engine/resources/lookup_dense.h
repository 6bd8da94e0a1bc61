// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterDenseTable is TensorFlow's MutableDenseHashTable: two arrays of buckets, keys and values,
 * where one key stands for an empty bucket and one for a deleted one. Its export is these arrays as
 * they are, and so is what a checkpoint holds; so the buckets are TensorFlow's to the last one: the
 * same hash, the same probing. Not locked: MusterLookupTable does that. */

typedef struct _MusterDenseTable MusterDenseTable;

/* Keys and values have their dtypes; a key has the shape of these two, which is a scalar's or a
 * vector's. Values are no strings. */
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

/* Fills values, one for each key, with what is found, or with row 0 of fallback. */
gboolean muster_dense_table_find (const MusterDenseTable *self, const MusterTensor *keys,
                                  const MusterTensor *fallback, void *values, GError **error);

gboolean muster_dense_table_insert (MusterDenseTable *self, const MusterTensor *keys,
                                    const MusterTensor *values, MusterBudget *budget,
                                    GError **error);
gboolean muster_dense_table_remove (MusterDenseTable *self, const MusterTensor *keys,
                                    GError **error);

/* All buckets (transfer full), and others in their stead. */
gboolean muster_dense_table_export (const MusterDenseTable *self, MusterTensor **keys,
                                    MusterTensor **values, MusterBudget *budget, GError **error);
gboolean muster_dense_table_import (MusterDenseTable *self, const MusterTensor *keys,
                                    const MusterTensor *values, MusterBudget *budget,
                                    GError **error);

G_END_DECLS
