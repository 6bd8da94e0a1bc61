// SPDX-License-Identifier: Apache-2.0
/* A client: its channel, and unary calls. A call that fails for a token or a full server is made
 * again; its outcome becomes an error with the cause. */
#include "rpc/client/rpc_call_private.h"

#include "base/blocking_private.h"
#include "base/log_private.h"
#include "rpc/address_private.h"
#include "rpc/fork_private.h"
#include "rpc/messages/rpc_message_private.h"

#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

/* Queues kept for later unary calls; more threads than this at once create their own. */
#define MAX_IDLE_QUEUES 16

/* How often gRPC reconnects by itself. A worker may wait for its master for hours, and a failed
 * connection costs gRPC about 200 µs; callers and waiters (rpc_reach.c) detect the master sooner,
 * and at a lower cost. */
#define FIRST_RECONNECT_MS 100
#define LAST_RECONNECT_MS  30000
/* How long an attempt may take, up to HTTP/2's settings: only after it gRPC looks the name up
 * again, whose old address may be silent. Later attempts take longer, as their pauses do. */
#define CONNECT_MS 5000
/* Minimum interval between two lookups of a name whose address doesn't answer. */
#define MIN_RESOLVE_MS 5000

/* A call that ends at a deadline after less than this says nothing about its connection. */
#define LEAST_SILENCE_US MUSTER_SECOND

/* A call may end this much before its deadline, which the server's gRPC counts from when it last
 * looked at the clock: on a busy machine some milliseconds before the call came. */
#define DEADLINE_GRAIN_US (20 * MUSTER_MILLISECOND)

/* gRPC's target for an address: a numeric one needs no lookup, and a path is part of a URI. */
static char *
target_of (const char *address)
{
  char *uri = muster_address_unix_uri (address);
  if (uri != NULL)
    return uri;
  g_autofree char *host = NULL;
  guint16 port;
  const char *scheme = "dns:///";
  if (muster_address_parse (address, &host, &port, NULL) && g_hostname_is_ip_address (host))
    scheme = strchr (host, ':') != NULL ? "ipv6:" : "ipv4:";
  return g_strconcat (scheme, address, NULL);
}

static MusterRpcChannel *
channel_new (grpc_channel *channel, guint version)
{
  MusterRpcChannel *self = g_new0 (MusterRpcChannel, 1);
  self->channel = channel;
  self->version = version;
  g_mutex_init (&self->lock);
  g_atomic_ref_count_init (&self->refs);
  return self;
}

