// SPDX-License-Identifier: Apache-2.0
/* The hook that runs each of a task's steps at its position. */
#include "base/error.h"
#include "base/log.h"
#include "base/require.h"
#include "master/master.h"
#include "train/monitored/run_context_private.h"
#include "train/position/position_private.h"

#define MOST_FEEDS        16
#define DEFAULT_SETTLE_US (5 * MUSTER_SECOND)
#define DEFAULT_HOLD_US   (60 * MUSTER_SECOND)
#define DEFAULT_OTHERS_US (30 * 60 * MUSTER_SECOND)
/* The time limit for the reset that undoes an interrupted step. */
#define RESET_US (60 * MUSTER_SECOND)
/* The interval at which a task without batches checks whether the others have finished. */
#define POLL_US (20 * MUSTER_MILLISECOND)
/* The time limit for reading the tasks' positions from the master. */
#define ANSWER_US (60 * MUSTER_SECOND)
/* The time limit for telling the other tasks that the job is over. */
#define END_US (5 * MUSTER_SECOND)

#define MUSTER_TYPE_POSITION_HOOK (muster_position_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER, POSITION_HOOK, MusterHook)

/* A step of the train op, a check whether all tasks have finished, or a run the hook doesn't act
 * on. */
typedef enum { OTHER, STEPPING, ENDING } Run;

struct _MusterPositionHook {
  MusterHook parent;
  MusterPositionOptions options; /* strings, master and batches are owned */
  MusterClock *clock;            /* (owned) */
  guint n_tasks;
  char *train_op;        /* (owned) from begin on */
  MusterTensor *task;    /* (owned) the task number to feed */
  GCancellable *stopped; /* (owned) (nullable) the session's coordinator's */
  gint64 position;       /* batches that the task has finished; -1: unknown */
  gboolean is_held;      /* as of the last step */
  Run run;               /* the kind of the current run */
  guint held_at;         /* STEPPING: the index of hold among the run's fetches */
  guint over_at;         /* ENDING: the index of over */
  guint done_at;         /* ENDING: the index of done */
  gint64 n_done; /* ENDING: batches that all tasks had finished at the last check; -1: unknown */
  gint64 given_up_us;  /* ENDING: when to give up unless n_done changes */
  char *awaited;       /* (owned) (nullable) ENDING: the name of the task that is waited for */
  gint64 awaited_done; /* the batches that task has finished */
  gint64 awaited_us;   /* since when awaited_done hasn't changed */
  gboolean has_ended;  /* all batches are finished */
};

G_DEFINE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER_TYPE_HOOK)

/* --- before the session --- */

static gboolean
position_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  self->n_tasks = muster_position_n_tasks (muster_scaffold_meta_graph (scaffold));
  if (self->options.task < self->n_tasks) {
    muster_graph_split_input (muster_scaffold_train_op (scaffold), &self->train_op);
    return TRUE;
  }
  if (self->n_tasks == 0)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the graph has no positions; extend it with muster_position_add ()");
  else
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the job has %u tasks, counted from 0, but this is task %u", self->n_tasks,
                 self->options.task);
  return FALSE;
}

/* --- the task's position --- */

/* An unfinished step affects all tasks: all restart from the last checkpoint. */
static gboolean
undo (MusterPositionHook *self, MusterSession *session, GError **error)
{
  const MusterPositionQuiesce quiesce = {self->n_tasks, self->options.task, self->clock,
                                         MUSTER_WAIT_FOREVER};
  GError *failure = NULL;

  if (self->options.master != NULL)
    muster_position_quiesce (session, &quiesce, self->stopped);
  if (self->options.master != NULL &&
      !muster_master_reset (self->options.master, NULL, muster_position_in_us (RESET_US),
                            self->stopped, &failure)) {
    g_propagate_prefixed_error (error, failure, "Resetting the master: ");
    return FALSE;
  }
  return muster_fail (error, MUSTER_ERROR_ABORTED,
                      "a step of task %u was interrupted in an earlier run%s", self->options.task,
                      self->options.master != NULL
                          ? "; the master was reset, and the last checkpoint is restored"
                          : "; reset the master to restore the last checkpoint");
}

