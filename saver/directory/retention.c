// SPDX-License-Identifier: Apache-2.0
/* Publishes a checkpoint in a directory and lists it, in the order of publish_once (): free the
 * name, check the claim, publish the files, record them in state file and side file. Only then are
 * old checkpoints removed (retention_remove.c); retention_decide.c decides which. */
#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/format/bundle_place_private.h"
#include "checkpoint/format/bundle_publish_private.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine_private.h"
#include "checkpoint/state/state_text_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "saver/directory/checkpoint_directory_private.h"
#include "saver/directory/retention_private.h"

#include <math.h>
#include <string.h>

void
muster_retention_list_with (MusterCheckpointDirectory *self, const char *prefix, double now,
                            MusterRetentionChange *change)
{
  g_mutex_lock (&self->lock);
  change->mark = MIN (self->mark, now);
  for (guint i = 0; i < self->kept->len; i++) {
    const MusterKept *kept = self->kept->pdata[i];
    if (strcmp (kept->prefix, prefix) == 0)
      continue;
    const double time = isfinite (kept->time) ? MIN (kept->time, now) : kept->time;
    MusterKept *copy = muster_kept_new (kept->prefix, time);
    copy->is_beside = kept->is_beside;
    g_ptr_array_add (change->kept, copy);
  }
  g_mutex_unlock (&self->lock);
  g_ptr_array_add (change->kept, muster_kept_new (prefix, now));
}

static gboolean
write_state (MusterCheckpointDirectory *self, const char *directory, const char *prefix,
             const MusterRetentionChange *change, GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  gboolean are_known = TRUE;
  state->absolute_paths = self->absolute_paths;
  state->version = g_strdup (change->state_version);
  state->latest = g_strdup (prefix);
  state->last_preserved = self->rules.every_s > 0 ? change->mark : 0;
  for (guint i = 0; i < change->kept->len; i++) {
    const MusterKept *kept = change->kept->pdata[i];
    if (kept->is_beside)
      continue;
    g_ptr_array_add (state->all, g_strdup (kept->prefix));
    g_array_append_val (state->timestamps, kept->time);
    are_known = are_known && isfinite (kept->time);
  }
  if (!are_known)
    g_array_set_size (state->timestamps, 0);
  return muster_checkpoint_state_write_named (change->storage, directory, self->latest_filename,
                                              state, error);
}

/* Keeps the pin of a replaced checkpoint: pins belong to names. */
static MusterSideCheckpoint *
begin_entry (MusterCheckpointRecord *record, const char *prefix)
{
  MusterSideCheckpoint *before = muster_checkpoint_record_find (record, prefix);
  const gboolean is_pinned = before != NULL && before->pinned;
  char *why = before != NULL ? g_steal_pointer (&before->pinned_for) : NULL;
  muster_checkpoint_record_forget (record, prefix);
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, prefix);
  one->pinned = is_pinned;
  one->pinned_for = why;
  return one;
}

static gboolean
describe (MusterCheckpointDirectory *self, MusterStorage *storage, MusterCheckpointRecord *record,
          const MusterNewCheckpoint *checkpoint, double now, GError **error)
{
  const char *prefix = checkpoint->prefix;
  MusterSideCheckpoint *one = begin_entry (record, prefix);
  one->step = MAX (checkpoint->step, -1);
  one->epoch = muster_checkpoint_directory_claimed_epoch (self, checkpoint->directory);
  one->time = now;
  one->verified = checkpoint->is_verified;
  g_mutex_lock (&self->lock);
  one->run = g_strdup (checkpoint->run != NULL ? checkpoint->run : self->run);
  g_mutex_unlock (&self->lock);
  one->state_file = g_strdup (self->latest_filename);
  for (guint i = 0; checkpoint->metrics != NULL && i < checkpoint->metrics->len; i++) {
    const MusterSideMetric *metric = &g_array_index (checkpoint->metrics, MusterSideMetric, i);
    muster_side_checkpoint_set_metric (one, metric->name, metric->value);
  }
  return muster_side_checkpoint_describe (one, storage, prefix, self->meta_graph != NULL, error);
}

