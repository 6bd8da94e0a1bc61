// SPDX-License-Identifier: Apache-2.0
/* Copies the data files of a checkpoint byte for byte. Each block is checked against the
 * tensors' checksums while it passes, so that damage isn't copied. */
#include "checkpoint/edit/copy_data_private.h"

#include "base/error.h"
#include "checkpoint/edit/span_check_private.h"
#include "checkpoint/format/bundle_pieces_private.h"

/* One data file under way. */
typedef struct {
  MusterDataCopy *copy;
  MusterBundleData *data;     /* of the source */
  const MusterDataFile *file; /* of the source */
  MusterShardCheck check;
  guint8 *buffer; /* (not owned) MUSTER_EDIT_BLOCK bytes */
} Shard;

gboolean
muster_edit_measure (MusterStorage *storage, const char *prefix, gint32 n_shards, guint64 *bytes,
                     GError **error)
{
  guint64 sum = 0;
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *path = muster_bundle_data_path (prefix, i, n_shards);
    MusterStorageInfo info;
    if (!muster_storage_stat (storage, path, &info, error))
      return FALSE;
    sum += info.size;
  }
  *bytes = sum;
  return TRUE;
}

gboolean
muster_edit_check_index (MusterBundleData *data, const MusterBundleIndex *index, const char *prefix,
                         GError **error)
{
  if (index->flaw != NULL)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                        "The checkpoint index '%s.index' is damaged: %s", prefix, index->flaw);
  for (guint i = index->n_parts; i < index->entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (index->entries, MusterIndexEntry, i);
    MusterExtent wanted[MUSTER_MAX_DIMS];
    if (!entry->entry.is_sliced)
      continue;
    muster_index_entry_box (entry, wanted);
    g_autoptr (GArray) pieces = muster_bundle_find_pieces (index, data, entry, wanted, error);
    if (pieces == NULL)
      return FALSE;
  }
  return TRUE;
}

static GArray *
sorted_spans (const MusterBundleIndex *index)
{
  GArray *spans = g_array_new (FALSE, FALSE, sizeof (MusterDataSpan));
  for (guint i = 0; i < index->entries->len; i++) {
    const MusterIndexEntry *entry = &g_array_index (index->entries, MusterIndexEntry, i);
    if (entry->entry.is_sliced)
      continue;
    const MusterDataSpan span = muster_data_span (entry, NULL);
    g_array_append_val (spans, span);
  }
  g_array_sort (spans, muster_data_span_compare);
  return spans;
}

/* Reads a file's next block and checks it. */
static gboolean
read_block (Shard *self, MusterStorageInput *input, guint64 size, gsize *n_read, GError **error)
{
  const guint64 left = size - self->check.at;
  const gssize n =
      muster_storage_read_at (self->copy->work->storage, input, self->check.at, self->buffer,
                              (gsize)MIN (left, MUSTER_EDIT_BLOCK), error);
  *n_read = (gsize)MAX (n, 0);
  if (n == 0)
    return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' became shorter while it was read",
                        self->check.path);
  if (n < 0)
    return FALSE;
  const guint64 before = self->check.at;
  if (!muster_shard_check_feed (&self->check, self->buffer, *n_read, error))
    return FALSE;
  self->check.at = before + *n_read; /* also in a file without tensors */
  return TRUE;
}

/* TRUE without an error if the target has the file already, whole and of the right length. */
static gboolean
is_there (Shard *self, const char *path, GError **error)
{
  MusterStorage *storage = self->copy->work->storage;
  const MusterShardCheck begin = self->check;
  guint64 size = 0;
  MusterStorageInput *input =
      self->check.n > 0 ? muster_storage_open (storage, path, &size, NULL) : NULL;
  gboolean is_whole = input != NULL && size == self->file->size;
  while (is_whole && self->check.at < size) {
    gsize n;
    is_whole = read_block (self, input, size, &n, NULL);
    if (!muster_edit_work_advance (self->copy->work, 0, error))
      break;
  }
  is_whole = is_whole && self->check.at == size && muster_shard_check_end (&self->check, NULL);
  muster_storage_close_input (storage, input);
  self->check = begin;
  return is_whole;
}

