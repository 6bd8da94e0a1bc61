// SPDX-License-Identifier: Apache-2.0
/* TensorFlow's state file `checkpoint`: the latest checkpoint and the list, read and written as
 * TensorFlow does, with its rules for relative paths. Below that: finding and removing the files of
 * a checkpoint. */
#include "checkpoint/state/checkpoint_state.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/v1_files_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/state_text_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

MusterCheckpointState *
muster_checkpoint_state_new (void)
{
  MusterCheckpointState *self = g_new0 (MusterCheckpointState, 1);
  self->all = g_ptr_array_new_with_free_func (g_free);
  self->timestamps = g_array_new (FALSE, FALSE, sizeof (double));
  return self;
}

G_DEFINE_BOXED_TYPE (MusterCheckpointState, muster_checkpoint_state, muster_checkpoint_state_copy,
                     muster_checkpoint_state_free)

MusterCheckpointState *
muster_checkpoint_state_copy (const MusterCheckpointState *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterCheckpointState *copy = g_memdup2 (self, sizeof *self);
  copy->latest = g_strdup (self->latest);
  copy->all = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < self->all->len; i++)
    g_ptr_array_add (copy->all, g_strdup (self->all->pdata[i]));
  copy->timestamps = g_array_copy (self->timestamps);
  copy->version = g_strdup (self->version);
  return copy;
}

void
muster_checkpoint_state_add (MusterCheckpointState *self, const char *prefix, double time)
{
  g_return_if_fail (self != NULL && prefix != NULL);
  if (self->timestamps->len == self->all->len)
    g_array_append_val (self->timestamps, time);
  g_ptr_array_add (self->all, g_strdup (prefix));
  g_free (self->latest);
  self->latest = g_strdup (prefix);
}

char **
muster_checkpoint_state_prefixes (const MusterCheckpointState *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  char **prefixes = g_new0 (char *, self->all->len + 1);
  for (guint i = 0; i < self->all->len; i++)
    prefixes[i] = g_strdup (self->all->pdata[i]);
  return prefixes;
}

double *
muster_checkpoint_state_times (const MusterCheckpointState *self, gsize *n_times)
{
  g_return_val_if_fail (self != NULL && n_times != NULL, NULL);
  *n_times = self->timestamps->len;
  return g_memdup2 (self->timestamps->data, self->timestamps->len * sizeof (double));
}

void
muster_checkpoint_state_free (MusterCheckpointState *self)
{
  if (self == NULL)
    return;
  g_free (self->latest);
  g_ptr_array_unref (self->all);
  g_array_unref (self->timestamps);
  g_free (self->version);
  g_free (self);
}

static MusterStorage *
or_local (MusterStorage *storage)
{
  return storage != NULL ? storage : muster_default_storage ();
}

/* Returns TRUE for a path that isn't relative to a directory: of another store ("gs://…",
 * "file://…") or of Windows ("C:\…", "\\…"). */
static gboolean
is_of_elsewhere (const char *path)
{
  return strstr (path, "://") != NULL || g_str_has_prefix (path, "\\\\") ||
         (g_ascii_isalpha (path[0]) && path[1] == ':' && (path[2] == '\\' || path[2] == '/'));
}

/* Like TensorFlow: an absolute path is kept, and nothing is normalised. */
static char *
put_behind (const char *directory, const char *path)
{
  if (*directory == '\0' || g_path_is_absolute (path) || is_of_elsewhere (path))
    return g_strdup (path);
  return g_strconcat (directory, g_str_has_suffix (directory, "/") ? "" : "/", path, NULL);
}

static char *
state_path (const char *directory, const char *name)
{
  return put_behind (directory, name != NULL ? name : "checkpoint");
}

char *
muster_checkpoint_state_version (MusterStorage *storage, const char *directory, const char *name,
                                 GError **error)
{
  g_autofree char *path = state_path (directory, name);
  char *version = NULL;
  g_autoptr (GError) why = NULL;
  storage = or_local (storage);
  if (muster_storage_can_rename (storage, path))
    return NULL;
  g_autoptr (GBytes) text = muster_storage_read_versioned (storage, path, &version, &why);
  if (text == NULL && !muster_storage_failure_is_absent (why))
    g_propagate_error (error, g_steal_pointer (&why));
  return version;
}

