// SPDX-License-Identifier: Apache-2.0
/* Calls on a session behind a gateway: each is admitted like a step of the server, forwarded as
 * bytes, and read for what may change readiness or positions. No thread waits for the answer. */
#include "server/gateway/gateway_private.h"

#include "base/hash_private.h"
#include "base/log_private.h"
#include "base/protowire_private.h"
#include "rpc/messages/run_step_private.h"
#include "server/core/service.h"
#include "server/core/session_guard.h"
#include "server/services/readiness_service.h"

#include <string.h>

#define MAX_REQUEST_NAME 256

enum {
  MADE_CALLABLE = 1, /* in MakeCallable's response */
  STEP_STATUS = 3,   /* in RunStep's response: the error code, if it isn't the call's status */
  STEP_TEXT = 4,     /* in it: the error's message */
};

/* --- detecting steps that may change readiness --- */

/* Returns the step's slot in the table, and in *mark the value of a step that has run. */
static guint64 *
find_seen (MusterGateway *self, const MusterGatewayPeek *peek, guint64 *mark)
{
  *mark = muster_hash_bytes (peek->handle, strlen (peek->handle),
                             peek->names + (guint64)(guintptr)self);
  return &self->seen[*mark % MUSTER_GATEWAY_SEEN];
}

/* Returns the error in RunStep's response, with the readable part of its message; (transfer
 * full) (nullable). */
static GError *
error_in (const MusterRpcMessage *answer)
{
  MusterRpcReader reader;
  MusterRpcField field;
  int code = 0;
  g_autofree char *text = NULL;
  muster_rpc_reader_init (&reader, answer);
  while (muster_rpc_reader_next (&reader, &field)) {
    if (field.number == STEP_STATUS && field.type == MUSTER_WIRE_VARINT)
      code = (int)MIN (field.value, (guint64)G_MAXINT);
    if (field.number != STEP_TEXT || field.data == NULL)
      continue;
    g_free (text);
    text = g_strndup ((const char *)field.data, field.size);
  }
  if (code == 0)
    return NULL;
  return g_error_new_literal (MUSTER_ERROR, muster_error_from_wire (code),
                              text != NULL ? text : "");
}

/* --- forwarding calls on a session --- */

/* A call in progress: a use of its session and, for a step, one of the server's steps. */
typedef struct {
  MusterSessionGuard guard;
  MusterGatewayKind kind;
  gint64 began_us;
  gint64 request_id;
  guint64 node_bytes;     /* the size of ExtendSession's nodes */
  gint64 callable;        /* the callable to release */
  gboolean is_positioned; /* the new callable feeds a position */
  gboolean wants_errors_in_body;
  guint64 *seen; /* the step's slot */
  guint64 mark;  /* the value to store there */
} Call;

/* Call this before the response is sent: a client may act on the response. */
static void
end_call (Call *self)
{
  MusterServer *server = self->guard.server;
  gint64 now_us = muster_clock_now_us (server->clock);
  if (muster_gateway_is_step (self->kind)) {
    muster_limits_release (server->limits, MUSTER_LIMIT_STEPS);
    muster_step_meter_add (server->steps, now_us, now_us - self->began_us);
    muster_log (G_LOG_LEVEL_DEBUG, "step-done", "MUSTER_SESSION", self->guard.served->handle,
                "MUSTER_REQUEST", MUSTER_LOG_INT (self->request_id), "MUSTER_SECONDS",
                MUSTER_LOG_SECONDS (now_us - self->began_us), "MESSAGE", "the master has answered");
  }
  muster_session_guard_end (&self->guard);
}

/* A step that runs for the first time, or that failed, may have made a model ready. */
static void
note_step (Call *self, gboolean has_failed)
{
  if (!has_failed && __atomic_load_n (self->seen, __ATOMIC_RELAXED) == self->mark)
    return;
  if (!has_failed)
    __atomic_store_n (self->seen, self->mark, __ATOMIC_RELAXED);
  muster_readiness_hub_may_have_changed (self->guard.server->hub);
}

