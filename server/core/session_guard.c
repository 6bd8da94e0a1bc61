// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_guard.h"

#include "server/core/server_private.h"

MusterSessionGuard
muster_session_guard_enter (MusterServer *server, MusterRpcCall *call, const char *handle)
{
  g_autoptr (GError) error = NULL;
  MusterServed *served =
      muster_sessions_begin_call (server->sessions, handle != NULL ? handle : "", &error);
  if (served == NULL)
    muster_rpc_call_finish (call, error);
  return (MusterSessionGuard){server, served, served != NULL};
}

void
muster_session_guard_end (MusterSessionGuard *self)
{
  if (self->is_open)
    muster_served_end_call (self->served, muster_clock_now_us (self->server->clock));
  self->is_open = FALSE;
}

void
muster_session_guard_clear (MusterSessionGuard *self)
{
  muster_session_guard_end (self);
  muster_served_unref (self->served);
}
