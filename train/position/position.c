// SPDX-License-Identifier: Apache-2.0
/* Reads positions from the master, and guards the chief's saves. */
#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "train/monitored/run_context_private.h"
#include "train/position/position_private.h"

#include <string.h>

#define DEFAULT_QUIESCE_US (60 * MUSTER_SECOND)
#define FIRST_PAUSE_US     MUSTER_MILLISECOND
#define LAST_PAUSE_US      (50 * MUSTER_MILLISECOND)
/* The time that steps have to end before the master is reset. */
#define QUIESCE_US (5 * MUSTER_SECOND)
/* The time limit for releasing a hold; if it isn't released, the tasks notice that themselves. */
#define RELEASE_US (5 * MUSTER_SECOND)

gint64
muster_position_batch (gint64 position, guint task, guint n_tasks)
{
  return position * (gint64)n_tasks + (gint64)task;
}

/* --- state --- */

void
muster_position_state_clear (MusterPositionState *self)
{
  g_clear_pointer (&self->begun, muster_tensor_unref);
  g_clear_pointer (&self->done, muster_tensor_unref);
  g_clear_pointer (&self->taken, muster_tensor_unref);
  g_clear_pointer (&self->origin, muster_tensor_unref);
}

/* Limited so that a batch's number among all tasks' batches also fits. */
#define MOST_BATCHES (G_MAXINT64 / MUSTER_POSITION_MOST_TASKS - 1)

static gboolean
are_numbers (const MusterTensor *tensor, guint n, gint64 least)
{
  if (muster_tensor_dtype (tensor) != MUSTER_INT64 || muster_tensor_n_dims (tensor) != 1 ||
      muster_tensor_n_elements (tensor) != (gint64)n)
    return FALSE;
  const gint64 *numbers = muster_tensor_data (tensor);
  for (guint i = 0; i < n; i++)
    if (numbers[i] < least || numbers[i] > MOST_BATCHES)
      return FALSE;
  return TRUE;
}

gboolean
muster_position_check_counts (const MusterTensor *tensor, guint n_tasks, GError **error)
{
  if (are_numbers (tensor, n_tasks, 0))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "Reading the tasks' positions: '%s' and '%s' don't hold %u counts each; "
                      "start all tasks with the same number of tasks (--tasks)",
                      MUSTER_POSITION_BEGUN, MUSTER_POSITION_DONE, n_tasks);
}

gboolean
muster_position_check_taken (const MusterTensor *tensor, guint n_slots, GError **error)
{
  return are_numbers (tensor, n_slots, MUSTER_POSITION_NOTHING) ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "Reading the tasks' positions: '%s' doesn't hold %u numbers of batches",
                      MUSTER_POSITION_TAKEN, n_slots);
}

static gboolean
check_origin (const MusterTensor *tensor, GError **error)
{
  const gint64 n = muster_tensor_n_elements (tensor);
  return (n >= 1 && n <= MUSTER_POSITION_MOST_TASKS && are_numbers (tensor, (guint)n, 0)) ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "Reading the tasks' positions: '%s' doesn't hold the counts of a job",
                      MUSTER_POSITION_DONE);
}

static gboolean
check_state (const MusterPositionState *self, guint n_tasks, GError **error)
{
  if (!muster_position_check_counts (self->begun, n_tasks, error) ||
      !muster_position_check_counts (self->done, n_tasks, error))
    return FALSE;
  if (self->is_dealt && (!muster_position_check_taken (self->taken, n_tasks, error) ||
                         !check_origin (self->origin, error)))
    return FALSE;
  return self->hold >= 0 ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "Reading the tasks' positions: '%s' isn't a number", MUSTER_POSITION_HOLD);
}

