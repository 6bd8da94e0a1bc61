// SPDX-License-Identifier: Apache-2.0
/* Saves in the background: the caller's half. A save takes its turn, takes a slot for a snapshot
 * or replaces the save that waits for one, stages the snapshot between two steps, and hands the
 * request to the thread (async_thread.c). A model that is too large for a snapshot is saved at
 * once. */
#include "saver/async/async_saver.h"

#include "base/fields_private.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "saver/async/async_private.h"
#include "saver/consistent_cut_private.h"
#include "saver/tiered.h"

#define DISPOSE_WAIT_US (5 * MUSTER_SECOND)

/* A call that stages or restores; one at a time. The deadline bounds the whole call. */
typedef struct {
  MusterAsyncCore *core;
  gint64 deadline_us;
  GCancellable *cancellable;
  gint64 began_us;       /* of a save */
  const char *directory; /* of a save: the durable tier's, if it has tiers */
  MusterTierSet due;     /* of a save in tiers */
  gboolean must_be_idle; /* earlier saves must have ended */
  gboolean is_claimed;
} Call;

/* The turns and slots: who may stage or restore, and how many snapshots exist. All with the lock
 * held. */

/* The number of snapshots that may be held at once; may be 0. */
static guint
muster_async_core_n_slots (MusterAsyncCore *self)
{
  const guint64 budget = self->budget_bytes;
  if (budget == 0)
    return self->policy == MUSTER_SAVES_REPLACE ? 2 : 1;
  return (guint)MIN (budget / MAX (self->model->bytes, 1), MUSTER_MAX_SNAPSHOTS);
}

/* Returns NULL if no more snapshots are allowed. */
static MusterAsyncSlot *
muster_async_core_free_slot (MusterAsyncCore *self)
{
  const guint n = muster_async_core_n_slots (self);
  for (guint i = 0; i < n; i++)
    if (!self->slots[i].is_taken)
      return &self->slots[i];
  return NULL;
}

static gboolean
may_claim (const Call *call)
{
  MusterAsyncCore *core = call->core;
  if (core->holder != NULL)
    return FALSE;
  if (core->is_shut)
    return TRUE; /* to be refused */
  if (call->must_be_idle || muster_async_core_n_slots (core) == 0)
    return muster_async_core_is_idle (core);
  return core->policy != MUSTER_SAVES_BLOCK || muster_async_core_free_slot (core) != NULL;
}

static gboolean
claim (gpointer data)
{
  Call *call = data;
  if (!call->is_claimed && may_claim (call)) {
    call->is_claimed = TRUE;
    call->core->holder = g_thread_self ();
  }
  return call->is_claimed;
}

static void
muster_async_call_release (Call *call)
{
  call->core->holder = NULL;
  g_cond_broadcast (&call->core->changed);
}

/* Fails with FAILED_PRECONDITION. */
static gboolean
muster_async_refuse_shut (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "The async saver has been shut down");
}

/* Waits for the turn; release ends it. */
static gboolean
muster_async_call_lock_save (Call *call, GError **error)
{
  MusterAsyncCore *core = call->core;
  if (!muster_async_core_check_caller (core, error) ||
      !muster_wait_until_done (&core->lock, &core->changed, claim, call, "the save before",
                               call->deadline_us, call->cancellable, error))
    return FALSE;
  if (!core->is_shut)
    return TRUE;
  muster_async_call_release (call);
  return muster_async_refuse_shut (error);
}

/* Fails with the error of a background save that wasn't reported yet. */
static gboolean
muster_async_core_report_failure (MusterAsyncCore *self, GError **error)
{
  if (self->failure == NULL)
    return TRUE;
  muster_log (G_LOG_LEVEL_INFO, "save", "MESSAGE",
              "Propagating the most recent error from the async thread: %s",
              self->failure->message);
  g_propagate_error (error, g_steal_pointer (&self->failure));
  return FALSE;
}

struct _MusterAsyncSaver {
  GObject parent;
  MusterAsyncCore *core; /* (owned) */
};

