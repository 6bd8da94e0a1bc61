// SPDX-License-Identifier: Apache-2.0
/* A call at the server: its headers and caller, the request, the response or stream, and its
 * end. */
#include "rpc/server/rpc_server_state_private.h"

#include "base/memory_account_private.h"

#include <grpc/support/alloc.h>
#include <string.h>

#define AUTHORIZATION "authorization"

/* Messages up to this size are received even when memory runs short. */
#define SMALL_MESSAGE 65536
/* Tensors refer to the bytes of messages from this size on (graph/tensor_proto.c). */
#define KEPT_MESSAGE 4096
/* States that wait to be sent to one caller. */
#define MAX_QUEUED_STATES 4

static void on_requested (gpointer owner, gboolean ok);
static void on_received (gpointer owner, gboolean ok);
static void on_closed (gpointer owner, gboolean ok);
static void on_sent (gpointer owner, gboolean ok);

/* A header as text, made when it is first asked for. */
typedef struct {
  char *key, *value; /* (owned) */
} Header;

static void
header_free (gpointer data)
{
  Header *self = data;
  g_free (self->key);
  g_free (self->value);
  g_free (self);
}

MusterRpcCall *
muster_rpc_call_new (MusterRpcMethod *method)
{
  MusterRpcCall *self = g_new0 (MusterRpcCall, 1);
  g_atomic_ref_count_init (&self->refs);
  self->server = method->server;
  muster_rpc_server_ref_private (self->server);
  self->method = method;
  g_mutex_init (&self->lock);
  g_queue_init (&self->messages);
  grpc_metadata_array_init (&self->metadata);
  grpc_call_details_init (&self->details);
  self->requested = (MusterRpcTag){.done = on_requested, .owner = self, .is_brief = TRUE};
  self->received = (MusterRpcTag){.done = on_received, .owner = self};
  self->closed = (MusterRpcTag){.done = on_closed, .owner = self};
  self->sent = (MusterRpcTag){.done = on_sent, .owner = self};
  self->status_details = grpc_empty_slice ();
  return self;
}

