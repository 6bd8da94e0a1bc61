// SPDX-License-Identifier: Apache-2.0
/* What the hook that saves checkpoints does before its master stops, and where a job is to save and
 * hold. */
#include "base/error.h"
#include "base/log_private.h"
#include "train/hooks/hook_checkpoint_private.h"
#include "train/monitored/run_context_private.h"
#include "train/preemption/preemption_private.h"

/* The pause after a failed save. */
#define RETRY_US MUSTER_SECOND

/* Saves to the directory itself, whatever tiers are above it. FALSE with an error only if the run
 * is to end; *step becomes that of the save, or stays if there is none. */
static gboolean
save_to_bottom (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 *step,
                gboolean *wants_stop, GError **error)
{
  g_autoptr (GError) failure = NULL;
  const gint64 at = muster_read_global_step (call->session, self->scaffold, call->deadline_us,
                                             call->cancellable, error);
  if (at < 0)
    return FALSE;
  self->bottom_step = -1;
  if (!muster_checkpoint_hook_save (self, call, at, 0, wants_stop, error))
    return FALSE;
  if (!muster_background_save_wait (&self->background, call, &failure))
    return muster_checkpoint_hook_note_failure (self, call, g_steal_pointer (&failure), at, error);
  if (!muster_checkpoint_hook_collect (self, call, wants_stop, error))
    return FALSE;
  if (self->bottom_step >= 0)
    *step = self->bottom_step;
  return TRUE;
}

/* The tasks hold from the save on, each as soon as its next step has ended. A save that fails is
 * repeated while the master lasts. */
static gboolean
save_and_hold (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 *step,
               gboolean *wants_stop, GError **error)
{
  MusterClock *clock = muster_system_clock ();
  g_autoptr (GError) failure = NULL;
  if (!muster_background_save_wait (&self->background, call, &failure) &&
      !muster_checkpoint_hook_note_failure (self, call, g_steal_pointer (&failure),
                                            self->durable_step, error))
    return FALSE;
  if (!muster_checkpoint_hook_collect (self, call, wants_stop, error) ||
      !muster_checkpoint_hook_end_copies (self, call, error))
    return FALSE;
  muster_saver_keep_cut (self->saver, TRUE);
  while (*step < 0 && !is_preempted (self)) {
    if (!save_to_bottom (self, call, step, wants_stop, error))
      return FALSE;
    const gint64 next_us = muster_clock_now_us (clock) + RETRY_US;
    if (*step < 0 && (next_us >= call->deadline_us ||
                      !muster_clock_wait_until (clock, next_us, call->cancellable, NULL)))
      break;
  }
  return TRUE;
}

static void
note_all_saved (MusterCheckpointSaverHook *self, gboolean is_all_saved)
{
  if (self->preemption != NULL)
    muster_preemption_note_all_saved (self->preemption, is_all_saved);
}

/* *is_saved (out): FALSE with TRUE: no save succeeded in time. */
static gboolean
save_until (MusterCheckpointSaverHook *self, const MusterSaveCall *call, gint64 until_us,
            gboolean *is_saved, gboolean *wants_stop, GError **error)
{
  const MusterSaveCall bounded = {call->session, MIN (call->deadline_us, until_us),
                                  call->cancellable};
  const MusterTimeUse use = muster_goodput_meter_enter (self->meter, MUSTER_TIME_SAVING);
  gint64 step = -1;
  const gboolean is_well = save_and_hold (self, &bounded, &step, wants_stop, error);
  (void)muster_goodput_meter_enter (self->meter, use);
  *is_saved = is_well && step >= 0;
  return is_well;
}

gboolean
muster_checkpoint_hook_save_for_drain (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                                       gint64 until_us, gboolean *wants_stop, GError **error)
{
  gboolean is_saved;
  muster_log (G_LOG_LEVEL_MESSAGE, "drain", "MESSAGE", "the job is drained; saving");
  muster_drain_watch_note_heard (&self->drain, until_us);
  const gboolean is_well = save_until (self, call, until_us, &is_saved, wants_stop, error);
  if (is_saved) {
    muster_drain_watch_note_saved (&self->drain, until_us);
    note_all_saved (self, TRUE);
    return TRUE;
  }
  if (is_well && !is_preempted (self))
    muster_log (G_LOG_LEVEL_WARNING, "drain", "MESSAGE",
                "no checkpoint was saved in the time of the drain; the last durable step is "
                "%" G_GINT64_FORMAT,
                self->durable_step);
  muster_saver_release_cut (self->saver, call->session);
  return is_well;
}

/* In half of the time that is left, so that the master can be told of the save that there is. FALSE
 * with an error only if the run is to end. */
static gboolean
save_what_came_late (MusterCheckpointSaverHook *self, const MusterSaveCall *call,
                     MusterRunContext *context, GError **error)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 until_us = now_us + MAX (self->drain.until_us - now_us, 0) / 2;
  gboolean is_saved = muster_drain_watch_is_saved (&self->drain), wants_stop = FALSE;
  while (is_saved && !is_preempted (self) && !muster_drain_watch_is_unchanged (call, self->saver)) {
    muster_log (G_LOG_LEVEL_MESSAGE, "drain", "MESSAGE",
                "a task trained after step %" G_GINT64_FORMAT " was saved; saving again",
                self->durable_step);
    if (!save_until (self, call, until_us, &is_saved, &wants_stop, error)) {
      muster_saver_release_cut (self->saver, call->session);
      return FALSE;
    }
    if (!is_saved && !is_preempted (self))
      muster_log (G_LOG_LEVEL_WARNING, "drain", "MESSAGE",
                  "what was trained after step %" G_GINT64_FORMAT
                  " isn't saved; it is trained again",
                  self->durable_step);
  }
  if (wants_stop)
    muster_run_context_request_stop (context);
  return TRUE;
}

static GCancellable *
requested (const MusterCheckpointSaverHook *self)
{
  return self->preemption != NULL ? muster_preemption_requested (self->preemption) : NULL;
}

gboolean
muster_checkpoint_hook_await_end (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterCheckpointSaverHook *self = MUSTER_CHECKPOINT_SAVER_HOOK (hook);
  const MusterSaveCall call = {muster_run_context_session (context),
                               muster_run_context_deadline_us (context),
                               muster_run_context_cancellable (context)};
  if (!save_what_came_late (self, &call, context, error))
    return FALSE;
  if (!muster_drain_watch_is_saved (&self->drain))
    return TRUE;
  const MusterTimeUse use = muster_goodput_meter_enter (self->meter, MUSTER_TIME_PAUSED);
  muster_run_context_hold (context, "holding for a drain");
  const gboolean is_there = muster_drain_watch_await_end (&self->drain, &call, self->scaffold,
                                                          self->saver, requested (self), error);
  (void)muster_goodput_meter_enter (self->meter, use);
  if (is_there && is_preempted (self) && muster_drain_watch_is_unchanged (&call, self->saver)) {
    muster_run_context_request_stop (context); /* the others hold on: the master may stop next */
    return muster_fail (error, MUSTER_ERROR_CANCELLED, "preempted during a drain; all is saved");
  }
  if (is_there) {
    note_all_saved (self, FALSE);
    muster_saver_release_cut (self->saver, call.session);
  } else {
    muster_saver_keep_cut (self->saver, FALSE); /* the hold has gone with the session */
  }
  return is_there;
}