static void
note_extension (Call *self)
{
  MusterServed *served = self->guard.served;
  g_mutex_lock (&served->extending);
  served->graph_bytes += self->node_bytes;
  g_mutex_unlock (&served->extending);
}

/* Records a callable that feeds a position; others need no record. */
static void
note_callable (Call *self, const MusterRpcMessage *answer)
{
  const MusterServedCallable callable = {.is_positioned = TRUE};
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, answer);
  while (muster_rpc_reader_next (&reader, &field))
    if (field.number == MADE_CALLABLE && field.type == MUSTER_WIRE_VARINT)
      muster_served_add_callable (self->guard.served, (gint64)field.value, callable);
}

/* Records what a successful call has changed. */
static void
note_success (Call *self, const MusterRpcMessage *answer)
{
  if (self->node_bytes > 0)
    note_extension (self);
  if (self->kind == MUSTER_GATEWAY_MAKING && self->is_positioned)
    note_callable (self, answer);
  if (self->kind == MUSTER_GATEWAY_RELEASE)
    (void)muster_served_remove_callable (self->guard.served, self->callable);
}

/* Ends a call otherwise than with the master's answer. */
static void
refuse_call (MusterRpcCall *call, gboolean in_body, const GError *error)
{
  if (!in_body) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_step_response_encode_error (&rope, error);
  muster_rpc_call_reply (call, &rope);
}

static void
on_proxied (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data)
{
  Call *self = data;
  const MusterRpcMessage *answer = muster_rpc_proxied_response (passed);
  g_autoptr (GError) in_body =
      answer != NULL && self->kind == MUSTER_GATEWAY_STEP ? error_in (answer) : NULL;
  const GError *error = in_body != NULL ? in_body : muster_rpc_proxied_error (passed);
  /* a step that failed as its session is lost says why, whatever the master says of its end */
  g_autoptr (GError) lost = error != NULL ? muster_served_lost_error (self->guard.served) : NULL;
  const gboolean wants_errors_in_body = self->wants_errors_in_body;
  end_call (self);
  if (error != NULL)
    muster_gateway_note_loss (self->guard.server->gateway, self->guard.served, error);
  else
    note_success (self, answer);
  if (muster_gateway_is_step (self->kind))
    note_step (self, error != NULL);
  muster_session_guard_clear (&self->guard);
  g_free (self);
  if (lost != NULL)
    refuse_call (call, wants_errors_in_body, lost);
  else
    muster_rpc_call_finish_proxied (call, passed);
}

/* Returns FALSE with the error if a call can't be forwarded: its session is gone, or a limit is
 * reached. */
static gboolean
admit (MusterServer *server, const MusterGatewayPeek *peek, MusterGatewayKind kind,
       MusterSessionGuard *guard, GError **error)
{
  if (muster_gateway_is_step (kind) &&
      !muster_limits_take (server->limits, MUSTER_LIMIT_STEPS, error))
    return FALSE;
  const gboolean is_lasting =
      kind == MUSTER_GATEWAY_CALLABLE
          ? muster_sessions_is_positioned (server->sessions, peek->handle, peek->callable)
          : kind == MUSTER_GATEWAY_STEP && peek->is_positioned;
  *guard = muster_session_guard_begin (server, peek->handle, is_lasting, error);
  if (guard->served == NULL && muster_gateway_is_step (kind))
    muster_limits_release (server->limits, MUSTER_LIMIT_STEPS);
  return guard->served != NULL;
}

/* Two concurrent extensions may both pass this check; the master accepts only one of them. */
static gboolean
allows_extension (MusterServed *served, MusterServer *server, guint64 node_bytes, GError **error)
{
  if (node_bytes == 0)
    return TRUE;
  g_mutex_lock (&served->extending);
  guint64 n_bytes = served->graph_bytes + node_bytes;
  g_mutex_unlock (&served->extending);
  return muster_limits_allow (server->limits, MUSTER_LIMIT_GRAPH_BYTES, n_bytes, error);
}