gboolean
muster_position_read (MusterSession *session, guint n_tasks, MusterPositionState *state,
                      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  static const char *const fixed[] = {MUSTER_POSITION_BEGUN_NOW, MUSTER_POSITION_DONE_NOW,
                                      MUSTER_POSITION_HOLD_NOW, MUSTER_POSITION_IS_RESTORING};
  static const char *const dealt[] = {MUSTER_POSITION_SLOT_BEGUN_NOW, MUSTER_POSITION_SLOT_DONE_NOW,
                                      MUSTER_POSITION_HOLD_NOW, MUSTER_POSITION_TAKEN_NOW,
                                      MUSTER_POSITION_DONE_NOW};
  const gboolean is_dealt = state->is_dealt;
  MusterGraph *graph = muster_session_graph (session);
  const gboolean lacks_it =
      graph != NULL && !muster_graph_has_node (graph, MUSTER_POSITION_RESTORING);
  const MusterStep step = {.fetches = is_dealt ? dealt : fixed,
                           .n_fetches =
                               is_dealt ? G_N_ELEMENTS (dealt) : G_N_ELEMENTS (fixed) - lacks_it,
                           .deadline_us = deadline_us};
  MusterTensor *fetched[G_N_ELEMENTS (dealt)] = {NULL};
  if (!muster_session_run (session, &step, fetched, NULL, cancellable, error)) {
    g_prefix_error (error, "Reading the tasks' positions: ");
    return FALSE;
  }
  muster_position_state_clear (state);
  g_autoptr (MusterTensor) hold = fetched[2];
  g_autoptr (MusterTensor) restoring = is_dealt ? NULL : fetched[3];
  *state = (MusterPositionState){.is_dealt = is_dealt,
                                 .begun = fetched[0],
                                 .done = fetched[1],
                                 .taken = is_dealt ? fetched[3] : NULL,
                                 .origin = fetched[4],
                                 .hold = muster_step_of (hold)};
  muster_position_read_fence (state);
  state->is_restoring = restoring != NULL && muster_position_is_true (restoring);
  return check_state (state, n_tasks, error);
}

gboolean
muster_position_is_true (const MusterTensor *tensor)
{
  return muster_tensor_dtype (tensor) == MUSTER_BOOL && muster_tensor_n_elements (tensor) == 1 &&
         *(const guint8 *)muster_tensor_data (tensor) != 0;
}

gint64
muster_position_taken (const MusterPositionState *self, guint slot)
{
  return ((const gint64 *)muster_tensor_data (self->taken))[slot];
}

gint64
muster_position_begun (const MusterPositionState *self, guint task)
{
  return ((const gint64 *)muster_tensor_data (self->begun))[task];
}

gint64
muster_position_done (const MusterPositionState *self, guint task)
{
  return ((const gint64 *)muster_tensor_data (self->done))[task];
}

/* Below a fence, a step that was cut off may count as done, beyond what has begun. */
gboolean
muster_position_is_unended (const MusterPositionState *self, guint task)
{
  const gint64 n = muster_position_begun (self, task) - muster_position_done (self, task);
  return n > 0 || (n < 0 && !self->is_raised);
}

guint
muster_position_busy (const MusterPositionState *self, guint n_tasks, guint but)
{
  for (guint i = 0; i < n_tasks; i++)
    if (i != but && muster_position_is_unended (self, i))
      return i;
  return n_tasks;
}

/* Runs the op `target` with number fed to the tensor `fed`. */
static gboolean
assign (MusterSession *session, const char *target, const char *fed, gint64 number,
        gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (number);
  MusterFeed feed = {fed, value};
  MusterStep step = {
      .feeds = &feed, .n_feeds = 1, .targets = &target, .n_targets = 1, .deadline_us = deadline_us};
  return muster_session_run (session, &step, NULL, NULL, cancellable, error);
}

gboolean
muster_position_set_hold (MusterSession *session, gint64 hold, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  return assign (session, MUSTER_POSITION_SET_HOLD, MUSTER_POSITION_NEW_HOLD, hold, deadline_us,
                 cancellable, error);
}

gboolean
muster_position_forget (MusterSession *session, guint task, gint64 deadline_us,
                        GCancellable *cancellable, GError **error)
{
  return assign (session, MUSTER_POSITION_FORGET, MUSTER_POSITION_TASK, task, deadline_us,
                 cancellable, error);
}

gboolean
muster_position_set_over (MusterSession *session, gint64 n_batches, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  return assign (session, MUSTER_POSITION_SET_OVER, MUSTER_POSITION_NEW_OVER, n_batches,
                 deadline_us, cancellable, error);
}

gboolean
muster_position_pause (MusterPositionPause *self, gint64 until_us, GCancellable *cancellable,
                       GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  self->pause_us = CLAMP (self->pause_us * 3 / 2, FIRST_PAUSE_US, LAST_PAUSE_US);
  return muster_clock_wait_until (
      self->clock, MIN (now_us + self->pause_us, MAX (until_us, now_us)), cancellable, error);
}

gint64
muster_position_in_us (gint64 timeout_us)
{
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), timeout_us);
}

gint64
muster_position_share (gint64 limit_us, gint64 deadline_us, MusterClock *clock)
{
  if (deadline_us == MUSTER_WAIT_FOREVER)
    return limit_us;
  return MIN (limit_us, muster_deadline_remaining (deadline_us, muster_clock_now_us (clock)) / 2);
}