MusterRpcChannel *
muster_rpc_client_open_channel (MusterRpcClient *self, gboolean is_apart)
{
  grpc_arg args[] = {
      muster_grpc_arg (GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, MUSTER_MAX_MESSAGE),
      muster_grpc_arg (GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
      muster_grpc_arg (GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, FIRST_RECONNECT_MS),
      muster_grpc_arg (GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, LAST_RECONNECT_MS),
      muster_grpc_arg (GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_MS),
      muster_grpc_arg (GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, MIN_RESOLVE_MS),
      /* A step mustn't be retried without the caller's knowledge. */
      muster_grpc_arg (GRPC_ARG_ENABLE_RETRIES, 0),
      /* A proxy in the environment is for the web, not for a cluster. */
      muster_grpc_arg (GRPC_ARG_ENABLE_HTTP_PROXY, 0),
      /* Equal channels of a process share their connections. */
      muster_grpc_arg (GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, is_apart),
      muster_grpc_socket_arg (),
  };
  guint version;
  g_autofree char *target = target_of (self->address);
  grpc_channel *channel = muster_rpc_credentials_open_channel (
      self->credentials, target, &(grpc_channel_args){G_N_ELEMENTS (args), args}, &version);
  return channel_new (channel, version);
}

void
muster_rpc_channel_unref (MusterRpcChannel *self)
{
  if (self == NULL || muster_rpc_is_forked () || !g_atomic_ref_count_dec (&self->refs))
    return;
  grpc_channel_destroy (self->channel);
  g_mutex_clear (&self->lock);
  g_free (self);
}

MusterRpcChannel *
muster_rpc_channel_ref (MusterRpcChannel *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_rpc_channel_enter (MusterRpcChannel *self, GList *open)
{
  g_mutex_lock (&self->lock);
  g_queue_push_tail_link (&self->open, open);
  const gboolean is_dead = self->is_dead;
  g_mutex_unlock (&self->lock);
  if (is_dead)
    muster_rpc_channel_fail (open->data);
}

void
muster_rpc_channel_leave (MusterRpcChannel *self, GList *open)
{
  g_mutex_lock (&self->lock);
  g_queue_unlink (&self->open, open);
  g_mutex_unlock (&self->lock);
}

MusterRpcClient *
muster_rpc_client_new_over (grpc_channel *channel, const char *address)
{
  MusterRpcClient *self = g_new0 (MusterRpcClient, 1);
  g_atomic_ref_count_init (&self->refs);
  self->address = g_strdup (address);
  self->channel = channel != NULL ? channel_new (channel, 0) : NULL;
  g_mutex_init (&self->channel_lock);
  g_mutex_init (&self->lock);
  muster_rpc_client_init_reach (self);
  self->silence = muster_rpc_silence;
  self->idle = g_ptr_array_new ();
  return self;
}

MusterRpcClient *
muster_rpc_client_new (const char *address, MusterRpcCredentials *credentials)
{
  MusterRpcClient *self = muster_rpc_client_new_over (NULL, address);
  self->credentials = credentials != NULL ? muster_rpc_credentials_ref (credentials) : NULL;
  self->is_token_exposed = muster_rpc_credentials_has_token (credentials) &&
                           !muster_rpc_credentials_has_tls (credentials) &&
                           !muster_address_is_loopback (address);
  return self;
}

MusterRpcChannel *
muster_rpc_client_hold_channel (MusterRpcClient *self)
{
  MusterRpcChannel *before = NULL;
  muster_grpc_init ();
  g_mutex_lock (&self->channel_lock);
  if (self->channel == NULL ||
      self->channel->version != muster_rpc_credentials_version (self->credentials)) {
    before = self->channel;
    g_atomic_pointer_set (&self->channel, muster_rpc_client_open_channel (self, FALSE));
  }
  MusterRpcChannel *held = muster_rpc_channel_ref (self->channel);
  g_mutex_unlock (&self->channel_lock);
  muster_rpc_channel_unref (before);
  return held;
}

gboolean
muster_rpc_client_has_channel (MusterRpcClient *self)
{
  return g_atomic_pointer_get (&self->channel) != NULL;
}

gboolean
muster_rpc_client_is_connected (MusterRpcClient *self)
{
  if (muster_rpc_is_forked () || !muster_rpc_client_has_channel (self))
    return FALSE;
  g_autoptr (MusterRpcChannel) held = muster_rpc_client_hold_channel (self);
  return grpc_channel_check_connectivity_state (held->channel, 0) == GRPC_CHANNEL_READY;
}

MusterRpcClient *
muster_rpc_client_ref (MusterRpcClient *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_rpc_client_unref (MusterRpcClient *self)
{
  if (self == NULL || muster_rpc_is_forked () || !g_atomic_ref_count_dec (&self->refs))
    return;
  for (guint i = 0; i < self->idle->len; i++)
    grpc_completion_queue_destroy (self->idle->pdata[i]);
  g_ptr_array_unref (self->idle);
  g_clear_pointer (&self->channel, muster_rpc_channel_unref);
  if (self->pump != NULL)
    grpc_completion_queue_shutdown (self->pump); /* this may be its thread: no join */
  g_mutex_clear (&self->channel_lock);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  muster_reach_prober_clear (&self->prober);
  muster_rpc_credentials_unref (self->credentials);
  g_free (self->address);
  g_free (self);
}

const char *
muster_rpc_client_address (MusterRpcClient *self)
{
  return self->address;
}

static grpc_completion_queue *
take_queue (MusterRpcClient *self)
{
  muster_grpc_init ();
  g_mutex_lock (&self->lock);
  grpc_completion_queue *queue =
      self->idle->len > 0 ? g_ptr_array_steal_index_fast (self->idle, self->idle->len - 1) : NULL;
  g_mutex_unlock (&self->lock);
  return queue != NULL ? queue : grpc_completion_queue_create_for_pluck (NULL);
}

static void
give_queue (MusterRpcClient *self, grpc_completion_queue *queue)
{
  g_mutex_lock (&self->lock);
  if (self->idle->len < MAX_IDLE_QUEUES)
    g_ptr_array_add (self->idle, g_steal_pointer (&queue));
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&queue, grpc_completion_queue_destroy);
}

static gpointer
pump (gpointer queue)
{
  muster_grpc_serve (queue);
  grpc_completion_queue_destroy (queue);
  return NULL;
}

grpc_completion_queue *
muster_rpc_client_pump (MusterRpcClient *self)
{
  muster_grpc_init ();
  g_mutex_lock (&self->lock);
  if (self->pump == NULL) {
    self->pump = grpc_completion_queue_create_for_next (NULL);
    g_thread_unref (g_thread_new ("muster-streams", pump, self->pump));
  }
  g_mutex_unlock (&self->lock);
  return self->pump;
}

grpc_call *
muster_rpc_channel_new_call (MusterRpcChannel *self, const char *method, gint64 deadline_us,
                             gint64 now_us, grpc_completion_queue *queue)
{
  grpc_slice path = grpc_slice_from_copied_string (method);
  grpc_call *call =
      grpc_channel_create_call (self->channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue, path, NULL,
                                muster_grpc_deadline (deadline_us, now_us), NULL);
  grpc_slice_unref (path);
  return call;
}

void
muster_rpc_client_opening_ops (grpc_op ops[3], MusterRpcMetadata *metadata,
                               grpc_byte_buffer *request, gboolean wait_for_ready)
{
  ops[0] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
  ops[0].data.send_initial_metadata.metadata = metadata->items;
  ops[0].data.send_initial_metadata.count = metadata->n_items;
  ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET |
                 (wait_for_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY : 0);
  ops[1] = (grpc_op){.op = GRPC_OP_SEND_MESSAGE};
  ops[1].data.send_message.send_message = request;
  ops[2] = (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
}

/* No answer came in time: reports whether gRPC had a connection, which takes a first word of the
 * server's. */
static void
set_timeout_error (MusterRpcClient *self, gint64 waited_us, GError **error)
{
  g_autofree char *waited = muster_format_duration (waited_us);
  muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, MUSTER_NO_ANSWER_FROM "'%s' in %s%s",
               self->address, waited,
               muster_rpc_client_is_connected (self) ? "" : ": no gRPC connection");
}

static void
set_exposed_error (MusterRpcClient *self, GError **error)
{
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "refused to send the token to '%s' in plain text; use grpcs://%s", self->address,
               self->address);
}

gboolean
muster_rpc_client_check (MusterRpcClient *self, const MusterRope *request,
                         const MusterRpcOptions *options, gint64 now_us, GError **error)
{
  if (!muster_rpc_check_process (error))
    return FALSE;
  if (self->is_token_exposed) {
    set_exposed_error (self, error);
    return FALSE;
  }
  muster_rpc_credentials_refresh (self->credentials);
  if (options->deadline_us <= now_us) {
    set_timeout_error (self, 0, error);
    return FALSE;
  }
  return muster_rpc_headers_check (options, error) && muster_grpc_check_size (request, error);
}

/* A server that stops resets its open calls without a status: the core then reports CANCELLED. To
 * the caller the server has gone away; nobody cancelled the step. */
static gboolean
was_cut_off (grpc_status_code status, const char *text)
{
  return status == GRPC_STATUS_CANCELLED && muster_rpc_is_end (text);
}

/* A gateway passes on what its client of the master said; the text after these words is the
 * master's address and the cause. */
static const char *
cause_behind_gateway (const char *text)
{
  return g_str_has_prefix (text, MUSTER_NO_ANSWER_FROM) ? text + strlen (MUSTER_NO_ANSWER_FROM)
                                                        : NULL;
}

/* gRPC's servers answer a method that they don't have without a text. */
static void
set_answered_error (MusterRpcClient *self, grpc_status_code status, const char *text,
                    GError **error)
{
  if (*text != '\0')
    muster_fail (error, muster_error_from_wire (status), "%s", text);
  else if (status == GRPC_STATUS_UNIMPLEMENTED)
    muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                 "'%s' doesn't implement this call, as TensorFlow's server doesn't; put a gateway "
                 "in front of it: `muster serve --master=%s%s`",
                 self->address,
                 muster_rpc_credentials_has_tls (self->credentials) ? "grpcs://" : "",
                 self->address);
  else
    muster_fail (error, muster_error_from_wire (status), "'%s' answered '%s' without details",
                 self->address, muster_error_name ((int)status));
}

