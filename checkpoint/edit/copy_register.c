// SPDX-License-Identifier: Apache-2.0
/* Enters a copy into its directory: the state file's list, the side file's entry, and whether it
 * becomes the latest. A job's own checkpoint is never replaced as the latest, unless that is
 * requested. */
#include "checkpoint/edit/copy_register_private.h"

#include "base/files/local_path_private.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/state/state_text_private.h"

#include <string.h>

static gint64
step_of (const MusterCopyEntry *self)
{
  return self->original != NULL && self->original->step >= 0
             ? self->original->step
             : muster_checkpoint_step (self->prefix);
}

/* Returns TRUE for a path of the state file in this directory. */
static gboolean
is_here (const MusterCopyEntry *self, const char *path)
{
  g_autofree char *directory = g_path_get_dirname (path);
  const char *here = muster_local_path (self->directory);
  if (strcmp (directory, self->directory) == 0)
    return TRUE;
  if (!g_path_is_absolute (path) || strstr (here, "://") != NULL)
    return FALSE;
  g_autofree char *absolute = g_canonicalize_filename (here, NULL);
  return strcmp (directory, absolute) == 0;
}

static gboolean
is_same (const MusterCopyEntry *self, const char *path)
{
  g_autofree char *name = g_path_get_basename (self->prefix);
  g_autofree char *other = g_path_get_basename (path);
  return strcmp (other, name) == 0 && is_here (self, path);
}

/* Returns TRUE if the directory's latest is itself a copy, of an earlier step, which this copy may
 * replace. A job's own checkpoint is never replaced as the latest. */
static gboolean
is_overtaken (const MusterCopyEntry *self, const char *latest)
{
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (self->record, latest);
  return is_here (self, latest) && one != NULL && one->copied && one->step < step_of (self);
}

static gboolean
becomes_latest (const MusterCopyEntry *self)
{
  const char *latest = self->state != NULL ? self->state->latest : NULL;
  if (self->latest != MUSTER_COPY_LATEST_AUTO)
    return self->latest == MUSTER_COPY_LATEST_ALWAYS;
  return latest == NULL || is_overtaken (self, latest);
}

gboolean
muster_copy_entry_read (MusterCopyEntry *self, GError **error)
{
  g_autoptr (GError) why = NULL;
  self->state_version =
      muster_checkpoint_state_version (self->storage, self->directory, NULL, &why);
  if (why == NULL)
    self->state = muster_checkpoint_state_read (self->storage, self->directory, &why);
  if (why != NULL) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  self->record = muster_checkpoint_record_read_to_write (self->storage, self->directory, error);
  if (self->record == NULL)
    return FALSE;
  self->becomes_latest =
      becomes_latest (self) || (self->state != NULL && is_same (self, self->state->latest));
  return TRUE;
}

static void
remove_listed (MusterCopyEntry *self)
{
  MusterCheckpointState *state = self->state;
  const gboolean has_times = state->timestamps->len == state->all->len;
  for (guint i = state->all->len; i-- > 0;)
    if (is_same (self, state->all->pdata[i])) {
      g_ptr_array_remove_index (state->all, i);
      if (has_times)
        g_array_remove_index (state->timestamps, i);
    }
}

/* Completes a state file that names a latest which it doesn't list, or lacks times for some. */
static void
complete (MusterCheckpointState *state)
{
  const gboolean is_listed =
      state->latest == NULL ||
      g_ptr_array_find_with_equal_func (state->all, state->latest, g_str_equal, NULL);
  if (!is_listed)
    g_ptr_array_add (state->all, g_strdup (state->latest));
  if (state->timestamps->len != state->all->len)
    g_array_set_size (state->timestamps, 0);
}

/* Returns TRUE if it isn't of the job whose checkpoint is the latest. */
static gboolean
is_foreign (const MusterCopyEntry *self, const MusterSideCheckpoint *one)
{
  const MusterSideCheckpoint *latest =
      muster_checkpoint_record_find (self->record, self->state->latest);
  return (latest == NULL || !latest->copied) &&
         muster_side_checkpoint_is_foreign (one, self->record);
}

/* Returns its place in the list, which is oldest first and ends in the latest. What a job can't
 * restore is replaced by the one before: its own come after those of others. */
