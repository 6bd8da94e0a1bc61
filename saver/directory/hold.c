// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "saver/directory/checkpoint_directory_private.h"

/* Which job uses a directory: its process holds a lock for as long as the job saves there.
 * Chiefs with a lease share the lock, because lease and epoch decide among them, and a new chief
 * must not wait for an old one that hangs. A job without a lease holds it alone. A store without
 * locks has none: there the newest job wins, by the side file's epoch. */

static void
keep (MusterCheckpointDirectory *self, const char *directory, MusterStorageLock *lock)
{
  g_mutex_lock (&self->lock);
  MusterStorageLock *before = g_hash_table_lookup (self->held, directory);
  g_hash_table_replace (self->held, g_strdup (directory), lock);
  g_mutex_unlock (&self->lock);
  muster_storage_unlock (self->storage, before);
}

static gboolean
refuse (MusterStorage *storage, const char *directory, GError **error)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (storage, directory, NULL);
  const char *chief = record != NULL ? record->chief : NULL;

  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "'%s' is in use: %s saves there; end that job, or use another directory",
                      directory, chief != NULL ? chief : "another job");
}

gboolean
muster_checkpoint_directory_hold (MusterCheckpointDirectory *self, MusterStorage *storage,
                                  MusterLease *lease, const char *directory, GError **error)
{
  g_autofree char *path = g_build_filename (directory, MUSTER_HOLD_FILE, NULL);
  g_autoptr (GError) failure = NULL;

  MusterStorageLock *lock = muster_storage_lock (
      storage, path, lease != NULL ? MUSTER_LOCK_PROCESS_SHARED : MUSTER_LOCK_PROCESS, &failure);
  if (lock != NULL) {
    keep (self, directory, lock);
    return TRUE;
  }
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY))
    return refuse (storage, directory, error);
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
muster_checkpoint_directory_is_held (MusterCheckpointDirectory *self, const char *directory)
{
  g_mutex_lock (&self->lock);
  const gboolean is_held = g_hash_table_contains (self->held, directory);
  g_mutex_unlock (&self->lock);
  return is_held;
}

/* Notes in the side file that the job has ended, so that the next one finds no holder in a store
 * without locks. */
static gboolean
leave (MusterCheckpointDirectory *self G_GNUC_UNUSED, MusterCheckpointRecord *record,
       gboolean *changed, gpointer data G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  g_clear_pointer (&record->chief, g_free);
  *changed = TRUE;
  return TRUE;
}

void
muster_checkpoint_directory_release (MusterCheckpointDirectory *self, const char *directory,
                                     gint64 deadline_us, GCancellable *cancellable)
{
  gpointer name, lock;
  g_mutex_lock (&self->lock);
  const gboolean is_held = g_hash_table_steal_extended (self->held, directory, &name, &lock);
  const gboolean is_alone = self->is_job && self->lease == NULL;
  g_mutex_unlock (&self->lock);
  if (is_alone && !is_held && deadline_us > 0 &&
      muster_checkpoint_directory_claimed_epoch (self, directory) != 0)
    (void)muster_checkpoint_directory_change (self, NULL, directory, leave, NULL, deadline_us,
                                              cancellable, NULL);
  if (is_held) {
    muster_storage_unlock (self->storage, lock);
    g_free (name);
  }
  if (!is_alone)
    return;
  g_mutex_lock (&self->lock);
  self->is_job = FALSE;
  g_array_set_size (self->claimed, 0);
  g_mutex_unlock (&self->lock);
}
