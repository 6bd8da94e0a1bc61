// SPDX-License-Identifier: Apache-2.0
/* State outside the graph that is saved with it (MusterSaveable): tensors by name, in C as an
 * array, for bindings as MusterSaveableTensors. The list of a saver's saveables copies all of them
 * for a save, and reads all of them before a restore hands any out. */
#include "saver/builder/saveable.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_writer.h"
#include "saver/builder/saveable_private.h"

G_DEFINE_INTERFACE (MusterSaveable, muster_saveable, G_TYPE_OBJECT)

static void
muster_saveable_default_init (MusterSaveableInterface *iface G_GNUC_UNUSED)
{
}

typedef struct {
  gatomicrefcount refs;
  char *name;               /* (owned) */
  MusterSaveable *saveable; /* (owned) (nullable) NULL: see weak */
  GWeakRef weak;
  MusterSaveableFlags flags;
} Entry;

struct _MusterSaveables {
  GMutex lock;
  GPtrArray *entries; /* (owned) (element-type Entry) guarded by lock */
};

/* A saveable's tensors in a checkpoint. */
typedef struct {
  MusterSaveable *saveable; /* (owned) */
  char *name;               /* (owned) */
  GHashTable *tensors;      /* (owned) (element-type utf8 MusterTensor) */
} MusterSaveableState;

/* --- named tensors --- */

static MusterNamedTensor *muster_named_tensor_copy (const MusterNamedTensor *self);
static void muster_named_tensor_free (MusterNamedTensor *self);

G_DEFINE_BOXED_TYPE (MusterNamedTensor, muster_named_tensor, muster_named_tensor_copy,
                     muster_named_tensor_free)

MusterNamedTensor *
muster_named_tensor_new (const char *name, MusterTensor *tensor)
{
  g_return_val_if_fail (name != NULL && tensor != NULL, NULL);
  MusterNamedTensor *self = g_new (MusterNamedTensor, 1);
  self->name = g_strdup (name);
  self->tensor = muster_tensor_ref (tensor);
  return self;
}

static MusterNamedTensor *
muster_named_tensor_copy (const MusterNamedTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return muster_named_tensor_new (self->name, self->tensor);
}

static void
muster_named_tensor_free (MusterNamedTensor *self)
{
  if (self == NULL)
    return;
  g_free (self->name);
  muster_tensor_unref (self->tensor);
  g_free (self);
}

static void
named_tensor_free (gpointer data)
{
  muster_named_tensor_free (data);
}

void
muster_named_tensors_add (GPtrArray *tensors, const char *key, MusterTensor *tensor)
{
  g_return_if_fail (tensors != NULL && key != NULL && tensor != NULL);

  g_ptr_array_add (tensors, muster_named_tensor_new (key, tensor));
}

/* --- the same for other languages --- */

/* It is a GPtrArray of MusterNamedTensor. */
static GPtrArray *
array_of (MusterSaveableTensors *self)
{
  return (GPtrArray *)self;
}

G_DEFINE_BOXED_TYPE (MusterSaveableTensors, muster_saveable_tensors, muster_saveable_tensors_ref,
                     muster_saveable_tensors_unref)

MusterSaveableTensors *
muster_saveable_tensors_ref (MusterSaveableTensors *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return (MusterSaveableTensors *)g_ptr_array_ref (array_of (self));
}

void
muster_saveable_tensors_unref (MusterSaveableTensors *self)
{
  if (self != NULL)
    g_ptr_array_unref (array_of (self));
}

void
muster_saveable_tensors_add (MusterSaveableTensors *self, const char *key, MusterTensor *tensor)
{
  g_return_if_fail (self != NULL && key != NULL && tensor != NULL);
  muster_named_tensors_add (array_of (self), key, tensor);
}

char **
muster_saveable_tensors_keys (MusterSaveableTensors *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  const GPtrArray *tensors = array_of (self);
  char **keys = g_new0 (char *, tensors->len + 1);
  for (guint i = 0; i < tensors->len; i++)
    keys[i] = g_strdup (((const MusterNamedTensor *)tensors->pdata[i])->name);
  return keys;
}

