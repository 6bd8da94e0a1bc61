// SPDX-License-Identifier: Apache-2.0
/* Renews the leases of all sessions of a master with one call, from a background task. The same
 * call tells which sessions are lost, whose streams are then ended, and a server that is silent for
 * too long ends all of them. */
#include "master/remote/heartbeat_private.h"

#include "master/remote/remote_call_private.h"
#include "rpc/fork_private.h"
#include "rpc/proto/muster.pb-c.h"

/* Interval of renewals to a silent server. */
#define SILENT_PAUSE_US (1 * MUSTER_SECOND)

static const MusterHeartbeatPace default_pace = {
    .renew_us = 15 * MUSTER_SECOND,
    .answer_us = 10 * MUSTER_SECOND,
    .n_unanswered = 2,
};

struct _MusterHeartbeat {
  gatomicrefcount refs;
  MusterRpcClient *client; /* (owned) */
  MusterHeartbeatPace pace;

  GMutex lock;
  /* guarded by lock */
  MusterBackgroundTask *task; /* (owned) (nullable) from the first session on */
  GHashTable *sessions;       /* (owned) session -> its handle */
  GHashTable *streams;        /* (owned) MusterRpcStream -> its session's handle */
  gint64 due_us;
  gboolean is_unimplemented;
  guint n_unanswered;
};

MusterHeartbeat *
muster_heartbeat_new (MusterRpcClient *client, const MusterHeartbeatPace *pace)
{
  MusterHeartbeat *self = g_new0 (MusterHeartbeat, 1);
  g_atomic_ref_count_init (&self->refs);
  self->client = muster_rpc_client_ref (client);
  self->pace = pace != NULL ? *pace : default_pace;
  g_mutex_init (&self->lock);
  self->sessions = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  self->streams = g_hash_table_new_full (NULL, NULL, NULL, g_free);
  return self;
}

MusterHeartbeat *
muster_heartbeat_ref (MusterHeartbeat *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_heartbeat_unref (MusterHeartbeat *self)
{
  if (self == NULL || muster_rpc_is_forked () || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_clear_pointer (&self->task, muster_background_task_free);
  g_hash_table_unref (self->sessions);
  g_hash_table_unref (self->streams);
  g_mutex_clear (&self->lock);
  muster_rpc_client_unref (self->client);
  g_free (self);
}

/* Returns the handles (transfer full) NULL-terminated, and their number. */
static char **
handles_locked (MusterHeartbeat *self, gsize *n)
{
  g_autoptr (GStrvBuilder) handles = g_strv_builder_new ();
  GHashTableIter at;
  gpointer handle;
  g_hash_table_iter_init (&at, self->sessions);
  while (g_hash_table_iter_next (&at, NULL, &handle))
    g_strv_builder_add (handles, handle);
  *n = g_hash_table_size (self->sessions);
  return g_strv_builder_end (handles);
}

static void
end_stream (gpointer stream, gpointer handle G_GNUC_UNUSED, gpointer why)
{
  muster_rpc_stream_end (stream, why);
}

/* Ends all streams, whose readers get the error. */
static void
note_silence_locked (MusterHeartbeat *self)
{
  g_autofree char *duration =
      muster_format_duration (self->pace.n_unanswered * self->pace.answer_us);
  g_autoptr (GError) why =
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "'%s' has been silent for %s",
                   muster_rpc_client_address (self->client), duration);
  g_hash_table_foreach (self->streams, end_stream, (gpointer)why);
}

/* Ends the streams whose sessions are lost. */
static void
end_streams_locked (MusterHeartbeat *self, GHashTable *gone)
{
  GHashTableIter at;
  gpointer stream, handle;
  g_hash_table_iter_init (&at, self->streams);
  while (g_hash_table_iter_next (&at, &stream, &handle)) {
    if (!g_hash_table_contains (gone, handle))
      continue;
    g_autoptr (GError) why =
        g_error_new (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "'%s' no longer knows the session '%s'",
                     muster_rpc_client_address (self->client), (const char *)handle);
    muster_rpc_stream_end (stream, why);
  }
}

static gboolean
is_in (gpointer session G_GNUC_UNUSED, gpointer handle, gpointer gone)
{
  return g_hash_table_contains (gone, handle);
}

/* Takes the lost sessions; a server can't report more than were asked for. */
static void
take_gone (MusterHeartbeat *self, char **handles, gsize n)
{
  if (n == 0)
    return;
  g_autoptr (GHashTable) gone = g_hash_table_new (g_str_hash, g_str_equal);
  for (gsize i = 0; i < n; i++)
    g_hash_table_add (gone, handles[i]);
  g_mutex_lock (&self->lock);
  end_streams_locked (self, gone);
  g_hash_table_foreach_remove (self->sessions, is_in, gone);
  g_mutex_unlock (&self->lock);
}

/* Asks the server; FALSE with the call's error. */
static gboolean
ask (MusterHeartbeat *self, char **handles, gsize n, GCancellable *cancellable, GError **error)
{
  Muster__RenewRequest message = MUSTER__RENEW_REQUEST__INIT;
  message.session_handle = handles;
  message.n_session_handle = n;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  MusterRpcOptions options = {.deadline_us = muster_deadline_after (now_us, self->pace.answer_us)};
  const Muster__RenewResponse *answer =
      muster_remote_call (self->client, "/muster.Readiness/Renew", &request,
                          &muster__renew_response__descriptor, arena, &options, cancellable, error);
  if (answer == NULL)
    return FALSE;
  take_gone (self, answer->gone, MIN (answer->n_gone, n));
  return TRUE;
}

/* Handles the result; returns the instant of the next call. */
static gint64
take_outcome_locked (MusterHeartbeat *self, const GError *failure)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  self->is_unimplemented = muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED);
  if (self->is_unimplemented)
    return MUSTER_WAIT_FOREVER;
  if (!muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
    self->n_unanswered = 0;
    return muster_deadline_after (now_us, self->pace.renew_us);
  }
  if (++self->n_unanswered < self->pace.n_unanswered)
    return now_us;
  note_silence_locked (self); /* a server that was stopped finds a renewal when it continues */
  return muster_deadline_after (now_us, MIN (self->pace.renew_us, SILENT_PAUSE_US));
}

