// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/resources.h"

#include "base/memory_account_private.h"
#include "engine/resources/variable_private.h"

#include <string.h>

/* What is certainly needed for a variable or a resource, beside its name. */
#define SMALLEST 256

struct _MusterResources {
  gatomicrefcount refs;
  GMutex lock;
  GHashTable *variables; /* (owned) a set of MusterVariable, by container, name and kind; guarded by
                            lock */
  GHashTable *resources; /* (owned) (nullable) a set of ResourceEntry; guarded by lock */
  guint64 generation; /* guarded by lock: changes to a process-wide unique number when something is
                         removed */
};

/* A resource with its key. */
typedef struct {
  const MusterResourceType *type;
  const char *container;    /* of the resource */
  const char *name;         /* of the resource, or the part without its number */
  MusterResource *resource; /* (owned) */
} ResourceEntry;

/* A variable's key. */
typedef struct {
  const char *container;
  const char *name;
  gboolean is_resource;
  guint hash;
} Key;

typedef struct {
  Key key; /* its strings belong to the variable */
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

static guint
resource_entry_hash (gconstpointer data)
{
  const ResourceEntry *entry = data;
  return g_str_hash (entry->name) * 31 + g_str_hash (entry->container) +
         g_direct_hash (entry->type);
}

static gboolean
resource_entry_equal (gconstpointer a, gconstpointer b)
{
  const ResourceEntry *left = a, *right = b;
  return left->type == right->type && g_str_equal (left->name, right->name) &&
         g_str_equal (left->container, right->container);
}

static void
resource_entry_free (gpointer data)
{
  ResourceEntry *entry = data;
  muster_resource_unref (entry->resource);
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
  g_clear_pointer (&self->resources, g_hash_table_unref);
  g_mutex_clear (&self->lock);
  g_free (self);
}

guint
muster_resources_hash (const char *container, const char *name, gboolean is_resource)
{
  return g_str_hash (name) * 31 + g_str_hash (container) + (guint)is_resource;
}

/* Whether something may be added that is counted with its name; most is known only then. */
static gboolean
has_room (const char *name, GError **error)
{
  const gsize n_bytes = strlen (name) + SMALLEST;
  if (!muster_memory_take (MUSTER_MEMORY_RESOURCES, n_bytes, error))
    return FALSE;
  muster_memory_release (MUSTER_MEMORY_RESOURCES, n_bytes);
  return TRUE;
}

static MusterVariable *
add_variable (MusterResources *self, const MusterVariableRequest *wanted, guint hash,
              GError **error)
{
  if (!has_room (wanted->name, error))
    return NULL;
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
find_variable (MusterResources *self, const MusterVariableRequest *wanted, GError **error)
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
    return add_variable (self, wanted, hash, error);
  const MusterDType dtype = muster_variable_dtype (entry->variable);
  if (dtype == wanted->dtype)
    return muster_variable_ref (entry->variable);
  /* A variable without a value may be replaced. */
  if (!muster_variable_is_initialized (entry->variable))
    return add_variable (self, wanted, hash, error);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "Variable '%s' in container '%s' holds %s, but is wanted as %s: two variables share "
               "a name, or the master still holds another model's (reset it)",
               wanted->name, wanted->container, muster_dtype_name (dtype),
               muster_dtype_name (wanted->dtype));
  return NULL;
}

MusterVariable *
muster_resources_variable (MusterResources *self, const MusterVariableRequest *wanted,
                           GError **error)
{
  MusterResourceCache *cache = wanted->cache;
  MusterVariable *variable;
  g_mutex_lock (&self->lock);
  if (cache != NULL && cache->generation == self->generation) {
    variable = muster_variable_ref (cache->what);
  } else {
    variable = find_variable (self, wanted, error);
    if (cache != NULL && variable != NULL)
      *cache = (MusterResourceCache){self->generation, variable};
  }
  g_mutex_unlock (&self->lock);
  return variable;
}