MusterRpcCall *
muster_rpc_call_ref (MusterRpcCall *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

static void
drop_messages (MusterRpcCall *self)
{
  for (grpc_byte_buffer *left; (left = g_queue_pop_head (&self->messages)) != NULL;)
    grpc_byte_buffer_destroy (left);
}

void
muster_rpc_call_unref (MusterRpcCall *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  drop_messages (self);
  g_clear_pointer (&self->sending, grpc_byte_buffer_destroy);
  g_clear_pointer (&self->request, grpc_byte_buffer_destroy);
  g_clear_pointer (&self->call, grpc_call_unref);
  grpc_metadata_array_destroy (&self->metadata);
  grpc_call_details_destroy (&self->details);
  g_clear_object (&self->cancellable);
  g_free (self->status_text);
  grpc_slice_unref (self->status_details);
  g_slist_free_full (self->headers, header_free);
  g_free (self->peer);
  muster_memory_release (MUSTER_MEMORY_MESSAGES, self->n_counted);
  g_mutex_clear (&self->lock);
  muster_rpc_server_unref_private (self->server);
  g_free (self);
}

/* gRPC limits the size of a call's headers, but doesn't check their contents. NULL if it isn't
 * text. */
static char *
text_of (grpc_slice slice)
{
  gsize size = GRPC_SLICE_LENGTH (slice);
  const char *bytes = (const char *)GRPC_SLICE_START_PTR (slice);
  for (gsize i = 0; i < size; i++)
    if (!g_ascii_isprint (bytes[i]))
      return NULL;
  return g_strndup (bytes, size);
}

/* Call with the lock held, as below. */
static const char *
make_text (MusterRpcCall *self, const char *key)
{
  for (size_t i = 0; i < self->metadata.count; i++) {
    const grpc_metadata *item = &self->metadata.metadata[i];
    if (grpc_slice_str_cmp (item->key, key) != 0)
      continue;
    char *value = text_of (item->value);
    if (value == NULL)
      return NULL;
    Header *header = g_new (Header, 1);
    *header = (Header){g_strdup (key), value};
    self->headers = g_slist_prepend (self->headers, header);
    return value;
  }
  return NULL;
}

static const char *
find_text (MusterRpcCall *self, const char *key)
{
  for (GSList *at = self->headers; at != NULL; at = at->next) {
    const Header *header = at->data;
    if (g_str_equal (header->key, key))
      return header->value;
  }
  return make_text (self, key);
}

/* The token stays with what checks it. */
const char *
muster_rpc_call_header (MusterRpcCall *self, const char *key)
{
  if (g_str_equal (key, AUTHORIZATION))
    return NULL;
  g_mutex_lock (&self->lock);
  const char *value = find_text (self, key);
  g_mutex_unlock (&self->lock);
  return value;
}

static const grpc_slice *
find_authorization (MusterRpcCall *self)
{
  for (size_t i = 0; i < self->metadata.count; i++)
    if (grpc_slice_str_cmp (self->metadata.metadata[i].key, AUTHORIZATION) == 0)
      return &self->metadata.metadata[i].value;
  return NULL;
}

static void
identify (MusterRpcCall *self, MusterRpcCaller *caller)
{
  muster_rpc_guards_identify (self->server->guards, self->call, find_authorization (self), caller);
}

MusterRole
muster_rpc_call_role (MusterRpcCall *self)
{
  MusterRpcCaller caller;
  identify (self, &caller);
  return caller.role;
}

/* gRPC gives a URI, "ipv4:127.0.0.1:4711" or "ipv6:%5B::1%5D:4711". */
static char *
address_of (grpc_call *call)
{
  char *uri = grpc_call_get_peer (call);
  const char *address = uri;
  if (g_str_has_prefix (uri, "ipv4:") || g_str_has_prefix (uri, "ipv6:"))
    address = uri + strlen ("ipv4:");
  char *text = g_uri_unescape_string (address, NULL);
  text = text != NULL ? text : g_strdup (address);
  gpr_free (uri);
  return text;
}

const char *
muster_rpc_call_peer (MusterRpcCall *self)
{
  g_mutex_lock (&self->lock);
  if (self->peer == NULL)
    self->peer = address_of (self->call);
  g_mutex_unlock (&self->lock);
  return self->peer;
}

char *
muster_rpc_call_caller (MusterRpcCall *self)
{
  MusterRpcCaller caller;
  identify (self, &caller);
  if (caller.token_mark == 0 && *caller.name == '\0')
    return g_strdup ("");
  return g_strdup_printf ("%016" G_GINT64_MODIFIER "x %s", caller.token_mark, caller.name);
}

char *
muster_rpc_call_describe (MusterRpcCall *self)
{
  MusterRpcCaller caller;
  identify (self, &caller);
  GString *text = g_string_new (muster_rpc_call_peer (self));
  if (*caller.name != '\0')
    g_string_append_printf (text, ", certificate '%s'", caller.name);
  if (caller.token_line > 0)
    g_string_append_printf (text, ", token of line %u", caller.token_line);
  return g_string_free (text, FALSE);
}

gint64
muster_rpc_call_deadline_us (MusterRpcCall *self)
{
  return muster_grpc_deadline_us (self->deadline);
}

gint64
muster_rpc_call_deadline_within (MusterRpcCall *self, gint64 timeout_us)
{
  gint64 deadline_us = muster_rpc_call_deadline_us (self);
  if (timeout_us == 0)
    return deadline_us;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return MIN (deadline_us, muster_deadline_after (now_us, timeout_us));
}

gboolean
muster_rpc_call_is_gone (MusterRpcCall *self)
{
  g_mutex_lock (&self->lock);
  gboolean is_gone = self->is_gone;
  g_mutex_unlock (&self->lock);
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return is_gone || muster_rpc_call_deadline_us (self) <= now_us;
}

GCancellable *
muster_rpc_call_cancellable (MusterRpcCall *self)
{
  g_mutex_lock (&self->lock);
  if (self->cancellable == NULL) {
    self->cancellable = g_cancellable_new ();
    if (self->is_gone)
      g_cancellable_cancel (self->cancellable); /* no handler is connected yet */
  }
  g_mutex_unlock (&self->lock);
  return self->cancellable;
}

GCancellable *
muster_rpc_call_stop_cancellable (MusterRpcCall *self)
{
  return self->server->ending;
}

/* By the rule in rpc_server_private.h: not once it is gone. Takes a reference for the batch. */
static void
start_batch (MusterRpcCall *self, const grpc_op *ops, gsize n_ops, MusterRpcTag *tag)
{
  muster_rpc_call_ref (self);
  grpc_call_error refused = grpc_call_start_batch (self->call, ops, n_ops, tag, NULL);
  g_assert (refused == GRPC_CALL_OK); /* else the code breaks gRPC's rules */
}

static grpc_op
close_op (MusterRpcCall *self)
{
  grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
  op.data.recv_close_on_server.cancelled = &self->was_cancelled;
  return op;
}

/* Learns from now on that the caller has gone. A call that is answered soon doesn't need it: it
 * learns that with the answer, which costs one event less. */
static void
watch (gpointer data)
{
  MusterRpcCall *self = data;
  g_mutex_lock (&self->lock);
  if (!self->is_watched && !self->is_answered) {
    const grpc_op op = close_op (self);
    self->is_watched = TRUE;
    start_batch (self, &op, 1, &self->closed);
  }
  g_mutex_unlock (&self->lock);
}

/* text and details are the caller's, until the batch has begun. */
static grpc_op
status_op (MusterRpcCall *self, grpc_slice *text, grpc_metadata *details)
{
  grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
  op.data.send_status_from_server.status = (grpc_status_code)self->status;
  if (self->status_text != NULL) {
    *text = grpc_slice_from_copied_string (self->status_text);
    op.data.send_status_from_server.status_details = text;
  }
  if (!GRPC_SLICE_IS_EMPTY (self->status_details)) {
    details->key = grpc_slice_from_static_string (MUSTER_RPC_DETAILS);
    details->value = self->status_details;
    op.data.send_status_from_server.trailing_metadata = details;
    op.data.send_status_from_server.trailing_metadata_count = 1;
  }
  return op;
}

/* Sends the next message, and the status with the last one, unless a batch is running. Call with
 * the lock held. */
static void
send_next (MusterRpcCall *self)
{
  if (self->is_gone) {
    drop_messages (self);
    return;
  }
  gboolean is_last = self->is_answered && self->messages.length <= 1 && !self->has_sent_status;
  if (self->is_sending || (self->messages.length == 0 && !is_last))
    return;
  grpc_op ops[4] = {0};
  gsize n_ops = 0;
  grpc_slice text = grpc_empty_slice ();
  grpc_metadata details = {0};
  if (!self->has_sent_metadata)
    ops[n_ops++].op = GRPC_OP_SEND_INITIAL_METADATA;
  self->has_sent_metadata = TRUE;
  self->sending = g_queue_pop_head (&self->messages);
  if (self->sending != NULL) {
    ops[n_ops].op = GRPC_OP_SEND_MESSAGE;
    ops[n_ops++].data.send_message.send_message = self->sending;
  }
  if (is_last)
    ops[n_ops++] = status_op (self, &text, &details);
  self->ends_with_answer = is_last && !self->is_watched;
  if (self->ends_with_answer)
    ops[n_ops++] = close_op (self);
  self->has_sent_status = is_last;
  self->is_sending = TRUE;
  start_batch (self, ops, n_ops, &self->sent);
  grpc_slice_unref (text);
}

/* It needs no token. */
static gboolean
is_open (const MusterRpcCall *self)
{
  return self->method->role == MUSTER_ROLE_NONE;
}

static void
end (MusterRpcCall *self)
{
  g_autoptr (GCancellable) to_cancel = NULL;
  g_mutex_lock (&self->lock);
  self->is_gone = TRUE;
  drop_messages (self);
  if (self->was_cancelled && self->cancellable != NULL)
    to_cancel = g_object_ref (self->cancellable);
  g_mutex_unlock (&self->lock);
  muster_rpc_peers_leave (self->server->peers, self->connection, is_open (self), self->has_arrived);
  muster_rpc_server_count (self->server, -1);
  if (to_cancel != NULL)
    g_cancellable_cancel (to_cancel);
}

static void
on_closed (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  end (owner);
  muster_rpc_call_unref (owner);
}

static void
on_sent (gpointer owner, gboolean ok)
{
  MusterRpcCall *self = owner;
  g_mutex_lock (&self->lock);
  const gboolean has_ended = self->ends_with_answer; /* the next batch may set it */
  self->is_sending = FALSE;
  g_clear_pointer (&self->sending, grpc_byte_buffer_destroy);
  if (!ok)
    drop_messages (self);
  send_next (self);
  g_mutex_unlock (&self->lock);
  if (has_ended)
    end (self);
  muster_rpc_call_unref (self);
}

/* Queues a message (transfer full) (nullable) and, with is_last, the end after it. */
static void
answer (MusterRpcCall *self, grpc_byte_buffer *message, gboolean is_last, const GError *error,
        const grpc_slice *details)
{
  if (is_last)
    muster_rpc_log_end (self, error);
  g_mutex_lock (&self->lock);
  gboolean is_allowed = !self->is_answered;
  if (is_allowed && message != NULL)
    g_queue_push_tail (&self->messages, g_steal_pointer (&message));
  if (is_allowed && error != NULL) {
    self->status = muster_error_to_wire (error);
    self->status_text = muster_grpc_status_text (error->message);
    if (details != NULL)
      self->status_details = grpc_slice_ref (*details);
  }
  if (is_allowed) {
    self->is_answered = is_last;
    send_next (self);
  }
  g_mutex_unlock (&self->lock);
  g_clear_pointer (&message, grpc_byte_buffer_destroy);
  g_return_if_fail (is_allowed); /* answered twice */
  if (is_last)
    muster_rpc_call_unref (self);
}

static void
answer_rope (MusterRpcCall *self, MusterRope *message, gboolean is_last)
{
  g_autoptr (GError) too_large = NULL;
  if (muster_grpc_check_size (message, &too_large))
    answer (self, muster_grpc_buffer_from_rope (message), is_last, NULL, NULL);
  else
    answer (self, NULL, TRUE, too_large, NULL);
}

void
muster_rpc_call_end (MusterRpcCall *self, grpc_byte_buffer *message, const GError *error,
                     const grpc_slice *details)
{
  answer (self, message, TRUE, error, details);
}

void
muster_rpc_call_reply (MusterRpcCall *self, MusterRope *reply)
{
  MusterRope empty = MUSTER_ROPE_INIT;
  muster_memory_forget_refused ();
  answer_rope (self, reply != NULL ? reply : &empty, TRUE);
  muster_rope_clear (&empty);
}

/* Another try may succeed: nothing was done for this one (base/memory_account_private.h). */
static gboolean
may_be_repeated (MusterRpcCall *self, const GError *error)
{
  const MusterRpcServer *server = self->server;
  return error != NULL && muster_error_is (error, MUSTER_ERROR_RESOURCE_EXHAUSTED) &&
         muster_memory_refused_here () > 0 && server->is_shared != NULL &&
         server->is_shared (server->data);
}

void
muster_rpc_call_finish (MusterRpcCall *self, const GError *error)
{
  grpc_slice details =
      may_be_repeated (self, error) ? muster_grpc_retry_details (error) : grpc_empty_slice ();
  muster_memory_forget_refused ();
  answer (self, NULL, TRUE, error, GRPC_SLICE_IS_EMPTY (details) ? NULL : &details);
  grpc_slice_unref (details);
}

void
muster_rpc_call_send (MusterRpcCall *self, MusterRope *message)
{
  answer_rope (self, message, FALSE);
}

void
muster_rpc_call_send_state (MusterRpcCall *self, MusterRope *state)
{
  g_mutex_lock (&self->lock);
  if (self->messages.length >= MAX_QUEUED_STATES)
    grpc_byte_buffer_destroy (g_queue_pop_tail (&self->messages));
  g_mutex_unlock (&self->lock);
  muster_rpc_call_send (self, state);
}

/* gRPC has delivered a call's headers: it is open until end (). Its message is read by a call
 * of our own, not by gRPC before that: gRPC doesn't tell how many calls have none. */
static void
take_in (MusterRpcCall *self)
{
  char *peer = grpc_call_get_peer (self->call);
  self->connection = muster_rpc_peers_enter (self->server->peers, peer, is_open (self));
  gpr_free (peer);
  if (self->method->registered == NULL)
    self->deadline = self->details.deadline;
  grpc_op receive = {.op = GRPC_OP_RECV_MESSAGE};
  receive.data.recv_message.recv_message = &self->request;
  if (self->method->path != NULL)
    start_batch (self, &receive, 1, &self->received);
}

static void
refuse_unknown (MusterRpcCall *self)
{
  g_autofree char *path = grpc_slice_to_c_string (self->details.method);
  g_autofree char *shown = muster_grpc_status_text (path);
  g_autoptr (GError) error =
      g_error_new (MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "unknown method '%s'", shown);
  muster_rpc_call_refuse (self, error);
}

static void
refuse_empty (MusterRpcCall *self)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                                                  "the call came without a message");
  muster_rpc_call_refuse (self, error);
}

