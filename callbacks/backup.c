// SPDX-License-Identifier: Apache-2.0
/* Resumes a training loop of the program's own after its last saved batch, as Keras'
 * BackupAndRestore does. A backup counts once its metadata is renamed into place. */
#include "callbacks/backup.h"

#include "base/log_private.h"
#include "base/require_private.h"
#include "callbacks/backup_find_private.h"
#include "callbacks/bounds_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

struct _MusterBackup {
  gatomicrefcount refs;
  char *directory; /* (owned) */
  MusterSaveFreq save_freq;
  gboolean is_double;
  gboolean keep;
  MusterProgram program;
  MusterSessionProgram *session_program; /* (owned) (nullable) whose program that is */
  MusterStorage *storage;                /* (owned) */
  MusterStorageLock *lock;               /* (owned) (nullable) while it trains */
  MusterBackupCounters counters;
  gint64 number;   /* the highest N that any file has, or has had */
  gint64 run;      /* of this training */
  gint64 seen_run; /* of the metadata at the start; -1: none */
};

MusterBackup *
muster_backup_new (const MusterBackupOptions *options, GError **error)
{
  if (options == NULL || options->backup_dir == NULL || !*options->backup_dir) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Empty `backup_dir` argument passed. A directory is expected");
    return NULL;
  }
  MusterStorage *storage = options->storage != NULL ? options->storage : muster_default_storage ();
  if (!muster_storage_check_path (storage, "backup directory", options->backup_dir, error) ||
      !muster_save_freq_check (&options->save_freq, error))
    return NULL;
  if (options->session_program == NULL)
    muster_require (error, NULL, options->program.save, options->program.restore);
  MusterBackup *self = g_new0 (MusterBackup, 1);
  g_atomic_ref_count_init (&self->refs);
  self->directory = g_strdup (options->backup_dir);
  self->save_freq = options->save_freq;
  self->is_double = options->double_checkpoint;
  self->keep = options->keep;
  self->program = options->program;
  if (options->session_program != NULL) {
    self->session_program = muster_session_program_ref (options->session_program);
    self->program = muster_session_program_operations (self->session_program);
  }
  self->storage = g_object_ref (storage);
  return self;
}

static void
unlock (MusterBackup *self)
{
  if (self->lock != NULL)
    muster_storage_unlock (self->storage, self->lock);
  self->lock = NULL;
}

G_DEFINE_BOXED_TYPE (MusterBackup, muster_backup, muster_backup_ref, muster_backup_free)