static guint
place_of (const MusterCopyEntry *self, const MusterSideCheckpoint *one)
{
  const GPtrArray *all = self->state->all;
  const gboolean is_first = self->becomes_latest || is_foreign (self, one);
  for (guint i = 0; i < all->len && !self->becomes_latest; i++) {
    const gboolean is_other_first =
        is_foreign (self, muster_checkpoint_record_find (self->record, all->pdata[i]));
    if (strcmp (all->pdata[i], self->state->latest) == 0 || (is_first && !is_other_first) ||
        (is_first == is_other_first && muster_checkpoint_step (all->pdata[i]) > one->step))
      return i;
  }
  return all->len;
}

/* Lists the copy. One that is kept for good isn't listed, unless it is the latest, because
 * retention removes what leaves the list. */
static void
list (MusterCopyEntry *self, const MusterSideCheckpoint *one)
{
  MusterCheckpointState *state = self->state;
  complete (state);
  const gboolean has_times = state->timestamps->len == state->all->len;
  remove_listed (self);
  if ((one->preserved || one->pinned) && !self->becomes_latest)
    return;
  const guint place = place_of (self, one);
  g_ptr_array_insert (state->all, (gint)place, g_strdup (self->prefix));
  if (has_times)
    g_array_insert_val (state->timestamps, place, one->time);
  if (self->becomes_latest) {
    g_free (state->latest);
    state->latest = g_strdup (self->prefix);
  }
}

/* Copies what people and evaluators noted of the original. */
static void
note_marks (MusterSideCheckpoint *one, const MusterSideCheckpoint *original)
{
  one->preserved = original->preserved;
  one->preserved_for = g_strdup (original->preserved_for);
  one->pinned = original->pinned;
  one->pinned_for = g_strdup (original->pinned_for);
  for (guint i = 0; i < original->metrics->len; i++) {
    const MusterSideMetric *metric = &g_array_index (original->metrics, MusterSideMetric, i);
    muster_side_checkpoint_set_metric (one, metric->name, metric->value);
  }
}

static MusterSideCheckpoint *
note (MusterCopyEntry *self)
{
  const MusterSideCheckpoint *original = self->original;
  muster_checkpoint_record_forget (self->record, self->prefix);
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (self->record, self->prefix);
  one->step = step_of (self);
  one->time = original != NULL && original->time > 0 ? original->time : self->time;
  one->epoch = original != NULL ? original->epoch : 0;
  one->run = original != NULL ? g_strdup (original->run) : NULL;
  if (original != NULL)
    note_marks (one, original);
  one->verified = TRUE;
  one->copied = TRUE;
  return one;
}

static gboolean
write_state (MusterCopyEntry *self, const MusterSideCheckpoint *one, GError **error)
{
  if (self->state == NULL && self->becomes_latest) {
    self->state = muster_checkpoint_state_new ();
    self->state->version = g_steal_pointer (&self->state_version);
  }
  if (self->state == NULL)
    return TRUE;
  list (self, one);
  return muster_checkpoint_state_write (self->storage, self->directory, self->state, error);
}

/* Writes the state file first, since what it names counts. Without locks, the side file comes
 * first, because its version shows whether another writer has changed the directory. */
gboolean
muster_copy_entry_write (MusterCopyEntry *self, gboolean has_meta_graph, GError **error)
{
  MusterSideCheckpoint *known =
      self->was_there ? muster_checkpoint_record_find (self->record, self->prefix) : NULL;
  MusterSideCheckpoint *one = known != NULL ? known : note (self);
  const gboolean is_state_last = self->record->version != NULL;
  if (!is_state_last && !write_state (self, one, error))
    return FALSE;
  return (known != NULL ||
          (muster_side_checkpoint_describe (one, self->storage, self->prefix, has_meta_graph,
                                            error) &&
           muster_checkpoint_record_write (self->storage, self->directory, self->record, error))) &&
         (!is_state_last || write_state (self, one, error));
}

void
muster_copy_entry_clear (MusterCopyEntry *self)
{
  g_clear_pointer (&self->state_version, g_free);
  g_clear_pointer (&self->state, muster_checkpoint_state_free);
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
}
