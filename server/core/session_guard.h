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
} MusterUse;

/* served is NULL for an unknown session: then the call has been ended. */
MusterUse muster_server_use (MusterServer *server, MusterRpcCall *call, const char *handle);
/* Before the call is answered: a client may go by the answer. Idempotent. */
void muster_use_end (MusterUse *self);
void muster_use_clear (MusterUse *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterUse, muster_use_clear)

G_END_DECLS
