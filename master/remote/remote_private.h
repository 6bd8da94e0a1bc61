// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "master/membership.h"
#include "master/remote/background_private.h"
#include "master/remote/heartbeat_private.h"
#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* What the remote master, its sessions and their watches share. */

#define MUSTER_MASTER_METHOD(name) "/tensorflow.MasterService/" name

/* Timeout for closing a session in the background after it was freed without a close. */
#define MUSTER_FORGET_US (5 * MUSTER_SECOND)

#define MUSTER_TYPE_REMOTE_SESSION (muster_remote_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterRemoteSession, muster_remote_session, MUSTER, REMOTE_SESSION,
                      MusterSession)

MusterSession *muster_remote_session_new (MusterRpcClient *client, MusterHeartbeat *heartbeat,
                                          const char *handle, gint64 graph_version,
                                          MusterGraph *graph);

/* What is claimed and watched in the session is so at a coordinator. */
void muster_remote_session_set_coordinator (MusterRemoteSession *self,
                                            MusterRpcClient *coordinator);

/* Extensions are placed as the session's graph was: muster_remote_master_set_one_task (). */
void muster_remote_session_set_one_task (MusterRemoteSession *self);

/* For tests; before the first session. */
void muster_remote_master_set_pace (MusterRemoteMaster *self, const MusterHeartbeatPace *pace);

/* heartbeat (nullable): of the session, if it is at that server. */
MusterWatch *muster_remote_watch_new (MusterRpcClient *client, MusterHeartbeat *heartbeat,
                                      const char *session_handle, const MusterWatchFor *what,
                                      gint64 deadline_us, GError **error);

/* Who claims, and where. */
typedef struct {
  MusterRpcClient *client;
  const char *session_handle; /* of its session there; "" at a coordinator, which has none */
  MusterGraph *graph;         /* (nullable) the chief's, named to a coordinator */
} MusterRemoteClaimant;

/* muster_session_claim () at one server. */
MusterLease *muster_remote_lease_claim (const MusterRemoteClaimant *claimant,
                                        const MusterClaim *claim, MusterAnnouncement **before,
                                        gint64 deadline_us, GCancellable *cancellable,
                                        GError **error);

/* Announces with the next renewal, without a call. */
void muster_remote_lease_post (MusterLease *lease, const MusterAnnouncement *announcement);
/* Whether the server answered the last announcement or renewal. */
gboolean muster_remote_lease_is_heard (MusterLease *lease);

/* The same at a coordinator and, if it keeps any, at the master with the session. */
MusterLease *muster_coordinated_lease_claim (const MusterRemoteClaimant *coordinator,
                                             const MusterRemoteClaimant *own,
                                             const MusterClaim *claim, MusterAnnouncement **before,
                                             gint64 deadline_us, GCancellable *cancellable,
                                             GError **error);

/* muster_master_join () at the server. target is for messages. */
MusterMembership *muster_remote_join (MusterRpcClient *client, const char *target,
                                      const MusterJoin *join, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* This process in servers' messages: "HOST:PID" (transfer full). */
char *muster_remote_who (void);

/* This process's secret for a model at a server, which it proves its claims by: another server
 * can't use it (transfer full). */
char *muster_remote_proof (const char *address, const char *model);

/* A server's text, cut to `most` bytes between two characters (transfer full). NULL for an empty
 * one. */
char *muster_remote_text (const char *text, gsize most);

/* A server's announcement of a chief, with texts cut to size (transfer full). */
MusterAnnouncement *muster_remote_announcement (const Muster__Announcement *message);

G_END_DECLS
