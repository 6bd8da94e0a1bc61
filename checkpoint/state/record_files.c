// SPDX-License-Identifier: Apache-2.0
/* What the side file says of a checkpoint's files. */
#include "checkpoint/format/bundle_index.h"
#include "checkpoint/format/crc32c.h"
#include "checkpoint/state/checkpoint_record.h"

#include <string.h>

static gboolean
add_file (MusterSideCheckpoint *self, MusterStorage *storage, const char *prefix, const char *path,
          gboolean summed, GError **error)
{
  MusterStorageInfo info;

  if (!muster_storage_stat (storage, path, &info, error))
    return FALSE;
  self->bytes += info.size;
  if (!summed) {
    muster_side_checkpoint_add_file (self, path + strlen (prefix), info.size, NULL);
    return TRUE;
  }
  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, error);
  if (bytes == NULL)
    return FALSE;
  guint32 crc = muster_crc32c_extend (0, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  muster_side_checkpoint_add_file (self, path + strlen (prefix), g_bytes_get_size (bytes), &crc);
  return TRUE;
}

/* Index and meta graph have no checksum of the whole of their own; data files have their tensors'.
 */
gboolean
muster_side_checkpoint_describe (MusterSideCheckpoint *self, MusterStorage *storage,
                                 const char *prefix, gboolean has_meta_graph, GError **error)
{
  g_autofree char *index_path = muster_bundle_index_path (prefix);
  g_autofree char *meta = g_strconcat (prefix, ".meta", NULL);
  gint32 n_shards;

  g_array_set_size (self->files, 0);
  self->bytes = 0;
  if (!muster_bundle_index_count_shards (storage, prefix, &n_shards, error) ||
      !add_file (self, storage, prefix, index_path, TRUE, error))
    return FALSE;
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, i, n_shards);
    if (!add_file (self, storage, prefix, path, FALSE, error))
      return FALSE;
  }
  return !has_meta_graph || add_file (self, storage, prefix, meta, TRUE, error);
}
