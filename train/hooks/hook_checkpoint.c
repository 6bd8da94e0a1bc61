// SPDX-License-Identifier: Apache-2.0
/* The hook that saves checkpoints. */
#include "base/cancel_link.h"
#include "base/error.h"
#include "graph/meta_graph/meta_graph_io.h"
#include "session/manager.h"
#include "train/hooks/background_save_private.h"
#include "train/hooks/hooks_private.h"

#define NAME "CheckpointSaverHook"

struct _MusterCheckpointSaverHook {
  MusterHook parent;
  char *directory;      /* (owned) */
  MusterSaver *saver;   /* (owned) from begin on */
  gboolean is_blocking; /* a save is made in the step's time */
  MusterBackgroundSave background;
  MusterScaffold *scaffold;     /* (owned) from begin on */
  MusterEventWriter *writer;    /* (owned) (nullable) */
  GArray *listeners;            /* (owned) (element-type MusterSaverListener) */
  MusterClock *clock;           /* (owned) the timer's */
  MusterPreemption *preemption; /* (owned) (nullable) */
  GCancellable *preempted;      /* (nullable) the preemption's */
  MusterStepTimer timer;
  gint64 steps_per_run;
  guint most_failures;
  guint n_failures;
  guint n_failures_in_a_row;
  GError *last_failure; /* (owned) (nullable) */
  gboolean has_printed; /* the graph */
  gint64 durable_step;  /* -1: none */
  char *durable;        /* (owned) (nullable) */
};

G_DEFINE_FINAL_TYPE (MusterCheckpointSaverHook, muster_checkpoint_saver_hook, MUSTER_TYPE_HOOK)

static MusterSaverListener *
listener (MusterCheckpointSaverHook *self, guint i)
{
  return &g_array_index (self->listeners, MusterSaverListener, i);
}

static gboolean
checkpoint_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);

  if (!muster_hook_need_global_step (scaffold, NAME, error))
    return FALSE;
  self->scaffold = muster_scaffold_ref (scaffold);
  if (self->saver == NULL)
    self->saver = muster_saver_new (muster_scaffold_meta_graph (scaffold), NULL, error);
  if (self->saver == NULL || !muster_saver_adopt_directory (self->saver, self->directory, error))
    return FALSE;
  if (self->preemption != NULL)
    muster_preemption_set_saver (self->preemption, self->saver, self->directory);
  for (guint i = 0; i < self->listeners->len; i++)
    if (listener (self, i)->begin != NULL)
      listener (self, i)->begin (listener (self, i)->user_data);
  return TRUE;
}

/* --- one save --- */

static void
note_durable (MusterCheckpointSaverHook *self, gint64 step, char *prefix)
{
  g_free (self->durable);
  self->durable = prefix;
  self->durable_step = step;
}

static gboolean
is_preempted (MusterCheckpointSaverHook *self)
{
  return self->preemption != NULL && muster_preemption_is_requested (self->preemption);
}

/* A lost lease isn't a failed save: another chief continues the training. */
static gboolean
note_failure (MusterCheckpointSaverHook *self, GError *failure, gint64 step, GError **error)
{
  g_clear_error (&self->last_failure);
  self->last_failure = failure;
  self->n_failures++;
  self->n_failures_in_a_row++;
  gboolean is_fatal =
      muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) ||
      muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
      muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
      (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) && !is_preempted (self)) ||
      (self->most_failures > 0 && self->n_failures_in_a_row >= self->most_failures);
  if (is_fatal) {
    g_propagate_error (error, g_error_copy (failure));
    return FALSE;
  }
  if (is_preempted (self))
    return TRUE;
  g_message ("Unable to write the checkpoint of step %" G_GINT64_FORMAT
             " (%u in a row); training continues: %s",
             step, self->n_failures_in_a_row, failure->message);
  return TRUE;
}

