// SPDX-License-Identifier: Apache-2.0
/* The hook that runs each of a task's steps at its position. */
#include "base/error.h"
#include "base/require_private.h"
#include "master/master.h"
#include "train/monitored/hook_private.h"
#include "train/position/batches_private.h"
#include "train/position/position_hook_private.h"

#include <string.h>

#define DEFAULT_SETTLE_US (5 * MUSTER_SECOND)
#define DEFAULT_OTHERS_US (30 * 60 * MUSTER_SECOND)

G_DEFINE_FINAL_TYPE (MusterPositionHook, muster_position_hook, MUSTER_TYPE_HOOK)

/* --- before the session --- */

static gboolean
position_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  self->n_tasks = muster_position_n_tasks (muster_scaffold_meta_graph (scaffold));
  self->is_dealt = muster_position_is_dealt (muster_scaffold_meta_graph (scaffold));
  self->claimed = self->n_tasks;
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

/* --- the session --- */

/* Waits while the hold is set. Doesn't wait in the last step before a stop, so that no save waits
 * for this task. */
static gboolean
wait_while_held (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  GError *failure = NULL;
  self->held = context;
  const gboolean is_settled =
      muster_position_settle (self, muster_run_context_session (context),
                              muster_run_context_deadline_us (context), &failure);
  self->held = NULL;
  if (is_settled)
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_CANCELLED) &&
      g_cancellable_is_cancelled (self->preempted))
    muster_run_context_request_stop (context);
  if (!g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  g_error_free (failure);
  return TRUE;
}

/* The batch of a place among all of the job's batches. */
static gint64
batch_of (const MusterPositionHook *self, const MusterPositionPlace *place)
{
  return self->is_dealt ? muster_position_dealt (place->deal, self->origin)
                        : muster_position_batch (place->position, place->task, self->n_tasks);
}

gboolean
muster_position_is_beyond (const MusterPositionHook *self, gint64 deal)
{
  return self->options.n_batches > 0 &&
         muster_position_dealt (deal, self->origin) >= self->options.n_batches;
}

gboolean
muster_position_is_over (const MusterPositionHook *self)
{
  return self->options.n_batches > 0 && batch_of (self, &self->own) >= self->options.n_batches;
}

/* A session at a master of the task's own. */
static gboolean
begin_at_master (MusterPositionHook *self, MusterSession *session, gint64 deadline_us,
                 GCancellable *cancellable, GError **error)
{
  const gint64 until_us = MIN (muster_position_in_us (MUSTER_POSITION_ANSWER_US), deadline_us);
  gboolean is_marked = FALSE;
  if (!muster_position_is_marked (session, &is_marked, until_us, cancellable, error) ||
      !muster_position_mark (session, until_us, cancellable, error))
    return FALSE;
  self->may_find_step = self->may_find_step && is_marked;
  if (self->options.settle_us <= 0)
    self->settle_us = self->may_find_step ? MUSTER_POSITION_STEP_US : DEFAULT_SETTLE_US;
  return self->options.is_worker || muster_position_open (session, until_us, cancellable, error);
}

static gboolean
position_after_create (MusterHook *hook, MusterSession *session, MusterCoordinator *coordinator,
                       gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  g_set_object (&self->stopped, muster_coordinator_cancellable (coordinator));
  self->is_held = FALSE;
  self->refused_us = 0;
  self->refused_at = -1;
  muster_position_reset_end (self);
  if ((self->options.own_masters &&
       !begin_at_master (self, session, deadline_us, cancellable, error)) ||
      !muster_position_settle (self, session, deadline_us, error))
    return FALSE;
  self->may_be_overtaken = self->options.own_masters && self->may_find_step;
  self->may_find_step = FALSE;
  self->torn_begun = -1;
  return TRUE;
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
feed_number (MusterRunContext *context, const char *name, gint64 number)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_int64 (number);
  muster_run_context_feed (context, name, value);
}

