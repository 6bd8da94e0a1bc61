// SPDX-License-Identifier: Apache-2.0
/* A directory of numbered checkpoints, like tf.train.CheckpointManager: it counts saves, skips
 * those that come too soon, and saves in the background if the model allows a snapshot. */
#include "saver/async/checkpoint_manager.h"

#include "base/error.h"
#include "base/require_private.h"
#include "saver/async/async_private.h"

#define DEFAULT_NAME "ckpt"

/* The steps of the saves; those that are running share it. Reference-counted. */
typedef struct {
  GMutex lock;
  /* guarded by lock */
  gint64 last;    /* of the last save that didn't fail; -1: none yet */
  gint64 durable; /* of the last durable one; -1 */
} SavedSteps;

struct _MusterCheckpointManager {
  GObject parent;
  MusterSaver *saver;                      /* (owned) */
  char *directory;                         /* (owned) */
  MusterCheckpointManagerOptions *options; /* (owned) */
  SavedSteps *steps;                       /* (owned) */
  GMutex lock;
  /* guarded by lock */
  gint64 counter;          /* the last number that was used */
  gboolean is_blocking;    /* also set if the model can't be saved in the background */
  MusterAsyncSaver *async; /* (owned) (nullable) from the first save in the background on */
  MusterSession *session;  /* (owned) (nullable) the async saver's */
};

G_DEFINE_FINAL_TYPE (MusterCheckpointManager, muster_checkpoint_manager, G_TYPE_OBJECT)

static void
saved_steps_free (gpointer data)
{
  g_mutex_clear (&((SavedSteps *)data)->lock);
}

static void
saved_steps_unref (SavedSteps *self)
{
  g_atomic_rc_box_release_full (self, saved_steps_free);
}

static gboolean
check_options (const MusterCheckpointManagerOptions *options, GError **error)
{
  if (options->checkpoint_interval < 0 ||
      (options->checkpoint_interval > 0 && options->read_step == NULL)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "`step_counter` should be passed if `checkpoint_interval` is set, and the "
                        "interval is a number of steps above 0");
  }
  return TRUE;
}

/* Continues the counter from a checkpoint's number. */
static void
count_from (MusterCheckpointManager *self, const char *prefix)
{
  gint64 number = prefix != NULL ? muster_checkpoint_step (prefix) : -1;
  g_mutex_lock (&self->lock);
  self->counter = MAX (number, 0);
  g_mutex_unlock (&self->lock);
}

MusterCheckpointManager *
muster_checkpoint_manager_new (MusterMetaGraph *meta_graph, const char *directory,
                               const MusterCheckpointManagerOptions *options, GError **error)
{
  muster_require (error, NULL, meta_graph, directory);

  static const MusterCheckpointManagerOptions defaults;
  if (options == NULL)
    options = &defaults;
  if (!check_options (options, error))
    return NULL;
  MusterSaverOptions saver_options = options->saver;
  if (saver_options.base_name == NULL)
    saver_options.base_name = DEFAULT_NAME;
  if (saver_options.keep_every_n_hours <= 0)
    saver_options.keep_every_n_hours = -1;
  saver_options.keep_rule = MUSTER_KEEP_MANAGER;
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &saver_options, error);
  if (saver == NULL ||
      !muster_storage_check_path (muster_saver_storage (saver), "checkpoint directory", directory,
                                  error) ||
      !muster_saver_adopt_directory (saver, directory, error))
    return NULL;

  MusterCheckpointManager *self = g_object_new (MUSTER_TYPE_CHECKPOINT_MANAGER, NULL);
  self->saver = g_steal_pointer (&saver);
  self->directory = g_strdup (directory);
  self->is_blocking = options->is_blocking;
  self->options = g_boxed_copy (MUSTER_TYPE_CHECKPOINT_MANAGER_OPTIONS, options);
  g_autofree char *latest = muster_saver_latest_checkpoint (self->saver, directory, NULL);
  count_from (self, latest);
  return self;
}

MusterSaver *
muster_checkpoint_manager_saver (MusterCheckpointManager *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->saver;
}

const char *
muster_checkpoint_manager_directory (MusterCheckpointManager *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->directory;
}

/* Returns why a save of this step is skipped, or NULL (SAV.84). */
static char *
too_soon (MusterCheckpointManager *self, gint64 step, gboolean check_interval)
{
  char *why = NULL;
  g_mutex_lock (&self->steps->lock);
  const gint64 last = self->steps->last;
  g_mutex_unlock (&self->steps->lock);
  if (last >= 0 && step == last)
    why = g_strdup_printf ("step %" G_GINT64_FORMAT " is saved already", step);
  else if (last >= 0 && check_interval && step - last < self->options->checkpoint_interval)
    why = g_strdup_printf ("%" G_GINT64_FORMAT " steps have passed since the last save; the "
                           "interval is %" G_GINT64_FORMAT,
                           step - last, self->options->checkpoint_interval);
  return why;
}