void
muster_position_quiesce (MusterSession *session, const MusterPositionQuiesce *quiesce,
                         GCancellable *cancellable)
{
  gint64 until_us = muster_deadline_after (muster_clock_now_us (quiesce->clock), QUIESCE_US);
  MusterPositionPause pause = {.clock = quiesce->clock};
  g_auto (MusterPositionState) state = {.is_dealt = quiesce->is_dealt};
  gboolean is_told = FALSE;
  for (;;) {
    gint64 deadline_us = MIN (muster_position_in_us (QUIESCE_US), quiesce->deadline_us);
    g_autoptr (GError) failure = NULL;
    if (!muster_position_read (session, quiesce->n_tasks, &state, deadline_us, cancellable,
                               &failure)) {
      muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE", "not waiting for steps: %s",
                  failure->message);
      return;
    }
    guint first = muster_position_busy (&state, quiesce->n_tasks, quiesce->but);
    if (is_told && first == quiesce->n_tasks)
      return;
    if (!is_told && !muster_position_set_hold (session, MUSTER_POSITION_WAIT, deadline_us,
                                               cancellable, &failure))
      return;
    is_told = TRUE;
    if (muster_clock_now_us (quiesce->clock) >= until_us ||
        muster_position_in_us (0) >= quiesce->deadline_us) {
      muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE",
                  "a step of task %u doesn't finish; cancelling it", first);
      return;
    }
    if (!muster_position_pause (&pause, until_us, cancellable, NULL))
      return;
  }
}

/* The first task whose step, running in first, hasn't ended in now; n_tasks: none. */
static guint
find_unended (const MusterPositionState *first, const MusterPositionState *now, guint n_tasks)
{
  for (guint i = 0; i < n_tasks; i++)
    if (muster_position_begun (now, i) != muster_position_done (now, i) &&
        muster_position_begun (now, i) <= muster_position_begun (first, i))
      return i;
  return n_tasks;
}

gboolean
muster_position_await_whole (MusterSession *session, const MusterPositionAwait *await, guint *torn,
                             GCancellable *cancellable, GError **error)
{
  g_auto (MusterPositionState) first = {.is_dealt = await->is_dealt},
                               now = {.is_dealt = await->is_dealt};
  MusterPositionPause pause = {.clock = await->clock};
  if (!muster_position_read (session, await->n_tasks, &first, await->deadline_us, cancellable,
                             error))
    return FALSE;
  for (;;) {
    if (!muster_position_read (session, await->n_tasks, &now, await->deadline_us, cancellable,
                               error))
      return FALSE;
    if (muster_position_is_fenced (&now))
      return muster_position_refuse_fenced (error);
    const guint task = find_unended (&first, &now, await->n_tasks);
    if (task == await->n_tasks)
      return TRUE;
    const gint64 until_us = task == await->ended ? await->ended_until_us : await->until_us;
    if (muster_clock_now_us (await->clock) >= until_us) {
      *torn = task;
      return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                          "batch %" G_GINT64_FORMAT " of task %u was begun and isn't done",
                          muster_position_done (&now, task), task);
    }
    if (!muster_position_pause (&pause, until_us, cancellable, error))
      return FALSE;
  }
}

/* --- positions in a checkpoint --- */

static gboolean
refuse_dealt (const char *prefix, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' was saved by a job whose batches are dealt, which a job with a fixed "
                      "number of tasks can't continue; start this one with --task=auto as well "
                      "(muster_position_add_dealt ()), or use another directory",
                      prefix);
}

/* Nothing tells in a dealt model that the job with a fixed number of tasks was in the middle of a
 * batch. */
static gboolean
check_fixed (MusterBundleReader *reader, const char *prefix, GError **error)
{
  g_autoptr (MusterTensor) begun = muster_bundle_reader_read (reader, MUSTER_POSITION_BEGUN, error);
  g_autoptr (MusterTensor) done =
      begun != NULL ? muster_bundle_reader_read (reader, MUSTER_POSITION_DONE, error) : NULL;

  if (done == NULL)
    return FALSE;
  if (muster_tensor_n_bytes (begun) == muster_tensor_n_bytes (done) &&
      memcmp (muster_tensor_data (begun), muster_tensor_data (done),
              muster_tensor_n_bytes (done)) == 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "'%s' is inconsistent: a batch was in progress when it was saved; restore "
                      "another one",
                      prefix);
}