/* With the lock held. */
static MusterResource *
add_resource (MusterResources *self, const MusterResourceRequest *wanted, GError **error)
{
  static guint last_private; /* atomic */
  if (!has_room (wanted->name, error))
    return NULL;
  g_autofree char *numbered =
      wanted->is_private
          ? g_strdup_printf ("_%u_%s", g_atomic_int_add (&last_private, 1), wanted->name)
          : NULL;
  const char *name = numbered != NULL ? numbered : wanted->name;
  gpointer data = wanted->make (name, wanted->data, error);
  if (data == NULL)
    return NULL;
  MusterResource *resource = muster_resource_new (wanted->type, wanted->container, name, data);
  const char *own_name = muster_resource_name (resource);
  ResourceEntry *entry = g_new (ResourceEntry, 1);
  *entry = (ResourceEntry){.type = wanted->type,
                           .container = muster_resource_container (resource),
                           .name = own_name + strlen (name) - strlen (wanted->name),
                           .resource = resource};
  if (self->resources == NULL)
    self->resources = g_hash_table_new_full (resource_entry_hash, resource_entry_equal, NULL,
                                             resource_entry_free);
  g_hash_table_add (self->resources, entry);
  return muster_resource_ref (resource);
}

/* With the lock held. */
static MusterResource *
find_resource (MusterResources *self, const MusterResourceRequest *wanted, GError **error)
{
  const ResourceEntry key = {
      .type = wanted->type, .container = wanted->container, .name = wanted->name};
  const ResourceEntry *entry =
      self->resources != NULL ? g_hash_table_lookup (self->resources, &key) : NULL;
  if (entry == NULL)
    return add_resource (self, wanted, error);
  /* A private resource's name is its node's alone, so it needn't be checked. */
  if (!wanted->is_private && wanted->type->fits != NULL &&
      !wanted->type->fits (muster_resource_data (entry->resource), wanted->def, error))
    return NULL;
  return muster_resource_ref (entry->resource);
}

MusterResource *
muster_resources_get (MusterResources *self, const MusterResourceRequest *wanted, GError **error)
{
  MusterResourceCache *cache = wanted->cache;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (cache != NULL && cache->generation == self->generation)
    return muster_resource_ref (cache->what);
  MusterResource *resource = find_resource (self, wanted, error);
  if (cache != NULL && resource != NULL)
    *cache = (MusterResourceCache){self->generation, resource};
  return resource;
}

/* With the lock held. */
static gboolean
drop_variables (MusterResources *self, const char *const *containers)
{
  gboolean had_value = FALSE;
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->variables);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const Entry *entry = value;
    if (containers != NULL && !g_strv_contains (containers, entry->key.container))
      continue;
    had_value = had_value || muster_variable_is_initialized (entry->variable);
    g_hash_table_iter_remove (&iter);
  }
  return had_value;
}

/* With the lock held: moves the removed resources to dropped. */
static void
drop_resources (MusterResources *self, const char *const *containers, GPtrArray *dropped)
{
  GHashTableIter iter;
  gpointer value;
  if (self->resources == NULL)
    return;
  g_hash_table_iter_init (&iter, self->resources);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const ResourceEntry *entry = value;
    if (containers != NULL && !g_strv_contains (containers, entry->container))
      continue;
    g_ptr_array_add (dropped, muster_resource_ref (entry->resource));
    g_hash_table_iter_remove (&iter);
  }
}

static gboolean
is_of (gpointer key, gpointer value G_GNUC_UNUSED, gpointer resource)
{
  return ((const ResourceEntry *)key)->resource == resource;
}

gboolean
muster_resources_remove (MusterResources *self, MusterResource *resource)
{
  g_autoptr (MusterResource) held = muster_resource_ref (resource); /* freed without the lock */
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->resources == NULL || g_hash_table_foreach_remove (self->resources, is_of, held) == 0)
    return FALSE;
  self->generation = next_generation ();
  return TRUE;
}

gboolean
muster_resources_clear (MusterResources *self, const char *const *containers)
{
  g_autoptr (GPtrArray) dropped =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_resource_unref);
  if (containers != NULL && containers[0] == NULL)
    containers = NULL;
  g_mutex_lock (&self->lock);
  const gboolean had_value = drop_variables (self, containers);
  drop_resources (self, containers, dropped);
  self->generation = next_generation ();
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < dropped->len; i++)
    muster_resource_cancel (g_ptr_array_index (dropped, i));
  return had_value;
}
