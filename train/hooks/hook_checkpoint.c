// SPDX-License-Identifier: Apache-2.0
/* The hook that saves checkpoints. */
#include "base/cancel_link_private.h"
#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "checkpoint/stores/default_storage.h"
#include "ready/backoff.h"
#include "saver/saver_private.h"
#include "session/manager.h"
#include "train/hooks/hook_checkpoint_private.h"
#include "train/hooks/saved_goodput_private.h"

#include <math.h>
#include <string.h>

#define NAME               "CheckpointSaverHook"
#define REPORT_FAILURES_US (10 * MUSTER_SECOND)
#define ASK_SESSION_US     (5 * MUSTER_SECOND)

/* How long the save at the end of a job is repeated for a store that can't be reached, and how
 * often. */
#define LAST_SAVE_US (10 * 60 * MUSTER_SECOND)
#define REPEAT_US    (5 * MUSTER_SECOND)
/* How long the end of a job may take to be told in the directory. */
#define RELEASE_US (5 * MUSTER_SECOND)

G_DEFINE_FINAL_TYPE (MusterCheckpointSaverHook, muster_checkpoint_saver_hook, MUSTER_TYPE_HOOK)

static void
checkpoint_measure (MusterHook *hook, MusterGoodputMeter *meter)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  muster_goodput_meter_unref (self->meter);
  self->meter = muster_goodput_meter_ref (meter);
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
  if (self->saver == NULL ||
      !muster_saver_adopt_for_job (self->saver, self->directory, self->from_files, error))
    return FALSE;
  muster_hook_metric_find (&self->metric, self->saver, scaffold);
  muster_saved_goodput_offer (self->meter, self->saver, self->directory);
  if (self->preemption != NULL)
    muster_preemption_set_saver (self->preemption, self->saver, self->directory);
  muster_saver_observer_begin (self->observer);
  return TRUE;
}

/* --- one save --- */

/* In a tier; the last one is the directory itself. */
static void
note_durable (MusterCheckpointSaverHook *self, guint tier, gint64 step, char *prefix)
{
  if (tier == self->cadence.n)
    self->bottom_step = step;
  g_free (self->durable);
  self->durable = prefix;
  self->durable_step = step;
}

static gboolean
is_of_session (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
         muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE);
}

/* A disk that fails may do so at each step: the first failure is reported, then the others from
 * time to time. */
static void
report_failure (MusterCheckpointSaverHook *self, gint64 step, guint n_in_a_row)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  if (self->failure_due_us > now_us) {
    self->n_unreported++;
    return;
  }
  const guint n_left_out = self->n_unreported;
  g_autofree char *left_out = n_left_out > 0
                                  ? g_strdup_printf ("; %u more since the last report", n_left_out)
                                  : g_strdup ("");
  self->failure_due_us = now_us + REPORT_FAILURES_US;
  self->n_unreported = 0;
  muster_log (G_LOG_LEVEL_WARNING, "save-failed", "MESSAGE",
              "Unable to write the checkpoint of step %" G_GINT64_FORMAT
              " (%u in a row%s); training continues: %s",
              step, n_in_a_row, left_out, self->last_failure->message);
  muster_save_signals_failed (self->observer, step, self->last_failure, n_in_a_row, n_left_out);
}

/* ABORTED says that this session is of no use, because it is gone or because a step in it was torn
 * (train/position/position.h). UNAVAILABLE is a code of the master's store, too, and of a parameter
 * server: there the session itself tells whether it is lost. */
static gboolean
is_session_lost (const MusterSaveCall *call, GError *failure)
{
  if (!muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE))
    return muster_error_is (failure, MUSTER_ERROR_ABORTED);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const MusterStep nothing = {
      .deadline_us = MIN (call->deadline_us, muster_deadline_after (now_us, ASK_SESSION_US))};
  g_autoptr (GError) own = NULL;

  if (call->session == NULL ||
      (!muster_session_run (call->session, &nothing, NULL, NULL, call->cancellable, &own) &&
       (is_of_session (own) || muster_error_is (own, MUSTER_ERROR_DEADLINE_EXCEEDED))))
    return TRUE;
  muster_storage_failure_set_outage (failure);
  return FALSE;
}