/* Notes a save that was staged or made; number is the counter's next. */
static void
note_begun (MusterCheckpointManager *self, gint64 number, gint64 step, gboolean is_durable)
{
  g_mutex_lock (&self->lock);
  self->counter = MAX (self->counter, number);
  g_mutex_unlock (&self->lock);
  g_mutex_lock (&self->steps->lock);
  self->steps->last = step;
  if (is_durable)
    self->steps->durable = step;
  g_mutex_unlock (&self->steps->lock);
}

/* --- while training waits --- */

static gboolean
save_blocking (MusterCheckpointManager *self, MusterSession *session, gint64 number, gint64 counted,
               gint64 step, MusterSaved *saved, gint64 deadline_us, GCancellable *cancellable,
               GError **error)
{
  if (!muster_saver_save_with (self->saver, session, self->directory, number, 0, saved, deadline_us,
                               cancellable, error))
    return FALSE;
  if (!saved->skipped)
    note_begun (self, counted, step, TRUE);
  return TRUE;
}

/* --- in the background --- */

/* Its thread may outlive the manager, and so needs the options' own data. */
static MusterAsyncSaver *
make_async (MusterCheckpointManager *self, MusterSession *session, GError **error)
{
  const MusterCheckpointManagerOptions *options = self->options;
  MusterAsyncSaver *async =
      muster_async_saver_new (self->saver, session, options->policy, options->budget_bytes, error);
  if (async != NULL)
    muster_async_saver_share_finished (async, options->finished, options->finished_data,
                                       options->owner != NULL ? g_bytes_ref (options->owner)
                                                              : NULL);
  return async;
}

/* Returns the async saver for the session, or NULL if the model can't be saved in the background
 * or, with an error, at all. */
static MusterAsyncSaver *
async_for (MusterCheckpointManager *self, MusterSession *session, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->is_blocking || muster_saver_is_empty (self->saver))
    return NULL;
  if (self->async == NULL)
    self->async = make_async (self, session, error);
  else if (self->session != session)
    muster_async_saver_set_model (self->async, self->saver, session);
  g_set_object (&self->session, session);
  return self->async != NULL ? g_object_ref (self->async) : NULL;
}

/* The step of a save, until it has ended. */
typedef struct {
  SavedSteps *steps; /* (owned) */
  gint64 step;
} StagedStep;

static void
staged_step_free (gpointer data)
{
  saved_steps_unref (((StagedStep *)data)->steps);
  g_free (data);
}

/* A step whose save has failed may be saved again. */
static void
on_ended (MusterSaveTicket *ticket, gpointer data)
{
  const StagedStep *staged = data;
  SavedSteps *steps = staged->steps;
  const gboolean is_durable = muster_save_ticket_state (ticket) == MUSTER_SAVE_DURABLE;
  g_mutex_lock (&steps->lock);
  if (is_durable)
    steps->durable = MAX (steps->durable, staged->step);
  else if (steps->last == staged->step)
    steps->last = steps->durable;
  g_mutex_unlock (&steps->lock);
}

static void
note_staged (MusterCheckpointManager *self, MusterSaveTicket *ticket, gint64 counted, gint64 step,
             MusterSaved *saved)
{
  StagedStep *staged = g_new (StagedStep, 1);
  *saved = (MusterSaved){.prefix = g_strdup (muster_save_ticket_path (ticket)),
                         .step = muster_save_ticket_step (ticket)};
  note_begun (self, counted, step, FALSE);
  *staged = (StagedStep){g_atomic_rc_box_acquire (self->steps), step};
  muster_save_ticket_when_ended (ticket, on_ended, staged, staged_step_free);
}

/* Returns TRUE if training has to wait for this save. */
static gboolean
must_block (MusterCheckpointManager *self, const GError *failure)
{
  g_autoptr (MusterAsyncSaver) unused = NULL;
  gboolean for_good;
  if (!muster_snapshot_must_block (failure, "the model", &for_good))
    return FALSE;
  g_mutex_lock (&self->lock);
  self->is_blocking = self->is_blocking || for_good;
  if (for_good)
    unused = g_steal_pointer (&self->async);
  g_mutex_unlock (&self->lock);
  return TRUE;
}

