// SPDX-License-Identifier: Apache-2.0
/* A task's steps, each at its position. */
#include "base/error.h"
#include "master/master.h"
#include "train/position_private.h"
#include "train/run_context_private.h"

#define MOST_FEEDS        16
#define DEFAULT_SETTLE_US (5 * MUSTER_SECOND)
#define DEFAULT_HOLD_US   (60 * MUSTER_SECOND)
#define DEFAULT_OTHERS_US (30 * 60 * MUSTER_SECOND)
/* A step that was cut off is undone by a reset that takes no longer than this. */
#define RESET_US (60 * MUSTER_SECOND)

#define MUSTER_TYPE_POSITION_HOOK (muster_position_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER, POSITION_HOOK, MusterHook)

struct _MusterPositionHook {
  MusterHook parent;
  MusterPositionOptions options; /* strings and master are its own */
  MusterClock *clock;            /* (owned) */
  guint n_tasks;
  char *train_op;        /* (owned) from begin on */
  MusterTensor *task;    /* (owned) what is fed */
  GCancellable *stopped; /* (owned) (nullable) the session's coordinator's */
  gint64 position;       /* batches that the task has done; -1 */
  gboolean is_held;      /* as of the last step */
  gboolean is_stepping;  /* this run is a step of the train op */
  guint held_at;         /* where it is among what the run fetches */
};

G_DEFINE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER_TYPE_HOOK)

/* --- before there is a session --- */

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
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                         "The graph has no positions: extend it by muster_position_add ()");
  else
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "The job has %u tasks, from 0 on, and this is said to be task %u", self->n_tasks,
                 self->options.task);

  return FALSE;
}

/* --- where the task is --- */

/* What the step has left half done is everybody's: all begin anew from the last checkpoint. */
static gboolean
undo (MusterPositionHook *self, GError **error)
{
  GError *failure = NULL;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());

  if (self->options.master &&
      !muster_master_reset (self->options.master, NULL, muster_deadline_after (now_us, RESET_US),
                            NULL, &failure)) {
    g_propagate_prefixed_error (error, failure, "Resetting the master: ");
    return FALSE;
  }
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
               "A step of task %u was cut off in a life before%s", self->options.task,
               self->options.master
                   ? ": the master was reset, and the model goes back to its last checkpoint"
                   : ", and the model is to go back to its last checkpoint: reset the master");

  return FALSE;
}

/* The chief's restore or init has been the only one to write, since nobody steps while hold is set:
 * what isn't at rest then never was a cut. */
static gboolean
refuse_cut (const MusterPositionState *state, guint task, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
               "The checkpoint that was restored is no cut: batch %" G_GINT64_FORMAT
               " of task %u was under way when it was saved. Take another one, and save by a "
               "MusterSaver with muster_position_guard ()",
               muster_position_done (state, task), task);

  return FALSE;
}

/* FALSE without an error: a stop was requested, which nothing here keeps from coming. */
static gboolean
pause_unless_stopped (MusterPositionHook *self, MusterPositionPause *pause, gint64 until_us)
{
  return muster_position_pause (pause, until_us, self->stopped, NULL);
}

/* A look at what the master says: what a task still waits for. */
typedef enum { GO, WAIT_FOR_STEP, WAIT_FOR_CUT, WAIT_FOR_HOLD } Wait;

static Wait
judge (const MusterPositionHook *self, const MusterPositionState *state)
{
  guint task = self->options.task;

  if (muster_position_begun (state, task) != muster_position_done (state, task))
    return WAIT_FOR_STEP;
  if (!self->options.is_worker && state->hold != 0 &&
      muster_position_busy (state, self->n_tasks) < self->n_tasks)
    return WAIT_FOR_CUT;

  return self->options.is_worker && state->hold != 0 ? WAIT_FOR_HOLD : GO;
}

/* Where it has come to an end: goes on, or can't. */
static gboolean
end_wait (MusterPositionHook *self, MusterSession *session, const MusterPositionState *state,
          Wait wait, GError **error)
{
  if (wait == WAIT_FOR_STEP)
    return undo (self, error);
  if (wait == WAIT_FOR_CUT)
    return refuse_cut (state, muster_position_busy (state, self->n_tasks), error);
  self->position = muster_position_done (state, self->options.task);

  return self->options.is_worker ||
         muster_position_hold (session, FALSE, MUSTER_WAIT_FOREVER, NULL, error);
}

/* Waits until the task's own last step has ended and nobody is told to hold; the chief says so. */
static gboolean
settle (MusterPositionHook *self, MusterSession *session, GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 settled_us = muster_deadline_after (now_us, self->options.settle_us);
  gint64 held_us = muster_deadline_after (now_us, self->options.hold_us);
  MusterPositionPause pause = {.clock = self->clock};
  g_auto (MusterPositionState) state = {0};

  for (;;) {
    if (!muster_position_read (session, self->n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, error))
      return FALSE;
    Wait wait = judge (self, &state);
    gint64 until_us = wait == WAIT_FOR_HOLD ? held_us : settled_us;
    if (wait == GO || muster_clock_now_us (self->clock) >= until_us ||
        !pause_unless_stopped (self, &pause, until_us))
      return end_wait (self, session, &state, wait, error);
  }
}

