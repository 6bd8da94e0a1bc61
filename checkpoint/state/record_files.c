// SPDX-License-Identifier: Apache-2.0
/* What the side file records of a checkpoint's files. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_record_private.h"

#include <string.h>

#define PART ((gsize)1 << 20)

/* Sums the first size bytes of a file, in pieces, since a meta graph may be large. */
static gboolean
sum_file (MusterStorage *storage, const char *path, guint64 size, guint32 *crc, GError **error)
{
  guint64 now;
  MusterStorageInput *input = muster_storage_open (storage, path, &now, error);
  g_autofree guint8 *part = g_malloc (PART);
  gssize n = input != NULL ? 0 : -1;

  *crc = 0;
  for (guint64 at = 0; n >= 0 && at < size; at += (guint64)n) {
    n = muster_storage_read_at (storage, input, at, part, (gsize)MIN (size - at, PART), error);
    if (n == 0) {
      n = -1;
      muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' was cut off while it was read", path);
    } else if (n > 0) {
      *crc = muster_crc32c_extend (*crc, part, (gsize)n);
    }
  }
  muster_storage_close_input (storage, input);
  return n >= 0;
}

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
  guint32 crc;
  if (!sum_file (storage, path, info.size, &crc, error))
    return FALSE;
  muster_side_checkpoint_add_file (self, path + strlen (prefix), info.size, &crc);
  return TRUE;
}

/* Index and meta graph have no checksum of their own for the whole file; data files have their
 * tensors'. */
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
