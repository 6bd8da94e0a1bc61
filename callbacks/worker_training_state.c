// SPDX-License-Identifier: Apache-2.0
/* The state of a training that several tasks share: the chief saves, all restore. Other tasks
 * write to a directory that is removed. */
#include "callbacks/worker_training_state_private.h"

#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_private.h"

#define NAME      "training_state"
#define BASE      "ckpt"
#define UNUSED    (-1)
#define MAX_DEPTH 4 /* of removed directories: a save's own */

/* --- directories --- */

static char *
write_dir_for (const MusterWorkerTrainingStateOptions *options)
{
  g_autofree char *name = g_strdup_printf ("workertemp_%u", options->task_id);
  g_autofree char *last = g_path_get_basename (options->directory);

  if (!options->is_worker)
    return g_build_filename (options->directory, "chief", NULL);
  if (!options->workers_write)
    return NULL;
  return g_str_equal (last, name) ? g_strdup (options->directory)
                                  : g_build_filename (options->directory, name, NULL);
}

/* Removes a path and its contents. Missing files are no error, nor is another process that removes
 * them too. A link is removed, not followed: only what can't be removed is listed. */
static gboolean
remove_all (MusterStorage *storage, const char *path, guint depth, GError **error)
{
  g_auto (GStrv) names = NULL;
  if (muster_storage_remove (storage, path, NULL))
    return TRUE;
  if (depth < MAX_DEPTH)
    names = muster_storage_list (storage, path, NULL);
  for (char **name = names; name != NULL && *name != NULL; name++) {
    g_autofree char *inside = g_build_filename (path, *name, NULL);
    if (!remove_all (storage, inside, depth + 1, error))
      return FALSE;
  }
  return muster_storage_remove (storage, path, error);
}

/* A late or cancelled save is removed as well. */
static void
remove_write_dir (MusterWorkerTrainingState *self)
{
  g_autoptr (MusterStorage) own = muster_storage_for_cleanup (self->storage);
  (void)remove_all (own, self->write_dir, 0, NULL);
}

/* --- the object --- */

static MusterSaver *
make_saver (MusterMetaGraph *meta_graph, const MusterWorkerTrainingStateOptions *options,
            MusterProgressSaveable *progress, GError **error)
{
  /* This object manages the checkpoints: the old one is removed only after the new one was checked.
   */
  MusterSaverOptions own = {.base_name = BASE,
                            .unlisted = TRUE,
                            .no_meta_graph = TRUE,
                            .storage = options->storage,
                            .clock = options->clock};
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &own, error);

  if (saver == NULL || !muster_saver_add_saveable (saver, NAME, MUSTER_SAVEABLE (progress),
                                                   MUSTER_SAVEABLE_OPTIONAL, error))
    return NULL;
  if (options->lease != NULL)
    muster_saver_set_lease (saver, options->lease);
  return g_steal_pointer (&saver);
}

MusterWorkerTrainingState *
muster_worker_training_state_new (MusterMetaGraph *meta_graph, MusterSession *session,
                                  const MusterWorkerTrainingStateOptions *options, GError **error)
{
  muster_require (error, NULL, meta_graph, session);

  g_autoptr (MusterWorkerTrainingState) self = g_new0 (MusterWorkerTrainingState, 1);
  g_atomic_ref_count_init (&self->refs);

  if (options == NULL || options->directory == NULL || !*options->directory) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "a training state needs a directory");
    return NULL;
  }
  if (!muster_save_freq_check (&options->save_freq, error))
    return NULL;
  self->progress = muster_progress_saveable_new ();
  self->saver = make_saver (meta_graph, options, self->progress, error);
  if (self->saver == NULL ||
      !muster_storage_check_path (muster_saver_storage (self->saver), "training state's directory",
                                  options->directory, error))
    return NULL;
  self->session = g_object_ref (session);
  self->storage = g_object_ref (muster_saver_storage (self->saver));
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->save_freq = options->save_freq;
  self->is_worker = options->is_worker;
  self->read_dir = g_build_filename (options->directory, "chief", NULL);
  self->write_dir = write_dir_for (options);
  g_autoptr (MusterStorage) bound = muster_storage_bound_to_default (self->storage, self->clock);
  if (self->is_worker && self->write_dir != NULL &&
      !muster_storage_make_directory (bound, self->write_dir, error))
    return NULL;
  return g_steal_pointer (&self);
}

