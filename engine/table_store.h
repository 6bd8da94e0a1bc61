// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterTableStore is a map from a key to a row of values, both given as elements of tensors: open
 * addressing over entries that lie in the order in which they came (removing one puts the last in
 * its place). Keys are int32, int64 or string; a row is one or more values of one dtype. Not
 * locked: MusterTable does that. */

typedef struct {
  MusterDType key_dtype, value_dtype;
  gsize n_row;    /* values in a row */
  gsize row_size; /* bytes of it; a string is a MusterString */
  guint64 seed;   /* of the hash */
  guint32 n, capacity;
  guint32 *buckets; /* (owned) 1 + an entry's position, or 0 */
  guint32 n_buckets;
  guint32 *hashes; /* (owned) by position, as the two below */
  gpointer keys;   /* (owned) gint64 or MusterString, whose bytes are owned */
  guint8 *rows;    /* (owned) */
} MusterTableStore;

void muster_table_store_init (MusterTableStore *self, MusterDType key_dtype,
                              MusterDType value_dtype, gsize n_row);
void muster_table_store_clear (MusterTableStore *self); /* as it was after init */

/* Room for n entries more; RESOURCE_EXHAUSTED where there is none. */
gboolean muster_table_store_reserve (MusterTableStore *self, gint64 n, GError **error);

#define MUSTER_TABLE_NONE G_MAXUINT32

/* The position of a key, element i of keys, or MUSTER_TABLE_NONE. */
guint32 muster_table_store_find (const MusterTableStore *self, const MusterTensor *keys, gint64 i);

/* Adds a key that isn't there, with row i of values; its position. There must be room
 * (reserve); MUSTER_TABLE_NONE with RESOURCE_EXHAUSTED where a string finds none. */
guint32 muster_table_store_add (MusterTableStore *self, const MusterTensor *keys,
                                const MusterTensor *values, gint64 i, GError **error);
/* Puts row i of values in the place of the one at position. */
gboolean muster_table_store_replace (MusterTableStore *self, guint32 position,
                                     const MusterTensor *values, gint64 i, GError **error);
void muster_table_store_remove (MusterTableStore *self, guint32 position);

/* TRUE if the row at position is row i of values, bit for bit. */
gboolean muster_table_store_row_is (const MusterTableStore *self, guint32 position,
                                    const MusterTensor *values, gint64 i);

/* All keys as a vector; RESOURCE_EXHAUSTED. */
MusterTensor *muster_table_store_keys (const MusterTableStore *self, GError **error);

/* A tensor of rows under construction: strings are borrowed until it ends. */
typedef struct {
  MusterTensor *tensor;  /* (owned) (nullable) */
  MusterString *strings; /* (owned) (nullable) */
  int n_dims;
  const gint64 *dims; /* (not owned) */
} MusterTableRows;

gboolean muster_table_rows_begin (MusterTableRows *self, MusterDType dtype, int n_dims,
                                  const gint64 *dims, GError **error);
/* Row to of the tensor: the one at position, or row i of another tensor. */
void muster_table_rows_set (MusterTableRows *self, const MusterTableStore *store, gint64 to,
                            guint32 position);
void muster_table_rows_copy (MusterTableRows *self, const MusterTableStore *store, gint64 to,
                             const MusterTensor *values, gint64 i);
MusterTensor *muster_table_rows_end (MusterTableRows *self); /* (transfer full) */

G_END_DECLS
