// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/lookup_dense.h"

#include "base/budget_private.h"
#include "base/error.h"
#include "base/memory_account_private.h"
#include "engine/resources/hashes.h"
#include "engine/resources/lookup_store.h"
#include "graph/tensor_private.h"

#include <string.h>

/* The state of a bucket. */
enum { EMPTY, DELETED, USED };

/* The arrays of the buckets. */
typedef struct {
  gint64 n, n_used;
  guint8 *state;   /* (owned) */
  gpointer keys;   /* (owned) of those in use: gint64, or MusterString whose bytes are owned */
  guint8 *values;  /* (owned) */
  gsize n_counted; /* bytes of all, counted in the process's memory, as each string is */
} Buckets;

struct _MusterDenseTable {
  MusterTensor *empty_key, *deleted_key; /* (owned) */
  MusterDType value_dtype;
  gint64 n_row, n_key; /* elements of a value and of a key */
  gsize row_size;      /* bytes of a value */
  float max_load;
  Buckets buckets;
};

static gboolean
has_strings (const MusterDenseTable *self)
{
  return muster_tensor_dtype (self->empty_key) == MUSTER_STRING;
}

static gboolean
same_key (const MusterDenseTable *self, const MusterTensor *a, gint64 i, const MusterTensor *b,
          gint64 j)
{
  for (gint64 c = 0; c < self->n_key; c++)
    if (has_strings (self)
            ? !muster_lookup_same_string (muster_tensor_string (a, i * self->n_key + c),
                                          muster_tensor_string (b, j * self->n_key + c))
            : muster_lookup_int_key (a, i * self->n_key + c) !=
                  muster_lookup_int_key (b, j * self->n_key + c))
      return FALSE;
  return TRUE;
}

static gboolean
bucket_is (const MusterDenseTable *self, const Buckets *buckets, gint64 at,
           const MusterTensor *keys, gint64 i)
{
  if (buckets->state[at] != USED)
    return FALSE;
  for (gint64 c = 0; c < self->n_key; c++) {
    const gint64 own = at * self->n_key + c, other = i * self->n_key + c;
    if (has_strings (self)
            ? !muster_lookup_same_string (((const MusterString *)buckets->keys)[own],
                                          muster_tensor_string (keys, other))
            : ((const gint64 *)buckets->keys)[own] != muster_lookup_int_key (keys, other))
      return FALSE;
  }
  return TRUE;
}

static guint64
combine (guint64 a, guint64 b)
{
  return a ^ (b + G_GUINT64_CONSTANT (0x9e3779b97f4a7800) + (a << 10) + (a >> 4));
}

static guint64
hash_string (MusterString string)
{
  return muster_murmur_hash (string.data, string.size);
}

static guint64
hash_key (const MusterDenseTable *self, const MusterTensor *keys, gint64 i)
{
  guint64 hash = 0;
  for (gint64 c = 0; c < self->n_key; c++) {
    const gint64 at = i * self->n_key + c;
    const guint64 part = has_strings (self) ? hash_string (muster_tensor_string (keys, at))
                                            : (guint64)muster_lookup_int_key (keys, at);
    hash = self->n_key == 1 ? part : combine (hash, part);
  }
  return hash;
}

/* The same hash for a key in a bucket. */
static guint64
hash_bucket (const MusterDenseTable *self, const Buckets *buckets, gint64 at)
{
  guint64 hash = 0;
  for (gint64 c = 0; c < self->n_key; c++) {
    const gint64 own = at * self->n_key + c;
    const guint64 part = has_strings (self)
                             ? hash_string (((const MusterString *)buckets->keys)[own])
                             : (guint64)((const gint64 *)buckets->keys)[own];
    hash = self->n_key == 1 ? part : combine (hash, part);
  }
  return hash;
}

static gsize
key_size (const MusterDenseTable *self)
{
  return (gsize)self->n_key * (has_strings (self) ? sizeof (MusterString) : sizeof (gint64));
}

static void
free_string (MusterString string)
{
  g_free ((gpointer)string.data);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, string.size + 1);
}

