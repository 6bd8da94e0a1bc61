// SPDX-License-Identifier: Apache-2.0
/* Writes the variables of a checkpoint that match patterns to NumPy files. All names are decided
 * before a file is written, and all files are written before any appears. */
#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/edit/selection_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/store/storage_private.h"
#include "graph/npy.h"

#include <string.h>

/* Number of bfloat16 that are converted to float at a time. */
#define BLOCK ((gsize)64 * 1024)

/* One .npy file. In a file system it has a temporary name until all are written. */
typedef struct {
  char *path;      /* (owned) */
  char *temporary; /* (owned) (nullable) */
  gboolean is_written;
} Output;

typedef struct {
  MusterEditWork work;
  MusterStoredReader reader;
  MusterBundleReader *bundle; /* (owned) (nullable) joins slices */
  const char *from;
  GArray *selected; /* (owned) (nullable) */
  GArray *outputs;  /* (owned) (element-type Output) */
  guint n_skipped;
  guint64 bytes;
  gboolean is_done;
} Extract;

static void
output_clear (gpointer data)
{
  Output *self = data;
  g_free (self->path);
  g_free (self->temporary);
}

static void
extract_clear (Extract *self)
{
  g_autoptr (MusterStorage) own =
      self->work.plain != NULL ? muster_storage_for_cleanup (self->work.plain) : NULL;
  for (guint i = 0; !self->is_done && self->outputs != NULL && i < self->outputs->len; i++) {
    const Output *output = &g_array_index (self->outputs, Output, i);
    if (output->is_written)
      (void)muster_storage_remove (
          own, output->temporary != NULL ? output->temporary : output->path, NULL);
  }
  g_clear_pointer (&self->outputs, g_array_unref);
  g_clear_pointer (&self->selected, g_array_unref);
  g_clear_pointer (&self->bundle, muster_bundle_reader_unref);
  muster_stored_reader_clear (&self->reader);
  muster_edit_work_clear (&self->work);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Extract, extract_clear)

/* Refuses a name that leads out of the directory: a name in a checkpoint may be anything. */
static gboolean
check_name (const char *name, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (name, "/", -1);
  for (char **part = parts; *part != NULL; part++)
    if (**part == '\0' || strcmp (*part, ".") == 0 || strcmp (*part, "..") == 0)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "the variable '%s' has no name for a file; extract it alone, to a name "
                          "that ends in .npy",
                          name);
  return TRUE;
}

static gboolean
check_dtype (const MusterSelected *one, GError **error)
{
  const MusterDType dtype = one->entry->entry.dtype;
  g_autoptr (GBytes) header =
      dtype != MUSTER_BFLOAT16 ? muster_npy_header (dtype, 0, NULL, error) : NULL;
  if (dtype == MUSTER_BFLOAT16 || header != NULL)
    return TRUE;
  g_prefix_error (error, "the variable '%s' can only be extracted to a checkpoint: ", one->name);
  return FALSE;
}

/* Drops variables that only a pattern matches and NumPy can't hold, such as the description of
 * an object-based checkpoint. FALSE if nothing is left, or if such a variable was requested by
 * name. */
static gboolean
drop_unfit (Extract *self, GError **error)
{
  g_autoptr (GError) why = NULL;
  for (guint i = self->selected->len; i-- > 0;) {
    const MusterSelected *one = &g_array_index (self->selected, MusterSelected, i);
    GError **reason = one->is_named || self->selected->len == 1 ? error : &why;
    if (check_dtype (one, reason))
      continue;
    if (reason == error)
      return FALSE;
    g_clear_error (&why);
    g_array_remove_index (self->selected, i);
    self->n_skipped++;
  }
  return TRUE;
}

static gboolean
check_absent (const Extract *self, const char *path, const MusterEditOptions *options,
              GError **error)
{
  MusterStorageInfo info;
  if (!muster_storage_stat (self->work.storage, path, &info, NULL))
    return TRUE;
  if (options != NULL && options->replaces) /* without renames, a file can't replace another */
    return muster_storage_can_rename (self->work.storage, path) ||
           muster_storage_remove (self->work.storage, path, error);
  return muster_fail (error, MUSTER_ERROR_ALREADY_EXISTS,
                      "'%s' exists; give another directory, or have it replaced", path);
}

/* Decides the names of all files before any is written. */
static gboolean
plan (Extract *self, const char *to, const MusterEditOptions *options, GError **error)
{
  const gboolean is_file = g_str_has_suffix (to, ".npy");
  if (is_file && self->selected->len > 1)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%u variables can't be one file '%s'; give a directory",
                        self->selected->len, to);
  for (guint i = 0; i < self->selected->len; i++) {
    const MusterSelected *one = &g_array_index (self->selected, MusterSelected, i);
    if (!is_file && !check_name (one->name, error))
      return FALSE;
    Output output = {.path =
                         is_file ? g_strdup (to) : g_strdup_printf ("%s/%s.npy", to, one->name)};
    if (muster_storage_can_rename (self->work.storage, output.path))
      output.temporary = muster_storage_temporary_name (output.path);
    g_array_append_val (self->outputs, output);
    if (!check_absent (self, output.path, options, error))
      return FALSE;
    self->work.total += muster_stored_size (&self->reader, one->entry);
  }
  return TRUE;
}

static gboolean
append (Extract *self, MusterEditFile *file, const void *data, gsize size, GError **error)
{
  self->bytes += size;
  return muster_edit_file_append (file, data, size, error);
}

