// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server.h"
#include "server/core/sessions.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* A call that is at a session, which doesn't expire meanwhile. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterServed *served; /* (owned) (nullable) */
  gboolean is_open;
} MusterSessionGuard;

/* served is NULL for an unknown session: then the call has been ended. */
MusterSessionGuard muster_session_guard_enter (MusterServer *server, MusterRpcCall *call,
                                               const char *handle);
/* Before the call is answered: a client may go by the answer. Idempotent. */
void muster_session_guard_end (MusterSessionGuard *self);
void muster_session_guard_clear (MusterSessionGuard *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionGuard, muster_session_guard_clear)

G_END_DECLS