static void
feed_place (MusterPositionHook *self, const MusterPositionPlace *place, MusterRunContext *context)
{
  feed_number (context, MUSTER_POSITION_TASK, place->task);
  feed_number (context, MUSTER_POSITION_POSITION, place->position);
  self->held_at = muster_run_context_fetch (context, self->is_lent ? MUSTER_POSITION_LAST "/held:0"
                                                                   : MUSTER_POSITION_HELD);
  if (self->is_dealt && !self->is_lent)
    self->dealt_at = muster_run_context_fetch (context, MUSTER_POSITION_TRAIN "/dealt:0");
}

static void
feed_batch (MusterPositionHook *self, const MusterPositionPlace *place, MusterRunContext *context)
{
  MusterBatches *batches = self->options.batches;
  if (batches == NULL)
    return;
  muster_batches_seek (batches, batch_of (self, place));
  g_autoptr (GPtrArray) batch = muster_batches_next_list (batches);
  for (gsize i = 0; i < self->options.n_feeds; i++)
    muster_run_context_feed (context, self->options.feeds[i], batch->pdata[i]);
}

static gboolean
check_has_batch (const MusterPositionHook *self, GError **error)
{
  return !self->is_dealt || self->own.deal >= 0 ||
         muster_fail (error, MUSTER_ERROR_CANCELLED,
                      "the task in slot %u was stopped before it had a batch", self->own.task);
}

static gboolean
begin_step (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  MusterSession *session = muster_run_context_session (context);
  if (self->is_held && !wait_while_held (self, context, error))
    return FALSE;
  self->is_held = FALSE;
  if (!muster_position_look (self, session, error))
    return FALSE;
  if (!self->is_lent && !check_has_batch (self, error))
    return FALSE;
  if (!self->is_lent && muster_position_is_over (self))
    return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE,
                        "task %u has finished its share of the job's %" G_GINT64_FORMAT " batches",
                        self->own.task, self->options.n_batches);
  const MusterPositionPlace *place = self->is_lent ? &self->lent : &self->own;
  feed_place (self, place, context);
  feed_batch (self, place, context);
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
  if (self->is_idle && !check_has_batch (self, error))
    return FALSE;
  const gboolean is_over = muster_position_is_over (self);
  if (is_over || self->is_idle)
    feed_batch (self, &self->own, context); /* not trained on; only for other hooks' fetches */
  if (is_over) {
    self->run = ENDING;
    muster_position_fetch_end (self, context);
  }
  return TRUE;
}

/* The next step is made elsewhere, or with another batch. */
static gboolean
move_on (MusterPositionHook *self, MusterRunContext *context, GError **error)
{
  self->refused_us = 0;
  self->may_be_overtaken = FALSE;
  if (self->is_lent) {
    muster_position_give_back (self);
    return TRUE;
  }
  self->own.position++;
  if (!self->is_dealt)
    return TRUE;
  self->own.deal = muster_step_of (muster_run_context_value (context, self->dealt_at));
  return self->own.deal >= 0 ||
         muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' isn't a number of batches",
                      MUSTER_POSITION_NEXT);
}

static gboolean
position_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  if (self->run == ENDING)
    return muster_position_check_end (self, context, error);
  if (self->run == OTHER)
    return TRUE;
  gint64 hold = muster_step_of (muster_run_context_value (context, self->held_at));
  self->is_held = hold == MUSTER_POSITION_WAIT;
  return move_on (self, context, error);
}

static gboolean
position_end (MusterHook *hook, MusterSession *session, gint64 deadline_us,
              GCancellable *cancellable, GError **error G_GNUC_UNUSED)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  muster_position_give_back (self);
  muster_position_tell_end (self, session, deadline_us, cancellable);
  return TRUE;
}

static gboolean
looks_again (MusterPositionHook *self, const GError *failure)
{
  if (!muster_position_looks_again (self, failure))
    return FALSE;
  if (self->is_lent)
    muster_position_give_back (self);
  else
    self->is_held = TRUE; /* the next step begins with a look */
  return TRUE;
}

/* Returns TRUE if a step failed because there is none to make, or not that one. */
static gboolean
is_no_failure (MusterPositionHook *self, const GError *failure)
{
  /* The session was lost together with the last step's response: the step was done. */
  return looks_again (self, failure) ||
         (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) && muster_position_is_over (self));
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
  gboolean has_trained = hook->is_lent || !muster_position_is_over (hook);

  if (has_trained && !muster_monitored_session_run (session, step, fetched, NULL, &failure)) {
    if (!is_no_failure (hook, failure)) {
      g_propagate_error (error, failure);
      return FALSE;
    }
    g_clear_error (&failure);
    has_trained = FALSE;
  }
  if (trained != NULL)
    *trained = has_trained;
  return has_trained || !muster_position_is_over (hook) ||
         muster_monitored_session_run (session, &nothing, NULL, NULL, error);
}