/* A lost lease isn't a failed save: another chief continues the training. */
static gboolean
judge_failure (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError *failure,
               gint64 step, guint *n_in_a_row, GError **error)
{
  g_clear_error (&self->last_failure);
  self->last_failure = failure;
  self->n_failures++;
  (*n_in_a_row)++;
  gboolean is_fatal =
      muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) ||
      is_session_lost (call, failure) ||
      (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) && !is_preempted (self)) ||
      (self->most_failures > 0 && *n_in_a_row >= self->most_failures);
  if (is_fatal) {
    g_propagate_error (error, g_error_copy (failure));
    return FALSE;
  }
  if (is_preempted (self))
    return TRUE;
  report_failure (self, step, *n_in_a_row);
  return TRUE;
}

gboolean
muster_checkpoint_hook_note_failure (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                                     GError *failure, gint64 step, GError **error)
{
  return judge_failure (self, call, failure, step, &self->n_failures_in_a_row, error);
}

/* Handles a save that was skipped for lack of space. If somebody is told, it is no failure. */
static gboolean
note_skipped (MusterCheckpointSaverHook *self, const MusterSaveCall *call, const MusterSaved *saved,
              GError **error)
{
  const gboolean is_told = muster_save_signals_has_listener (self->observer);
  muster_save_signals_saved (self->observer, saved);
  return is_told ||
         muster_checkpoint_hook_note_failure (
             self, call,
             g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED, saved->why),
             saved->step, error);
}

static gboolean
write_checkpoint (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                  MusterTierSet due, MusterSaved *saved, GError **error)
{
  MusterPreemptionSave bounded = {.deadline_us = call->deadline_us,
                                  .bytes = muster_saver_estimate_bytes (self->saver)};
  g_auto (MusterCancelLink) either = muster_cancel_link (call->cancellable, self->preempted);
  GError *failure = NULL;
  if (self->preemption != NULL && !muster_preemption_begin_save (self->preemption, &bounded, error))
    return FALSE;
  gboolean is_done =
      muster_saver_save_with (self->saver, call->session, self->directory, step, due, saved,
                              bounded.deadline_us, either.cancellable, &failure);
  if (self->preemption != NULL)
    muster_preemption_end_save (self->preemption, &bounded, saved, failure);
  if (!is_done)
    g_propagate_error (error, failure);
  return is_done;
}

/* Handles a save that ended without an error. *wants_stop (nullable) is set if a listener requests
 * a stop. Without a session (the run has failed) nothing is done in it. */
static gboolean
conclude (MusterCheckpointSaverHook *self, const MusterSaveCall *call, const MusterSaved *saved,
          gboolean *wants_stop, GError **error)
{
  if (saved->skipped)
    return note_skipped (self, call, saved, error);
  self->n_failures_in_a_row = 0;
  note_durable (self, saved->tier, saved->step, g_strdup (saved->prefix));
  muster_tier_cadence_note_saved (&self->cadence);
  muster_auto_cadence_update (&self->chosen, self->saver, self->meter, &self->timer);
  if (self->writer != NULL &&
      !muster_event_writer_add_session_log (self->writer, MUSTER_SESSION_LOG_CHECKPOINT,
                                            saved->prefix, saved->step, error))
    return FALSE;
  muster_save_signals_saved (self->observer, saved);
  if (call->session != NULL &&
      muster_saver_observer_after_save (self->observer, call->session, saved, call->deadline_us,
                                        call->cancellable) &&
      wants_stop != NULL)
    *wants_stop = TRUE;
  return TRUE;
}

static MusterTierSet
bottom (MusterCheckpointSaverHook *self)
{
  return MUSTER_TIER_BIT (self->cadence.n);
}

/* The intervals of the tiers that are due count from now. 0: the directory alone. */
static void
trigger (MusterCheckpointSaverHook *self, MusterTierSet due, gint64 step)
{
  if (due == 0 || (due & bottom (self)) != 0)
    (void)muster_step_timer_trigger (&self->timer, step, NULL, NULL);
  muster_tier_cadence_trigger (&self->cadence, due, step);
}