/* Small ones aren't refused: they may free some. */
gboolean
muster_rpc_call_count_memory (MusterRpcCall *self, gsize n_bytes, GError **error)
{
  if (n_bytes <= SMALL_MESSAGE)
    muster_memory_add (MUSTER_MEMORY_MESSAGES, n_bytes);
  else if (!muster_memory_take (MUSTER_MEMORY_MESSAGES, n_bytes, error))
    return FALSE;
  self->n_counted += n_bytes;
  return TRUE;
}

static gboolean
admit_message (MusterRpcCall *self, GError **error)
{
  const MusterRpcServer *server = self->server;
  const gsize n_bytes = grpc_byte_buffer_length (self->request);
  return (server->admit == NULL || server->admit (n_bytes, server->data, error)) &&
         muster_rpc_call_count_memory (self, n_bytes, error);
}

typedef struct {
  GBytes *bytes; /* (owned) */
  gsize n_counted;
} Counted;

static void
counted_free (gpointer data)
{
  Counted *self = data;
  g_bytes_unref (self->bytes);
  muster_memory_release (MUSTER_MEMORY_MESSAGES, self->n_counted);
  g_free (self);
}

/* Tensors that were fed may keep a large message's bytes for longer than the call lives: so they
 * count as long as they live. Takes bytes. */