G_DEFINE_FINAL_TYPE (MusterAsyncSaver, muster_async_saver, G_TYPE_OBJECT)

MusterAsyncSaver *
muster_async_saver_new (MusterSaver *saver, MusterSession *session, MusterSavePolicy policy,
                        guint64 budget_bytes, GError **error)
{
  muster_require (error, NULL, saver, session);

  if (saver == NULL || session == NULL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "an async saver needs a %s",
                 saver != NULL ? "session" : "saver");
    return NULL;
  }
  if (saver->is_empty) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "an async saver needs variables to save; this model has none");
    return NULL;
  }
  MusterAsyncSaver *self = g_object_new (MUSTER_TYPE_ASYNC_SAVER, NULL);
  g_autoptr (MusterAsyncModel) model = muster_async_model_new (saver, session);
  self->core = muster_async_core_new (model);
  self->core->policy = policy;
  self->core->budget_bytes = budget_bytes;
  return self;
}

void
muster_async_saver_set_finished (MusterAsyncSaver *self, MusterSaveFinished finished,
                                 gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);

  muster_async_saver_share_finished (self, finished, user_data,
                                     muster_data_owner (user_data, destroy));
}

void
muster_async_saver_share_finished (MusterAsyncSaver *self, MusterSaveFinished finished,
                                   gpointer user_data, GBytes *owner)
{
  self->core->finished = finished;
  self->core->finished_data = user_data;
  g_clear_pointer (&self->core->finished_owner, g_bytes_unref);
  self->core->finished_owner = owner;
}

void
muster_async_saver_set_dispose_wait (MusterAsyncSaver *self, gint64 wait_us)
{
  self->core->dispose_wait_us = wait_us;
}

void
muster_async_saver_set_model (MusterAsyncSaver *self, MusterSaver *saver, MusterSession *session)
{
  g_return_if_fail (self != NULL);

  g_return_if_fail (MUSTER_IS_SAVER (saver) && !saver->is_empty && MUSTER_IS_SESSION (session));

  MusterAsyncModel *model = muster_async_model_new (saver, session);

  g_mutex_lock (&self->core->lock);
  g_autoptr (MusterAsyncModel) before = self->core->model;
  self->core->model = model;
  g_mutex_unlock (&self->core->lock);
}

/* --- saving --- */

/* With the lock held: returns the ticket of a save, with its path and number. */
static MusterSaveTicket *
number (const Call *call, const char *directory, gint64 step, const char *prefix, GError **error)
{
  MusterAsyncCore *self = call->core;
  MusterSaveLog *log = self->model->saver->log;
  const gboolean is_background = muster_async_core_n_slots (self) > 0;
  g_autofree char *path = NULL;

  if (prefix != NULL)
    return muster_save_ticket_new (log, prefix, muster_checkpoint_step (prefix), call->began_us,
                                   is_background);
  if (step < 0)
    step = self->counter + (self->counter < G_MAXINT64);
  directory = muster_saver_place (self->model->saver, directory, call->due);
  path = muster_saver_prefix_for (self->model->saver, directory, step, error);
  if (path == NULL)
    return NULL;
  self->counter = MAX (self->counter, step);
  return muster_save_ticket_new (log, path, step, call->began_us, is_background);
}

/* With the lock held: ends a ticket that the policy skips or replaces. */
static void
end_by_policy (MusterSaveTicket *ticket, MusterSaveState state, MusterError code, const char *why)
{
  g_autoptr (GError) error =
      g_error_new (MUSTER_ERROR, (gint)code, "%s: %s", muster_save_ticket_path (ticket), why);

  muster_save_ticket_settle (ticket, state, why, NULL, error);
}

/* With the lock held: returns a slot for a snapshot, or NULL if the save was skipped. displaced
 * (out) (nullable) (transfer full) is the save that has waited in it: nothing is done to that yet.
 */