/* Returns TRUE if there is a listener: then a skipped save is no failure. */
static gboolean
notify_saved (MusterCheckpointSaverHook *self, const MusterSaved *saved)
{
  gboolean is_heard = FALSE;

  for (guint i = 0; i < self->listeners->len; i++) {
    if (listener (self, i)->saved == NULL)
      continue;
    listener (self, i)->saved (saved, listener (self, i)->user_data);
    is_heard = TRUE;
  }
  return is_heard;
}

/* Handles a save that was skipped for lack of space. */
static gboolean
note_skipped (MusterCheckpointSaverHook *self, const MusterSaved *saved, GError **error)
{
  if (notify_saved (self, saved))
    return TRUE;
  return note_failure (
      self, g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, saved->why),
      saved->step, error);
}

static gboolean
write_checkpoint (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                  MusterSaved *saved, GError **error)
{
  MusterPreemptionSave bounded = {.deadline_us = call->deadline_us,
                                  .bytes = muster_saver_estimate_bytes (self->saver)};
  g_auto (MusterCancelLink) either = muster_cancel_link (call->cancellable, self->preempted);
  GError *failure = NULL;

  if (self->preemption != NULL && !muster_preemption_begin_save (self->preemption, &bounded, error))
    return FALSE;
  gboolean is_done =
      muster_saver_save_with (self->saver, call->session, self->directory, step, NULL, saved,
                              bounded.deadline_us, either.cancellable, &failure);
  if (self->preemption != NULL)
    muster_preemption_end_save (self->preemption, &bounded, saved, failure);
  if (!is_done)
    g_propagate_error (error, failure);
  return is_done;
}

static void
notify_before_save (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step)
{
  for (guint i = 0; i < self->listeners->len; i++)
    if (listener (self, i)->before_save != NULL)
      listener (self, i)->before_save (call->session, step, call->deadline_us, call->cancellable,
                                       listener (self, i)->user_data);
}

/* Handles a save that ended without an error. *wants_stop (nullable) is set if a listener requests
 * a stop. Without a session (the run has failed) nothing is done in it. */
static gboolean
conclude (MusterCheckpointSaverHook *self, const MusterSaveCall *call, const MusterSaved *saved,
          gboolean *wants_stop, GError **error)
{
  if (saved->skipped)
    return note_skipped (self, saved, error);
  self->n_failures_in_a_row = 0;
  note_durable (self, saved->step, g_strdup (saved->prefix));
  if (self->writer != NULL &&
      !muster_event_writer_add_session_log (self->writer, MUSTER_SESSION_LOG_CHECKPOINT,
                                            saved->prefix, saved->step, error))
    return FALSE;
  (void)notify_saved (self, saved);
  for (guint i = 0; i < self->listeners->len; i++)
    if (call->session != NULL && listener (self, i)->after_save != NULL &&
        !listener (self, i)->after_save (call->session, saved->step, saved->prefix,
                                         call->deadline_us, call->cancellable,
                                         listener (self, i)->user_data) &&
        wants_stop != NULL)
      *wants_stop = TRUE;
  return TRUE;
}

/* Saves while training waits. */
static gboolean
save_blocking (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
               gboolean *wants_stop, GError **error)
{
  g_auto (MusterSaved) saved = {0};
  GError *failure = NULL;

  gboolean is_done = write_checkpoint (self, call, step, &saved, &failure);
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return is_done ? conclude (self, call, &saved, wants_stop, error)
                 : note_failure (self, failure, step, error);
}

/* --- in the background --- */

/* Handles a background save that has ended. */
static gboolean
collect (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gboolean *wants_stop,
         GError **error)
{
  GError *failure = NULL;
  g_autoptr (MusterSaveTicket) ticket =
      muster_background_save_take_ended (&self->background, call, &failure);

  if (failure != NULL)
    return note_failure (self, failure, muster_save_ticket_step (ticket), error);
  if (ticket == NULL)
    return TRUE;
  const MusterSaved *saved = muster_save_ticket_saved (ticket);
  if (self->preemption != NULL && !saved->skipped)
    muster_preemption_note_durable (self->preemption, saved->step, saved->prefix, saved->bytes,
                                    MAX (saved->took_us + self->background.staging_us, 1));
  return conclude (self, call, saved, wants_stop, error);
}