static void
drop_key (const MusterDenseTable *self, Buckets *buckets, gint64 at)
{
  MusterString *strings = buckets->keys;
  for (gint64 c = 0; has_strings (self) && buckets->state[at] == USED && c < self->n_key; c++)
    free_string (strings[at * self->n_key + c]);
}

static void
buckets_clear (const MusterDenseTable *self, Buckets *buckets)
{
  for (gint64 i = 0; buckets->state != NULL && i < buckets->n; i++)
    drop_key (self, buckets, i);
  g_clear_pointer (&buckets->state, g_free);
  g_clear_pointer (&buckets->keys, g_free);
  g_clear_pointer (&buckets->values, g_free);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, buckets->n_counted);
  buckets->n_counted = 0;
}

/* The sizes are bounded by 32 bits each. */
static gboolean
buckets_count (const MusterDenseTable *self, Buckets *buckets, GError **error)
{
  gsize n_bytes;
  if (!g_size_checked_mul (&n_bytes, (gsize)buckets->n, 1 + key_size (self) + self->row_size))
    n_bytes = G_MAXSIZE;
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, n_bytes, error))
    return FALSE;
  buckets->n_counted = n_bytes;
  return TRUE;
}

static gboolean
out_of_memory (GError **error, gint64 n)
{
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "There is no memory for a table of %" G_GINT64_FORMAT " buckets", n);
}

static gboolean
buckets_begin (const MusterDenseTable *self, Buckets *buckets, gint64 n, MusterBudget *budget,
               GError **error)
{
  *buckets = (Buckets){.n = n};
  if (n < 4 || (n & (n - 1)) != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Number of buckets must be at least 4 and a power of 2, got: "
                        "%" G_GINT64_FORMAT,
                        n);
  if (n > G_MAXINT32 || key_size (self) > G_MAXINT32 || self->row_size > G_MAXINT32)
    return out_of_memory (error, n);
  if (buckets_count (self, buckets, error) &&
      (buckets->state = muster_budget_alloc0_owned (budget, (gsize)n, 1, error)) != NULL &&
      (buckets->keys = muster_budget_alloc0_owned (budget, (gsize)n, key_size (self), error)) !=
          NULL &&
      (buckets->values = muster_budget_alloc0_owned (budget, (gsize)n, self->row_size, error)) !=
          NULL)
    return TRUE;
  buckets->n = 0;
  buckets_clear (self, buckets);
  return FALSE;
}

/* Copies a string; even an empty one has memory. */
static gboolean
copy_string (MusterString from, MusterString *to, MusterBudget *budget, GError **error)
{
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, from.size + 1, error))
    return FALSE;
  char *copy = muster_budget_alloc_owned (budget, from.size + 1, 1, error);
  if (copy == NULL) {
    muster_memory_release (MUSTER_MEMORY_RESOURCES, from.size + 1);
    return FALSE;
  }
  if (from.size > 0)
    memcpy (copy, from.data, from.size);
  *to = (MusterString){.data = copy, .size = from.size};
  return TRUE;
}

/* Copies a key into an unused bucket. */
static gboolean
set_key (const MusterDenseTable *self, Buckets *buckets, gint64 at, const MusterTensor *keys,
         gint64 i, MusterBudget *budget, GError **error)
{
  MusterString *strings = buckets->keys;
  for (gint64 c = 0; c < self->n_key; c++) {
    const gint64 own = at * self->n_key + c, other = i * self->n_key + c;
    if (!has_strings (self)) {
      ((gint64 *)buckets->keys)[own] = muster_lookup_int_key (keys, other);
      continue;
    }
    if (copy_string (muster_tensor_string (keys, other), &strings[own], budget, error))
      continue;
    while (c-- > 0)
      free_string (strings[at * self->n_key + c]);
    return FALSE;
  }
  buckets->state[at] = USED;
  buckets->n_used++;
  return TRUE;
}

/* The bucket of a key. If it isn't in the table: the first bucket that is empty or, with reuses,
 * deleted; -1 if there is none. */
static gint64
probe (const MusterDenseTable *self, const MusterTensor *keys, gint64 i, gboolean reuses)
{
  const Buckets *buckets = &self->buckets;
  const gint64 mask = buckets->n - 1;
  gint64 at = (gint64)(hash_key (self, keys, i) & (guint64)mask);
  for (gint64 n = 1; n <= buckets->n; n++) {
    const guint8 state = buckets->state[at];
    if (state == EMPTY || (state == DELETED && reuses) || bucket_is (self, buckets, at, keys, i))
      return at;
    at = (at + n) & mask;
  }
  return -1;
}