void
muster_rpc_client_set_error (MusterRpcClient *self, const MusterRpcOutcome *outcome,
                             GCancellable *cancellable, GError **error)
{
  if (outcome->status == GRPC_STATUS_CANCELLED &&
      g_cancellable_set_error_if_cancelled (cancellable, error))
    return;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (outcome->status == GRPC_STATUS_DEADLINE_EXCEEDED &&
      muster_deadline_remaining (outcome->deadline_us, now_us) <= DEADLINE_GRAIN_US) {
    set_timeout_error (self, now_us - outcome->started_us, error);
    return;
  }
  g_autofree char *text = g_utf8_make_valid ((const char *)GRPC_SLICE_START_PTR (outcome->text),
                                             (gssize)GRPC_SLICE_LENGTH (outcome->text));
  const char *behind = cause_behind_gateway (text);
  if (outcome->status == GRPC_STATUS_UNAVAILABLE && behind != NULL) {
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "'%s' gets no answer from its master %s",
                 self->address, behind);
  } else if (outcome->status == GRPC_STATUS_UNAVAILABLE || was_cut_off (outcome->status, text)) {
    MusterError code;
    const char *cause = muster_rpc_cause (text, self->credentials, &code);
    if (muster_rpc_is_unconnected (text))
      muster_rpc_client_note_unreachable (self);
    muster_fail (error, code, MUSTER_NO_ANSWER_FROM "'%s': %s", self->address, cause);
  } else {
    set_answered_error (self, outcome->status, text, error);
  }
}

