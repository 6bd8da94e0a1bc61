// SPDX-License-Identifier: Apache-2.0
#include "server/core/session_guard.h"

#include "server/core/server_private.h"

MusterSessionGuard
muster_session_guard_begin (MusterServer *server, const char *handle, gboolean is_lasting,
                            GError **error)
{
  const char *wanted = handle != NULL ? handle : "";
  MusterServed *served = is_lasting
                             ? muster_sessions_begin_lasting_call (server->sessions, wanted, error)
                             : muster_sessions_begin_call (server->sessions, wanted, error);
  return (MusterSessionGuard){server, served, served != NULL, is_lasting};
}

MusterSessionGuard
muster_session_guard_enter (MusterServer *server, MusterRpcCall *call, const char *handle)
{
  g_autoptr (GError) error = NULL;
  const MusterSessionGuard self = muster_session_guard_begin (server, handle, FALSE, &error);
  if (self.served == NULL)
    muster_rpc_call_finish (call, error);
  return self;
}

gboolean
muster_session_guard_settle (MusterRpcCall *call, MusterServed *served, GError **error)
{
  return muster_served_settle (served, muster_rpc_call_deadline_us (call),
                               muster_rpc_call_stop_cancellable (call)) ||
         muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "session %s isn't closed yet: a training step still runs in it; it is closed "
                      "with the end of that step",
                      served->handle);
}

void
muster_session_guard_end (MusterSessionGuard *self)
{
  if (!self->is_open)
    return;
  const gint64 now_us = muster_clock_now_us (self->server->clock);
  if (self->is_lasting)
    muster_served_end_lasting_call (self->served, now_us);
  else
    muster_served_end_call (self->served, now_us);
  self->is_open = FALSE;
}

void
muster_session_guard_clear (MusterSessionGuard *self)
{
  muster_session_guard_end (self);
  muster_served_unref (self->served);
}
