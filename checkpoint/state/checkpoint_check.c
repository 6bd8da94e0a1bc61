// SPDX-License-Identifier: Apache-2.0
/* Examines checkpoints without reading their tensors: whether the index is valid and the data
 * files have the length that it requires, and whether files match the sums in the side file. */
#include "checkpoint/state/checkpoint_check.h"

#include "base/clock.h"
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/format/v1_table_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

/* Returns the length that each data file must have for its tensors, for as many files as the
 * index names. */
static GHashTable *
ends_of_shards (const MusterBundleIndex *index)
{
  GHashTable *ends = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  for (guint i = 0; i < index->entries->len; i++) {
    const MusterBundleEntry *entry = &g_array_index (index->entries, MusterIndexEntry, i).entry;
    if (entry->is_sliced)
      continue;
    const guint64 end = (guint64)entry->offset + (guint64)entry->size;
    guint64 *known = g_hash_table_lookup (ends, GINT_TO_POINTER (entry->shard));
    if (known == NULL) {
      known = g_new0 (guint64, 1);
      g_hash_table_insert (ends, GINT_TO_POINTER (entry->shard), known);
    }
    *known = MAX (*known, end);
  }
  return ends;
}

static gboolean
check_shard (MusterStorage *storage, const char *prefix, gint32 shard, guint64 wanted,
             MusterCheckpointOverview *overview, GError **error)
{
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;
  g_autofree char *path = muster_bundle_data_path (prefix, shard, overview->n_shards);
  if (!muster_storage_stat (storage, path, &info, &why)) {
    if (muster_storage_failure_is_absent (why))
      muster_fail (error, MUSTER_ERROR_DATA_LOSS, "The data file '%s' is missing", path);
    else
      g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  overview->bytes += info.size;
  if (info.size >= wanted)
    return TRUE;
  g_autofree char *all = muster_format_size (wanted),
                  *less = muster_format_size (wanted - info.size);
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "The data file '%s' is truncated: %s of %s are missing", path, less, all);
}

/* Reads when the checkpoint was saved, and the size of the files that are read whole. */
static void
read_index (MusterStorage *storage, const char *prefix, MusterCheckpointOverview *overview)
{
  MusterStorageInfo info;
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_autofree char *meta_graph = g_strconcat (prefix, ".meta", NULL);
  if (muster_storage_stat (storage, index, &info,
                           NULL)) { /* otherwise, loading reports what is wrong */
    overview->when_us = info.mtime_us;
    overview->bytes = info.size;
  }
  if (muster_storage_stat (storage, meta_graph, &info, NULL))
    overview->bytes += info.size;
}

/* A V1 checkpoint has its index and its values in the same files. */
static void
read_v1 (MusterStorage *storage, const char *prefix, GBytes *values,
         MusterCheckpointOverview *overview)
{
  MusterStorageInfo info;
  g_autofree char *path = muster_v1_file (prefix, 0);
  overview->bytes += g_bytes_get_size (values);
  if (muster_storage_stat (storage, path, &info, NULL))
    overview->when_us = info.mtime_us;
}

gboolean
muster_checkpoint_inspect (MusterStorage *storage, const char *prefix,
                           MusterCheckpointOverview *overview, GError **error)
{
  muster_require (error, FALSE, prefix, overview);
  storage = storage != NULL ? storage : muster_default_storage ();
  *overview = (MusterCheckpointOverview){0};
  read_index (storage, prefix, overview);
  g_autoptr (GBytes) v1 = NULL;
  g_autoptr (MusterBundleIndex) index = muster_any_index_load (storage, prefix, &v1, error);
  if (index == NULL)
    return FALSE;
  if (v1 != NULL)
    read_v1 (storage, prefix, v1, overview);
  overview->n_shards = index->n_shards;
  overview->n_tensors = index->entries->len - index->n_parts;
  g_autoptr (GHashTable) ends = ends_of_shards (index);
  for (gint32 shard = 0; v1 == NULL && shard < index->n_shards; shard++) {
    const guint64 *end = g_hash_table_lookup (ends, GINT_TO_POINTER (shard));
    if (!check_shard (storage, prefix, shard, end != NULL ? *end : 0, overview, error))
      return FALSE;
  }
  return TRUE;
}

typedef enum { AS_SAVED, CHANGED, NOT_THERE } Found;

/* Compares a file with its sum in the side file. */
static Found
compare_file (MusterStorage *storage, const char *prefix, const MusterSideFile *file)
{
  MusterStorageInfo info;
  g_autofree char *path = g_strconcat (prefix, file->name, NULL);
  if (!muster_storage_stat (storage, path, &info, NULL))
    return NOT_THERE;
  if (info.size != file->size)
    return CHANGED;
  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, NULL);
  if (bytes == NULL)
    return NOT_THERE;
  gsize size;
  const void *data = g_bytes_get_data (bytes, &size);
  return size == file->size && muster_crc32c_extend (0, data, size) == file->crc32c ? AS_SAVED
                                                                                    : CHANGED;
}

static const MusterSideFile *
find_sum (const MusterSideCheckpoint *self, const char *name)
{
  for (guint i = 0; i < self->files->len; i++) {
    const MusterSideFile *file = &g_array_index (self->files, MusterSideFile, i);
    if (file->has_crc && strcmp (file->name, name) == 0)
      return file;
  }
  return NULL;
}

gboolean
muster_checkpoint_check_meta_graph (MusterStorage *storage, const char *prefix, GError **error)
{
  muster_require (error, FALSE, prefix);
  g_autofree char *directory = g_path_get_dirname (prefix);
  storage = storage != NULL ? storage : muster_default_storage ();
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  const MusterSideCheckpoint *known =
      record != NULL ? muster_checkpoint_record_find (record, prefix) : NULL;
  const MusterSideFile *index = known != NULL ? find_sum (known, ".index") : NULL,
                       *meta = known != NULL ? find_sum (known, ".meta") : NULL;
  if (index == NULL || meta == NULL || compare_file (storage, prefix, index) != AS_SAVED ||
      compare_file (storage, prefix, meta) != CHANGED)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_DATA_LOSS,
      "The meta graph '%s.meta' was changed after the save (its checksum in '%s/%s' differs). "
      "The tensors aren't affected; use another checkpoint's meta graph, or export it again",
      prefix, directory, MUSTER_RECORD_FILE);
}