/* Saves while training waits. */
static gboolean
save_and_wait (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
               MusterTierSet due, gboolean *wants_stop, GError **error)
{
  g_auto (MusterSaved) saved = {0};
  GError *failure = NULL;
  gboolean is_done = write_checkpoint (self, call, step, due, &saved, &failure);
  trigger (self, due, step);
  return is_done ? conclude (self, call, &saved, wants_stop, error)
                 : muster_checkpoint_hook_note_failure (self, call, failure, step, error);
}

/* --- in the background --- */

gboolean
muster_checkpoint_hook_collect (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                                gboolean *wants_stop, GError **error)
{
  GError *failure = NULL;
  g_autoptr (MusterSaveTicket) ticket =
      muster_background_save_take_ended (&self->background, call, &failure);

  if (failure != NULL)
    return muster_checkpoint_hook_note_failure (self, call, failure,
                                                muster_save_ticket_step (ticket), error);
  if (ticket == NULL)
    return TRUE;
  const MusterSaved *saved = muster_save_ticket_saved (ticket);
  const gboolean is_bottom = saved->tier == self->cadence.n; /* as the last save will be */
  if (self->preemption != NULL && !saved->skipped)
    muster_preemption_note_durable (
        self->preemption, saved->step, saved->prefix, is_bottom ? saved->bytes : 0,
        is_bottom ? MAX (saved->took_us + self->background.staging_us, 1) : 0);
  return conclude (self, call, saved, wants_stop, error);
}

static void
abandon_save (MusterCheckpointSaverHook *self, const MusterSaveCall bounded)
{
  g_autoptr (GError) failure = NULL;
  if (muster_background_save_abandon (&self->background, &bounded))
    (void)muster_checkpoint_hook_collect (self, &bounded, NULL, &failure);
}

/* Handles a copy that has ended. */
static gboolean
note_copied (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
             const MusterTierCopied *copied, GError **error)
{
  if (copied->why != NULL) {
    const MusterSaved skipped = {
        .step = copied->step, .tier = copied->tier, .skipped = TRUE, .why = copied->why};
    return note_skipped (self, call, &skipped, error);
  }
  if (copied->tier == self->cadence.n) {
    if (self->preemption != NULL)
      muster_preemption_note_durable (self->preemption, copied->step, copied->prefix, 0, 0);
    self->bottom_step = MAX (self->bottom_step, copied->step);
    if (copied->step == self->durable_step)
      note_durable (self, copied->tier, copied->step, g_strdup (copied->prefix));
    self->n_failed_copies_in_a_row = 0;
  }
  muster_save_signals_copied (self->observer, copied);
  return TRUE;
}

static gboolean
collect_copies (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError **error)
{
  gint64 step = -1;
  if (self->cadence.n == 0)
    return TRUE;
  for (;;) {
    g_auto (MusterTierCopied) copied = {0};
    if (!muster_saver_take_copied (self->saver, &copied))
      break;
    if (!note_copied (self, call, &copied, error))
      return FALSE;
  }
  GError *failure = muster_saver_take_copy_failure (self->saver, &step);
  return failure == NULL ||
         judge_failure (self, call, failure, step, &self->n_failed_copies_in_a_row, error);
}

gboolean
muster_checkpoint_hook_end_copies (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                                   GError **error)
{
  if (self->cadence.n > 0)
    muster_saver_cancel_copies (self->saver);
  return collect_copies (self, call, error);
}

static gboolean
save_in_background (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                    MusterTierSet due, gboolean *wants_stop, GError **error)
{
  GError *failure = NULL;
  const gboolean is_started =
      muster_background_save_start (&self->background, self->directory, step, due, call, &failure);

  if (!is_started && muster_background_save_must_block (&self->background, failure)) {
    g_error_free (failure);
    return save_and_wait (self, call, step, due, wants_stop, error);
  }
  trigger (self, due, step);
  return is_started ? muster_checkpoint_hook_collect (self, call, wants_stop, error)
                    : muster_checkpoint_hook_note_failure (self, call, failure, step, error);
}

/* --- either way --- */