static MusterAsyncSlot *
take_slot (MusterAsyncCore *self, MusterSaveTicket *ticket, MusterAsyncRequest **displaced)
{
  MusterAsyncSlot *slot = muster_async_core_free_slot (self);
  *displaced = NULL;
  if (slot == NULL && self->policy == MUSTER_SAVES_REPLACE)
    *displaced = g_queue_pop_tail (&self->waiting);
  if (*displaced != NULL)
    return (*displaced)->slot;
  if (slot != NULL) {
    slot->is_taken = TRUE;
    return slot;
  }
  const MusterAsyncRequest *first =
      self->writing != NULL ? self->writing : g_queue_peek_head (&self->waiting);
  g_autofree char *why = g_strdup_printf ("skipped: '%s' is still being written",
                                          muster_save_ticket_path (first->ticket));
  end_by_policy (ticket, MUSTER_SAVE_SKIPPED, MUSTER_ERROR_UNAVAILABLE, why);
  return NULL;
}

/* With the lock held: ends the save whose slot another one has taken, or lets it wait again if that
 * one has failed (failure isn't NULL) and left its snapshot as it was. Takes self. */
static void
end_displaced (MusterAsyncCore *core, MusterAsyncRequest *self, MusterSaveTicket *by,
               const GError *failure)
{
  if (failure != NULL && self->slot->is_whole) {
    g_queue_push_tail (&core->waiting, self);
    return;
  }
  if (failure == NULL) {
    g_autofree char *why =
        g_strdup_printf ("replaced by '%s' before it was written", muster_save_ticket_path (by));
    end_by_policy (self->ticket, MUSTER_SAVE_REPLACED, MUSTER_ERROR_CANCELLED, why);
  } else {
    g_autoptr (GError) own = g_error_copy (failure);
    g_prefix_error (&own, "%s: discarded for a newer save, which failed: ",
                    muster_save_ticket_path (self->ticket));
    self->slot->is_taken = FALSE;
    muster_async_core_note_failure (core, self->ticket, own);
    muster_save_ticket_settle (self->ticket, MUSTER_SAVE_FAILED, NULL, NULL, own);
  }
  core->replaced = muster_save_ticket_ref (self->ticket);
  muster_async_request_free (self);
}

/* Adds the slot's nodes when they are first needed, and again for another model. */
static gboolean
prepare_slot (const Call *call, MusterAsyncSlot *slot, MusterAsyncModel *model, GError **error)
{
  MusterSaver *saver = model->saver;
  if (slot->model == model)
    return TRUE;
  g_mutex_lock (&call->core->lock);
  g_autofree char *scope = g_strdup_printf (
      "muster.shadow/%08x-%u", (guint32)(muster_clock_random (call->core->clock) * G_MAXUINT32),
      call->core->n_scopes++);
  g_mutex_unlock (&call->core->lock);
  MusterSnapshot *snapshot = muster_snapshot_new (
      model->session, muster_meta_graph_graph (saver->meta_graph), saver->info.save_tensor, scope,
      call->deadline_us, call->cancellable, error);
  if (snapshot == NULL)
    return FALSE;
  muster_snapshot_free (slot->snapshot);
  muster_async_model_unref (slot->model);
  slot->snapshot = snapshot;
  slot->model = muster_async_model_ref (model);
  slot->is_whole = FALSE;
  return TRUE;
}

/* Copies the state outside the graph at the same moment as the variables. */
static gboolean
copy_saveables (MusterAsyncRequest *request, GError **error)
{
  char **left_out = NULL;
  g_clear_pointer (&request->tensors, g_ptr_array_unref);
  request->tensors = muster_saveables_copy (request->model->saver->saveables, &left_out, error);
  muster_save_ticket_set_left_out (request->ticket, left_out);
  return request->tensors != NULL;
}

typedef struct {
  const Call *call;
  MusterAsyncRequest *request;
  gboolean is_taken;
} Take;

