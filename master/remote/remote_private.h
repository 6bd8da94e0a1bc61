// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "master/remote/background_private.h"
#include "master/remote/heartbeat_private.h"
#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* What the remote master, its sessions and their watches share. */

#define MUSTER_MASTER_METHOD(name) "/tensorflow.MasterService/" name

/* How long a session that was dropped without a close may take to be closed behind the scenes. */
#define MUSTER_FORGET_US (5 * MUSTER_SECOND)

#define MUSTER_TYPE_REMOTE_SESSION (muster_remote_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteSession, muster_remote_session, MUSTER, REMOTE_SESSION,
                      MusterSession)

MusterSession *muster_remote_session_new (MusterRpcClient *client, MusterBackground *background,
                                          MusterHeartbeat *heartbeat, const char *handle,
                                          gint64 graph_version, MusterGraph *graph);

/* For tests, before the first session. */
void muster_remote_master_set_pace (MusterRemoteMaster *self, const MusterHeartbeatPace *pace);

MusterWatch *muster_remote_watch_new (MusterRpcClient *client, MusterHeartbeat *heartbeat,
                                      const char *session_handle, const MusterWatchFor *what,
                                      gint64 deadline_us, GError **error);

/* As the session's claim, for the session of that handle. */
MusterLease *muster_remote_lease_claim (MusterRpcClient *client, MusterBackground *background,
                                        const char *session_handle, const MusterClaim *claim,
                                        MusterAnnouncement **before, gint64 deadline_us,
                                        GCancellable *cancellable, GError **error);

/* This process, as servers show it: "HOST:PID"; (transfer full). */
char *muster_remote_who (void);

/* A server's text of at most so many bytes, cut between two characters: (transfer full), NULL for
 * an empty one. */
char *muster_remote_text (const char *text, gsize most);

/* What a server tells of a chief, cut to size; (transfer full). */
MusterAnnouncement *muster_remote_announcement (const Muster__Announcement *message);

G_END_DECLS