MusterCheckpointState *
muster_checkpoint_state_read (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  return muster_checkpoint_state_read_named (storage, directory, NULL, error);
}

MusterCheckpointState *
muster_checkpoint_state_read_named (MusterStorage *storage, const char *directory, const char *name,
                                    GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *path = state_path (directory, name);
  g_autoptr (GError) why = NULL;
  g_autofree char *version = NULL;
  g_autoptr (GBytes) text =
      muster_storage_read_versioned (or_local (storage), path, &version, &why);
  if (text == NULL && muster_storage_failure_is_absent (why))
    return NULL;
  if (text == NULL && !muster_storage_failure_is_damage (why)) {
    /* The store doesn't answer, or refuses, which says nothing about the file. */
    g_propagate_error (error, g_steal_pointer (&why));
    return NULL;
  }
  g_autoptr (MusterCheckpointState) self = NULL;
  if (text != NULL) {
    gsize size;
    const char *data = g_bytes_get_data (text, &size);
    self = muster_state_text_parse (data, size, &why);
  }
  if (g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_NOTDIR)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is neither a checkpoint nor a directory of checkpoints", directory);
    return NULL;
  }
  if (self == NULL || self->latest == NULL) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                 "Invalid checkpoint state '%s': %s; repair it, or start the job with --from-files "
                 "(fall_back_to_files) to restore the newest of the directory's files",
                 path, why != NULL ? why->message : "it names no checkpoint");
    return NULL;
  }
  self->version = g_steal_pointer (&version);
  char *latest = put_behind (directory, self->latest);
  g_free (self->latest);
  self->latest = latest;
  for (guint i = 0; i < self->all->len; i++) {
    char *joined = put_behind (directory, self->all->pdata[i]);
    g_free (self->all->pdata[i]);
    self->all->pdata[i] = joined;
  }
  if (self->timestamps->len != self->all->len)
    g_array_set_size (self->timestamps, 0); /* they can't be assigned to checkpoints */
  return g_steal_pointer (&self);
}

/* Returns the part of path after directory and a '/', or NULL. */
static const char *
inside (const char *directory, const char *path)
{
  gsize n = strlen (directory);
  while (n > 1 && directory[n - 1] == '/')
    n--;
  if (n == 0 || strncmp (path, directory, n) != 0 || (path[n] != '/' && directory[n - 1] != '/'))
    return NULL;
  path += n;
  while (*path == '/')
    path++;
  return *path != '\0' ? path : NULL;
}

/* Returns the way from one tidy absolute path to another. */
static char *
way_between (const char *from, const char *to)
{
  g_auto (GStrv) here = g_strsplit (from + 1, "/", -1);
  g_auto (GStrv) there = g_strsplit (to + 1, "/", -1);
  GString *way = g_string_new (NULL);
  guint i = 0;
  while (here[i] != NULL && there[i] != NULL && g_str_equal (here[i], there[i]))
    i++;
  for (guint up = i; here[up] != NULL && *here[up] != '\0'; up++)
    g_string_append (way, "../");
  for (guint down = i; there[down] != NULL; down++)
    g_string_append_printf (way, "%s%s", there[down], there[down + 1] != NULL ? "/" : "");
  return g_string_free (way, FALSE);
}

/* Returns a path as it is written (SAV.3, SAV.10): relative to the directory if it lies in it,
 * or if both are relative; otherwise as given. */
static char *
relative_path (const char *directory, const char *path)
{
  const char *rest = inside (directory, path);
  if (rest != NULL)
    return g_strdup (rest);
  if (strstr (directory, "://") != NULL || strstr (path, "://") != NULL)
    return g_strdup (path); /* names of another store, not of the file system */
  const gboolean is_absolute = g_path_is_absolute (path);
  if (!is_absolute && g_path_is_absolute (directory))
    return g_strdup (path);
  g_autofree char *tidy_directory = g_canonicalize_filename (directory, NULL);
  g_autofree char *tidy_path = g_canonicalize_filename (path, NULL);
  rest = inside (tidy_directory, tidy_path);
  if (rest != NULL)
    return g_strdup (rest);
  return is_absolute ? g_strdup (path) : way_between (tidy_directory, tidy_path);
}