G_DEFINE_BOXED_TYPE (MusterWorkerTrainingState, muster_worker_training_state,
                     muster_worker_training_state_ref, muster_worker_training_state_free)

MusterWorkerTrainingState *
muster_worker_training_state_ref (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_worker_training_state_free (MusterWorkerTrainingState *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  if (self->is_worker && self->write_dir != NULL && self->storage != NULL)
    remove_write_dir (self);
  g_clear_object (&self->session);
  g_clear_object (&self->saver);
  g_clear_object (&self->storage);
  g_clear_object (&self->clock);
  g_clear_object (&self->progress);
  g_free (self->read_dir);
  g_free (self->write_dir);
  g_free (self);
}

const char *
muster_worker_training_state_read_dir (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->read_dir;
}

const char *
muster_worker_training_state_write_dir (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->write_dir;
}

gint64
muster_worker_training_state_saved_epoch (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, -1);
  return self->progress->epoch;
}

gint64
muster_worker_training_state_saved_batch (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, -1);
  return self->progress->batch;
}

/* --- saving --- */

gboolean
muster_training_state_check_time (const char *operation, const char *directory,
                                  const MusterBounds *bounds, GError **error)
{
  return muster_bounds_check (bounds, operation, "training state", directory, error);
}

/* The next N: above all existing ones. -1 with an error. */
static gint64
next_number (MusterWorkerTrainingState *self, MusterStorage *storage, GError **error)
{
  g_auto (GStrv) there = muster_training_state_list (storage, self->write_dir, error);
  gint64 highest = 0;
  for (char **prefix = there; prefix != NULL && *prefix != NULL; prefix++)
    highest = MAX (highest, muster_checkpoint_step (*prefix));
  return there != NULL ? highest + 1 : -1;
}

/* Removes only this object's checkpoints: ckpt-N. */
static void
remove_older (MusterWorkerTrainingState *self, MusterStorage *storage, const char *kept)
{
  g_auto (GStrv) there = muster_checkpoint_list (storage, self->write_dir, NULL);
  for (char **prefix = there; prefix != NULL && *prefix != NULL; prefix++) {
    g_autofree char *name = g_path_get_basename (*prefix);
    if (g_str_has_prefix (name, BASE "-") && muster_checkpoint_step (*prefix) >= 0 &&
        muster_checkpoint_step (*prefix) < muster_checkpoint_step (kept))
      (void)muster_remove_checkpoint (storage, *prefix,
                                      NULL); /* being read: removed with the next one */
  }
}

/* Checks the new one, names it, then removes the old one (B000.7, D000.2). */
static gboolean
commit (MusterWorkerTrainingState *self, const char *prefix, const MusterBounds *bounds,
        GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  MusterCheckpointOverview overview;
  if (!muster_checkpoint_inspect (bounds->storage, prefix, &overview, error)) {
    g_autoptr (MusterStorage) own = muster_storage_for_cleanup (self->storage);
    (void)muster_remove_checkpoint (own, prefix, NULL);
    return FALSE;
  }
  state->latest = g_strdup (prefix);
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->storage, self->write_dir, bounds->deadline_us, self->clock, bounds->cancellable, error);
  if (lock == NULL || !muster_checkpoint_state_write (muster_directory_lock_storage (lock),
                                                      self->write_dir, state, error))
    return FALSE;
  remove_older (self, bounds->storage, prefix);
  return TRUE;
}

static gboolean
write_state (MusterWorkerTrainingState *self, const MusterBounds *bounds, GError **error)
{
  const gint64 number = next_number (self, bounds->storage, error);
  if (number < 0)
    return FALSE;
  g_autofree char *prefix = muster_saver_save (self->saver, self->session, self->write_dir, number,
                                               bounds->deadline_us, bounds->cancellable, error);
  return prefix != NULL && (self->is_worker || commit (self, prefix, bounds, error));
}

gboolean
muster_worker_training_state_back_up (MusterWorkerTrainingState *self, gint64 epoch, gint64 batch,
                                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  g_auto (MusterBounds) bounds =
      muster_bounds (self->storage, deadline_us, self->clock, cancellable);
  gint64 epoch_before = self->progress->epoch, batch_before = self->progress->batch;

  if (self->write_dir == NULL)
    return TRUE;
  if (!muster_training_state_check_time ("Saving", self->write_dir, &bounds, error))
    return FALSE;
  self->progress->epoch = epoch;
  self->progress->batch = batch >= 0 ? batch : UNUSED;
  gboolean is_done = write_state (self, &bounds, error);
  if (!is_done) {
    self->progress->epoch = epoch_before;
    self->progress->batch = batch_before;
  }
  /* Removed in every case (D000.4). */
  if (self->is_worker)
    remove_write_dir (self);
  self->since_save = is_done ? 0 : self->since_save;
  return is_done;
}

