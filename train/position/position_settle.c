// SPDX-License-Identifier: Apache-2.0
/* How a task finds its position, and waits until it may step. */
#include "base/error.h"
#include "base/log_private.h"
#include "master/master.h"
#include "train/position/position_hook_private.h"

#include <string.h>

/* The time limit for the reset that undoes an interrupted step. */
#define RESET_US (60 * MUSTER_SECOND)
/* Longer than a task that lost its slot takes to hear it. */
#define REFUSED_US (10 * MUSTER_SECOND)

gboolean
muster_position_undo (MusterPositionHook *self, guint task, MusterSession *session, GError **error)
{
  const MusterPositionQuiesce quiesce = {self->n_tasks, task, self->clock, MUSTER_WAIT_FOREVER,
                                         self->is_dealt};
  GError *failure = NULL;
  if (self->options.master != NULL)
    muster_position_quiesce (session, &quiesce, self->stopped);
  if (self->options.master != NULL &&
      !muster_master_reset (self->options.master, NULL, muster_position_in_us (RESET_US),
                            self->stopped, &failure)) {
    g_propagate_prefixed_error (error, failure, "Resetting the master: ");
    return FALSE;
  }
  return muster_fail (
      error, MUSTER_ERROR_ABORTED, "a step of task %u was interrupted in an earlier run%s", task,
      self->options.master != NULL ? "; the master was reset, and the last checkpoint is restored"
                                   : "; reset the master to restore the last checkpoint");
}

/* Only the chief's restore or init writes while hold is set, so an inconsistent state at this point
 * came from the checkpoint, unless steps go on at other masters. */
static gboolean
refuse_inconsistent (const MusterPositionState *state, guint task, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the restored checkpoint is inconsistent: batch %" G_GINT64_FORMAT
                      " of task %u was in progress when it was saved; restore another one, and "
                      "save with a MusterSaver with muster_position_guard ()",
                      muster_position_done (state, task), task);
}

/* With a master of its own, a step may also have been counted as the model was restored: it is
 * restored again, and if the counts come back they are the checkpoint's. */
static gboolean
restore_again (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
               guint task, GError **error)
{
  const gint64 begun = muster_position_begun (state, task);
  const gint64 done = muster_position_done (state, task);
  if (task == self->torn && begun == self->torn_begun && done == self->torn_done)
    return refuse_inconsistent (state, task, error);
  self->torn = task;
  self->torn_begun = begun;
  self->torn_done = done;
  return muster_position_fence (session, muster_position_in_us (MUSTER_POSITION_ANSWER_US),
                                self->stopped, error) &&
         muster_position_refuse_fenced (error);
}

static gboolean
end_quiescence (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
                GError **error)
{
  const guint task = muster_position_busy (state, self->n_tasks, self->n_tasks);
  return self->options.own_masters ? restore_again (self, session, state, task, error)
                                   : refuse_inconsistent (state, task, error);
}

/* What a task has to wait for, from the master's state. */
typedef enum {
  GO,
  WAIT_FOR_STEP,
  WAIT_FOR_QUIESCENCE,
  WAIT_FOR_HOLD,
  WAIT_FOR_RESTORE,
  N_WAITS
} Wait;

static Wait
judge (const MusterPositionHook *self, const MusterPositionState *state)
{
  guint task = self->own.task;
  /* A starting chief releases the other tasks; a working one respects the hold of a saver outside
   * the job. */
  const gboolean heeds = self->options.is_worker || self->is_held;

  if (state->is_restoring) /* the counts may be half restored */
    return WAIT_FOR_RESTORE;
  if (muster_position_is_unended (state, task))
    return WAIT_FOR_STEP;
  if (state->is_raised)
    return WAIT_FOR_RESTORE;
  if (state->hold != MUSTER_POSITION_WAIT)
    return GO;
  if (heeds)
    return WAIT_FOR_HOLD;
  return muster_position_busy (state, self->n_tasks, self->n_tasks) < self->n_tasks
             ? WAIT_FOR_QUIESCENCE
             : GO;
}

