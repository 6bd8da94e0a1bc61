// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/background_private.h"
#include "rpc/client/rpc_client_private.h"

G_BEGIN_DECLS

/* MusterHeartbeat renews a client's sessions at muster's server in the background. It detects when
 * the server lost a session or stops answering, and ends the streams that depend on it. A server
 * without session leases (TensorFlow's) is asked once. Any thread. */

typedef struct _MusterHeartbeat MusterHeartbeat;

typedef struct {
  gint64 renew_us;    /* from an answer to the next renewal */
  gint64 answer_us;   /* timeout of a renewal */
  guint n_unanswered; /* consecutive failures after which the server counts as silent */
} MusterHeartbeatPace;

/* pace (nullable): 15 s, 10 s, 2. */
MusterHeartbeat *muster_heartbeat_new (MusterRpcClient *client, const MusterHeartbeatPace *pace);
MusterHeartbeat *muster_heartbeat_ref (MusterHeartbeat *self);
void muster_heartbeat_unref (MusterHeartbeat *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHeartbeat, muster_heartbeat_unref)

/* Registers an open session until it is removed. session is only an identifier. */
void muster_heartbeat_add_session (MusterHeartbeat *self, gconstpointer session,
                                   const char *handle);
void muster_heartbeat_remove_session (MusterHeartbeat *self, gconstpointer session);

/* Registers a stream of a session, not owned, until it is unregistered. The stream is ended with
 * ABORTED if the server no longer knows the session, with UNAVAILABLE if the server is silent. */
void muster_heartbeat_watch_stream (MusterHeartbeat *self, MusterRpcStream *stream,
                                    const char *handle);
void muster_heartbeat_unwatch_stream (MusterHeartbeat *self, MusterRpcStream *stream);

G_END_DECLS
