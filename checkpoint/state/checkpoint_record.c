// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record.h"

#include "base/error.h"
#include "base/require.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

/* Some 200,000 checkpoints: more is no side file. */
#define MAX_SIZE (64u << 20)

static void
side_file_clear (gpointer data)
{
  g_free (((MusterSideFile *)data)->name);
}

static void
side_checkpoint_free (gpointer data)
{
  MusterSideCheckpoint *self = data;
  g_free (self->name);
  g_free (self->bad);
  g_free (self->state_file);
  g_array_unref (self->files);
  g_free (self);
}

MusterCheckpointRecord *
muster_checkpoint_record_new (void)
{
  MusterCheckpointRecord *self = g_new0 (MusterCheckpointRecord, 1);
  self->final_step = -1;
  self->checkpoints = g_ptr_array_new_with_free_func (side_checkpoint_free);
  self->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  return self;
}

void
muster_checkpoint_record_free (MusterCheckpointRecord *self)
{
  if (self == NULL)
    return;
  g_free (self->chief);
  g_free (self->life);
  g_hash_table_unref (self->by_name);
  g_ptr_array_unref (self->checkpoints);
  g_free (self);
}

MusterSideCheckpoint *
muster_checkpoint_record_find (const MusterCheckpointRecord *self, const char *prefix)
{
  g_return_val_if_fail (self != NULL && prefix != NULL, NULL);
  g_autofree char *name = g_path_get_basename (prefix);
  return g_hash_table_lookup (self->by_name, name);
}

MusterSideCheckpoint *
muster_checkpoint_record_ensure (MusterCheckpointRecord *self, const char *prefix)
{
  g_return_val_if_fail (self != NULL && prefix != NULL, NULL);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, prefix);
  if (one != NULL)
    return one;
  one = g_new0 (MusterSideCheckpoint, 1);
  one->name = g_path_get_basename (prefix);
  one->step = -1;
  one->files = g_array_new (FALSE, FALSE, sizeof (MusterSideFile));
  g_array_set_clear_func (one->files, side_file_clear);
  g_ptr_array_add (self->checkpoints, one);
  g_hash_table_insert (self->by_name, one->name, one);
  return one;
}

void
muster_checkpoint_record_forget (MusterCheckpointRecord *self, const char *prefix)
{
  g_return_if_fail (self != NULL && prefix != NULL);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, prefix);
  if (one == NULL)
    return;
  g_hash_table_remove (self->by_name, one->name);
  g_ptr_array_remove (self->checkpoints, one);
}

void
muster_checkpoint_record_rename (MusterCheckpointRecord *self, const char *from, const char *to)
{
  g_return_if_fail (self != NULL && from != NULL && to != NULL);
  g_autofree char *name = g_path_get_basename (to);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (self, from);
  if (one == NULL || strcmp (one->name, name) == 0)
    return;
  muster_checkpoint_record_forget (self, name);
  g_hash_table_remove (self->by_name, one->name);
  g_free (one->name);
  one->name = g_steal_pointer (&name);
  g_hash_table_insert (self->by_name, one->name, one);
}

void
muster_side_checkpoint_add_file (MusterSideCheckpoint *self, const char *name, guint64 size,
                                 const guint32 *crc32c)
{
  g_return_if_fail (self != NULL && name != NULL);
  const MusterSideFile file = {.name = g_strdup (name),
                               .size = size,
                               .has_crc = crc32c != NULL,
                               .crc32c = crc32c != NULL ? *crc32c : 0};
  g_array_append_val (self->files, file);
}

static MusterStorage *
or_local (MusterStorage *storage)
{
  return storage != NULL ? storage : muster_local_storage ();
}

static GBytes *
read_text (MusterStorage *storage, const char *path, GError **error)
{
  MusterStorageInfo info;
  if (!muster_storage_look (storage, path, &info, error))
    return NULL;
  if (info.size <= MAX_SIZE)
    return muster_storage_read (storage, path, error);
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
               "its %" G_GUINT64_FORMAT " bytes are too many", info.size);
  return NULL;
}

MusterCheckpointRecord *
muster_checkpoint_record_read (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autoptr (GError) why = NULL;
  g_autoptr (GBytes) text = read_text (or_local (storage), path, &why);
  MusterCheckpointRecord *self = NULL;
  if (text != NULL) {
    gsize size;
    const char *data = g_bytes_get_data (text, &size);
    self = muster_checkpoint_record_parse (data, size, &why);
  } else if (muster_storage_is_absent (why)) {
    return muster_checkpoint_record_new ();
  }
  if (self == NULL)
    g_propagate_prefixed_error (error, g_steal_pointer (&why), "The side file '%s': ", path);
  return self;
}

MusterCheckpointRecord *
muster_checkpoint_record_read_to_write (MusterStorage *storage, const char *directory,
                                        GError **error)
{
  muster_require (error, NULL, directory);
  g_autoptr (GError) why = NULL;
  MusterCheckpointRecord *self = muster_checkpoint_record_read (storage, directory, &why);
  if (self != NULL || !muster_error_is (why, MUSTER_ERROR_DATA_LOSS)) {
    if (why != NULL)
      g_propagate_error (error, g_steal_pointer (&why));
    return self;
  }
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autofree char *aside = g_strconcat (path, ".bad", NULL);
  if (!muster_storage_rename (or_local (storage), path, aside, error))
    return NULL;
  g_warning ("%s: it is kept as '%s', and begun anew. No checkpoint needs it", why->message, aside);
  return muster_checkpoint_record_new ();
}

gboolean
muster_checkpoint_record_write (MusterStorage *storage, const char *directory,
                                const MusterCheckpointRecord *self, GError **error)
{
  muster_require (error, FALSE, directory, self);
  g_autofree char *path = g_build_filename (directory, MUSTER_RECORD_FILE, NULL);
  g_autofree char *text = muster_checkpoint_record_print (self);
  if (muster_storage_publish (or_local (storage), path, text, strlen (text), error))
    return TRUE;
  g_prefix_error (error, "Writing the side file: ");
  return FALSE;
}
