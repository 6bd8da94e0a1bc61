// SPDX-License-Identifier: Apache-2.0
/* Marks of a checkpoint in the side file that others than its saver set: pins and metrics. Each
 * is one change under the directory's lock, repeated if another writer was faster in a store
 * without locks. */
#include "checkpoint/state/checkpoint_mark_private.h"

#include "base/error.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/state/state_text_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/stores/default_storage.h"

#include <string.h>

/* One change, with the directory's lock held. */
typedef struct {
  MusterStorage *storage; /* (owned) */
  const char *prefix;
  char *directory;                /* (owned) */
  gint64 mtime_us;                /* of the index */
  MusterDirectoryLock *lock;      /* (owned) */
  MusterCheckpointRecord *record; /* (owned) */
} Mark;

static void
mark_clear (Mark *self)
{
  g_free (self->directory);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->lock, muster_directory_unlock);
  g_clear_object (&self->storage);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Mark, mark_clear)

/* One change. */
typedef struct {
  gboolean (*note) (Mark *mark, const void *what, GError **error);
  const void *what; /* of note () */
} Noting;

/* A store that doesn't answer is an error, not a missing checkpoint. */
static gboolean
find_index (Mark *self, GError **error)
{
  g_autofree char *path = muster_bundle_index_path (self->prefix);
  g_autoptr (GError) why = NULL;
  MusterStorageInfo info;

  if (muster_storage_stat (self->storage, path, &info, &why)) {
    self->mtime_us = info.mtime_us;
    return TRUE;
  }
  if (muster_storage_failure_is_absent (why))
    return muster_fail (error, MUSTER_ERROR_NOT_FOUND, "no checkpoint '%s': '%s' doesn't exist",
                        self->prefix, path);
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

static gboolean
check (Mark *self, GError **error)
{
  if (!find_index (self, error))
    return FALSE;
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, self->prefix);
  if (one != NULL && one->pending_delete)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "'%s' is being removed: only a reader keeps it; copy it to keep it",
                        self->prefix);
  return TRUE;
}

static gboolean
open_mark (Mark *self, MusterStorage *storage, const char *prefix, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  self->storage = muster_storage_bound (storage != NULL ? storage : muster_default_storage (),
                                        deadline_us, NULL, cancellable);
  self->prefix = prefix;
  self->directory = g_path_get_dirname (prefix);
  if (!find_index (self, error)) /* no lock file is created in a path that isn't a directory */
    return FALSE;
  self->lock =
      muster_directory_lock (self->storage, self->directory, deadline_us, NULL, cancellable, error);
  self->record =
      self->lock != NULL
          ? muster_checkpoint_record_read_to_write (self->storage, self->directory, error)
          : NULL;
  return self->record != NULL && check (self, error);
}

static MusterSideCheckpoint *
entry_of (Mark *self)
{
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (self->record, self->prefix);
  if (one->step < 0)
    one->step = muster_checkpoint_step (self->prefix);
  return one;
}

static gboolean
write_record (const Mark *self, GError **error)
{
  return muster_checkpoint_record_write (self->storage, self->directory, self->record, error);
}

/* Removes it from the list, because TensorFlow's savers remove the oldest of that list. The
 * latest stays in it. */
static gboolean
unlist (const Mark *self, const char *state_file, GError **error)
{
  g_autofree char *version =
      muster_checkpoint_state_version (self->storage, self->directory, state_file, NULL);
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read_named (self->storage, self->directory, state_file, NULL);
  g_autofree char *name = g_path_get_basename (self->prefix);
  gboolean is_changed = FALSE;

  for (guint i = state != NULL ? state->all->len : 0; i-- > 0;) {
    g_autofree char *listed = g_path_get_basename (state->all->pdata[i]);
    if (strcmp (listed, name) != 0 || strcmp (state->all->pdata[i], state->latest) == 0)
      continue;
    is_changed = TRUE;
    g_ptr_array_remove_index (state->all, i);
    if (i < state->timestamps->len)
      g_array_remove_index (state->timestamps, i);
  }
  if (!is_changed)
    return TRUE;
  g_free (state->version);
  state->version = g_steal_pointer (&version);
  return muster_checkpoint_state_write_named (self->storage, self->directory, state_file, state,
                                              error);
}

static gboolean
note_once (const Noting *self, MusterStorage *storage, const char *prefix, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  g_auto (Mark) mark = {0};
  return open_mark (&mark, storage, prefix, deadline_us, cancellable, error) &&
         self->note (&mark, self->what, error);
}

/* Repeats the change if another writer was faster in a store without locks. */
static gboolean
note (const Noting *self, MusterStorage *storage, const char *prefix, gint64 deadline_us,
      GCancellable *cancellable, GError **error)
{
  for (guint n_tries = 0;;) {
    GError *why = NULL;
    if (note_once (self, storage, prefix, deadline_us, cancellable, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, deadline_us, NULL, cancellable, why, error))
      return FALSE;
  }
}

static gboolean
note_pin (Mark *mark, const void *what, GError **error)
{
  const char *why = what;
  MusterSideCheckpoint *one = entry_of (mark);
  one->pinned = TRUE;
  g_free (one->pinned_for);
  one->pinned_for = why != NULL && *why != '\0' ? g_strdup (why) : NULL;
  return write_record (mark, error) && unlist (mark, one->state_file, error) &&
         (one->state_file == NULL || unlist (mark, NULL, error));
}

