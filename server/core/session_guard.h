// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server_private.h"
#include "server/core/sessions.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* A call that uses a session, which doesn't expire in the meantime. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterServed *served; /* (owned) (nullable) */
  gboolean is_open;
  gboolean is_lasting; /* a close of the session waits for it */
} MusterSessionGuard;

/* served is NULL for an unknown session: then the call has been finished. */
MusterSessionGuard muster_session_guard_enter (MusterServer *server, MusterRpcCall *call,
                                               const char *handle);
/* The same without a call: served is NULL, with an error, for an unknown session. */
MusterSessionGuard muster_session_guard_begin (MusterServer *server, const char *handle,
                                               gboolean is_lasting, GError **error);
/* Call it before the call is answered, since the client may act on the answer. Idempotent. */
void muster_session_guard_end (MusterSessionGuard *self);
void muster_session_guard_clear (MusterSessionGuard *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionGuard, muster_session_guard_clear)

/* Before a session that was taken from the table is closed by a call, also if its caller is gone:
 * waits for its positioned steps. DEADLINE_EXCEEDED at the caller's deadline: then the last of them
 * closes the session. */
gboolean muster_session_guard_settle (MusterRpcCall *call, MusterServed *served, GError **error);

G_END_DECLS