static void
take_place (MusterPositionHook *self, const MusterPositionState *state)
{
  self->own.position = muster_position_done (state, self->own.task);
  if (!self->is_dealt)
    return;
  self->own.deal = muster_position_taken (state, self->own.task);
  g_clear_pointer (&self->origin, muster_tensor_unref);
  self->origin = muster_tensor_ref (state->origin);
}

/* A step is also refused as the model has gone back to a checkpoint. If it has gone ahead, another
 * process has made that step: a killed one, whose step hadn't begun before, or one that runs. */
static gboolean
check_refused (MusterPositionHook *self, GError **error)
{
  const gint64 refused_at = self->refused_at;
  const gboolean was_killed = self->may_be_overtaken && self->own.position == refused_at + 1;
  self->refused_at = -1;
  if (refused_at >= 0 && was_killed)
    self->may_be_overtaken = FALSE;
  return refused_at < 0 || self->own.position <= refused_at || was_killed ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "another process runs as task %u, and has made its step", self->own.task);
}

static gboolean
give_up_restore (const MusterPositionHook *self, GError **error)
{
  g_autofree char *chief = muster_position_name_of (self, 0);
  g_autofree char *name = muster_position_name_of (self, self->own.task);
  g_autofree char *waited = muster_format_duration (self->options.others_us);
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "a step was interrupted, and task %s has waited %s for the chief (%s, unless "
                      "another task leads) to restore the model; start it again with the same "
                      "command",
                      name, waited, chief);
}

/* Ends the wait: continues, or fails. A task that continues also releases the others: a hold that
 * outlasts its time limit belongs to a dead saver, and would delay each task at every batch. A live
 * saver notices that a batch was started, and saves again. */
static gboolean
end_wait (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
          Wait wait, GError **error)
{
  if (wait == WAIT_FOR_STEP)
    return muster_position_undo (self, self->own.task, session, error);
  if (wait == WAIT_FOR_QUIESCENCE)
    return end_quiescence (self, session, state, error);
  if (wait == WAIT_FOR_RESTORE)
    return give_up_restore (self, error);
  take_place (self, state);
  if (!check_refused (self, error))
    return FALSE;
  return state->hold == MUSTER_POSITION_GO ||
         muster_position_set_hold (session, MUSTER_POSITION_GO,
                                   muster_position_in_us (MUSTER_POSITION_ANSWER_US), self->stopped,
                                   error);
}

/* With a master of its own, a task can't end the others' steps by a reset: it asks the chief to
 * restore the model, and waits for that. */
static gboolean
ask_for_restore (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
                 GError **error)
{
  const guint task = self->own.task;
  const gint64 deadline_us = muster_position_in_us (MUSTER_POSITION_ANSWER_US);
  muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
              "a step of task %u was interrupted in an earlier run; the chief restores the last "
              "checkpoint",
              task);
  return (state->is_raised || muster_position_fence (session, deadline_us, self->stopped, error)) &&
         (muster_position_begun (state, task) < muster_position_done (state, task) ||
          muster_position_forget (session, task, deadline_us, self->stopped, error));
}

static const char *const waits_for[] = {[WAIT_FOR_STEP] = "its last step to end",
                                        [WAIT_FOR_QUIESCENCE] = "the other tasks' steps to end",
                                        [WAIT_FOR_HOLD] = "a save to end",
                                        [WAIT_FOR_RESTORE] = "the chief to restore the model"};

static gboolean
refuse_late (const MusterPositionHook *self, Wait wait, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "task %u timed out waiting for %s",
                      self->own.task, waits_for[wait]);
}

/* The waits of a task that looks for its place. */
typedef struct {
  Wait wait;       /* the present one */
  gint64 began_us; /* when that began */
  gint64 ends_us[N_WAITS];
  gboolean is_told; /* the chief's restore was logged */
  gint64 late_done; /* done as it was last read ahead of begun; -1: it wasn't */
} Waits;