static char *
written_path (const char *directory, const char *path, gboolean absolute)
{
  return absolute && g_path_is_absolute (path) ? g_strdup (path) : relative_path (directory, path);
}

static gboolean
check_state (const MusterCheckpointState *self, guint n_paths, const char *path, GError **error)
{
  if (self->latest == NULL || *self->latest == '\0') {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "The checkpoint state '%s' can't be written without a latest checkpoint",
                        path);
  }
  if (self->timestamps->len > 0 && self->timestamps->len != n_paths) {
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Checkpoint timestamps, if provided, must match checkpoint paths: %u for %u",
        self->timestamps->len, n_paths);
  }
  if (g_str_equal (self->latest, path)) {
    return muster_fail (
        error, MUSTER_ERROR_FAILED_PRECONDITION,
        "The checkpoint's path '%s' conflicts with path used for checkpoint state; save "
        "under another name",
        path);
  }
  return TRUE;
}

gboolean
muster_checkpoint_state_write (MusterStorage *storage, const char *directory,
                               const MusterCheckpointState *self, GError **error)
{
  muster_require (error, FALSE, directory, self);
  return muster_checkpoint_state_write_named (storage, directory, NULL, self, error);
}

gboolean
muster_checkpoint_state_write_named (MusterStorage *storage, const char *directory,
                                     const char *name, const MusterCheckpointState *self,
                                     GError **error)
{
  muster_require (error, FALSE, directory, self);

  g_autofree char *path = state_path (directory, name);
  gboolean is_listed = FALSE;
  for (guint i = 0; i < self->all->len && self->latest != NULL; i++)
    is_listed = is_listed || g_str_equal (self->all->pdata[i], self->latest);
  if (!check_state (self, self->all->len + !is_listed, path, error))
    return FALSE;

  g_autoptr (MusterCheckpointState) written = muster_checkpoint_state_new ();
  written->latest = written_path (directory, self->latest, self->absolute_paths);
  for (guint i = 0; i < self->all->len; i++)
    g_ptr_array_add (written->all,
                     written_path (directory, self->all->pdata[i], self->absolute_paths));
  if (!is_listed)
    g_ptr_array_add (written->all, g_strdup (written->latest));
  g_array_append_vals (written->timestamps, self->timestamps->data, self->timestamps->len);
  written->last_preserved = self->last_preserved;
  g_autofree char *text = muster_state_text_print (written);
  if (muster_storage_replace (or_local (storage), path, text, strlen (text), self->version, NULL,
                              error))
    return TRUE;
  g_prefix_error (error, "Writing the checkpoint state: ");
  return FALSE;
}

gboolean
muster_checkpoint_look (MusterStorage *storage, const char *prefix, gboolean *is_there,
                        GError **error)
{
  g_autofree char *path = muster_bundle_index_path (prefix);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;
  *is_there =
      muster_storage_stat (or_local (storage), path, &info, &why) ||
      (muster_storage_failure_is_absent (why) && muster_v1_is_there (or_local (storage), prefix));
  if (*is_there || muster_storage_failure_is_absent (why))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

gboolean
muster_checkpoint_is_gone (MusterStorage *storage, const char *prefix)
{
  gboolean is_there;
  return muster_checkpoint_look (storage, prefix, &is_there, NULL) && !is_there;
}

gboolean
muster_checkpoint_exists (MusterStorage *storage, const char *prefix)
{
  g_return_val_if_fail (prefix != NULL, FALSE);
  gboolean is_there;
  return muster_checkpoint_look (storage, prefix, &is_there, NULL) && is_there;
}

char *
muster_checkpoint_of_file (MusterStorage *storage, const char *path)
{
  static const char *const ends[] = {".index", ".meta", ".data-"};
  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++) {
    const char *end = g_strrstr (path, ends[i]);
    if (end == NULL || strchr (end, G_DIR_SEPARATOR) != NULL)
      continue;
    g_autofree char *prefix = g_strndup (path, (gsize)(end - path));
    if (muster_checkpoint_exists (storage, prefix))
      return g_steal_pointer (&prefix);
  }
  return NULL;
}

