// SPDX-License-Identifier: Apache-2.0
/* What a saver finds in a directory that others used before.
 * muster_checkpoint_directory_sweep_once () removes the temporary files of savers that were killed;
 * muster_checkpoint_directory_adopt () takes over the list of checkpoints, from the state file and
 * the side file, so that retention goes on where the last saver stopped. */
#include "base/error.h"
#include "base/files/local_path_private.h"
#include "base/log_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/alive_mark_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "saver/directory/checkpoint_directory_private.h"

#include <math.h>
#include <string.h>

/* Removes the temporary files of savers that were killed, found by their names. A running save
 * locks a file beside its files, and that file names the host. If the lock is held, the save is
 * running. If it can be taken on that host, the save is dead, and its files are removed at once. A
 * lock may be local to a host (NFS without a lock service, sshfs): from another host, a free lock
 * proves nothing. Files without a conclusive lock (stores without locks, other temporary files)
 * only occupy space, and are removed when they haven't changed for a day. */
#define OLD_US (24 * 3600 * MUSTER_SECOND)

/* ".saving-0123abcd-NAME", ".placing-0123abcd-NAME", and a probe's ".probe-" with its key
 * (saver/probe.c), then ".index" or
 * ".data-…". */
static const struct {
  const char *prefix;
  gsize n_id; /* hexadecimal digits */
  char after;
} temporaries[] = {{MUSTER_SAVING_PREFIX, 8, '-'},
                   {MUSTER_PLACING_PREFIX, 8, '-'},
                   {MUSTER_PROBE_PREFIX, MUSTER_PROBE_KEY_LEN, '.'}};

#define TEMPSTATE ".tempstate"
#define N_UUID    36

/* Returns the identifier in a save's file names (transfer full): ".saving-0123abcd", or a file's
 * UUID; NULL for other files. */
static char *
id_of (const char *file)
{
  const gsize size = strlen (file);
  for (gsize i = 0; i < G_N_ELEMENTS (temporaries); i++) {
    const gsize n = strlen (temporaries[i].prefix), n_id = temporaries[i].n_id;
    if (g_str_has_prefix (file, temporaries[i].prefix) && size > n + n_id &&
        strspn (file + n, "0123456789abcdef") == n_id && file[n + n_id] == temporaries[i].after)
      return g_strndup (file, n + n_id);
  }
  if (size > N_UUID + strlen (TEMPSTATE) && g_uuid_string_is_valid (file + size - N_UUID) &&
      strncmp (file + size - N_UUID - strlen (TEMPSTATE), TEMPSTATE, strlen (TEMPSTATE)) == 0)
    return g_strdup (file + size - N_UUID);
  return NULL;
}

gboolean
muster_checkpoint_directory_is_temporary (const char *name)
{
  g_autofree char *id = id_of (name);
  return id != NULL;
}

static gint64
mtime_of (MusterStorage *storage, const char *path)
{
  MusterStorageInfo info;
  return muster_storage_stat (storage, path, &info, NULL) ? info.mtime_us : G_MAXINT64;
}

/* Returns when a directory or any file in it was last changed: a save writes to the files. */
static gint64
touched_at (MusterStorage *storage, const char *path)
{
  gint64 latest_us = mtime_of (storage, path);
  g_auto (GStrv) inside = muster_storage_list (storage, path, NULL);
  for (char **one = inside; one != NULL && *one != NULL; one++) {
    g_autofree char *file = g_build_filename (path, *one, NULL);
    latest_us = MAX (latest_us, mtime_of (storage, file));
  }
  return latest_us;
}

static void
remove_left (MusterStorage *storage, const char *path)
{
  g_auto (GStrv) inside = muster_storage_list (storage, path, NULL);
  for (char **one = inside; one != NULL && *one != NULL; one++) {
    g_autofree char *file = g_build_filename (path, *one, NULL);
    (void)muster_storage_remove (storage, file, NULL);
  }
  (void)muster_storage_remove (storage, path, NULL);
}

