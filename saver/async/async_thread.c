// SPDX-License-Identifier: Apache-2.0
/* Saves in the background: the thread. It writes one request after the other from its snapshot,
 * whose memory it frees as soon as the files are written and no other tier may need it. */
#include "saver/async/async_private.h"

#include "base/log_private.h"

#include <sys/resource.h>

/* Training has priority. On an engine in this process the writing threads inherit it. */
#define NICE 10

#define DROP_US (5 * MUSTER_SECOND)

MusterAsyncModel *
muster_async_model_new (MusterSaver *saver, MusterSession *session)
{
  MusterAsyncModel *self = g_new0 (MusterAsyncModel, 1);
  g_atomic_ref_count_init (&self->refs);
  self->saver = g_object_ref (saver);
  self->session = g_object_ref (session);
  self->bytes = muster_snapshot_size (muster_meta_graph_graph (saver->meta_graph),
                                      saver->info.save_tensor, &self->is_exact);
  return self;
}

MusterAsyncModel *
muster_async_model_ref (MusterAsyncModel *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_async_model_unref (MusterAsyncModel *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_object_unref (self->saver);
  g_object_unref (self->session);
  g_free (self);
}

void
muster_async_request_free (MusterAsyncRequest *self)
{
  muster_save_ticket_unref (self->ticket);
  muster_async_model_unref (self->model);
  g_clear_pointer (&self->tensors, g_ptr_array_unref);
  g_free (self->directory);
  g_free (self);
}

MusterAsyncCore *
muster_async_core_new (MusterAsyncModel *model)
{
  MusterAsyncCore *self = g_new0 (MusterAsyncCore, 1);
  g_atomic_ref_count_init (&self->refs);
  self->clock = g_object_ref (model->saver->clock);
  self->meter = muster_save_meter_new (muster_clock_now_us (self->clock));
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->model = muster_async_model_ref (model);
  g_queue_init (&self->waiting);
  return self;
}

MusterAsyncCore *
muster_async_core_ref (MusterAsyncCore *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_async_core_unref (MusterAsyncCore *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  for (gsize i = 0; i < MUSTER_MAX_SNAPSHOTS; i++) {
    muster_snapshot_free (self->slots[i].snapshot);
    muster_async_model_unref (self->slots[i].model);
  }
  muster_async_model_unref (self->model);
  muster_save_meter_free (self->meter);
  g_clear_pointer (&self->finished_owner, g_bytes_unref);
  g_object_unref (self->clock);
  g_clear_pointer (&self->replaced, muster_save_ticket_unref);
  g_clear_error (&self->failure);
  g_clear_error (&self->last_failure);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

gboolean
muster_async_core_is_idle (MusterAsyncCore *self)
{
  return self->holder == NULL && self->writing == NULL && g_queue_is_empty (&self->waiting);
}

gboolean
muster_async_core_check_caller (MusterAsyncCore *self, GError **error)
{
  if (g_thread_self () != self->thread && g_thread_self () != self->holder)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the saver was called from one of its own saves, which would deadlock; call "
                      "it from another thread, or later");
}

/* --- the thread --- */

typedef struct {
  MusterAsyncCore *core;
  MusterAsyncRequest *request;
  gboolean is_dropped;
} Write;

/* Drops the snapshot. For a save that was given up it hardly waits, because the master may be
 * silent. */
static void
drop_once (Write *self)
{
  GCancellable *cancellable = muster_save_ticket_cancellable (self->request->ticket);
  const gint64 timeout_us =
      g_cancellable_is_cancelled (cancellable) ? MUSTER_DROP_GIVEN_UP_US : DROP_US;

  if (!self->is_dropped)
    muster_snapshot_drop (self->request->slot->snapshot, timeout_us);
  self->is_dropped = TRUE;
}

/* Frees the shadows' memory before the files are synced, unless another tier may need them. */
static void
on_written (gpointer data)
{
  Write *self = data;
  if (self->request->due == 0)
    drop_once (self);
  muster_save_ticket_tell (self->request->ticket, MUSTER_SAVE_WRITTEN);
}

void
muster_async_core_note_failure (MusterAsyncCore *self, MusterSaveTicket *ticket,
                                const GError *failure)
{
  if (g_cancellable_is_cancelled (muster_save_ticket_cancellable (ticket)))
    return;
  g_clear_error (&self->failure);
  g_clear_error (&self->last_failure);
  self->failure = g_error_copy (failure);
  self->last_failure = g_error_copy (failure);
}

/* The result of a write. */
typedef struct {
  const GError *failure; /* (nullable) */
  MusterSaved *saved;    /* without a failure */
} Outcome;

/* With the lock held. If the graph doesn't give the size, the first checkpoint does. */
static void
note_durable (MusterAsyncRequest *request, const MusterSaved *saved)
{
  if (!request->model->is_exact)
    request->model->bytes = MAX (request->model->bytes, saved->bytes);
}

void
muster_async_resolve_ticket (MusterSaveTicket *ticket, MusterSaved *saved)
{
  const gboolean is_skipped = saved->skipped;
  g_autoptr (GError) error =
      is_skipped ? g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "%s: skipped: %s",
                                muster_save_ticket_path (ticket), saved->why)
                 : NULL;

  g_autofree char *why = g_strdup (saved->why);
  muster_save_ticket_settle (ticket, is_skipped ? MUSTER_SAVE_SKIPPED : MUSTER_SAVE_DURABLE, why,
                             saved, error);
}

/* Records everything before waiting threads are notified. */
static void
settle (MusterAsyncCore *self, MusterAsyncRequest *request, gint64 started_us,
        const Outcome *outcome)
{
  const gboolean is_durable = outcome->failure == NULL && !outcome->saved->skipped;
  muster_save_meter_written (self->meter, started_us, muster_clock_now_us (self->clock),
                             is_durable);
  g_mutex_lock (&self->lock);
  if (outcome->failure != NULL)
    muster_async_core_note_failure (self, request->ticket, outcome->failure);
  else if (is_durable)
    note_durable (request, outcome->saved);
  request->slot->is_taken = FALSE; /* so that a thread that is notified may save at once */
  g_mutex_unlock (&self->lock);
  if (outcome->failure != NULL)
    muster_save_ticket_settle (request->ticket, MUSTER_SAVE_FAILED, NULL, NULL, outcome->failure);
  else
    muster_async_resolve_ticket (request->ticket, outcome->saved);
  muster_save_ticket_notify (request->ticket);
  if (self->finished != NULL)
    self->finished (request->ticket, self->finished_data);
}

static void
write_one (MusterAsyncCore *self, MusterAsyncRequest *request)
{
  MusterSnapshot *snapshot = request->slot->snapshot;
  Write write = {self, request, FALSE};
  g_auto (MusterSaved) saved = {0};
  const char *path = muster_save_ticket_path (request->ticket);
  g_autofree char *directory =
      request->due != 0 ? g_strdup (request->directory) : g_path_get_dirname (path);
  MusterSaveHow how = {.prefix = request->due != 0 ? NULL : path,
                       .due = request->due,
                       .save_tensor = muster_snapshot_save_tensor (snapshot),
                       .unlisted = request->unlisted,
                       .tensors = request->tensors,
                       .written = on_written,
                       .written_data = &write};
  gint64 started_us = muster_clock_now_us (self->clock);
  g_autoptr (GError) failure = NULL;

  request->ticket->graph = muster_graph_ref (muster_snapshot_graph (snapshot));
  muster_log (G_LOG_LEVEL_DEBUG, "save", "MESSAGE",
              "Starting async checkpoint save on the device: %s",
              muster_snapshot_device (snapshot));
  (void)muster_saver_save_for_ticket (request->model->saver, request->model->session, directory,
                                      muster_save_ticket_step (request->ticket), &how,
                                      request->ticket, &saved, MUSTER_WAIT_FOREVER,
                                      muster_save_ticket_cancellable (request->ticket), &failure);
  drop_once (&write);
  settle (self, request, started_us, &(Outcome){failure, &saved});
}

/* With the lock held. */
static void
write_next (MusterAsyncCore *self)
{
  MusterAsyncRequest *request = g_queue_pop_head (&self->waiting);
  self->writing = request;
  g_mutex_unlock (&self->lock);
  write_one (self, request);
  g_mutex_lock (&self->lock);
  self->writing = NULL;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  muster_async_request_free (request);
  g_mutex_lock (&self->lock);
}

gpointer
muster_async_core_thread (gpointer core)
{
  MusterAsyncCore *self = core;
  (void)setpriority (PRIO_PROCESS, 0, NICE); /* on Linux this affects only the calling thread */
  g_mutex_lock (&self->lock);
  for (;;) {
    if (!g_queue_is_empty (&self->waiting))
      write_next (self);
    else if (self->is_shut && self->holder == NULL)
      break;
    else
      g_cond_wait (&self->changed, &self->lock);
  }
  self->is_over = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  muster_log (G_LOG_LEVEL_DEBUG, "save", "MESSAGE",
              "Async save thread reached the end of the execution.");
  muster_async_core_unref (self);
  return NULL;
}
