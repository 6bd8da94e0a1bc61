// SPDX-License-Identifier: Apache-2.0
#include "bundle/checkpoint_state.h"
#include "saver/fit_private.h"

/* A checkpoint whose directory has been moved is looked for by its name in the directory. */
static char *
locate (MusterSaver *self, const char *directory, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *moved = g_build_filename (directory, name, NULL);

  if (!muster_checkpoint_exists (self->storage, prefix) &&
      muster_checkpoint_exists (self->storage, moved))
    return g_steal_pointer (&moved);

  return g_strdup (prefix);
}

/* What the state names, newest first, each once. */
static GPtrArray *
candidates (MusterSaver *self, const char *directory, const MusterCheckpointState *state)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (found, locate (self, directory, state->latest));
  for (guint i = state->all ? state->all->len : 0; i-- > 0;) {
    g_autofree char *prefix = locate (self, directory, state->all->pdata[i]);
    if (!g_ptr_array_find_with_equal_func (found, prefix, g_str_equal, NULL))
      g_ptr_array_add (found, g_steal_pointer (&prefix));
  }

  return found;
}

static gboolean
is_not_whole (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
         muster_error_is (failure, MUSTER_ERROR_DATA_LOSS);
}

/* Why one was passed over, as a line. */
static void
note_fault (GString *faults, const GError *failure)
{
  g_string_append_printf (faults, "%s%s", faults->len > 0 ? "\n" : "", failure->message);
}

/* Restores the first that is whole; where none is, the newest one's fault counts. */
static gboolean
restore_first (MusterSaver *self, MusterSession *session, GPtrArray *prefixes,
               const MusterRestoreOptions *options, MusterRestored *result, gint64 deadline_us,
               GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) newest = NULL;
  g_autoptr (GString) faults = g_string_new (NULL);

  for (guint i = 0; i < prefixes->len; i++) {
    g_autoptr (GError) failure = NULL;
    gboolean has_begun;
    if (muster_saver_restore_one (self, session, prefixes->pdata[i], options, result, &has_begun,
                                  deadline_us, cancellable, &failure)) {
      result->passed_over = faults->len > 0 ? g_strdup (faults->str) : NULL;
      return TRUE;
    }
    if (has_begun || !is_not_whole (failure) || options->fall_back_off) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    note_fault (faults, failure);
    if (!newest)
      newest = g_steal_pointer (&failure);
  }
  g_propagate_error (error, g_steal_pointer (&newest));

  return FALSE;
}

static void
adopt (MusterSaver *self, GPtrArray *newest_first)
{
  g_autoptr (GPtrArray) prefixes = g_ptr_array_new ();

  for (guint i = newest_first->len; i-- > 0;)
    g_ptr_array_add (prefixes, newest_first->pdata[i]);
  g_ptr_array_add (prefixes, NULL);
  muster_saver_recover_last_checkpoints (self, (const char *const *)prefixes->pdata);
}

gboolean
muster_saver_adopt_directory (MusterSaver *self, const char *directory, GError **error)
{
  g_autoptr (GError) failure = NULL;

  g_return_val_if_fail (MUSTER_IS_SAVER (self), FALSE);

  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (self->storage, directory, &failure);
  if (failure) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (state) {
    g_autoptr (GPtrArray) prefixes = candidates (self, directory, state);
    adopt (self, prefixes);
  }

  return TRUE;
}

gboolean
muster_saver_restore_latest_with (MusterSaver *self, MusterSession *session, const char *directory,
                                  const MusterRestoreOptions *options, MusterRestored *restored,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  static const MusterRestoreOptions plain;
  g_autoptr (GError) failure = NULL;
  g_auto (MusterRestored) result = {0};

  g_return_val_if_fail (MUSTER_IS_SAVER (self) && MUSTER_IS_SESSION (session), FALSE);

  if (!options)
    options = &plain;
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (self->storage, directory, &failure);
  if (failure) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (state) {
    g_autoptr (GPtrArray) prefixes = candidates (self, directory, state);
    if (!restore_first (self, session, prefixes, options, &result, deadline_us, cancellable, error))
      return FALSE;
    adopt (self, prefixes);
  }
  if (restored) {
    *restored = result;
    result = (MusterRestored){0};
  }

  return TRUE;
}

gboolean
muster_saver_restore_latest (MusterSaver *self, MusterSession *session, const char *directory,
                             char **restored, char **passed_over, gint64 deadline_us,
                             GCancellable *cancellable, GError **error)
{
  g_auto (MusterRestored) result = {0};

  if (!muster_saver_restore_latest_with (self, session, directory, NULL, &result, deadline_us,
                                         cancellable, error))
    return FALSE;
  *restored = g_steal_pointer (&result.prefix);
  if (passed_over)
    *passed_over = g_steal_pointer (&result.passed_over);

  return TRUE;
}