MusterBackup *
muster_backup_ref (MusterBackup *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_backup_free (MusterBackup *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  unlock (self);
  g_object_unref (self->storage);
  muster_session_program_free (self->session_program);
  g_free (self->directory);
  g_free (self);
}

MusterBackupCounters
muster_backup_counters (MusterBackup *self)
{
  g_return_val_if_fail (self != NULL, (MusterBackupCounters){0});
  return self->counters;
}

static MusterBounds
bounds_of (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable)
{
  return muster_bounds (self->storage, deadline_us, NULL, cancellable);
}

static gboolean
check_time (MusterBackup *self, const char *operation, const MusterBounds *bounds, GError **error)
{
  return muster_bounds_check (bounds, operation, "backup", self->directory, error);
}

/* --- coming back --- */

static gboolean
make_ready (MusterBackup *self, const MusterBounds *bounds, GError **error)
{
  const MusterProgram *program = &self->program;
  if (program->is_built != NULL && !program->is_built (program->user_data)) {
    return muster_fail (
        error, MUSTER_ERROR_FAILED_PRECONDITION,
        "There is a backup in '%s' to restore: the model must be built before you call "
        "`fit()`",
        self->directory);
  }
  return program->build_optimizer == NULL ||
         program->build_optimizer (bounds->deadline_us, bounds->cancellable, program->user_data,
                                   error);
}

/* Restores the first one that is whole. NULL with an error that isn't damage, or without one if
 * all are damaged. A backup that can't be read now isn't skipped, because the next save would
 * remove it. */
static MusterListedBackup *
restore_first (MusterBackup *self, GPtrArray *backups, const MusterBounds *bounds, GError **error)
{
  for (guint i = 0; i < backups->len; i++) {
    MusterListedBackup *listed = backups->pdata[i];
    g_autofree char *prefix =
        muster_backup_variables_prefix (self->directory, listed->metadata.variables);
    if (listed->failure == NULL &&
        self->program.restore (prefix, bounds->deadline_us, bounds->cancellable,
                               self->program.user_data, &listed->failure))
      return listed;
    if (muster_storage_failure_is_damage (listed->failure))
      continue;
    g_propagate_error (error, g_steal_pointer (&listed->failure));
    return NULL;
  }
  return NULL;
}

/* Fails with the code of the last one tried (B004.12). FALSE without an error if the variables of
 * all are missing (D004.9), or there is none. */
static gboolean
fail_for_all (MusterBackup *self, GPtrArray *backups, GError **error)
{
  const GError *last = NULL;
  g_autofree char *failures = muster_backup_list_failures (backups);

  for (guint i = 0; i < backups->len; i++) {
    const MusterListedBackup *listed = backups->pdata[i];
    if (listed->failure != NULL && !listed->is_missing)
      last = listed->failure;
  }
  if (last != NULL)
    g_set_error (error, last->domain, last->code,
                 "Restoring the backup in '%s' failed: %s; put back an undamaged backup, or remove "
                 "the directory to start again",
                 self->directory, failures);
  else if (backups->len > 0)
    muster_log (G_LOG_LEVEL_WARNING, "backup", "MESSAGE",
                "The backup in '%s': %s; nothing is restored", self->directory, failures);
  else if (self->number > 0)
    muster_log (G_LOG_LEVEL_WARNING, "backup", "MESSAGE",
                "'%s' has variables up to '" MUSTER_BACKUP_VARIABLES "%" G_GINT64_FORMAT
                "' but no metadata with the position; nothing is restored",
                self->directory, self->number);
  return FALSE;
}

/* Makes the restored backup the current one; only then does it replace the newest. */
static gboolean
promote (MusterBackup *self, MusterStorage *storage, GPtrArray *backups,
         const MusterListedBackup *used, GError **error)
{
  g_autofree char *path = muster_backup_metadata_path (self->directory, "");

  if (g_str_equal (used->path, path))
    return TRUE;
  g_autofree char *failures = muster_backup_list_failures (backups);
  muster_log (
      G_LOG_LEVEL_WARNING, "backup", "MESSAGE",
      "Restored '" MUSTER_BACKUP_VARIABLES "%" G_GINT64_FORMAT "' of the backup in '%s'%s%s",
      used->metadata.variables, self->directory,
      *failures ? "; the newest can't be restored: " : ": 'training_metadata.json' is missing",
      failures);
  return muster_backup_metadata_write (storage, path, &used->metadata, error);
}

/* Returns TRUE with *restored FALSE if there was no backup. */
static gboolean
load (MusterBackup *self, MusterBackupMetadata *metadata, gboolean *restored,
      const MusterBounds *bounds, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GPtrArray) backups = muster_backup_list (bounds->storage, self->directory, error);
  *restored = FALSE;
  if (backups == NULL)
    return FALSE;
  if (backups->len > 0 && !make_ready (self, bounds, error))
    return FALSE;
  const MusterListedBackup *used = restore_first (self, backups, bounds, &failure);
  if (backups->len > 0)
    *metadata = ((MusterListedBackup *)backups->pdata[0])->metadata;
  if (used != NULL) {
    *restored = TRUE;
    *metadata = used->metadata;
    return promote (self, bounds->storage, backups, used, error);
  }
  if (failure == NULL)
    (void)fail_for_all (self, backups, &failure);
  if (failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static MusterFitPosition
position_of (const MusterBackupMetadata *metadata, gint64 n_batches)
{
  return metadata->after_batch
             ? muster_fit_position_after (metadata->epoch, metadata->batch, n_batches)
             : (MusterFitPosition){metadata->epoch, 0};
}

gboolean
muster_backup_position (MusterBackup *self, gint64 n_batches, gboolean *found,
                        MusterFitPosition *position, GError **error)
{
  muster_require (error, FALSE, self, found, position);

  g_autoptr (MusterStorage) storage = muster_storage_bound_to_default (self->storage, NULL);
  g_autoptr (GPtrArray) backups = muster_backup_list (storage, self->directory, error);
  g_autoptr (GError) failure = NULL;
  if (backups == NULL)
    return FALSE;
  for (guint i = 0; i < backups->len; i++) {
    const MusterListedBackup *listed = backups->pdata[i];
    if (listed->failure != NULL && !muster_storage_failure_is_damage (listed->failure)) {
      g_propagate_error (error, g_error_copy (listed->failure));
      return FALSE;
    }
    if (listed->failure != NULL)
      continue;
    *found = TRUE;
    *position = position_of (&listed->metadata, n_batches);
    return TRUE;
  }
  (void)fail_for_all (self, backups, &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  *found = FALSE;
  return TRUE;
}

static gboolean
take_lock (MusterBackup *self, MusterStorage *storage, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *path = g_build_filename (self->directory, MUSTER_BACKUP_LOCK, NULL);

  if (self->lock != NULL)
    return TRUE;
  if (!muster_storage_make_directory (storage, self->directory, error))
    return FALSE;
  self->lock = muster_storage_lock (storage, path, MUSTER_LOCK_EXCLUSIVE, &failure);
  if (self->lock != NULL)
    return TRUE;
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY))
    muster_fail (
        error, MUSTER_ERROR_FAILED_PRECONDITION,
        "the backup in '%s' is in use by another run; wait until it ends, or use another directory",
        self->directory);
  else
    g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
train_begin (MusterFitPosition *start, gint64 n_batches, gint64 deadline_us,
             GCancellable *cancellable, gpointer user_data, GError **error)
{
  MusterBackup *self = user_data;
  g_auto (MusterBounds) bounds = bounds_of (self, deadline_us, cancellable);
  MusterBackupMetadata metadata = {0};
  gboolean restored;
  self->counters = (MusterBackupCounters){0};
  if (!check_time (self, "Restoring", &bounds, error) || !take_lock (self, bounds.storage, error) ||
      !muster_backup_highest (bounds.storage, self->directory, &self->number, error) ||
      !load (self, &metadata, &restored, &bounds, error))
    return FALSE;
  self->run = (gint64)(((guint64)g_random_int () << 31) ^ g_random_int ()) & G_MAXINT64;
  self->seen_run = metadata.run > 0 ? metadata.run : -1;
  if (restored)
    *start = position_of (&metadata, n_batches);
  self->counters.epoch = start->epoch;
  self->counters.n_batches = start->batch;
  return TRUE;
}

/* --- saving --- */

/* Without a lock, another training may run: in a store without locks, or after the lock was
 * lost. */
static gboolean
check_run (MusterBackup *self, MusterStorage *storage, const char *path, GError **error)
{
  MusterBackupMetadata there;
  if (!muster_backup_metadata_read (storage, path, &there, NULL) || there.run == self->run ||
      there.run == self->seen_run)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "another run has taken over '%s'",
                      path);
}

/* Keeps what the current and the previous metadata name. */
static void
tidy (MusterBackup *self, MusterStorage *storage, const char *path, const char *before)
{
  MusterBackupMetadata metadata;
  gint64 kept[2] = {-1, -1};
  if (!muster_backup_metadata_read (storage, path, &metadata, NULL))
    return;
  kept[0] = metadata.variables;
  if (muster_backup_metadata_read (storage, before, &metadata, NULL))
    kept[1] = metadata.variables;
  muster_backup_remove_variables (storage, self->directory, kept, G_N_ELEMENTS (kept));
}

static MusterBackupMetadata
metadata_now (const MusterBackup *self)
{
  const MusterBackupCounters *counters = &self->counters;
  return (MusterBackupMetadata){.epoch = counters->epoch,
                                .batch = MAX (counters->n_batches - 1, 0),
                                .after_batch = counters->n_batches > 0};
}

static gboolean
save (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_auto (MusterBounds) bounds = bounds_of (self, deadline_us, cancellable);
  MusterStorage *storage = bounds.storage;
  g_autofree char *path = muster_backup_metadata_path (self->directory, "");
  g_autofree char *before = muster_backup_metadata_path (self->directory, ".bkp");
  MusterBackupMetadata old;

  if (!check_time (self, "Saving", &bounds, error) || !check_run (self, storage, path, error) ||
      !muster_storage_make_directory (storage, self->directory, error))
    return FALSE;
  MusterBackupMetadata now = metadata_now (self);
  now.variables = ++self->number;
  now.run = self->run;
  g_autofree char *prefix = muster_backup_variables_prefix (self->directory, now.variables);
  if (!self->program.save (prefix, deadline_us, cancellable, self->program.user_data, error))
    return FALSE;
  g_autofree char *record = muster_backup_record_path (self->directory, now.variables);
  if (!muster_backup_metadata_write (storage, record, &now, error))
    return FALSE;
  if (self->is_double && muster_backup_metadata_read (storage, path, &old, NULL) &&
      !muster_backup_metadata_write (storage, before, &old, error))
    return FALSE;
  if (!muster_backup_metadata_write (storage, path, &now, error))
    return FALSE;
  self->counters.since_save = 0;
  tidy (self, storage, path, before);
  return TRUE;
}

gboolean
muster_backup_save (MusterBackup *self, gint64 deadline_us, GCancellable *cancellable,
                    GError **error)
{
  muster_require (error, FALSE, self);

  if (self->lock != NULL)
    return save (self, deadline_us, cancellable, error);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "a backup can be saved only between the start and the end of training");
}