/* Appends bfloat16 as float, since NumPy has no bfloat16. */
static gboolean
append_bfloat16 (Extract *self, MusterEditFile *file, const guint8 *bytes, gsize n, GError **error)
{
  g_autofree float *wide = g_new (float, BLOCK);
  for (gsize i = 0; i < n; i++) {
    guint16 bits;
    memcpy (&bits, bytes + i * sizeof bits, sizeof bits);
    wide[i] = muster_bfloat16_to_float (bits);
  }
  return append (self, file, wide, n * sizeof *wide, error);
}

static gboolean
append_numbers (Extract *self, MusterEditFile *file, MusterDType dtype, const guint8 *bytes,
                gsize size, GError **error)
{
  return dtype == MUSTER_BFLOAT16
             ? append_bfloat16 (self, file, bytes, size / sizeof (guint16), error)
             : append (self, file, bytes, size, error);
}

static gboolean
append_stored (Extract *self, MusterEditFile *file, const MusterIndexEntry *entry, GError **error)
{
  const guint8 *bytes;
  gsize n;
  if (!muster_stored_reader_begin (&self->reader, entry, error))
    return FALSE;
  do {
    if (!muster_stored_reader_next (&self->reader, BLOCK * sizeof (guint16), &bytes, &n, error) ||
        (n > 0 && !append_numbers (self, file, entry->entry.dtype, bytes, n, error)))
      return FALSE;
  } while (n > 0);
  return TRUE;
}

/* Joins slices in memory. */
static gboolean
append_joined (Extract *self, MusterEditFile *file, const MusterIndexEntry *whole, GError **error)
{
  const char *name = whole->entry.name;
  MusterTensor *read = NULL;
  if (self->bundle == NULL)
    self->bundle = muster_bundle_reader_open (self->work.storage, self->from, error);
  if (self->bundle == NULL || !muster_bundle_reader_read_many (self->bundle, &name, NULL, 1, &read,
                                                               self->work.cancellable, error))
    return FALSE;
  g_autoptr (MusterTensor) tensor = read;
  const guint8 *data = muster_tensor_data (tensor);
  const gsize size = muster_tensor_n_bytes (tensor);
  for (gsize at = 0; at < size;) {
    const gsize n = MIN (size - at, BLOCK * sizeof (guint16));
    if (!append_numbers (self, file, whole->entry.dtype, data + at, n, error) ||
        !muster_edit_work_advance (&self->work, n, error))
      return FALSE;
    at += n;
  }
  return TRUE;
}

static gboolean
write_output (Extract *self, guint i, GError **error)
{
  const MusterIndexEntry *entry = g_array_index (self->selected, MusterSelected, i).entry;
  const MusterBundleEntry *e = &entry->entry;
  Output *output = &g_array_index (self->outputs, Output, i);
  const char *path = output->temporary != NULL ? output->temporary : output->path;
  g_autofree char *directory = g_path_get_dirname (path);
  g_autoptr (GBytes) header = muster_npy_header (
      e->dtype == MUSTER_BFLOAT16 ? MUSTER_FLOAT : e->dtype, e->n_dims, e->dims, error);
  g_auto (MusterEditFile) file = {0};
  if (header == NULL || !muster_storage_make_directory (self->work.storage, directory, error) ||
      !muster_edit_file_begin (&file, &self->work, path, 0, error) ||
      !append (self, &file, g_bytes_get_data (header, NULL), g_bytes_get_size (header), error) ||
      !(e->is_sliced ? append_joined (self, &file, entry, error)
                     : append_stored (self, &file, entry, error)) ||
      !muster_edit_file_end (&file, error))
    return FALSE;
  output->is_written = TRUE;
  return TRUE;
}

/* Renames the files after all were written. */
static gboolean
publish (Extract *self, GError **error)
{
  MusterStorage *storage = self->work.storage;
  for (guint i = 0; i < self->outputs->len; i++) {
    Output *output = &g_array_index (self->outputs, Output, i);
    g_autofree char *directory = g_path_get_dirname (output->path);
    if (output->temporary != NULL &&
        (!muster_storage_rename (storage, output->temporary, output->path, error) ||
         !muster_storage_sync_directory (storage, directory, error)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
extract (Extract *self, const char *const *patterns, const char *to,
         const MusterEditOptions *options, GError **error)
{
  self->outputs = g_array_new (FALSE, FALSE, sizeof (Output));
  g_array_set_clear_func (self->outputs, output_clear);
  if (!muster_stored_reader_open (&self->reader, &self->work, self->from, error))
    return FALSE;
  self->selected = muster_selection_new (&self->reader, self->from, patterns, error);
  if (self->selected == NULL || !drop_unfit (self, error) || !plan (self, to, options, error))
    return FALSE;
  for (guint i = 0; i < self->selected->len; i++)
    if (!write_output (self, i, error))
      return FALSE;
  self->is_done = publish (self, error);
  return self->is_done;
}

gboolean
muster_checkpoint_extract_npy (const char *from, const char *const *patterns, const char *to,
                               const MusterEditOptions *options, MusterEditReport *report,
                               MusterBundleProgress progress, gpointer user_data,
                               gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, from, patterns, to);
  g_auto (Extract) self = {.from = from};
  MusterStorage *storage = muster_edit_storage (options);
  if (!muster_storage_check_path (storage, "checkpoint", from, error) ||
      !muster_storage_check_path (storage, "directory", to, error) ||
      !muster_edit_work_begin (&self.work, options, progress, user_data, deadline_us, cancellable,
                               error))
    return FALSE;
  if (extract (&self, patterns, to, options, error)) {
    const MusterEditReport made = {
        .n_tensors = self.selected->len, .n_skipped = self.n_skipped, .bytes = self.bytes};
    muster_edit_report (&self.work, &made, report);
    return TRUE;
  }
  g_prefix_error (error, "Extracting from the checkpoint '%s': ", from);
  return FALSE;
}