/* A step that was counted as done before it was. Two looks show it: begun and done aren't read at
 * once, and another process may run as the same task. */
static gboolean
has_ended_late (const MusterPositionHook *self, Waits *waits, const MusterPositionState *state)
{
  const gint64 done = muster_position_done (state, self->own.task);
  const gboolean is_ahead = muster_position_begun (state, self->own.task) < done;
  const gboolean was_ahead = waits->late_done == done;
  waits->late_done = is_ahead ? done : -1;
  return is_ahead && was_ahead;
}

/* When a wait ends, which has begun now. Of one that ends with a restore, that has its share of the
 * time. */
static gint64
end_of (const MusterPositionHook *self, Wait wait, gint64 deadline_us)
{
  gint64 limit_us = wait == WAIT_FOR_HOLD      ? self->options.hold_us
                    : wait == WAIT_FOR_RESTORE ? self->options.others_us
                                               : self->settle_us;
  if (wait == WAIT_FOR_STEP && self->options.own_masters)
    limit_us = muster_position_share (limit_us, deadline_us, self->clock);
  return muster_deadline_after (muster_clock_now_us (self->clock), limit_us);
}

/* A restore took its time, or takes it from now on. */
static void
note_wait (const MusterPositionHook *self, Waits *waits, Wait wait, gint64 deadline_us)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  if (wait != waits->wait) {
    if (wait == WAIT_FOR_RESTORE || waits->wait == WAIT_FOR_RESTORE)
      waits->ends_us[wait] = end_of (self, wait, deadline_us);
    waits->wait = wait;
    waits->began_us = now_us;
  }
  if (waits->is_told || now_us - waits->began_us < MUSTER_POSITION_TELL_US)
    return;
  if (wait == WAIT_FOR_HOLD && self->held != NULL) {
    muster_run_context_hold (self->held, "holding for a save or a drain");
    waits->is_told = TRUE;
  }
  if (wait != WAIT_FOR_RESTORE)
    return;
  g_autofree char *chief = muster_position_name_of (self, 0);
  muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
              "waiting for the chief (%s, unless another task leads), which has to restore the "
              "model",
              chief);
  waits->is_told = TRUE;
}

/* What it has trained is the chief's to save. */
static gboolean
is_preempted (const MusterPositionHook *self, Wait wait, GError **error)
{
  return self->options.is_worker && g_cancellable_is_cancelled (self->preempted) &&
         !muster_fail (error, MUSTER_ERROR_CANCELLED, "preempted while task %u waited for %s",
                       self->own.task, waits_for[wait]);
}

static gboolean
wait_for_place (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                GError **error)
{
  Waits waits = {.wait = GO, .late_done = -1};
  for (Wait wait = WAIT_FOR_STEP; wait < N_WAITS; wait++)
    waits.ends_us[wait] = end_of (self, wait, deadline_us);
  MusterPositionPause pause = {.clock = self->clock};
  g_auto (MusterPositionState) state = {.is_dealt = self->is_dealt};
  for (;;) {
    if (!muster_position_read (session, self->n_tasks, &state,
                               MIN (muster_position_in_us (MUSTER_POSITION_ANSWER_US), deadline_us),
                               self->stopped, error))
      return FALSE;
    Wait wait = judge (self, &state);
    if (wait == WAIT_FOR_RESTORE && !self->options.is_worker)
      return muster_position_refuse_fenced (error);
    note_wait (self, &waits, wait, deadline_us);
    const gint64 until_us = waits.ends_us[wait];
    if (wait == WAIT_FOR_STEP && self->options.own_masters &&
        (muster_clock_now_us (self->clock) >= until_us || has_ended_late (self, &waits, &state))) {
      if (!ask_for_restore (self, session, &state, error))
        return FALSE;
      continue;
    }
    if (wait == GO || muster_clock_now_us (self->clock) >= until_us)
      return end_wait (self, session, &state, wait, error);
    if (is_preempted (self, wait, error) ||
        !muster_position_pause (&pause, MIN (until_us, deadline_us), self->stopped, error))
      return FALSE;
    if (muster_clock_now_us (self->clock) >= deadline_us)
      return refuse_late (self, wait, error);
  }
}

