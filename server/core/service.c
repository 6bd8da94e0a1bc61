// SPDX-License-Identifier: Apache-2.0
#include "server/core/service.h"

#include "base/log_bounded_private.h"
#include "server/core/server_private.h"

#define MILLISECONDS_AT_MOST (MUSTER_WAIT_FOREVER / MUSTER_MILLISECOND)

/* One of this server's methods, registered with the RPC server; its handlers run in the handler
 * pool. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterRpcHandler handler;
} MusterServerMethod;

static void
on_call (MusterRpcCall *call, GBytes *request, gpointer data)
{
  const MusterServerMethod *method = data;
  muster_handler_pool_run (method->server->handler_pool, method->handler, call, request,
                           method->server);
}

void
muster_server_add_method (MusterServer *self, const char *path, MusterRpcHandler handler)
{
  MusterServerMethod *method = g_new (MusterServerMethod, 1);
  *method = (MusterServerMethod){self, handler};
  g_ptr_array_add (self->methods, method);
  muster_rpc_server_add_method (self->rpc, path, on_call, method);
}

void
muster_server_audit (MusterRpcCall *call, const char *what, const char *model, const GError *error)
{
  if (!muster_log_enabled (G_LOG_LEVEL_INFO))
    return;
  g_autofree char *who = muster_rpc_call_describe (call);
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "audit", "MUSTER_METHOD", what,
                      "MUSTER_MODEL", model, "MUSTER_PEER", muster_rpc_call_peer (call),
                      "MUSTER_ROLE", muster_role_name (muster_rpc_call_role (call)),
                      "MUSTER_CLIENT", who, "MUSTER_ERROR", error != NULL ? error->message : NULL,
                      "MESSAGE", "%s%s%s by %s: %s", what, model != NULL ? " of " : "",
                      model != NULL ? model : "", who, error != NULL ? error->message : "done");
}

gboolean
muster_server_set_master_failure (MusterServer *self, const char *failure)
{
  g_mutex_lock (&self->master_lock);
  const gboolean has_changed = g_strcmp0 (self->master_failure, failure) != 0;
  if (has_changed) {
    g_free (self->master_failure);
    self->master_failure = g_strdup (failure);
  }
  g_mutex_unlock (&self->master_lock);
  return has_changed;
}

char *
muster_server_master_failure (MusterServer *self)
{
  g_mutex_lock (&self->master_lock);
  char *failure = g_strdup (self->master_failure);
  g_mutex_unlock (&self->master_lock);
  return failure;
}

GError *
muster_server_stopping_error (void)
{
  return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "The server is stopping");
}

void
muster_server_reply (MusterRpcCall *call, const ProtobufCMessage *message)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (message);
  muster_rope_append (&rope, packed);
  muster_rpc_call_reply (call, &rope);
}

gpointer
muster_server_unpack (MusterRpcCall *call, GBytes *request,
                      const ProtobufCMessageDescriptor *descriptor, MusterArena *arena)
{
  g_autoptr (GError) error = NULL;
  gsize size;
  const void *data = g_bytes_get_data (request, &size);
  gpointer message = muster_unpack (descriptor, data, size, arena, descriptor->short_name, &error);
  if (message == NULL)
    muster_rpc_call_refuse (call, error);
  return message;
}

char *
muster_server_text (const char *text)
{
  return (char *)(text != NULL ? text : "");
}

gint64
muster_server_from_milliseconds (gint64 timeout_ms)
{
  if (timeout_ms <= 0)
    return 0;
  return timeout_ms < MILLISECONDS_AT_MOST ? timeout_ms * MUSTER_MILLISECOND : MUSTER_WAIT_FOREVER;
}