void
muster_rpc_unary_drop_call (MusterRpcUnary *self)
{
  if (self->call != NULL)
    muster_rpc_channel_leave (self->channel, &self->open);
  g_clear_pointer (&self->call, grpc_call_unref);
}

void
muster_rpc_unary_clear (MusterRpcUnary *self)
{
  g_clear_pointer (&self->request, grpc_byte_buffer_destroy);
  g_clear_pointer (&self->answer, grpc_byte_buffer_destroy);
  grpc_metadata_array_destroy (&self->initial);
  grpc_metadata_array_destroy (&self->trailing);
  grpc_slice_unref (self->outcome.text);
  gpr_free ((void *)self->cause);
  muster_rpc_unary_drop_call (self);
  g_clear_pointer (&self->channel, muster_rpc_channel_unref);
}

void
muster_rpc_unary_start (MusterRpcUnary *self, MusterRpcClient *client, MusterRpcChannel *channel,
                        grpc_call *call, grpc_byte_buffer *request, const MusterRpcOptions *options,
                        gpointer tag)
{
  g_auto (MusterRpcMetadata) metadata;
  muster_rpc_metadata_init (&metadata, client, options);
  self->channel = channel;
  self->call = call;
  self->open.data = call;
  muster_rpc_channel_enter (channel, &self->open);
  self->request = request;
  self->outcome.text = grpc_empty_slice ();
  grpc_metadata_array_init (&self->initial);
  grpc_metadata_array_init (&self->trailing);

  grpc_op ops[6] = {0};
  muster_rpc_client_opening_ops (ops, &metadata, self->request, options->wait_for_ready);
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &self->initial;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &self->answer;
  ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[5].data.recv_status_on_client.trailing_metadata = &self->trailing;
  ops[5].data.recv_status_on_client.status = &self->outcome.status;
  ops[5].data.recv_status_on_client.status_details = &self->outcome.text;
  ops[5].data.recv_status_on_client.error_string = &self->cause;
  grpc_call_error refused = grpc_call_start_batch (call, ops, G_N_ELEMENTS (ops), tag, NULL);
  g_assert (refused == GRPC_CALL_OK);
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer call)
{
  grpc_call_cancel (call, NULL);
}