gboolean
muster_position_may_pause (MusterHook *hook)
{
  const MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  return self->claimed == self->n_tasks && !muster_position_is_over (self);
}

gboolean
muster_position_run_idle (MusterHook *hook, MusterMonitoredSession *session, GError **error)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (hook);
  const MusterStep nothing = {.deadline_us = MUSTER_WAIT_FOREVER};
  self->is_idle = TRUE;
  const gboolean ran = muster_monitored_session_run (session, &nothing, NULL, NULL, error);
  self->is_idle = FALSE;
  return ran;
}

/* --- the object --- */

static void
position_finalize (GObject *object)
{
  MusterPositionHook *self = MUSTER_POSITION_HOOK (object);
  muster_position_give_back (self);
  g_clear_object (&self->options.slots);
  g_clear_object (&self->options.master);
  g_clear_pointer (&self->options.batches, muster_batches_free);
  g_strfreev ((char **)self->options.feeds);
  g_clear_object (&self->clock);
  g_clear_object (&self->stopped);
  g_clear_object (&self->preempted);
  g_clear_pointer (&self->origin, muster_tensor_unref);
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
  self->own.position = -1;
  self->refused_at = -1;
  self->may_find_step = TRUE;
  self->torn_begun = -1;
}

static char **
copy_feeds (const MusterPositionOptions *options)
{
  char **feeds = g_new0 (char *, options->n_feeds + 1);
  for (gsize i = 0; i < options->n_feeds; i++)
    feeds[i] = g_strdup (options->feeds[i]);
  return feeds;
}

static gboolean
check_options (const MusterPositionOptions *options, GError **error)
{
  if (!muster_batches_check_feeds (options->batches, options->n_feeds, error))
    return FALSE;
  if (options->slots == NULL)
    return TRUE;
  const MusterPositionSlotsInterface *iface = MUSTER_POSITION_SLOTS_GET_IFACE (options->slots);
  return (iface->version != NULL && iface->has_task != NULL && iface->claim != NULL &&
          iface->release != NULL) ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s lacks a function of MusterPositionSlots; implement version, has_task, "
                      "claim and release",
                      G_OBJECT_TYPE_NAME (options->slots));
}

MusterHook *
muster_position_hook_new (const MusterPositionOptions *options, GError **error)
{
  muster_require (error, NULL, options);

  if (!check_options (options, error))
    return NULL;
  MusterPositionHook *self = g_object_new (MUSTER_TYPE_POSITION_HOOK, NULL);
  self->options = *options;
  self->options.feeds = (const char *const *)copy_feeds (options);
  self->options.name = g_strdup (options->name);
  if (options->master != NULL)
    g_object_ref (options->master);
  if (options->batches != NULL)
    (void)muster_batches_ref (options->batches);
  self->options.others_us = options->others_us > 0 ? options->others_us : DEFAULT_OTHERS_US;
  self->settle_us = options->settle_us > 0 ? options->settle_us : DEFAULT_SETTLE_US;
  self->options.hold_us = options->hold_us > 0 ? options->hold_us : MUSTER_HOLD_US;
  self->clock = g_object_ref (options->clock ? options->clock : muster_system_clock ());
  self->own.task = options->task;
  if (options->slots != NULL)
    g_object_ref (options->slots);
  return MUSTER_HOOK (self);
}

void
muster_position_hook_set_preempted (MusterHook *hook, GCancellable *preempted)
{
  g_set_object (&MUSTER_POSITION_HOOK (hook)->preempted, preempted);
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
  return self->has_ended || (self->n_tasks == 1 && muster_position_is_over (self));
}

gint64
muster_position_hook_position (MusterHook *self)
{
  g_return_val_if_fail (MUSTER_IS_POSITION_HOOK (self), -1);
  return MUSTER_POSITION_HOOK (self)->own.position;
}
