// SPDX-License-Identifier: Apache-2.0
/* Reads and writes stored entries one after the other, in blocks, so that memory doesn't grow
 * with a tensor. The reader checks each entry's checksum, the writer computes it. */
#include "checkpoint/edit/stored_private.h"

#include "base/error.h"
#include "checkpoint/edit/copy_data_private.h"

#include <string.h>

/* The alignment of the writer of whole checkpoints (checkpoint/format/bundle_shards.c). */
#define ALIGN_FROM 4096
#define ALIGNMENT  64

gboolean
muster_stored_reader_open (MusterStoredReader *self, MusterEditWork *work, const char *prefix,
                           GError **error)
{
  *self = (MusterStoredReader){
      .work = work, .lock = muster_edit_lock_source (work, prefix), .shard = -1};
  self->index = muster_bundle_index_load (work->storage, prefix, error);
  if (self->index == NULL)
    return FALSE;
  self->data = muster_bundle_data_new (work->storage, prefix, self->index->n_shards);
  self->buffer = g_malloc (MUSTER_EDIT_BLOCK);
  return muster_edit_check_index (self->data, self->index, prefix, error);
}

void
muster_stored_reader_release (MusterStoredReader *self)
{
  if (self->work != NULL)
    muster_storage_unlock (self->work->plain, self->lock);
  self->lock = NULL;
}

void
muster_stored_reader_clear (MusterStoredReader *self)
{
  g_clear_pointer (&self->file, muster_data_file_unref);
  g_clear_pointer (&self->data, muster_bundle_data_free);
  g_clear_pointer (&self->index, muster_bundle_index_free);
  g_clear_pointer (&self->buffer, g_free);
  muster_stored_reader_release (self);
}

const MusterIndexEntry *
muster_stored_reader_part (MusterStoredReader *self, const MusterIndexEntry *whole, gsize i)
{
  g_autoptr (GByteArray) key = g_byte_array_new ();
  const int n_dims = whole->entry.n_dims;
  muster_slice_append_key (key, whole->entry.name, n_dims, whole->slices + i * (gsize)n_dims);
  return muster_bundle_index_find (self->index, key->data, key->len);
}

gboolean
muster_stored_reader_begin (MusterStoredReader *self, const MusterIndexEntry *entry, GError **error)
{
  if (self->file == NULL || self->shard != entry->entry.shard) {
    g_clear_pointer (&self->file, muster_data_file_unref);
    self->shard = entry->entry.shard;
    self->length = 0;
    self->file = muster_bundle_data_open (self->data, self->shard, error);
  }
  muster_span_check_begin (&self->check, entry);
  self->at = 0;
  return self->file != NULL && muster_data_file_check_place (self->file, self->data, entry, error);
}

/* Fills the buffer from an offset in the file. */
static gboolean
fill (MusterStoredReader *self, guint64 from, gsize least, GError **error)
{
  const gsize size = (gsize)MIN (self->file->size - from, MUSTER_EDIT_BLOCK);
  gsize n = 0;
  self->length = 0;
  while (n < least) {
    const gssize more = muster_storage_read_at (self->file->storage, self->file->input, from + n,
                                                self->buffer + n, size - n, error);
    if (more < 0)
      return FALSE;
    if (more == 0)
      return muster_bundle_data_damaged (self->data, self->check.entry,
                                         "is truncated: the file became shorter while it was read",
                                         error);
    n += (gsize)more;
  }
  self->start = from;
  self->length = n;
  return TRUE;
}

gboolean
muster_stored_reader_next (MusterStoredReader *self, gsize most, const guint8 **bytes, gsize *n,
                           GError **error)
{
  const MusterBundleEntry *e = &self->check.entry->entry;
  const guint64 left = (guint64)e->size - self->at, place = (guint64)e->offset + self->at;
  *n = (gsize)MIN (left, most);
  const gboolean is_buffered = place >= self->start && place - self->start + *n <= self->length;
  if (*n > 0 && !is_buffered && !fill (self, place, *n, error))
    return FALSE;
  *bytes = *n > 0 ? self->buffer + (place - self->start) : self->buffer;
  self->at += *n;
  if (!muster_span_check_feed (&self->check, *bytes, *n) ||
      (self->at == (guint64)e->size && *n == 0 && !muster_span_check_end (&self->check)))
    return muster_bundle_data_damaged (self->data, self->check.entry,
                                       "is damaged: its checksum doesn't match", error);
  return muster_edit_work_advance (self->work, *n, error);
}