/* A call that ends here leaves the snapshot of a save that waits in the slot. */
static gboolean
check_time (const Call *call, GError **error)
{
  const gint64 now_us = muster_clock_now_us (call->core->clock);
  if (g_cancellable_set_error_if_cancelled (call->cancellable, error))
    return FALSE;
  return muster_deadline_remaining (call->deadline_us, now_us) > 0 ||
         muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "Deadline Exceeded: no snapshot taken");
}

static gboolean
take (gpointer data, GError **error)
{
  Take *self = data;
  if (!check_time (self->call, error))
    return FALSE;
  self->request->slot->is_whole = FALSE;
  self->is_taken = muster_snapshot_take (self->request->slot->snapshot, self->call->deadline_us,
                                         self->call->cancellable, error);
  return self->is_taken && copy_saveables (self->request, error);
}

/* Renames the checkpoint to the cut's step, unless the caller named it: with several tasks, that
 * isn't the step that the caller has read. */
static gboolean
rename_to (MusterAsyncRequest *request, gint64 step, GError **error)
{
  if (step == muster_save_ticket_step (request->ticket))
    return TRUE;
  g_autofree char *directory = g_path_get_dirname (muster_save_ticket_path (request->ticket));
  g_autofree char *path = muster_saver_prefix_for (request->model->saver, directory, step, error);
  if (path == NULL)
    return FALSE;
  muster_save_ticket_rename (request->ticket, path, step);
  return TRUE;
}

static gboolean
take_consistent_cut (const Call *call, MusterAsyncRequest *request, GError **error)
{
  Take what = {call, request, FALSE};
  gint64 step = muster_save_ticket_step (request->ticket);
  if (muster_saver_work_in_consistent_cut (request->model->saver, request->model->session, take,
                                           &what, request->unlisted ? NULL : &step,
                                           call->deadline_us, call->cancellable, error) &&
      rename_to (request, step, error))
    return TRUE;
  if (what.is_taken)
    muster_snapshot_drop (request->slot->snapshot, MUSTER_DROP_GIVEN_UP_US);
  return FALSE;
}

/* Without the lock, in the turn: takes the snapshot. */
static gboolean
stage (const Call *call, MusterAsyncRequest *request, GError **error)
{
  if (prepare_slot (call, request->slot, request->model, error) &&
      take_consistent_cut (call, request, error))
    return TRUE;
  g_prefix_error (error, "Saving '%s': ", muster_save_ticket_path (request->ticket));
  return FALSE;
}

/* With the lock held. */
static void
enqueue (MusterAsyncCore *self, MusterAsyncRequest *request)
{
  const gint64 step = muster_save_ticket_step (request->ticket);
  self->counter = MAX (self->counter, request->unlisted ? 0 : step);
  request->slot->is_whole = TRUE;
  muster_save_ticket_reach (request->ticket, MUSTER_SAVE_STAGED);
  muster_save_ticket_tell (request->ticket, MUSTER_SAVE_STAGED);
  g_queue_push_tail (&self->waiting, request);
  if (self->thread == NULL) {
    muster_log (G_LOG_LEVEL_DEBUG, "save", "MESSAGE",
                "Initializing async checkpoint's save_counter: %" G_GINT64_FORMAT, self->counter);
    self->thread =
        g_thread_new ("muster-save", muster_async_core_thread, muster_async_core_ref (self));
  }
}

