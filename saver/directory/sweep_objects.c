// SPDX-License-Identifier: Apache-2.0
/* Removes what killed savers left in an object store: uploads, which no list shows, data files
 * without an index, and hidden files. No lock tells a living saver from a dead one. But a chief
 * that has claimed the directory has ended those before it, so files older than its claim are
 * theirs. Without a chief, only files older than a day count as abandoned. */
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "saver/directory/checkpoint_directory_private.h"

#include <string.h>

/* The age from which files count as abandoned without a chief. */
#define OLD_US (24 * 3600 * MUSTER_SECOND)

typedef struct {
  MusterCheckpointDirectory *owner;
  MusterStorage *storage;
  const char *directory;
  char **files;     /* (not owned) */
  GHashTable *used; /* (owned) (element-type utf8 gint32) base names to the number of data files of
                       their index; 0: unknown, and nothing is removed */
  gint64 before_us; /* older files may be removed */
} Objects;

static char *
path_of (const Objects *self, const char *name)
{
  return g_build_filename (self->directory, name, NULL);
}

static gboolean
is_old (const Objects *self, const char *path)
{
  MusterStorageInfo info;
  return muster_storage_stat (self->storage, path, &info, NULL) && info.mtime_us < self->before_us;
}

/* A name that isn't a file is the folder of a sharded save, of which old parts are removed. */
static void
sweep_folder (Objects *self, const char *path)
{
  g_auto (GStrv) inside = muster_storage_list (self->storage, path, NULL);
  for (char **one = inside; one != NULL && *one != NULL; one++) {
    g_autofree char *file = g_build_filename (path, *one, NULL);
    if (is_old (self, file))
      (void)muster_storage_remove (self->storage, file, NULL);
  }
}

static void
set_used (Objects *self, const char *prefix, gint32 n)
{
  g_autofree char *home = muster_bundle_home (prefix);
  g_hash_table_insert (self->used, g_path_get_basename (home), GINT_TO_POINTER (n));
}

/* A hidden index that isn't old keeps the data files of its name: it is being placed. */
static void
sweep_hidden (Objects *self, const char *name)
{
  g_autofree char *path = path_of (self, name);
  MusterStorageInfo info;

  if (!muster_storage_stat (self->storage, path, &info, NULL)) {
    sweep_folder (self, path);
    return;
  }
  const gboolean goes = info.mtime_us < self->before_us;
  if (!g_str_has_suffix (name, ".index")) {
    if (goes)
      (void)muster_storage_remove (self->storage, path, NULL);
    return;
  }
  g_autofree char *prefix = g_strndup (path, strlen (path) - strlen (".index"));
  if (goes)
    muster_bundle_discard (self->storage, prefix);
  else
    set_used (self, prefix, 0);
}

/* Returns the base name of a data file's checkpoint (transfer full), and its number of shards.
 * */
static char *
checkpoint_of (const char *name, gint32 *n_shards)
{
  const char *dot = g_strrstr (name, ".data-");
  g_autofree char *base = dot != NULL ? g_strndup (name, (gsize)(dot - name)) : NULL;

  *n_shards = base != NULL ? muster_bundle_shards_of (name, base) : 0;
  return *n_shards > 0 ? g_steal_pointer (&base) : NULL;
}

/* Returns how many data files the index of that name has; -1: there is none. */
static gint32
used_by (Objects *self, const char *base)
{
  gpointer known;
  g_autofree char *index = g_strconcat (base, ".index", NULL);
  g_autofree char *prefix = path_of (self, base);
  gint32 n = 0;

  if (g_hash_table_lookup_extended (self->used, base, NULL, &known))
    return GPOINTER_TO_INT (known);
  if (!g_strv_contains ((const char *const *)self->files, index))
    n = -1;
  else if (!muster_bundle_index_count_shards (self->storage, prefix, &n, NULL))
    n = 0;
  set_used (self, prefix, n);
  return n;
}

/* Finds the checkpoints whose index must be read. If all data files of a name have the same
 * number of shards, the checkpoint is whole. */
static GHashTable *
find_doubtful (const Objects *self)
{
  g_autoptr (GHashTable) numbers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTable *doubtful = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (char **file = self->files; *file != NULL; file++) {
    gint32 n;
    g_autofree char *base = checkpoint_of (*file, &n);
    if (base == NULL || !muster_checkpoint_directory_names (self->owner, base))
      continue;
    g_autofree char *index = g_strconcat (base, ".index", NULL);
    const gint32 other = GPOINTER_TO_INT (g_hash_table_lookup (numbers, base));
    if ((other != 0 && other != n) || !g_strv_contains ((const char *const *)self->files, index))
      g_hash_table_add (doubtful, g_strdup (base));
    g_hash_table_insert (numbers, g_steal_pointer (&base), GINT_TO_POINTER (n));
  }
  return doubtful;
}

static void
sweep_data (Objects *self)
{
  g_autoptr (GHashTable) doubtful = find_doubtful (self);
  for (char **file = self->files; *file != NULL; file++) {
    gint32 n;
    g_autofree char *base = checkpoint_of (*file, &n);
    g_autofree char *path = path_of (self, *file);
    if (base == NULL || !g_hash_table_contains (doubtful, base))
      continue;
    const gint32 used = used_by (self, base);
    if (used != 0 && used != n && is_old (self, path))
      (void)muster_storage_remove (self->storage, path, NULL);
  }
}

/* Returns whether earlier writers of the directory have ended, because this chief has claimed it
 * or this process's run has begun. Either has written the side file, whose time is by the store's
 * clock. */
static gboolean
is_held (Objects *self)
{
  MusterCheckpointDirectory *owner = self->owner;
  g_autoptr (MusterLease) lease = muster_checkpoint_directory_lease (owner);
  if (lease != NULL)
    return muster_checkpoint_directory_claimed_epoch (owner, self->directory) != 0;
  g_mutex_lock (&owner->lock);
  const gboolean has_run = owner->run != NULL;
  g_mutex_unlock (&owner->lock);
  return has_run;
}

static gboolean
find_time (Objects *self, gboolean is_held)
{
  g_autofree char *record = path_of (self, MUSTER_RECORD_FILE);
  MusterStorageInfo info;

  self->before_us = muster_clock_wall_us (self->owner->clock) - OLD_US;
  if (!is_held)
    return TRUE;
  if (!muster_storage_stat (self->storage, record, &info, NULL))
    return FALSE;
  /* Some stores count in seconds; this saver hasn't written anything else yet. */
  self->before_us = info.mtime_us + MUSTER_SECOND;
  return TRUE;
}

/* Skips uploads without a chief, because listing them may need a permission that the user lacks.
 * */
static gboolean
sweep_uploads (const Objects *self, gboolean is_held)
{
  const gint64 before_us = is_held ? G_MAXINT64 : self->before_us;
  return muster_storage_sweep (self->storage, self->directory, before_us, NULL) || !is_held;
}

gboolean
muster_checkpoint_directory_sweep_objects (MusterCheckpointDirectory *self, MusterStorage *storage,
                                           const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (storage, directory, NULL);
  g_autoptr (GHashTable) used = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Objects objects = {
      .owner = self, .storage = storage, .directory = directory, .files = files, .used = used};
  const gboolean held = is_held (&objects);
  if (files == NULL || !find_time (&objects, held) || !sweep_uploads (&objects, held))
    return FALSE;
  for (char **file = files; *file != NULL; file++)
    if (muster_checkpoint_directory_is_temporary (*file))
      sweep_hidden (&objects, *file);
  sweep_data (&objects);
  return TRUE;
}