static gboolean
check_dealt (MusterBundleReader *reader, gint64 n_slots, const char *prefix, GError **error)
{
  const MusterBundleEntry *taken = muster_bundle_reader_find (reader, MUSTER_POSITION_TAKEN);
  if (taken == NULL)
    return muster_bundle_reader_find (reader, MUSTER_POSITION_BEGUN) == NULL ||
           check_fixed (reader, prefix, error);
  if (taken->n_dims != 1 || taken->dims[0] == n_slots)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' was saved by a job of at most %" G_GINT64_FORMAT
                      " tasks at a time, but this one may have %" G_GINT64_FORMAT
                      "; use the same number of slots, or another directory",
                      prefix, taken->dims[0], n_slots);
}

gboolean
muster_position_check (MusterMetaGraph *meta_graph, MusterStorage *storage, const char *prefix,
                       GError **error)
{
  muster_require (error, FALSE, meta_graph, prefix);

  gint64 n_tasks = muster_position_n_tasks (meta_graph);
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (storage, prefix, NULL);
  const MusterBundleEntry *entry =
      reader != NULL ? muster_bundle_reader_find (reader, MUSTER_POSITION_DONE) : NULL;

  if (entry == NULL)
    return TRUE;
  if (muster_position_is_dealt (meta_graph))
    return check_dealt (reader, n_tasks, prefix, error);
  if (muster_bundle_reader_find (reader, MUSTER_POSITION_TAKEN) != NULL)
    return refuse_dealt (prefix, error);
  if (entry->n_dims != 1 || entry->dims[0] == n_tasks)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "'%s' holds the positions of %" G_GINT64_FORMAT
                      " tasks, but the job has %" G_GINT64_FORMAT
                      "; use the same number of tasks, or another directory",
                      prefix, entry->dims[0], n_tasks);
}

/* --- saves --- */

typedef struct {
  guint n_tasks;
  gboolean is_apart; /* the saver isn't one of the job's tasks */
  gboolean holds; /* the tasks are told to hold; otherwise the saver is the only one that steps */
  char *global_step; /* (owned) (nullable) */
  gint64 quiesce_us;
  MusterClock *clock;        /* (owned) */
  MusterPositionState state; /* the state when all tasks hold */
} Guard;

static void
guard_free (gpointer data)
{
  Guard *self = data;
  muster_position_state_clear (&self->state);
  g_object_unref (self->clock);
  g_free (self->global_step);
  g_free (self);
}

static gboolean
refuse_torn (const Guard *self, guint task, GError **error)
{
  g_autofree char *waited = muster_format_duration (self->quiesce_us);
  if (muster_position_begun (&self->state, task) < muster_position_done (&self->state, task))
    return muster_fail (error, MUSTER_ERROR_ABORTED,
                        "A step of task %u has ended after it was given up; restore the last "
                        "checkpoint to undo its update",
                        task);
  return muster_fail (error, MUSTER_ERROR_ABORTED,
                      "Batch %" G_GINT64_FORMAT
                      " of task %u was started %s ago and hasn't finished; restore the last "
                      "checkpoint to undo its partial update",
                      muster_position_done (&self->state, task), task, waited);
}

/* Returns TRUE if the first busy task is the same in both states, and in the same step. */
static gboolean
is_same_step (const Guard *self, const MusterPositionState *before, guint task)
{
  return muster_position_begun (before, task) == muster_position_begun (&self->state, task) &&
         muster_position_done (before, task) == muster_position_done (&self->state, task);
}

static gboolean
refuse_restless (guint task, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "steps of task %u and others didn't finish in time for a save", task);
}

/* The chief saves what it has restored before it opens the model to the tasks. */
static gboolean
is_closed (const Guard *self, const MusterPositionState *state)
{
  return self->is_apart ? muster_position_is_fenced (state) : state->is_raised;
}

static gboolean
set_hold_for_tasks (const Guard *self, MusterSession *session, gint64 deadline_us,
                    GCancellable *cancellable, GError **error)
{
  return !self->holds ||
         muster_position_set_hold (session, MUSTER_POSITION_WAIT, deadline_us, cancellable, error);
}