static GBytes *
count_with_bytes (MusterRpcCall *self, GBytes *bytes)
{
  if (self->n_counted < KEPT_MESSAGE)
    return bytes;
  Counted *counted = g_new (Counted, 1);
  *counted = (Counted){bytes, self->n_counted};
  self->n_counted = 0;
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  return g_bytes_new_with_free_func (data, size, counted_free, counted);
}

/* A tensor's buffer counts as such, while the pieces that it is read from are freed. */
static GBytes *
take_bytes (MusterRpcCall *self, GError **error)
{
  gboolean is_counted;
  g_autoptr (grpc_byte_buffer) buffer = g_steal_pointer (&self->request);
  const gsize n_counted = self->n_counted;
  muster_memory_release (MUSTER_MEMORY_MESSAGES, n_counted);
  GBytes *bytes = muster_rpc_message_take_bytes (buffer, &is_counted, error);
  self->n_counted = is_counted ? 0 : n_counted;
  muster_memory_add (MUSTER_MEMORY_MESSAGES, self->n_counted);
  return bytes;
}

static void
handle_bytes (MusterRpcCall *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) request = take_bytes (self, &error);
  if (request != NULL)
    request = count_with_bytes (self, request);
  if (request == NULL)
    muster_rpc_call_refuse (self, error);
  else
    self->method->handler (self, request, self->method->user_data);
}

