// SPDX-License-Identifier: Apache-2.0
/* A training state comes back: the checkpoint that its directory names, or the newest whole one. */
#include "base/log_private.h"
#include "base/require_private.h"
#include "callbacks/worker_training_state_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/storage_failure_private.h"

char **
muster_training_state_list (MusterStorage *storage, const char *directory, GError **error)
{
  g_autoptr (GError) why = NULL;
  char **prefixes = muster_checkpoint_list (storage, directory, &why);
  if (prefixes != NULL || muster_storage_failure_is_absent (why))
    return prefixes != NULL ? prefixes : g_new0 (char *, 1);
  g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

/* Returns TRUE if the chief has replaced or removed what was read: its state doesn't name it any
 * more. A chief changes the state before it removes files, so a file that the state still names is
 * damaged. */
static gboolean
has_changed (MusterWorkerTrainingState *self, const char *prefix, const GError *failure,
             const MusterBounds *bounds)
{
  if (!muster_storage_failure_is_damage (failure))
    return FALSE;
  if (prefix == NULL)
    return muster_error_is (failure, MUSTER_ERROR_NOT_FOUND);
  g_autofree char *named = muster_latest_checkpoint (bounds->storage, self->read_dir, NULL);
  return g_strcmp0 (named, prefix) != 0;
}

/* Restores the one that the directory's state names. If the chief has replaced it during the read,
 * the new one is read (D000.6). NULL without an error if there is no state; *prefix is set even if
 * it can't be restored. */
static gboolean
restore_named (MusterWorkerTrainingState *self, gboolean may_retry, char **prefix,
               const MusterBounds *bounds, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_free (*prefix);
  *prefix = muster_latest_checkpoint (bounds->storage, self->read_dir, &failure);
  if (*prefix != NULL &&
      muster_saver_restore (self->saver, self->session, &(MusterRestoreOptions){.prefix = *prefix},
                            NULL, bounds->deadline_us, bounds->cancellable, &failure))
    return TRUE;
  if (failure == NULL)
    return FALSE;
  if (may_retry && has_changed (self, *prefix, failure, bounds))
    return restore_named (self, FALSE, prefix, bounds, error);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static void
add_cause (GString *causes, const char *prefix, const GError *failure)
{
  g_autofree char *name = g_path_get_basename (prefix);

  g_string_append_printf (causes, "%s'%s': %s", causes->len > 0 ? "; " : "", name,
                          failure->message);
}

/* Restores the newest whole one in the directory; each contains its position. causes gets the
 * reasons of the others. FALSE without an error if none can be restored. */
static gboolean
restore_listed (MusterWorkerTrainingState *self, const char *named, GString *causes,
                const MusterBounds *bounds, GError **error)
{
  g_auto (GStrv) prefixes = muster_training_state_list (bounds->storage, self->read_dir, error);
  for (guint i = prefixes != NULL ? g_strv_length (prefixes) : 0; i > 0; i--) {
    const char *prefix = prefixes[i - 1];
    g_autoptr (GError) failure = NULL;
    if (g_strcmp0 (prefix, named) == 0)
      continue;
    if (muster_saver_restore (self->saver, self->session, &(MusterRestoreOptions){.prefix = prefix},
                              NULL, bounds->deadline_us, bounds->cancellable, &failure)) {
      muster_log (G_LOG_LEVEL_WARNING, "restore", "MESSAGE",
                  "Restored '%s' as the training state: %s", prefix, causes->str);
      return TRUE;
    }
    if (!muster_storage_failure_is_damage (failure)) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    add_cause (causes, prefix, failure);
  }
  return FALSE;
}

/* A state without names promises nothing: then checkpoints that aren't whole are ignored. */
static gboolean
restore_any (MusterWorkerTrainingState *self, gboolean *restored, const MusterBounds *bounds,
             GError **error)
{
  g_autoptr (GError) failure = NULL, worse = NULL;
  g_autofree char *named = NULL;
  g_autoptr (GString) causes = g_string_new (NULL);

  *restored = restore_named (self, TRUE, &named, bounds, &failure);
  if (*restored)
    return TRUE;
  if (failure != NULL && !muster_storage_failure_is_damage (failure)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (failure != NULL)
    add_cause (causes, named != NULL ? named : "checkpoint", failure);
  else
    g_string_append (causes, "no file 'checkpoint' names one");
  *restored = restore_listed (self, named, causes, bounds, &worse);
  if (*restored)
    return TRUE;
  if (worse != NULL) {
    g_propagate_error (error, g_steal_pointer (&worse));
    return FALSE;
  }
  if (failure != NULL)
    g_set_error (error, failure->domain, failure->code,
                 "Restoring the training state in '%s' failed: %s; put back an undamaged "
                 "checkpoint, or remove the directory to start again",
                 self->read_dir, causes->str);
  return failure == NULL;
}

gboolean
muster_worker_training_state_restore (MusterWorkerTrainingState *self, gboolean *restored,
                                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  g_auto (MusterBounds) bounds =
      muster_bounds (self->storage, deadline_us, self->clock, cancellable);
  gboolean is_restored = FALSE;

  if (!muster_training_state_check_time ("Restoring", self->read_dir, &bounds, error) ||
      !restore_any (self, &is_restored, &bounds, error))
    return FALSE;
  if (restored != NULL)
    *restored = is_restored;
  return TRUE;
}