/* Drops checkpoints that another process has pruned in the meantime, so that the state file
 * doesn't name them again. Those that the record knows exist, or are marked for removal, and aren't
 * looked up. */
static void
drop_pruned (MusterCheckpointRecord *record, const char *directory, MusterRetentionChange *change,
             const char *just_saved)
{
  for (guint i = change->kept->len; i-- > 0;) {
    const MusterKept *kept = change->kept->pdata[i];
    const MusterSideCheckpoint *one = muster_retention_entry (record, directory, kept->prefix);
    gboolean is_known =
        (one != NULL && !one->pending_delete) || strcmp (kept->prefix, just_saved) == 0;
    if (!is_known && muster_checkpoint_is_gone (change->storage, kept->prefix))
      g_ptr_array_remove_index (change->kept, i);
  }
}

static gboolean
is_named (const MusterCheckpointState *state, const char *name)
{
  for (guint i = 0; i < state->all->len; i++) {
    g_autofree char *named = g_path_get_basename (state->all->pdata[i]);
    if (strcmp (named, name) == 0)
      return TRUE;
  }
  return FALSE;
}

/* Clears the mark of removal from a checkpoint that this list keeps and the state still names:
 * an earlier save marked it and then failed to write the state. The state no longer names what
 * another process prunes. */
static void
spare_kept (MusterCheckpointDirectory *self, MusterCheckpointRecord *record, const char *directory,
            const MusterRetentionChange *change)
{
  g_autoptr (MusterCheckpointState) state = NULL;
  for (guint i = 0; i < change->kept->len; i++) {
    const MusterKept *kept = change->kept->pdata[i];
    MusterSideCheckpoint *one = muster_retention_entry (record, directory, kept->prefix);
    if (one == NULL || !one->pending_delete)
      continue;
    if (state == NULL)
      state = muster_checkpoint_state_read_named (change->storage, directory, self->latest_filename,
                                                  NULL);
    if (state == NULL)
      return; /* it stays marked, as before */
    one->pending_delete = !is_named (state, one->name);
  }
}

static void
mark_leaving (MusterCheckpointRecord *record, const char *directory,
              const MusterRetentionChange *change)
{
  for (guint i = 0; i < change->leaving->len; i++) {
    MusterSideCheckpoint *one =
        muster_retention_entry (record, directory, change->leaving->pdata[i]);
    if (one != NULL)
      one->pending_delete = TRUE;
  }
  for (guint i = 0; i < change->preserved->len; i++) {
    const MusterPreserved *preserved = change->preserved->pdata[i];
    MusterSideCheckpoint *one = muster_retention_entry (record, directory, preserved->prefix);
    if (one == NULL)
      continue;
    one->preserved = TRUE;
    g_free (one->preserved_for);
    one->preserved_for = g_strdup (preserved->why);
  }
}

static void
commit (MusterCheckpointDirectory *self, MusterRetentionChange *change, guint64 bytes)
{
  g_mutex_lock (&self->lock);
  g_autoptr (GPtrArray) before = self->kept;
  self->kept = g_steal_pointer (&change->kept);
  self->mark = change->mark;
  self->last_bytes = MAX (bytes, 1);
  g_mutex_unlock (&self->lock);
}

static gboolean
write_record (MusterCheckpointDirectory *self, MusterCheckpointRecord *record,
              MusterNewCheckpoint *checkpoint, const MusterRetentionChange *change, double now,
              GError **error)
{
  const char *directory = checkpoint->directory;
  muster_retention_forget_gone (self, change->storage, record, directory);
  spare_kept (self, record, directory, change);
  mark_leaving (record, directory, change);
  const gboolean is_described = describe (self, change->storage, record, checkpoint, now, error);
  checkpoint->bytes = muster_checkpoint_record_find (record, checkpoint->prefix)->bytes;
  muster_checkpoint_record_set_rules (record, self->latest_filename, &change->rules);
  if (self->rules.every_s > 0)
    record->last_preserved = MAX (change->mark, 0);
  muster_checkpoint_directory_put_goodput (self, record);
  return is_described && muster_checkpoint_record_write (change->storage, directory, record, error);
}

