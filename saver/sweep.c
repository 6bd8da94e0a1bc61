// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_publish.h"
#include "checkpoint/store/directory_lock.h"
#include "saver/saver_private.h"

#include <string.h>

/* What savers that were killed left half written, found by names that nothing else has. A save
 * holds a lock beside its files as long as it lives, and its file names the host: where another
 * holds it, the save lives; where it can be had on that host, the save is dead, and its files go at
 * once. A lock may be one host's alone (NFS without a lock service, sshfs): from another, a free
 * one says nothing. What has no lock that does (a store without locks, other temporary files) never
 * keeps another save from its name, so all there is to lose by waiting is room: it goes once nobody
 * has touched it for a day. */

#define OLD_US (24 * 3600 * MUSTER_SECOND)

/* ".saving-0123abcd-NAME", and a probe's ".probe-" with its key (saver/probe.c), then ".index" or
 * ".data-…". */
static const struct {
  const char *prefix;
  gsize n_id; /* hexadecimal digits */
  char after;
} temporaries[] = {{MUSTER_SAVING_PREFIX, 8, '-'},
                   {MUSTER_PROBE_PREFIX, MUSTER_PROBE_KEY_LEN, '.'}};

/* ".saving-0123abcd-NAME-alive" */
#define ALIVE "-alive"

#define TEMPSTATE ".tempstate"
#define N_UUID    36

/* What tells one save's files from another's, (transfer full): ".saving-0123abcd", or a file's
 * UUID; NULL for what is no saver's. */
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

static gint64
mtime_of (MusterSaver *self, const char *path)
{
  MusterStorageInfo info;

  return muster_storage_look (self->storage, path, &info, NULL) ? info.mtime_us : G_MAXINT64;
}

/* Of a directory, what lies in it too: that is what is written to. */
static gint64
touched_at (MusterSaver *self, const char *path)
{
  gint64 latest_us = mtime_of (self, path);
  g_auto (GStrv) inside = muster_storage_list (self->storage, path, NULL);

  for (char **one = inside; one && *one; one++) {
    g_autofree char *file = g_build_filename (path, *one, NULL);
    latest_us = MAX (latest_us, mtime_of (self, file));
  }

  return latest_us;
}

static void
remove_left (MusterSaver *self, const char *path)
{
  g_auto (GStrv) inside = muster_storage_list (self->storage, path, NULL);

  for (char **one = inside; one && *one; one++) {
    g_autofree char *file = g_build_filename (path, *one, NULL);
    (void)muster_storage_remove (self->storage, file, NULL);
  }
  (void)muster_storage_remove (self->storage, path, NULL);
}

/* One sweep of a directory. */
typedef struct {
  MusterSaver *saver;
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
  for (guint i = 0; self->locks && i < self->locks->len; i++)
    muster_storage_unlock (self->saver->storage, self->locks->pdata[i]);
  g_clear_pointer (&self->locks, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sweep, sweep_clear)

typedef enum {
  LIVES,
  DEAD,
  UNKNOWN, /* its age tells */
} Fate;

/* Whether the lock at path is of a save on this host. */
static gboolean
is_of_this_host (Sweep *self, const char *path)
{
  const char *host = g_get_host_name ();
  MusterStorageInfo info;

  if (!muster_storage_look (self->saver->storage, path, &info, NULL) || info.size != strlen (host))
    return FALSE;
  g_autoptr (GBytes) named = muster_storage_read (self->saver->storage, path, NULL);

  return named && g_bytes_get_size (named) == strlen (host) &&
         memcmp (g_bytes_get_data (named, NULL), host, strlen (host)) == 0;
}

/* By the lock of a save. That of a dead one is held until its files are gone. */
static Fate
fate_by_lock (Sweep *self, const char *path)
{
  g_autoptr (GError) failure = NULL;

  if (!self->has_locks || !g_str_has_suffix (path, ALIVE))
    return UNKNOWN;
  MusterStorageLock *lock =
      muster_storage_lock (self->saver->storage, path, MUSTER_LOCK_UNUSED, &failure);
  if (!lock)
    return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY) ? LIVES : UNKNOWN;
  if (!is_of_this_host (self, path)) {
    muster_storage_unlock (self->saver->storage, lock);
    return UNKNOWN;
  }
  g_ptr_array_add (self->locks, lock);

  return DEAD;
}

