// SPDX-License-Identifier: Apache-2.0
/* Counts runs that died right after they restored a checkpoint. Before a restore, the side file
 * gets the checkpoint as `life`; a run that counts as good removes it. A next run that finds it
 * there counts a death of that checkpoint. A chief that continues with the model on the master
 * notes the same (muster_saver_continue ()). */
#include "saver/crash_loop_private.h"

#include "base/fields_private.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock_private.h"
#include "saver/saver_private.h"

/* Timeout for the directory's lock, which another process may hold, and for an object store. */
#define LOCK_US (5 * MUSTER_SECOND)

/* A change of a directory's side file, holding its lock. */
typedef struct {
  MusterSaver *saver;
  const char *directory;
  gpointer what;
  MusterStorage *storage; /* (not owned) the lock's */
} Change;

typedef gboolean (*Attempt) (const Change *change, MusterCheckpointRecord *record, GError **error);

static gboolean
try_once (Change *self, Attempt attempt, gint64 deadline_us, GCancellable *cancellable,
          GError **error)
{
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      self->saver->storage, self->directory, deadline_us, self->saver->clock, cancellable, error);
  if (lock == NULL)
    return FALSE;
  self->storage = muster_directory_lock_storage (lock);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read_to_write (self->storage, self->directory, error);
  return record != NULL && attempt (self, record, error);
}

/* Repeats the change if a store has no locks and another writer was faster. */
static gboolean
try_until_done (Change *self, Attempt attempt, gint64 deadline_us, GCancellable *cancellable,
                GError **error)
{
  MusterClock *clock = self->saver->clock;
  deadline_us = MIN (deadline_us, muster_deadline_after (muster_clock_now_us (clock), LOCK_US));
  for (guint n_tries = 0;;) {
    GError *why = NULL;
    if (try_once (self, attempt, deadline_us, cancellable, &why))
      return TRUE;
    if (!muster_directory_try_again (&n_tries, deadline_us, clock, cancellable, why, error))
      return FALSE;
  }
}

static gboolean
write_record (const Change *self, MusterCheckpointRecord *record, GError **error)
{
  return muster_checkpoint_record_write (self->storage, self->directory, record, error);
}

static gboolean
is_own_restore (MusterSaver *self, const char *directory, const char *name)
{
  g_mutex_lock (&self->lock);
  gboolean is_own =
      g_strcmp0 (self->crash_loop_directory, directory) == 0 && g_strcmp0 (self->life, name) == 0;
  g_mutex_unlock (&self->lock);
  return is_own;
}

/* name is NULL if there is none. */
static void
set_own_restore (MusterSaver *self, const char *directory, const char *name)
{
  g_mutex_lock (&self->lock);
  g_free (self->crash_loop_directory);
  g_free (self->life);
  self->crash_loop_directory = g_strdup (directory);
  self->life = g_strdup (name);
  g_mutex_unlock (&self->lock);
}

typedef struct {
  const char *prefix;
  guint *deaths;
} Begin;

static gboolean
begin_once (const Change *change, MusterCheckpointRecord *record, GError **error)
{
  const Begin *what = change->what;
  MusterSaver *self = change->saver;
  const char *directory = change->directory;
  g_autofree char *name = g_path_get_basename (what->prefix);

  if (record->life != NULL && !is_own_restore (self, directory, record->life))
    muster_checkpoint_record_ensure (record, record->life)->deaths++;
  const MusterSideCheckpoint *known = muster_checkpoint_record_find (record, what->prefix);
  *what->deaths = known != NULL ? known->deaths : 0;
  const char *life = *what->deaths < MUSTER_CRASH_LOOP_LIMIT ? name : NULL;
  g_free (record->life);
  record->life = g_strdup (life);
  if (!write_record (change, record, error))
    return FALSE;
  set_own_restore (self, life != NULL ? directory : NULL, life);
  return TRUE;
}

gboolean
muster_crash_loop_begin (MusterSaver *self, const char *directory, const char *prefix,
                         guint *deaths, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  Begin what = {prefix, deaths};
  Change change = {self, directory, &what, NULL};
  return try_until_done (&change, begin_once, deadline_us, cancellable, error);
}

/* Returns TRUE if the record says that the model's chief holds the directory, that no run has
 * died there after a restore, and that the directory's newest checkpoint still exists. */
static gboolean
is_living (const Change *change, const MusterCheckpointRecord *record,
           const MusterLivingModel *model)
{
  MusterSaver *self = change->saver;
  const char *directory = change->directory;
  if (record->chief == NULL || model->holder == NULL || record->life != NULL)
    return FALSE;
  g_autofree char *holding =
      muster_checkpoint_directory_holding (&self->directory, record->chief, directory);
  g_autofree char *latest = muster_latest_checkpoint_named (change->storage, directory,
                                                            self->directory.latest_filename, NULL);
  g_autofree char *place = model->durable != NULL ? g_path_get_dirname (model->durable) : NULL;
  const gint64 step = latest != NULL ? muster_checkpoint_step (latest) : -1;
  g_autofree char *own = muster_path_for_master (self->storage, directory);
  g_autofree char *others = place != NULL ? muster_path_for_master (self->storage, place) : NULL;
  const gint64 durable_step = g_strcmp0 (own, others) == 0 ? model->durable_step : -1;

  return strcmp (holding, model->holder) == 0 && step >= durable_step && step <= model->step;
}