gboolean
muster_checkpoint_pin (MusterStorage *storage, const char *prefix, const char *why,
                       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, prefix);
  const Noting noting = {note_pin, why};
  return note (&noting, storage, prefix, deadline_us, cancellable, error);
}

/* Returns TRUE for an entry that held only marks: muster didn't publish that checkpoint. */
static gboolean
is_needless (const MusterSideCheckpoint *one)
{
  return !one->pinned && one->files->len == 0 && one->metrics->len == 0 && !one->preserved &&
         one->bad == NULL && one->deaths == 0 && one->holds->len == 0;
}

static gboolean
note_unpin (Mark *mark, const void *what G_GNUC_UNUSED, GError **error)
{
  MusterSideCheckpoint *one = muster_checkpoint_record_find (mark->record, mark->prefix);
  if (one == NULL || !one->pinned)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "'%s' isn't pinned", mark->prefix);
  one->pinned = FALSE;
  g_clear_pointer (&one->pinned_for, g_free);
  if (is_needless (one))
    muster_checkpoint_record_forget (mark->record, mark->prefix);
  return write_record (mark, error);
}

gboolean
muster_checkpoint_unpin (MusterStorage *storage, const char *prefix, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, prefix);
  const Noting noting = {note_unpin, NULL};
  return note (&noting, storage, prefix, deadline_us, cancellable, error);
}

static gboolean
set_metric (Mark *mark, const char *name, double value, GError **error)
{
  MusterSideCheckpoint *one = entry_of (mark);
  muster_side_checkpoint_set_metric (one, name, value);
  return one->metrics->len <= MUSTER_MOST_METRICS ||
         muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "'%s' has %d metrics already, which is the limit", mark->prefix,
                      MUSTER_MOST_METRICS);
}

static gboolean
note_metric (Mark *mark, const void *what, GError **error)
{
  const MusterSideMetric *metric = what;
  return set_metric (mark, metric->name, metric->value, error) && write_record (mark, error);
}

gboolean
muster_checkpoint_set_metric (MusterStorage *storage, const char *prefix, const char *name,
                              double value, gint64 deadline_us, GCancellable *cancellable,
                              GError **error)
{
  muster_require (error, FALSE, prefix, name);
  g_autofree char *own = muster_keep_metric_name (name, error);
  const MusterSideMetric metric = {.name = own, .value = value};
  const Noting noting = {note_metric, &metric};
  return own != NULL && note (&noting, storage, prefix, deadline_us, cancellable, error);
}

/* --- an evaluator's --- */

typedef struct {
  gint64 for_us;
  double before; /* the hold in whose place it comes; 0: none */
  double *until; /* the new one */
} Hold;

/* Ends a hold, and those that are over. */
static void
end_hold (GArray *holds, double hold, double now)
{
  for (guint i = holds->len; i-- > 0;) {
    const double until = g_array_index (holds, double, i);
    if (until == hold || until <= now)
      g_array_remove_index (holds, i);
  }
}

static gboolean
has_hold (const GArray *holds, double hold)
{
  for (guint i = 0; i < holds->len; i++)
    if (g_array_index (holds, double, i) == hold)
      return TRUE;
  return FALSE;
}

/* A hold is known by its end, which no other one has. */
static gboolean
note_hold (Mark *mark, const void *what, GError **error)
{
  const Hold *self = what;
  MusterSideCheckpoint *one = entry_of (mark);
  const double now = muster_checkpoint_record_now (muster_system_clock ());
  double until = now + (double)self->for_us / (double)MUSTER_SECOND;
  end_hold (one->holds, self->before, now);
  while (has_hold (one->holds, until))
    until += 0.001;
  if (one->holds->len >= MUSTER_MOST_METRICS)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "'%s' is held by %u evaluators already", mark->prefix, one->holds->len);
  g_array_append_val (one->holds, until);
  *self->until = until;
  return write_record (mark, error);
}

gboolean
muster_checkpoint_hold (MusterStorage *storage, const char *prefix, gint64 for_us, double *hold,
                        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  double until = 0;
  const Hold what = {for_us, *hold, &until};
  const Noting noting = {note_hold, &what};
  if (!note (&noting, storage, prefix, deadline_us, cancellable, error))
    return FALSE;
  *hold = until;
  return TRUE;
}

static gboolean
note_evaluated (Mark *mark, const void *what, GError **error)
{
  const MusterEvaluationMarks *self = what;
  if (self->mtime_us != 0 && self->mtime_us != mark->mtime_us)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                        "'%s' was replaced while it was evaluated", mark->prefix);
  MusterSideCheckpoint *one = entry_of (mark);
  end_hold (one->holds, self->hold, muster_checkpoint_record_now (muster_system_clock ()));
  for (guint i = 0; self->values != NULL && i < self->values->len; i++)
    if (!set_metric (mark, self->names[i], g_array_index (self->values, double, i), error))
      return FALSE;
  if (is_needless (one))
    muster_checkpoint_record_forget (mark->record, mark->prefix);
  return write_record (mark, error);
}

gboolean
muster_checkpoint_set_evaluated (MusterStorage *storage, const char *prefix,
                                 const MusterEvaluationMarks *marks, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error)
{
  const Noting noting = {note_evaluated, marks};
  return note (&noting, storage, prefix, deadline_us, cancellable, error);
}
