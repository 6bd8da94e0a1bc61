// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/lookup.h"

#include "base/budget_private.h"
#include "base/error.h"
#include "engine/resources/lookup_store.h"
#include "graph/tensor_private.h"

#include <string.h>

struct _MusterLookupTable {
  MusterLookupKind kind;  /* its strings point to the two below */
  char *container, *name; /* (owned) */
  GRWLock lock;
  MusterDenseTable *dense; /* (owned) (nullable) guarded by lock, as the next */
  MusterLookupStore store; /* unused if dense isn't NULL */
  gboolean is_filled;      /* guarded by lock: a static table has its keys */
};

/* The pairs of dtypes that TensorFlow 2.21 has kernels for: a bit for each kind of table. */
enum { STATIC = 1, SCALARS = 2, ROWS = 4, DENSE = 8, ALL = 15 };

static const struct {
  MusterDType key, value;
  guint kinds;
} pairs[] = {
    {MUSTER_INT32, MUSTER_FLOAT, ALL},   {MUSTER_INT32, MUSTER_DOUBLE, ALL},
    {MUSTER_INT32, MUSTER_INT32, ALL},   {MUSTER_INT32, MUSTER_STRING, STATIC},
    {MUSTER_INT64, MUSTER_BOOL, DENSE},  {MUSTER_INT64, MUSTER_FLOAT, ALL},
    {MUSTER_INT64, MUSTER_DOUBLE, ALL},  {MUSTER_INT64, MUSTER_INT32, ALL},
    {MUSTER_INT64, MUSTER_INT64, ALL},   {MUSTER_INT64, MUSTER_STRING, STATIC | SCALARS | ROWS},
    {MUSTER_STRING, MUSTER_BOOL, ALL},   {MUSTER_STRING, MUSTER_FLOAT, ALL},
    {MUSTER_STRING, MUSTER_DOUBLE, ALL}, {MUSTER_STRING, MUSTER_INT32, ALL},
    {MUSTER_STRING, MUSTER_INT64, ALL},  {MUSTER_STRING, MUSTER_STRING, STATIC},
};

gboolean
muster_lookup_kind_is_known (const MusterLookupKind *kind)
{
  const guint wanted = kind->is_dense      ? DENSE
                       : !kind->is_mutable ? STATIC
                       : kind->has_rows    ? ROWS
                                           : SCALARS;
  for (gsize i = 0; i < G_N_ELEMENTS (pairs); i++)
    if (pairs[i].key == kind->key_dtype && pairs[i].value == kind->value_dtype &&
        (pairs[i].kinds & wanted) != 0)
      return TRUE;
  return FALSE;
}

static gsize
row_length (const MusterLookupKind *kind)
{
  return kind->has_rows ? (gsize)kind->n_row : 1;
}

MusterLookupTable *
muster_lookup_table_new (const MusterLookupKind *kind)
{
  MusterLookupTable *self = g_new0 (MusterLookupTable, 1);
  self->kind = *kind;
  self->kind.container = self->container = g_strdup (kind->container);
  self->kind.name = self->name = g_strdup (kind->name);
  g_rw_lock_init (&self->lock);
  muster_lookup_store_init (&self->store, kind->key_dtype, kind->value_dtype, row_length (kind));
  return self;
}

MusterLookupTable *
muster_lookup_table_new_dense (const MusterLookupKind *kind, MusterDenseTable *dense)
{
  MusterLookupTable *self = muster_lookup_table_new (kind);
  self->dense = dense;
  return self;
}

void
muster_lookup_table_free (MusterLookupTable *self)
{
  if (self == NULL)
    return;
  muster_dense_table_free (self->dense);
  muster_lookup_store_clear (&self->store);
  g_rw_lock_clear (&self->lock);
  g_free (self->container);
  g_free (self->name);
  g_free (self);
}

MusterDType
muster_lookup_table_key_dtype (const MusterLookupTable *self)
{
  return self->kind.key_dtype;
}

MusterDType
muster_lookup_table_value_dtype (const MusterLookupTable *self)
{
  return self->kind.value_dtype;
}

