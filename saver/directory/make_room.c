// SPDX-License-Identifier: Apache-2.0
/* Makes room for a checkpoint in a directory that is full: checkpoints that the rules give up
 * with the next save are removed before it. The newest whole one stays, and so do the latest, the
 * one that the run was restored from until it has saved, and those that are being read. As after a
 * save, state and record are written first. On a disk without a free byte they can only be written
 * after the removal; until then they name a checkpoint that is gone, but also the latest, which
 * exists. */
#include "base/log_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/state/checkpoint_removal_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "saver/directory/free_space_private.h"
#include "saver/directory/retention_private.h"

#include <string.h>

/* Timeout for the directory's lock. */
#define LOCK_US (30 * MUSTER_SECOND)

typedef struct {
  MusterCheckpointDirectory *owner;
  const MusterSpaceCheck *space;
  guint64 bytes;           /* the size that is needed */
  char *whole;             /* (owned) (nullable) the newest checkpoint that was found whole */
  MusterStorageLock *held; /* (owned) (nullable) a reader's lock on that checkpoint */
} Room;

static void
room_clear (Room *self)
{
  g_free (self->whole);
  muster_storage_unlock (self->owner->storage, self->held);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Room, room_clear)

static guint64
free_bytes (const Room *self)
{
  return muster_free_space_look (self->owner->storage, self->space->directory);
}

/* --- what may go --- */

static guint64
file_size (MusterStorage *storage, const char *path)
{
  MusterStorageInfo info;
  return muster_storage_stat (storage, path, &info, NULL) ? info.size : 0;
}

/* Returns what the removal of a checkpoint frees. Of one in the old format (V1), which another
 * program wrote, nothing is removed. */
static guint64
size_of (MusterStorage *storage, const char *prefix)
{
  gint32 n_shards = 0;
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_autofree char *meta = muster_checkpoint_meta_path (prefix);
  guint64 bytes = file_size (storage, index);
  if (bytes == 0)
    return 0;
  bytes += file_size (storage, meta);
  (void)muster_bundle_index_count_shards (storage, prefix, &n_shards, NULL);
  for (gint32 i = 0; i < n_shards; i++) {
    g_autofree char *data = muster_bundle_data_path (prefix, i, n_shards);
    bytes += file_size (storage, data);
  }
  return bytes;
}

static gboolean
is_spare (const Room *self, MusterStorage *storage, const MusterCheckpointRecord *record,
          const MusterCheckpointState *state, const char *prefix)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *latest = g_path_get_basename (state->latest);

  return strcmp (directory, self->space->directory) == 0 && strcmp (name, latest) != 0 &&
         g_strcmp0 (name, record->life) != 0 && g_strcmp0 (name, self->space->restored) != 0 &&
         g_strcmp0 (prefix, self->whole) != 0 && !muster_checkpoint_is_read (storage, prefix) &&
         size_of (storage, prefix) > 0;
}

/* Returns the checkpoints that may go, oldest first (transfer full) (element-type utf8). */
static GPtrArray *
find_spare (const Room *self, MusterStorage *storage, MusterCheckpointRecord *record,
            const MusterCheckpointState *state)
{
  MusterCheckpointDirectory *owner = self->owner;
  const MusterNewCheckpoint *made = self->space->made;
  g_auto (MusterRetentionChange) change = {0};
  GPtrArray *spare = g_ptr_array_new_with_free_func (g_free);
  muster_retention_change_init (&change);
  change.storage = storage;
  muster_retention_list_with (owner, made->prefix, muster_checkpoint_directory_now (owner),
                              &change);
  muster_retention_decide (owner, record, made, &change);
  for (guint i = 0; i < change.leaving->len; i++)
    if (is_spare (self, storage, record, state, change.leaving->pdata[i]))
      g_ptr_array_add (spare, g_strdup (change.leaving->pdata[i]));
  return spare;
}

/* Returns FALSE if all of them together aren't enough: then nothing is removed. */
static gboolean
is_enough (const Room *self, MusterStorage *storage, const GPtrArray *spare)
{
  guint64 bytes = free_bytes (self);
  for (guint i = 0; i < spare->len && bytes < self->bytes; i++)
    bytes += size_of (storage, spare->pdata[i]);
  return spare->len > 0 && bytes >= self->bytes;
}

/* Reads checkpoints, which may take long, until one is whole. A lock keeps that one from then
 * on. */
static gboolean
find_whole (Room *self, MusterStorage *storage)
{
  g_auto (GStrv) list = muster_checkpoint_directory_list (self->owner);
  for (guint i = g_strv_length (list); i-- > 0 && self->whole == NULL;) {
    g_autofree char *index = muster_bundle_index_path (list[i]);
    self->held = muster_storage_lock (storage, index, MUSTER_LOCK_SHARED, NULL);
    g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, list[i], NULL);
    if (reader != NULL &&
        muster_bundle_reader_verify (reader, NULL, NULL, self->space->cancellable, NULL)) {
      self->whole = g_strdup (list[i]);
    } else {
      muster_storage_unlock (storage, self->held);
      self->held = NULL;
    }
  }
  return self->whole != NULL;
}

/* --- it goes --- */

