// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/background_private.h"
#include "rpc/client/rpc_client.h"

G_BEGIN_DECLS

/* MusterHeartbeat tells muster's server, behind the scenes, that the client of these sessions
 * lives, and finds out by it when a session is gone or the server has fallen silent: then the
 * watches that hang on it end. A server that keeps no sessions alive (TensorFlow's) is asked once.
 * Any thread.
 */

typedef struct _MusterHeartbeat MusterHeartbeat;

typedef struct {
  gint64 renew_us;    /* between two renewals */
  gint64 answer_us;   /* how long one may be unanswered */
  guint n_unanswered; /* in a row, and the server is silent */
} MusterHeartbeatPace;

/* pace NULL: 20 s, 10 s, 2. */
MusterHeartbeat *muster_heartbeat_new (MusterRpcClient *client, MusterBackground *background,
                                       const MusterHeartbeatPace *pace);
MusterHeartbeat *muster_heartbeat_ref (MusterHeartbeat *self);
void muster_heartbeat_unref (MusterHeartbeat *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHeartbeat, muster_heartbeat_unref)

/* An open session, from now until it is dropped; session only tells one from another. */
void muster_heartbeat_add_session (MusterHeartbeat *self, gconstpointer session,
                                   const char *handle);
void muster_heartbeat_remove_session (MusterHeartbeat *self, gconstpointer session);

/* A stream that hangs on a session, not owned, until it is left. It is ended with ABORTED where the
 * server no longer knows the session, with UNAVAILABLE where it is silent. */
void muster_heartbeat_watch_stream (MusterHeartbeat *self, MusterRpcStream *stream,
                                    const char *handle);
void muster_heartbeat_unwatch_stream (MusterHeartbeat *self, MusterRpcStream *stream);

G_END_DECLS
