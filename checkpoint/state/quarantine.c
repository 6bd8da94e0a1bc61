// SPDX-License-Identifier: Apache-2.0
/* Lists a directory's checkpoints by their files, and quarantines damaged ones. Quarantining
 * renames the index first, so that the checkpoint is none from then on, and records the reason
 * before; nothing is deleted. */
#include "checkpoint/state/quarantine_private.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/store/storage_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

#define INDEX              ".index"
#define QUARANTINED_SUFFIX ".bad"

/* Timeout for the lock, which is held briefly. */
#define LOCK_US (30 * MUSTER_SECOND)

/* Returns where a name's ".bad" or ".bad-2" begins, or its end. */
static gsize
suffix_at (const char *name)
{
  const gsize size = strlen (name);
  gsize end = size;
  while (end > 0 && g_ascii_isdigit (name[end - 1]))
    end--;
  if (end == size || end == 0 || name[end - 1] != '-')
    end = size;
  else
    end--;
  const gsize n = strlen (QUARANTINED_SUFFIX);
  return end > n && strncmp (name + end - n, QUARANTINED_SUFFIX, n) == 0 ? end - n : size;
}

gboolean
muster_checkpoint_is_quarantined (const char *prefix)
{
  g_return_val_if_fail (prefix != NULL, FALSE);
  return prefix[suffix_at (prefix)] != '\0';
}

/* Returns the base name before "-STEP"; *step is -1 if there is none. In the prefix of a V1
 * checkpoint of several files ("m-7-?????-of-00002"), the number of files isn't the step. */
static char *
split (const char *prefix, gint64 *step)
{
  g_autofree char *name = g_path_get_basename (prefix);
  char *of_files = strstr (name, "-\?\?\?\?\?-of-");
  if (of_files != NULL)
    *of_files = '\0';
  name[suffix_at (name)] = '\0';
  char *dash = strrchr (name, '-');
  guint64 number;
  *step = -1;
  if (dash != NULL && g_ascii_isdigit (dash[1]) &&
      g_ascii_string_to_unsigned (dash + 1, 10, 0, G_MAXINT64, &number, NULL)) {
    *step = (gint64)number;
    *dash = '\0';
  }
  return g_steal_pointer (&name);
}

gint64
muster_checkpoint_step (const char *prefix)
{
  g_return_val_if_fail (prefix != NULL, -1);
  gint64 step;
  g_autofree char *base = split (prefix, &step);
  return step;
}

typedef struct {
  char *prefix; /* (owned) */
  char *base;   /* (owned) */
  gint64 step;
  gint64 mtime_us;       /* of its index */
  gint64 group_mtime_us; /* mtime of the latest of its base */
} Listed;

static void
listed_free (gpointer data)
{
  Listed *self = data;
  g_free (self->prefix);
  g_free (self->base);
  g_free (self);
}

/* Sorts by steps, not by the files' times: those of a copied directory are in no order. */
static int
compare_listed (gconstpointer a, gconstpointer b)
{
  const Listed *x = *(const Listed *const *)a, *y = *(const Listed *const *)b;
  if (x->group_mtime_us != y->group_mtime_us)
    return x->group_mtime_us < y->group_mtime_us ? -1 : 1;
  const int bases = strcmp (x->base, y->base);
  if (bases != 0)
    return bases;
  if (x->step != y->step)
    return x->step < y->step ? -1 : 1;
  return strcmp (x->prefix, y->prefix);
}

static void
find_groups (GPtrArray *list)
{
  g_autoptr (GHashTable) newest = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < list->len; i++) {
    Listed *one = list->pdata[i];
    const Listed *before = g_hash_table_lookup (newest, one->base);
    if (before == NULL || before->mtime_us < one->mtime_us)
      g_hash_table_insert (newest, one->base, one);
  }
  for (guint i = 0; i < list->len; i++) {
    Listed *one = list->pdata[i];
    one->group_mtime_us = ((const Listed *)g_hash_table_lookup (newest, one->base))->mtime_us;
  }
}

/* Returns the checkpoint of that name (transfer full); NULL without an error if it was removed
 * in the meantime. */
static Listed *
look_up (MusterStorage *storage, const char *directory, const char *name, GError **error)
{
  g_autofree char *prefix = g_build_filename (directory, name, NULL);
  g_autofree char *path = g_strconcat (prefix, INDEX, NULL);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;
  if (!muster_storage_stat (storage, path, &info, &why)) {
    const gboolean is_looped = g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_LOOP);
    if (!muster_storage_failure_is_absent (why) && !is_looped) /* a link to nothing */
      g_propagate_error (error, g_steal_pointer (&why));
    return NULL;
  }
  Listed *self = g_new0 (Listed, 1);
  self->prefix = g_steal_pointer (&prefix);
  self->base = split (name, &self->step);
  self->mtime_us = info.mtime_us;
  return self;
}