static gint64
renew (gpointer owner, GCancellable *cancellable)
{
  MusterHeartbeat *self = owner;
  gsize n;
  g_mutex_lock (&self->lock);
  gint64 due_us = self->due_us;
  g_auto (GStrv) handles = handles_locked (self, &n);
  if (n == 0 || self->is_unimplemented)
    due_us = MUSTER_WAIT_FOREVER;
  g_mutex_unlock (&self->lock);
  if (due_us > muster_clock_now_us (muster_system_clock ()))
    return due_us;
  g_autoptr (GError) failure = NULL;
  (void)ask (self, handles, n, cancellable, &failure); /* the failure is handled next */
  g_mutex_lock (&self->lock);
  due_us = self->due_us = take_outcome_locked (self, failure);
  g_mutex_unlock (&self->lock);
  return due_us;
}

void
muster_heartbeat_add_session (MusterHeartbeat *self, gconstpointer session, const char *handle)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_mutex_lock (&self->lock);
  gboolean is_first = g_hash_table_size (self->sessions) == 0;
  g_hash_table_insert (self->sessions, (gpointer)session, g_strdup (handle));
  if (is_first) {
    self->due_us = muster_deadline_after (now_us, self->pace.renew_us);
    self->n_unanswered = 0;
  }
  if (self->task == NULL)
    self->task = muster_background_task_new ("muster-sessions", renew, self, self->due_us);
  else if (is_first && !self->is_unimplemented)
    muster_background_task_wake (self->task);
  g_mutex_unlock (&self->lock);
}

void
muster_heartbeat_remove_session (MusterHeartbeat *self, gconstpointer session)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->sessions, session);
  g_mutex_unlock (&self->lock);
}

void
muster_heartbeat_watch_stream (MusterHeartbeat *self, MusterRpcStream *stream, const char *handle)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->streams, stream, g_strdup (handle));
  g_mutex_unlock (&self->lock);
}

void
muster_heartbeat_unwatch_stream (MusterHeartbeat *self, MusterRpcStream *stream)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  g_hash_table_remove (self->streams, stream);
  g_mutex_unlock (&self->lock);
}