/* '?' matches one character, '*' any number. After a mismatch only the last '*' is extended, so
 * that no pattern takes long. */
static gboolean
does_match (const char *pattern, const char *text)
{
  const char *star = NULL, *from = NULL;
  while (*text != '\0') {
    if (*pattern == '*') {
      star = pattern++;
      from = text;
    } else if (*pattern == '?' || (*pattern != '\0' && *pattern == *text)) {
      pattern++;
      text++;
    } else if (star != NULL) {
      pattern = star + 1;
      text = ++from;
    } else {
      return FALSE;
    }
  }
  return pattern[strspn (pattern, "*")] == '\0';
}

gboolean
muster_checkpoint_matches (MusterStorage *storage, const char *pattern)
{
  g_return_val_if_fail (pattern != NULL, FALSE);
  g_autofree char *directory = g_path_get_dirname (pattern);
  const char *slash = strrchr (pattern, '/');
  const char *name = slash != NULL ? slash + 1 : pattern;
  g_autofree char *index = muster_bundle_index_path (name);
  g_auto (GStrv) files = muster_storage_list (or_local (storage), directory, NULL);
  for (char **file = files; file != NULL && *file != NULL; file++)
    if (does_match (index, *file) || does_match (name, *file))
      return TRUE;
  return FALSE;
}

static char *
file_name (const char *path)
{
  const char *at = strrchr (path, '\\');
  return is_of_elsewhere (path) && strstr (path, "://") == NULL && at != NULL
             ? g_path_get_basename (at + 1)
             : g_path_get_basename (path);
}

char *
muster_checkpoint_locate (MusterStorage *storage, const char *directory, const char *prefix)
{
  g_return_val_if_fail (directory != NULL && prefix != NULL, NULL);
  if (inside (directory, prefix) != NULL ||
      (!is_of_elsewhere (prefix) && muster_checkpoint_exists (storage, prefix)))
    return g_strdup (prefix);
  g_autofree char *base = file_name (prefix);
  g_autofree char *here = put_behind (directory, base);
  /* A path in a file is no reason to contact another store. */
  return is_of_elsewhere (prefix) || muster_checkpoint_exists (storage, here)
             ? g_steal_pointer (&here)
             : g_strdup (prefix);
}

char *
muster_latest_checkpoint (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  return muster_latest_checkpoint_named (storage, directory, NULL, error);
}

char *
muster_latest_checkpoint_named (MusterStorage *storage, const char *directory, const char *name,
                                GError **error)
{
  muster_require (error, NULL, directory);
  g_autofree char *before = NULL;
  for (;;) {
    g_autoptr (GError) why = NULL;
    g_autoptr (MusterCheckpointState) state =
        muster_checkpoint_state_read_named (storage, directory, name, &why);
    if (state == NULL) {
      if (why != NULL)
        g_propagate_error (error, g_steal_pointer (&why));
      return NULL;
    }
    g_autofree char *latest = muster_checkpoint_locate (storage, directory, state->latest);
    gboolean is_there;
    if (!muster_checkpoint_look (storage, latest, &is_there, error))
      return NULL;
    if (is_there)
      return g_steal_pointer (&latest);
    /* A running saver may have saved another one and removed this one since the state was read.
     * */
    if (g_strcmp0 (before, latest) == 0) {
      (void)muster_fail (
          error, MUSTER_ERROR_NOT_FOUND,
          "Couldn't match files for checkpoint '%s', which the state of '%s' "
          "names; to restore the newest of its files, start the job with --from-files",
          state->latest, directory);
      return NULL;
    }
    g_free (before);
    before = g_steal_pointer (&latest);
  }
}

