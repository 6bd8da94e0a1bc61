// SPDX-License-Identifier: Apache-2.0
/* The hook that saves checkpoints. */
#include "base/cancel_link.h"
#include "base/error.h"
#include "graph/meta_graph/meta_graph_io.h"
#include "saver/async/async_saver.h"
#include "session/manager.h"
#include "train/hooks/hooks_private.h"

#define NAME "CheckpointSaverHook"

/* How long a save may still take after its session was lost or the run has failed. */
#define ABANDON_US (5 * MUSTER_SECOND)
/* A thread that is stuck in a save that was given up isn't waited for. */
#define DISPOSE_US (500 * MUSTER_MILLISECOND)
/* A save that takes so long is reported, and again each time this has doubled. */
#define REPORT_SLOW_US (60 * MUSTER_SECOND)

struct _MusterCheckpointSaverHook {
  MusterHook parent;
  char *directory;            /* (owned) */
  MusterSaver *saver;         /* (owned) from begin on */
  gboolean is_blocking;       /* a save is made in the step's time */
  MusterAsyncSaver *async;    /* (owned) (nullable) saves in the background, from the first session
                                 on */
  MusterSaveTicket *ticket;   /* (owned) (nullable) the save that is written in the background */
  MusterSaveTicket *given_up; /* (owned) (nullable) one that was cancelled and may still run */
  gint64 ticket_us;           /* when that began */
  gint64 staging_us;          /* how long it held the step */
  gint64 report_us;           /* when it is reported as slow */
  gboolean has_deferred;      /* another was due meanwhile, at some time */
  MusterScaffold *scaffold;   /* (owned) from begin on */
  MusterEventWriter *writer;  /* (owned) (nullable) */
  GArray *listeners;          /* (owned) (element-type MusterSaverListener) */
  MusterClock *clock;         /* (owned) the timer's */
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

/* A call of the hook that saves. */
typedef struct {
  MusterSession *session; /* (not owned) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
} Call;

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
write_checkpoint (MusterCheckpointSaverHook *self, const Call *call, gint64 step,
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
notify_before_save (MusterCheckpointSaverHook *self, const Call *call, gint64 step)
{
  for (guint i = 0; i < self->listeners->len; i++)
    if (listener (self, i)->before_save != NULL)
      listener (self, i)->before_save (call->session, step, call->deadline_us, call->cancellable,
                                       listener (self, i)->user_data);
}

/* Handles a save that ended without an error. *wants_stop (nullable) is set if a listener requests
 * a stop. Without a session (the run has failed) nothing is done in it. */
static gboolean
conclude (MusterCheckpointSaverHook *self, const Call *call, const MusterSaved *saved,
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
save_blocking (MusterCheckpointSaverHook *self, const Call *call, gint64 step, gboolean *wants_stop,
               GError **error)
{
  g_auto (MusterSaved) saved = {0};
  GError *failure = NULL;

  gboolean is_done = write_checkpoint (self, call, step, &saved, &failure);
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return is_done ? conclude (self, call, &saved, wants_stop, error)
                 : note_failure (self, failure, step, error);
}

/* --- in the background --- */

/* The save in flight is the preemption's to know: it leaves that its time. Takes the ticket. */
static void
set_ticket (MusterCheckpointSaverHook *self, MusterSaveTicket *ticket)
{
  self->ticket = ticket;
  if (self->preemption != NULL)
    muster_preemption_set_saving (self->preemption, ticket != NULL);
}

static MusterSaveTicket *
take_ticket (MusterCheckpointSaverHook *self)
{
  MusterSaveTicket *ticket = self->ticket;

  set_ticket (self, NULL);
  return ticket;
}

static void
cancel_save (MusterCheckpointSaverHook *self)
{
  g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  self->given_up = take_ticket (self);
  muster_save_ticket_cancel (self->given_up);
}

/* Takes the ticket of the background save if it has ended, else returns FALSE. *failure is set if
 * the save failed. */
static gboolean
take_ended (MusterCheckpointSaverHook *self, const Call *call, MusterSaveTicket **ticket,
            GError **failure)
{
  if (self->ticket == NULL || muster_save_ticket_state (self->ticket) < MUSTER_SAVE_DURABLE)
    return FALSE;
  *ticket = take_ticket (self);
  /* the saver reports an error once: here, not instead of the next save */
  if (muster_save_ticket_saved (*ticket) == NULL &&
      muster_async_saver_sync (self->async, call->deadline_us, call->cancellable, failure))
    (void)muster_save_ticket_wait (*ticket, MUSTER_SAVE_DURABLE, call->deadline_us, NULL, failure);
  return TRUE;
}

static gboolean
collect (MusterCheckpointSaverHook *self, const Call *call, gboolean *wants_stop, GError **error)
{
  g_autoptr (MusterSaveTicket) ticket = NULL;
  GError *failure = NULL;

  if (!take_ended (self, call, &ticket, &failure))
    return TRUE;
  if (failure != NULL)
    return note_failure (self, failure, muster_save_ticket_step (ticket), error);
  const MusterSaved *saved = muster_save_ticket_saved (ticket);
  if (self->preemption != NULL && !saved->skipped)
    muster_preemption_note_durable (self->preemption, saved->step, saved->prefix, saved->bytes,
                                    MAX (saved->took_us + self->staging_us, 1));
  return conclude (self, call, saved, wants_stop, error);
}

/* Waits for the background save. One that isn't done in time is cancelled; the checkpoint before
 * remains the latest. */
static gboolean
await_save (MusterCheckpointSaverHook *self, const Call *call, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (self->ticket == NULL)
    return TRUE;
  gint64 deadline_us = call->deadline_us;
  if (self->preemption != NULL)
    deadline_us = muster_preemption_bound (self->preemption, deadline_us);
  (void)muster_save_ticket_wait (self->ticket, MUSTER_SAVE_DURABLE, deadline_us, call->cancellable,
                                 &failure);
  if (muster_save_ticket_state (self->ticket) >= MUSTER_SAVE_DURABLE)
    return collect (self, call, NULL, error);
  cancel_save (self);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* How long a save may still take whose session is gone, or whose run has failed. */
static Call
bound_abandoned (MusterCheckpointSaverHook *self, const Call *call)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return (Call){call->session, MIN (call->deadline_us, now_us + ABANDON_US), self->preempted};
}

/* Waits for the background save within those bounds, else cancels it. FALSE if it has failed: that
 * is logged, and counts against nothing. */
static gboolean
end_abandoned (MusterCheckpointSaverHook *self, const Call *bounded)
{
  g_autoptr (GError) failure = NULL;

  if (self->ticket == NULL ||
      muster_save_ticket_wait (self->ticket, MUSTER_SAVE_DURABLE, bounded->deadline_us,
                               bounded->cancellable, &failure))
    return TRUE;
  g_message ("the checkpoint of step %" G_GINT64_FORMAT " wasn't finished: %s",
             muster_save_ticket_step (self->ticket), failure->message);
  cancel_save (self);
  (void)muster_async_saver_sync (self->async, bounded->deadline_us, bounded->cancellable, NULL);
  return FALSE;
}

static void
abandon_save (MusterCheckpointSaverHook *self, const Call *call)
{
  const Call bounded = bound_abandoned (self, call);
  g_autoptr (GError) failure = NULL;

  if (end_abandoned (self, &bounded))
    (void)collect (self, &bounded, NULL, &failure);
}

/* Prepares background saves in this session, if the model and the options allow them. */
static gboolean
take_session (MusterCheckpointSaverHook *self, const Call *call, GError **error)
{
  const MusterAsyncOptions options = {.policy = MUSTER_SAVES_SKIP, .dispose_wait_us = DISPOSE_US};

  if (self->is_blocking || muster_saver_is_empty (self->saver))
    return TRUE;
  if (self->async == NULL) {
    self->async = muster_async_saver_new (self->saver, call->session, &options, error);
    return self->async != NULL;
  }
  muster_async_saver_set_model (self->async, self->saver, call->session);
  return TRUE;
}

/* TRUE if the save op has no SaveV2, or the master accepts no further nodes or lacks their ops. */
static gboolean
has_no_snapshot (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT) ||
         muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) ||
         muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED);
}

