// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/lookup_store.h"

#include "base/budget_private.h"
#include "base/error.h"
#include "base/hash_private.h"
#include "base/memory_account_private.h"
#include "graph/tensor_private.h"

#include <string.h>

/* A bucket contains a position + 1 in 32 bits. */
#define MAX_ENTRIES (1u << 30)
#define MIN_ENTRIES 16

static gboolean
has_string_keys (const MusterLookupStore *self)
{
  return self->key_dtype == MUSTER_STRING;
}

static gsize
key_size (const MusterLookupStore *self)
{
  return has_string_keys (self) ? sizeof (MusterString) : sizeof (gint64);
}

void
muster_lookup_store_init (MusterLookupStore *self, MusterDType key_dtype, MusterDType value_dtype,
                          gsize n_row)
{
  const gsize size =
      value_dtype == MUSTER_STRING ? sizeof (MusterString) : muster_dtype_size (value_dtype);
  *self = (MusterLookupStore){.key_dtype = key_dtype,
                              .value_dtype = value_dtype,
                              .n_row = n_row,
                              .row_size = n_row * size,
                              .seed = (guint64)(gsize)self};
}

static void
free_strings (gpointer strings, gsize n)
{
  const MusterString *all = strings;
  for (gsize i = 0; i < n; i++) {
    g_free ((gpointer)all[i].data);
    muster_memory_release (MUSTER_MEMORY_RESOURCES, all[i].size);
  }
}

static gpointer
row_at (const MusterLookupStore *self, guint32 position)
{
  return self->rows + position * self->row_size;
}

void
muster_lookup_store_clear (MusterLookupStore *self)
{
  if (has_string_keys (self))
    free_strings (self->keys, self->n);
  if (self->value_dtype == MUSTER_STRING)
    free_strings (self->rows, self->n * self->n_row);
  g_free (self->buckets);
  g_free (self->hashes);
  g_free (self->keys);
  g_free (self->rows);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->n_counted);
  muster_lookup_store_init (self, self->key_dtype, self->value_dtype, self->n_row);
}

static gboolean
out_of_memory (GError **error, gint64 n)
{
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "There is no memory for a table of %" G_GINT64_FORMAT " entries", n);
}

static gboolean
resize (gpointer *array, guint64 n, gsize size)
{
  if (size == 0)
    return TRUE;
  if (n > G_MAXSSIZE / size)
    return FALSE;
  gpointer moved = g_try_realloc (*array, n * size);
  if (moved == NULL)
    return FALSE;
  *array = moved;
  return TRUE;
}

/* Counts the arrays of so many entries, beside those of now while they are copied. */
static gboolean
count_arrays (const MusterLookupStore *self, guint32 capacity, gsize *n_counted, GError **error)
{
  const gsize each = 2 * sizeof (guint32) + sizeof *self->hashes + key_size (self) + self->row_size;
  if (!g_size_checked_mul (n_counted, capacity, each))
    *n_counted = G_MAXSIZE;
  return muster_memory_take (MUSTER_MEMORY_RESOURCES, *n_counted, error);
}

/* Moves the arrays to larger ones. On failure, those of now stay; some may have grown. */
static gboolean
move_arrays (MusterLookupStore *self, guint32 capacity)
{
  guint32 *buckets = g_try_new0 (guint32, (gsize)capacity * 2);
  if (buckets == NULL || !resize ((gpointer *)&self->hashes, capacity, sizeof *self->hashes) ||
      !resize (&self->keys, capacity, key_size (self)) ||
      !resize ((gpointer *)&self->rows, capacity, self->row_size)) {
    g_free (buckets);
    return FALSE;
  }
  g_free (self->buckets);
  self->buckets = buckets;
  return TRUE;
}

/* Ends because at most half of the buckets are used. */
static void
put_in_bucket (MusterLookupStore *self, guint32 position)
{
  const guint32 mask = self->n_buckets - 1;
  guint32 bucket = self->hashes[position] & mask;
  while (self->buckets[bucket] != 0)
    bucket = (bucket + 1) & mask;
  self->buckets[bucket] = position + 1;
}

gboolean
muster_lookup_store_reserve (MusterLookupStore *self, gint64 n, MusterBudget *budget,
                             GError **error)
{
  if (n <= self->capacity - self->n)
    return TRUE;
  if (n > MAX_ENTRIES - self->n)
    return out_of_memory (error, self->n + n);
  guint32 capacity = MAX (self->capacity, MIN_ENTRIES);
  gsize n_counted;
  while (capacity < self->n + (guint32)n)
    capacity *= 2;
  if (!muster_budget_take_owned_items (
          budget, capacity, 2 * sizeof (guint32) + sizeof *self->hashes + key_size (self), error) ||
      !muster_budget_take_owned_items (budget, capacity, self->row_size, error) ||
      !count_arrays (self, capacity, &n_counted, error))
    return FALSE;
  const gboolean has_moved = move_arrays (self, capacity);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, has_moved ? self->n_counted : n_counted);
  if (!has_moved)
    return out_of_memory (error, self->n + n);
  self->n_counted = n_counted;
  self->n_buckets = capacity * 2;
  self->capacity = capacity;
  for (guint32 i = 0; i < self->n; i++)
    put_in_bucket (self, i);
  return TRUE;
}

