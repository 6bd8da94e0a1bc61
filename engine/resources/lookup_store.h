// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "graph/tensor.h"

#include <string.h>

G_BEGIN_DECLS

/* MusterLookupStore is a map from keys to rows of values, both given as elements of tensors: a hash
 * table with open addressing over entries in order of insertion (removing one moves the last into
 * its place). Keys are int32, int64 or string; a row is one or more values of one dtype. Not
 * locked: MusterLookupTable does that. */

/* Element i of int32 or int64 keys. */
static inline gint64
muster_lookup_int_key (const MusterTensor *keys, gint64 i)
{
  return muster_tensor_dtype (keys) == MUSTER_INT32
             ? ((const gint32 *)muster_tensor_data (keys))[i]
             : ((const gint64 *)muster_tensor_data (keys))[i];
}

static inline gboolean
muster_lookup_same_string (MusterString a, MusterString b)
{
  return a.size == b.size && (a.size == 0 || memcmp (a.data, b.data, a.size) == 0);
}

typedef struct {
  MusterDType key_dtype, value_dtype;
  gsize n_row;    /* values in a row */
  gsize row_size; /* its size in bytes; a string is a MusterString */
  guint64 seed;   /* of the hash */
  guint32 n, capacity;
  guint32 *buckets; /* (owned) 1 + an entry's position, or 0 */
  guint32 n_buckets;
  guint32 *hashes; /* (owned) by position, like the two below */
  gpointer keys;   /* (owned) gint64, or MusterString with owned bytes */
  guint8 *rows;    /* (owned) */
  gsize n_counted; /* bytes of these arrays, counted in the process's memory, as each string is */
} MusterLookupStore;

void muster_lookup_store_init (MusterLookupStore *self, MusterDType key_dtype,
                               MusterDType value_dtype, gsize n_row);
void muster_lookup_store_clear (MusterLookupStore *self); /* back to the state after init */

/* Reserves space for n more entries; RESOURCE_EXHAUSTED if there isn't enough. */
gboolean muster_lookup_store_reserve (MusterLookupStore *self, gint64 n, MusterBudget *budget,
                                      GError **error);

#define MUSTER_LOOKUP_NONE G_MAXUINT32

/* The position of a key, element i of keys, or MUSTER_LOOKUP_NONE. */
guint32 muster_lookup_store_find (const MusterLookupStore *self, const MusterTensor *keys,
                                  gint64 i);

/* Adds a new key with row i of values. Returns its position. Space must be reserved;
 * MUSTER_LOOKUP_NONE with RESOURCE_EXHAUSTED if there isn't enough for a string. */
guint32 muster_lookup_store_add (MusterLookupStore *self, const MusterTensor *keys,
                                 const MusterTensor *values, gint64 i, MusterBudget *budget,
                                 GError **error);
/* Replaces the row at position by row i of values. */
gboolean muster_lookup_store_replace (MusterLookupStore *self, guint32 position,
                                      const MusterTensor *values, gint64 i, MusterBudget *budget,
                                      GError **error);
void muster_lookup_store_remove (MusterLookupStore *self, guint32 position);

/* TRUE if the row at position is row i of values, bit for bit. */
gboolean muster_lookup_store_row_is (const MusterLookupStore *self, guint32 position,
                                     const MusterTensor *values, gint64 i);

/* All keys as a vector; RESOURCE_EXHAUSTED. */
MusterTensor *muster_lookup_store_keys (const MusterLookupStore *self, MusterBudget *budget,
                                        GError **error);

/* A tensor of rows under construction; strings are borrowed until the end. */
typedef struct {
  MusterTensor *tensor;  /* (owned) (nullable) */
  MusterString *strings; /* (owned) (nullable) */
  int n_dims;
  const gint64 *dims; /* (not owned) */
} MusterLookupRows;

gboolean muster_lookup_rows_begin (MusterLookupRows *self, MusterDType dtype, int n_dims,
                                   const gint64 *dims, MusterBudget *budget, GError **error);
/* Sets row to of the tensor from position, or from row i of another tensor. */
void muster_lookup_rows_set (MusterLookupRows *self, const MusterLookupStore *store, gint64 to,
                             guint32 position);
void muster_lookup_rows_copy (MusterLookupRows *self, const MusterLookupStore *store, gint64 to,
                              const MusterTensor *values, gint64 i);
/* (transfer full); NULL with RESOURCE_EXHAUSTED. */
MusterTensor *muster_lookup_rows_end (MusterLookupRows *self, MusterBudget *budget, GError **error);

G_END_DECLS
