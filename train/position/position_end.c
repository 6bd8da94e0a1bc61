// SPDX-License-Identifier: Apache-2.0
/* The end of a job: a task that has no batch left waits until all are done. */
#include "base/error.h"
#include "base/log_private.h"
#include "train/position/position_hook_private.h"

/* The interval at which a task without batches checks whether the others have finished. */
#define POLL_US (20 * MUSTER_MILLISECOND)
/* The time limit for telling the other tasks that the job is over. */
#define END_US (5 * MUSTER_SECOND)

char *
muster_position_name_of (const MusterPositionHook *self, guint task)
{
  g_autofree char *as_worker = g_strdup_printf ("worker:%u", self->options.task);

  if (g_strcmp0 (self->options.name, as_worker) == 0)
    return g_strdup_printf ("worker:%u", task);
  return task == 0 ? g_strdup ("chief:0") : g_strdup_printf ("worker:%u", task - 1);
}

/* What a run of a task without batches has read. */
typedef struct {
  gint64 over;
  const gint64 *done;
  const gint64 *begun; /* if batches are dealt */
  const gint64 *taken; /* likewise */
  gboolean has_moved;  /* the model is to be restored, or was */
} End;

static gboolean
is_missing (const MusterPositionHook *self, const End *end, guint task)
{
  return self->is_dealt ? muster_position_is_left (self, end->begun, end->done, end->taken, task)
                        : muster_position_batch (end->done[task], task, self->n_tasks) <
                              self->options.n_batches;
}

/* The first task with batches left; n_tasks: none. */
static guint
find_missing (const MusterPositionHook *self, const End *end)
{
  guint task = 0;
  while (task < self->n_tasks && !is_missing (self, end, task))
    task++;
  return task;
}

/* The name of the task to wait for: the chief, which has to announce the end, if none is missing.
 */
static char *
name_awaited (const MusterPositionHook *self, guint missing)
{
  if (!self->is_dealt)
    return muster_position_name_of (self, missing < self->n_tasks ? missing : 0);
  return missing < self->n_tasks ? g_strdup_printf ("the task in slot %u", missing)
                                 : g_strdup ("the chief");
}

static gint64
sum (const gint64 *numbers, guint n)
{
  gint64 total = 0;
  for (guint i = 0; i < n; i++)
    total += numbers[i];
  return total;
}

static void
note_others (MusterPositionHook *self, const End *end, guint missing, gint64 now_us)
{
  const gint64 n_done = sum (end->done, self->n_tasks);
  g_autofree char *name = name_awaited (self, missing);
  const gint64 done = end->done[missing < self->n_tasks ? missing : 0];

  if (g_strcmp0 (name, self->awaited) != 0 || done != self->awaited_done)
    self->awaited_us = now_us;
  self->awaited_done = done;
  g_free (self->awaited);
  self->awaited = g_steal_pointer (&name);
  if (n_done != self->n_done)
    self->given_up_us = muster_deadline_after (now_us, self->options.others_us);
  self->n_done = n_done;
}

static gboolean
give_up_dealt (MusterPositionHook *self, const char *waited, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "all batches are dealt, and no task has finished one for %s; %s doesn't "
                      "finish; end its process, or start another task",
                      waited, self->awaited);
}

static gboolean
give_up (MusterPositionHook *self, GError **error)
{
  g_autofree char *name = muster_position_name_of (self, self->own.task);
  g_autofree char *waited = muster_format_duration (self->options.others_us);

  if (self->is_dealt)
    return give_up_dealt (self, waited, error);
  return muster_fail (
      error, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "task %s has finished its share, and no task has finished a batch for %s; %" G_GINT64_FORMAT
      " of %" G_GINT64_FORMAT " batches are missing; start task %s again with the same command",
      name, waited, MAX (self->options.n_batches - self->n_done, 0), self->options.n_batches,
      self->awaited);
}

void
muster_position_reset_end (MusterPositionHook *self)
{
  self->n_done = -1;
  g_clear_pointer (&self->awaited, g_free);
  self->has_ended = FALSE;
}

void
muster_position_fetch_end (MusterPositionHook *self, MusterRunContext *context)
{
  self->over_at = muster_run_context_fetch (context, MUSTER_POSITION_OVER_NOW);
  if (!self->is_dealt) {
    self->done_at = muster_run_context_fetch (context, MUSTER_POSITION_DONE_NOW);
    self->begun_at = muster_run_context_fetch (context, MUSTER_POSITION_BEGUN_NOW);
    return;
  }
  self->done_at = muster_run_context_fetch (context, MUSTER_POSITION_SLOT_DONE_NOW);
  self->begun_at = muster_run_context_fetch (context, MUSTER_POSITION_SLOT_BEGUN_NOW);
  self->taken_at = muster_run_context_fetch (context, MUSTER_POSITION_TAKEN_NOW);
}