/* TRUE if the snapshot is what failed: then saves block, from now on, or this once if the master
 * has no memory for it. */
static gboolean
must_block (MusterCheckpointSaverHook *self, const GError *failure)
{
  const gboolean is_lasting = has_no_snapshot (failure);

  if (!is_lasting && !muster_error_is (failure, MUSTER_ERROR_RESOURCE_EXHAUSTED))
    return FALSE;
  g_message ("the model can't be saved in the background, so training waits for %s: %s",
             is_lasting ? "each save" : "this save", failure->message);
  if (is_lasting)
    g_clear_object (&self->async);
  return TRUE;
}

/* Takes the snapshot. */
static gboolean
stage (MusterCheckpointSaverHook *self, const Call *call, gint64 step, GError **failure)
{
  g_auto (MusterCancelLink) either = muster_cancel_link (call->cancellable, self->preempted);
  const gint64 began_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (MusterSaveTicket) ticket = muster_async_saver_save (
      self->async, self->directory, step, call->deadline_us, either.cancellable, failure);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());

  if (ticket == NULL)
    return FALSE;
  set_ticket (self, g_steal_pointer (&ticket));
  self->ticket_us = now_us;
  self->staging_us = now_us - began_us;
  self->report_us = now_us + REPORT_SLOW_US;
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return TRUE;
}