/* By the store's own clock: that of the directory's lock, which has just been written. */
static gboolean
is_young (Sweep *self, const char *path)
{
  return touched_at (self->saver, path) > self->now_us - OLD_US;
}

static void
judge (Sweep *self)
{
  for (char **file = self->files; *file; file++) {
    g_autofree char *id = id_of (*file);
    g_autofree char *path = g_build_filename (self->directory, *file, NULL);
    if (!id)
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
    if (id && (g_hash_table_contains (self->dead, id) || !g_hash_table_contains (self->live, id)))
      remove_left (self->saver, path);
  }
}

static gboolean
has_any (char **files)
{
  for (char **file = files; file && *file; file++) {
    g_autofree char *id = id_of (*file);
    if (id)
      return TRUE;
  }

  return FALSE;
}

/* A store without locks grants each one, this one a second time too. */
static gboolean
does_lock (MusterSaver *self, const char *locked)
{
  MusterStorageLock *again =
      muster_storage_lock (self->storage, locked, MUSTER_LOCK_EXCLUSIVE, NULL);

  muster_storage_unlock (self->storage, again);

  return !again;
}

gboolean
muster_saver_sweep_quietly (MusterSaver *self, const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (self->storage, directory, NULL);
  MusterStorageInfo info;

  if (!has_any (files))
    return files != NULL;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, directory, muster_clock_now_us (self->clock), self->clock, NULL, NULL);
  g_autofree char *lock_file = g_build_filename (directory, MUSTER_LOCK_FILE, NULL);
  if (!lock || !muster_storage_look (self->storage, lock_file, &info, NULL))
    return FALSE;
  g_auto (Sweep) what = {
      .saver = self,
      .directory = directory,
      .files = files,
      .live = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .dead = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
      .locks = g_ptr_array_new (),
      .has_locks = does_lock (self, lock_file),
      .now_us = info.mtime_us,
  };
  sweep (&what);

  return TRUE;
}

void
muster_saver_sweep_once (MusterSaver *self, const char *directory)
{
  if (!g_hash_table_contains (self->swept, directory) &&
      muster_saver_sweep_quietly (self, directory))
    g_hash_table_add (self->swept, g_strdup (directory));
}

/* Without the name only its age tells of the save. */
static void
name_host_quietly (MusterStorage *storage, const char *path)
{
  const char *host = g_get_host_name ();
  MusterStorageFile *file = muster_storage_create (storage, path, NULL);

  if (!file)
    return;
  (void)muster_storage_append (storage, file, host, strlen (host), NULL);
  (void)muster_storage_close (storage, file, NULL);
}

MusterStorageLock *
muster_saver_mark_alive (MusterSaver *self, const char *temporary)
{
  g_autofree char *path = g_strconcat (temporary, ALIVE, NULL);
  MusterStorageLock *lock = muster_storage_lock (self->storage, path, MUSTER_LOCK_EXCLUSIVE, NULL);

  if (lock && MUSTER_STORAGE_GET_IFACE (self->storage)->lock)
    name_host_quietly (self->storage, path);

  return lock;
}

/* The file goes first: one that can be locked is a dead save's. */
void
muster_saver_unmark_alive (MusterSaver *self, const char *temporary, MusterStorageLock *lock)
{
  g_autofree char *path = g_strconcat (temporary, ALIVE, NULL);

  if (lock)
    (void)muster_storage_remove (self->storage, path, NULL);
  muster_storage_unlock (self->storage, lock);
}