/* With a master of its own, no lost session shows that the model has gone back. */
static gboolean
read_place (MusterPositionHook *self, const MusterTensor *begun, End *end, GError **error)
{
  MusterPositionState state = {.begun = muster_tensor_ref ((MusterTensor *)begun)};
  muster_position_read_fence (&state);
  const gboolean is_good = muster_position_check_counts (state.begun, self->n_tasks, error);
  end->has_moved = is_good && self->options.own_masters &&
                   (state.is_raised || end->done[self->own.task] != self->own.position);
  muster_position_state_clear (&state);
  return is_good;
}

static gboolean
read_end (MusterPositionHook *self, MusterRunContext *context, End *end, GError **error)
{
  const MusterTensor *done = muster_run_context_value (context, self->done_at);
  end->over = muster_step_of (muster_run_context_value (context, self->over_at));
  if (!muster_position_check_counts (done, self->n_tasks, error))
    return FALSE;
  end->done = muster_tensor_data (done);
  const MusterTensor *begun = muster_run_context_value (context, self->begun_at);
  if (!self->is_dealt)
    return read_place (self, begun, end, error);
  const MusterTensor *taken = muster_run_context_value (context, self->taken_at);
  if (!muster_position_check_counts (begun, self->n_tasks, error) ||
      !muster_position_check_taken (taken, self->n_tasks, error))
    return FALSE;
  end->begun = muster_tensor_data (begun);
  end->taken = muster_tensor_data (taken);
  return TRUE;
}

/* For a chief whose tasks have masters of their own, another look: done may have been read after a
 * step that was cut off had been counted there, and begun before the fence that tells of it; or a
 * step was counted late. */
static gboolean
find_unsettled (MusterPositionHook *self, MusterRunContext *context, guint *task, GError **error)
{
  const gint64 deadline_us = MIN (muster_position_in_us (MUSTER_POSITION_ANSWER_US),
                                  muster_run_context_deadline_us (context));
  g_auto (MusterPositionState) state = {0};
  if (!muster_position_read (muster_run_context_session (context), self->n_tasks, &state,
                             deadline_us, self->stopped, error))
    return FALSE;
  if (muster_position_is_fenced (&state))
    return muster_position_refuse_fenced (error);
  *task = muster_position_busy (&state, self->n_tasks, self->n_tasks);
  return TRUE;
}

/* The chief ends when every task has finished, the others when the chief says so. Until then the
 * model may return to a checkpoint, and all tasks with it. */
gboolean
muster_position_check_end (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  const gint64 now_us = muster_clock_now_us (self->clock);
  End end = {0};
  if (!read_end (self, context, &end, error))
    return FALSE;
  if (end.has_moved)
    return muster_position_settle (self, muster_run_context_session (context),
                                   muster_run_context_deadline_us (context), error);
  guint missing = find_missing (self, &end);
  if (missing == self->n_tasks && self->options.own_masters && !self->options.is_worker &&
      !find_unsettled (self, context, &missing, error))
    return FALSE;
  if (self->options.is_worker ? end.over >= self->options.n_batches : missing == self->n_tasks) {
    self->has_ended = TRUE;
    g_clear_pointer (&self->awaited, g_free);
    muster_run_context_request_stop (context);
    return TRUE;
  }
  note_others (self, &end, missing, now_us);
  if (now_us >= self->given_up_us)
    return give_up (self, error);
  if (self->is_dealt && missing < self->n_tasks &&
      !muster_position_look (self, muster_run_context_session (context), error))
    return FALSE;
  if (!self->is_lent)
    (void)muster_clock_wait_until (self->clock, now_us + POLL_US, self->stopped, NULL);
  return TRUE;
}

/* A task that misses this because the master exits has nothing to wait for. */
void
muster_position_tell_end (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                          GCancellable *cancellable)
{
  g_autoptr (GError) failure = NULL;
  if (self->options.is_worker || self->n_tasks == 1 || !self->has_ended ||
      muster_position_set_over (session, self->options.n_batches,
                                MIN (muster_position_in_us (END_US), deadline_us), cancellable,
                                &failure))
    return;
  muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
              "can't notify the other tasks of the job's end: %s", failure->message);
}
