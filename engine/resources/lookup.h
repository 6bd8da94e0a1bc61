// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/resources/lookup_dense.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterLookupTable is one of TensorFlow's lookup tables: keys, and for each a value or a row of
 * them. A static one (HashTable) is filled once, whole or not at all, and can only be read from
 * then on; a mutable one changes at any time. Errors are TensorFlow's codes and words. Not counted:
 * whoever keeps it says when it goes. Any thread.
 *
 * Other than in TensorFlow's tables, an export has the keys in the order in which they came, and a
 * static table whose filling failed is as empty as before. A dense one (MusterDenseTable) is
 * mutable, and TensorFlow's in that, too. */

typedef struct _MusterLookupTable MusterLookupTable;

typedef struct {
  gboolean is_mutable;
  gboolean has_rows; /* a value is a row of n_row, not a scalar */
  gboolean is_dense;
  gint64 n_row; /* with has_rows */
  MusterDType key_dtype, value_dtype;
  const char *container, *name; /* for errors */
} MusterLookupKind;

/* FALSE for keys and values that TensorFlow has no such table for. */
gboolean muster_lookup_kind_is_known (const MusterLookupKind *kind);

/* Of a kind that is known. */
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

/* Below, keys and values have the table's dtypes already. */

/* The value of each key, or the default: one for all, or (a mutable table) one for each key.
 * FAILED_PRECONDITION where a static table hasn't been filled. (transfer full) */
MusterTensor *muster_lookup_table_find (MusterLookupTable *self, MusterTensor *keys,
                                        MusterTensor *fallback, MusterBudget *budget,
                                        GError **error);

/* Adds keys or gives them other values. UNIMPLEMENTED for a static table. */
gboolean muster_lookup_table_insert (MusterLookupTable *self, MusterTensor *keys,
                                     MusterTensor *values, MusterBudget *budget, GError **error);
gboolean muster_lookup_table_remove (MusterLookupTable *self, MusterTensor *keys, GError **error);

/* Puts these keys in the place of all others. Fills a static table; one that is full already only
 * compares the number of keys, as TensorFlow does: FAILED_PRECONDITION where it is another. */
gboolean muster_lookup_table_import (MusterLookupTable *self, MusterTensor *keys,
                                     MusterTensor *values, MusterBudget *budget, GError **error);

/* All keys and values (transfer full). ABORTED where a static table hasn't been filled. */
gboolean muster_lookup_table_export (MusterLookupTable *self, MusterTensor **keys,
                                     MusterTensor **values, MusterBudget *budget, GError **error);

/* TRUE for a static table that has its keys. */
gboolean muster_lookup_table_is_filled (MusterLookupTable *self);

/* Fills a static table with the keys and values that next gives: FALSE at the end, or with an
 * error. next may wait: others use the table meanwhile, and where one of them has filled it first,
 * it stays as it is. */
typedef gboolean (*MusterLookupNext) (gpointer data, MusterTensor **keys, MusterTensor **values,
                                      GError **error); /* borrowed until the next call */
gboolean muster_lookup_table_fill (MusterLookupTable *self, MusterLookupNext next, gpointer data,
                                   MusterBudget *budget, GError **error);

G_END_DECLS