gboolean
muster_checkpoint_hook_save (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                             gint64 step, MusterTierSet due, gboolean *wants_stop, GError **error)
{
  const MusterTimeUse use = muster_goodput_meter_enter (self->meter, MUSTER_TIME_SAVING);
  if (self->cadence.n == 0)
    due = 0;
  muster_saved_goodput_note (self->meter, self->saver, MUSTER_RUN_UNENDED);
  muster_saver_observer_before_save (self->observer, call->session, step, call->deadline_us,
                                     call->cancellable);
  gboolean is_done = self->background.async != NULL && !is_preempted (self)
                         ? save_in_background (self, call, step, due, wants_stop, error)
                         : save_and_wait (self, call, step, due, wants_stop, error);
  (void)muster_goodput_meter_enter (self->meter, use);
  return is_done;
}

/* --- when --- */

static gboolean
write_graphs (MusterCheckpointSaverHook *self, gint64 step, GError **error)
{
  if (!self->has_printed)
    muster_hook_print_graph (self->scaffold, self->directory);
  self->has_printed = TRUE;
  return muster_hook_log_graphs (self->scaffold, self->writer, step, error);
}

/* If the model was restored from a fast tier, that one holds it. */
static gboolean
is_in_fast_tier (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step)
{
  const char *restored = muster_session_manager_restored_from (call->session);
  if (restored == NULL || muster_checkpoint_step (restored) != step)
    return FALSE;
  const guint tier = muster_saver_tier_of (self->saver, restored);
  if (tier == self->cadence.n)
    return FALSE;
  note_durable (self, tier, step, g_strdup (restored));
  muster_tier_cadence_note_restored (&self->cadence, restored);
  return TRUE;
}

static gboolean
is_in_directory (MusterCheckpointSaverHook *self, gint64 step)
{
  g_auto (GStrv) kept = muster_saver_last_checkpoints (self->saver);
  guint n = g_strv_length (kept);
  if (n == 0 || muster_checkpoint_step (kept[n - 1]) != step)
    return FALSE;
  note_durable (self, self->cadence.n, step, g_strdup (kept[n - 1]));
  return TRUE;
}

/* Returns TRUE if that step has a checkpoint already because it was just restored (DMON.16). */
static gboolean
is_saved (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step)
{
  if (!is_in_fast_tier (self, call, step) && !is_in_directory (self, step))
    return FALSE;
  if (self->preemption != NULL)
    muster_preemption_note_durable (self->preemption, step, self->durable, 0, 0);
  return TRUE;
}

/* Notes which checkpoint, or which model on the master, the training starts from. */
static gboolean
begin_run (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError **error)
{
  muster_saver_set_lease (self->saver, muster_session_manager_lease (call->session));
  if (!muster_saver_open_tiers (self->saver, call->session, self->directory, call->deadline_us,
                                call->cancellable, error))
    return FALSE;
  muster_tier_cadence_open (&self->cadence, self->saver, self->clock);
  muster_saved_goodput_note (self->meter, self->saver, MUSTER_RUN_UNENDED);
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
      !collect_copies (self, &call, error) ||
      !(self->is_blocking ||
        muster_background_save_open (&self->background, self->saver, session, error)))
    return FALSE;
  muster_saver_keep_cut (self->saver, FALSE); /* of the session before, if it was lost */
  muster_saver_set_metric (self->saver, NAN);
  muster_drain_watch_open (&self->drain, &call);
  self->bottom_step = -1; /* what the session before saved as that step may be another branch's */
  const MusterTierSet all = bottom (self) | (bottom (self) - 1);
  if (is_saved (self, &call, step))
    trigger (self, all, step);
  else if (muster_session_manager_continued_step (session) < 0)
    return muster_background_save_is_busy (&self->background, step) ||
           muster_checkpoint_hook_save (self, &call, step, all, NULL, error);
  /* Else the chief before may have died of the model: it is saved once a step has passed, when the
   * timers, which haven't begun, are due. */
  return TRUE;
}

/* The tiers of which a checkpoint is due. */
static MusterTierSet
due_at (MusterCheckpointSaverHook *self, gint64 step)
{
  const MusterTierSet fast = muster_tier_cadence_due (&self->cadence, step);
  return muster_step_timer_is_due (&self->timer, step) ? fast | bottom (self) : fast;
}