/* Writes state and record. Where there are locks, the state comes first: from then on the save
 * counts, since a restore needs nothing of the record. Without locks the record comes first,
 * because its version shows whether another chief has claimed the directory. */
static gboolean
record_it (MusterCheckpointDirectory *self, MusterStorage *storage, MusterCheckpointRecord *record,
           MusterNewCheckpoint *checkpoint, const char *state_version, double now, GError **error)
{
  const char *directory = checkpoint->directory, *prefix = checkpoint->prefix;
  const gboolean is_first = self->needs_record || record->version != NULL;
  g_autoptr (GError) failure = NULL;
  g_auto (MusterRetentionChange) change = {0};
  muster_retention_change_init (&change);
  change.storage = storage;
  change.state_version = state_version;
  muster_retention_list_with (self, prefix, now, &change);
  drop_pruned (record, directory, &change, prefix);
  muster_retention_decide (self, record, checkpoint, &change);
  if (is_first && !write_record (self, record, checkpoint, &change, now, error))
    return FALSE;
  if (!write_state (self, directory, prefix, &change, error))
    return FALSE;
  if (!is_first && !write_record (self, record, checkpoint, &change, now, &failure))
    checkpoint->trouble = g_strdup (failure->message);
  commit (self, &change, checkpoint->bytes);
  (void)muster_retention_remove (self, storage, change.leaving, prefix);
  return TRUE;
}

gboolean
muster_checkpoint_directory_write_meta_graph (MusterCheckpointDirectory *self,
                                              MusterStorage *storage, const char *prefix,
                                              GError **error)
{
  if (self->meta_graph == NULL)
    return TRUE;
  g_autofree char *path = g_strconcat (prefix, ".meta", NULL);
  gsize size;
  const void *data = g_bytes_get_data (self->meta_graph, &size);
  return muster_storage_publish (storage, path, data, size, error);
}

/* Returns TRUE if a run's checkpoint of that step is in the past of the run that writes here. */
static gboolean
is_past (const MusterCheckpointRecord *record, const char *run, gint64 step)
{
  return run == NULL || record->run == NULL || strcmp (run, record->run) == 0 ||
         (g_strcmp0 (run, record->resumed_run) == 0 && step <= record->resumed_step);
}

/* Returns TRUE for a copy that took longer than a save which went here directly, and for a copy
 * of a branch that the job has left since. It must not become the latest. */
static gboolean
is_stale (MusterCheckpointDirectory *self, const MusterCheckpointRecord *record,
          const MusterNewCheckpoint *checkpoint)
{
  gboolean has_newer = FALSE;
  if (!checkpoint->is_copy)
    return FALSE;
  if (!is_past (record, checkpoint->run, checkpoint->step))
    return TRUE;
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    has_newer = has_newer || (one->run != NULL && g_strcmp0 (one->run, self->run) == 0 &&
                              one->bad == NULL && one->step > checkpoint->step);
  }
  g_mutex_unlock (&self->lock);
  return has_newer;
}

/* The versions that the files must still have in a store without locks. They are read before the
 * claim is checked, so that this writer can't overtake a chief that claims the directory after the
 * check. */
typedef struct {
  char *index, *state; /* (owned) (nullable) */
} Versions;

static void
versions_clear (Versions *self)
{
  g_free (self->index);
  g_free (self->state);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Versions, versions_clear)