static gboolean
guard_quiesce (MusterSession *session, gint64 deadline_us, GCancellable *cancellable, gpointer data,
               GError **error)
{
  Guard *self = data;
  MusterPositionPause pause = {.clock = self->clock};
  g_auto (MusterPositionState) before = {0};
  gint64 torn_us = 0;
  gint64 limit_us = muster_deadline_after (muster_clock_now_us (self->clock), 3 * self->quiesce_us);
  if (!set_hold_for_tasks (self, session, deadline_us, cancellable, error))
    return FALSE;
  for (;;) {
    if (!muster_position_read (session, self->n_tasks, &self->state, deadline_us, cancellable,
                               error))
      return FALSE;
    if (is_closed (self, &self->state))
      return muster_position_refuse_fenced (error);
    guint task = muster_position_busy (&self->state, self->n_tasks, self->n_tasks);
    if (task == self->n_tasks)
      return TRUE;
    /* A task that waited too long, or another saver, has released the hold. */
    if (self->state.hold != MUSTER_POSITION_WAIT &&
        !set_hold_for_tasks (self, session, deadline_us, cancellable, error))
      return FALSE;
    gint64 now_us = muster_clock_now_us (self->clock);
    if (before.begun == NULL || !is_same_step (self, &before, task)) {
      torn_us = muster_deadline_after (now_us, self->quiesce_us);
      muster_position_state_clear (&before);
      before = (MusterPositionState){.begun = muster_tensor_ref (self->state.begun),
                                     .done = muster_tensor_ref (self->state.done)};
    }
    if (now_us >= torn_us)
      return refuse_torn (self, task, error);
    if (now_us >= MIN (limit_us, deadline_us))
      return refuse_restless (task, error);
    if (!muster_position_pause (&pause, torn_us, cancellable, error))
      return FALSE;
  }
}

static gboolean
guard_check (MusterSession *session, gboolean *is_consistent, gint64 deadline_us,
             GCancellable *cancellable, gpointer data, GError **error)
{
  Guard *self = data;
  g_auto (MusterPositionState) now = {.is_dealt = self->state.is_dealt};
  *is_consistent = TRUE;
  if (!self->holds)
    return TRUE;
  if (!muster_position_read (session, self->n_tasks, &now, deadline_us, cancellable, error))
    return FALSE;
  *is_consistent = !is_closed (self, &now) &&
                   muster_position_busy (&now, self->n_tasks, self->n_tasks) == self->n_tasks;
  for (guint i = 0; i < self->n_tasks; i++)
    *is_consistent = *is_consistent &&
                     muster_position_begun (&now, i) == muster_position_begun (&self->state, i);
  return TRUE;
}

static gboolean
guard_number (MusterSession *session, gint64 *step, gint64 deadline_us, GCancellable *cancellable,
              gpointer data, GError **error)
{
  const Guard *self = data;
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, self->global_step, deadline_us, cancellable, error);
  const gint64 number = value != NULL ? muster_step_of (value) : -1;

  if (number >= 0)
    *step = number;
  return number >= 0 ||
         (value != NULL &&
          muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                       "the global step '%s' isn't an integer scalar", self->global_step));
}

/* If the master is gone, or another chief has it, there is no hold to release. */
static void
guard_release (MusterSession *session, gpointer data)
{
  const Guard *self = data;
  g_autoptr (GError) failure = NULL;
  if (self->holds && !muster_position_set_hold (session, MUSTER_POSITION_GO,
                                                muster_position_in_us (RELEASE_US), NULL, &failure))
    muster_log (G_LOG_LEVEL_INFO, "position", "MESSAGE", "Resuming the tasks after a save: %s",
                failure->message);
}

void
muster_position_guard (MusterSaver *saver, MusterMetaGraph *meta_graph,
                       const MusterPositionGuard *options)
{
  g_return_if_fail (saver != NULL && meta_graph != NULL);

  static const MusterPositionGuard defaults;
  guint n_tasks = muster_position_n_tasks (meta_graph);
  if (options == NULL)
    options = &defaults;
  if (n_tasks == 0)
    return;
  Guard *self = g_new0 (Guard, 1);
  self->n_tasks = n_tasks;
  self->state.is_dealt = muster_position_is_dealt (meta_graph);
  self->is_apart = options->is_apart;
  self->holds = n_tasks > 1 || options->is_apart;
  self->quiesce_us = options->quiesce_us > 0 ? options->quiesce_us : DEFAULT_QUIESCE_US;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->global_step = g_strdup (options->global_step);
  const MusterSaverConsistentCut consistent_cut = {
      .quiesce = guard_quiesce,
      .check = guard_check,
      /* alone, the step that it has read is that of the cut */
      .number = self->holds && self->global_step != NULL ? guard_number : NULL,
      .release = guard_release};
  muster_saver_set_consistent_cut (saver, &consistent_cut, self, guard_free);
}