static void
abandon_save (MusterCheckpointSaverHook *self, const MusterSaveCall bounded)
{
  g_autoptr (GError) failure = NULL;

  if (muster_background_save_abandon (&self->background, &bounded))
    (void)collect (self, &bounded, NULL, &failure);
}

static gboolean
save_in_background (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                    gboolean *wants_stop, GError **error)
{
  GError *failure = NULL;
  const gboolean is_started =
      muster_background_save_start (&self->background, self->directory, step, call, &failure);

  if (!is_started && muster_background_save_must_block (&self->background, failure)) {
    g_error_free (failure);
    return save_blocking (self, call, step, wants_stop, error);
  }
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return is_started ? collect (self, call, wants_stop, error)
                    : note_failure (self, failure, step, error);
}

/* --- either way --- */

static gboolean
save (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
      gboolean *wants_stop, GError **error)
{
  notify_before_save (self, call, step);
  return self->background.async != NULL && !is_preempted (self)
             ? save_in_background (self, call, step, wants_stop, error)
             : save_blocking (self, call, step, wants_stop, error);
}

/* --- when --- */

/* graph.pbtxt is only informative: training continues without it. */
static void
print_graph (MusterCheckpointSaverHook *self)
{
  g_autofree char *path = g_build_filename (self->directory, "graph.pbtxt", NULL);
  g_autoptr (GError) failure = NULL;
  g_autoptr (GString) text = muster_graph_print (muster_scaffold_graph (self->scaffold), &failure);

  self->has_printed = TRUE;
  if (text == NULL ||
      !muster_storage_make_directory (muster_local_storage (), self->directory, &failure) ||
      !muster_storage_publish (muster_local_storage (), path, text->str, text->len, &failure))
    g_info ("can't write graph.pbtxt: %s", failure->message);
}

static gboolean
write_graphs (MusterCheckpointSaverHook *self, gint64 step, GError **error)
{
  if (!self->has_printed)
    print_graph (self);
  return self->writer == NULL ||
         (muster_event_writer_add_graph (
              self->writer, muster_graph_bytes (muster_scaffold_graph (self->scaffold)), error) &&
          muster_event_writer_add_meta_graph (
              self->writer, muster_meta_graph_bytes (muster_scaffold_meta_graph (self->scaffold)),
              step, error));
}

/* Returns TRUE if that step has a checkpoint already because it was just restored (DMON.16). */
static gboolean
is_saved (MusterCheckpointSaverHook *self, gint64 step)
{
  g_auto (GStrv) kept = muster_saver_last_checkpoints (self->saver);
  guint n = g_strv_length (kept);

  if (n == 0 || muster_checkpoint_step (kept[n - 1]) != step)
    return FALSE;
  note_durable (self, step, g_strdup (kept[n - 1]));
  if (self->preemption != NULL)
    muster_preemption_note_durable (self->preemption, step, self->durable, 0, 0);
  return TRUE;
}

/* Notes which checkpoint, or which model on the master, the training starts from. */
static gboolean
begin_run (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError **error)
{
  muster_saver_set_lease (self->saver, muster_session_manager_lease (call->session));
  return muster_saver_begin_run (self->saver, self->directory,
                                 muster_session_manager_restored_from (call->session),
                                 muster_session_manager_continued_step (call->session),
                                 call->deadline_us, call->cancellable, error);
}

static gboolean
checkpoint_after_create (MusterHook *hook, MusterSession *session,
                         MusterCoordinator *coordinator G_GNUC_UNUSED, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const MusterSaveCall call = {session, deadline_us, cancellable};
  gint64 step = muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);

  if (step < 0 || !write_graphs (self, step, error) || !begin_run (self, &call, error) ||
      !(self->is_blocking ||
        muster_background_save_open (&self->background, self->saver, session, error)))
    return FALSE;
  if (!is_saved (self, step))
    return muster_background_save_is_busy (&self->background, step) ||
           save (self, &call, step, NULL, error);
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return TRUE;
}

