// SPDX-License-Identifier: Apache-2.0
#include "tests/callbacks/backup_fixture.h"

#include "tests/gtest_shim.h"

#include <string.h>

#define UNTOLD_BATCHES 3

Program
program_new (MusterStorage *storage)
{
  return (Program){.storage = storage,
                   .diary = g_string_new (NULL),
                   .fails_after = -1,
                   .fails_epoch_begin = -1,
                   .fails_epoch_end = -1};
}

void
program_clear (Program *self)
{
  g_string_free (self->diary, TRUE);
}

static void G_GNUC_PRINTF (2, 3) note (Program *self, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  if (self->diary->len > 0)
    g_string_append (self->diary, ", ");
  g_string_append_vprintf (self->diary, format, arguments);
  va_end (arguments);
}

static gboolean
interrupt (GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "interrupted");
  return FALSE;
}

static gboolean
is_built (gpointer data)
{
  return !((Program *)data)->is_unbuilt;
}

static gboolean
build_optimizer (gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                 gpointer data, GError **error G_GNUC_UNUSED)
{
  ((Program *)data)->has_optimizer = TRUE;
  note (data, "build");
  return TRUE;
}

static gboolean
save (const char *prefix, gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
      gpointer data, GError **error)
{
  Program *self = data;
  g_autofree char *path = g_strconcat (prefix, ".canary", NULL);
  g_autofree char *text = g_strdup_printf ("canary %" G_GINT64_FORMAT "\n", self->canary);
  return muster_storage_publish (self->storage, path, text, strlen (text), error);
}

static gboolean
restore (const char *prefix, gint64 deadline_us G_GNUC_UNUSED,
         GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Program *self = data;
  g_autofree char *path = g_strconcat (prefix, ".canary", NULL);
  g_autoptr (GBytes) bytes = muster_storage_read (self->storage, path, error);

  if (bytes == NULL)
    return FALSE;
  g_autofree char *text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  if (!g_str_has_prefix (text, "canary ")) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "'%s' is garbage", path);
    return FALSE;
  }
  self->canary = g_ascii_strtoll (text + strlen ("canary "), NULL, 10);
  note (self, "restore");
  return TRUE;
}

MusterProgram
program_operations (Program *self)
{
  return (MusterProgram){.is_built = is_built,
                         .build_optimizer = build_optimizer,
                         .save = save,
                         .restore = restore,
                         .user_data = self};
}

static gboolean
train (const MusterFitPosition *at, gint64 n, gint64 deadline_us G_GNUC_UNUSED,
       GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Program *self = data;
  if (self->n_trained == self->fails_after)
    return interrupt (error);
  if (at->batch >= UNTOLD_BATCHES && n == 1) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE, "no more");
    return FALSE;
  }
  self->canary += n;
  self->n_trained += n;
  return TRUE;
}

static gboolean
epoch_begin (gint64 epoch, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  note (data, "begin %" G_GINT64_FORMAT, epoch);
  return epoch != ((Program *)data)->fails_epoch_begin || interrupt (error);
}

static gboolean
batch_end (gint64 epoch, gint64 batch, gint64 deadline_us G_GNUC_UNUSED,
           GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  note (data, "end %" G_GINT64_FORMAT " %" G_GINT64_FORMAT, epoch, batch);
  return TRUE;
}

static gboolean
epoch_end (gint64 epoch, gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
           gpointer data, GError **error)
{
  note (data, "epoch %" G_GINT64_FORMAT, epoch);
  return epoch != ((Program *)data)->fails_epoch_end || interrupt (error);
}

static gboolean
train_end (gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED, gpointer data,
           GError **error G_GNUC_UNUSED)
{
  note (data, "over");
  return TRUE;
}

static void
train_failed (const GError *failure G_GNUC_UNUSED, gpointer data)
{
  note (data, "failed");
}

gboolean
program_fit_with (Program *self, MusterBackup *backup, gint64 n_epochs, gint64 n_batches,
                  gint64 batches_per_call, MusterFitPosition start, GError **error)
{
  MusterFitCallback callbacks[] = {
      muster_backup_callback (backup),
      {NULL, epoch_begin, batch_end, epoch_end, train_end, train_failed, self}};
  MusterFit fit = {.train = train,
                   .user_data = self,
                   .n_epochs = n_epochs,
                   .n_batches = n_batches,
                   .batches_per_call = batches_per_call,
                   .start = start,
                   .callbacks = callbacks,
                   .n_callbacks = G_N_ELEMENTS (callbacks)};
  return muster_fit (&fit, NULL, MUSTER_WAIT_FOREVER, NULL, error);
}

gboolean
program_fit (Program *self, MusterBackupOptions options, gint64 n_epochs, gint64 n_batches,
             GError **error)
{
  options.program = program_operations (self);
  options.storage = self->storage;
  g_autoptr (MusterBackup) backup = muster_backup_new (&options, error);
  return backup != NULL &&
         program_fit_with (self, backup, n_epochs, n_batches, 0, (MusterFitPosition){0, 0}, error);
}

/* --- its directory --- */

char *
backup_directory (void)
{
  return g_build_filename (muster_test_tmpdir (), "work", "backup", NULL);
}

gboolean
backup_is_there (const char *in, const char *name)
{
  g_autofree char *path = g_build_filename (in, name, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}

void
backup_put (const char *in, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (in, name, NULL);

  MUSTER_EXPECT_TRUE (g_file_set_contents (path, text, -1, NULL));
}

char *
backup_get (const char *in, const char *name)
{
  g_autofree char *path = g_build_filename (in, name, NULL);
  char *text = NULL;

  (void)g_file_get_contents (path, &text, NULL, NULL);
  return text;
}

/* The one file of the variables that there is, as "latest-3.canary"; with several, the last. */
char *
backup_variables (const char *in)
{
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), in, NULL);
  char *found = NULL;
  for (char **file = files; file != NULL && *file != NULL; file++)
    if (g_str_has_prefix (*file, "latest-")) {
      g_free (found);
      found = g_strdup (*file);
    }
  return found;
}

/* Trains until an interruption after n batches, which stays. */
void
program_train_on_until (MusterStorage *storage, MusterBackupOptions options, gint64 n_epochs,
                        gint64 n_batches, gint64 fails_after)
{
  g_auto (Program) program = program_new (storage);
  g_autoptr (GError) error = NULL;
  program.fails_after = fails_after;
  MUSTER_EXPECT_FALSE (program_fit (&program, options, n_epochs, n_batches, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
}

void
program_train_until (MusterBackupOptions options, gint64 n_epochs, gint64 n_batches,
                     gint64 fails_after)
{
  program_train_on_until (muster_local_storage (), options, n_epochs, n_batches, fails_after);
}
