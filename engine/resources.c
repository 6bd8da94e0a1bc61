// SPDX-License-Identifier: Apache-2.0
#include "engine/resources.h"

#include "engine/variable_private.h"

struct _MusterResources {
  gatomicrefcount refs;
  GMutex lock;
  GHashTable *variables; /* (owned) a set of MusterVariable, by container, name and kind; guarded by
                            lock */
  guint64 generation;    /* guarded by lock: another one, of all there are, once a variable goes */
};

/* What a variable is found by. */
typedef struct {
  const char *container;
  const char *name;
  gboolean is_resource;
  guint hash;
} Key;

typedef struct {
  Key key; /* its texts are the variable's own */
  MusterVariable *variable;
} Entry;

static guint
key_hash (gconstpointer data)
{
  return ((const Key *)data)->hash;
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  const Key *left = a, *right = b;
  return left->hash == right->hash && left->is_resource == right->is_resource &&
         g_str_equal (left->name, right->name) && g_str_equal (left->container, right->container);
}

static void
entry_free (gpointer data)
{
  Entry *entry = data;
  muster_variable_unref (entry->variable);
  g_free (entry);
}

static guint64
next_generation (void)
{
  static guint64 last; /* atomic */
  return __atomic_add_fetch (&last, 1, __ATOMIC_RELAXED);
}

MusterResources *
muster_resources_new (void)
{
  MusterResources *self = g_new0 (MusterResources, 1);
  self->generation = next_generation ();
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->lock);
  self->variables = g_hash_table_new_full (key_hash, key_equal, NULL, entry_free);
  return self;
}

MusterResources *
muster_resources_ref (MusterResources *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_resources_unref (MusterResources *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->variables);
  g_mutex_clear (&self->lock);
  g_free (self);
}

guint
muster_resources_hash (const char *container, const char *name, gboolean is_resource)
{
  return g_str_hash (name) * 31 + g_str_hash (container) + (guint)is_resource;
}

static MusterVariable *
add_variable (MusterResources *self, const MusterVariableWanted *wanted, guint hash)
{
  gint64 dims[MUSTER_MAX_DIMS];
  int n_dims = muster_node_shape (wanted->def, "shape", dims, MUSTER_MAX_DIMS);
  if (n_dims > MUSTER_MAX_DIMS)
    n_dims = -1;
  Entry *entry = g_new (Entry, 1);
  entry->variable = muster_variable_new (wanted->container, wanted->name, wanted->dtype,
                                         wanted->is_resource, n_dims, dims);
  entry->key = (Key){.container = muster_variable_container (entry->variable),
                     .name = muster_variable_name (entry->variable),
                     .is_resource = wanted->is_resource,
                     .hash = hash};
  if (!g_hash_table_replace (self->variables, &entry->key, entry))
    self->generation = next_generation ();
  return muster_variable_ref (entry->variable);
}

/* With the lock held. */
static MusterVariable *
find_variable (MusterResources *self, const MusterVariableWanted *wanted, GError **error)
{
  const guint hash = wanted->hash != 0 ? wanted->hash
                                       : muster_resources_hash (wanted->container, wanted->name,
                                                                wanted->is_resource);
  const Key key = {.container = wanted->container,
                   .name = wanted->name,
                   .is_resource = wanted->is_resource,
                   .hash = hash};
  Entry *entry = g_hash_table_lookup (self->variables, &key);
  if (entry == NULL)
    return add_variable (self, wanted, hash);
  const MusterDType dtype = muster_variable_dtype (entry->variable);
  if (dtype == wanted->dtype)
    return muster_variable_ref (entry->variable);
  /* One that has never had a value is as good as none. */
  if (!muster_variable_is_initialized (entry->variable))
    return add_variable (self, wanted, hash);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "Variable '%s' in container '%s' holds %s, but is wanted as %s: two variables share "
               "a name, or the master still holds another model's (reset it)",
               wanted->name, wanted->container, muster_dtype_name (dtype),
               muster_dtype_name (wanted->dtype));
  return NULL;
}

MusterVariable *
muster_resources_variable (MusterResources *self, const MusterVariableWanted *wanted,
                           GError **error)
{
  MusterVariableSeen *seen = wanted->seen;
  MusterVariable *variable;
  g_mutex_lock (&self->lock);
  if (seen != NULL && seen->generation == self->generation) {
    variable = muster_variable_ref (seen->variable);
  } else {
    variable = find_variable (self, wanted, error);
    if (seen != NULL && variable != NULL)
      *seen = (MusterVariableSeen){self->generation, variable};
  }
  g_mutex_unlock (&self->lock);
  return variable;
}

gboolean
muster_resources_clear (MusterResources *self, const char *const *containers)
{
  const gboolean all = containers == NULL || containers[0] == NULL;
  gboolean had_value = FALSE;
  GHashTableIter iter;
  gpointer value;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_hash_table_iter_init (&iter, self->variables);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const Entry *entry = value;
    if (!all && !g_strv_contains (containers, entry->key.container))
      continue;
    had_value = had_value || muster_variable_is_initialized (entry->variable);
    g_hash_table_iter_remove (&iter);
  }
  self->generation = next_generation ();
  return had_value;
}