/* The fetched step may be the one before the update: if a save seems due, it is read again. */
static gboolean
save_if_due (MusterCheckpointSaverHook *self, const MusterSaveCall *call, MusterRunContext *context,
             gboolean *wants_stop, GError **error)
{
  const gint64 stale = muster_run_context_global_step (context);

  if (is_preempted (self) ||
      !muster_step_timer_is_due (&self->timer, stale + self->steps_per_run) ||
      muster_background_save_is_busy (&self->background, stale))
    return TRUE; /* the save at the end does the rest */
  gint64 step = muster_run_context_step_now (context, error);
  if (step < 0)
    return FALSE;
  return !muster_step_timer_is_due (&self->timer, step) ||
         save (self, call, step, wants_stop, error);
}

static gboolean
checkpoint_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const MusterSaveCall call = {muster_run_context_session (context),
                               muster_run_context_deadline_us (context),
                               muster_run_context_cancellable (context)};
  gboolean wants_stop = FALSE;

  if (!collect (self, &call, &wants_stop, error) ||
      !save_if_due (self, &call, context, &wants_stop, error))
    return FALSE;
  if (wants_stop)
    muster_run_context_request_stop (context);
  return TRUE;
}

/* A preempted run saves if it can, and the preemption reports the result. A chief that was replaced
 * gets the error. */
static gboolean
save_preempted (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (save_blocking (self, call, step, NULL, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
    self->n_failures_in_a_row = 0;
    return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
save_last (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step, GError **error)
{
  if (step == self->durable_step) {
    if (self->preemption != NULL)
      muster_preemption_note_durable (self->preemption, step, self->durable, 0, 0);
    return TRUE;
  }
  notify_before_save (self, call, step);
  return is_preempted (self) ? save_preempted (self, call, step, error)
                             : save_blocking (self, call, step, NULL, error);
}

/* Waits for the background save at the end. If a preemption leaves no time for it, the preemption's
 * report says so. */
static gboolean
end_background (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if ((muster_background_save_wait (&self->background, call, &failure) &&
       collect (self, call, NULL, &failure)) ||
      is_preempted (self))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static gboolean
checkpoint_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  g_auto (MusterCancelLink) either = muster_cancel_link (cancellable, self->preempted);
  const MusterSaveCall call = {session, deadline_us, either.cancellable};
  gint64 step =
      muster_read_global_step (session, self->scaffold, deadline_us, either.cancellable, error);

  if (step < 0 || !end_background (self, &call, error) || !save_last (self, &call, step, error)) {
    abandon_save (self, muster_background_save_bound (&self->background, &call));
    return FALSE;
  }
  for (guint i = 0; i < self->listeners->len; i++)
    if (listener (self, i)->end != NULL)
      listener (self, i)->end (session, step, deadline_us, either.cancellable,
                               listener (self, i)->user_data);
  /* A run that ends without saving its last state has failed, even if save failures were tolerated.
   */
  if (self->n_failures_in_a_row == 0)
    return muster_background_save_shutdown (&self->background, error);
  g_propagate_error (error, g_error_copy (self->last_failure));
  return FALSE;
}

/* A run that failed still finishes the checkpoint that it has begun, within the grace. */
static void
checkpoint_on_error (MusterHook *hook, const GError *failure G_GNUC_UNUSED)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);

  abandon_save (self, muster_background_save_bound_by_grace (&self->background));
  (void)muster_background_save_shutdown (&self->background, NULL);
}

/* Before another session restores: what was being written is durable then, or never will be. */
static void
checkpoint_session_lost (MusterHook *hook)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const MusterSaveCall call = {.deadline_us = MUSTER_WAIT_FOREVER};
  abandon_save (self, muster_background_save_bound (&self->background, &call));
}

static char **
checkpoint_claims (MusterHook *hook)
{
  char **claims = g_new0 (char *, 2);

  claims[0] = muster_hook_claim_of_directory ("saves checkpoints to",
                                              MUSTER_CHECKPOINT_SAVER_HOOK (hook)->directory);
  return claims;
}