/* One sweep of a directory. */
typedef struct {
  MusterStorage *storage; /* (not owned) */
  const char *directory;
  char **files;     /* (not owned) */
  GHashTable *live; /* (owned) (element-type utf8) ids */
  GHashTable *dead; /* (owned) (element-type utf8) ids */
  GPtrArray *locks; /* (owned) (element-type MusterStorageLock) of the dead */
  gboolean has_locks;
  gint64 now_us;
} Sweep;

static void
sweep_clear (Sweep *self)
{
  g_clear_pointer (&self->live, g_hash_table_unref);
  g_clear_pointer (&self->dead, g_hash_table_unref);
  for (guint i = 0; self->locks != NULL && i < self->locks->len; i++)
    muster_storage_unlock (self->storage, self->locks->pdata[i]);
  g_clear_pointer (&self->locks, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sweep, sweep_clear)

typedef enum {
  LIVES,
  DEAD,
  UNKNOWN, /* the age decides */
} Fate;

/* TRUE if the lock at path belongs to a save on this host. */
static gboolean
is_of_this_host (Sweep *self, const char *path)
{
  const char *host = g_get_host_name ();
  MusterStorageInfo info;
  if (!muster_storage_stat (self->storage, path, &info, NULL) || info.size != strlen (host))
    return FALSE;
  g_autoptr (GBytes) named = muster_storage_read (self->storage, path, NULL);
  return named != NULL && g_bytes_get_size (named) == strlen (host) &&
         memcmp (g_bytes_get_data (named, NULL), host, strlen (host)) == 0;
}

/* Decides by a save's lock, and keeps a dead save's lock until its files are removed. */
static Fate
fate_by_lock (Sweep *self, const char *path)
{
  g_autoptr (GError) failure = NULL;
  if (!self->has_locks || !g_str_has_suffix (path, MUSTER_ALIVE_SUFFIX))
    return UNKNOWN;
  MusterStorageLock *lock = muster_storage_lock (self->storage, path, MUSTER_LOCK_UNUSED, &failure);
  if (lock == NULL)
    return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY) ? LIVES : UNKNOWN;
  if (!is_of_this_host (self, path)) {
    muster_storage_unlock (self->storage, lock);
    return UNKNOWN;
  }
  g_ptr_array_add (self->locks, lock);
  return DEAD;
}

/* Compares with the store's clock, by the time of the directory's lock file, which was just
 * written. */
static gboolean
is_young (Sweep *self, const char *path)
{
  return touched_at (self->storage, path) > self->now_us - OLD_US;
}

static void
judge (Sweep *self)
{
  for (char **file = self->files; *file; file++) {
    g_autofree char *id = id_of (*file);
    g_autofree char *path = g_build_filename (self->directory, *file, NULL);
    if (id == NULL)
      continue;
    const Fate fate = fate_by_lock (self, path);
    if (fate == DEAD)
      g_hash_table_add (self->dead, g_steal_pointer (&id));
    else if (fate == LIVES || is_young (self, path))
      g_hash_table_add (self->live, g_steal_pointer (&id));
  }
}

static void
sweep (Sweep *self)
{
  judge (self);
  for (char **file = self->files; *file; file++) {
    g_autofree char *id = id_of (*file);
    g_autofree char *path = g_build_filename (self->directory, *file, NULL);
    if (id != NULL &&
        (g_hash_table_contains (self->dead, id) || !g_hash_table_contains (self->live, id)))
      remove_left (self->storage, path);
  }
}

static gboolean
has_any (char **files)
{
  for (char **file = files; file != NULL && *file != NULL; file++) {
    g_autofree char *id = id_of (*file);
    if (id != NULL)
      return TRUE;
  }
  return FALSE;
}

/* A store without locks grants every lock, even a second time. */
static gboolean
does_lock (MusterStorage *storage, const char *locked)
{
  MusterStorageLock *again = muster_storage_lock (storage, locked, MUSTER_LOCK_EXCLUSIVE, NULL);
  muster_storage_unlock (storage, again);
  return again == NULL;
}

