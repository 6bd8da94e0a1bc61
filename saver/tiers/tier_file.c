// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "checkpoint/format/bundle_index.h"
#include "checkpoint/format/bundle_place.h"
#include "checkpoint/format/bundle_reader.h"
#include "saver/tiers/tiers_private.h"

/* Small enough that a cancelled copy ends soon, and that a copy takes no noticeable memory. */
#define CHUNK (1u << 20)

/* The names of a checkpoint's files; those that a reader needs, and no others. */
static char **
files_of (MusterStorage *storage, const char *prefix, GError **error)
{
  gint32 n_shards;
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  if (!muster_bundle_index_count_shards (storage, prefix, &n_shards, error))
    return NULL;
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_strv_builder_add (builder, index);
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *data = muster_bundle_data_path (prefix, i, n_shards);
    g_strv_builder_add (builder, data);
  }
  return g_strv_builder_end (builder);
}

gboolean
muster_tier_measure (MusterStorage *storage, const char *prefix, guint64 *bytes, GError **error)
{
  g_auto (GStrv) files = files_of (storage, prefix, error);
  guint64 sum = 0;

  for (char **file = files; file != NULL && *file != NULL; file++) {
    MusterStorageInfo info;
    if (!muster_storage_stat (storage, *file, &info, error))
      return FALSE;
    sum += info.size;
  }
  if (files != NULL)
    *bytes = sum;
  return files != NULL;
}

/* One file on its way. */
typedef struct {
  MusterStorage *storage;
  MusterStorageInput *input; /* (owned) (nullable) */
  MusterStorageFile *file;   /* (owned) (nullable) */
  guint64 size;
  gboolean is_source; /* reading is what failed */
  GCancellable *cancellable;
} Copy;

static void
copy_clear (Copy *self)
{
  muster_storage_close_input (self->storage, self->input);
  if (self->file != NULL)
    muster_storage_abandon (self->storage, self->file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Copy, copy_clear)

static gboolean
open_both (Copy *self, const char *from, const char *to, GError **error)
{
  self->input = muster_storage_open (self->storage, from, &self->size, error);
  if (self->input == NULL) {
    self->is_source = TRUE;
    return FALSE;
  }
  self->file = muster_storage_create (self->storage, to, error);
  return self->file != NULL &&
         (self->size == 0 || muster_storage_reserve (self->storage, self->file, self->size, error));
}

static gboolean
copy_bytes (Copy *self, GError **error)
{
  g_autofree char *buffer = g_malloc (CHUNK);

  for (guint64 at = 0; at < self->size;) {
    if (g_cancellable_set_error_if_cancelled (self->cancellable, error))
      return FALSE;
    const gssize n = muster_storage_read_at (self->storage, self->input, at, buffer,
                                             (gsize)MIN (self->size - at, CHUNK), error);
    self->is_source = n <= 0;
    if (n == 0)
      return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "the file became shorter");
    if (n < 0 || !muster_storage_append (self->storage, self->file, buffer, (gsize)n, error))
      return FALSE;
    at += (guint64)n;
  }
  return TRUE;
}

static gboolean
copy_file (MusterStorage *storage, const char *from, const char *to, gboolean *is_source,
           GCancellable *cancellable, GError **error)
{
  g_auto (Copy) copy = {.storage = storage, .cancellable = cancellable};

  if (!open_both (&copy, from, to, error) || !copy_bytes (&copy, error)) {
    *is_source = copy.is_source;
    return FALSE;
  }
  return muster_storage_sync (storage, copy.file, error) &&
         muster_storage_close (storage, g_steal_pointer (&copy.file), error);
}

static gboolean
verify (MusterStorage *storage, const char *prefix, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, error);
  return reader != NULL && muster_bundle_reader_verify (reader, NULL, NULL, cancellable, error);
}

/* *n_placed: those whose names are this copy's now. */
static gboolean
place_data (MusterStorage *storage, const char *to, char **data, gint32 n_shards, gint32 *n_placed,
            gboolean *is_source, GCancellable *cancellable, GError **error)
{
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *target = muster_bundle_data_path (to, i, n_shards);
    if (!(*data != NULL ? copy_file (storage, *data++, target, is_source, cancellable, error)
                        : muster_storage_replace (storage, target, NULL, 0, "", NULL, error)))
      return FALSE;
    *n_placed = i + 1;
  }
  return TRUE;
}

static gboolean
place_index (MusterStorage *storage, const char *from, const char *to, gint32 n_shards,
             gboolean *is_source, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (to);
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_load (storage, from, error);

  *is_source = index == NULL;
  if (index == NULL)
    return FALSE;
  index->n_shards = n_shards;
  g_autoptr (GBytes) bytes = muster_bundle_index_save (index, error);
  return bytes != NULL && muster_storage_replace (storage, path, g_bytes_get_data (bytes, NULL),
                                                  g_bytes_get_size (bytes), "", NULL, error);
}

/* Into a store that can't rename: data files get free names, which the index then says. */
static gboolean
place_files (MusterStorage *storage, const char *from, const char *to, char **files,
             gboolean *is_source, GCancellable *cancellable, GError **error)
{
  gint32 n_placed = 0;
  const gint32 n_shards =
      muster_bundle_free_number (storage, to, (gint32)g_strv_length (files) - 1, error);

  if (n_shards > 0 &&
      place_data (storage, to, files + 1, n_shards, &n_placed, is_source, cancellable, error) &&
      place_index (storage, from, to, n_shards, is_source, error))
    return TRUE;
  muster_bundle_remove_data (storage, to, n_placed, n_shards);
  return FALSE;
}

static gboolean
copy_each (MusterStorage *storage, const char *from, const char *to, char **files,
           gboolean *is_source, GCancellable *cancellable, GError **error)
{
  for (char **file = files; *file != NULL; file++) {
    g_autofree char *target = g_strconcat (to, *file + strlen (from), NULL);
    if (!copy_file (storage, *file, target, is_source, cancellable, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_tier_copy_files (MusterStorage *storage, const char *from, const char *to,
                        gboolean *is_source, GCancellable *cancellable, GError **error)
{
  *is_source = TRUE;
  g_auto (GStrv) files = files_of (storage, from, error);

  if (files == NULL)
    return FALSE;
  *is_source = FALSE;
  if (!(muster_storage_can_rename (storage, to)
            ? copy_each (storage, from, to, files, is_source, cancellable, error)
            : place_files (storage, from, to, files, is_source, cancellable, error)))
    return FALSE;
  if (verify (storage, to, cancellable, error))
    return TRUE;
  *is_source = !g_cancellable_is_cancelled (cancellable) &&
               !verify (storage, from, cancellable, NULL) &&
               !g_cancellable_is_cancelled (cancellable);
  return FALSE;
}