/* --- where to start --- */

MusterFitPosition
muster_worker_training_state_initial (MusterWorkerTrainingState *self, MusterTrainingMode mode,
                                      MusterFitPosition wanted, gint64 n_batches)
{
  g_return_val_if_fail (self != NULL, (MusterFitPosition){0});

  const MusterProgressSaveable *progress = self->progress;
  if (mode != MUSTER_MODE_TRAIN || progress->epoch < 0)
    return wanted;
  MusterFitPosition initial =
      progress->batch < 0 ? (MusterFitPosition){progress->epoch + 1, 0}
                          : muster_fit_position_after (progress->epoch, progress->batch, n_batches);
  if (wanted.epoch > initial.epoch)
    muster_log (G_LOG_LEVEL_MESSAGE, "restore", "MESSAGE",
                "training resumes at epoch %" G_GINT64_FORMAT
                ", where it was saved, instead of epoch %" G_GINT64_FORMAT,
                initial.epoch, wanted.epoch);
  return initial;
}

/* The state first: a worker that reads meanwhile finds that there is none any more. */
static gboolean
delete_backup (MusterWorkerTrainingState *self, MusterStorage *storage, GError **error)
{
  if (self->is_worker)
    return TRUE;
  g_autofree char *state = g_build_filename (self->read_dir, "checkpoint", NULL);
  (void)muster_storage_remove (storage, state, NULL); /* what can't be removed fails below */
  return remove_all (storage, self->read_dir, 0, error);
}

gboolean
muster_worker_training_state_delete_backup (MusterWorkerTrainingState *self, GError **error)
{
  muster_require (error, FALSE, self);

  g_autoptr (MusterStorage) storage = muster_storage_bound_to_default (self->storage, self->clock);
  return delete_backup (self, storage, error);
}

/* --- as a callback --- */

static gboolean
train_begin (MusterFitPosition *start, gint64 n_batches, gint64 deadline_us,
             GCancellable *cancellable, gpointer user_data, GError **error)
{
  MusterWorkerTrainingState *self = user_data;
  self->n_batches = n_batches;
  self->since_save = 0;
  if (!muster_worker_training_state_restore (self, NULL, deadline_us, cancellable, error))
    return FALSE;
  *start = muster_worker_training_state_initial (self, MUSTER_MODE_TRAIN, *start, n_batches);
  self->seen = start->batch;
  return TRUE;
}

static gboolean
batch_end (gint64 epoch, gint64 batch, gint64 deadline_us, GCancellable *cancellable,
           gpointer user_data, GError **error)
{
  MusterWorkerTrainingState *self = user_data;
  self->since_save += MAX (batch + 1 - self->seen, 0);
  self->seen = batch + 1;
  if (self->save_freq.kind != MUSTER_SAVE_EVERY_N || self->since_save < self->save_freq.n)
    return TRUE;
  return muster_worker_training_state_back_up (self, epoch, batch, deadline_us, cancellable, error);
}

static gboolean
epoch_end (gint64 epoch, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
           GError **error)
{
  MusterWorkerTrainingState *self = user_data;
  self->seen = 0;
  return self->save_freq.kind != MUSTER_SAVE_EPOCH ||
         muster_worker_training_state_back_up (self, epoch, UNUSED, deadline_us, cancellable,
                                               error);
}

static gboolean
train_end (gint64 deadline_us, GCancellable *cancellable, gpointer user_data, GError **error)
{
  MusterWorkerTrainingState *self = user_data;
  g_auto (MusterBounds) bounds =
      muster_bounds (self->storage, deadline_us, self->clock, cancellable);

  return delete_backup (self, bounds.storage, error);
}

MusterFitCallback
muster_worker_training_state_callback (MusterWorkerTrainingState *self)
{
  g_return_val_if_fail (self != NULL, (MusterFitCallback){0});
  return (MusterFitCallback){.train_begin = train_begin,
                             .batch_end = batch_end,
                             .epoch_end = epoch_end,
                             .train_end = train_end,
                             .user_data = self};
}