/* Removes the files of dead savers in a directory, under its lock. FALSE if the directory
 * couldn't be read or locked. */
static gboolean
sweep_quietly (MusterCheckpointDirectory *self, MusterStorage *storage, const char *directory)
{
  if (!muster_storage_can_rename (storage, directory))
    return muster_checkpoint_directory_sweep_objects (self, storage, directory);

  g_auto (GStrv) files = muster_storage_list (storage, directory, NULL);
  MusterStorageInfo info;

  if (!has_any (files))
    return files != NULL;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      storage, directory, muster_clock_now_us (self->clock), self->clock, NULL, NULL);
  g_autofree char *lock_file = g_build_filename (directory, MUSTER_LOCK_FILE, NULL);
  if (lock == NULL || !muster_storage_stat (storage, lock_file, &info, NULL))
    return FALSE;
  g_auto (Sweep) what = {
      .storage = storage,
      .directory = directory,
      .files = files,
      .live = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .dead = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .locks = g_ptr_array_new (),
      .has_locks = does_lock (storage, lock_file),
      .now_us = info.mtime_us,
  };
  sweep (&what);
  return TRUE;
}

void
muster_checkpoint_directory_sweep_once (MusterCheckpointDirectory *self, MusterStorage *storage,
                                        const char *directory)
{
  g_mutex_lock (&self->lock);
  gboolean is_swept = g_hash_table_contains (self->swept, directory);
  g_mutex_unlock (&self->lock);
  if (is_swept || !sweep_quietly (self, storage, directory))
    return;
  g_mutex_lock (&self->lock);
  g_hash_table_add (self->swept, g_strdup (directory));
  g_mutex_unlock (&self->lock);
}

/* The state of a directory for a saver in a new process. */
typedef struct {
  MusterCheckpointDirectory *owner;
  MusterStorage *storage; /* (not owned) */
  const char *directory;
  MusterCheckpointState *state;   /* (owned) (nullable) */
  MusterCheckpointRecord *record; /* (owned) */
  GHashTable *seen;               /* (owned) (element-type utf8) prefixes */
  GPtrArray *list;                /* (owned) (element-type MusterKept) */
  GPtrArray *pending_deletes;     /* (owned) (element-type utf8) */
  GHashTable *strangers;          /* (owned) (element-type utf8) prefixes */
  MusterKeepRules rules;          /* in force */
  double now;
  double mark;
} Adoption;

static void
adoption_clear (Adoption *self)
{
  g_clear_pointer (&self->state, muster_checkpoint_state_free);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->seen, g_hash_table_unref);
  g_clear_pointer (&self->list, g_ptr_array_unref);
  g_clear_pointer (&self->pending_deletes, g_ptr_array_unref);
  g_clear_pointer (&self->strangers, g_hash_table_unref);
  muster_keep_rules_clear (&self->rules);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Adoption, adoption_clear)

/* SAV.85: if the clock is behind the mark, ages are unknown. */
static void
find_mark (Adoption *self)
{
  double mark = self->state != NULL ? self->state->last_preserved : 0;
  self->mark = mark > 0 ? mark : self->record->last_preserved;
  if (self->mark <= 0) {
    g_mutex_lock (&self->owner->lock);
    self->mark = self->owner->mark;
    g_mutex_unlock (&self->owner->lock);
  } else if (self->owner->rules.every_s > 0 && self->mark > self->now) {
    muster_log (G_LOG_LEVEL_WARNING, "clock", "MESSAGE",
                "'%s': this host's clock is behind the last preserved checkpoint timestamp (%.0f s "
                "before it); existing checkpoints are kept",
                self->directory, self->mark - self->now);
    self->mark = self->now;
  }
}

static double
time_of (const Adoption *self, const char *prefix, double told)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, prefix);
  const char *list[] = {prefix, NULL};
  if (told > 0)
    return MIN (told, self->now);
  if (one != NULL && one->time > 0)
    return MIN (one->time, self->now);
  g_autoptr (GArray) times = muster_checkpoint_mtimes (self->storage, list);
  return times->len > 0 ? MIN (g_array_index (times, double, 0), self->now) : self->now;
}

