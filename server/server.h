// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/server/rpc_server.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* MusterServer puts a master on the network: TensorFlow's MasterService, muster's own Readiness
 * service, and gRPC's health service, in front of any MusterMaster. A session is known by its
 * handle; one that is unknown is ABORTED, "Session H is not found. Possibly, this master has
 * restarted.", which is what TensorFlow's MonitoredSession recovers from. A session made with the
 * header "muster-lease" (1 to 3600 seconds) is closed once it was neither renewed nor used for so
 * long; those of clients that don't renew are kept until they are closed or the master is reset, as
 * on TensorFlow's server, unless idle_session_us says otherwise. */

typedef struct {
  MusterClock *clock;                /* NULL: the machine's */
  MusterRpcCredentials *credentials; /* (nullable) TLS and token; health is open to all */
  gboolean insecure;                 /* listen beyond loopback without TLS */
  MusterServerLimits limits;
  gint64 chief_lease_us;  /* 0: 15 s: a chief that is silent for so long has lost its model */
  gint64 idle_session_us; /* 0: never: sessions of clients that don't renew, unused for so long, are
                             closed */
} MusterServerOptions;

/* options may be NULL. */
MusterServer *muster_server_new (MusterMaster *master, const MusterServerOptions *options);
/* Stops first. */
void muster_server_free (MusterServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServer, muster_server_free)

/* Serves on HOST:PORT (port 0 takes a free one) and returns the port, or 0 with an error:
 * PERMISSION_DENIED for an address beyond loopback without TLS, unless insecure. */
int muster_server_listen (MusterServer *self, const char *address, GError **error);
/* The same for a port that offers nothing but health, for probes that may not reach the master.
 * On any address: it tells of health alone, in plain text. Before start. While steps are given time
 * to end it still answers, NOT_SERVING. */
int muster_server_listen_health (MusterServer *self, const char *address, GError **error);
/* GET /healthz, /readyz and /metrics (OpenMetrics) over HTTP, without token or TLS: beyond
 * loopback only if insecure, else PERMISSION_DENIED. Before start. */
int muster_server_listen_http (MusterServer *self, const char *address, GError **error);

void muster_server_start (MusterServer *self);

/* Asks the server for its health as a probe would, but from within: FALSE says that no answer came
 * in timeout_us, or that it isn't serving. After start, before stop. One thread at a time. */
gboolean muster_server_check (MusterServer *self, gint64 timeout_us, GError **error);

typedef struct {
  guint sessions;
  guint watchers;
  guint models; /* announced */
  guint ready;  /* of those */
} MusterServerCounts;

/* Any thread. */
void muster_server_count (MusterServer *self, MusterServerCounts *counts);

/* Tells those who watch, lets steps end for grace_us, then cancels them. */
void muster_server_stop (MusterServer *self, gint64 grace_us);

G_END_DECLS