/* The fetched step may be the one before the update: if a save seems due, it is read again. */
static gboolean
save_if_due (MusterCheckpointSaverHook *self, const MusterSaveCall *call, MusterRunContext *context,
             gboolean *wants_stop, GError **error)
{
  const gint64 stale = muster_run_context_global_step (context);
  if (is_preempted (self) || due_at (self, stale + self->steps_per_run) == 0 ||
      muster_background_save_is_busy (&self->background, stale))
    return TRUE; /* the save at the end does the rest */
  gint64 step = muster_run_context_step_now (context, error);
  if (step < 0)
    return FALSE;
  const MusterTierSet due = due_at (self, step);
  return due == 0 || muster_checkpoint_hook_save (self, call, step, due, wants_stop, error);
}

static gboolean
checkpoint_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  muster_hook_metric_fetch (&MUSTER_CHECKPOINT_SAVER_HOOK (hook)->metric, context);
  return muster_checkpoint_hook_await_end (hook, context, error);
}

static gboolean
checkpoint_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const MusterSaveCall call = {muster_run_context_session (context),
                               muster_run_context_deadline_us (context),
                               muster_run_context_cancellable (context)};
  gboolean wants_stop = FALSE;
  gint64 until_us = 0;
  muster_tier_cadence_copy_restored (&self->cadence, self->directory);
  if (!muster_hook_metric_take (&self->metric, self->saver, context, error) ||
      !muster_checkpoint_hook_collect (self, &call, &wants_stop, error) ||
      !collect_copies (self, &call, error))
    return FALSE;
  const gboolean drains =
      muster_drain_watch_is_due (&self->drain, &until_us) && !is_preempted (self);
  if (!(drains ? muster_checkpoint_hook_save_for_drain (self, &call, until_us, &wants_stop, error)
               : save_if_due (self, &call, context, &wants_stop, error)))
    return FALSE;
  if (wants_stop || (drains && is_preempted (self))) /* by a signal during that save */
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
  if (save_and_wait (self, call, step, 0, NULL, &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) {
    self->n_failures_in_a_row = 0;
    return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* FALSE if the last save isn't to be repeated: what it lacks isn't time, or there is none left. */
static gboolean
may_repeat (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 until_us)
{
  const gint64 next_us = muster_deadline_after (muster_clock_now_us (self->clock), REPEAT_US);
  if (self->n_failures_in_a_row == 0 || is_preempted (self) || next_us >= until_us ||
      muster_failure_of (self->last_failure) != MUSTER_FAILURE_UNREACHABLE)
    return FALSE;
  (void)muster_clock_wait_until (self->clock, next_us, call->cancellable, NULL);
  return TRUE; /* a preemption's save ends at once if its time is over */
}

/* What a local master holds is nowhere else: a store that can't be reached is waited for. */
static gboolean
save_until_there (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step,
                  GError **error)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  const gint64 until_us = MIN (call->deadline_us, muster_deadline_after (now_us, LAST_SAVE_US));
  do {
    if (!(is_preempted (self) ? save_preempted (self, call, step, error)
                              : save_and_wait (self, call, step, 0, NULL, error)))
      return FALSE;
  } while (may_repeat (self, call, until_us));
  return TRUE;
}

static gboolean
save_last (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step, GError **error)
{
  if (step == self->bottom_step) {
    if (self->preemption != NULL)
      muster_preemption_note_durable (self->preemption, step, self->durable, 0, 0);
    return TRUE;
  }
  self->failure_due_us = 0; /* its failure is reported in any case */
  muster_saver_observer_before_save (self->observer, call->session, step, call->deadline_us,
                                     call->cancellable);
  return save_until_there (self, call, step, error);
}

/* Waits for the background save at the end. If a preemption leaves no time for it, the preemption's
 * report says so. */
static gboolean
end_background (MusterCheckpointSaverHook *self, const MusterSaveCall *call, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if ((muster_background_save_wait (&self->background, call, &failure) &&
       muster_checkpoint_hook_collect (self, call, NULL, &failure)) ||
      is_preempted (self))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* The account, for the next run. */
static void
end_goodput (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 step)
{
  const MusterRunEnd end = step != self->durable_step ? MUSTER_RUN_UNENDED
                           : is_preempted (self)      ? MUSTER_RUN_STOPPED
                                                      : MUSTER_RUN_FINISHED;
  muster_saved_goodput_write (self->meter, self->saver, self->directory, end, call->deadline_us,
                              call->cancellable);
}

static gboolean
end (MusterCheckpointSaverHook *self, MusterSession *session, gint64 deadline_us,
     GCancellable *cancellable, GError **error)
{
  g_auto (MusterCancelLink) either = muster_cancel_link (cancellable, self->preempted);
  const MusterSaveCall call = {session, deadline_us, either.cancellable};
  gint64 step =
      muster_read_global_step (session, self->scaffold, deadline_us, either.cancellable, error);

  const MusterTimeUse use = muster_goodput_meter_enter (self->meter, MUSTER_TIME_SAVING);
  self->chosen.share = 0; /* no more saves beside the training */
  muster_saved_goodput_note (self->meter, self->saver, MUSTER_RUN_UNENDED);
  if (step < 0 || !end_background (self, &call, error) ||
      !muster_checkpoint_hook_end_copies (self, &call, error) ||
      !save_last (self, &call, step, error)) {
    abandon_save (self, muster_background_save_bound (&self->background, &call));
    return FALSE;
  }
  if (muster_drain_watch_end (&self->drain))
    muster_saver_release_cut (self->saver, session);
  end_goodput (self, &call, step);
  (void)muster_goodput_meter_enter (self->meter, use);
  muster_saver_observer_end (self->observer, session, step, deadline_us, either.cancellable);
  /* A run that ends without saving its last state has failed, even if failures were tolerated. */
  if (self->n_failures_in_a_row == 0)
    return muster_background_save_shutdown (&self->background, error);
  g_propagate_error (error, g_error_copy (self->last_failure));
  return FALSE;
}

static gint64
release_deadline_us (gint64 deadline_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return MIN (deadline_us, muster_deadline_after (now_us, RELEASE_US));
}

static gboolean
checkpoint_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const gboolean is_done = end (self, session, deadline_us, cancellable, error);
  muster_saver_release_directory (self->saver, self->directory, release_deadline_us (deadline_us),
                                  cancellable);
  return is_done;
}

/* A run that failed still finishes the checkpoint that it has begun, within the grace. */
static void
checkpoint_on_error (MusterHook *hook, const GError *failure G_GNUC_UNUSED)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  abandon_save (self, muster_background_save_bound_by_grace (&self->background));
  (void)muster_background_save_shutdown (&self->background, NULL);
  if (self->saver != NULL)
    muster_saver_release_directory (self->saver, self->directory, 0, NULL);
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
  (void)muster_background_save_abandon (&self->background, &bounded); /* nobody is told */
  muster_background_save_clear (&self->background);
  if (self->cadence.n > 0) {
    muster_saver_cancel_copies (self->saver);
    (void)muster_saver_sync_copies (self->saver, bounded.deadline_us, NULL, NULL);
  }
  muster_tier_cadence_clear (&self->cadence);
  muster_drain_watch_clear (&self->drain);
  muster_hook_metric_clear (&self->metric);
  g_free (self->directory);
  g_free (self->durable);
  g_clear_object (&self->saver);
  g_clear_pointer (&self->meter, muster_goodput_meter_unref);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_object (&self->observer);
  g_clear_object (&self->clock);
  g_clear_object (&self->preemption);
  g_clear_error (&self->last_failure);
  G_OBJECT_CLASS (muster_checkpoint_saver_hook_parent_class)->finalize (object);
}