/* Only the chief's restore or init writes while hold is set, so an inconsistent state at this point
 * came from the checkpoint. */
static gboolean
refuse_inconsistent (const MusterPositionState *state, guint task, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the restored checkpoint is inconsistent: batch %" G_GINT64_FORMAT
                      " of task %u was in progress when it was saved; restore another one, and "
                      "save with a MusterSaver with muster_position_guard ()",
                      muster_position_done (state, task), task);
}

/* What a task has to wait for, from the master's state. */
typedef enum { GO, WAIT_FOR_STEP, WAIT_FOR_QUIESCENCE, WAIT_FOR_HOLD } Wait;

static Wait
judge (const MusterPositionHook *self, const MusterPositionState *state)
{
  guint task = self->options.task;
  /* A starting chief releases the other tasks; a working one respects the hold of a saver outside
   * the job. */
  const gboolean heeds = self->options.is_worker || self->is_held;

  if (muster_position_begun (state, task) != muster_position_done (state, task))
    return WAIT_FOR_STEP;
  if (state->hold != MUSTER_POSITION_WAIT)
    return GO;
  if (heeds)
    return WAIT_FOR_HOLD;
  return muster_position_busy (state, self->n_tasks, self->n_tasks) < self->n_tasks
             ? WAIT_FOR_QUIESCENCE
             : GO;
}

/* Ends the wait: continues, or fails. A task that continues also releases the others: a hold that
 * outlasts its time limit belongs to a dead saver, and would delay each task at every batch. A live
 * saver notices that a batch was started, and saves again. */
static gboolean
end_wait (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
          Wait wait, GError **error)
{
  if (wait == WAIT_FOR_STEP)
    return undo (self, session, error);
  if (wait == WAIT_FOR_QUIESCENCE)
    return refuse_inconsistent (state, muster_position_busy (state, self->n_tasks, self->n_tasks),
                                error);
  self->position = muster_position_done (state, self->options.task);
  return state->hold == MUSTER_POSITION_GO ||
         muster_position_set_hold (session, MUSTER_POSITION_GO, muster_position_in_us (ANSWER_US),
                                   self->stopped, error);
}

static gboolean
refuse_late (const MusterPositionHook *self, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "task %u timed out waiting for its last step", self->options.task);
}

/* Waits until the task's own last step has ended and the chief has released the hold. A stop
 * cancels the wait. */
static gboolean
settle (MusterPositionHook *self, MusterSession *session, gint64 deadline_us, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 settled_us = muster_deadline_after (now_us, self->options.settle_us);
  gint64 held_us = muster_deadline_after (now_us, self->options.hold_us);
  MusterPositionPause pause = {.clock = self->clock};
  g_auto (MusterPositionState) state = {0};

  for (;;) {
    if (!muster_position_read (session, self->n_tasks, &state,
                               MIN (muster_position_in_us (ANSWER_US), deadline_us), self->stopped,
                               error))
      return FALSE;
    Wait wait = judge (self, &state);
    gint64 until_us = wait == WAIT_FOR_HOLD ? held_us : settled_us;
    if (wait != GO && muster_clock_now_us (self->clock) >= deadline_us)
      return refuse_late (self, error);
    until_us = MIN (until_us, deadline_us);
    if (wait == GO || muster_clock_now_us (self->clock) >= until_us)
      return end_wait (self, session, &state, wait, error);
    if (!muster_position_pause (&pause, until_us, self->stopped, error))
      return FALSE;
  }
}

/* Waits while the hold is set. Doesn't wait in the last step before a stop, so that no save waits
 * for this task. */
