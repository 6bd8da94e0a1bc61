// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client.h"

G_BEGIN_DECLS

/* What a gateway needs of a remote master: calls pass through its connection as the bytes they are,
 * and the sessions that were made so are adopted, to be renewed, watched, polled and closed like
 * any other. Any thread. */

/* How sessions are made, so that a server of muster's drops them when their client is gone: a
 * header of CreateSession, in seconds. */
#define MUSTER_SESSION_LEASE_HEADER  "muster-lease"
#define MUSTER_SESSION_LEASE_SECONDS "60"

/* Borrowed: the connection that its sessions use. */
MusterRpcClient *muster_remote_master_client (MusterRemoteMaster *self);

/* The same of a session of its (or of one that was adopted). */
MusterRpcClient *muster_remote_session_client (MusterSession *session);

/* A session (transfer full) for a handle that the master gave to somebody. From here on it is as if
 * it had been made by this master: it is closed when it is dropped. graph (nullable) is what it was
 * made with. */
MusterSession *muster_remote_master_adopt (MusterRemoteMaster *self, const char *handle,
                                           MusterGraph *graph);

/* The master has closed it, or lost it: nothing is sent for it any more. */
void muster_remote_session_forget (MusterSession *session);

G_END_DECLS