MusterTensor *
muster_saveable_tensors_get (MusterSaveableTensors *self, const char *key)
{
  g_return_val_if_fail (self != NULL && key != NULL, NULL);
  const GPtrArray *tensors = array_of (self);
  for (guint i = 0; i < tensors->len; i++) {
    const MusterNamedTensor *named = tensors->pdata[i];
    if (g_str_equal (named->name, key))
      return named->tensor;
  }
  return NULL;
}

static gboolean
assign (MusterSaveable *saveable, GHashTable *tensors, GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (named_tensor_free);
  GHashTableIter iter;
  gpointer key, tensor;
  g_hash_table_iter_init (&iter, tensors);
  while (g_hash_table_iter_next (&iter, &key, &tensor))
    muster_named_tensors_add (list, key, tensor);
  return MUSTER_SAVEABLE_GET_IFACE (saveable)->assign (saveable, (MusterSaveableTensors *)list,
                                                       error);
}

gboolean
muster_named_tensors_write (const GPtrArray *tensors, MusterStorage *storage, const char *prefix,
                            GError **error)
{
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (storage, prefix, error);
  for (guint i = 0; writer != NULL && i < tensors->len; i++) {
    const MusterNamedTensor *named = tensors->pdata[i];
    if (!muster_bundle_writer_add (writer, named->name, named->tensor, error))
      return FALSE;
  }
  return writer != NULL && muster_bundle_writer_finish (writer, error);
}

/* --- the list --- */

static void
entry_unref (gpointer data)
{
  Entry *self = data;
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_object (&self->saveable);
  g_weak_ref_clear (&self->weak);
  g_free (self->name);
  g_free (self);
}

MusterSaveables *
muster_saveables_new (void)
{
  MusterSaveables *self = g_new0 (MusterSaveables, 1);
  g_mutex_init (&self->lock);
  self->entries = g_ptr_array_new_with_free_func (entry_unref);
  return self;
}

void
muster_saveables_free (MusterSaveables *self)
{
  g_ptr_array_unref (self->entries);
  g_mutex_clear (&self->lock);
  g_free (self);
}

gboolean
muster_saveables_has_any (MusterSaveables *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->entries->len > 0;
}

gboolean
muster_saveables_own (MusterSaveables *self, const char *tensor)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  for (guint i = 0; i < self->entries->len; i++) {
    const char *name = ((const Entry *)self->entries->pdata[i])->name;
    gsize size = strlen (name);
    if (strncmp (tensor, name, size) == 0 && tensor[size] == '/')
      return TRUE;
  }
  return FALSE;
}

static gboolean
check_name (MusterSaveables *self, const char *name, GError **error)
{
  if (*name == '\0') {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "a saveable needs a name; its tensors are NAME/KEY in the checkpoint");
  }
  for (guint i = 0; i < self->entries->len; i++) {
    if (strcmp (((const Entry *)self->entries->pdata[i])->name, name) != 0)
      continue;
    return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                        "The saver has a saveable named '%s' already", name);
  }
  return TRUE;
}

gboolean
muster_saveables_add (MusterSaveables *self, const char *name, MusterSaveable *saveable,
                      MusterSaveableFlags flags, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (!check_name (self, name, error))
    return FALSE;
  Entry *entry = g_new0 (Entry, 1);
  g_atomic_ref_count_init (&entry->refs);
  entry->name = g_strdup (name);
  entry->flags = flags;
  if (flags & MUSTER_SAVEABLE_WEAK)
    g_weak_ref_init (&entry->weak, saveable);
  else
    entry->saveable = g_object_ref (saveable);
  g_ptr_array_add (self->entries, entry);
  return TRUE;
}

/* Returns the current entries (transfer full). */
static GPtrArray *
entries_now (MusterSaveables *self)
{
  GPtrArray *now = g_ptr_array_new_with_free_func (entry_unref);
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->entries->len; i++) {
    Entry *entry = self->entries->pdata[i];
    g_atomic_ref_count_inc (&entry->refs);
    g_ptr_array_add (now, entry);
  }
  g_mutex_unlock (&self->lock);
  return now;
}