/* Adds a checkpoint. By CheckpointManager's rule, one that isn't newer than the mark is or may
 * be preserved; of one outside the list, the record has said that it isn't. */
static void
add (Adoption *self, const char *prefix, double time, gboolean is_beside)
{
  const MusterKeepRules *rules = &self->owner->rules;
  if (rules->every_s > 0 && rules->by_last_kept && time <= self->mark && !is_beside)
    return;
  MusterKept *kept = muster_kept_new (prefix, time);
  kept->is_beside = is_beside;
  g_ptr_array_add (self->list, kept);
}

/* Returns the path in the directory of a checkpoint that the state names. A state file may name
 * any path, and a checkpoint elsewhere isn't this job's to remove. (transfer full) */
static char *
find_inside (const Adoption *self, const char *named)
{
  g_autofree char *prefix = muster_checkpoint_locate (self->storage, self->directory, named);
  g_autofree char *folder = g_path_get_dirname (prefix), *name = g_path_get_basename (prefix);
  g_autofree char *there = g_canonicalize_filename (muster_local_path (folder), NULL);
  g_autofree char *here = g_canonicalize_filename (muster_local_path (self->directory), NULL);
  return g_str_equal (there, here) ? g_steal_pointer (&prefix)
                                   : g_build_filename (self->directory, name, NULL);
}

/* Adds a checkpoint that the state names, unless its files are missing or it is another saver's:
 * two savers of a directory may share a state file, which names what either saved last. */
static void
add_listed (Adoption *self, const char *named, double told)
{
  MusterStorage *storage = self->storage;
  g_autofree char *prefix = find_inside (self, named);

  if (g_hash_table_contains (self->seen, prefix) ||
      !muster_checkpoint_directory_names (self->owner, prefix) ||
      muster_checkpoint_is_gone (storage, prefix))
    return;
  /* CheckpointManager's rule uses only the state's times. */
  if (told <= 0 && self->owner->rules.by_last_kept)
    add (self, prefix, MIN (self->mark, self->now), FALSE);
  else
    add (self, prefix, time_of (self, prefix, told), FALSE);
  g_hash_table_add (self->seen, g_steal_pointer (&prefix));
}

/* Returns TRUE if the checkpoint also belongs to this saver's state file, according to the
 * record. */
static gboolean
is_ours (const Adoption *self, const char *prefix)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, prefix);
  return muster_checkpoint_directory_names (self->owner, prefix) &&
         (one == NULL || g_strcmp0 (one->state_file, self->owner->latest_filename) == 0);
}

/* Returns TRUE if an earlier saver kept the checkpoint outside its list. */
static gboolean
is_beside (const Adoption *self, const MusterSideCheckpoint *one)
{
  return one != NULL &&
         (one->pinned ||
          muster_side_checkpoint_is_held (one, muster_checkpoint_directory_now (self->owner)) ||
          (self->rules.best > 0 &&
           isfinite (muster_side_checkpoint_metric (one, self->rules.metric))));
}

/* Returns TRUE if a save of that name was cut off before it recorded the checkpoint: its
 * temporary files exist, or existed when this saver looked before. A store without renames keeps
 * none of them, but there only the run that the record names saves. */
static gboolean
is_left_by_save (Adoption *self, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  const gsize skip = strlen (MUSTER_SAVING_PREFIX "01234567-"), n = strlen (name);
  g_auto (GStrv) files = NULL;
  gboolean is_left = FALSE;

  if (!muster_storage_can_rename (self->storage, self->directory))
    return self->record->run != NULL;
  g_mutex_lock (&self->owner->lock);
  is_left = g_hash_table_contains (self->owner->left, prefix);
  g_mutex_unlock (&self->owner->lock);
  if (!is_left)
    files = muster_storage_list (self->storage, self->directory, NULL);
  for (char **file = files; file != NULL && *file != NULL && !is_left; file++)
    is_left = g_str_has_prefix (*file, MUSTER_SAVING_PREFIX) && strlen (*file) > skip + n &&
              strncmp (*file + skip, name, n) == 0 &&
              ((*file)[skip + n] == '-' || (*file)[skip + n] == '.');
  if (!is_left)
    return FALSE;
  g_mutex_lock (&self->owner->lock);
  g_hash_table_add (self->owner->left, g_strdup (prefix));
  g_mutex_unlock (&self->owner->lock);
  return TRUE;
}