/* With the lock held, in the turn; returns with the lock held. */
static gboolean
save_in_background (const Call *call, MusterSaveTicket *ticket, gboolean unlisted, GError **error)
{
  MusterAsyncCore *core = call->core;
  MusterAsyncRequest *displaced;
  g_autoptr (GError) failure = NULL;
  MusterAsyncSlot *slot = take_slot (core, ticket, &displaced);
  if (slot == NULL)
    return TRUE;
  MusterAsyncRequest *request = g_new0 (MusterAsyncRequest, 1);
  *request = (MusterAsyncRequest){.ticket = muster_save_ticket_ref (ticket),
                                  .model = muster_async_model_ref (core->model),
                                  .slot = slot,
                                  .unlisted = unlisted,
                                  .directory = call->due != 0 ? g_strdup (call->directory) : NULL,
                                  .due = call->due};
  g_mutex_unlock (&core->lock);
  const gboolean is_staged = stage (call, request, &failure);
  g_mutex_lock (&core->lock);
  if (displaced != NULL)
    end_displaced (core, displaced, ticket, failure);
  else
    slot->is_taken = is_staged;
  if (is_staged) {
    enqueue (core, request);
    return TRUE;
  }
  muster_async_request_free (request);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Saves a model over the budget. With the lock held, in the turn, while no save is running; returns
 * with the lock held. */
static gboolean
save_at_once (const Call *call, MusterSaveTicket *ticket, gboolean unlisted, GError **error)
{
  MusterAsyncCore *core = call->core;
  g_autoptr (MusterAsyncModel) model = muster_async_model_ref (core->model);
  g_autofree char *size = muster_format_size (model->bytes);
  g_autofree char *budget = muster_format_size (core->budget_bytes);
  g_autofree char *why =
      g_strdup_printf ("saved at once: a snapshot takes %s, and the budget is %s", size, budget);
  g_auto (MusterSaved) done = {0};
  const char *path = muster_save_ticket_path (ticket);
  g_autofree char *directory =
      call->due != 0 ? g_strdup (call->directory) : g_path_get_dirname (path);
  MusterSaveHow how = {.prefix = unlisted ? path : NULL, .unlisted = unlisted, .due = call->due};
  const gint64 step = muster_save_ticket_step (ticket);
  const gint64 started_us = muster_clock_now_us (core->clock);

  g_mutex_unlock (&core->lock);
  const gboolean saved =
      muster_saver_save_for_ticket (model->saver, model->session, directory, step, &how, ticket,
                                    &done, call->deadline_us, call->cancellable, error);
  muster_save_meter_saved (core->meter, started_us, saved && !done.skipped);
  g_mutex_lock (&core->lock);
  if (!saved)
    return FALSE;
  if (!done.skipped) {
    g_free (done.why);
    done.why = g_steal_pointer (&why);
  }
  muster_async_resolve_ticket (ticket, &done);
  return TRUE;
}

/* With the lock held, in the turn. */
static MusterSaveTicket *
save_locked (const Call *call, const char *directory, gint64 step, const char *prefix,
             GError **error)
{
  MusterAsyncCore *core = call->core;
  if (!muster_async_core_report_failure (core, error))
    return NULL;
  g_autoptr (MusterSaveTicket) ticket = number (call, directory, step, prefix, error);
  if (ticket == NULL)
    return NULL;
  const gboolean saved = ticket->is_background
                             ? save_in_background (call, ticket, prefix != NULL, error)
                             : save_at_once (call, ticket, prefix != NULL, error);
  if (!saved)
    muster_save_ticket_end (ticket, MUSTER_SAVE_FAILED, 0);
  muster_save_ticket_unblock (ticket);
  return saved ? g_steal_pointer (&ticket) : NULL;
}

/* With the lock held, in the turn, so that no sync returns before; without it meanwhile. */
static void
notify_replaced (MusterAsyncCore *self)
{
  g_autoptr (MusterSaveTicket) replaced = g_steal_pointer (&self->replaced);
  if (replaced == NULL)
    return;
  g_mutex_unlock (&self->lock);
  muster_save_ticket_notify (replaced);
  g_mutex_lock (&self->lock);
}

static MusterSaveTicket *
save_or_write (MusterAsyncSaver *self, const char *directory, gint64 step, const char *prefix,
               MusterTierSet due, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterAsyncCore *core = self->core;
  const gint64 began_us = muster_clock_now_us (core->clock);
  Call call = {.core = core,
               .deadline_us = deadline_us,
               .cancellable = cancellable,
               .began_us = began_us,
               .directory = directory,
               .due = due};
  MusterSaveTicket *ticket = NULL;
  g_mutex_lock (&core->lock);
  const gint64 limit_us = core->model->saver->save_timeout_us;
  if (limit_us > 0) /* the files' limit is the saver's own */
    call.deadline_us = MIN (deadline_us, muster_deadline_after (began_us, limit_us));
  if (muster_async_call_lock_save (&call, error)) {
    ticket = save_locked (&call, directory, step, prefix, error);
    notify_replaced (core);
    muster_async_call_release (&call);
  }
  g_mutex_unlock (&core->lock);
  if (ticket != NULL)
    muster_save_meter_blocked (core->meter, began_us, muster_clock_now_us (core->clock));
  return ticket;
}

/* Checks the arguments of operations with a path. */
static gboolean
check_call (MusterAsyncSaver *self, const char *what, const char *path, GError **error)
{
  if (!MUSTER_IS_ASYNC_SAVER (self))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "no async saver was given");
  g_mutex_lock (&self->core->lock);
  g_autoptr (MusterStorage) storage = g_object_ref (self->core->model->saver->storage);
  g_mutex_unlock (&self->core->lock);
  return muster_storage_check_path (storage, what, path, error);
}

