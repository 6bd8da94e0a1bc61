// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterRpcPeers counts the calls of each connection, and ends connections that hold too much
 * before they have shown anything: gRPC 1.51 bounds neither the calls of a client that never
 * acknowledges the settings, nor calls that have no message. Any thread. */

typedef struct {
  guint max_calls; /* of one connection */
  guint max_bare; /* calls without a message, and calls that need no token, of all connections: over
                     it, the connection with the most of them is ended; of those that need no token,
                     if they are more than half */
  guint max_aborted; /* calls of one connection that ended without a message, within ten seconds */
} MusterRpcPeerLimits;

typedef struct _MusterRpcPeers MusterRpcPeers;
typedef struct _MusterRpcPeer MusterRpcPeer;

/* limits is copied. on_ended (nullable) is called for each connection that is ended, with its
 * address and the reason. */
MusterRpcPeers *muster_rpc_peers_new (const MusterRpcPeerLimits *limits,
                                      void (*on_ended) (const char *peer, const char *why,
                                                        gpointer data),
                                      gpointer data);
void muster_rpc_peers_free (MusterRpcPeers *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcPeers, muster_rpc_peers_free)

/* Counts a call that has no message yet; is_open: one that needs no token. name is gRPC's for the
 * connection's other end, such as "ipv4:127.0.0.1:40000"; NULL is returned for one that isn't a TCP
 * connection, and isn't counted.
 */
MusterRpcPeer *muster_rpc_peers_enter (MusterRpcPeers *self, const char *name, gboolean is_open);
/* Its message came. peer is (nullable), as below. */
void muster_rpc_peers_arrived (MusterRpcPeers *self, MusterRpcPeer *peer);
/* The call is over; is_open as it entered, had_message: muster_rpc_peers_arrived () was called for
 * it. */
void muster_rpc_peers_leave (MusterRpcPeers *self, MusterRpcPeer *peer, gboolean is_open,
                             gboolean had_message);

/* How many calls are counted, and how many of them as bare. */
guint muster_rpc_peers_n_calls (MusterRpcPeers *self, guint *n_bare);

G_END_DECLS