/* Returns the checkpoints in a list of files (element-type Listed), in that order. */
static GPtrArray *
look_up_all (MusterStorage *storage, const char *directory, char *const *files,
             gboolean is_quarantined, GError **error)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (listed_free);
  for (; *files != NULL; files++) {
    if (**files == '.' || !g_str_has_suffix (*files, INDEX))
      continue; /* hidden: an unfinished save or its remains */
    g_autofree char *name = g_strndup (*files, strlen (*files) - strlen (INDEX));
    if (muster_checkpoint_is_quarantined (name) != is_quarantined)
      continue;
    g_autoptr (GError) why = NULL;
    Listed *one = look_up (storage, directory, name, &why);
    if (one != NULL)
      g_ptr_array_add (found, one);
    if (why == NULL)
      continue;
    g_propagate_error (error, g_steal_pointer (&why));
    return NULL;
  }
  return g_steal_pointer (&found);
}

static char **
list (MusterStorage *storage, const char *directory, gboolean is_quarantined, GError **error)
{
  g_return_val_if_fail (directory != NULL, NULL);
  storage = storage != NULL ? storage : muster_default_storage ();
  g_auto (GStrv) files = muster_storage_list (storage, directory, error);
  g_autoptr (GPtrArray) found =
      files != NULL ? look_up_all (storage, directory, files, is_quarantined, error) : NULL;
  if (found == NULL)
    return NULL;
  find_groups (found);
  g_ptr_array_sort (found, compare_listed);
  g_autoptr (GStrvBuilder) prefixes = g_strv_builder_new ();
  for (guint i = 0; i < found->len; i++)
    g_strv_builder_add (prefixes, ((const Listed *)found->pdata[i])->prefix);
  return g_strv_builder_end (prefixes);
}

char **
muster_checkpoint_list (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  return list (storage, directory, FALSE, error);
}

char **
muster_checkpoint_list_quarantined (MusterStorage *storage, const char *directory, GError **error)
{
  muster_require (error, NULL, directory);
  return list (storage, directory, TRUE, error);
}

/* Returns what follows NAME in the name of one of its files, or NULL. NAME.bad.index isn't one
 * of NAME's. */
static const char *
part_of (const char *file, const char *name)
{
  const gsize n = strlen (name);
  if (strncmp (file, name, n) != 0)
    return NULL;
  const char *rest = file + n;
  return g_str_has_prefix (rest, ".data-") || strcmp (rest, ".meta") == 0 ||
                 strcmp (rest, INDEX) == 0
             ? rest
             : NULL;
}

/* A name that no file has. */
static char *
free_name (char **files, const char *name)
{
  for (guint n = 1;; n++) {
    g_autofree char *candidate = n == 1 ? g_strconcat (name, QUARANTINED_SUFFIX, NULL)
                                        : g_strdup_printf ("%s" QUARANTINED_SUFFIX "-%u", name, n);
    gboolean is_taken = FALSE;
    for (gsize i = 0; files[i] != NULL && !is_taken; i++)
      is_taken = part_of (files[i], candidate) != NULL;
    if (!is_taken)
      return g_steal_pointer (&candidate);
  }
}

/* Renames the index first: from then on it isn't a checkpoint. */
static gboolean
rename_files (MusterStorage *storage, const char *directory, char **files, const char *name,
              const char *quarantined, GError **error)
{
  for (int index = 1; index >= 0; index--)
    for (gsize i = 0; files[i] != NULL; i++) {
      const char *part = part_of (files[i], name);
      if (part == NULL || (strcmp (part, INDEX) == 0) != index)
        continue;
      g_autofree char *from = g_build_filename (directory, files[i], NULL);
      g_autofree char *renamed = g_strconcat (quarantined, part, NULL);
      g_autofree char *to = g_build_filename (directory, renamed, NULL);
      if (!muster_storage_move (storage, from, to, error))
        return FALSE;
    }
  return muster_storage_sync_directory (storage, directory, error);
}

static gboolean
note (MusterStorage *storage, const char *directory, const char *name, const char *quarantined,
      const char *reason, char **state_file, GError **error)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read_to_write (storage, directory, error);
  if (record == NULL)
    return FALSE;
  muster_checkpoint_record_ensure (record, name);
  muster_checkpoint_record_rename (record, name, quarantined);
  MusterSideCheckpoint *one = muster_checkpoint_record_find (record, quarantined);
  g_free (one->bad);
  one->bad = g_strdup (reason);
  one->verified = FALSE;
  one->pending_delete = FALSE;
  if (one->step < 0)
    one->step = muster_checkpoint_step (name);
  *state_file = g_strdup (one->state_file);
  if (g_strcmp0 (record->life, name) == 0)
    g_clear_pointer (&record->life, g_free);
  return muster_checkpoint_record_write (storage, directory, record, error);
}