MusterSaveTicket *
muster_async_saver_save (MusterAsyncSaver *self, const char *directory, gint64 step,
                         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, directory);
  return check_call (self, "checkpoint directory", directory, error)
             ? save_or_write (self, directory, step, NULL, 0, deadline_us, cancellable, error)
             : NULL;
}

MusterSaveTicket *
muster_async_saver_save_in_tiers (MusterAsyncSaver *self, const char *directory, gint64 step,
                                  MusterTierSet due, gint64 deadline_us, GCancellable *cancellable,
                                  GError **error)
{
  muster_require (error, NULL, self, directory);
  return check_call (self, "checkpoint directory", directory, error)
             ? save_or_write (self, directory, step, NULL, due, deadline_us, cancellable, error)
             : NULL;
}

MusterSaveTicket *
muster_async_saver_write (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                          GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, prefix);
  return check_call (self, "checkpoint", prefix, error)
             ? save_or_write (self, NULL, -1, prefix, 0, deadline_us, cancellable, error)
             : NULL;
}

/* --- the other verbs --- */

gboolean
muster_async_saver_prepare (MusterAsyncSaver *self, gint64 deadline_us, GCancellable *cancellable,
                            GError **error)
{
  muster_require (error, FALSE, self);

  MusterAsyncCore *core = self->core;
  Call call = {
      .core = core, .deadline_us = deadline_us, .cancellable = cancellable, .must_be_idle = TRUE};
  gboolean prepared = FALSE;
  g_mutex_lock (&core->lock);
  if (muster_async_call_lock_save (&call, error)) {
    g_autoptr (MusterAsyncModel) model = muster_async_model_ref (core->model);
    MusterAsyncSlot *slot = muster_async_core_free_slot (core);
    g_mutex_unlock (&core->lock);
    prepared = slot == NULL ||
               (prepare_slot (&call, slot, model, error) &&
                muster_snapshot_reserve_memory (slot->snapshot, deadline_us, cancellable, error));
    g_mutex_lock (&core->lock);
    muster_async_call_release (&call);
  }
  g_mutex_unlock (&core->lock);
  return prepared;
}

gboolean
muster_async_saver_restore (MusterAsyncSaver *self, const MusterRestoreOptions *options,
                            MusterRestored *restored, gint64 deadline_us, GCancellable *cancellable,
                            GError **error)
{
  muster_require (error, FALSE, self, options);

  MusterAsyncCore *core = self->core;
  Call call = {
      .core = core, .deadline_us = deadline_us, .cancellable = cancellable, .must_be_idle = TRUE};
  g_auto (MusterRestored) found = {0};
  gboolean is_done = FALSE;
  g_mutex_lock (&core->lock);
  if (muster_async_call_lock_save (&call, error)) {
    g_autoptr (MusterAsyncModel) model = muster_async_model_ref (core->model);
    g_mutex_unlock (&core->lock);
    is_done = muster_saver_restore (model->saver, model->session, options, &found, deadline_us,
                                    cancellable, error);
    g_mutex_lock (&core->lock);
    if (is_done && found.prefix != NULL)
      core->counter = MAX (core->counter, muster_checkpoint_step (found.prefix));
    muster_async_call_release (&call);
  }
  g_mutex_unlock (&core->lock);
  if (is_done && restored != NULL) {
    *restored = found;
    found = (MusterRestored){0};
  }
  return is_done;
}