/* Saves in the background or at once, when no other save is running. */
static gboolean
save (MusterCheckpointManager *self, MusterSession *session, gint64 number, gint64 step,
      MusterSaved *saved, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_mutex_lock (&self->lock);
  const gint64 next = self->counter + (self->counter < G_MAXINT64);
  g_mutex_unlock (&self->lock);
  const gint64 named = number >= 0 ? number : next;
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterAsyncSaver) async = async_for (self, session, &failure);
  g_autoptr (MusterSaveTicket) ticket =
      async != NULL ? muster_async_saver_save (async, self->directory, named, deadline_us,
                                               cancellable, &failure)
                    : NULL;

  if (ticket != NULL) {
    note_staged (self, ticket, next, step, saved);
    return TRUE;
  }
  if (failure == NULL || must_block (self, failure))
    return save_blocking (self, session, named, next, step, saved, deadline_us, cancellable, error);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

gboolean
muster_checkpoint_manager_save (MusterCheckpointManager *self, MusterSession *session,
                                gint64 number, gboolean check_interval, MusterSaved *saved,
                                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, saved);

  gint64 step = -1;
  if (self->options->checkpoint_interval > 0) {
    if (!self->options->read_step (session, &step, deadline_us, cancellable,
                                   self->options->step_data, error))
      return FALSE;
    char *why = too_soon (self, step, check_interval);
    if (why != NULL) {
      *saved = (MusterSaved){.step = -1, .skipped = TRUE, .why = why};
      return TRUE;
    }
  }
  return muster_checkpoint_manager_sync (self, deadline_us, cancellable, error) &&
         save (self, session, number, step, saved, deadline_us, cancellable, error);
}

/* (transfer full) (nullable) */
static MusterAsyncSaver *
running_async (MusterCheckpointManager *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->async != NULL ? g_object_ref (self->async) : NULL;
}

gboolean
muster_checkpoint_manager_sync (MusterCheckpointManager *self, gint64 deadline_us,
                                GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  g_autoptr (MusterAsyncSaver) async = running_async (self);
  return async == NULL || muster_async_saver_sync (async, deadline_us, cancellable, error);
}

/* --- restoring --- */

/* Restores. A background error is kept for the next save or sync. */
static gboolean
restore (MusterCheckpointManager *self, MusterSession *session, MusterRestored *found,
         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const MusterRestoreOptions latest = {.directory = self->directory};
  g_autoptr (MusterAsyncSaver) running = running_async (self);
  g_autoptr (MusterAsyncSaver) async = NULL;
  if (running != NULL)
    async = async_for (self, session, NULL);
  if (async != NULL)
    return muster_async_saver_restore (async, &latest, found, deadline_us, cancellable, error);
  return muster_saver_restore (self->saver, session, &latest, found, deadline_us, cancellable,
                               error);
}

gboolean
muster_checkpoint_manager_restore_or_initialize (MusterCheckpointManager *self,
                                                 MusterSession *session, char **restored,
                                                 gint64 deadline_us, GCancellable *cancellable,
                                                 GError **error)
{
  muster_require (error, FALSE, self, session);

  g_auto (MusterRestored) found = {0};
  if ((self->options->wait_for_saves != NULL &&
       !self->options->wait_for_saves (deadline_us, cancellable, self->options->wait_data,
                                       error)) ||
      !restore (self, session, &found, deadline_us, cancellable, error))
    return FALSE;
  if (found.prefix != NULL)
    count_from (self, found.prefix);
  else if (self->options->initialize != NULL &&
           !self->options->initialize (session, deadline_us, cancellable,
                                       self->options->initialize_data, error))
    return FALSE;
  if (restored != NULL)
    *restored = g_steal_pointer (&found.prefix);
  return TRUE;
}

char **
muster_checkpoint_manager_checkpoints (MusterCheckpointManager *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return muster_saver_last_checkpoints (self->saver);
}

char *
muster_checkpoint_manager_latest_checkpoint (MusterCheckpointManager *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_auto (GStrv) list = muster_saver_last_checkpoints (self->saver);
  guint n = g_strv_length (list);
  return n > 0 ? g_strdup (list[n - 1]) : NULL;
}

static void
muster_checkpoint_manager_finalize (GObject *object)
{
  MusterCheckpointManager *self = MUSTER_CHECKPOINT_MANAGER (object);
  g_clear_object (&self->async);
  g_clear_object (&self->session);
  g_clear_object (&self->saver);
  if (self->options != NULL)
    g_boxed_free (MUSTER_TYPE_CHECKPOINT_MANAGER_OPTIONS, self->options);
  g_free (self->directory);
  saved_steps_unref (self->steps);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_checkpoint_manager_parent_class)->finalize (object);
}

static void
muster_checkpoint_manager_class_init (MusterCheckpointManagerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_checkpoint_manager_finalize;
}

static void
muster_checkpoint_manager_init (MusterCheckpointManager *self)
{
  g_mutex_init (&self->lock);
  self->steps = g_atomic_rc_box_new0 (SavedSteps);
  g_mutex_init (&self->steps->lock);
  self->steps->last = self->steps->durable = -1;
}