/* TRUE for NAME.data-00000-of-00001. */
static gboolean
is_data_of (const char *file, const char *name)
{
  const gsize n = strlen (name);
  if (strncmp (file, name, n) != 0 || !g_str_has_prefix (file + n, ".data-"))
    return FALSE;
  const char *at = file + n + strlen (".data-");
  const gsize shard = strspn (at, "0123456789");
  if (shard == 0 || !g_str_has_prefix (at + shard, "-of-"))
    return FALSE;
  at += shard + strlen ("-of-");
  const gsize total = strspn (at, "0123456789");
  return total > 0 && at[total] == '\0';
}

static gboolean
remove_data (MusterStorage *storage, const char *prefix, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) files = muster_storage_list (storage, directory, &why);
  if (files == NULL && muster_storage_failure_is_absent (why))
    return TRUE;
  if (files == NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  gboolean all_gone = TRUE;
  for (gsize i = 0; files[i] != NULL; i++) {
    if (!is_data_of (files[i], name))
      continue;
    g_autofree char *path = put_behind (directory, files[i]);
    if (!muster_storage_remove (storage, path, all_gone ? error : NULL))
      all_gone = FALSE;
  }
  return all_gone;
}

char *
muster_checkpoint_meta_path (const char *prefix)
{
  g_return_val_if_fail (prefix != NULL, NULL);
  gsize end = strlen (prefix);
  while (end > 0 && g_ascii_isdigit (prefix[end - 1]))
    end--;
  if (prefix[end] != '\0' && end >= 4 && strncmp (prefix + end - 4, "-of-", 4) == 0) {
    gsize shard = end - 4;
    while (shard > 0 && (g_ascii_isdigit (prefix[shard - 1]) || prefix[shard - 1] == '?'))
      shard--;
    if (shard > 0 && shard < end - 4 && prefix[shard - 1] == '-') {
      g_autofree char *name = g_strndup (prefix, shard - 1);
      return g_strconcat (name, ".meta", NULL);
    }
  }
  return g_strconcat (prefix, ".meta", NULL);
}

GArray *
muster_checkpoint_mtimes (MusterStorage *storage, const char *const *prefixes)
{
  g_return_val_if_fail (prefixes != NULL, NULL);
  GArray *times = g_array_new (FALSE, FALSE, sizeof (double));
  for (const char *const *prefix = prefixes; *prefix != NULL; prefix++) {
    g_autofree char *index = muster_bundle_index_path (*prefix);
    MusterStorageInfo info;
    if (!muster_storage_stat (or_local (storage), index, &info, NULL))
      continue;
    const double seconds = (double)info.mtime_us / G_USEC_PER_SEC;
    g_array_append_val (times, seconds);
  }
  return times;
}

/* Locks the index, on which readers hold a shared lock. NULL without an error if the index no
 * longer exists: then the rest is removed. */
static gboolean
lock_unused (MusterStorage *storage, const char *index, MusterStorageLock **lock, GError **error)
{
  g_autoptr (GError) why = NULL;
  *lock = muster_storage_lock (storage, index, MUSTER_LOCK_UNUSED, &why);
  if (*lock != NULL || muster_storage_failure_is_absent (why))
    return TRUE;
  if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_BUSY))
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY,
                 "'%s': another process is reading this checkpoint; remove it later", index);
  else
    g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

/* Removes the index durably before any data: after a crash there must be no index without its
 * data. */
static gboolean
remove_index (MusterStorage *storage, const char *index, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (index);
  return muster_storage_remove (storage, index, error) &&
         muster_storage_sync_directory (storage, directory, error);
}

gboolean
muster_remove_checkpoint (MusterStorage *storage, const char *prefix, GError **error)
{
  muster_require (error, FALSE, prefix);
  g_autofree char *index = muster_bundle_index_path (prefix);
  g_autofree char *meta = muster_checkpoint_meta_path (prefix);
  MusterStorageLock *lock = NULL;
  storage = or_local (storage);
  if (!lock_unused (storage, index, &lock, error))
    return FALSE;
  if (lock == NULL && muster_v1_is_there (storage, prefix)) /* muster wrote none of these files */
    return TRUE;
  const gboolean is_removed = (lock == NULL || remove_index (storage, index, error)) &&
                              muster_storage_remove (storage, meta, error) &&
                              remove_data (storage, prefix, error);
  muster_storage_unlock (storage, lock);
  return is_removed;
}