gboolean
muster_async_saver_read (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, prefix);

  return check_call (self, "checkpoint", prefix, error) &&
         muster_async_saver_restore (self, &(MusterRestoreOptions){.prefix = prefix}, NULL,
                                     deadline_us, cancellable, error);
}

static gboolean
is_idle (gpointer data)
{
  return muster_async_core_is_idle (data);
}

static MusterSaver *
saver_of (MusterAsyncCore *self)
{
  g_mutex_lock (&self->lock);
  MusterSaver *saver = g_object_ref (self->model->saver);
  g_mutex_unlock (&self->lock);
  return saver;
}

gboolean
muster_async_saver_sync (MusterAsyncSaver *self, gint64 deadline_us, GCancellable *cancellable,
                         GError **error)
{
  muster_require (error, FALSE, self);

  g_autoptr (MusterSaver) saver = saver_of (self->core);
  return muster_async_saver_sync_saves (self, deadline_us, cancellable, error) &&
         muster_saver_sync_copies (saver, deadline_us, cancellable, error);
}

gboolean
muster_async_saver_sync_saves (MusterAsyncSaver *self, gint64 deadline_us,
                               GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);

  MusterAsyncCore *core = self->core;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&core->lock);
  if (!muster_async_core_check_caller (core, error))
    return FALSE;
  if (core->is_shut)
    return muster_async_refuse_shut (error);
  if (!muster_wait_until_done (&core->lock, &core->changed, is_idle, core, "the save before",
                               deadline_us, cancellable, error))
    return FALSE;
  muster_log (G_LOG_LEVEL_DEBUG, "save", "MESSAGE", "Sync on ongoing save/restore.");
  return muster_async_core_report_failure (core, error);
}

/* With the lock held: cancels running saves, and sets the error. */
static void
give_up (MusterAsyncCore *self, GError **error)
{
  g_autofree char *path =
      g_strdup (self->writing != NULL ? muster_save_ticket_path (self->writing->ticket) : "a save");

  if (self->writing != NULL)
    muster_save_ticket_cancel (self->writing->ticket);
  for (GList *link = self->waiting.head; link != NULL; link = link->next)
    muster_save_ticket_cancel (((MusterAsyncRequest *)link->data)->ticket);
  g_clear_error (error);
  muster_fail (
      error, MUSTER_ERROR_DEADLINE_EXCEEDED,
      "Timeout waiting for the async save thread: '%s' was still being written, and the checkpoint "
      "may be incomplete. The save is abandoned; earlier checkpoints are unchanged",
      path);
}

static gboolean
has_ended (gpointer data)
{
  MusterAsyncCore *core = data;
  return muster_async_core_is_idle (core) && (core->thread == NULL || core->is_over);
}

/* With the lock held, when the time is up. With nothing left to write the thread, which has a low
 * priority, may not have had the processor yet: it ends by itself, and nothing is missing. */
static gboolean
end_late (MusterAsyncCore *self, GError **error)
{
  if (!muster_async_core_is_idle (self)) {
    give_up (self, error);
    return FALSE;
  }
  g_clear_error (error);
  g_clear_pointer (&self->thread, g_thread_unref);
  return TRUE;
}

/* Waits for the copies of the last saves until the deadline, and then gives them up. */
static gboolean
end_copies (MusterAsyncCore *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterSaver) saver = saver_of (self);
  if (muster_saver_sync_copies (saver, deadline_us, cancellable, error))
    return TRUE;
  muster_saver_cancel_copies (saver);
  return FALSE;
}