static gboolean
read_versions (MusterCheckpointDirectory *self, MusterStorage *storage,
               const MusterNewCheckpoint *checkpoint, Versions *versions, GError **error)
{
  g_autoptr (GError) why = NULL;
  if (!checkpoint->is_published)
    versions->index = muster_bundle_index_version (storage, checkpoint->prefix, &why);
  if (why == NULL && !checkpoint->is_unlisted)
    versions->state = muster_checkpoint_state_version (storage, checkpoint->directory,
                                                       self->latest_filename, &why);
  const gboolean are_known = why == NULL;
  if (!are_known)
    g_propagate_error (error, g_steal_pointer (&why));
  return are_known;
}

static gboolean
set_aside (MusterStorage *storage, const char *prefix, const char *reason, const char *what,
           GError **error)
{
  g_autofree char *aside = NULL;

  if (!muster_checkpoint_exists (storage, prefix))
    return TRUE;
  if (!muster_checkpoint_quarantine_locked (storage, prefix, reason, &aside, error))
    return FALSE;
  muster_log (G_LOG_LEVEL_WARNING, "quarantine", "MESSAGE", "'%s' %s: it was renamed '%s'", prefix,
              what, aside);
  return TRUE;
}

/* Sets files of that name aside that aren't this saver's: they may be somebody's only copy. */
static gboolean
set_stranger_aside (MusterCheckpointDirectory *self, MusterStorage *storage, const char *prefix,
                    GError **error)
{
  g_mutex_lock (&self->lock);
  const gboolean is_one = g_hash_table_contains (self->strangers, prefix);
  g_mutex_unlock (&self->lock);
  if (is_one &&
      !set_aside (storage, prefix, "a save had the same name, and nothing recorded whose it was",
                  "was there before, and neither the state file nor '" MUSTER_RECORD_FILE
                  "' names it",
                  error))
    return FALSE;
  muster_checkpoint_directory_take_in (self, prefix);
  return TRUE;
}

/* Reads what publishing depends on: the versions of the files, then the record (transfer full).
 * */
static MusterCheckpointRecord *
read_place (MusterCheckpointDirectory *self, MusterLease *lease, MusterDirectoryLock *lock,
            const MusterNewCheckpoint *checkpoint, Versions *versions, gboolean *changed,
            GError **error)
{
  versions_clear (versions);
  *versions = (Versions){0};
  return read_versions (self, muster_directory_lock_storage (lock), checkpoint, versions, error)
             ? muster_checkpoint_directory_read_claimed (self, lease, lock, checkpoint->directory,
                                                         changed, error)
             : NULL;
}

/* Reads the same, after it freed the name of a checkpoint that was to be kept. */
static MusterCheckpointRecord *
free_place (MusterCheckpointDirectory *self, MusterLease *lease, MusterDirectoryLock *lock,
            const MusterNewCheckpoint *checkpoint, Versions *versions, gboolean *changed,
            GError **error)
{
  g_autoptr (MusterCheckpointRecord) record =
      read_place (self, lease, lock, checkpoint, versions, changed, error);

  if (record == NULL || checkpoint->is_published ||
      !muster_retention_would_lose (self, record, checkpoint->prefix))
    return g_steal_pointer (&record);
  return set_aside (muster_directory_lock_storage (lock), checkpoint->prefix,
                    "a save of another branch had the same name",
                    "was to be kept, and belongs to a branch that the job has left", error)
             ? read_place (self, lease, lock, checkpoint, versions, changed, error)
             : NULL;
}

static gboolean
publish_files (MusterStorage *storage, MusterNewCheckpoint *checkpoint, const char *version,
               GError **error)
{
  MusterBundlePublishing what = {.from = checkpoint->temporary,
                                 .to = checkpoint->prefix,
                                 .is_own = checkpoint->is_here,
                                 .version = version};
  if (!checkpoint->is_published) {
    checkpoint->is_published = muster_bundle_publish_with (storage, &what, error);
    checkpoint->is_unsure = what.is_unsure;
  }
  return checkpoint->is_published;
}

