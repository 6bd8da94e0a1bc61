// SPDX-License-Identifier: Apache-2.0
/* What all edits of checkpoints share: the store and its deadline, progress, reading back what
 * was written, the lock on the source, and files that are written as a whole. */
#include "base/error.h"
#include "checkpoint/edit/edit_work_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

MusterStorage *
muster_edit_storage (const MusterEditOptions *options)
{
  return options != NULL && options->storage != NULL ? options->storage : muster_default_storage ();
}

gboolean
muster_edit_work_begin (MusterEditWork *self, const MusterEditOptions *options,
                        MusterBundleProgress progress, gpointer user_data, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  const MusterEditOptions none = {0};
  options = options != NULL ? options : &none;
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  MusterStorage *storage = muster_edit_storage (options);
  MusterClock *clock = options->clock != NULL ? options->clock : muster_system_clock ();
  *self = (MusterEditWork){.plain = g_object_ref (storage),
                           .clock = g_object_ref (clock),
                           .began_us = muster_clock_now_us (clock),
                           .deadline_us = deadline_us,
                           .cancellable = cancellable,
                           .progress = progress,
                           .user_data = user_data};
  self->storage = muster_storage_bound (storage, deadline_us, clock, cancellable);
  return muster_edit_work_advance (self, 0, error);
}

void
muster_edit_work_clear (MusterEditWork *self)
{
  g_clear_object (&self->storage);
  g_clear_object (&self->plain);
  g_clear_object (&self->clock);
}

gboolean
muster_edit_work_advance (MusterEditWork *self, guint64 bytes, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  if (self->deadline_us != MUSTER_WAIT_FOREVER &&
      muster_clock_now_us (self->clock) >= self->deadline_us)
    return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "not done in time: %u %% was done",
                        self->total > 0 ? (guint)(100.0 * (double)self->done / (double)self->total)
                                        : 0);
  self->done += bytes;
  if (self->progress != NULL && bytes > 0)
    self->progress (self->done, MAX (self->total, self->done), self->user_data);
  return TRUE;
}

/* A running verification, whose progress comes from other threads, one at a time. */
typedef struct {
  MusterEditWork *work;
  guint64 before;
  GCancellable *cancellable; /* (owned) cancelled at the deadline */
} Reading;

static void
note_read (guint64 done, guint64 total G_GNUC_UNUSED, gpointer user_data)
{
  Reading *self = user_data;
  MusterEditWork *work = self->work;
  work->done = self->before + done;
  if (work->progress != NULL)
    work->progress (work->done, MAX (work->total, work->done), work->user_data);
  if (work->deadline_us != MUSTER_WAIT_FOREVER &&
      muster_clock_now_us (work->clock) >= work->deadline_us)
    g_cancellable_cancel (self->cancellable);
}

static void
pass_on (GCancellable *cancelled G_GNUC_UNUSED, gpointer user_data)
{
  g_cancellable_cancel (user_data);
}

gboolean
muster_edit_work_verify (MusterEditWork *self, const char *prefix, GError **error)
{
  g_autoptr (GCancellable) ends = g_cancellable_new ();
  g_autoptr (GError) why = NULL;
  Reading reading = {.work = self, .before = self->done, .cancellable = ends};
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (self->storage, prefix, error);
  if (reader == NULL)
    return FALSE;
  const gulong link =
      self->cancellable != NULL
          ? g_cancellable_connect (self->cancellable, G_CALLBACK (pass_on), ends, NULL)
          : 0;
  const gboolean is_whole = muster_bundle_reader_verify (reader, note_read, &reading, ends, &why);
  g_cancellable_disconnect (self->cancellable, link);
  if (is_whole)
    return TRUE;
  if (!g_error_matches (why, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
      muster_edit_work_advance (self, 0, error))
    g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

MusterStorageLock *
muster_edit_lock_source (MusterEditWork *self, const char *prefix)
{
  g_autofree char *index = muster_bundle_index_path (prefix);
  return muster_storage_lock (self->plain, index, MUSTER_LOCK_SHARED, NULL);
}

gboolean
muster_edit_reads_back (const MusterEditWork *self, const MusterEditOptions *options,
                        const char *path)
{
  return (options != NULL && options->reads_back) ||
         muster_storage_can_rename (self->storage, path);
}

void
muster_edit_report (const MusterEditWork *work, const MusterEditReport *made,
                    MusterEditReport *report)
{
  if (report == NULL)
    return;
  *report = *made;
  report->took_us = muster_clock_now_us (work->clock) - work->began_us;
}

/* --- one file that is written --- */

gboolean
muster_edit_file_begin (MusterEditFile *self, MusterEditWork *work, const char *path, guint64 size,
                        GError **error)
{
  *self = (MusterEditFile){.work = work, .path = g_strdup (path)};
  self->file = muster_storage_create (work->storage, path, error);
  return self->file != NULL &&
         (size == 0 || muster_storage_reserve (work->storage, self->file, size, error));
}

gboolean
muster_edit_file_append (MusterEditFile *self, const void *data, gsize size, GError **error)
{
  return muster_storage_append (self->work->storage, self->file, data, size, error);
}

gboolean
muster_edit_file_end (MusterEditFile *self, GError **error)
{
  MusterStorage *storage = self->work->storage;
  if (!muster_storage_sync (storage, self->file, error))
    return FALSE;
  if (muster_storage_close (storage, g_steal_pointer (&self->file), error))
    return TRUE;
  muster_storage_remove_quietly (self->work->plain, self->path);
  return FALSE;
}

void
muster_edit_file_clear (MusterEditFile *self)
{
  if (self->file != NULL) {
    muster_storage_abandon (self->work->plain, self->file);
    if (muster_storage_can_rename (self->work->plain, self->path))
      muster_storage_remove_quietly (self->work->plain, self->path);
  }
  self->file = NULL;
  g_clear_pointer (&self->path, g_free);
}

gboolean
muster_edit_write (MusterEditWork *work, const char *path, GBytes *bytes, GError **error)
{
  g_auto (MusterEditFile) file = {0};
  gsize size;
  const void *data = g_bytes_get_data (bytes, &size);
  return muster_edit_file_begin (&file, work, path, size, error) &&
         muster_edit_file_append (&file, data, size, error) && muster_edit_file_end (&file, error);
}