static gboolean
epoch_begin (gint64 epoch, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
             GError **error G_GNUC_UNUSED)
{
  MusterBackup *self = user_data;
  self->counters.epoch = epoch;
  return TRUE;
}

static gboolean
batch_end (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
           gpointer user_data, GError **error)
{
  MusterBackup *self = user_data;
  MusterBackupCounters *counters = &self->counters;
  counters->epoch = epoch;
  counters->since_save += MAX (batch + 1 - counters->n_batches, 0);
  counters->n_batches = batch + 1;
  if (self->save_freq.kind != MUSTER_SAVE_EVERY_N || counters->since_save < self->save_freq.n)
    return TRUE;
  return save (self, deadline_us, cancellable, error);
}

static gboolean
epoch_end (gint64 epoch, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
           GError **error)
{
  MusterBackup *self = user_data;
  self->counters.epoch = epoch + 1;
  self->counters.n_batches = 0;
  if (self->save_freq.kind != MUSTER_SAVE_EPOCH)
    return TRUE;
  return save (self, deadline_us, cancellable, error);
}

/* --- the end --- */

static gboolean
train_end (gint64 deadline_us, GCancellable *cancellable, gpointer user_data, GError **error)
{
  MusterBackup *self = user_data;
  g_auto (MusterBounds) bounds = bounds_of (self, deadline_us, cancellable);
  gboolean is_done =
      self->keep || muster_backup_delete_files (bounds.storage, self->directory, error);
  unlock (self);
  if (!self->keep)
    muster_backup_delete_directory (bounds.storage, self->directory);
  return is_done;
}

static void
train_failed (const GError *failure G_GNUC_UNUSED, gpointer user_data)
{
  unlock (user_data);
}

MusterFitCallback
muster_backup_callback (MusterBackup *self)
{
  g_return_val_if_fail (self != NULL, (MusterFitCallback){0});
  return (MusterFitCallback){.train_begin = train_begin,
                             .epoch_begin = epoch_begin,
                             .batch_end = batch_end,
                             .epoch_end = epoch_end,
                             .train_end = train_end,
                             .train_failed = train_failed,
                             .user_data = self};
}
