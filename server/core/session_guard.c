// SPDX-License-Identifier: Apache-2.0
#include "server/server_private.h"

#include "base/unpack.h"

#define MILLISECONDS_AT_MOST (MUSTER_WAIT_FOREVER / MUSTER_MILLISECOND)

gpointer
muster_server_unpack (MusterRpcCall *call, GBytes *request,
                      const ProtobufCMessageDescriptor *descriptor, MusterArena *arena)
{
  g_autoptr (GError) error = NULL;
  gsize size;
  const void *data = g_bytes_get_data (request, &size);
  gpointer message = muster_unpack (descriptor, data, size, arena, descriptor->short_name, &error);
  if (message == NULL)
    muster_rpc_call_finish (call, error);
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

MusterUse
muster_server_use (MusterServer *server, MusterRpcCall *call, const char *handle)
{
  g_autoptr (GError) error = NULL;
  MusterServed *served =
      muster_sessions_use (server->sessions, handle != NULL ? handle : "", &error);
  if (served == NULL)
    muster_rpc_call_finish (call, error);
  return (MusterUse){server, served, served != NULL};
}

void
muster_use_end (MusterUse *self)
{
  if (self->is_open)
    muster_served_end_use (self->served, muster_clock_now_us (self->server->clock));
  self->is_open = FALSE;
}

void
muster_use_clear (MusterUse *self)
{
  muster_use_end (self);
  muster_served_unref (self->served);
}