static void
muster_checkpoint_saver_hook_class_init (MusterCheckpointSaverHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = checkpoint_finalize;
  MUSTER_HOOK_CLASS (klass)->measure = checkpoint_measure;
  MUSTER_HOOK_CLASS (klass)->begin = checkpoint_begin;
  MUSTER_HOOK_CLASS (klass)->claims = checkpoint_claims;
  MUSTER_HOOK_CLASS (klass)->after_create_session = checkpoint_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = checkpoint_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = checkpoint_after_run;
  MUSTER_HOOK_CLASS (klass)->end = checkpoint_end;
  MUSTER_HOOK_CLASS (klass)->on_error = checkpoint_on_error;
  MUSTER_HOOK_CLASS (klass)->session_lost = checkpoint_session_lost;
}

static void
muster_checkpoint_saver_hook_init (MusterCheckpointSaverHook *self)
{
  self->durable_step = self->bottom_step = -1;
}

/* A choice needs a save that was measured: the first ones are made a second apart. */
static gboolean
init_timer (MusterCheckpointSaverHook *self, const MusterCheckpointSaverOptions *options,
            GError **error)
{
  if (!options->save_auto)
    return muster_step_timer_init (&self->timer, options->save_us, options->save_steps, self->clock,
                                   error);
  if (options->save_us != 0 || options->save_steps != 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s",
                        NAME " chooses its interval (save_auto); don't set another one");
  return muster_auto_cadence_init (&self->chosen, options->save_share, error) &&
         muster_step_timer_init (&self->timer, MUSTER_SECOND, 0, self->clock, error);
}

