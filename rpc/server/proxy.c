// SPDX-License-Identifier: Apache-2.0
/* Passes a call on to another server as bytes, with headers, deadline and status. No thread
 * waits. */
#include "rpc/server/proxy_private.h"

#include "base/log_bounded_private.h"
#include "rpc/client/rpc_call_private.h"
#include "rpc/server/rpc_server_state_private.h"

#include <string.h>

/* How gRPC marks a status sent by the other side, not by itself. */
#define FROM_PEER "Error received from peer"

struct _MusterRpcProxied {
  MusterRpcUnary unary;
  MusterRpcTag ended;
  MusterRpcCall *call;     /* (owned) */
  MusterRpcClient *client; /* (owned) */
  MusterRpcProxiedFunc passed;
  gpointer user_data;
  GError *error; /* (owned) (nullable) */
  gboolean outlives_caller;
  GList link; /* where it does, in the server's list */
};

static void
proxy_free (MusterRpcProxied *self)
{
  muster_rpc_unary_clear (&self->unary);
  muster_rpc_client_unref (self->client);
  muster_rpc_call_unref (self->call);
  g_clear_error (&self->error);
  g_free (self);
}

const GError *
muster_rpc_proxied_error (const MusterRpcProxied *self)
{
  return self->error;
}

const MusterRpcMessage *
muster_rpc_proxied_response (const MusterRpcProxied *self)
{
  return self->error == NULL ? self->unary.answer : NULL;
}

static const grpc_slice *
find_details (const MusterRpcProxied *self)
{
  const grpc_metadata_array *trailing = &self->unary.trailing;
  for (size_t i = 0; i < trailing->count; i++)
    if (grpc_slice_str_cmp (trailing->metadata[i].key, MUSTER_RPC_DETAILS) == 0)
      return &trailing->metadata[i].value;
  return NULL;
}

void
muster_rpc_call_finish_proxied (MusterRpcCall *self, MusterRpcProxied *passed)
{
  muster_rpc_call_end (self, g_steal_pointer (&passed->unary.answer), passed->error,
                       passed->error != NULL ? find_details (passed) : NULL);
}

/* Whether the server sent the status, as of a task of its cluster: no end of a connection, which
 * gRPC may report like that, too. */
static gboolean
is_servers (const MusterRpcUnary *unary, const char *text)
{
  return unary->cause != NULL && strstr (unary->cause, FROM_PEER) != NULL &&
         !muster_rpc_is_end (text);
}

static char *
with_own_flags (const char *text)
{
  static const char *const flags[][2] = {{" --token-file", " the gateway's --master-token-file"},
                                         {" --tls-ca", " the gateway's --master-tls-ca"},
                                         {" --tls-cert", " the gateway's --master-tls-cert"},
                                         {" --tls-key", " --master-tls-key"}};
  GString *own = g_string_new (text);
  for (gsize i = 0; i < G_N_ELEMENTS (flags); i++)
    g_string_replace (own, flags[i][0], flags[i][1], 0);
  return g_string_free (own, FALSE);
}

GError *
muster_rpc_proxy_refusal (const GError *error, const char *address)
{
  const gboolean lacks_role = muster_error_is (error, MUSTER_ERROR_PERMISSION_DENIED) &&
                              strstr (error->message, "needs the role '") != NULL;
  const gboolean is_unanswered = g_str_has_prefix (error->message, MUSTER_NO_ANSWER_FROM);
  if (muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
      g_str_has_prefix (error->message, "the gateway ") || /* one behind this one says so */
      (!lacks_role && !is_unanswered && !muster_error_is (error, MUSTER_ERROR_UNAUTHENTICATED)))
    return NULL;
  g_autofree char *text = with_own_flags (error->message);
  if (muster_error_is (error, MUSTER_ERROR_UNAVAILABLE))
    return g_error_new_literal (MUSTER_ERROR, error->code, text);
  if (is_unanswered)
    return g_error_new (MUSTER_ERROR, error->code, "the gateway gets no answer from its master %s",
                        text + strlen (MUSTER_NO_ANSWER_FROM));
  return g_error_new (MUSTER_ERROR, error->code, "the gateway is refused by its master '%s': %s%s",
                      address, text,
                      lacks_role ? "; give the gateway another --master-token-file" : "");
}

static void
explain_refusal (MusterRpcProxied *self)
{
  GError *refusal =
      muster_rpc_proxy_refusal (self->error, muster_rpc_client_address (self->client));
  if (refusal == NULL)
    return;
  g_error_free (self->error);
  self->error = refusal;
  if (!muster_error_is (refusal, MUSTER_ERROR_UNAVAILABLE))
    muster_log_at_most (0, G_LOG_LEVEL_WARNING, "master-refuses", "MESSAGE", "%s",
                        refusal->message);
}

/* An UNAVAILABLE that the server sent keeps its text; otherwise the server itself can't be reached.
 */