/* Returns NULL if it has ended the call with an error. */
static Call *
open_call (MusterServer *server, MusterRpcCall *call, const MusterRpcMessage *request,
           MusterGatewayKind kind)
{
  g_autoptr (GError) error = NULL;
  MusterGatewayPeek peek = {0};
  g_auto (MusterSessionGuard) guard = {0};
  if (!muster_gateway_peek (request, kind, &peek, &error) ||
      !admit (server, &peek, kind, &guard, &error)) {
    refuse_call (call, peek.wants_errors_in_body, error);
    return NULL;
  }
  MusterServed *served = guard.served;
  if (!allows_extension (served, server, peek.node_bytes, &error)) {
    muster_session_guard_end (&guard);
    refuse_call (call, peek.wants_errors_in_body, error);
    return NULL;
  }
  Call *self = g_new0 (Call, 1);
  *self = (Call){
      .guard = guard,
      .kind = kind,
      .began_us = muster_clock_now_us (server->clock),
      .request_id = peek.request_id,
      .node_bytes = peek.node_bytes,
      .callable = peek.callable,
      .is_positioned = peek.is_positioned,
      .wants_errors_in_body = peek.wants_errors_in_body,
  };
  if (muster_gateway_is_step (kind)) {
    muster_step_meter_begin (server->steps, self->began_us);
    muster_log (G_LOG_LEVEL_DEBUG, "step", "MUSTER_SESSION", served->handle, "MUSTER_REQUEST",
                MUSTER_LOG_INT (peek.request_id), "MESSAGE", "passed on to the master");
  }
  guard = (MusterSessionGuard){0};
  self->seen = find_seen (server->gateway, &peek, &self->mark);
  return self;
}

/* Returns the caller's name for its request, for the master's log; NULL if it has none, or a
 * long one. */
static const char *
request_name (MusterRpcCall *call)
{
  const char *name = muster_rpc_call_header (call, MUSTER_REQUEST_HEADER);
  return name != NULL && strlen (name) <= MAX_REQUEST_NAME ? name : NULL;
}

static void
pass (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  const MusterGatewayMethod *method = data;
  Call *self = open_call (method->server, call, request, method->kind);
  if (self == NULL) {
    muster_rpc_message_free (request);
    return;
  }
  const MusterRpcHeader followed = {MUSTER_REQUEST_HEADER, request_name (call)};
  const MusterRpcProxyOptions options = {
      .method = method->path,
      .outlives_caller = self->guard.is_lasting,
      .deadline_us = MUSTER_WAIT_FOREVER, /* the master observes the step's own timeouts */
      .headers = &followed,
      .n_headers = followed.value != NULL,
  };
  muster_rpc_call_proxy (call, muster_remote_session_client (self->guard.served->session), request,
                         &options, on_proxied, self);
}

void
muster_gateway_enter_steps (MusterGateway *self)
{
  MusterServer *server = self->server;
  const MusterGatewayMethod methods[MUSTER_GATEWAY_N_METHODS] = {
      {server, MUSTER_MASTER_SERVICE ("RunStep"), MUSTER_GATEWAY_STEP},
      {server, MUSTER_MASTER_SERVICE ("RunCallable"), MUSTER_GATEWAY_CALLABLE},
      {server, MUSTER_MASTER_SERVICE ("ExtendSession"), MUSTER_GATEWAY_EXTENSION},
      {server, MUSTER_MASTER_SERVICE ("PartialRunSetup"), MUSTER_GATEWAY_OTHER},
      {server, MUSTER_MASTER_SERVICE ("MakeCallable"), MUSTER_GATEWAY_MAKING},
      {server, MUSTER_MASTER_SERVICE ("ReleaseCallable"), MUSTER_GATEWAY_RELEASE},
  };
  memcpy (self->methods, methods, sizeof methods);
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    muster_rpc_server_add_message_method (server->rpc, self->methods[i].path, pass,
                                          &self->methods[i]);
}