MusterHook *
muster_checkpoint_saver_hook_new (const MusterCheckpointSaverOptions *options, GError **error)
{
  const MusterSaver *saver = options != NULL ? options->saver : NULL;
  return muster_checkpoint_saver_hook_new_at (options, saver != NULL ? saver->clock : NULL, error);
}

MusterHook *
muster_checkpoint_saver_hook_new_at (const MusterCheckpointSaverOptions *options,
                                     MusterClock *clock, GError **error)
{
  g_autoptr (MusterCheckpointSaverHook) self =
      g_object_new (MUSTER_TYPE_CHECKPOINT_SAVER_HOOK, NULL);

  if (options == NULL || options->checkpoint_dir == NULL || !*options->checkpoint_dir) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", NAME " needs a checkpoint_dir");
    return NULL;
  }
  if (options->saver != NULL
          ? !muster_saver_check_tiers (options->saver, options->checkpoint_dir, error)
          : !muster_storage_check_path (muster_default_storage (), "checkpoint directory",
                                        options->checkpoint_dir, error))
    return NULL;
  self->directory = g_strdup (options->checkpoint_dir);
  self->saver = options->saver != NULL ? g_object_ref (options->saver) : NULL;
  self->writer = options->writer != NULL ? muster_event_writer_ref (options->writer) : NULL;
  self->observer = options->saver_observer != NULL ? g_object_ref (options->saver_observer) : NULL;
  self->steps_per_run = MAX (options->steps_per_run, 1);
  self->is_blocking = options->save_blocking;
  self->from_files = options->from_files;
  self->most_failures = options->most_failures_in_a_row;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->preemption = options->preemption != NULL ? g_object_ref (options->preemption) : NULL;
  if (self->preemption != NULL) {
    self->background.preemption = g_object_ref (self->preemption);
    self->preempted = muster_preemption_cancellable (self->preemption);
  }
  if (!init_timer (self, options, error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}

MusterSaver *
muster_checkpoint_saver_hook_share (MusterHook *hook, const char *directory, MusterSaver *offered)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  if (strcmp (self->directory, directory) != 0)
    return NULL;
  if (self->saver == NULL)
    self->saver = g_object_ref (offered);
  return self->saver;
}

guint
muster_checkpoint_saver_hook_n_failures (MusterHook *self)
{
  g_return_val_if_fail (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self), 0);
  return MUSTER_CHECKPOINT_SAVER_HOOK (self)->n_failures;
}

GError *
muster_checkpoint_saver_hook_last_failure (MusterHook *self)
{
  g_return_val_if_fail (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self), NULL);
  const GError *last = MUSTER_CHECKPOINT_SAVER_HOOK (self)->last_failure;
  return last != NULL ? g_error_copy (last) : NULL;
}

gint64
muster_checkpoint_saver_hook_durable (MusterHook *self, const char **prefix)
{
  g_return_val_if_fail (MUSTER_IS_CHECKPOINT_SAVER_HOOK (self), -1);

  if (prefix != NULL)
    *prefix = MUSTER_CHECKPOINT_SAVER_HOOK (self)->durable;
  return MUSTER_CHECKPOINT_SAVER_HOOK (self)->durable_step;
}