static gboolean
copy_blocks (Shard *self, MusterEditFile *to, GError **error)
{
  MusterDataCopy *copy = self->copy;
  while (self->check.at < self->file->size) {
    gsize n;
    copy->is_source = !read_block (self, self->file->input, self->file->size, &n, error);
    if (copy->is_source || !muster_edit_file_append (to, self->buffer, n, error) ||
        !muster_edit_work_advance (copy->work, n, error))
      return FALSE;
  }
  copy->is_source = !muster_shard_check_end (&self->check, error);
  return !copy->is_source;
}

static gboolean
copy_shard (Shard *self, gint32 number, GError **error)
{
  MusterDataCopy *copy = self->copy;
  g_autofree char *path = muster_bundle_data_path (copy->to, number, copy->n_shards);
  g_autoptr (GError) over = NULL;
  copy->bytes += self->file->size;
  if (copy->resumes && is_there (self, path, &over)) {
    copy->kept_bytes += self->file->size;
    return muster_edit_work_advance (copy->work, self->file->size, error);
  }
  if (over != NULL) {
    g_propagate_error (error, g_steal_pointer (&over));
    return FALSE;
  }
  if (copy->resumes && !muster_storage_remove (copy->work->storage, path, error))
    return FALSE; /* in an object store a file never replaces another */
  g_auto (MusterEditFile) to = {0};
  return muster_edit_file_begin (&to, copy->work, path, self->file->size, error) &&
         copy_blocks (self, &to, error) && muster_edit_file_end (&to, error);
}

/* Takes the spans of one data file; all must lie inside it. */
static gboolean
take_spans (Shard *self, const GArray *spans, gsize *next, gint32 number, GError **error)
{
  const gsize first = *next;
  self->check = (MusterShardCheck){.data = self->data, .path = self->file->path};
  for (; *next < spans->len; (*next)++) {
    const MusterDataSpan *span = &g_array_index (spans, MusterDataSpan, *next);
    if (span->shard != number)
      break;
    if (!muster_data_file_check_place (self->file, self->data, span->entry, error))
      return FALSE;
  }
  self->check.spans = &g_array_index (spans, MusterDataSpan, first);
  self->check.n = *next - first;
  return TRUE;
}

static gboolean
copy_all (MusterDataCopy *self, MusterBundleData *data, GError **error)
{
  g_autoptr (GArray) spans = sorted_spans (self->index);
  g_autofree guint8 *buffer = g_malloc (MUSTER_EDIT_BLOCK);
  gsize next = 0;
  for (gint32 i = 0; i < self->index->n_shards; i++) {
    self->is_source = TRUE;
    g_autoptr (MusterDataFile) file = muster_bundle_data_open (data, i, error);
    Shard shard = {.copy = self, .data = data, .file = file, .buffer = buffer};
    if (file == NULL || !take_spans (&shard, spans, &next, i, error))
      return FALSE;
    self->is_source = FALSE;
    if (!copy_shard (&shard, i, error))
      return FALSE;
    self->n_done = i + 1;
  }
  for (; self->n_done < self->n_shards; self->n_done++) {
    g_autofree char *path = muster_bundle_data_path (self->to, self->n_done, self->n_shards);
    g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
    if (!muster_edit_write (self->work, path, nothing, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_edit_copy_data (MusterDataCopy *self, GError **error)
{
  MusterBundleData *data =
      muster_bundle_data_new (self->work->storage, self->from, self->index->n_shards);
  self->n_shards = MAX (self->n_shards, self->index->n_shards);
  self->is_source = TRUE;
  const gboolean is_done = muster_edit_check_index (data, self->index, self->from, error) &&
                           copy_all (self, data, error);
  muster_bundle_data_free (data);
  return is_done;
}