static gboolean
publish_once (MusterCheckpointDirectory *self, MusterLease *lease, MusterNewCheckpoint *checkpoint,
              gboolean *changed, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_auto (Versions) versions = {0};
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, checkpoint->directory, deadline_us, self->clock, cancellable, error);
  MusterStorage *storage = lock != NULL ? muster_directory_lock_storage (lock) : NULL;
  if (lock == NULL ||
      (!checkpoint->is_published && !set_stranger_aside (self, storage, checkpoint->prefix, error)))
    return FALSE;
  g_autoptr (MusterCheckpointRecord) record =
      free_place (self, lease, lock, checkpoint, &versions, changed, error);
  if (record == NULL)
    return FALSE;
  checkpoint->is_stale = is_stale (self, record, checkpoint);
  if (checkpoint->is_stale)
    return TRUE;
  const double now = muster_checkpoint_directory_now (self);
  return publish_files (storage, checkpoint, versions.index, error) &&
         muster_checkpoint_directory_write_meta_graph (self, storage, checkpoint->prefix, error) &&
         (checkpoint->is_unlisted ||
          record_it (self, storage, record, checkpoint, versions.state, now, error));
}

/* Repeats it: in a store without locks another writer may be faster. */
static gboolean
publish (MusterCheckpointDirectory *self, MusterLease *lease, MusterNewCheckpoint *checkpoint,
         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  for (guint n_tries = 0;;) {
    gboolean changed = FALSE;
    GError *why = NULL;
    if (publish_once (self, lease, checkpoint, &changed, deadline_us, cancellable, &why))
      return TRUE;
    if (changed && muster_error_is (why, MUSTER_ERROR_ABORTED))
      muster_checkpoint_directory_forget_claim (self, checkpoint->directory);
    if (!muster_directory_try_again (&n_tries, deadline_us, self->clock, cancellable, why, error))
      return FALSE;
  }
}

/* Copies and saves of this process take turns even in a store without locks. */
gboolean
muster_checkpoint_directory_publish (MusterCheckpointDirectory *self, MusterLease *lease,
                                     MusterNewCheckpoint *checkpoint, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error)
{
  g_mutex_lock (&self->publishing);
  gboolean is_done = publish (self, lease, checkpoint, deadline_us, cancellable, error);
  g_mutex_unlock (&self->publishing);
  return is_done;
}

char **
muster_checkpoint_directory_list (MusterCheckpointDirectory *self)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_mutex_lock (&self->lock);
  for (guint i = 0; i < self->kept->len; i++) {
    const MusterKept *kept = self->kept->pdata[i];
    if (!kept->is_beside)
      g_strv_builder_add (builder, kept->prefix);
  }
  g_mutex_unlock (&self->lock);
  return g_strv_builder_end (builder);
}

void
muster_checkpoint_directory_set_list (MusterCheckpointDirectory *self, const char *const *prefixes,
                                      const double *times)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (muster_kept_free);
  for (gsize i = 0; prefixes[i]; i++)
    g_ptr_array_add (list, muster_kept_new (prefixes[i], times != NULL ? times[i] : INFINITY));
  g_mutex_lock (&self->lock);
  g_autoptr (GPtrArray) before = self->kept;
  self->kept = list;
  g_mutex_unlock (&self->lock);
}

void
muster_checkpoint_directory_recover_list (MusterCheckpointDirectory *self, MusterStorage *storage,
                                          const char *const *prefixes)
{
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (double));
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  for (const char *const *prefix = prefixes; *prefix; prefix++) {
    const char *one[] = {*prefix, NULL};
    g_autoptr (GArray) time = muster_checkpoint_mtimes (storage, one);
    if (time->len == 0)
      continue; /* it is gone */
    g_array_append_vals (times, time->data, 1);
    g_ptr_array_add (found, (gpointer)*prefix);
  }
  g_ptr_array_add (found, NULL);
  muster_checkpoint_directory_set_list (self, (const char *const *)found->pdata,
                                        (const double *)(gpointer)times->data);
}
