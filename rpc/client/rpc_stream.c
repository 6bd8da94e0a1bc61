// SPDX-License-Identifier: Apache-2.0
/* A call whose response is a stream. Messages are read ahead, up to a limit, and taken by the
 * caller's thread. */
#include "rpc/client/rpc_call_private.h"

#include "base/blocking_private.h"
#include "base/wait_private.h"
#include "rpc/fork_private.h"

/* Maximum number of messages read before the caller takes them; then the server has to wait. */
#define MAX_AHEAD 64

/* The caller's handle and the running batches each hold a reference. Batches are started only while
 * the handle exists, which holds the client, so that its queue isn't shut down. */
struct _MusterRpcStream {
  gatomicrefcount refs;
  MusterRpcClient *client;   /* (owned) (nullable) until it is freed */
  MusterRpcChannel *channel; /* (owned) */
  grpc_call *call;           /* (owned) */
  GList open;                /* in the channel's list */
  MusterRpcTag opened, received, ended;
  grpc_byte_buffer *request; /* (owned) */
  grpc_metadata_array initial, trailing;
  MusterRpcOutcome outcome;

  GMutex lock;               /* guards all below */
  GCond changed;             /* of what next () waits for */
  GQueue messages;           /* (element-type GBytes) */
  grpc_byte_buffer *message; /* (owned) (nullable) gRPC's while is_receiving */
  gboolean is_receiving;
  gboolean is_at_end; /* no more messages */
  gboolean has_ended; /* outcome is there */
  gboolean is_freed;
  gint64 quiet_us;              /* since when nothing has come, or silence was noted */
  GError *broken;               /* (owned) (nullable) an error of a message, or the reason of
                                   muster_rpc_stream_end () */
  MusterRpcStreamNotify notify; /* (nullable) */
  gpointer notify_data;
};

static void
stream_unref (MusterRpcStream *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  muster_rpc_channel_leave (self->channel, &self->open);
  grpc_call_unref (self->call);
  muster_rpc_channel_unref (self->channel);
  g_clear_pointer (&self->request, grpc_byte_buffer_destroy);
  g_clear_pointer (&self->message, grpc_byte_buffer_destroy);
  grpc_metadata_array_destroy (&self->initial);
  grpc_metadata_array_destroy (&self->trailing);
  grpc_slice_unref (self->outcome.text);
  g_queue_clear_full (&self->messages, (GDestroyNotify)g_bytes_unref);
  g_clear_error (&self->broken);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

static void
start_batch (MusterRpcStream *self, const grpc_op *ops, gsize n_ops, MusterRpcTag *tag)
{
  g_atomic_ref_count_inc (&self->refs);
  grpc_call_error refused = grpc_call_start_batch (self->call, ops, n_ops, tag, NULL);
  g_assert (refused == GRPC_CALL_OK);
}

/* Call with the lock held. */
static void
notify_change (MusterRpcStream *self)
{
  g_cond_broadcast (&self->changed);
  if (self->notify != NULL)
    self->notify (self->notify_data);
}

/* Call with the lock held. */
static void
receive_more (MusterRpcStream *self)
{
  if (self->is_receiving || self->is_at_end || self->is_freed || self->messages.length >= MAX_AHEAD)
    return;
  self->is_receiving = TRUE;
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &self->message;
  start_batch (self, &op, 1, &self->received);
}

static void
on_opened (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  stream_unref (owner);
}

static void
on_received (gpointer owner, gboolean ok)
{
  MusterRpcStream *self = owner;
  muster_rpc_channel_note_heard (self->channel);
  g_mutex_lock (&self->lock);
  self->is_receiving = FALSE;
  self->quiet_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (grpc_byte_buffer) message = g_steal_pointer (&self->message);
  GBytes *bytes = ok && message != NULL && self->broken == NULL
                      ? muster_grpc_buffer_take_bytes (message, &self->broken)
                      : NULL;
  if (bytes != NULL)
    g_queue_push_tail (&self->messages, bytes);
  else
    self->is_at_end = TRUE;
  if (self->broken != NULL)
    grpc_call_cancel (self->call, NULL);
  receive_more (self);
  notify_change (self);
  g_mutex_unlock (&self->lock);
  stream_unref (self);
}

static void
on_ended (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  MusterRpcStream *self = owner;
  g_mutex_lock (&self->lock);
  self->has_ended = TRUE;
  notify_change (self);
  g_mutex_unlock (&self->lock);
  stream_unref (self);
}

static void
start (MusterRpcStream *self, const MusterRpcOptions *options)
{
  g_auto (MusterRpcMetadata) metadata;
  muster_rpc_metadata_init (&metadata, self->client, options);
  grpc_op opening[4] = {0};
  muster_rpc_client_opening_ops (opening, &metadata, self->request, options->wait_for_ready);
  opening[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  opening[3].data.recv_initial_metadata.recv_initial_metadata = &self->initial;
  start_batch (self, opening, G_N_ELEMENTS (opening), &self->opened);

  grpc_op ending = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
  ending.data.recv_status_on_client.trailing_metadata = &self->trailing;
  ending.data.recv_status_on_client.status = &self->outcome.status;
  ending.data.recv_status_on_client.status_details = &self->outcome.text;
  start_batch (self, &ending, 1, &self->ended);

  g_mutex_lock (&self->lock);
  receive_more (self);
  g_mutex_unlock (&self->lock);
}

MusterRpcStream *
muster_rpc_client_open (MusterRpcClient *client, const char *method, MusterRope *request,
                        const MusterRpcOptions *options, GError **error)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (!muster_rpc_client_check (client, request, options, now_us, error))
    return NULL;
  MusterRpcStream *self = g_new0 (MusterRpcStream, 1);
  g_atomic_ref_count_init (&self->refs);
  self->client = muster_rpc_client_ref (client);
  self->channel = muster_rpc_client_hold_channel (client);
  self->call = muster_rpc_channel_new_call (self->channel, method, options->deadline_us, now_us,
                                            muster_rpc_client_pump (client));
  self->open.data = self->call;
  muster_rpc_channel_enter (self->channel, &self->open);
  self->quiet_us = now_us;
  self->opened = (MusterRpcTag){.done = on_opened, .owner = self};
  self->received = (MusterRpcTag){.done = on_received, .owner = self};
  self->ended = (MusterRpcTag){.done = on_ended, .owner = self};
  self->request = muster_grpc_buffer_from_rope (request);
  self->outcome = (MusterRpcOutcome){
      .text = grpc_empty_slice (),
      .started_us = now_us,
      .deadline_us = options->deadline_us,
  };
  grpc_metadata_array_init (&self->initial);
  grpc_metadata_array_init (&self->trailing);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  g_queue_init (&self->messages);
  start (self, options);
  return self;
}

/* Call with the lock held. */
static gboolean
has_next (gpointer data)
{
  const MusterRpcStream *self = data;
  return self->messages.length > 0 || (self->is_at_end && self->has_ended);
}

/* The next result; no message and no error is the regular end. Call with the lock held. */
static GBytes *
take_next (MusterRpcStream *self, GCancellable *cancellable, GError **error)
{
  GBytes *message = g_queue_pop_head (&self->messages);
  gboolean is_over = self->is_at_end && self->has_ended;
  if (message != NULL)
    receive_more (self);
  else if (!is_over && !g_cancellable_set_error_if_cancelled (cancellable, error))
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "no message from '%s' yet",
                 muster_rpc_client_address (self->client));
  else if (!is_over)
    return NULL;
  else if (self->broken != NULL)
    g_propagate_error (error, g_error_copy (self->broken));
  else if (self->outcome.status != GRPC_STATUS_OK)
    muster_rpc_client_set_error (self->client, &self->outcome, NULL, error);
  return message;
}

