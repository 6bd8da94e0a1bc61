// SPDX-License-Identifier: Apache-2.0
/* Copies a checkpoint to a directory. The files are written under a hidden name, read back,
 * published like a save, and entered into the directory's state file and side file
 * (copy_register.c). What an interrupted copy left is checked and used. */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/edit/copy_data_private.h"
#include "checkpoint/edit/copy_register_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"
#include "checkpoint/format/v1_table_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"

#include <string.h>

/* A meta graph is one protobuf message, which can't be larger. */
#define MOST_META_GRAPH ((guint64)G_MAXINT32)

typedef struct {
  MusterEditWork work;
  MusterEditTarget target;
  const MusterEditOptions *options; /* (nullable) */
  const char *from, *to;
  MusterStorageLock *reading;     /* (owned) (nullable) so that the original isn't removed */
  GBytes *index_file;             /* (owned) */
  MusterBundleIndex *index;       /* (owned) of the original */
  MusterCheckpointRecord *record; /* (owned) (nullable) of the original's directory */
  double time;
  GBytes *meta_graph; /* (owned) (nullable) */
  gboolean is_v1;     /* the original is of the old format */
  gboolean repairs;   /* the same checkpoint exists there, but is damaged */
  MusterEditReport made;
} Copy;

static void
copy_clear (Copy *self)
{
  muster_edit_target_clear (&self->target);
  if (self->reading != NULL)
    muster_storage_unlock (self->work.plain, self->reading);
  g_clear_pointer (&self->index_file, g_bytes_unref);
  g_clear_pointer (&self->index, muster_bundle_index_free);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->meta_graph, g_bytes_unref);
  muster_edit_work_clear (&self->work);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Copy, copy_clear)

static MusterStorage *
storage_of (Copy *self)
{
  return self->work.storage;
}

static gboolean
read_meta_graph (Copy *self, GError **error)
{
  g_autofree char *path = muster_checkpoint_meta_path (self->from);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;
  if (!muster_storage_stat (storage_of (self), path, &info, &why)) {
    if (muster_storage_failure_is_absent (why))
      return TRUE;
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (info.size > MOST_META_GRAPH)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "the meta graph '%s' has %" G_GUINT64_FORMAT " bytes, too many for one",
                        path, info.size);
  if (!muster_checkpoint_check_meta_graph (storage_of (self), self->from, error))
    return FALSE;
  self->meta_graph = muster_storage_read (storage_of (self), path, error);
  return self->meta_graph != NULL;
}

/* Reads a V1 checkpoint, which is written in today's format. */
static gboolean
read_v1 (Copy *self, GError **error)
{
  MusterStorage *storage = storage_of (self);
  g_autofree char *path = muster_v1_file (self->from, 0);
  g_autoptr (GBytes) data = NULL;
  MusterStorageInfo info = {0};
  self->index = muster_v1_load (storage, self->from, &data, error);
  if (self->index == NULL || !muster_storage_stat (storage, path, &info, error))
    return FALSE;
  self->made.bytes = g_bytes_get_size (data);
  self->index_file = muster_bundle_index_save (self->index, error);
  if (self->index_file == NULL)
    return FALSE;
  self->time = (double)info.mtime_us / (double)MUSTER_SECOND;
  return read_meta_graph (self, error);
}