/* Murmur's finaliser: every bit of the number affects every bit of the hash. */
static guint32
hash_int (guint64 key, guint64 seed)
{
  key ^= seed;
  key = (key ^ key >> 33) * 0xff51afd7ed558ccdULL;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return (guint32)(key ^ key >> 33);
}

static guint32
hash_key (const MusterLookupStore *self, const MusterTensor *keys, gint64 i)
{
  if (!has_string_keys (self))
    return hash_int ((guint64)muster_lookup_int_key (keys, i), self->seed);
  const MusterString key = muster_tensor_string (keys, i);
  const guint64 hash = muster_hash_bytes (key.data, key.size, self->seed);
  return (guint32)(hash ^ hash >> 32);
}

static gboolean
key_is (const MusterLookupStore *self, guint32 position, const MusterTensor *keys, gint64 i)
{
  if (!has_string_keys (self))
    return ((const gint64 *)self->keys)[position] == muster_lookup_int_key (keys, i);
  return muster_lookup_same_string (((const MusterString *)self->keys)[position],
                                    muster_tensor_string (keys, i));
}

guint32
muster_lookup_store_find (const MusterLookupStore *self, const MusterTensor *keys, gint64 i)
{
  if (self->n == 0)
    return MUSTER_LOOKUP_NONE;
  const guint32 hash = hash_key (self, keys, i), mask = self->n_buckets - 1;
  for (guint32 bucket = hash & mask; self->buckets[bucket] != 0; bucket = (bucket + 1) & mask) {
    const guint32 position = self->buckets[bucket] - 1;
    if (self->hashes[position] == hash && key_is (self, position, keys, i))
      return position;
  }
  return MUSTER_LOOKUP_NONE;
}

/* Copies a string; an empty one needs no memory. */
static gboolean
copy_string (MusterString from, MusterString *to, MusterBudget *budget, GError **error)
{
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, from.size, error))
    return FALSE;
  char *data = from.size > 0 ? muster_budget_alloc_owned (budget, from.size, 1, error) : NULL;
  if (from.size > 0 && data == NULL) {
    muster_memory_release (MUSTER_MEMORY_RESOURCES, from.size);
    return FALSE;
  }
  if (from.size > 0)
    memcpy (data, from.data, from.size);
  *to = (MusterString){.data = data, .size = from.size};
  return TRUE;
}

/* Fills an empty row, which stays empty on failure. */
static gboolean
fill_row (const MusterLookupStore *self, gpointer row, const MusterTensor *values, gint64 i,
          MusterBudget *budget, GError **error)
{
  if (self->value_dtype != MUSTER_STRING) {
    if (self->row_size > 0)
      memcpy (row, (const guint8 *)muster_tensor_data (values) + (gsize)i * self->row_size,
              self->row_size);
    return TRUE;
  }
  MusterString *strings = row;
  for (gsize j = 0; j < self->n_row; j++) {
    if (copy_string (muster_tensor_string (values, i * (gint64)self->n_row + (gint64)j),
                     &strings[j], budget, error))
      continue;
    free_strings (strings, j);
    return FALSE;
  }
  return TRUE;
}

guint32
muster_lookup_store_add (MusterLookupStore *self, const MusterTensor *keys,
                         const MusterTensor *values, gint64 i, MusterBudget *budget, GError **error)
{
  const guint32 position = self->n;
  g_assert (position < self->capacity);
  if (!fill_row (self, row_at (self, position), values, i, budget, error))
    return MUSTER_LOOKUP_NONE;
  if (!has_string_keys (self)) {
    ((gint64 *)self->keys)[position] = muster_lookup_int_key (keys, i);
  } else if (!copy_string (muster_tensor_string (keys, i), &((MusterString *)self->keys)[position],
                           budget, error)) {
    if (self->value_dtype == MUSTER_STRING)
      free_strings (row_at (self, position), self->n_row);
    return MUSTER_LOOKUP_NONE;
  }
  self->hashes[position] = hash_key (self, keys, i);
  self->n++;
  put_in_bucket (self, position);
  return position;
}

gboolean
muster_lookup_store_replace (MusterLookupStore *self, guint32 position, const MusterTensor *values,
                             gint64 i, MusterBudget *budget, GError **error)
{
  if (self->value_dtype != MUSTER_STRING || self->row_size == 0)
    return fill_row (self, row_at (self, position), values, i, budget, error);
  g_autofree MusterString *row =
      muster_budget_alloc (budget, self->n_row, sizeof (MusterString), error);
  if (row == NULL || !fill_row (self, row, values, i, budget, error))
    return FALSE;
  free_strings (row_at (self, position), self->n_row);
  memcpy (row_at (self, position), row, self->row_size);
  return TRUE;
}

static guint32
bucket_of (const MusterLookupStore *self, guint32 position)
{
  const guint32 mask = self->n_buckets - 1;
  guint32 bucket = self->hashes[position] & mask;
  while (self->buckets[bucket] != position + 1)
    bucket = (bucket + 1) & mask;
  return bucket;
}

