// SPDX-License-Identifier: Apache-2.0
#include "bundle/checkpoint_state.h"
#include "saver/saver_private.h"

/* Runs the restore op with the prefix fed: what preflight has found fit. */
static gboolean
run_restore (MusterSaver *self, MusterSession *session, const char *prefix, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  g_autofree char *path = muster_saver_path_for_master (self, prefix);
  g_autoptr (MusterTensor) name = muster_tensor_new_string (path);
  MusterFeed feed = {self->info.filename_tensor, name};
  MusterStep step = {.feeds = &feed,
                     .n_feeds = 1,
                     .targets = &self->info.restore_op,
                     .n_targets = 1,
                     .deadline_us = deadline_us};
  g_autoptr (GError) failure = NULL;

  if (muster_session_run (session, &step, NULL, NULL, cancellable, &failure))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_NOT_FOUND))
    g_prefix_error (&failure, "Does the master see that directory? ");
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "Restoring '%s': ", prefix);

  return FALSE;
}

/* The graph's variables, and then what lies outside the graph. */
static gboolean
assign (MusterSaver *self, MusterSession *session, const char *prefix, gint64 deadline_us,
        GCancellable *cancellable, GError **error)
{
  g_autoptr (GPtrArray) states =
      muster_saveables_read (self->saveables, self->storage, prefix, error);

  return states && run_restore (self, session, prefix, deadline_us, cancellable, error) &&
         muster_saveables_hand_out (states, error);
}

gboolean
muster_saver_restore (MusterSaver *self, MusterSession *session, const char *prefix,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_return_val_if_fail (MUSTER_IS_SAVER (self) && MUSTER_IS_SESSION (session), FALSE);

  return muster_saver_preflight (self, prefix, cancellable, error) &&
         assign (self, session, prefix, deadline_us, cancellable, error);
}

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

/* The first candidate that is whole and fits, or NULL with the newest one's fault. */
static const char *
choose (MusterSaver *self, GPtrArray *prefixes, char **passed_over, GCancellable *cancellable,
        GError **error)
{
  g_autoptr (GError) newest = NULL;
  g_autoptr (GString) faults = g_string_new (NULL);

  for (guint i = 0; i < prefixes->len; i++) {
    g_autoptr (GError) failure = NULL;
    if (muster_saver_preflight (self, prefixes->pdata[i], cancellable, &failure)) {
      *passed_over = faults->len > 0 ? g_strdup (faults->str) : NULL;
      return prefixes->pdata[i];
    }
    if (!is_not_whole (failure)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return NULL;
    }
    g_string_append_printf (faults, "%s%s", faults->len > 0 ? "; " : "", failure->message);
    if (!newest)
      newest = g_steal_pointer (&failure);
  }
  g_propagate_error (error, g_steal_pointer (&newest));

  return NULL;
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
muster_saver_restore_latest (MusterSaver *self, MusterSession *session, const char *directory,
                             char **restored, char **passed_over, gint64 deadline_us,
                             GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autofree char *faults = NULL;

  g_return_val_if_fail (MUSTER_IS_SAVER (self) && MUSTER_IS_SESSION (session), FALSE);

  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (self->storage, directory, &failure);
  if (failure) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (!state) {
    *restored = NULL;
    return TRUE;
  }

  g_autoptr (GPtrArray) prefixes = candidates (self, directory, state);
  const char *chosen = choose (self, prefixes, &faults, cancellable, error);
  if (!chosen || !assign (self, session, chosen, deadline_us, cancellable, error))
    return FALSE;
  *restored = g_strdup (chosen);
  if (passed_over)
    *passed_over = g_steal_pointer (&faults);
  adopt (self, prefixes);

  return TRUE;
}