static void
checkpoint_finalize (GObject *object)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (object);
  const MusterSaveCall bounded = muster_background_save_bound (
      &self->background, &(MusterSaveCall){.deadline_us = MUSTER_WAIT_FOREVER});

  (void)muster_background_save_abandon (&self->background, &bounded); /* without the listeners */
  muster_background_save_clear (&self->background);
  g_free (self->directory);
  g_free (self->durable);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_array_unref (self->listeners);
  g_clear_object (&self->clock);
  g_clear_object (&self->preemption);
  g_clear_error (&self->last_failure);
  G_OBJECT_CLASS (muster_checkpoint_saver_hook_parent_class)->finalize (object);
}

static void
muster_checkpoint_saver_hook_class_init (MusterCheckpointSaverHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = checkpoint_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = checkpoint_begin;
  MUSTER_HOOK_CLASS (klass)->claims = checkpoint_claims;
  MUSTER_HOOK_CLASS (klass)->after_create_session = checkpoint_after_create;
  MUSTER_HOOK_CLASS (klass)->after_run = checkpoint_after_run;
  MUSTER_HOOK_CLASS (klass)->end = checkpoint_end;
  MUSTER_HOOK_CLASS (klass)->on_error = checkpoint_on_error;
  MUSTER_HOOK_CLASS (klass)->session_lost = checkpoint_session_lost;
}

static void
muster_checkpoint_saver_hook_init (MusterCheckpointSaverHook *self)
{
  self->listeners = g_array_new (FALSE, FALSE, sizeof (MusterSaverListener));
  self->durable_step = -1;
}

MusterHook *
muster_checkpoint_saver_hook_new (const MusterCheckpointSaverOptions *options, GError **error)
{
  g_autoptr (MusterCheckpointSaverHook) self =
      g_object_new (MUSTER_TYPE_CHECKPOINT_SAVER_HOOK, NULL);

  if (options == NULL || options->checkpoint_dir == NULL || !*options->checkpoint_dir) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", NAME " needs a checkpoint_dir");
    return NULL;
  }
  if (!muster_storage_check_path (options->saver != NULL ? muster_saver_storage (options->saver)
                                                         : NULL,
                                  "checkpoint directory", options->checkpoint_dir, error))
    return NULL;
  self->directory = g_strdup (options->checkpoint_dir);
  self->saver = options->saver != NULL ? g_object_ref (options->saver) : NULL;
  self->writer = options->writer != NULL ? muster_event_writer_ref (options->writer) : NULL;
  if (options->n_listeners > 0)
    g_array_append_vals (self->listeners, options->listeners, (guint)options->n_listeners);
  self->steps_per_run = MAX (options->steps_per_run, 1);
  self->is_blocking = options->is_blocking;
  self->most_failures = options->most_failures_in_a_row;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->preemption = options->preemption != NULL ? g_object_ref (options->preemption) : NULL;
  if (self->preemption != NULL) {
    self->background.preemption = g_object_ref (self->preemption);
    self->preempted = muster_preemption_cancellable (self->preemption);
  }
  if (!muster_step_timer_init (&self->timer, options->save_us, options->save_steps, self->clock,
                               error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}

guint
muster_checkpoint_saver_hook_failures (MusterHook *self, const GError **last)
{
  g_return_val_if_fail (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self), 0);

  if (last != NULL)
    *last = MUSTER_CHECKPOINT_SAVER_HOOK (self)->last_failure;
  return MUSTER_CHECKPOINT_SAVER_HOOK (self)->n_failures;
}

gint64
muster_checkpoint_saver_hook_durable (MusterHook *self, const char **prefix)
{
  g_return_val_if_fail (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self), -1);

  if (prefix != NULL)
    *prefix = MUSTER_CHECKPOINT_SAVER_HOOK (self)->durable;
  return MUSTER_CHECKPOINT_SAVER_HOOK (self)->durable_step;
}