static void
set_error (MusterRpcProxied *self)
{
  const MusterRpcUnary *unary = &self->unary;
  const GQuark domain = MUSTER_ERROR;
  g_autofree char *text = grpc_slice_to_c_string (unary->outcome.text);
  if (unary->outcome.status == GRPC_STATUS_UNAVAILABLE && is_servers (unary, text))
    self->error = g_error_new_literal (domain, MUSTER_ERROR_UNAVAILABLE, text);
  else
    muster_rpc_client_set_error (self->client, &unary->outcome, NULL, &self->error);
  explain_refusal (self);
}

/* While it exists, gRPC cancels it at its caller's end, which the answer brings; that costs a tenth
 * of all that the call does here. Details of an error are its own: it is kept for those. */
static void
end_upstream (MusterRpcProxied *self)
{
  muster_rpc_client_note_answer (self->client, self->unary.channel);
  muster_rpc_unary_drop_call (&self->unary);
}

/* The call counts as open until its end has been handled, so that the queue that reports it exists.
 */
static void
on_ended (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  MusterRpcProxied *self = owner;
  MusterRpcServer *server = self->call->server;
  if (self->unary.outcome.status == GRPC_STATUS_OK)
    end_upstream (self);
  if (self->unary.outcome.status != GRPC_STATUS_OK)
    set_error (self);
  else if (self->unary.answer == NULL)
    self->error =
        g_error_new (MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "'%s' answered without a message",
                     muster_rpc_client_address (self->client));
  if (self->outlives_caller)
    muster_rpc_server_leave (server, &self->link);
  self->passed (self->call, self, self->user_data);
  muster_rpc_server_count (server, -1);
  proxy_free (self);
}

/* Counts the call a second time, if it is still open. */
static gboolean
count_if_open (MusterRpcCall *call)
{
  g_mutex_lock (&call->lock);
  gboolean is_open = !call->is_gone;
  if (is_open)
    muster_rpc_server_count (call->server, 1);
  g_mutex_unlock (&call->lock);
  return is_open;
}

static grpc_call *
new_call (MusterRpcProxied *self, MusterRpcChannel *channel, const MusterRpcProxyOptions *options)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  grpc_slice path = grpc_slice_from_static_string (options->method);
  self->unary.outcome.started_us = now_us;
  if (options->outlives_caller) {
    self->unary.outcome.deadline_us = options->deadline_us;
    return muster_rpc_channel_new_call (channel, options->method, options->deadline_us, now_us,
                                        self->call->server->queue);
  }
  self->unary.outcome.deadline_us = muster_rpc_call_deadline_us (self->call);
  return grpc_channel_create_call (
      channel->channel, self->call->call, GRPC_PROPAGATE_DEADLINE | GRPC_PROPAGATE_CANCELLATION,
      self->call->server->queue, path, NULL, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
}

static MusterRpcProxied *
proxy_new (MusterRpcCall *call, MusterRpcClient *client, const MusterRpcProxyOptions *options,
           MusterRpcProxiedFunc passed, gpointer user_data)
{
  MusterRpcProxied *self = g_new0 (MusterRpcProxied, 1);
  self->ended = (MusterRpcTag){.done = on_ended, .owner = self};
  self->call = muster_rpc_call_ref (call);
  self->client = muster_rpc_client_ref (client);
  self->passed = passed;
  self->user_data = user_data;
  self->outlives_caller = options->outlives_caller;
  return self;
}

/* It ends before it has begun. */
static void
refuse_request (MusterRpcProxied *self, MusterRpcMessage *request)
{
  self->unary.outcome.text = grpc_empty_slice ();
  self->unary.request = request;
  self->passed (self->call, self, self->user_data);
  proxy_free (self);
}

void
muster_rpc_call_proxy (MusterRpcCall *self, MusterRpcClient *client, MusterRpcMessage *request,
                       const MusterRpcProxyOptions *options, MusterRpcProxiedFunc passed,
                       gpointer user_data)
{
  MusterRpcProxied *pass = proxy_new (self, client, options, passed, user_data);
  const MusterRpcOptions bare = {
      .deadline_us = MUSTER_WAIT_FOREVER,
      .headers = options->headers,
      .n_headers = options->n_headers,
  };
  if (!muster_rpc_client_check (client, NULL, &bare, 0, &pass->error)) {
    refuse_request (pass, request);
    return;
  }
  if (!count_if_open (self)) {
    pass->error =
        g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller disconnected");
    refuse_request (pass, request);
    return;
  }
  MusterRpcChannel *channel = muster_rpc_client_hold_channel (client);
  grpc_call *upstream = new_call (pass, channel, options);
  if (pass->outlives_caller) {
    pass->link.data = upstream;
    muster_rpc_server_enter (self->server, &pass->link);
  }
  muster_rpc_unary_start (&pass->unary, client, channel, upstream, request, &bare, &pass->ended);
}