/* FALSE, before the deadline, if the stream has been quiet for long. Call with the lock held. */
static gboolean
wait_until (MusterRpcStream *self, gint64 deadline_us, GCancellable *cancellable)
{
  const gint64 quiet_until_us = self->quiet_us + self->client->silence.stream_us;
  const gint64 until_us = MIN (deadline_us, quiet_until_us);
  return muster_wait_for (&self->changed, &self->lock, has_next, self, until_us, cancellable) ||
         g_cancellable_is_cancelled (cancellable) || deadline_us <= quiet_until_us;
}

/* Call with the lock held. */
static void
note_silence (MusterRpcStream *self)
{
  self->quiet_us = muster_clock_now_us (muster_system_clock ());
  muster_rpc_client_note_silence (self->client, self->channel);
}

GBytes *
muster_rpc_stream_next_until (MusterRpcStream *self, gint64 deadline_us, GCancellable *cancellable,
                              GError **error)
{
  if (!muster_rpc_check_process (error))
    return NULL;
  if (deadline_us > 0)
    muster_about_to_block ();
  g_mutex_lock (&self->lock);
  while (!wait_until (self, deadline_us, cancellable))
    note_silence (self);
  GBytes *message = take_next (self, cancellable, error);
  g_mutex_unlock (&self->lock);
  return message;
}

void
muster_rpc_stream_end (MusterRpcStream *self, const GError *why)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  if (self->broken == NULL && !self->has_ended)
    self->broken = g_error_copy (why);
  grpc_call_cancel (self->call, NULL);
  g_mutex_unlock (&self->lock);
}

void
muster_rpc_stream_set_notify (MusterRpcStream *self, MusterRpcStreamNotify notify,
                              gpointer user_data)
{
  g_mutex_lock (&self->lock);
  self->notify = notify;
  self->notify_data = user_data;
  g_mutex_unlock (&self->lock);
}

void
muster_rpc_stream_free (MusterRpcStream *self)
{
  if (self == NULL || muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->lock);
  self->is_freed = TRUE;
  self->notify = NULL;
  g_mutex_unlock (&self->lock);
  grpc_call_cancel (self->call, NULL);
  g_autoptr (MusterRpcClient) client = g_steal_pointer (&self->client);
  stream_unref (self);
}