/* Waits for the end, also after a cancellation: gRPC owns the memory until then. */
static void
unary_wait (MusterRpcUnary *self, MusterRpcClient *client, grpc_completion_queue *queue,
            GCancellable *cancellable)
{
  gulong id = cancellable != NULL
                  ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), self->call, NULL)
                  : 0;
  const gpr_timespec pause = gpr_time_from_micros (client->silence.call_us, GPR_TIMESPAN);
  gpr_timespec until = gpr_time_add (gpr_now (GPR_CLOCK_MONOTONIC), pause);
  while (grpc_completion_queue_pluck (queue, self, until, NULL).type == GRPC_QUEUE_TIMEOUT) {
    muster_rpc_client_note_silence (client, self->channel);
    until = gpr_time_add (until, pause);
  }
  if (id != 0)
    g_cancellable_disconnect (cancellable, id);
}

static const char *
request_id_of (const MusterRpcOptions *options)
{
  for (gsize i = 0; i < options->n_headers; i++)
    if (g_str_equal (options->headers[i].key, MUSTER_REQUEST_HEADER))
      return options->headers[i].value;
  return NULL;
}

/* What a caller's log says of a call. */
static void
log_call (MusterRpcClient *self, const char *method, const MusterRpcOptions *options)
{
  muster_log (G_LOG_LEVEL_DEBUG, "request", "MUSTER_METHOD", method, "MUSTER_ADDRESS",
              self->address, "MUSTER_X_REQUEST_ID", request_id_of (options), "MESSAGE",
              "%s is called", method);
}

static void
log_answer (MusterRpcClient *self, const char *method, const MusterRpcOptions *options,
            const MusterRpcOutcome *outcome)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const char *status = muster_error_name ((int)outcome->status);
  muster_log (G_LOG_LEVEL_DEBUG, "response", "MUSTER_METHOD", method, "MUSTER_ADDRESS",
              self->address, "MUSTER_X_REQUEST_ID", request_id_of (options), "MUSTER_STATUS",
              status, "MUSTER_SECONDS", MUSTER_LOG_SECONDS (now_us - outcome->started_us),
              "MESSAGE", "%s: %s", method, status);
}

static void
call_once (MusterRpcClient *self, const char *method, MusterRope *request,
           const MusterRpcOptions *options, GCancellable *cancellable, MusterRpcUnary *unary)
{
  grpc_completion_queue *queue = take_queue (self);
  MusterRpcChannel *channel = muster_rpc_client_hold_channel (self);
  grpc_call *call = muster_rpc_channel_new_call (
      channel, method, options->deadline_us, muster_clock_now_us (muster_system_clock ()), queue);
  log_call (self, method, options);
  muster_rpc_unary_start (unary, self, channel, call, muster_grpc_buffer_from_rope (request),
                          options, unary);
  unary_wait (unary, self, queue, cancellable);
  give_queue (self, queue);
  if (muster_log_enabled (G_LOG_LEVEL_DEBUG))
    log_answer (self, method, options, &unary->outcome);
}