static void
on_requested (gpointer owner, gboolean ok)
{
  if (!ok) { /* the server stops */
    MusterRpcCall *none = owner;
    muster_rpc_server_count (none->server, -1);
    muster_rpc_call_unref (none);
    return;
  }
  g_autoptr (MusterRpcCall) self = muster_rpc_call_ref (owner); /* another thread may answer it */
  muster_rpc_server_request (self->method);
  take_in (self);
  if (self->method->path == NULL)
    refuse_unknown (self);
}

/* Calls that need no token count as those without a message as long as they last. */
static void
note_arrival (MusterRpcCall *self)
{
  self->has_arrived = !is_open (self);
  if (self->has_arrived)
    muster_rpc_peers_arrived (self->server->peers, self->connection);
}

static void
handle (MusterRpcCall *self)
{
  g_autoptr (GError) error = NULL;
  muster_rpc_log_arrival (self);
  if (self->request == NULL)
    refuse_empty (self);
  else if (!admit_message (self, &error))
    muster_rpc_call_refuse (self, error);
  else if (self->method->message_handler != NULL)
    self->method->message_handler (self, g_steal_pointer (&self->request), self->method->user_data);
  else
    handle_bytes (self);
}

/* The message is there, or there will be none: the caller has ended the call, or it was refused. */
static void
on_received (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  MusterRpcCall *self = owner;
  if (self->request != NULL)
    note_arrival (self);
  muster_rpc_threads_begin_work (watch, self);
  handle (self);
  muster_rpc_threads_end_work ();
  watch (self);
  muster_rpc_call_unref (self);
}
