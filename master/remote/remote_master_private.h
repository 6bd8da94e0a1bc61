// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client_private.h"

G_BEGIN_DECLS

/* What a gateway needs from a remote master: calls are forwarded unchanged over its connection; the
 * sessions created this way are adopted, then renewed, watched, polled and closed like any other.
 * Any thread. */

/* A header of CreateSession, in seconds: muster's server closes the session when its client has
 * been silent for that long. */
#define MUSTER_SESSION_LEASE_HEADER  "muster-lease"
#define MUSTER_SESSION_LEASE_SECONDS "60"

/* The master is a single task on this machine. Its sessions that are created without a ConfigProto,
 * which only muster's own programs do, run any graph: nodes for a task of another cluster are
 * placed on this one. */
void muster_remote_master_set_one_task (MusterRemoteMaster *self);

/* The graph that such a session is created with, (transfer full), and *config, the master's; of
 * another one, or with a config (nullable), both are what is given. NULL for a malformed graph. */
MusterGraph *muster_remote_master_place (MusterRemoteMaster *self, MusterGraph *graph,
                                         GBytes **config, GError **error);

/* The task at the master is in no cluster but that which its sessions bring (cluster_def), where it
 * has this address: each names it, and the first one is tried: fails if TensorFlow doesn't let it
 * share what is on device. */
void muster_remote_master_set_outside (MusterRemoteMaster *self, const char *address,
                                       const char *device);

/* The same for one at which the sessions of other are created, such as its gateway. */
void muster_remote_master_copy_outside (MusterRemoteMaster *self, MusterRemoteMaster *other);

/* That address (nullable), borrowed. */
const char *muster_remote_master_outside (MusterRemoteMaster *self);

/* The connection of its sessions; borrowed. */
MusterRpcClient *muster_remote_master_client (MusterRemoteMaster *self);

/* The connection of a session of this master, created or adopted; borrowed. */
MusterRpcClient *muster_remote_session_client (MusterSession *session);

/* A session (transfer full) for a handle that the master gave to another client. From then on it
 * behaves as if this master had created it: it is closed when it is freed. graph (nullable) is the
 * session's graph. */
MusterSession *muster_remote_master_adopt (MusterRemoteMaster *self, const char *handle,
                                           MusterGraph *graph);

/* The master has closed or lost the session: nothing more is sent for it. */
void muster_remote_session_forget (MusterSession *session);

G_END_DECLS