static gboolean
save_in_background (MusterCheckpointSaverHook *self, const Call *call, gint64 step,
                    gboolean *wants_stop, GError **error)
{
  GError *failure = NULL;

  if (stage (self, call, step, &failure))
    return collect (self, call, wants_stop, error);
  if (must_block (self, failure)) {
    g_error_free (failure);
    return save_blocking (self, call, step, wants_stop, error);
  }
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return note_failure (self, failure, step, error);
}

/* The save that occupies the saver, in flight or given up; (nullable) borrowed. */
static MusterSaveTicket *
running_save (MusterCheckpointSaverHook *self)
{
  if (self->given_up != NULL && muster_save_ticket_state (self->given_up) >= MUSTER_SAVE_DURABLE)
    g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  return self->ticket != NULL ? self->ticket : self->given_up;
}

/* Reports a disk that hangs; training continues beside it. */
static void
report_slow (MusterCheckpointSaverHook *self, MusterSaveTicket *running)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());

  if (now_us < self->report_us)
    return;
  g_autofree char *elapsed = muster_format_duration (now_us - self->ticket_us);
  self->report_us = now_us + (now_us - self->ticket_us);
  g_message ("'%s' isn't durable after %s; no other checkpoint is saved until it is",
             muster_save_ticket_path (running), elapsed);
}

/* --- either way --- */

static gboolean
save (MusterCheckpointSaverHook *self, const Call *call, gint64 step, gboolean *wants_stop,
      GError **error)
{
  notify_before_save (self, call, step);
  return self->async != NULL && !is_preempted (self)
             ? save_in_background (self, call, step, wants_stop, error)
             : save_blocking (self, call, step, wants_stop, error);
}

/* TRUE while a previous save is running: the one that is due follows it. Logged once, since it
 * repeats at each save. */