/* Finds files that the state doesn't name, if the record or the caller says that they are this
 * saver's. Others must not be deleted or replaced. */
static GPtrArray *
find_unlisted (Adoption *self, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_auto (GStrv) files = muster_checkpoint_list (self->storage, self->directory, &failure);
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (muster_kept_free);
  if (files == NULL && !g_error_matches (failure, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return NULL;
  }
  for (char **file = files; file != NULL && *file != NULL; file++) {
    const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, *file);
    if (g_hash_table_contains (self->seen, *file) || !is_ours (self, *file))
      continue;
    if (one != NULL && (one->preserved || one->pending_delete))
      continue;
    if (self->state != NULL && muster_side_checkpoint_is_foreign (one, self->record))
      continue; /* by its step it could come after the job's own */
    if (!self->owner->adopt_unknown && (one == NULL || one->files->len == 0)) {
      if (muster_checkpoint_directory_is_stranger (self->owner, self->record, *file) &&
          !is_left_by_save (self, *file))
        g_hash_table_add (self->strangers, g_strdup (*file));
      continue;
    }
    MusterKept *kept = muster_kept_new (*file, time_of (self, *file, 0));
    kept->is_beside = is_beside (self, one);
    g_ptr_array_add (found, kept);
  }
  return g_steal_pointer (&found);
}

/* Inserts them by step, each before the first listed one with a higher step. */
static void
merge (Adoption *self, GPtrArray *unlisted)
{
  g_autoptr (GPtrArray) listed = g_steal_pointer (&self->list);
  guint next = 0;
  self->list = g_ptr_array_new_with_free_func (muster_kept_free);
  for (guint i = 0; i < listed->len; i++) {
    const MusterKept *kept = listed->pdata[i];
    for (; next < unlisted->len; next++) {
      const MusterKept *other = unlisted->pdata[next];
      if (muster_checkpoint_step (other->prefix) >= muster_checkpoint_step (kept->prefix))
        break;
      add (self, other->prefix, other->time, other->is_beside);
    }
    g_ptr_array_add (self->list, muster_kept_new (kept->prefix, kept->time));
  }
  for (; next < unlisted->len; next++) {
    const MusterKept *other = unlisted->pdata[next];
    add (self, other->prefix, other->time, other->is_beside);
  }
}

/* Finds checkpoints that an earlier process couldn't remove completely. */
static void
find_pending_deletes (Adoption *self)
{
  for (guint i = 0; i < self->record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = self->record->checkpoints->pdata[i];
    g_autofree char *prefix = g_build_filename (self->directory, one->name, NULL);
    if (one->pending_delete && !one->preserved && !one->pinned && is_ours (self, prefix) &&
        !g_hash_table_contains (self->seen, prefix))
      g_ptr_array_add (self->pending_deletes, g_steal_pointer (&prefix));
  }
}

static gboolean
scan_directory (Adoption *self, GError **error)
{
  const MusterCheckpointState *state = self->state;
  find_mark (self);
  for (guint i = 0; state != NULL && i < state->all->len; i++)
    if (strcmp (state->all->pdata[i], state->latest) != 0)
      add_listed (self, state->all->pdata[i],
                  i < state->timestamps->len ? g_array_index (state->timestamps, double, i) : 0);
  for (guint i = state != NULL ? state->all->len : 0; i-- > 0;)
    if (strcmp (state->all->pdata[i], state->latest) == 0)
      add_listed (self, state->latest,
                  i < state->timestamps->len ? g_array_index (state->timestamps, double, i) : 0);
  if (state != NULL)
    add_listed (self, state->latest, 0); /* unless it is in the list */
  g_autoptr (GPtrArray) unlisted = find_unlisted (self, error);
  if (unlisted == NULL)
    return FALSE;
  merge (self, unlisted);
  find_pending_deletes (self);
  return TRUE;
}