/* Sets *is_gone if the path has that name and the store says that it doesn't exist. */
static gboolean
look_for (MusterStorage *storage, const char *path, const char *name, gboolean *is_gone,
          GError **error)
{
  g_autofree char *base = g_path_get_basename (path);
  gboolean is_there = TRUE;
  if (strcmp (base, name) == 0 && !muster_checkpoint_look (storage, path, &is_there, error))
    return FALSE;
  *is_gone = !is_there;
  return TRUE;
}

/* A state file that can't be read isn't changed: repairing it is the user's decision. */
static gboolean
forget_once (MusterStorage *storage, const char *directory, const char *state_file,
             const char *name, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read_named (storage, directory, state_file, &why);
  if (state == NULL && (why == NULL || muster_error_is (why, MUSTER_ERROR_DATA_LOSS)))
    return TRUE;
  if (state == NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  gboolean is_changed = FALSE, is_gone;
  for (guint i = state->all->len; i-- > 0;) {
    if (!look_for (storage, state->all->pdata[i], name, &is_gone, error))
      return FALSE;
    if (!is_gone)
      continue;
    is_changed = TRUE;
    g_ptr_array_remove_index (state->all, i);
    if (i < state->timestamps->len)
      g_array_remove_index (state->timestamps, i);
  }
  if (state->all->len == 0)
    return TRUE;
  if (!look_for (storage, state->latest, name, &is_gone, error))
    return FALSE;
  if (is_gone) {
    is_changed = TRUE;
    g_free (state->latest);
    state->latest = g_strdup (state->all->pdata[state->all->len - 1]);
  }
  return !is_changed ||
         muster_checkpoint_state_write_named (storage, directory, state_file, state, error);
}

/* The files have been renamed already, so only the state is changed again if another writer was
 * faster. */
static gboolean
forget_in_state (MusterStorage *storage, const char *directory, const char *state_file,
                 const char *name, GError **error)
{
  MusterClock *clock = muster_system_clock ();
  const gint64 deadline_us = muster_deadline_after (muster_clock_now_us (clock), LOCK_US);
  for (guint n_tries = 0;;) {
    GError *why = NULL;
    if (forget_once (storage, directory, state_file, name, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, deadline_us, clock, NULL, why, error))
      return FALSE;
  }
}

static gboolean
move_to_quarantine (MusterStorage *storage, const char *directory, const char *name,
                    const char *reason, char **quarantined, GError **error)
{
  g_autofree char *state_file = NULL;
  g_autofree char *index = g_strconcat (name, INDEX, NULL);
  g_auto (GStrv) files = muster_storage_list (storage, directory, error);
  if (files == NULL)
    return FALSE;
  if (!g_strv_contains ((const char *const *)files, index)) {
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "'%s/%s' not found", directory, index);
  }
  g_autofree char *new_name = free_name (files, name);
  /* The reason comes first: recording it twice is better than losing it. */
  if (!note (storage, directory, name, new_name, reason, &state_file, error) ||
      !rename_files (storage, directory, files, name, new_name, error) ||
      !forget_in_state (storage, directory, state_file, name, error) ||
      (state_file != NULL && !forget_in_state (storage, directory, NULL, name, error)))
    return FALSE;
  if (quarantined != NULL)
    *quarantined = g_build_filename (directory, new_name, NULL);
  return TRUE;
}

gboolean
muster_checkpoint_quarantine_locked (MusterStorage *storage, const char *prefix, const char *reason,
                                     char **quarantined, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);

  return move_to_quarantine (storage, directory, name, reason, quarantined, error);
}

gboolean
muster_checkpoint_quarantine_by (MusterStorage *storage, const char *prefix, const char *reason,
                                 char **quarantined, gint64 deadline_us, MusterClock *clock,
                                 GCancellable *cancellable, GError **error)
{
  g_autofree char *directory = g_path_get_dirname (prefix);
  g_autofree char *name = g_path_get_basename (prefix);
  clock = clock != NULL ? clock : muster_system_clock ();
  deadline_us = MIN (deadline_us, muster_deadline_after (muster_clock_now_us (clock), LOCK_US));
  g_autoptr (MusterDirectoryLock) lock =
      muster_directory_lock (storage, directory, deadline_us, clock, cancellable, error);
  for (guint n_tries = 0; lock != NULL;) {
    GError *why = NULL;
    if (move_to_quarantine (muster_directory_lock_storage (lock), directory, name, reason,
                            quarantined, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, deadline_us, clock, cancellable, why, error))
      break;
  }
  g_prefix_error (error, "Setting '%s' aside: ", prefix);
  return FALSE;
}

gboolean
muster_checkpoint_quarantine (MusterStorage *storage, const char *prefix, const char *reason,
                              char **quarantined, GError **error)
{
  muster_require (error, FALSE, prefix, reason);
  return muster_checkpoint_quarantine_by (storage != NULL ? storage : muster_default_storage (),
                                          prefix, reason, quarantined, MUSTER_WAIT_FOREVER, NULL,
                                          NULL, error);
}