static gboolean
wait_while_held (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                 GError **error)
{
  GError *failure = NULL;

  if (settle (self, session, deadline_us, &failure))
    return TRUE;
  if (!g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_error_free (failure);
  return TRUE;
}

/* Returns TRUE if this task has no batches left. */
static gboolean
is_over (const MusterPositionHook *self)
{
  return self->options.n_batches > 0 &&
         muster_position_batch (self->position, self->options.task, self->n_tasks) >=
             self->options.n_batches;
}

static gboolean
position_after_create (MusterHook *hook, MusterSession *session, MusterCoordinator *coordinator,
                       gint64 deadline_us, GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  g_set_object (&self->stopped, muster_coordinator_cancellable (coordinator));
  self->is_held = FALSE;
  self->n_done = -1;
  g_clear_pointer (&self->awaited, g_free);
  self->has_ended = FALSE;
  return settle (self, session, deadline_us, error);
}

/* --- a run --- */

static gboolean
is_train_step (const MusterPositionHook *self, const MusterStep *step)
{
  gsize length = strlen (self->train_op);

  for (gsize i = 0; i < step->n_targets; i++)
    if (strcmp (step->targets[i], self->train_op) == 0)
      return TRUE;
  for (gsize i = 0; i < step->n_fetches; i++)
    if (strncmp (step->fetches[i], self->train_op, length) == 0 &&
        (step->fetches[i][length] == ':' || step->fetches[i][length] == '\0'))
      return TRUE;
  return FALSE;
}

static void
feed_position (MusterPositionHook *self, MusterRunContext *context)
{
  g_autoptr (MusterTensor) position = muster_tensor_new_int64 (self->position);

  muster_run_context_feed (context, MUSTER_POSITION_TASK, self->task);
  muster_run_context_feed (context, MUSTER_POSITION_POSITION, position);
  self->held_at = muster_run_context_fetch (context, MUSTER_POSITION_HELD);
}

static void
feed_batch (MusterPositionHook *self, MusterRunContext *context)
{
  MusterTensor *batch[MOST_FEEDS] = {NULL};
  MusterBatches *batches = self->options.batches;

  if (batches == NULL)
    return;
  muster_batches_seek (batches,
                       muster_position_batch (self->position, self->options.task, self->n_tasks));
  muster_batches_next (batches, batch);
  for (gsize i = 0; i < self->options.n_feeds; i++) {
    muster_run_context_feed (context, self->options.feeds[i], batch[i]);
    muster_tensor_unref (batch[i]);
  }
}

static gboolean
begin_step (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  if (self->is_held && !wait_while_held (self, muster_run_context_session (context),
                                         muster_run_context_deadline_us (context), error))
    return FALSE;
  self->is_held = FALSE;
  if (is_over (self)) {
    return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE,
                        "task %u has finished its share of the job's %" G_GINT64_FORMAT " batches",
                        self->options.task, self->options.n_batches);
  }
  feed_position (self, context);
  feed_batch (self, context);
  return TRUE;
}

static gboolean
position_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  self->run = OTHER;
  if (is_train_step (self, muster_run_context_step (context))) {
    self->run = STEPPING;
    return begin_step (self, context, error);
  }
  if (is_over (self)) {
    self->run = ENDING;
    feed_batch (self, context); /* not trained on; only for other hooks' fetches */
    self->over_at = muster_run_context_fetch (context, MUSTER_POSITION_OVER_NOW);
    self->done_at = muster_run_context_fetch (context, MUSTER_POSITION_DONE_NOW);
  }
  return TRUE;
}

/* The task's name for messages: a cluster without a chief starts with worker:0. */
static char *
name_of (const MusterPositionHook *self, guint task)
{
  g_autofree char *as_worker = g_strdup_printf ("worker:%u", self->options.task);

  if (g_strcmp0 (self->options.name, as_worker) == 0)
    return g_strdup_printf ("worker:%u", task);
  return task == 0 ? g_strdup ("chief:0") : g_strdup_printf ("worker:%u", task - 1);
}

