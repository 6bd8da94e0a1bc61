// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/edit/copy_data_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/store/storage_private.h"
#include "saver/tiers/tiers_private.h"

gboolean
muster_tier_measure (MusterStorage *storage, const char *prefix, guint64 *bytes, GError **error)
{
  g_autofree char *index = muster_bundle_index_path (prefix);
  MusterStorageInfo info;
  guint64 data;
  gint32 n_shards;

  if (!muster_bundle_index_count_shards (storage, prefix, &n_shards, error) ||
      !muster_storage_stat (storage, index, &info, error) ||
      !muster_edit_measure (storage, prefix, n_shards, &data, error))
    return FALSE;
  *bytes = data + info.size;
  return TRUE;
}

/* Into a store that can't rename: data files get free names, and the index refers to them. */
static gboolean
place_files (MusterDataCopy *copy, MusterBundleIndex *index, GError **error)
{
  MusterStorage *storage = copy->work->storage;
  g_autofree char *path = muster_bundle_index_path (copy->to);
  g_autoptr (GBytes) file = NULL;

  copy->n_shards = muster_bundle_free_number (storage, copy->to, index->n_shards, error);
  if (copy->n_shards == 0)
    return FALSE;
  if (muster_edit_copy_data (copy, error)) {
    index->n_shards = copy->n_shards;
    file = muster_bundle_index_save (index, error);
    if (file != NULL && muster_edit_write (copy->work, path, file, error))
      return TRUE;
  }
  g_autoptr (MusterStorage) own = muster_storage_for_cleanup (copy->work->plain);
  muster_bundle_remove_data (own, copy->to, copy->n_done, copy->n_shards);
  return FALSE;
}

static gboolean
copy_files (MusterEditWork *work, const char *from, const char *to, gboolean *is_source,
            GError **error)
{
  g_autofree char *from_index = muster_bundle_index_path (from);
  g_autofree char *to_index = muster_bundle_index_path (to);

  *is_source = TRUE;
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_load (work->storage, from, error);
  g_autoptr (GBytes) file =
      index != NULL ? muster_storage_read (work->storage, from_index, error) : NULL;
  if (file == NULL)
    return FALSE;
  MusterDataCopy copy = {.work = work, .from = from, .index = index, .to = to};
  const gboolean is_copied =
      muster_storage_can_rename (work->storage, to)
          ? muster_edit_copy_data (&copy, error) && muster_edit_write (work, to_index, file, error)
          : place_files (&copy, index, error);
  *is_source = copy.is_source;
  return is_copied && muster_edit_work_verify (work, to, error);
}

gboolean
muster_tier_copy_files (MusterStorage *storage, const char *from, const char *to,
                        gboolean *is_source, GCancellable *cancellable, GError **error)
{
  const MusterEditOptions options = {.storage = storage};
  g_auto (MusterEditWork) work = {0};
  *is_source = FALSE;
  return muster_edit_work_begin (&work, &options, NULL, NULL, MUSTER_WAIT_FOREVER, cancellable,
                                 error) &&
         copy_files (&work, from, to, is_source, error);
}
