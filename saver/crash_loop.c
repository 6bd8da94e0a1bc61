// SPDX-License-Identifier: Apache-2.0
#include "saver/crash_loop_private.h"

#include "base/require.h"
#include "checkpoint/state/checkpoint_record.h"
#include "checkpoint/store/directory_lock.h"
#include "saver/saver_private.h"

/* How long a chief waits for another process that writes to the directory. */
#define LOCK_US (5 * MUSTER_SECOND)

/* Reads the side file, holding the directory's lock. */
static MusterCheckpointRecord *
open_record (MusterSaver *self, const char *directory, MusterDirectoryLock **lock, GError **error)
{
  gint64 deadline_us = muster_deadline_after (muster_clock_now_us (self->clock), LOCK_US);

  *lock = muster_directory_lock (self->storage, directory, deadline_us, self->clock, NULL, error);
  return *lock != NULL ? muster_checkpoint_record_read_to_write (self->storage, directory, error)
                       : NULL;
}

static gboolean
is_own_restore (MusterSaver *self, const char *directory, const char *name)
{
  g_mutex_lock (&self->lock);
  gboolean is_own =
      g_strcmp0 (self->crash_loop_directory, directory) == 0 && g_strcmp0 (self->life, name) == 0;
  g_mutex_unlock (&self->lock);
  return is_own;
}

/* NULL: none. */
static void
set_own_restore (MusterSaver *self, const char *directory, const char *name)
{
  g_mutex_lock (&self->lock);
  g_free (self->crash_loop_directory);
  g_free (self->life);
  self->crash_loop_directory = g_strdup (directory);
  self->life = g_strdup (name);
  g_mutex_unlock (&self->lock);
}

gboolean
muster_crash_loop_begin (MusterSaver *self, const char *directory, const char *prefix,
                         guint *deaths, GError **error)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autoptr (MusterDirectoryLock) lock = NULL;
  g_autoptr (MusterCheckpointRecord) record = open_record (self, directory, &lock, error);

  if (record == NULL)
    return FALSE;
  if (record->life != NULL && !is_own_restore (self, directory, record->life))
    muster_checkpoint_record_ensure (record, record->life)->deaths++;
  const MusterSideCheckpoint *known = muster_checkpoint_record_find (record, prefix);
  *deaths = known != NULL ? known->deaths : 0;
  const char *life = *deaths < MUSTER_CRASH_LOOP_LIMIT ? name : NULL;
  g_free (record->life);
  record->life = g_strdup (life);
  if (!muster_checkpoint_record_write (self->storage, directory, record, error))
    return FALSE;
  set_own_restore (self, life != NULL ? directory : NULL, life);
  return TRUE;
}

static gboolean
remove_life (MusterSaver *self, const char *directory, const char *name, gboolean is_proof,
             GError **error)
{
  g_autoptr (MusterDirectoryLock) lock = NULL;
  g_autoptr (MusterCheckpointRecord) record = open_record (self, directory, &lock, error);
  if (record == NULL)
    return FALSE;
  /* Another job may have restored from there since. */
  if (g_strcmp0 (record->life, name) != 0)
    return TRUE;
  g_clear_pointer (&record->life, g_free);
  MusterSideCheckpoint *checkpoint = muster_checkpoint_record_find (record, name);
  if (checkpoint != NULL && is_proof)
    checkpoint->deaths = 0;
  return muster_checkpoint_record_write (self->storage, directory, record, error);
}

/* Removes the record; is_proof: the checkpoint is good. */
static gboolean
end_crash_count (MusterSaver *self, gboolean is_proof, GError **error)
{
  g_mutex_lock (&self->lock);
  g_autofree char *directory = g_strdup (self->crash_loop_directory);
  g_autofree char *name = g_strdup (self->life);
  g_mutex_unlock (&self->lock);
  if (name == NULL)
    return TRUE;
  if (!remove_life (self, directory, name, is_proof, error))
    return FALSE; /* to be tried again */
  g_mutex_lock (&self->lock);
  if (g_strcmp0 (self->life, name) == 0) {
    g_clear_pointer (&self->crash_loop_directory, g_free);
    g_clear_pointer (&self->life, g_free);
  }
  g_mutex_unlock (&self->lock);
  return TRUE;
}

gboolean
muster_saver_mark_good (MusterSaver *self, GError **error)
{
  muster_require (error, FALSE, self);
  return end_crash_count (self, TRUE, error);
}

gboolean
muster_saver_clear_crash_loop (MusterSaver *self, GError **error)
{
  muster_require (error, FALSE, self);
  return end_crash_count (self, FALSE, error);
}