/* The first task with batches left; if there is none, the chief, which has to announce the end. */
static guint
find_awaited (const MusterPositionHook *self, const gint64 *done)
{
  for (guint i = 0; i < self->n_tasks; i++)
    if (muster_position_batch (done[i], i, self->n_tasks) < self->options.n_batches)
      return i;
  return 0;
}

/* done is int64 [n_tasks], and n_done its sum. */
static void
note_others (MusterPositionHook *self, const gint64 *done, gint64 n_done, gint64 now_us)
{
  guint task = find_awaited (self, done);
  g_autofree char *name = name_of (self, task);

  if (g_strcmp0 (name, self->awaited) != 0 || done[task] != self->awaited_done)
    self->awaited_us = now_us;
  self->awaited_done = done[task];
  g_free (self->awaited);
  self->awaited = g_steal_pointer (&name);
  if (n_done != self->n_done)
    self->given_up_us = muster_deadline_after (now_us, self->options.others_us);
  self->n_done = n_done;
}

static gboolean
give_up (MusterPositionHook *self, GError **error)
{
  g_autofree char *name = name_of (self, self->options.task);
  g_autofree char *waited = muster_format_duration (self->options.others_us);

  return muster_fail (
      error, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "task %s has finished its share, and no task has finished a batch for %s; %" G_GINT64_FORMAT
      " of %" G_GINT64_FORMAT " batches are missing; start task %s again with the same command",
      name, waited, MAX (self->options.n_batches - self->n_done, 0), self->options.n_batches,
      self->awaited);
}

static gint64
sum (const gint64 *numbers, guint n)
{
  gint64 total = 0;

  for (guint i = 0; i < n; i++)
    total += numbers[i];
  return total;
}

/* The chief ends when every task has finished, the others when the chief says so. Until then the
 * model may return to a checkpoint, and all tasks with it. */
static gboolean
check_end (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  gint64 over = muster_step_of (muster_run_context_value (context, self->over_at));
  const MusterTensor *counts = muster_run_context_value (context, self->done_at);
  gint64 now_us = muster_clock_now_us (self->clock);

  if (!muster_position_check_counts (counts, self->n_tasks, error))
    return FALSE;
  const gint64 *done = muster_tensor_data (counts);
  gint64 n_done = sum (done, self->n_tasks);
  if ((self->options.is_worker ? over : n_done) >= self->options.n_batches) {
    self->has_ended = TRUE;
    g_clear_pointer (&self->awaited, g_free);
    muster_run_context_request_stop (context);
    return TRUE;
  }
  note_others (self, done, n_done, now_us);
  if (now_us >= self->given_up_us)
    return give_up (self, error);
  (void)muster_clock_wait_until (self->clock, now_us + POLL_US, self->stopped, NULL);
  return TRUE;
}

static gboolean
position_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  if (self->run == ENDING)
    return check_end (self, context, error);
  if (self->run == OTHER)
    return TRUE;
  self->position++;
  gint64 hold = muster_step_of (muster_run_context_value (context, self->held_at));
  self->is_held = hold == MUSTER_POSITION_WAIT;
  return TRUE;
}

/* A task that misses this because the master exits has nothing to wait for. */
static gboolean
position_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
              GCancellable *cancellable, GError **error G_GNUC_UNUSED)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  g_autoptr (GError) failure = NULL;

  if (self->options.is_worker || self->n_tasks == 1 || !self->has_ended ||
      muster_position_set_over (session, self->options.n_batches,
                                MIN (muster_position_in_us (END_US), deadline_us), cancellable,
                                &failure))
    return TRUE;
  muster_log (G_LOG_LEVEL_MESSAGE, "position", "MESSAGE",
              "can't notify the other tasks of the job's end: %s", failure->message);
  return TRUE;
}

