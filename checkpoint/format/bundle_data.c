// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_data.h"

#include "base/error.h"
#include "checkpoint/store/storage_private.h"

/* So many files stay open; a checkpoint may have thousands of shards. */
#define MAX_OPEN 64

struct _MusterBundleData {
  MusterStorage *storage; /* (owned) */
  char *prefix;           /* (owned) */
  gint32 n_shards;
  GMutex lock;
  GHashTable *files; /* (owned) (element-type int MusterDataFile); guarded by lock */
};

MusterBundleData *
muster_bundle_data_new (MusterStorage *storage, const char *prefix, gint32 n_shards)
{
  MusterBundleData *self = g_new0 (MusterBundleData, 1);
  self->storage = g_object_ref (storage);
  self->prefix = g_strdup (prefix);
  self->n_shards = n_shards;
  self->files = g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify)muster_data_file_unref);
  g_mutex_init (&self->lock);
  return self;
}

void
muster_bundle_data_free (MusterBundleData *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->files);
  g_mutex_clear (&self->lock);
  g_object_unref (self->storage);
  g_free (self->prefix);
  g_free (self);
}

/* name stands after the NUL of a slice's key. */
gboolean
muster_bundle_data_damaged (MusterBundleData *self, const MusterIndexEntry *entry, const char *why,
                            GError **error)
{
  g_autofree char *path =
      entry->entry.is_sliced
          ? g_strdup (self->prefix)
          : muster_bundle_data_path (self->prefix, entry->entry.shard, self->n_shards);
  const gboolean is_part = muster_index_entry_is_part (entry);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "%s '%s' in '%s' %s",
               is_part ? "A slice of the tensor" : "The tensor", (const char *)entry->key + is_part,
               path, why);
  return FALSE;
}

static void
clear_file (gpointer data)
{
  MusterDataFile *file = data;
  muster_storage_close_input (file->storage, file->input);
  g_object_unref (file->storage);
  g_free (file->path);
}

void
muster_data_file_unref (MusterDataFile *file)
{
  if (file != NULL)
    g_atomic_rc_box_release_full (file, clear_file);
}

static MusterDataFile *
open_file (MusterBundleData *self, gint32 shard, GError **error)
{
  g_autofree char *path = muster_bundle_data_path (self->prefix, shard, self->n_shards);
  g_autoptr (GError) why = NULL;
  guint64 size = 0;
  MusterStorageInput *input = muster_storage_open (self->storage, path, &size, &why);
  if (input != NULL) {
    MusterDataFile *file = g_atomic_rc_box_new (MusterDataFile);
    *file = (MusterDataFile){.storage = g_object_ref (self->storage),
                             .input = input,
                             .path = g_steal_pointer (&path),
                             .size = size};
    return file;
  }
  if (muster_storage_is_absent (why))
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
                 "The checkpoint '%s' has an index, but its data file '%s' is gone", self->prefix,
                 path);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

MusterDataFile *
muster_bundle_data_open (MusterBundleData *self, gint32 shard, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterDataFile *file = g_hash_table_lookup (self->files, GINT_TO_POINTER (shard));
  if (file != NULL)
    return g_atomic_rc_box_acquire (file);
  file = open_file (self, shard, error);
  if (file == NULL)
    return NULL;
  if (g_hash_table_size (self->files) >= MAX_OPEN) /* who reads from one keeps it open */
    g_hash_table_remove_all (self->files);
  g_hash_table_insert (self->files, GINT_TO_POINTER (shard), g_atomic_rc_box_acquire (file));
  return file;
}

gboolean
muster_bundle_data_check_place (MusterBundleData *self, const MusterIndexEntry *entry,
                                GError **error)
{
  g_autoptr (MusterDataFile) file = muster_bundle_data_open (self, entry->entry.shard, error);
  return file != NULL && muster_data_file_check_place (file, self, entry, error);
}

gboolean
muster_data_file_check_place (const MusterDataFile *file, MusterBundleData *self,
                              const MusterIndexEntry *entry, GError **error)
{
  const MusterBundleEntry *e = &entry->entry;
  if ((guint64)e->offset > file->size || (guint64)e->size > file->size - (guint64)e->offset)
    return muster_bundle_data_damaged (self, entry,
                                       "lies behind the file's end: the file was cut off", error);
  /* Each string has a length of a byte or more, and the lengths have their checksum. */
  const gint64 n_elements = muster_shape_n_elements (e->n_dims, e->dims);
  if (e->dtype == MUSTER_STRING && n_elements > 0 && n_elements > e->size - 4)
    return muster_bundle_data_damaged (self, entry, "has more strings than bytes", error);
  return TRUE;
}
