// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/server/rpc_server.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterServer serves a master on the network: TensorFlow's MasterService, muster's Readiness
 * service and gRPC's health service, for any MusterMaster. Sessions are identified by their handle.
 * An unknown handle is ABORTED, "Session H is not found. Possibly, this master has restarted.",
 * from which TensorFlow's MonitoredSession recovers. A session created with the header
 * "muster-lease" (1 to 3600 seconds) is closed when it was neither renewed nor used for that long.
 * Sessions of other clients are kept until they are closed or the master is reset, as on
 * TensorFlow's server, unless idle_session_us is set. */

typedef struct {
  MusterClock *clock;                /* NULL: the machine's */
  MusterRpcCredentials *credentials; /* (nullable) TLS and token; health needs neither */
  gboolean insecure;                 /* allow listening beyond loopback without TLS */
  MusterServerLimits limits;
  gint64 chief_lease_us;  /* 0: 15 s: a chief that is silent for this long loses its model */
  gint64 idle_session_us; /* 0: never: close sessions of clients that don't renew if unused for this
                             long */
} MusterServerOptions;

/* options may be NULL. */
MusterServer *muster_server_new (MusterMaster *master, const MusterServerOptions *options);
/* Stops the server first. */
void muster_server_free (MusterServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServer, muster_server_free)

/* Serves on HOST:PORT (port 0 selects a free one). Returns the port, or 0 with an error:
 * PERMISSION_DENIED for an address beyond loopback without TLS, unless insecure. */
int muster_server_listen (MusterServer *self, const char *address, GError **error);
/* The same for a port that serves only health, for probes that mustn't reach the master. Any
 * address is allowed, since it serves health only, in plain text. Before start. During a stop it
 * still answers NOT_SERVING while steps end. */
int muster_server_listen_health (MusterServer *self, const char *address, GError **error);
/* Serves GET /healthz, /readyz and /metrics (OpenMetrics) over HTTP, without token or TLS: beyond
 * loopback only if insecure, else PERMISSION_DENIED. Before start. */
int muster_server_listen_http (MusterServer *self, const char *address, GError **error);

void muster_server_start (MusterServer *self);

/* Checks the server's health like a probe, from within: FALSE if there is no answer within
 * timeout_us, or it isn't serving. After start, before stop. One thread at a time. */
gboolean muster_server_check (MusterServer *self, gint64 timeout_us, GError **error);

typedef struct {
  guint sessions;
  guint watchers;
  guint models; /* announced */
  guint ready;  /* of those */
} MusterServerCounts;

/* Any thread. */
void muster_server_count (MusterServer *self, MusterServerCounts *counts);

/* Notifies watchers, lets steps end for grace_us, then cancels them. */
void muster_server_stop (MusterServer *self, gint64 grace_us);

G_END_DECLS