gint64
muster_lookup_table_size (MusterLookupTable *self)
{
  g_rw_lock_reader_lock (&self->lock);
  const gint64 n = self->dense != NULL ? muster_dense_table_size (self->dense) : self->store.n;
  g_rw_lock_reader_unlock (&self->lock);
  return n;
}

gboolean
muster_lookup_table_check_static (const MusterLookupTable *self, GError **error)
{
  return !self->kind.is_mutable ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Table %s %s is not initializable",
                      self->kind.container, self->kind.name);
}

/* The shape of one key: a scalar, except in dense tables. */
static int
key_shape (const MusterLookupTable *self, const gint64 **dims)
{
  *dims = NULL;
  return self->dense != NULL ? muster_dense_table_key_shape (self->dense, dims) : 0;
}

/* The shape of the values for these keys. */
static int
shape_of_values (const MusterLookupTable *self, const MusterTensor *keys, gint64 *dims)
{
  const gint64 *own;
  const int n = muster_tensor_n_dims (keys) - key_shape (self, &own);
  for (int i = 0; i < n; i++)
    dims[i] = muster_tensor_dims (keys)[i];
  if (!self->kind.has_rows)
    return n;
  dims[n] = self->kind.n_row;
  return n + 1;
}

static gboolean
has_shape (const MusterTensor *tensor, int n_dims, const gint64 *dims)
{
  return muster_tensor_n_dims (tensor) == n_dims &&
         (n_dims == 0 ||
          memcmp (muster_tensor_dims (tensor), dims, (gsize)n_dims * sizeof *dims) == 0);
}

static char *
shape_text (const MusterTensor *tensor)
{
  return muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
}

static gboolean
check_keys (const MusterLookupTable *self, const MusterTensor *keys, GError **error)
{
  const gint64 *own;
  const int n_own = key_shape (self, &own), n = muster_tensor_n_dims (keys);
  if (n >= MUSTER_MAX_DIMS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Keys have more than %d dimensions",
                        MUSTER_MAX_DIMS - 1);
  if (n_own == 0 || (n > 0 && muster_tensor_dims (keys)[n - 1] == own[0]))
    return TRUE;
  g_autofree char *wanted = muster_shape_to_string (n_own, own);
  g_autofree char *given = shape_text (keys);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Input key shape %s must end with the table's key shape %s", given, wanted);
}

static gboolean
check_values (const MusterLookupTable *self, const MusterTensor *keys, const MusterTensor *values,
              GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  if (!check_keys (self, keys, error))
    return FALSE;
  const int n_dims = shape_of_values (self, keys, dims);
  if (has_shape (values, n_dims, dims))
    return TRUE;
  g_autofree char *wanted = muster_shape_to_string (n_dims, dims);
  g_autofree char *given = shape_text (values);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected shape %s for value, got %s",
                      wanted, given);
}

/* Checks that the default is one value, or one for each key. */
static gboolean
check_fallback (const MusterLookupTable *self, const MusterTensor *fallback, int n_dims,
                const gint64 *dims, GError **error)
{
  const int n_own = self->kind.has_rows ? 1 : 0;
  if (has_shape (fallback, n_own, &self->kind.n_row) || has_shape (fallback, n_dims, dims))
    return TRUE;
  g_autofree char *own = muster_shape_to_string (n_own, &self->kind.n_row);
  g_autofree char *all = muster_shape_to_string (n_dims, dims);
  g_autofree char *given = shape_text (fallback);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Expected shape %s or %s for default value, got %s", own, all, given);
}