/* The renewals of leases have short deadlines. */
static void
note_timeout (MusterRpcClient *self, const MusterRpcUnary *unary)
{
  const gint64 waited_us = muster_clock_now_us (muster_system_clock ()) - unary->outcome.started_us;
  if (unary->outcome.status == GRPC_STATUS_DEADLINE_EXCEEDED && waited_us >= LEAST_SILENCE_US)
    muster_rpc_client_note_silence (self, unary->channel);
}

static void
call_again (MusterRpcClient *self, const char *method, MusterRope *request,
            const MusterRpcOptions *options, GCancellable *cancellable, MusterRpcUnary *unary)
{
  const MusterRpcOutcome before = {.started_us = unary->outcome.started_us,
                                   .deadline_us = unary->outcome.deadline_us};
  muster_rpc_unary_clear (unary);
  *unary = (MusterRpcUnary){.outcome = before};
  call_once (self, method, request, options, cancellable, unary);
}

/* A call that was refused for its token reached no handler. If the token was replaced meanwhile,
 * the call is made again; also one for which the server has no memory at the moment. */
GBytes *
muster_rpc_client_call (MusterRpcClient *self, const char *method, MusterRope *request,
                        const MusterRpcOptions *options, GCancellable *cancellable, GError **error)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (g_cancellable_set_error_if_cancelled (cancellable, error) ||
      !muster_rpc_client_check (self, request, options, now_us, error) ||
      !muster_rpc_client_probe_first (self, options, cancellable, error))
    return NULL;

  const MusterRpcOutcome before = {.started_us = now_us, .deadline_us = options->deadline_us};
  const guint version = muster_rpc_credentials_token_version (self->credentials);
  g_auto (MusterRpcUnary) unary = {.outcome = before};
  call_once (self, method, request, options, cancellable, &unary);
  if (unary.outcome.status == GRPC_STATUS_UNAUTHENTICATED &&
      muster_rpc_credentials_has_newer_token (self->credentials, version))
    call_again (self, method, request, options, cancellable, &unary);
  MusterRpcRefused refused = {0};
  while (muster_rpc_refused_wait (&refused, self, method, &unary, cancellable))
    call_again (self, method, request, options, cancellable, &unary);

  if (unary.outcome.status != GRPC_STATUS_OK) {
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return NULL;
    note_timeout (self, &unary);
    muster_rpc_client_set_error (self, &unary.outcome, cancellable, error);
    return NULL;
  }
  muster_rpc_client_note_answer (self, unary.channel);
  if (unary.answer != NULL)
    return muster_rpc_message_take_bytes (unary.answer, NULL, error);
  muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s' answered '%s' without a message", self->address,
               method);
  return NULL;
}

/* A call whose response is ignored. */
typedef struct {
  MusterRpcUnary unary;
  MusterRpcTag answered;
  MusterRpcClient *client; /* (owned) */
} Forgotten;

static void
on_forgotten (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  Forgotten *self = owner;
  muster_rpc_unary_clear (&self->unary);
  muster_rpc_client_unref (self->client);
  g_free (self);
}

void
muster_rpc_client_send_and_forget (MusterRpcClient *self, const char *method, MusterRope *request,
                                   gint64 timeout_us)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  MusterRpcOptions options = {.deadline_us = muster_deadline_after (now_us, timeout_us)};
  if (!muster_rpc_client_check (self, request, &options, now_us, NULL))
    return;
  Forgotten *forgotten = g_new0 (Forgotten, 1);
  forgotten->client = muster_rpc_client_ref (self);
  forgotten->answered = (MusterRpcTag){.done = on_forgotten, .owner = forgotten};
  MusterRpcChannel *channel = muster_rpc_client_hold_channel (self);
  grpc_call *call = muster_rpc_channel_new_call (channel, method, options.deadline_us, now_us,
                                                 muster_rpc_client_pump (self));
  muster_rpc_unary_start (&forgotten->unary, self, channel, call,
                          muster_grpc_buffer_from_rope (request), &options, &forgotten->answered);
}