/* Reads what is known of the original. Its side file isn't needed. */
static gboolean
read_original (Copy *self, GError **error)
{
  MusterStorage *storage = storage_of (self);
  g_autofree char *path = muster_bundle_index_path (self->from);
  g_autofree char *directory = g_path_get_dirname (self->from);
  MusterStorageInfo info = {0};
  self->reading = muster_edit_lock_source (&self->work, self->from);
  g_autoptr (GError) why = NULL;
  self->index = muster_bundle_index_load (storage, self->from, &why);
  self->is_v1 =
      muster_error_is (why, MUSTER_ERROR_NOT_FOUND) && muster_v1_is_there (storage, self->from);
  if (self->is_v1)
    return read_v1 (self, error);
  if (self->index == NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  self->index_file = muster_storage_read (storage, path, error);
  if (self->index_file == NULL || !muster_storage_stat (storage, path, &info, error))
    return FALSE;
  self->time = (double)info.mtime_us / (double)MUSTER_SECOND;
  self->record = muster_checkpoint_record_read (storage, directory, NULL);
  return read_meta_graph (self, error);
}

static gboolean
is_same_entry (const MusterIndexEntry *a, const MusterIndexEntry *b)
{
  const MusterBundleEntry *x = &a->entry, *y = &b->entry;
  return a->key_size == b->key_size && memcmp (a->key, b->key, a->key_size) == 0 &&
         x->dtype == y->dtype && x->is_sliced == y->is_sliced && x->n_dims == y->n_dims &&
         memcmp (x->dims, y->dims, (gsize)x->n_dims * sizeof *x->dims) == 0 && x->size == y->size &&
         x->crc32c == y->crc32c;
}

/* Returns TRUE for the same tensors with the same checksums, wherever they lie in their files.
 * */
static gboolean
is_same_index (const MusterBundleIndex *a, const MusterBundleIndex *b)
{
  if (a->entries->len != b->entries->len)
    return FALSE;
  for (guint i = 0; i < a->entries->len; i++)
    if (!is_same_entry (&g_array_index (a->entries, MusterIndexEntry, i),
                        &g_array_index (b->entries, MusterIndexEntry, i)))
      return FALSE;
  return TRUE;
}

/* Examines what has the copy's name: *is_there if it is the same and whole. */
static gboolean
look_at_target (Copy *self, gboolean *is_there, GError **error)
{
  g_autoptr (GError) why = NULL;
  *is_there = FALSE;
  if (!muster_checkpoint_exists (storage_of (self), self->to))
    return TRUE;
  g_autoptr (MusterBundleIndex) index =
      muster_bundle_index_load (storage_of (self), self->to, &why);
  if (index == NULL || !is_same_index (index, self->index))
    return TRUE; /* whether it may be replaced is decided later */
  self->repairs = TRUE;
  if (muster_edit_work_verify (&self->work, self->to, &why)) {
    *is_there = TRUE;
    return TRUE;
  }
  if (!muster_edit_work_advance (&self->work, 0, error))
    return FALSE;
  if (muster_storage_failure_is_damage (why))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

static guint32
id_of (const Copy *self)
{
  gsize size;
  const void *data = g_bytes_get_data (self->index_file, &size);
  return muster_crc32c_extend (0, data, size);
}

/* Removes what a copy left that died after it had published. */
static void
clear_up (Copy *self)
{
  self->target.is_published = muster_edit_target_begin (&self->target, &self->work, self->to,
                                                        id_of (self), TRUE, TRUE, NULL);
}

static gboolean
replaces (const Copy *self)
{
  return self->repairs || (self->options != NULL && self->options->replaces);
}

/* Adds each tensor, or each slice of it, as the index has it. */
static gboolean
add_stored (MusterBundleWriter *writer, MusterBundleReader *reader, const MusterIndexEntry *entry,
            GError **error)
{
  const char *name = entry->entry.name;
  const gsize n = MAX (entry->n_slices, 1);
  for (gsize i = 0; i < n; i++) {
    gint32 shard;
    g_autofree char *slice =
        entry->n_slices > 0 ? muster_bundle_reader_slice (reader, name, i, &shard) : NULL;
    g_autoptr (GString) spec = g_string_new (NULL);
    for (int d = 0; d < entry->entry.n_dims; d++)
      g_string_append_printf (spec, "%" G_GINT64_FORMAT " ", entry->entry.dims[d]);
    g_string_append (spec, slice != NULL ? slice : "");
    g_autoptr (MusterTensor) tensor = muster_bundle_reader_read_slice (reader, name, slice, error);
    if (tensor == NULL ||
        !(slice != NULL ? muster_bundle_writer_add_slice (writer, name, spec->str, tensor, error)
                        : muster_bundle_writer_add (writer, name, tensor, error)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
write_converted (Copy *self, const char *to, GError **error)
{
  MusterEditWork *work = &self->work;
  g_autoptr (MusterBundleReader) reader =
      muster_bundle_reader_open (work->storage, self->from, error);
  if (reader == NULL)
    return FALSE;
  g_autoptr (MusterBundleWriter) writer = muster_bundle_writer_new (work->storage, to, error);
  for (guint i = self->index->n_parts; writer != NULL && i < self->index->entries->len; i++)
    if (!add_stored (writer, reader, &g_array_index (self->index->entries, MusterIndexEntry, i),
                     error))
      return FALSE;
  return writer != NULL && muster_bundle_writer_finish (writer, error) &&
         muster_edit_work_verify (work, to, error);
}

/* Writes the files under their hidden name, complete and read back. */
static gboolean
copy_files (Copy *self, GError **error)
{
  MusterEditWork *work = &self->work;
  g_autofree char *index = NULL;
  if (!muster_edit_target_begin (&self->target, work, self->to, id_of (self), replaces (self), TRUE,
                                 error))
    return FALSE;
  MusterDataCopy copy = {.work = work,
                         .from = self->from,
                         .index = self->index,
                         .to = self->target.temporary,
                         .resumes = TRUE};
  index = muster_bundle_index_path (copy.to);
  if (self->is_v1)
    return write_converted (self, copy.to, error);
  if (!muster_edit_copy_data (&copy, error) ||
      !muster_storage_remove (work->storage, index, error) || /* left by an interrupted copy */
      !muster_edit_write (work, index, self->index_file, error))
    return FALSE;
  self->made.bytes = copy.bytes;
  self->made.kept_bytes = copy.kept_bytes;
  return !muster_edit_reads_back (work, self->options, self->to) ||
         muster_edit_work_verify (work, copy.to, error);
}

static gboolean
write_meta_graph (Copy *self, GError **error)
{
  if (self->meta_graph == NULL)
    return TRUE;
  g_autofree char *path = g_strconcat (self->to, ".meta", NULL);
  gsize size;
  const void *data = g_bytes_get_data (self->meta_graph, &size);
  return muster_storage_publish (storage_of (self), path, data, size, error);
}

/* A checkpoint that was there already is listed anew, as the options require. */
static gboolean
publish_once (Copy *self, const char *directory, GError **error)
{
  MusterEditWork *work = &self->work;
  const gboolean is_there = self->made.was_there || self->target.is_published;
  g_auto (MusterCopyEntry) entry = {
      .storage = work->storage,
      .directory = directory,
      .prefix = self->to,
      .latest = self->options != NULL ? self->options->latest : MUSTER_COPY_LATEST_AUTO,
      .original =
          self->record != NULL ? muster_checkpoint_record_find (self->record, self->from) : NULL,
      .time = self->time,
      .was_there = self->made.was_there};
  if (!muster_copy_entry_read (&entry, error) ||
      (!is_there && !muster_edit_target_publish (&self->target, replaces (self), error)))
    return FALSE;
  if (write_meta_graph (self, error) &&
      muster_copy_entry_write (&entry, self->meta_graph != NULL, error)) {
    self->made.is_latest = entry.becomes_latest;
    return TRUE;
  }
  g_prefix_error (error, "the copy '%s' is there, but its directory doesn't list it: ", self->to);
  return FALSE;
}

/* Publishes the copy, again if another writer was faster in a store without locks. */
static gboolean
publish (Copy *self, GError **error)
{
  MusterEditWork *work = &self->work;
  g_autofree char *directory = g_path_get_dirname (self->to);
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      work->storage, directory, work->deadline_us, work->clock, work->cancellable, error);
  for (guint n_tries = 0; lock != NULL;) {
    GError *why = NULL;
    if (publish_once (self, directory, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, work->deadline_us, work->clock, work->cancellable,
                                     why, error))
      break;
  }
  return FALSE;
}

static gboolean
copy (Copy *self, GError **error)
{
  MusterEditWork *work = &self->work;
  if (!read_original (self, error) ||
      (!self->is_v1 && !muster_edit_measure (work->storage, self->from, self->index->n_shards,
                                             &self->made.bytes, error)))
    return FALSE;
  self->made.n_tensors = self->index->entries->len - self->index->n_parts;
  work->total = self->made.bytes;
  if (!look_at_target (self, &self->made.was_there, error))
    return FALSE;
  if (self->made.was_there) {
    clear_up (self);
    return publish (self, error);
  }
  work->done = 0;
  work->total = self->made.bytes * (muster_edit_reads_back (work, self->options, self->to) ? 2 : 1);
  return copy_files (self, error) && publish (self, error);
}

gboolean
muster_checkpoint_copy (const char *from, const char *to, const MusterEditOptions *options,
                        MusterEditReport *report, MusterBundleProgress progress, gpointer user_data,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, from, to);
  if (strcmp (from, to) == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the checkpoint '%s' can't be copied to itself", from);
  g_auto (Copy) self = {.options = options, .from = from, .to = to};
  MusterStorage *storage = muster_edit_storage (options);
  if (!muster_storage_check_path (storage, "checkpoint", from, error) ||
      !muster_storage_check_path (storage, "copy", to, error) ||
      !muster_edit_work_begin (&self.work, options, progress, user_data, deadline_us, cancellable,
                               error))
    return FALSE;
  if (copy (&self, error)) {
    muster_edit_report (&self.work, &self.made, report);
    return TRUE;
  }
  g_prefix_error (error, "Copying the checkpoint '%s' to '%s': ", from, to);
  return FALSE;
}