/* With the lock held. */
static MusterTensor *
find_all (MusterLookupTable *self, MusterTensor *keys, MusterTensor *fallback, int n_dims,
          const gint64 *dims, MusterBudget *budget, GError **error)
{
  const gint64 n = muster_tensor_n_elements (keys);
  const gboolean each = self->kind.is_mutable && has_shape (fallback, n_dims, dims);
  MusterLookupRows rows;
  if (!self->kind.is_mutable && !self->is_filled) {
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "Table not initialized.");
    return NULL;
  }
  if (!muster_lookup_rows_begin (&rows, self->kind.value_dtype, n_dims, dims, budget, error))
    return NULL;
  for (gint64 i = 0; i < n; i++) {
    const guint32 position = muster_lookup_store_find (&self->store, keys, i);
    if (position != MUSTER_LOOKUP_NONE)
      muster_lookup_rows_set (&rows, &self->store, i, position);
    else
      muster_lookup_rows_copy (&rows, &self->store, i, fallback, each ? i : 0);
  }
  return muster_lookup_rows_end (&rows, budget, error);
}

/* With the lock held. */
static MusterTensor *
find_dense (MusterLookupTable *self, MusterTensor *keys, MusterTensor *fallback, int n_dims,
            const gint64 *dims, MusterBudget *budget, GError **error)
{
  g_autoptr (MusterTensor) values =
      muster_tensor_try_new_within (budget, self->kind.value_dtype, n_dims, dims, error);
  if (values == NULL || !muster_dense_table_find (self->dense, keys, fallback,
                                                  muster_tensor_data_mutable (values), error))
    return NULL;
  return g_steal_pointer (&values);
}

MusterTensor *
muster_lookup_table_find (MusterLookupTable *self, MusterTensor *keys, MusterTensor *fallback,
                          MusterBudget *budget, GError **error)
{
  gint64 dims[MUSTER_MAX_DIMS];
  if (!check_keys (self, keys, error))
    return NULL;
  const int n_dims = shape_of_values (self, keys, dims);
  if (!check_fallback (self, fallback, n_dims, dims, error))
    return NULL;
  g_rw_lock_reader_lock (&self->lock);
  MusterTensor *found = self->dense != NULL
                            ? find_dense (self, keys, fallback, n_dims, dims, budget, error)
                            : find_all (self, keys, fallback, n_dims, dims, budget, error);
  g_rw_lock_reader_unlock (&self->lock);
  return found;
}