/* The job's batches are dealt, as far as they are this task's. */
static gboolean
is_over (const MusterPositionHook *self)
{
  return self->options.n_batches > 0 &&
         muster_position_batch (self->position, self->options.task, self->n_tasks) >=
             self->options.n_batches;
}

static gint64
count_done (const MusterPositionHook *self, const MusterPositionState *state)
{
  gint64 n = 0;

  for (guint i = 0; i < self->n_tasks; i++)
    n += muster_position_done (state, i);

  return n;
}

/* The chief ends last: what the others have still to deal is part of the job. */
static gboolean
wait_for_others (MusterPositionHook *self, MusterSession *session, GError **error)
{
  MusterPositionPause pause = {.clock = self->clock};
  g_auto (MusterPositionState) state = {0};
  gint64 n_done = -1, until_us = 0;

  if (self->options.is_worker || self->n_tasks == 1)
    return TRUE;
  for (;;) {
    if (!muster_position_read (session, self->n_tasks, &state, MUSTER_WAIT_FOREVER, NULL, error))
      return FALSE;
    gint64 now_us = muster_clock_now_us (self->clock);
    gint64 n = count_done (self, &state);
    if (n > n_done)
      until_us = muster_deadline_after (now_us, self->options.others_us);
    n_done = n;
    if (n_done >= self->options.n_batches)
      return TRUE;
    if (now_us >= until_us)
      break;
    if (!pause_unless_stopped (self, &pause, until_us))
      return TRUE;
  }
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "The other tasks have dealt no batch for a long time, and %" G_GINT64_FORMAT
               " of %" G_GINT64_FORMAT " are missing: are they all there?",
               self->options.n_batches - n_done, self->options.n_batches);

  return FALSE;
}

static gboolean
position_after_create (MusterHook *hook, MusterSession *session, MusterCoordinator *coordinator,
                       GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  g_set_object (&self->stopped, muster_coordinator_cancellable (coordinator));
  self->is_held = FALSE;
  if (!settle (self, session, error))
    return FALSE;
  if (!is_over (self))
    return TRUE;
  if (!wait_for_others (self, session, error))
    return FALSE;

  return muster_coordinator_request_stop (coordinator, NULL, error);
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

  if (!batches)
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
position_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  self->is_stepping = is_train_step (self, muster_run_context_step (context));
  if (!self->is_stepping)
    return TRUE;
  if (self->is_held && !settle (self, muster_run_context_session (context), error))
    return FALSE;
  self->is_held = FALSE;
  feed_position (self, context);
  feed_batch (self, context);

  return TRUE;
}

static gboolean
position_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);

  if (!self->is_stepping)
    return TRUE;
  const MusterTensor *held = muster_run_context_value (context, self->held_at);
  self->position++;
  self->is_held = self->options.is_worker && muster_step_of (held) != 0;
  if (!is_over (self))
    return TRUE;
  if (!wait_for_others (self, muster_run_context_session (context), error))
    return FALSE;
  muster_run_context_request_stop (context);

  return TRUE;
}

/* --- the object --- */

static void
position_finalize (GObject *object)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (object);

  g_clear_object (&self->options.master);
  g_strfreev ((char **)self->options.feeds);
  g_clear_object (&self->clock);
  g_clear_object (&self->stopped);
  g_clear_pointer (&self->task, muster_tensor_unref);
  g_free (self->train_op);
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
  if (options->n_feeds > MOST_FEEDS || (options->n_feeds > 0) != (options->batches != NULL)) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Positions: %" G_GSIZE_FORMAT
                 " tensors are to be fed; give as many as the batches have arrays, at most %d",
                 options->n_feeds, MOST_FEEDS);
    return NULL;
  }
  MusterPositionHook *self = g_object_new (MUSTER_TYPE_POSITION_HOOK, NULL);
  self->options = *options;
  self->options.feeds = (const char *const *)copy_feeds (options);
  if (options->master)
    g_object_ref (options->master);
  self->options.settle_us = options->settle_us > 0 ? options->settle_us : DEFAULT_SETTLE_US;
  self->options.hold_us = options->hold_us > 0 ? options->hold_us : DEFAULT_HOLD_US;
  self->options.others_us = options->others_us > 0 ? options->others_us : DEFAULT_OTHERS_US;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->task = muster_tensor_new_int64 (options->task);

  return MUSTER_HOOK (self);
}

gint64
muster_position_hook_position (MusterHook *self)
{
  return MUSTER_POSITION_HOOK (self)->position;
}