/* (transfer full) */
static MusterSaveable *
entry_saveable (Entry *self, GError **error)
{
  MusterSaveable *saveable =
      self->saveable != NULL ? g_object_ref (self->saveable) : g_weak_ref_get (&self->weak);

  if (saveable == NULL)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "the saveable '%s' was freed: it was added weakly, without another reference",
                 self->name);
  return saveable;
}

/* --- copying --- */

static gboolean
copy_to_host (MusterSaveable *saveable, GPtrArray *tensors, GError **error)
{
  MusterSaveableInterface *iface = MUSTER_SAVEABLE_GET_IFACE (saveable);
  if (iface->copy_to_host != NULL)
    return iface->copy_to_host (saveable, tensors, error);
  if (iface->collect != NULL)
    return iface->collect (saveable, (MusterSaveableTensors *)tensors, error);
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "%s doesn't implement copying",
                      G_OBJECT_TYPE_NAME (saveable));
}

/* Returns TRUE also for one that is left out. */
static gboolean
copy_one (const Entry *entry, MusterSaveable *saveable, GPtrArray *tensors, GStrvBuilder *left_out,
          GError **error)
{
  g_autoptr (GPtrArray) own = g_ptr_array_new_with_free_func (named_tensor_free);
  g_autoptr (GError) failure = NULL;
  if (muster_require_error (&failure, copy_to_host (saveable, own, &failure),
                            G_OBJECT_TYPE_NAME (saveable), "copy_to_host")) {
    for (guint i = 0; i < own->len; i++) {
      const MusterNamedTensor *named = own->pdata[i];
      g_autofree char *name = g_strconcat (entry->name, "/", named->name, NULL);
      muster_named_tensors_add (tensors, name, named->tensor);
    }
    return TRUE;
  }
  if (!muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED) ||
      (entry->flags & MUSTER_SAVEABLE_REQUIRED)) {
    g_propagate_prefixed_error (error, g_steal_pointer (&failure),
                                "Copying the saveable '%s': ", entry->name);
    return FALSE;
  }
  muster_log (G_LOG_LEVEL_INFO, "saveable", "MESSAGE", "Saveable '%s' skipped due to: %s",
              entry->name, failure->message);
  g_strv_builder_add (left_out, entry->name);
  return TRUE;
}

static gboolean
retrieve_once (const Entry *entry, MusterSaveable *saveable, GHashTable *retrieved, GError **error)
{
  MusterSaveableInterface *iface = MUSTER_SAVEABLE_GET_IFACE (saveable);
  if (!g_hash_table_add (retrieved, saveable) ||
      muster_require_error (error, iface->retrieve (saveable, error), G_OBJECT_TYPE_NAME (saveable),
                            "retrieve"))
    return TRUE;
  g_prefix_error (error, "Retrieving the saveable '%s': ", entry->name);
  return FALSE;
}

/* Copies saveables that must be retrieved last, since what they fetch may be large. */
static gboolean
copy_kind (GPtrArray *entries, gboolean retrieving, GPtrArray *tensors, GStrvBuilder *left_out,
           GError **error)
{
  g_autoptr (GHashTable) retrieved = g_hash_table_new (NULL, NULL);
  for (guint i = 0; i < entries->len; i++) {
    Entry *entry = entries->pdata[i];
    g_autoptr (MusterSaveable) saveable = entry_saveable (entry, error);
    if (saveable == NULL)
      return FALSE;
    if ((MUSTER_SAVEABLE_GET_IFACE (saveable)->retrieve != NULL) != retrieving)
      continue;
    if (retrieving && !retrieve_once (entry, saveable, retrieved, error))
      return FALSE;
    if (!copy_one (entry, saveable, tensors, left_out, error))
      return FALSE;
  }
  return TRUE;
}