/* --- the first batch in hand --- */

static gboolean
draw (MusterPositionHook *self, MusterSession *session, gint64 deadline_us, GError **error)
{
  static const char *const fetches[] = {MUSTER_POSITION_DRAW "/dealt:0",
                                        MUSTER_POSITION_DRAW "/held:0"};
  g_autoptr (MusterTensor) task = muster_tensor_new_int64 (self->own.task);
  g_autoptr (MusterTensor) position = muster_tensor_new_int64 (self->own.position);
  const MusterFeed feeds[] = {{MUSTER_POSITION_TASK, task}, {MUSTER_POSITION_POSITION, position}};
  const MusterStep step = {
      .feeds = feeds,
      .n_feeds = G_N_ELEMENTS (feeds),
      .fetches = fetches,
      .n_fetches = G_N_ELEMENTS (fetches),
      .deadline_us = MIN (muster_position_in_us (MUSTER_POSITION_ANSWER_US), deadline_us)};
  MusterTensor *fetched[G_N_ELEMENTS (fetches)] = {NULL};
  if (!muster_session_run (session, &step, fetched, NULL, self->stopped, error)) {
    g_prefix_error (error, "Drawing a batch: ");
    return FALSE;
  }
  self->own.position++;
  self->own.deal = muster_step_of (fetched[0]);
  self->is_held = muster_step_of (fetched[1]) == MUSTER_POSITION_WAIT;
  for (gsize i = 0; i < G_N_ELEMENTS (fetched); i++)
    muster_tensor_unref (fetched[i]);
  return self->own.deal >= 0 ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "Drawing a batch: '%s' isn't a number of batches", MUSTER_POSITION_NEXT);
}

gboolean
muster_position_looks_again (MusterPositionHook *self, const GError *failure)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  if (!(self->is_dealt || self->options.own_masters) ||
      !muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT) ||
      strstr (failure->message, MUSTER_POSITION_REFUSED) == NULL || self->refused_us >= REFUSED_US)
    return FALSE;
  if (!self->is_dealt)
    self->refused_at = self->own.position;
  if (self->refused_us == 0)
    self->refused_pause = (MusterPositionPause){.clock = self->clock};
  /* a stop ends the pause, and is noticed before the next step */
  (void)muster_position_pause (&self->refused_pause,
                               muster_deadline_after (now_us, REFUSED_US - self->refused_us),
                               self->stopped, NULL);
  self->refused_us += MAX (muster_clock_now_us (self->clock) - now_us, 1);
  return TRUE;
}

/* FALSE without an error: another process has made the slot's next step. */
static gboolean
find_batch (MusterPositionHook *self, MusterSession *session, gint64 deadline_us, GError **error)
{
  GError *failure = NULL;
  if (!wait_for_place (self, session, deadline_us, error))
    return FALSE;
  if (!self->is_dealt || self->own.deal != MUSTER_POSITION_NOTHING ||
      draw (self, session, deadline_us, &failure))
    return TRUE;
  if (muster_position_looks_again (self, failure))
    g_clear_error (&failure);
  else
    g_propagate_error (error, failure);
  return FALSE;
}

gboolean
muster_position_settle (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                        GError **error)
{
  GError *failure = NULL;
  self->is_lent = FALSE; /* the slot's state may have changed too */
  self->is_looking = self->options.slots != NULL;
  while (!find_batch (self, session, deadline_us, &failure))
    if (failure != NULL) {
      g_propagate_error (error, failure);
      return FALSE;
    }
  return TRUE;
}
