// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_writer.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

typedef struct {
  MusterBundleIndex *index; /* (owned) of the whole */
  GPtrArray *data_paths;    /* (owned) (element-type utf8) the parts' data files, by new shard */
  GHashTable *sliced;       /* (owned) (element-type utf8 uint) name to its entry, counted from 1 */
} Merge;

static void
merge_clear (Merge *self)
{
  g_clear_pointer (&self->index, muster_bundle_index_free);
  g_clear_pointer (&self->data_paths, g_ptr_array_unref);
  g_clear_pointer (&self->sliced, g_hash_table_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Merge, merge_clear)

/* Merges the entries of a partitioned variable, which may have slices in several parts. */
static gboolean
merge_sliced (Merge *self, const MusterIndexEntry *entry, guint at, const char *part,
              GError **error)
{
  MusterIndexEntry *whole = &g_array_index (self->index->entries, MusterIndexEntry, at - 1);
  const gsize n_dims = (gsize)entry->entry.n_dims;
  if (whole->entry.dtype != entry->entry.dtype || whole->entry.n_dims != entry->entry.n_dims ||
      memcmp (whole->entry.dims, entry->entry.dims, n_dims * sizeof (gint64)) != 0) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "The tensor '%s' has a different type or shape in the part '%s' than in earlier parts",
        entry->entry.name, part);
  }
  for (gsize i = 0; i < entry->n_slices; i++)
    muster_bundle_index_add_slice (self->index, whole, entry->slices + i * n_dims);
  return TRUE;
}

static gboolean
merge_part (Merge *self, MusterStorage *storage, const char *part, GError **error)
{
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_load (storage, part, error);
  if (index == NULL)
    return FALSE;
  const guint first_shard = self->data_paths->len;
  g_auto (GStrv) paths = muster_bundle_sync_data (storage, part, error);
  if (paths == NULL)
    return FALSE;
  for (gsize i = 0; paths[i] != NULL; i++)
    g_ptr_array_add (self->data_paths, g_strdup (paths[i]));
  for (guint i = 0; i < index->entries->len; i++) {
    MusterIndexEntry entry = g_array_index (index->entries, MusterIndexEntry, i);
    const guint at = GPOINTER_TO_UINT (
        entry.entry.is_sliced ? g_hash_table_lookup (self->sliced, entry.entry.name) : NULL);
    if (at > 0 && !merge_sliced (self, &entry, at, part, error))
      return FALSE;
    if (at > 0)
      continue;
    if (!entry.entry.is_sliced)
      entry.entry.shard += (gint32)first_shard;
    const MusterIndexEntry *added = muster_bundle_index_add (self->index, &entry);
    if (entry.entry.is_sliced)
      g_hash_table_insert (self->sliced, (gpointer)added->entry.name,
                           GUINT_TO_POINTER (self->index->entries->len));
  }
  return TRUE;
}

static gboolean
merge (Merge *self, MusterStorage *storage, const char *const *parts, const char *prefix,
       GError **error)
{
  if (parts == NULL || parts[0] == NULL || g_strv_contains (parts, prefix)) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "invalid parts: give at least one, and none with the name of the merged checkpoint");
  }
  for (gsize i = 0; parts[i] != NULL; i++)
    if (!merge_part (self, storage, parts[i], error))
      return FALSE;
  gboolean is_published;
  g_ptr_array_add (self->data_paths, NULL);
  return muster_bundle_publish_files (storage, self->index,
                                      (const char *const *)self->data_paths->pdata, prefix,
                                      &is_published, error);
}

gboolean
muster_bundle_merge (MusterStorage *storage, const char *const *parts, const char *prefix,
                     GError **error)
{
  muster_require (error, FALSE, parts, prefix);
  storage = storage != NULL ? storage : muster_default_storage ();
  g_auto (Merge) self = {.index = muster_bundle_index_new (),
                         .data_paths = g_ptr_array_new_with_free_func (g_free),
                         .sliced = g_hash_table_new (g_str_hash, g_str_equal)};
  if (!merge (&self, storage, parts, prefix, error)) {
    g_prefix_error (error, "Merging into the checkpoint '%s': ", prefix);
    return FALSE;
  }
  for (gsize i = 0; parts[i] != NULL; i++) {
    g_autofree char *index = muster_bundle_index_path (parts[i]);
    muster_storage_remove_quietly (
        storage, index); /* the merged checkpoint is complete; this part isn't needed */
  }
  return TRUE;
}
