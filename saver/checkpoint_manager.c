// SPDX-License-Identifier: Apache-2.0
#include "saver/checkpoint_manager.h"

#include "base/error.h"
#include "base/require.h"

#define DEFAULT_NAME "ckpt"

struct _MusterCheckpointManager {
  GObject parent;
  MusterSaver *saver; /* (owned) */
  char *directory;    /* (owned) */
  gint64 interval;
  MusterReadStep read_step;
  gpointer step_data;
  MusterInitialize initialize;
  gpointer initialize_data;
  MusterWaitForSaves wait_for_saves;
  gpointer wait_data;
  GMutex lock;
  /* guarded by lock */
  gint64 counter;   /* the last number given */
  gint64 last_step; /* of the last save; -1: none yet */
};

G_DEFINE_FINAL_TYPE (MusterCheckpointManager, muster_checkpoint_manager, G_TYPE_OBJECT)

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
  if (!check_options (options, error) ||
      !muster_storage_check_path (options->storage, "checkpoint directory", directory, error))
    return NULL;
  const MusterSaverOptions saver_options = {
      .max_to_keep = options->max_to_keep,
      .base_name = options->name != NULL ? options->name : DEFAULT_NAME,
      .keep_every_n_hours = options->keep_every_n_hours > 0 ? options->keep_every_n_hours : -1,
      .keep_rule = MUSTER_KEEP_MANAGER,
      .when_full = options->when_full,
      .storage = options->storage,
      .clock = options->clock,
  };
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, &saver_options, error);
  if (saver == NULL || !muster_saver_adopt_directory (saver, directory, error))
    return NULL;

  MusterCheckpointManager *self = g_object_new (MUSTER_TYPE_CHECKPOINT_MANAGER, NULL);
  self->saver = g_steal_pointer (&saver);
  self->directory = g_strdup (directory);
  self->interval = options->checkpoint_interval;
  self->read_step = options->read_step;
  self->step_data = options->step_data;
  self->initialize = options->initialize;
  self->initialize_data = options->initialize_data;
  self->wait_for_saves = options->wait_for_saves;
  self->wait_data = options->wait_data;
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

/* Why a save of this step is skipped, or NULL (SAV.84). */
static char *
too_soon (MusterCheckpointManager *self, gint64 step, gboolean check_interval)
{
  char *why = NULL;

  g_mutex_lock (&self->lock);
  if (self->last_step >= 0 && step == self->last_step)
    why = g_strdup_printf ("step %" G_GINT64_FORMAT " is saved already", step);
  else if (self->last_step >= 0 && check_interval && step - self->last_step < self->interval)
    why = g_strdup_printf ("%" G_GINT64_FORMAT " steps have passed since the last save; the "
                           "interval is %" G_GINT64_FORMAT,
                           step - self->last_step, self->interval);
  g_mutex_unlock (&self->lock);
  return why;
}

gboolean
muster_checkpoint_manager_save (MusterCheckpointManager *self, MusterSession *session,
                                gint64 number, gboolean check_interval, MusterSaved *saved,
                                gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, session, saved);

  gint64 step = -1;
  if (self->interval > 0) {
    if (!self->read_step (session, &step, deadline_us, cancellable, self->step_data, error))
      return FALSE;
    char *why = too_soon (self, step, check_interval);
    if (why != NULL) {
      *saved = (MusterSaved){.step = -1, .skipped = TRUE, .why = why};
      return TRUE;
    }
  }
  g_mutex_lock (&self->lock);
  gint64 next = self->counter + 1;
  g_mutex_unlock (&self->lock);
  if (!muster_saver_save_with (self->saver, session, self->directory, number >= 0 ? number : next,
                               NULL, saved, deadline_us, cancellable, error))
    return FALSE;
  if (!saved->skipped) {
    g_mutex_lock (&self->lock);
    self->counter = MAX (self->counter, next);
    self->last_step = step;
    g_mutex_unlock (&self->lock);
  }
  return TRUE;
}

gboolean
muster_checkpoint_manager_restore_or_initialize (MusterCheckpointManager *self,
                                                 MusterSession *session, char **restored,
                                                 gint64 deadline_us, GCancellable *cancellable,
                                                 GError **error)
{
  muster_require (error, FALSE, self, session);

  const MusterRestoreOptions latest = {.directory = self->directory};
  g_auto (MusterRestored) found = {0};

  if ((self->wait_for_saves != NULL &&
       !self->wait_for_saves (deadline_us, cancellable, self->wait_data, error)) ||
      !muster_saver_restore (self->saver, session, &latest, &found, deadline_us, cancellable,
                             error))
    return FALSE;
  if (found.prefix != NULL)
    count_from (self, found.prefix);
  else if (self->initialize != NULL &&
           !self->initialize (session, deadline_us, cancellable, self->initialize_data, error))
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

  g_clear_object (&self->saver);
  g_free (self->directory);
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
  self->last_step = -1;
}