static gboolean
put_all (MusterLookupStore *store, MusterTensor *keys, MusterTensor *values, MusterBudget *budget,
         GError **error)
{
  const gint64 n = muster_tensor_n_elements (keys);
  if (!muster_lookup_store_reserve (store, n, budget, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    const guint32 position = muster_lookup_store_find (store, keys, i);
    if (position == MUSTER_LOOKUP_NONE
            ? muster_lookup_store_add (store, keys, values, i, budget, error) == MUSTER_LOOKUP_NONE
            : !muster_lookup_store_replace (store, position, values, i, budget, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
refuse_change (const char *verb, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "%s not supported by InitializableLookupTable implementations", verb);
}

gboolean
muster_lookup_table_insert (MusterLookupTable *self, MusterTensor *keys, MusterTensor *values,
                            MusterBudget *budget, GError **error)
{
  if (!check_values (self, keys, values, error))
    return FALSE;
  if (!self->kind.is_mutable)
    return refuse_change ("Insert", error);
  g_rw_lock_writer_lock (&self->lock);
  const gboolean done = self->dense != NULL
                            ? muster_dense_table_insert (self->dense, keys, values, budget, error)
                            : put_all (&self->store, keys, values, budget, error);
  g_rw_lock_writer_unlock (&self->lock);
  return done;
}

static gboolean
remove_all (MusterLookupStore *store, const MusterTensor *keys)
{
  for (gint64 i = 0; i < muster_tensor_n_elements (keys); i++) {
    const guint32 position = muster_lookup_store_find (store, keys, i);
    if (position != MUSTER_LOOKUP_NONE)
      muster_lookup_store_remove (store, position);
  }
  return TRUE;
}

gboolean
muster_lookup_table_remove (MusterLookupTable *self, MusterTensor *keys, GError **error)
{
  if (!self->kind.is_mutable)
    return refuse_change ("Remove", error);
  if (!check_keys (self, keys, error))
    return FALSE;
  g_rw_lock_writer_lock (&self->lock);
  const gboolean done = self->dense != NULL ? muster_dense_table_remove (self->dense, keys, error)
                                            : remove_all (&self->store, keys);
  g_rw_lock_writer_unlock (&self->lock);
  return done;
}

/* A key or value for errors: "a" or "1.5". */
static char *
element_text (const MusterTensor *tensor, gint64 i)
{
  g_autoptr (GString) text = g_string_new (NULL);
  if (muster_tensor_dtype (tensor) == MUSTER_STRING) {
    const MusterString s = muster_tensor_string (tensor, i);
    return g_utf8_make_valid (s.data != NULL ? s.data : "", (gssize)MIN (s.size, 256));
  }
  muster_tensor_append_element (text, tensor, i, 256);
  return g_strdup (text->str);
}

/* Longer values aren't shown. */
#define MAX_SHOWN 65536

/* The row at a position as a tensor; NULL if it is too long for an error. */
static MusterTensor *
row_tensor (const MusterLookupStore *store, guint32 position)
{
  const gint64 n = (gint64)store->n_row;
  g_auto (MusterBudget) budget = {.limit = MAX_SHOWN};
  MusterLookupRows rows;
  if (!muster_lookup_rows_begin (&rows, store->value_dtype, 1, &n, &budget, NULL))
    return NULL;
  muster_lookup_rows_set (&rows, store, 0, position);
  return muster_lookup_rows_end (&rows, &budget, NULL);
}

static gboolean
refuse_other_value (const MusterLookupStore *store, guint32 position, const MusterTensor *keys,
                    const MusterTensor *values, gint64 i, GError **error)
{
  g_autoptr (MusterTensor) present = row_tensor (store, position);
  g_autofree char *key = element_text (keys, i), *value = element_text (values, i);
  g_autofree char *old = present != NULL ? element_text (present, 0) : g_strdup ("another value");
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION,
      "HashTable has different value for same key. Key %s has %s and trying to add value "
      "%s",
      key, old, value);
}

/* Adds keys to a static table. A key may be repeated with the same value. */
static gboolean
add_all (MusterLookupStore *store, const MusterTensor *keys, const MusterTensor *values,
         MusterBudget *budget, GError **error)
{
  const gint64 n = muster_tensor_n_elements (keys);
  if (!muster_lookup_store_reserve (store, n, budget, error))
    return FALSE;
  for (gint64 i = 0; i < n; i++) {
    const guint32 position = muster_lookup_store_find (store, keys, i);
    if (position == MUSTER_LOOKUP_NONE) {
      if (muster_lookup_store_add (store, keys, values, i, budget, error) == MUSTER_LOOKUP_NONE)
        return FALSE;
    } else if (!muster_lookup_store_row_is (store, position, values, i)) {
      return refuse_other_value (store, position, keys, values, i, error);
    }
  }
  return TRUE;
}

/* Starts filling a new store, which then replaces the static table's empty one. */
static void
begin_fill (const MusterLookupTable *self, MusterLookupStore *fresh)
{
  muster_lookup_store_init (fresh, self->kind.key_dtype, self->kind.value_dtype,
                            row_length (&self->kind));
}

/* Ends filling; call with the lock held if the store is to be installed. */
static gboolean
end_fill (MusterLookupTable *self, MusterLookupStore *fresh, gboolean ok)
{
  if (!ok) {
    muster_lookup_store_clear (fresh);
    return FALSE;
  }
  muster_lookup_store_clear (&self->store);
  self->store = *fresh;
  self->is_filled = TRUE;
  return TRUE;
}

/* With the lock held. */
static gboolean
fill_once (MusterLookupTable *self, MusterTensor *keys, MusterTensor *values, MusterBudget *budget,
           GError **error)
{
  MusterLookupStore fresh;
  const gint64 n = muster_tensor_n_elements (keys);
  if (n == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "keys and values cannot be empty tensors.");
  if (self->is_filled)
    return n == self->store.n || muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                                              "Table was already initialized with different data.");
  begin_fill (self, &fresh);
  return end_fill (self, &fresh, add_all (&fresh, keys, values, budget, error));
}

/* With the lock held. */
static gboolean
replace_all (MusterLookupTable *self, MusterTensor *keys, MusterTensor *values,
             MusterBudget *budget, GError **error)
{
  MusterLookupStore fresh;
  begin_fill (self, &fresh);
  return end_fill (self, &fresh, put_all (&fresh, keys, values, budget, error));
}

gboolean
muster_lookup_table_import (MusterLookupTable *self, MusterTensor *keys, MusterTensor *values,
                            MusterBudget *budget, GError **error)
{
  if (self->dense == NULL && !check_values (self, keys, values, error))
    return FALSE;
  g_rw_lock_writer_lock (&self->lock);
  const gboolean done = self->dense != NULL
                            ? muster_dense_table_import (self->dense, keys, values, budget, error)
                        : self->kind.is_mutable ? replace_all (self, keys, values, budget, error)
                                                : fill_once (self, keys, values, budget, error);
  g_rw_lock_writer_unlock (&self->lock);
  return done;
}

/* With the lock held. */
static MusterTensor *
all_rows (MusterLookupTable *self, MusterBudget *budget, GError **error)
{
  const gint64 dims[] = {self->store.n, self->kind.n_row};
  MusterLookupRows rows;
  if (!muster_lookup_rows_begin (&rows, self->kind.value_dtype, self->kind.has_rows ? 2 : 1, dims,
                                 budget, error))
    return NULL;
  for (guint32 i = 0; i < self->store.n; i++)
    muster_lookup_rows_set (&rows, &self->store, i, i);
  return muster_lookup_rows_end (&rows, budget, error);
}

gboolean
muster_lookup_table_export (MusterLookupTable *self, MusterTensor **keys, MusterTensor **values,
                            MusterBudget *budget, GError **error)
{
  g_autoptr (MusterTensor) all_keys = NULL, all_values = NULL;
  g_rw_lock_reader_lock (&self->lock);
  if (self->dense != NULL) {
    (void)muster_dense_table_export (self->dense, &all_keys, &all_values, budget, error);
  } else if (!self->kind.is_mutable && !self->is_filled) {
    muster_fail (error, MUSTER_ERROR_ABORTED, "HashTable is not initialized.");
  } else {
    all_keys = muster_lookup_store_keys (&self->store, budget, error);
    all_values = all_keys != NULL ? all_rows (self, budget, error) : NULL;
  }
  g_rw_lock_reader_unlock (&self->lock);
  if (all_values == NULL)
    return FALSE;
  *keys = g_steal_pointer (&all_keys);
  *values = g_steal_pointer (&all_values);
  return TRUE;
}

gboolean
muster_lookup_table_fill (MusterLookupTable *self,
                          gboolean (*next) (gpointer data, MusterTensor **keys,
                                            MusterTensor **values, GError **error),
                          gpointer data, MusterBudget *budget, GError **error)
{
  MusterTensor *key, *value;
  MusterLookupStore fresh;
  g_autoptr (GError) own = NULL;
  gboolean ok = TRUE;
  g_return_val_if_fail (!self->kind.is_mutable, FALSE);
  begin_fill (self, &fresh);
  while (ok && next (data, &key, &value, &own))
    ok = add_all (&fresh, key, value, budget, &own);
  ok = ok && own == NULL;
  if (own != NULL)
    g_propagate_error (error, g_steal_pointer (&own));
  g_rw_lock_writer_lock (&self->lock);
  if (ok && self->is_filled) /* filled by another thread meanwhile */
    muster_lookup_store_clear (&fresh);
  else
    ok = end_fill (self, &fresh, ok);
  g_rw_lock_writer_unlock (&self->lock);
  return ok;
}

gboolean
muster_lookup_table_is_filled (MusterLookupTable *self)
{
  g_rw_lock_reader_lock (&self->lock);
  const gboolean is_filled = self->is_filled;
  g_rw_lock_reader_unlock (&self->lock);
  return is_filled;
}