gboolean
muster_async_saver_shutdown (MusterAsyncSaver *self, gint64 deadline_us, GCancellable *cancellable,
                             GError **error)
{
  muster_require (error, FALSE, self);

  MusterAsyncCore *core = self->core;
  g_autoptr (GError) failure = NULL;
  GThread *ended = NULL;
  g_mutex_lock (&core->lock);
  gboolean shut = muster_async_core_check_caller (core, error);
  if (shut) {
    core->is_shut = TRUE;
    g_cond_broadcast (&core->changed);
    muster_log (G_LOG_LEVEL_DEBUG, "save", "MESSAGE", "Joining the async save thread.");
    shut = muster_wait_until_done (&core->lock, &core->changed, has_ended, core, "the last save",
                                   deadline_us, cancellable, &failure);
    if (!shut && muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
      shut = end_late (core, &failure);
    if (!shut)
      g_propagate_error (error, g_steal_pointer (&failure));
    else
      ended = g_steal_pointer (&core->thread);
    shut = shut && muster_async_core_report_failure (core, error);
  }
  g_mutex_unlock (&core->lock);
  g_clear_pointer (&ended, g_thread_join);
  return shut && end_copies (core, deadline_us, cancellable, error);
}

gint64
muster_async_saver_save_counter (MusterAsyncSaver *self)
{
  g_return_val_if_fail (self != NULL, 0);

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->core->lock);
  return self->core->counter;
}

void
muster_async_saver_set_save_counter (MusterAsyncSaver *self, gint64 counter)
{
  g_return_if_fail (self != NULL);

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->core->lock);
  self->core->counter = MAX (counter, self->core->counter);
}

GError *
muster_async_saver_last_failure (MusterAsyncSaver *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->core->lock);
  return self->core->last_failure != NULL ? g_error_copy (self->core->last_failure) : NULL;
}

void
muster_async_saver_status (MusterAsyncSaver *self, MusterSaveStatus *status)
{
  g_return_if_fail (self != NULL && status != NULL);

  g_mutex_lock (&self->core->lock);
  g_autoptr (MusterSaver) saver = g_object_ref (self->core->model->saver);
  g_mutex_unlock (&self->core->lock);
  muster_saver_status (saver, status);
}

MusterSaveMetrics
muster_async_saver_metrics (MusterAsyncSaver *self)
{
  g_return_val_if_fail (self != NULL, (MusterSaveMetrics){0});
  return muster_save_meter_read (self->core->meter);
}

/* --- its end --- */

/* Called on the saver's own thread, from its callback: the thread ends when it returns to its
 * loop. */
static void
shut_from_within (MusterAsyncCore *core)
{
  g_mutex_lock (&core->lock);
  core->is_shut = TRUE;
  g_mutex_unlock (&core->lock);
}

static void
muster_async_saver_dispose (GObject *object)
{
  MusterAsyncSaver *self = MUSTER_ASYNC_SAVER (object);
  MusterAsyncCore *core = self->core;
  g_autoptr (GError) error = NULL;
  if (core != NULL) {
    const gint64 wait_us = core->dispose_wait_us;
    const gint64 deadline_us = muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                                      wait_us > 0 ? wait_us : DISPOSE_WAIT_US);
    if (core->thread == g_thread_self ())
      shut_from_within (core);
    else if (!muster_async_saver_shutdown (self, deadline_us, NULL, &error))
      muster_log (G_LOG_LEVEL_WARNING, "save", "MESSAGE",
                  "an async saver was freed before it was shut down: %s", error->message);
    g_mutex_lock (&core->lock);
    g_clear_pointer (&core->thread,
                     g_thread_unref); /* the thread may be blocked, and ends by itself */
    g_mutex_unlock (&core->lock);
    g_clear_pointer (&self->core, muster_async_core_unref);
  }
  G_OBJECT_CLASS (muster_async_saver_parent_class)->dispose (object);
}

static void
muster_async_saver_class_init (MusterAsyncSaverClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = muster_async_saver_dispose;
}

static void
muster_async_saver_init (MusterAsyncSaver *self G_GNUC_UNUSED)
{
}