/* Returns TRUE if a run that was restored from a fast tier died before it counted as good. */
static gboolean
has_died_in_fast_tier (const Change *change)
{
  const MusterSaver *self = change->saver;
  for (guint i = 0; i < self->tiers->n; i++) {
    const char *directory = self->tiers->fast[i].rule.directory;
    g_autoptr (MusterCheckpointRecord) record =
        muster_checkpoint_record_read (change->storage, directory, NULL);
    if (record != NULL && record->life != NULL)
      return TRUE;
  }
  return FALSE;
}

MUSTER_DEFINE_OPTIONS (MusterLivingModel, muster_living_model)

MusterLivingModel *
muster_living_model_new (const char *holder, const char *durable, gint64 durable_step, gint64 step)
{
  const MusterLivingModel model = {
      .holder = holder, .durable = durable, .durable_step = durable_step, .step = step};
  return muster_living_model_copy (&model);
}

typedef struct {
  const MusterLivingModel *model;
  gboolean count_deaths;
  gboolean *may;
} Continue;

static gboolean
continue_once (const Change *change, MusterCheckpointRecord *record, GError **error)
{
  const Continue *what = change->what;
  MusterSaver *self = change->saver;
  const char *durable = what->model->durable;
  g_autofree char *name = durable != NULL ? g_path_get_basename (durable) : NULL;

  /* State outside the graph was in the process of the chief that is gone, so it can't be
   * continued. */
  *what->may = is_living (change, record, what->model) && !has_died_in_fast_tier (change) &&
               !muster_saveables_has_any (self->saveables);
  if (!*what->may || !what->count_deaths || name == NULL ||
      muster_checkpoint_record_find (record, name) == NULL)
    return TRUE;
  record->life = g_strdup (name);
  if (!write_record (change, record, error))
    return FALSE;
  set_own_restore (self, change->directory, name);
  return TRUE;
}

gboolean
muster_saver_continue (MusterSaver *self, const char *directory, const MusterLivingModel *model,
                       gboolean count_deaths, gboolean *may, GError **error)
{
  muster_require (error, FALSE, self, directory, model, may);

  Continue what = {model, count_deaths, may};
  Change change = {self, directory, &what, NULL};
  return try_until_done (&change, continue_once, MUSTER_WAIT_FOREVER, NULL, error);
}

typedef struct {
  const char *name;
  gboolean is_proof;
} End;

static gboolean
remove_life_once (const Change *change, MusterCheckpointRecord *record, GError **error)
{
  const End *what = change->what;
  /* Another job may have restored from the directory since. */
  if (g_strcmp0 (record->life, what->name) != 0)
    return TRUE;
  g_clear_pointer (&record->life, g_free);
  MusterSideCheckpoint *checkpoint = muster_checkpoint_record_find (record, what->name);
  if (checkpoint != NULL && what->is_proof)
    checkpoint->deaths = 0;
  return write_record (change, record, error);
}

static gboolean
remove_life (MusterSaver *self, const char *directory, const char *name, gboolean is_proof,
             GError **error)
{
  End what = {name, is_proof};
  Change change = {self, directory, &what, NULL};
  return try_until_done (&change, remove_life_once, MUSTER_WAIT_FOREVER, NULL, error);
}

/* Removes the record; is_proof: the checkpoint is good. */
static gboolean
end_crash_count (MusterSaver *self, gboolean is_proof, GError **error)
{
  g_mutex_lock (&self->lock);
  g_autofree char *directory = g_strdup (self->crash_loop_directory);
  g_autofree char *name = g_strdup (self->life);
  g_mutex_unlock (&self->lock);
  if (name == NULL)
    return TRUE;
  if (!remove_life (self, directory, name, is_proof, error))
    return FALSE; /* the caller tries again */
  g_mutex_lock (&self->lock);
  if (g_strcmp0 (self->life, name) == 0) {
    g_clear_pointer (&self->crash_loop_directory, g_free);
    g_clear_pointer (&self->life, g_free);
  }
  g_mutex_unlock (&self->lock);
  return TRUE;
}

gboolean
muster_saver_mark_good (MusterSaver *self, GError **error)
{
  muster_require (error, FALSE, self);
  return end_crash_count (self, TRUE, error);
}

gboolean
muster_saver_clear_crash_loop (MusterSaver *self, GError **error)
{
  muster_require (error, FALSE, self);
  return end_crash_count (self, FALSE, error);
}