gboolean
muster_stored_writer_open (MusterStoredWriter *self, MusterEditWork *work, const char *prefix,
                           GError **error)
{
  g_autofree char *path = muster_bundle_data_path (prefix, 0, 1);
  *self = (MusterStoredWriter){.work = work,
                               .prefix = prefix,
                               .index = muster_bundle_index_new (),
                               .buffer = g_malloc (MUSTER_EDIT_BLOCK)};
  return muster_edit_file_begin (&self->file, work, path, 0, error);
}

void
muster_stored_writer_clear (MusterStoredWriter *self)
{
  if (self->work != NULL)
    muster_edit_file_clear (&self->file);
  g_clear_pointer (&self->index, muster_bundle_index_free);
  g_clear_pointer (&self->buffer, g_free);
}

static gboolean
flush (MusterStoredWriter *self, GError **error)
{
  const gsize n = self->n_buffered;
  self->n_buffered = 0;
  return n == 0 || muster_edit_file_append (&self->file, self->buffer, n, error);
}

gboolean
muster_stored_writer_append (MusterStoredWriter *self, const void *data, gsize size, GError **error)
{
  const guint8 *at = data;
  while (size > 0) {
    const gsize n = MIN (size, MUSTER_EDIT_BLOCK - self->n_buffered);
    memcpy (self->buffer + self->n_buffered, at, n);
    self->n_buffered += n;
    if (self->n_buffered == MUSTER_EDIT_BLOCK && !flush (self, error))
      return FALSE;
    at += n;
    size -= n;
    self->offset += n;
  }
  return TRUE;
}

gboolean
muster_stored_writer_begin (MusterStoredWriter *self, const MusterIndexEntry *like, GError **error)
{
  static const guint8 zeros[ALIGNMENT];
  const gboolean is_aligned = !like->entry.is_sliced && like->entry.size >= ALIGN_FROM &&
                              like->entry.dtype != MUSTER_STRING;
  const gsize gap = (gsize)((ALIGNMENT - self->offset % ALIGNMENT) % ALIGNMENT);
  if (is_aligned && !muster_stored_writer_append (self, zeros, gap, error))
    return FALSE;
  MusterBundleEntry *entry = &muster_bundle_index_add (self->index, like)->entry;
  entry->shard = 0;
  entry->offset = entry->is_sliced ? 0 : (gint64)self->offset;
  return TRUE;
}

void
muster_stored_writer_end (MusterStoredWriter *self, guint32 crc32c)
{
  MusterBundleEntry *entry =
      &g_array_index (self->index->entries, MusterIndexEntry, self->index->entries->len - 1).entry;
  entry->size = (gint64)self->offset - entry->offset;
  entry->crc32c = crc32c;
  self->bytes += (guint64)entry->size;
}

gboolean
muster_stored_writer_finish (MusterStoredWriter *self, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (self->prefix);
  if (!flush (self, error) || !muster_edit_file_end (&self->file, error))
    return FALSE;
  g_autoptr (GBytes) index = muster_bundle_index_save (self->index, error);
  return index != NULL && muster_edit_write (self->work, path, index, error);
}

gboolean
muster_stored_copy (MusterStoredReader *from, const MusterIndexEntry *entry, MusterStoredWriter *to,
                    GError **error)
{
  const guint8 *bytes;
  gsize n;
  if (!muster_stored_reader_begin (from, entry, error) ||
      !muster_stored_writer_begin (to, entry, error))
    return FALSE;
  do {
    if (!muster_stored_reader_next (from, MUSTER_EDIT_BLOCK, &bytes, &n, error) ||
        !muster_stored_writer_append (to, bytes, n, error))
      return FALSE;
  } while (n > 0);
  muster_stored_writer_end (to, entry->entry.crc32c);
  return TRUE;
}

gboolean
muster_stored_copy_whole (MusterStoredReader *from, const MusterIndexEntry *whole,
                          MusterStoredWriter *to, GError **error)
{
  if (!whole->entry.is_sliced)
    return muster_stored_copy (from, whole, to, error);
  for (gsize i = 0; i < whole->n_slices; i++)
    if (!muster_stored_copy (from, muster_stored_reader_part (from, whole, i), to, error))
      return FALSE;
  return muster_stored_writer_begin (to, whole, error);
}

guint64
muster_stored_size (MusterStoredReader *self, const MusterIndexEntry *whole)
{
  guint64 bytes = 0;
  if (!whole->entry.is_sliced)
    return (guint64)whole->entry.size;
  for (gsize i = 0; i < whole->n_slices; i++)
    bytes += (guint64)muster_stored_reader_part (self, whole, i)->entry.size;
  return bytes;
}
