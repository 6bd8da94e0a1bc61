// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_guard.h"

#include "server/core/server_private.h"

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
