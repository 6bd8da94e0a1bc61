// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server.h"
#include "server/core/sessions.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* A call that uses a session, which doesn't expire in the meantime. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterServed *served; /* (owned) (nullable) */
  gboolean is_open;
} MusterSessionGuard;

/* served is NULL for an unknown session: then the call has been finished. */
MusterSessionGuard muster_session_guard_enter (MusterServer *server, MusterRpcCall *call,
                                               const char *handle);
/* Call it before the call is answered, since the client may act on the answer. Idempotent. */
void muster_session_guard_end (MusterSessionGuard *self);
void muster_session_guard_clear (MusterSessionGuard *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionGuard, muster_session_guard_clear)

G_END_DECLS