static gboolean
is_deferred (MusterCheckpointSaverHook *self, gint64 step)
{
  MusterSaveTicket *running = running_save (self);

  if (running == NULL)
    return FALSE;
  if (!self->has_deferred)
    g_info ("checkpoints take longer than the time between them: the one due at step "
            "%" G_GINT64_FORMAT " is saved once '%s' is written; training continues",
            step, muster_save_ticket_path (running));
  self->has_deferred = TRUE;
  report_slow (self, running);
  return TRUE;
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

static gboolean
checkpoint_after_create (MusterHook *hook, MusterSession *session,
                         MusterCoordinator *coordinator G_GNUC_UNUSED, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const Call call = {session, deadline_us, cancellable};
  gint64 step = muster_read_global_step (session, self->scaffold, deadline_us, cancellable, error);

  muster_saver_set_lease (self->saver, muster_session_manager_lease (session));
  if (step < 0 || !write_graphs (self, step, error) || !take_session (self, &call, error))
    return FALSE;
  if (!is_saved (self, step))
    return is_deferred (self, step) || save (self, &call, step, NULL, error);
  (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  return TRUE;
}

/* The fetched step may be the one before the update: if a save seems due, it is read again. */
static gboolean
save_if_due (MusterCheckpointSaverHook *self, const Call *call, MusterRunContext *context,
             gboolean *wants_stop, GError **error)
{
  const gint64 stale = muster_run_context_global_step (context);

  if (is_preempted (self) ||
      !muster_step_timer_is_due (&self->timer, stale + self->steps_per_run) ||
      is_deferred (self, stale))
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
  const Call call = {muster_run_context_session (context), muster_run_context_deadline_us (context),
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
save_preempted (MusterCheckpointSaverHook *self, const Call *call, gint64 step, GError **error)
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
save_last (MusterCheckpointSaverHook *self, const Call *call, gint64 step, GError **error)
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
end_background (MusterCheckpointSaverHook *self, const Call *call, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (await_save (self, call, &failure) || is_preempted (self))
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
  const Call call = {session, deadline_us, either.cancellable};
  gint64 step =
      muster_read_global_step (session, self->scaffold, deadline_us, either.cancellable, error);

  if (step < 0 || !end_background (self, &call, error) || !save_last (self, &call, step, error)) {
    abandon_save (self, &call);
    return FALSE;
  }
  for (guint i = 0; i < self->listeners->len; i++)
    if (listener (self, i)->end != NULL)
      listener (self, i)->end (session, step, deadline_us, either.cancellable,
                               listener (self, i)->user_data);
  /* A run that ends without saving its last state has failed, even if save failures were tolerated.
   */
  if (self->n_failures_in_a_row == 0)
    return TRUE;
  g_propagate_error (error, g_error_copy (self->last_failure));
  return FALSE;
}

/* A run that failed still finishes the checkpoint that it has begun. */
static void
checkpoint_on_error (MusterHook *hook, const GError *failure G_GNUC_UNUSED)
{
  const Call call = {.deadline_us = MUSTER_WAIT_FOREVER};
  abandon_save (MUSTER_CHECKPOINT_SAVER_HOOK (hook), &call);
}

/* Before another session restores: what was being written is durable then, or never will be. */
static void
checkpoint_session_lost (MusterHook *hook)
{
  const Call call = {.deadline_us = MUSTER_WAIT_FOREVER};
  abandon_save (MUSTER_CHECKPOINT_SAVER_HOOK (hook), &call);
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
  const Call bounded = bound_abandoned (self, &(Call){.deadline_us = MUSTER_WAIT_FOREVER});

  (void)end_abandoned (self, &bounded);                      /* the listeners may be gone */
  g_clear_pointer (&self->ticket, muster_save_ticket_unref); /* of one that ended well */
  g_clear_pointer (&self->given_up, muster_save_ticket_unref);
  g_free (self->directory);
  g_free (self->durable);
  g_clear_object (&self->async);
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
  if (self->preemption != NULL)
    self->preempted = muster_preemption_cancellable (self->preemption);
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
