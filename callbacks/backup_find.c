// SPDX-License-Identifier: Apache-2.0
#include "callbacks/backup_find_private.h"

#include "base/error.h"
#include "checkpoint/store/storage_failure_private.h"

#include <string.h>

static void
listed_backup_free (gpointer data)
{
  MusterListedBackup *self = data;
  g_free (self->path);
  g_clear_error (&self->failure);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterListedBackup, listed_backup_free)

/* The variables' own metadata is what was saved with them; metadata that differs belongs to another
 * backup with the same number. */
static gboolean
check_record (MusterStorage *storage, const char *directory, const MusterListedBackup *listed,
              GError **error)
{
  g_autofree char *path = muster_backup_record_path (directory, listed->metadata.variables);
  g_autoptr (GError) why = NULL;
  MusterBackupMetadata record;

  if (!muster_backup_metadata_read (storage, path, &record, &why)) {
    if (muster_storage_failure_is_damage (why))
      return TRUE; /* it isn't there, or says nothing */
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (memcmp (&record, &listed->metadata, sizeof record) == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' belongs to another backup: according to '%s' the variables were saved "
                      "in epoch %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT,
                      listed->path, path, record.epoch, listed->metadata.epoch);
}

/* Returns NULL if there is no such file. */
static MusterListedBackup *
read_backup (MusterStorage *storage, const char *directory, const char *path)
{
  g_autoptr (MusterListedBackup) listed = g_new0 (MusterListedBackup, 1);
  listed->path = g_strdup (path);
  listed->metadata.variables = -1;
  if (!muster_backup_metadata_read (storage, path, &listed->metadata, &listed->failure))
    return muster_storage_failure_is_absent (listed->failure) ? NULL : g_steal_pointer (&listed);
  listed->is_missing =
      !muster_backup_has_variables (storage, directory, listed->metadata.variables);
  if (listed->is_missing) {
    g_autofree char *prefix =
        muster_backup_variables_prefix (directory, listed->metadata.variables);
    muster_fail (&listed->failure, MUSTER_ERROR_NOT_FOUND,
                 "'%s' names the variables '%s', which don't exist", path, prefix);
  } else
    (void)check_record (storage, directory, listed, &listed->failure);
  return g_steal_pointer (&listed);
}

static gboolean
is_known (GPtrArray *backups, const MusterListedBackup *listed)
{
  for (guint i = 0; i < backups->len; i++) {
    const MusterListedBackup *other = backups->pdata[i];
    const gboolean is_read = other->failure == NULL || other->is_missing;
    if (is_read && other->metadata.variables == listed->metadata.variables)
      return TRUE;
  }
  return FALSE;
}

static void
add (GPtrArray *backups, MusterStorage *storage, const char *directory, const char *path)
{
  g_autoptr (MusterListedBackup) listed = read_backup (storage, directory, path);
  if (listed != NULL && !is_known (backups, listed))
    g_ptr_array_add (backups, g_steal_pointer (&listed));
}

GPtrArray *
muster_backup_list (MusterStorage *storage, const char *directory, GError **error)
{
  g_autoptr (GArray) records = muster_backup_records (storage, directory, error);
  if (records == NULL)
    return NULL;
  GPtrArray *backups = g_ptr_array_new_with_free_func (listed_backup_free);
  g_autofree char *newest = muster_backup_metadata_path (directory, "");
  g_autofree char *before = muster_backup_metadata_path (directory, ".bkp");

  add (backups, storage, directory, newest);
  for (guint i = 0; i < records->len; i++) {
    g_autofree char *path =
        muster_backup_record_path (directory, g_array_index (records, gint64, i));
    add (backups, storage, directory, path);
  }
  add (backups, storage, directory, before);
  return backups;
}

char *
muster_backup_list_failures (GPtrArray *backups)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < backups->len; i++) {
    const MusterListedBackup *listed = backups->pdata[i];
    if (listed->failure == NULL)
      continue;
    if (text->len > 0)
      g_string_append (text, "; ");
    if (listed->metadata.variables >= 0 && !listed->is_missing)
      g_string_append_printf (
          text, "'" MUSTER_BACKUP_VARIABLES "%" G_GINT64_FORMAT "': ", listed->metadata.variables);
    g_string_append (text, listed->failure->message);
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}
