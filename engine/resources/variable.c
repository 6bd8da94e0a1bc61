// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/variable.h"

#include "base/memory_account_private.h"
#include "engine/resources/variable_private.h"

#include <stdlib.h>
#include <string.h>

struct _MusterVariable {
  gatomicrefcount refs;
  gsize n_counted; /* bytes of it, without its value, in the process's memory */
  MusterDType dtype;
  gboolean is_resource;
  int n_dims;   /* as declared; -1: unknown */
  gint64 *dims; /* behind the struct, as is the name */
  char *name;
  char *container; /* (owned) a GRefString, which very many share */
  GMutex lock;
  MusterTensor *value;  /* (owned) (nullable) guarded by lock, except to compare it with NULL */
  MusterTensor *before; /* (owned) (nullable) guarded by lock: the tensor that an update copies */
  gint was_refused;     /* atomic: there was no memory for the last update's copy */
};

/* What a variable takes in the table of its master. */
#define ENTRY_SIZE 96

static _Thread_local guint64 version;

MusterVariable *
muster_variable_new (const char *container, const char *name, MusterDType dtype,
                     gboolean is_resource, int n_dims, const gint64 *dims)
{
  /* In one block: a large model has very many. */
  const gsize dims_size = (gsize)MAX (n_dims, 0) * sizeof *dims, name_size = strlen (name) + 1;
  MusterVariable *self = g_malloc0 (sizeof *self + dims_size + name_size);
  g_atomic_ref_count_init (&self->refs);
  self->n_counted = sizeof *self + dims_size + name_size + ENTRY_SIZE;
  muster_memory_add (MUSTER_MEMORY_RESOURCES, self->n_counted);
  self->dtype = dtype;
  self->is_resource = is_resource;
  self->n_dims = n_dims;
  self->dims = (gint64 *)(gpointer)(self + 1);
  if (dims_size > 0)
    memcpy (self->dims, dims, dims_size);
  self->name = strcpy ((char *)(self + 1) + dims_size, name);
  self->container = g_ref_string_new_intern (container);
  g_mutex_init (&self->lock);
  return self;
}

void
muster_variable_begin_with (MusterVariable *self, MusterTensor *value)
{
  g_assert (self->value == NULL);
  self->value = muster_tensor_keep (value);
}

guint64
muster_variable_version (void)
{
  return version;
}

MusterVariable *
muster_variable_ref (MusterVariable *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_variable_unref (MusterVariable *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_tensor_unref (self->value);
  g_mutex_clear (&self->lock);
  g_ref_string_release (self->container);
  muster_memory_release (MUSTER_MEMORY_RESOURCES, self->n_counted);
  g_free (self);
}

const char *
muster_variable_name (MusterVariable *self)
{
  return self->name;
}

const char *
muster_variable_container (MusterVariable *self)
{
  return self->container;
}

MusterDType
muster_variable_dtype (MusterVariable *self)
{
  return self->dtype;
}

gboolean
muster_variable_is_resource (MusterVariable *self)
{
  return self->is_resource;
}

int
muster_variable_shape (MusterVariable *self, const gint64 **dims)
{
  *dims = self->dims;
  return self->n_dims;
}

MusterTensor *
muster_variable_read (MusterVariable *self)
{
  g_mutex_lock (&self->lock);
  MusterTensor *value = self->value != NULL ? muster_tensor_ref (self->value) : NULL;
  g_mutex_unlock (&self->lock);
  return value;
}

gboolean
muster_variable_is_initialized (MusterVariable *self)
{
  return g_atomic_pointer_get (&self->value) != NULL;
}

void
muster_variable_assign (MusterVariable *self, MusterTensor *value)
{
  g_return_if_fail (value == NULL || muster_tensor_dtype (value) == self->dtype);
  if (value != NULL)
    value = muster_tensor_keep (value);
  g_mutex_lock (&self->lock);
  MusterTensor *old = self->value;
  g_atomic_pointer_set (&self->value, value);
  g_mutex_unlock (&self->lock);
  if ((old == NULL) != (value == NULL))
    version++;
  muster_tensor_unref (old);
}

gboolean
muster_variable_replace (MusterVariable *self, const MusterTensor *old, MusterTensor *value)
{
  g_return_val_if_fail (muster_tensor_dtype (value) == self->dtype, FALSE);
  MusterTensor *kept = muster_tensor_keep (value);
  g_mutex_lock (&self->lock);
  const gboolean is_replaced = self->value == old;
  if (is_replaced)
    g_atomic_pointer_set (&self->value, kept);
  g_mutex_unlock (&self->lock);
  muster_tensor_unref (is_replaced ? (MusterTensor *)old : kept);
  return is_replaced;
}

void
muster_variable_set_uninitialized (MusterVariable *self, GError **error)
{
  if (!self->is_resource) {
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "Attempting to use uninitialized value %s", self->name);
    return;
  }
  muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
               "Could not find variable %s. This could mean that the variable has been deleted. In "
               "TF1, it can also mean the variable is uninitialized. Debug info: container=%s, "
               "status error message=Resource %s/%s/N10tensorflow3VarE does not exist.",
               self->name, self->container, self->container, self->name);
}