static gboolean
check_key (const MusterDenseTable *self, const MusterTensor *keys, gint64 i, GError **error)
{
  if (same_key (self, keys, i, self->empty_key, 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Using the empty_key as a table key is not allowed");
  if (same_key (self, keys, i, self->deleted_key, 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Using the deleted_key as a table key is not allowed");
  return TRUE;
}

/* Like probe (); -1 with an error for the empty and the deleted key, or if no bucket is left. */
static gint64
place_of (const MusterDenseTable *self, const MusterTensor *keys, gint64 i, gboolean reuses,
          const char *verb, GError **error)
{
  if (!check_key (self, keys, i, error))
    return -1;
  const gint64 at = probe (self, keys, i, reuses);
  if (at < 0)
    muster_fail (error, MUSTER_ERROR_INTERNAL,
                 "Internal error in MutableDenseHashTable %s: no bucket is free", verb);
  return at;
}

/* The number of keys; -1 with an error if they aren't a list of keys. */
static gint64
count_keys (const MusterDenseTable *self, const MusterTensor *keys, GError **error)
{
  const int n_own = muster_tensor_n_dims (self->empty_key);
  const int n_dims = muster_tensor_n_dims (keys);
  const gint64 n = n_dims == 0 ? 1 : muster_tensor_dims (keys)[0];
  if (muster_tensor_n_elements (keys) == n * self->n_key)
    return n;
  const gint64 dims[] = {n, self->n_key};
  g_autofree char *wanted = muster_shape_to_string (n_own + 1, dims);
  g_autofree char *got = muster_shape_to_string (n_dims, muster_tensor_dims (keys));
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected key shape %s got %s", wanted, got);
  return -1;
}

gboolean
muster_dense_table_find (const MusterDenseTable *self, const MusterTensor *keys,
                         const MusterTensor *fallback, void *values, GError **error)
{
  const gint64 n = count_keys (self, keys, error);
  for (gint64 i = 0; i < n; i++) {
    const gint64 at = place_of (self, keys, i, FALSE, "lookup", error);
    if (at < 0)
      return FALSE;
    const guint8 *row = self->buckets.state[at] == USED
                            ? self->buckets.values + (gsize)at * self->row_size
                            : muster_tensor_data (fallback);
    if (self->row_size > 0)
      memcpy ((guint8 *)values + (gsize)i * self->row_size, row, self->row_size);
  }
  return n >= 0;
}

static void
set_row (const MusterDenseTable *self, Buckets *buckets, gint64 at, const guint8 *row)
{
  if (self->row_size > 0)
    memcpy (buckets->values + (gsize)at * self->row_size, row, self->row_size);
}

/* Moves all keys to a larger table, in the order of their buckets, like TensorFlow. */
static gboolean
grow (MusterDenseTable *self, gint64 n, MusterBudget *budget, GError **error)
{
  Buckets more;
  if (!buckets_begin (self, &more, n, budget, error))
    return FALSE;
  for (gint64 i = 0; i < self->buckets.n; i++) {
    if (self->buckets.state[i] != USED)
      continue;
    gint64 at = (gint64)(hash_bucket (self, &self->buckets, i) & (guint64)(n - 1));
    for (gint64 step = 1; more.state[at] != EMPTY; step++)
      at = (at + step) & (n - 1);
    memcpy ((guint8 *)more.keys + (gsize)at * key_size (self),
            (guint8 *)self->buckets.keys + (gsize)i * key_size (self), key_size (self));
    set_row (self, &more, at, self->buckets.values + (gsize)i * self->row_size);
    more.state[at] = USED;
    more.n_used++;
    self->buckets.state[i] = EMPTY; /* the strings now belong to the new table */
  }
  buckets_clear (self, &self->buckets);
  self->buckets = more;
  return TRUE;
}

gboolean
muster_dense_table_insert (MusterDenseTable *self, const MusterTensor *keys,
                           const MusterTensor *values, MusterBudget *budget, GError **error)
{
  const gint64 n = count_keys (self, keys, error);
  gint64 n_buckets = self->buckets.n;
  if (n < 0)
    return FALSE;
  while ((float)(self->buckets.n_used + n) > (float)n_buckets * self->max_load) {
    if (n_buckets > G_MAXINT32)
      return out_of_memory (error, n_buckets);
    n_buckets *= 2;
  }
  if (n_buckets > self->buckets.n && !grow (self, n_buckets, budget, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    const gint64 at = place_of (self, keys, i, TRUE, "insert", error);
    if (at < 0)
      return FALSE;
    if (self->buckets.state[at] != USED &&
        !set_key (self, &self->buckets, at, keys, i, budget, error))
      return FALSE;
    set_row (self, &self->buckets, at,
             (const guint8 *)muster_tensor_data (values) + (gsize)i * self->row_size);
  }
  return TRUE;
}

gboolean
muster_dense_table_remove (MusterDenseTable *self, const MusterTensor *keys, GError **error)
{
  const gint64 n = count_keys (self, keys, error);
  for (gint64 i = 0; i < n; i++) {
    const gint64 at = place_of (self, keys, i, FALSE, "remove", error);
    if (at < 0)
      return FALSE;
    if (self->buckets.state[at] != USED)
      continue;
    drop_key (self, &self->buckets, at);
    self->buckets.state[at] = DELETED;
    self->buckets.n_used--;
  }
  return n >= 0;
}

static MusterTensor *
export_strings (const MusterDenseTable *self, const gint64 *dims, MusterBudget *budget,
                GError **error)
{
  const Buckets *buckets = &self->buckets;
  g_autofree MusterString *strings = muster_budget_alloc (
      budget, (gsize)buckets->n, (gsize)self->n_key * sizeof (MusterString), error);
  if (strings == NULL)
    return NULL;
  for (gint64 i = 0; i < buckets->n; i++)
    for (gint64 c = 0; c < self->n_key; c++)
      strings[i * self->n_key + c] =
          buckets->state[i] == USED
              ? ((const MusterString *)buckets->keys)[i * self->n_key + c]
              : muster_tensor_string (
                    buckets->state[i] == EMPTY ? self->empty_key : self->deleted_key, c);
  return muster_tensor_try_new_strings (budget, 2, dims, strings, error);
}

static MusterTensor *
export_ints (const MusterDenseTable *self, const gint64 *dims, MusterBudget *budget, GError **error)
{
  const Buckets *buckets = &self->buckets;
  const MusterDType dtype = muster_tensor_dtype (self->empty_key);
  MusterTensor *keys = muster_tensor_try_new_within (budget, dtype, 2, dims, error);
  if (keys == NULL)
    return NULL;
  void *data = muster_tensor_data_mutable (keys);
  for (gint64 i = 0; i < buckets->n * self->n_key; i++) {
    const guint8 state = buckets->state[i / self->n_key];
    const gint64 key =
        state == USED ? ((const gint64 *)buckets->keys)[i]
                      : muster_lookup_int_key (state == EMPTY ? self->empty_key : self->deleted_key,
                                               i % self->n_key);
    if (dtype == MUSTER_INT32)
      ((gint32 *)data)[i] = (gint32)key;
    else
      ((gint64 *)data)[i] = key;
  }
  return keys;
}

gboolean
muster_dense_table_export (const MusterDenseTable *self, MusterTensor **keys, MusterTensor **values,
                           MusterBudget *budget, GError **error)
{
  const gint64 key_dims[] = {self->buckets.n, self->n_key};
  const gint64 row_dims[] = {self->buckets.n, self->n_row};
  MusterTensor *rows = muster_tensor_try_new_within (budget, self->value_dtype, 2, row_dims, error);
  if (rows == NULL)
    return FALSE;
  MusterTensor *all = has_strings (self) ? export_strings (self, key_dims, budget, error)
                                         : export_ints (self, key_dims, budget, error);
  if (all == NULL) {
    muster_tensor_unref (rows);
    return FALSE;
  }
  if (self->row_size > 0)
    memcpy (muster_tensor_data_mutable (rows), self->buckets.values,
            (gsize)self->buckets.n * self->row_size);
  *keys = all;
  *values = rows;
  return TRUE;
}

static gboolean
check_columns (const MusterTensor *tensor, gint64 n, gint64 n_columns, const char *what,
               GError **error)
{
  const gint64 *dims = muster_tensor_dims (tensor);
  if (muster_tensor_n_dims (tensor) == 2 && dims[0] == n && dims[1] == n_columns)
    return TRUE;
  const gint64 wanted[] = {n, n_columns};
  g_autofree char *expected = muster_shape_to_string (2, wanted);
  g_autofree char *got = muster_shape_to_string (muster_tensor_n_dims (tensor), dims);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected shape %s for %s, got %s",
                      expected, what, got);
}

gboolean
muster_dense_table_import (MusterDenseTable *self, const MusterTensor *keys,
                           const MusterTensor *values, MusterBudget *budget, GError **error)
{
  Buckets fresh;
  const gint64 n = muster_tensor_n_dims (keys) > 0 ? muster_tensor_dims (keys)[0] : 1;
  if (!check_columns (keys, n, self->n_key, "keys", error) ||
      !check_columns (values, n, self->n_row, "value", error) ||
      !buckets_begin (self, &fresh, n, budget, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    if (same_key (self, keys, i, self->empty_key, 0))
      continue;
    if (same_key (self, keys, i, self->deleted_key, 0)) {
      fresh.state[i] = DELETED;
    } else if (!set_key (self, &fresh, i, keys, i, budget, error)) {
      buckets_clear (self, &fresh);
      return FALSE;
    }
  }
  if (self->row_size > 0)
    memcpy (fresh.values, muster_tensor_data (values), (gsize)n * self->row_size);
  buckets_clear (self, &self->buckets);
  self->buckets = fresh;
  return TRUE;
}

gint64
muster_dense_table_size (const MusterDenseTable *self)
{
  return self->buckets.n_used;
}

int
muster_dense_table_key_shape (const MusterDenseTable *self, const gint64 **dims)
{
  *dims = muster_tensor_dims (self->empty_key);
  return muster_tensor_n_dims (self->empty_key);
}

static gboolean
check_spec (const MusterDenseSpec *spec, GError **error)
{
  const int n_dims = muster_tensor_n_dims (spec->empty_key);
  g_autofree char *empty = muster_shape_to_string (n_dims, muster_tensor_dims (spec->empty_key));
  g_autofree char *deleted = muster_shape_to_string (muster_tensor_n_dims (spec->deleted_key),
                                                     muster_tensor_dims (spec->deleted_key));
  if (!(spec->max_load > 0 && spec->max_load < 1))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "max_load_factor must be between 0 and 1, got: %g", spec->max_load);
  if (n_dims > 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Empty key must be a scalar or a vector, got shape %s", empty);
  if (strcmp (empty, deleted) != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Empty and deleted keys must have same shape, got shapes: %s and %s", empty,
                        deleted);
  return TRUE;
}

MusterDenseTable *
muster_dense_table_new (const MusterDenseSpec *spec, MusterBudget *budget, GError **error)
{
  if (!check_spec (spec, error))
    return NULL;
  MusterDenseTable *self = g_new0 (MusterDenseTable, 1);
  self->empty_key = muster_tensor_keep (spec->empty_key);
  self->deleted_key = muster_tensor_keep (spec->deleted_key);
  self->n_key = muster_tensor_n_elements (spec->empty_key);
  self->value_dtype = spec->value_dtype;
  self->n_row = spec->n_row;
  self->row_size = (gsize)spec->n_row * muster_dtype_size (spec->value_dtype);
  self->max_load = spec->max_load;
  const gboolean same = same_key (self, self->empty_key, 0, self->deleted_key, 0);
  if (same)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Empty and deleted keys cannot be equal");
  if (!same && buckets_begin (self, &self->buckets, spec->n_buckets, budget, error))
    return self;
  muster_dense_table_free (self);
  return NULL;
}

void
muster_dense_table_free (MusterDenseTable *self)
{
  if (self == NULL)
    return;
  buckets_clear (self, &self->buckets);
  muster_tensor_unref (self->empty_key);
  muster_tensor_unref (self->deleted_key);
  g_free (self);
}
