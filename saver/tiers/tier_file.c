// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/edit/copy_data_private.h"
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
  const gboolean is_copied = muster_edit_copy_data (&copy, error);
  *is_source = copy.is_source;
  return is_copied && muster_edit_write (work, to_index, file, error) &&
         muster_edit_work_verify (work, to, error);
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
