// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/resources/lookup_dense.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterLookupTable is TensorFlow's lookup table: keys with a value, or a row of values, each. A
 * static table (HashTable) is filled once, completely or not at all, and is read-only afterwards; a
 * mutable one can always be changed. Errors have TensorFlow's codes and texts. Not
 * reference-counted: the owner frees it. Any thread.
 *
 * Unlike in TensorFlow, an export has the keys in order of insertion, and a static table whose
 * filling failed is empty. A dense table (MusterDenseTable) is mutable, and exports like
 * TensorFlow's. */

typedef struct _MusterLookupTable MusterLookupTable;

typedef struct {
  gboolean is_mutable;
  gboolean has_rows; /* a value is a row of n_row, not a scalar */
  gboolean is_dense;
  gint64 n_row; /* with has_rows */
  MusterDType key_dtype, value_dtype;
  const char *container, *name; /* for errors */
} MusterLookupKind;

/* FALSE for dtypes of keys and values that TensorFlow doesn't support. */
gboolean muster_lookup_kind_is_known (const MusterLookupKind *kind);

/* kind must be supported. */
MusterLookupTable *muster_lookup_table_new (const MusterLookupKind *kind);
MusterLookupTable *muster_lookup_table_new_dense (const MusterLookupKind *kind,
                                                  MusterDenseTable *dense /* (transfer full) */);
void muster_lookup_table_free (MusterLookupTable *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterLookupTable, muster_lookup_table_free)

MusterDType muster_lookup_table_key_dtype (const MusterLookupTable *self);
MusterDType muster_lookup_table_value_dtype (const MusterLookupTable *self);
gint64 muster_lookup_table_size (MusterLookupTable *self);

/* FALSE with INVALID_ARGUMENT for a mutable one. */
gboolean muster_lookup_table_check_static (const MusterLookupTable *self, GError **error);

/* Keys and values below already have the table's dtypes. */

/* Each key's value, or the default: one for all, or (mutable tables) one for each key.
 * FAILED_PRECONDITION if a static table hasn't been filled. (transfer full) */
MusterTensor *muster_lookup_table_find (MusterLookupTable *self, MusterTensor *keys,
                                        MusterTensor *fallback, MusterBudget *budget,
                                        GError **error);

/* Adds keys or changes their values. UNIMPLEMENTED for a static table. */
gboolean muster_lookup_table_insert (MusterLookupTable *self, MusterTensor *keys,
                                     MusterTensor *values, MusterBudget *budget, GError **error);
gboolean muster_lookup_table_remove (MusterLookupTable *self, MusterTensor *keys, GError **error);

/* Replaces all keys. Fills a static table; if it is already filled, only the number of keys is
 * compared, as in TensorFlow: FAILED_PRECONDITION if it differs. */
gboolean muster_lookup_table_import (MusterLookupTable *self, MusterTensor *keys,
                                     MusterTensor *values, MusterBudget *budget, GError **error);

/* All keys and values (transfer full). ABORTED if a static table hasn't been filled. */
gboolean muster_lookup_table_export (MusterLookupTable *self, MusterTensor **keys,
                                     MusterTensor **values, MusterBudget *budget, GError **error);

/* TRUE for a static table that is filled. */
gboolean muster_lookup_table_is_filled (MusterLookupTable *self);

/* Fills a static table from next, whose tensors are borrowed until the next call, and which returns
 * FALSE at the end, or with an error. next may block:
 * other threads can use the table in the meantime, and if one of them has filled it first, it isn't
 * changed. */
gboolean muster_lookup_table_fill (MusterLookupTable *self,
                                   gboolean (*next) (gpointer data, MusterTensor **keys,
                                                     MusterTensor **values, GError **error),
                                   gpointer data, MusterBudget *budget, GError **error);

G_END_DECLS
