// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_publish.h"
#include "bundle/directory_lock.h"
#include "saver/saver_private.h"

/* What savers that were killed left half written. It never keeps another save from its name, and is
 * found by names that nothing else has, so all there is to lose by waiting is room: only what
 * nobody has touched for a day goes. */

#define OLD_US (24 * 3600 * MUSTER_SECOND)

/* ".saving-0123abcd-NAME", and a probe's ".probe-" with its key (saver/probe.c), then ".index" or
 * ".data-…". */
static const struct {
  const char *prefix;
  gsize n_id; /* hexadecimal digits */
  char after;
} temporaries[] = {{MUSTER_SAVING_PREFIX, 8, '-'},
                   {MUSTER_PROBE_PREFIX, MUSTER_PROBE_KEY_LEN, '.'}};

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

/* By the store's own clock: that of the lock, which has just been written. */
static void
sweep (MusterSaver *self, const char *directory, char **files, gint64 now_us)
{
  g_autoptr (GHashTable) young = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (int pass = 0; pass < 2; pass++)
    for (char **file = files; *file; file++) {
      g_autofree char *id = id_of (*file);
      g_autofree char *path = g_build_filename (directory, *file, NULL);
      if (!id)
        continue;
      if (pass == 0 && touched_at (self, path) > now_us - OLD_US)
        g_hash_table_add (young, g_steal_pointer (&id));
      else if (pass == 1 && !g_hash_table_contains (young, id))
        remove_left (self, path);
    }
}

void
muster_saver_sweep_quietly (MusterSaver *self, const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (self->storage, directory, NULL);
  gboolean any = FALSE;

  for (char **file = files; file && *file && !any; file++) {
    g_autofree char *id = id_of (*file);
    any = id != NULL;
  }
  if (!any)
    return;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, directory, muster_clock_now_us (self->clock), self->clock, NULL, NULL);
  g_autofree char *lock_file = g_build_filename (directory, MUSTER_LOCK_FILE, NULL);
  MusterStorageInfo info;
  if (lock && muster_storage_look (self->storage, lock_file, &info, NULL))
    sweep (self, directory, files, info.mtime_us);
}