void
muster_variable_set_not_found (MusterVariable *self, GError **error)
{
  if (!self->is_resource)
    muster_variable_set_uninitialized (self, error);
  else
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "Resource %s/%s/N10tensorflow3VarE does not exist.",
                 self->container, self->name);
}

void
muster_variable_set_invalid (MusterVariable *self, GError **error)
{
  if (!self->is_resource)
    muster_variable_set_uninitialized (self, error);
  else
    muster_fail (error, MUSTER_ERROR_INTERNAL, "Invalid variable reference. '%s' has no value",
                 self->name);
}

void
muster_variable_set_not_updated (MusterVariable *self, GError **error)
{
  if (!g_atomic_int_get (&self->was_refused)) {
    muster_variable_set_not_found (self, error);
    return;
  }
  muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "not enough memory to update variable '%s': its value is in use, by a snapshot or a "
               "fetch, and must be copied; raise --max-memory",
               self->name);
}

/* With the lock held: returns elements that only the variable references; NULL if it has no value
 * or there isn't enough memory. If a snapshot or a fetch references the old elements, allocates new
 * ones and sets *from to the old ones, until the update ends. */
static void *
make_exclusive (MusterVariable *self, const void **from)
{
  *from = NULL;
  if (self->value == NULL || muster_dtype_size (self->dtype) == 0) {
    g_atomic_int_set (&self->was_refused, FALSE);
    return NULL;
  }
  if (!muster_tensor_is_exclusive (self->value)) {
    MusterTensor *fresh = muster_tensor_try_new (self->dtype, muster_tensor_n_dims (self->value),
                                                 muster_tensor_dims (self->value), NULL);
    g_atomic_int_set (&self->was_refused, fresh == NULL);
    if (fresh == NULL)
      return NULL;
    self->before = self->value;
    g_atomic_pointer_set (&self->value, fresh);
  }
  if (self->before != NULL)
    *from = muster_tensor_data (self->before);
  return muster_tensor_data_mutable (self->value);
}

static void
copy_before (MusterVariable *self, void *data, const void *from)
{
  if (from != NULL && muster_tensor_n_bytes (self->value) > 0)
    memcpy (data, from, muster_tensor_n_bytes (self->value));
}

/* Ends an update. This may be the last reference to the old elements, which are freed without the
 * lock. */
static void
unlock (MusterVariable *self)
{
  MusterTensor *before = g_steal_pointer (&self->before);
  g_mutex_unlock (&self->lock);
  muster_tensor_unref (before);
}

void *
muster_variable_begin_rewrite (MusterVariable *self, const void **from)
{
  g_mutex_lock (&self->lock);
  void *data = make_exclusive (self, from);
  if (data == NULL)
    unlock (self);
  return data;
}

void *
muster_variable_begin_update (MusterVariable *self)
{
  const void *from;
  void *data = muster_variable_begin_rewrite (self, &from);
  if (data != NULL)
    copy_before (self, data, from);
  return data;
}

void
muster_variable_end_update (MusterVariable *self)
{
  unlock (self);
}

static int
compare_addresses (const void *a, const void *b)
{
  const guintptr left = (guintptr) * (MusterVariable *const *)a;
  const guintptr right = (guintptr) * (MusterVariable *const *)b;
  return (left > right) - (left < right);
}

/* Calls func once for each different variable, in the order of their addresses. */
static void
each_once (MusterVariable *const *variables, int n, void (*func) (MusterVariable *))
{
  g_autofree MusterVariable **sorted = g_memdup2 (variables, (gsize)n * sizeof *variables);
  qsort (sorted, (gsize)n, sizeof *sorted, compare_addresses);
  for (int i = 0; i < n; i++)
    if (i == 0 || sorted[i] != sorted[i - 1])
      func (sorted[i]);
}

static void
take_lock (MusterVariable *self)
{
  g_mutex_lock (&self->lock);
}

gboolean
muster_variables_begin_rewrite (MusterVariable *const *variables, int n, void **data,
                                const void **from)
{
  each_once (variables, n, take_lock);
  for (int i = 0; i < n; i++) {
    data[i] = make_exclusive (variables[i], &from[i]);
    if (data[i] != NULL)
      continue;
    while (--i >= 0) /* restore the contents of the new elements */
      copy_before (variables[i], data[i], from[i]);
    each_once (variables, n, unlock);
    return FALSE;
  }
  return TRUE;
}

gboolean
muster_variables_begin_update (MusterVariable *const *variables, int n, void **data)
{
  g_autofree const void **from = g_new (const void *, n);
  if (!muster_variables_begin_rewrite (variables, n, data, from))
    return FALSE;
  for (int i = 0; i < n; i++)
    copy_before (variables[i], data[i], from[i]);
  return TRUE;
}

void
muster_variables_end_update (MusterVariable *const *variables, int n)
{
  each_once (variables, n, unlock);
}

MusterTensor *
muster_variable_peek (MusterVariable *self)
{
  return self->value;
}