gboolean
muster_position_run (MusterHook *self, MusterMonitoredSession *session, const MusterStep *step,
                     MusterTensor **fetched, gboolean *trained, GError **error)
{
  muster_require (error, FALSE, self, session, step);
  if (!MUSTER_IS_POSITION_HOOK (self))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "muster_position_run: 'self' isn't a position hook");

  const MusterStep nothing = {.deadline_us = step->deadline_us};
  MusterPositionHook *hook = MUSTER_POSITION_HOOK (self);
  GError *failure = NULL;
  gboolean has_trained = !is_over (hook);

  if (has_trained && !muster_monitored_session_run (session, step, fetched, NULL, &failure)) {
    /* The session was lost together with the last step's response: the step was done. */
    if (!muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) || !is_over (hook)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    g_clear_error (&failure);
    has_trained = FALSE;
  }
  if (trained != NULL)
    *trained = has_trained;
  return has_trained || muster_monitored_session_run (session, &nothing, NULL, NULL, error);
}

/* --- the object --- */

static void
position_finalize (GObject *object)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (object);

  g_clear_object (&self->options.master);
  g_clear_pointer (&self->options.batches, muster_batches_free);
  g_strfreev ((char **)self->options.feeds);
  g_clear_object (&self->clock);
  g_clear_object (&self->stopped);
  g_clear_pointer (&self->task, muster_tensor_unref);
  g_free (self->train_op);
  g_free (self->awaited);
  g_free ((char *)self->options.name);
  G_OBJECT_CLASS (muster_position_hook_parent_class)->finalize (object);
}

static void
muster_position_hook_class_init (MusterPositionHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = position_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = position_begin;
  MUSTER_HOOK_CLASS (klass)->after_create_session = position_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = position_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = position_after_run;
  MUSTER_HOOK_CLASS (klass)->end = position_end;
}

static void
muster_position_hook_init (MusterPositionHook *self)
{
  self->position = -1;
}

static char **
copy_feeds (const MusterPositionOptions *options)
{
  char **feeds = g_new0 (char *, options->n_feeds + 1);

  for (gsize i = 0; i < options->n_feeds; i++)
    feeds[i] = g_strdup (options->feeds[i]);
  return feeds;
}

MusterHook *
muster_position_hook_new (const MusterPositionOptions *options, GError **error)
{
  muster_require (error, NULL, options);

  if (options->n_feeds > MOST_FEEDS || (options->n_feeds > 0) != (options->batches != NULL)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Positions: %" G_GSIZE_FORMAT
                 " tensors to feed; use as many as the batches have arrays, at most %d",
                 options->n_feeds, MOST_FEEDS);
    return NULL;
  }
  MusterPositionHook *self = g_object_new (MUSTER_TYPE_POSITION_HOOK, NULL);
  self->options = *options;
  self->options.feeds = (const char *const *)copy_feeds (options);
  self->options.name = g_strdup (options->name);
  if (options->master != NULL)
    g_object_ref (options->master);
  if (options->batches != NULL)
    (void)muster_batches_ref (options->batches);
  self->options.settle_us = options->settle_us > 0 ? options->settle_us : DEFAULT_SETTLE_US;
  self->options.hold_us = options->hold_us > 0 ? options->hold_us : DEFAULT_HOLD_US;
  self->options.others_us = options->others_us > 0 ? options->others_us : DEFAULT_OTHERS_US;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->task = muster_tensor_new_int64 (options->task);
  return MUSTER_HOOK (self);
}

gboolean
muster_position_hook_awaits (MusterHook *hook, MusterAwaited *awaited)
{
  g_return_val_if_fail (MUSTER_IS_POSITION_HOOK (hook) && awaited != NULL, FALSE);

  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  if (self->awaited == NULL)
    return FALSE;
  *awaited = (MusterAwaited){self->awaited, self->awaited_us};
  return TRUE;
}

gboolean
muster_position_hook_is_over (MusterHook *hook)
{
  g_return_val_if_fail (MUSTER_IS_POSITION_HOOK (hook), FALSE);

  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  return self->has_ended || (self->n_tasks == 1 && is_over (self));
}

gint64
muster_position_hook_position (MusterHook *self)
{
  g_return_val_if_fail (MUSTER_IS_POSITION_HOOK (self), -1);
  return MUSTER_POSITION_HOOK (self)->position;
}