GPtrArray *
muster_saveables_copy (MusterSaveables *self, char ***left_out, GError **error)
{
  g_autoptr (GPtrArray) entries = entries_now (self);
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (named_tensor_free);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  if (!copy_kind (entries, FALSE, tensors, builder, error) ||
      !copy_kind (entries, TRUE, tensors, builder, error))
    return NULL;
  g_auto (GStrv) names = g_strv_builder_end (builder);
  if (left_out != NULL)
    *left_out = names[0] != NULL ? g_steal_pointer (&names) : NULL;
  return g_steal_pointer (&tensors);
}

/* --- restoring --- */

static void
state_free (gpointer data)
{
  MusterSaveableState *self = data;
  g_clear_object (&self->saveable);
  g_hash_table_unref (self->tensors);
  g_free (self->name);
  g_free (self);
}

static gboolean
read_tensors (MusterBundleReader *reader, const char *name, GHashTable *tensors, GError **error)
{
  g_autofree char *start = g_strconcat (name, "/", NULL);

  for (gsize i = 0; i < muster_bundle_reader_n_entries (reader); i++) {
    const MusterBundleEntry *entry = muster_bundle_reader_entry (reader, i);
    if (!g_str_has_prefix (entry->name, start))
      continue;
    MusterTensor *tensor = muster_bundle_reader_read (reader, entry->name, error);
    if (tensor == NULL)
      return FALSE;
    g_hash_table_insert (tensors, g_strdup (entry->name + strlen (start)), tensor);
  }
  return TRUE;
}

static gboolean
can_restore (MusterSaveable *saveable)
{
  const MusterSaveableInterface *iface = MUSTER_SAVEABLE_GET_IFACE (saveable);
  return iface->restore != NULL || iface->assign != NULL;
}

static gboolean
hand_out (const MusterSaveableState *state, GError **error)
{
  const MusterSaveableInterface *iface = MUSTER_SAVEABLE_GET_IFACE (state->saveable);
  return iface->restore != NULL ? iface->restore (state->saveable, state->tensors, error)
                                : assign (state->saveable, state->tensors, error);
}

static gboolean
read_one (Entry *entry, MusterBundleReader *reader, GPtrArray *states, GError **error)
{
  g_autoptr (MusterSaveable) saveable = entry_saveable (entry, error);
  if (saveable == NULL)
    return FALSE;
  if (!can_restore (saveable))
    return TRUE;
  g_autoptr (GHashTable) tensors =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)muster_tensor_unref);
  if (!read_tensors (reader, entry->name, tensors, error))
    return FALSE;
  if (g_hash_table_size (tensors) == 0 && (entry->flags & MUSTER_SAVEABLE_OPTIONAL))
    return TRUE;
  if (g_hash_table_size (tensors) == 0) {
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND,
                        "checkpoint '%s' has no data of the saveable '%s': it was saved without it",
                        muster_bundle_reader_prefix (reader), entry->name);
  }
  MusterSaveableState *state = g_new (MusterSaveableState, 1);
  state->saveable = g_steal_pointer (&saveable);
  state->name = g_strdup (entry->name);
  state->tensors = g_steal_pointer (&tensors);
  g_ptr_array_add (states, state);
  return TRUE;
}

GPtrArray *
muster_saveables_read (MusterSaveables *self, MusterBundleReader *reader, GError **error)
{
  g_autoptr (GPtrArray) entries = entries_now (self);
  g_autoptr (GPtrArray) states = g_ptr_array_new_with_free_func (state_free);
  for (guint i = 0; i < entries->len; i++)
    if (!read_one (entries->pdata[i], reader, states, error))
      return NULL;
  return g_steal_pointer (&states);
}

gboolean
muster_saveables_hand_out (GPtrArray *states, GError **error)
{
  for (guint i = 0; i < states->len; i++) {
    const MusterSaveableState *state = states->pdata[i];
    if (muster_require_error (error, hand_out (state, error), G_OBJECT_TYPE_NAME (state->saveable),
                              "restore"))
      continue;
    g_prefix_error (error, "Restoring the saveable '%s': ", state->name);
    return FALSE;
  }
  return TRUE;
}