static void
forget (MusterCheckpointDirectory *self, const char *prefix)
{
  g_mutex_lock (&self->lock);
  for (guint i = self->kept->len; i-- > 0;)
    if (strcmp (((const MusterKept *)self->kept->pdata[i])->prefix, prefix) == 0)
      g_ptr_array_remove_index (self->kept, i);
  g_mutex_unlock (&self->lock);
}

/* Returns FALSE unless the record could be written, or the disk is full (is_full). */
static gboolean
note (const Room *self, MusterStorage *storage, MusterCheckpointRecord *record,
      MusterCheckpointState *state, gboolean *is_full)
{
  const char *directory = self->space->directory;
  g_autoptr (GError) why = NULL;
  if (muster_checkpoint_state_write_named (storage, directory, self->owner->latest_filename, state,
                                           &why) &&
      muster_checkpoint_record_write (storage, directory, record, &why))
    return TRUE;
  *is_full = muster_storage_failure_is_full (why);
  return *is_full;
}

static gboolean
remove_one (const Room *self, MusterStorage *storage, MusterCheckpointRecord *record,
            MusterCheckpointState *state, const char *prefix)
{
  MusterCheckpointDirectory *owner = self->owner;
  MusterSideCheckpoint *one = muster_checkpoint_record_find (record, prefix);
  g_autoptr (GPtrArray) leaving = g_ptr_array_new ();
  gboolean is_full = FALSE, is_still_full = FALSE;
  muster_checkpoint_state_forget (state, prefix);
  if (one != NULL)
    one->pending_delete = TRUE;
  if (!note (self, storage, record, state, &is_full))
    return FALSE;
  forget (owner, prefix);
  g_ptr_array_add (leaving, (gpointer)prefix);
  if (muster_retention_remove (owner, storage, leaving, NULL) == 0)
    return FALSE;
  if (is_full) /* if this fails, the save's own record counts */
    (void)note (self, storage, record, state, &is_still_full);
  muster_log (G_LOG_LEVEL_MESSAGE, "retention", "MESSAGE",
              "'%s' was removed to make room for '%s': there isn't enough free space for both",
              prefix, self->space->made->prefix);
  return TRUE;
}

static MusterCheckpointState *
read_state (const Room *self, MusterStorage *storage)
{
  MusterCheckpointDirectory *owner = self->owner;
  MusterCheckpointState *state = muster_checkpoint_state_read_named (
      storage, self->space->directory, owner->latest_filename, NULL);
  if (state != NULL)
    state->absolute_paths = owner->absolute_paths;
  return state;
}

static gboolean
has_pending (MusterCheckpointDirectory *self)
{
  g_mutex_lock (&self->lock);
  const gboolean has_any = self->pending_deletes->len > 0;
  g_mutex_unlock (&self->lock);
  return has_any;
}

/* Returns TRUE if anything may be removed at all, before a checkpoint is read for it. */
static gboolean
is_worth_it (const Room *self, MusterStorage *storage)
{
  g_autoptr (MusterCheckpointState) state = read_state (self, storage);
  g_autoptr (MusterCheckpointRecord) record =
      state != NULL ? muster_checkpoint_record_read (storage, self->space->directory, NULL) : NULL;
  g_autoptr (GPtrArray) spare =
      record != NULL ? find_spare (self, storage, record, state) : g_ptr_array_new ();
  return has_pending (self->owner) || is_enough (self, storage, spare);
}

/* Removes under the directory's lock, as a save publishes, by a chief that holds the directory.
 * */
static gboolean
remove_spare (const Room *self, const MusterDirectoryLock *lock)
{
  MusterStorage *storage = muster_directory_lock_storage (lock);
  gboolean changed = FALSE;
  g_autoptr (GPtrArray) none = g_ptr_array_new ();
  g_autoptr (MusterCheckpointState) state = read_state (self, storage);
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_directory_read_claimed (
      self->owner, self->space->lease, lock, self->space->directory, &changed, NULL);
  if (state == NULL || record == NULL)
    return FALSE;
  gboolean has_removed = muster_retention_remove (self->owner, storage, none, NULL) > 0;
  g_autoptr (GPtrArray) spare = find_spare (self, storage, record, state);
  if (!is_enough (self, storage, spare))
    return has_removed;
  for (guint i = 0; i < spare->len && (!has_removed || free_bytes (self) < self->bytes); i++)
    has_removed = remove_one (self, storage, record, state, spare->pdata[i]) || has_removed;
  return has_removed;
}

gboolean
muster_checkpoint_directory_make_room (MusterCheckpointDirectory *self,
                                       const MusterSpaceCheck *space, guint64 bytes)
{
  g_auto (Room) room = {.owner = self, .space = space, .bytes = bytes};
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, space->deadline_us, self->clock, space->cancellable);
  const gint64 lock_us = muster_deadline_after (muster_clock_now_us (self->clock), LOCK_US);

  if (space->made->is_unlisted || !is_worth_it (&room, storage) || !find_whole (&room, storage))
    return FALSE;
  g_mutex_lock (&self->publishing);
  MusterDirectoryLock *lock =
      muster_directory_lock (self->storage, space->directory, MIN (space->deadline_us, lock_us),
                             self->clock, space->cancellable, NULL);
  const gboolean has_removed = lock != NULL && remove_spare (&room, lock);
  muster_directory_unlock (lock);
  g_mutex_unlock (&self->publishing);
  return has_removed;
}