/* Empties a bucket; displaced entries after it move up. */
static void
empty_bucket (MusterLookupStore *self, guint32 bucket)
{
  const guint32 mask = self->n_buckets - 1;
  for (guint32 next = (bucket + 1) & mask; self->buckets[next] != 0; next = (next + 1) & mask) {
    const guint32 home = self->hashes[self->buckets[next] - 1] & mask;
    if (((next - home) & mask) < ((next - bucket) & mask))
      continue;
    self->buckets[bucket] = self->buckets[next];
    bucket = next;
  }
  self->buckets[bucket] = 0;
}

void
muster_lookup_store_remove (MusterLookupStore *self, guint32 position)
{
  const guint32 last = self->n - 1;
  if (self->value_dtype == MUSTER_STRING)
    free_strings (row_at (self, position), self->n_row);
  if (has_string_keys (self))
    free_strings ((MusterString *)self->keys + position, 1);
  empty_bucket (self, bucket_of (self, position));
  self->n = last;
  if (position == last)
    return;
  self->buckets[bucket_of (self, last)] = position + 1;
  self->hashes[position] = self->hashes[last];
  const gsize size = key_size (self);
  memcpy ((guint8 *)self->keys + position * size, (guint8 *)self->keys + last * size, size);
  if (self->row_size > 0)
    memcpy (row_at (self, position), row_at (self, last), self->row_size);
}

gboolean
muster_lookup_store_row_is (const MusterLookupStore *self, guint32 position,
                            const MusterTensor *values, gint64 i)
{
  gconstpointer row = row_at (self, position);
  if (self->row_size == 0)
    return TRUE;
  if (self->value_dtype != MUSTER_STRING)
    return memcmp (row, (const guint8 *)muster_tensor_data (values) + (gsize)i * self->row_size,
                   self->row_size) == 0;
  for (gsize j = 0; j < self->n_row; j++)
    if (!muster_lookup_same_string (
            ((const MusterString *)row)[j],
            muster_tensor_string (values, i * (gint64)self->n_row + (gint64)j)))
      return FALSE;
  return TRUE;
}

MusterTensor *
muster_lookup_store_keys (const MusterLookupStore *self, MusterBudget *budget, GError **error)
{
  const gint64 n = self->n;
  if (has_string_keys (self))
    return muster_tensor_try_new_strings (budget, 1, &n, self->keys, error);
  MusterTensor *keys = muster_tensor_try_new_within (budget, self->key_dtype, 1, &n, error);
  if (keys == NULL || n == 0)
    return keys;
  if (self->key_dtype == MUSTER_INT64) {
    memcpy (muster_tensor_data_mutable (keys), self->keys, self->n * sizeof (gint64));
    return keys;
  }
  for (gint64 i = 0; i < n; i++)
    ((gint32 *)muster_tensor_data_mutable (keys))[i] = (gint32)((const gint64 *)self->keys)[i];
  return keys;
}

gboolean
muster_lookup_rows_begin (MusterLookupRows *self, MusterDType dtype, int n_dims, const gint64 *dims,
                          MusterBudget *budget, GError **error)
{
  *self = (MusterLookupRows){.n_dims = n_dims, .dims = dims};
  if (dtype != MUSTER_STRING)
    return (self->tensor = muster_tensor_try_new_within (budget, dtype, n_dims, dims, error)) !=
           NULL;
  const gint64 n = muster_shape_n_elements (n_dims, dims);
  self->strings = muster_budget_alloc (budget, (gsize)n, sizeof (MusterString), error);
  return self->strings != NULL;
}

void
muster_lookup_rows_set (MusterLookupRows *self, const MusterLookupStore *store, gint64 to,
                        guint32 position)
{
  guint8 *base =
      self->strings != NULL ? (guint8 *)self->strings : muster_tensor_data_mutable (self->tensor);
  if (store->row_size > 0)
    memcpy (base + (gsize)to * store->row_size, row_at (store, position), store->row_size);
}

void
muster_lookup_rows_copy (MusterLookupRows *self, const MusterLookupStore *store, gint64 to,
                         const MusterTensor *values, gint64 i)
{
  if (self->strings == NULL) {
    if (store->row_size > 0)
      memcpy ((guint8 *)muster_tensor_data_mutable (self->tensor) + (gsize)to * store->row_size,
              (const guint8 *)muster_tensor_data (values) + (gsize)i * store->row_size,
              store->row_size);
    return;
  }
  const gint64 n = (gint64)store->n_row;
  for (gint64 j = 0; j < n; j++)
    self->strings[to * n + j] = muster_tensor_string (values, i * n + j);
}

MusterTensor *
muster_lookup_rows_end (MusterLookupRows *self, MusterBudget *budget, GError **error)
{
  if (self->strings == NULL)
    return g_steal_pointer (&self->tensor);
  MusterTensor *tensor =
      muster_tensor_try_new_strings (budget, self->n_dims, self->dims, self->strings, error);
  g_clear_pointer (&self->strings, g_free);
  return tensor;
}
