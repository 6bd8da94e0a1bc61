// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* MusterServer puts a master on the network: TensorFlow's MasterService, muster's own Readiness
 * service, and gRPC's health service, in front of any MusterMaster. A session is known by its
 * handle; one that is unknown is ABORTED, "Session H is not found. Possibly, this master has
 * restarted.", which is what TensorFlow's MonitoredSession recovers from. Sessions of clients that
 * never close are kept until the master is reset, as on TensorFlow's server. */

typedef struct _MusterServer MusterServer;

typedef struct {
  MusterClock *clock; /* NULL: the machine's */
} MusterServerOptions;

/* options may be NULL. */
MusterServer *muster_server_new (MusterMaster *master, const MusterServerOptions *options);
/* Stops first. */
void muster_server_free (MusterServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServer, muster_server_free)

/* Serves on HOST:PORT (port 0 takes a free one) and returns the port, or 0 with an error. */
int muster_server_listen (MusterServer *self, const char *address, GError **error);
/* The same for a port that offers nothing but health, for probes that may not reach the master.
 * Before start. While steps are given time to end it still answers, NOT_SERVING. */
int muster_server_listen_health (MusterServer *self, const char *address, GError **error);
void muster_server_start (MusterServer *self);

/* Tells those who watch, lets steps end for grace_us, then cancels them. */
void muster_server_stop (MusterServer *self, gint64 grace_us);

G_END_DECLS
