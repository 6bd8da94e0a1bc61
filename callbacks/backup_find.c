// SPDX-License-Identifier: Apache-2.0
#include "callbacks/backup_find_private.h"

#include "base/error.h"
#include "checkpoint/store/storage_failure.h"

#include <string.h>

static void
look_free (gpointer data)
{
  MusterBackupLook *self = data;

  g_free (self->path);
  g_clear_error (&self->failure);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackupLook, look_free)

/* What the variables' own record says is what was saved with them: metadata that say another thing
 * are those of another backup, which has the same number. */
static gboolean
check_record (MusterStorage *storage, const char *directory, const MusterBackupLook *look,
              GError **error)
{
  g_autofree char *path = muster_backup_record_path (directory, look->metadata.variables);
  MusterBackupMetadata record;

  if (!muster_backup_metadata_read (storage, path, &record, NULL) ||
      memcmp (&record, &look->metadata, sizeof record) == 0)
    return TRUE;

  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' is another backup's: by '%s' the variables were saved in epoch "
                      "%" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT,
                      look->path, path, record.epoch, look->metadata.epoch);
}

/* NULL: there is no such file. */
static MusterBackupLook *
look_at (MusterStorage *storage, const char *directory, const char *path)
{
  g_autoptr (MusterBackupLook) look = g_new0 (MusterBackupLook, 1);

  look->path = g_strdup (path);
  look->metadata.variables = -1;
  if (!muster_backup_metadata_read (storage, path, &look->metadata, &look->failure))
    return muster_storage_failure_is_absent (look->failure) ? NULL : g_steal_pointer (&look);
  look->is_gone = !muster_backup_has_variables (storage, directory, look->metadata.variables);
  if (look->is_gone) {
    g_autofree char *prefix = muster_backup_variables_prefix (directory, look->metadata.variables);
    g_set_error (&look->failure, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                 "'%s' names the variables '%s', which aren't there", path, prefix);
  } else
    (void)check_record (storage, directory, look, &look->failure);

  return g_steal_pointer (&look);
}

static gboolean
is_known (GPtrArray *looks, const MusterBackupLook *look)
{
  for (guint i = 0; i < looks->len; i++) {
    const MusterBackupLook *other = looks->pdata[i];
    const gboolean is_read = other->failure == NULL || other->is_gone;
    if (is_read && other->metadata.variables == look->metadata.variables)
      return TRUE;
  }

  return FALSE;
}

static void
add (GPtrArray *looks, MusterStorage *storage, const char *directory, const char *path)
{
  g_autoptr (MusterBackupLook) look = look_at (storage, directory, path);

  if (look != NULL && !is_known (looks, look))
    g_ptr_array_add (looks, g_steal_pointer (&look));
}

GPtrArray *
muster_backup_look (MusterStorage *storage, const char *directory)
{
  GPtrArray *looks = g_ptr_array_new_with_free_func (look_free);
  g_autofree char *newest = muster_backup_metadata_path (directory, "");
  g_autofree char *before = muster_backup_metadata_path (directory, ".bkp");
  g_autoptr (GArray) records = muster_backup_records (storage, directory);

  add (looks, storage, directory, newest);
  for (guint i = 0; i < records->len; i++) {
    g_autofree char *path =
        muster_backup_record_path (directory, g_array_index (records, gint64, i));
    add (looks, storage, directory, path);
  }
  add (looks, storage, directory, before);

  return looks;
}

char *
muster_backup_look_failures (GPtrArray *looks)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (guint i = 0; i < looks->len; i++) {
    const MusterBackupLook *look = looks->pdata[i];
    if (look->failure == NULL)
      continue;
    if (text->len > 0)
      g_string_append (text, "; ");
    if (look->metadata.variables >= 0 && !look->is_gone)
      g_string_append_printf (
          text, "'" MUSTER_BACKUP_VARIABLES "%" G_GINT64_FORMAT "': ", look->metadata.variables);
    g_string_append (text, look->failure->message);
  }

  return g_string_free (g_steal_pointer (&text), FALSE);
}
