// SPDX-License-Identifier: Apache-2.0
#include "base/names_private.h"
#include "master/remote/remote_call_private.h"
#include "master/remote/remote_private.h"

/* Maximum size of the graphs' difference. */
#define MOST_DIFFERENCE 4096

#define MUSTER_TYPE_REMOTE_WATCH (muster_remote_watch_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteWatch, muster_remote_watch, MUSTER, REMOTE_WATCH, MusterWatch)

struct _MusterRemoteWatch {
  MusterWatch parent;
  MusterHeartbeat *heartbeat; /* (owned) (nullable) ends the stream if the session is lost */
  MusterRpcStream *stream;    /* (owned) */
  gint64 deadline_us;
  gboolean has_answered;
};

G_DEFINE_FINAL_TYPE (MusterRemoteWatch, muster_remote_watch, MUSTER_TYPE_WATCH)

MusterWatch *
muster_remote_watch_new (MusterRpcClient *client, MusterHeartbeat *heartbeat,
                         const char *session_handle, const MusterWatchFor *what, gint64 deadline_us,
                         GError **error)
{
  Muster__WatchRequest message = MUSTER__WATCH_REQUEST__INIT;
  message.session_handle = (char *)session_handle;
  if (what->ready_for_local_init_op != NULL)
    message.ready_for_local_init_op = (char *)what->ready_for_local_init_op;
  if (what->ready_op != NULL)
    message.ready_op = (char *)what->ready_op;
  if (what->model != NULL)
    message.model = (char *)what->model;
  if (what->task != NULL)
    message.task = (char *)what->task;
  g_autofree char *who = muster_remote_who ();
  message.who = who;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  MusterRpcOptions options = {.deadline_us = deadline_us};
  MusterRpcStream *stream =
      muster_rpc_client_open (client, "/muster.Readiness/Watch", &request, &options, error);
  if (stream == NULL)
    return NULL;
  MusterRemoteWatch *self = g_object_new (MUSTER_TYPE_REMOTE_WATCH, NULL);
  self->stream = stream;
  self->deadline_us = deadline_us;
  self->heartbeat = heartbeat != NULL ? muster_heartbeat_ref (heartbeat) : NULL;
  if (heartbeat != NULL)
    muster_heartbeat_watch_stream (heartbeat, stream, session_handle);
  return MUSTER_WATCH (self);
}

/* After its first message, a server is silent until something changes. */
static void
pass_on (const MusterRemoteWatch *self, GError *failure, GError **error)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (self->has_answered && muster_session_ran_out (failure, self->deadline_us, now_us)) {
    g_error_free (failure);
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                 "the readiness didn't change before the watch's deadline");
    return;
  }
  g_propagate_error (error, failure);
}

/* The next message, in arena. */
static const Muster__ReadinessState *
next_message (MusterRemoteWatch *self, MusterArena *arena, gint64 until_us,
              GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (GBytes) bytes =
      muster_rpc_stream_next_until (self->stream, until_us, cancellable, &failure);
  if (bytes == NULL && failure != NULL) {
    pass_on (self, g_steal_pointer (&failure), error);
    return NULL;
  }
  if (bytes == NULL) {
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "the server ended its watch over readiness");
    return NULL;
  }
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  const Muster__ReadinessState *message = muster_unpack (&muster__readiness_state__descriptor, data,
                                                         size, arena, "turn of readiness", error);
  if (message == NULL || message->error_code == 0)
    return message;
  muster_fail (error, muster_error_from_wire (message->error_code), "%s", message->error_message);
  return NULL;
}

static gboolean
remote_watch_next (MusterWatch *watch, MusterReadiness *readiness, gint64 until_us,
                   GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MusterRemoteWatch *self = MUSTER_REMOTE_WATCH (watch);
  const Muster__ReadinessState *from = next_message (self, arena, until_us, cancellable, error);
  if (from == NULL)
    return FALSE;
  self->has_answered = TRUE;
  *readiness = (MusterReadiness){
      .gate_open = from->gate_open,
      .is_ready = from->ready,
      .why_gate = muster_remote_text (from->why_gate, G_MAXSSIZE),
      .why_not_ready = muster_remote_text (from->why_not_ready, G_MAXSSIZE),
      .missing = from->n_missing > 0 ? muster_names_pack (from->missing, from->n_missing) : NULL,
      .keeps_announcements = from->keeps_announcements,
      .chief = from->chief != NULL ? muster_remote_announcement (from->chief) : NULL,
      .graph_difference = muster_remote_text (from->graph_difference, MOST_DIFFERENCE),
  };
  if (from->tasks >= 0 && from->min_tasks > from->tasks) {
    readiness->n_tasks = (guint)from->tasks;
    readiness->min_tasks = (guint)from->min_tasks;
  }
  return TRUE;
}

static void
muster_remote_watch_finalize (GObject *object)
{
  MusterRemoteWatch *self = MUSTER_REMOTE_WATCH (object);
  if (self->heartbeat != NULL)
    muster_heartbeat_unwatch_stream (self->heartbeat, self->stream);
  g_clear_pointer (&self->stream, muster_rpc_stream_free);
  g_clear_pointer (&self->heartbeat, muster_heartbeat_unref);
  G_OBJECT_CLASS (muster_remote_watch_parent_class)->finalize (object);
}

static void
muster_remote_watch_class_init (MusterRemoteWatchClass *klass)
{
  MUSTER_WATCH_CLASS (klass)->next = remote_watch_next;
  G_OBJECT_CLASS (klass)->finalize = muster_remote_watch_finalize;
}

static void
muster_remote_watch_init (MusterRemoteWatch *self G_GNUC_UNUSED)
{
}