static void
take_over (Adoption *self)
{
  MusterCheckpointDirectory *owner = self->owner;
  g_mutex_lock (&owner->lock);
  g_autoptr (GPtrArray) before = owner->kept, doomed = owner->pending_deletes;
  g_autoptr (GHashTable) strangers = owner->strangers;
  owner->strangers = g_steal_pointer (&self->strangers);
  owner->kept = g_steal_pointer (&self->list);
  owner->pending_deletes = g_steal_pointer (&self->pending_deletes);
  owner->mark = self->mark;
  g_mutex_unlock (&owner->lock);
}

/* Refuses to start beside checkpoints whose owner is unknown. Without a state, a side file that
 * names a run shows that files which it doesn't know are those of a save that was cut off. Without
 * either, they may be what is left of this job. */
static gboolean
check_strangers (const Adoption *self, GError **error)
{
  if (self->state != NULL || self->record->run != NULL ||
      g_hash_table_size (self->strangers) == 0 || self->list->len > 0)
    return TRUE;
  g_auto (GStrv) nobodys = muster_checkpoint_directory_nobodys (self->storage, self->directory);
  g_autofree char *which =
      muster_checkpoint_directory_describe_nobodys (self->directory, (const char *const *)nobodys);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "%s; to resume from the newest, use --from-files (fall_back_to_files); to "
                      "start anew, use another directory",
                      which);
}

void
muster_checkpoint_directory_take_in (MusterCheckpointDirectory *self, const char *prefix)
{
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->strangers, prefix);
  g_mutex_unlock (&self->lock);
}

static MusterCheckpointState *
read_state (MusterCheckpointDirectory *self, MusterStorage *storage, const char *directory,
            MusterAdoptFlags flags, GError **error)
{
  g_autoptr (GError) failure = NULL;
  MusterCheckpointState *state =
      muster_checkpoint_state_read_named (storage, directory, self->latest_filename, &failure);

  if (failure != NULL && !((flags & MUSTER_ADOPT_FROM_FILES) != 0 &&
                           muster_error_is (failure, MUSTER_ERROR_DATA_LOSS)))
    g_propagate_error (error, g_steal_pointer (&failure));
  return state;
}

gboolean
muster_checkpoint_directory_adopt (MusterCheckpointDirectory *self, MusterStorage *storage,
                                   const char *directory, MusterAdoptFlags flags, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (self->unlisted)
    return TRUE;
  g_auto (Adoption) adoption = {
      .owner = self,
      .storage = storage,
      .directory = directory,
      .seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .list = g_ptr_array_new_with_free_func (muster_kept_free),
      .pending_deletes = g_ptr_array_new_with_free_func (g_free),
      .strangers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .now = muster_checkpoint_directory_now (self),
  };
  adoption.state = read_state (self, storage, directory, flags, &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  /* A damaged side file is ignored here; the next writer renames it. */
  adoption.record = muster_checkpoint_record_read (storage, directory, &failure);
  if (adoption.record == NULL && !muster_error_is (failure, MUSTER_ERROR_DATA_LOSS)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (adoption.record == NULL)
    adoption.record = muster_checkpoint_record_new ();
  muster_checkpoint_directory_rules (self, adoption.record, &adoption.rules);
  if (!scan_directory (&adoption, error) ||
      (flags == MUSTER_ADOPT_FOR_JOB && !check_strangers (&adoption, error)))
    return FALSE;
  if (failure != NULL) /* without a side file, strangers can't be told from this saver's own */
    g_hash_table_remove_all (adoption.strangers);
  take_over (&adoption);
  (void)sweep_quietly (self, storage, directory);
  return TRUE;
}
