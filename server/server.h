// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/server/rpc_server_private.h"
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
  const guint32 *users;              /* of the machine, beside this process's user: those that may
                                        connect to Unix sockets */
  gsize n_users;
  MusterServerLimits limits;
  const char *const *expected; /* (nullable) (array zero-terminated=1) models without which /readyz
                                  isn't ready */
  guint64 file_bytes;          /* memory for other machines' checkpoints; 0: none are kept */
  gint64 chief_lease_us;       /* 0: 15 s: a chief that is silent for this long loses its model */
  gint64 idle_session_us; /* 0: never: close sessions of clients that don't renew if unused for this
                             long */
  /* (nullable) (array zero-terminated=1) "ps:0=HOST:PORT": tasks of TensorFlow's that the sessions
   * of a master behind gRPC need. A restart of one is noticed within a second, and ends them. */
  const char *const *needed;
  /* (nullable) Names by which clients of the HTTP port may know this server, besides localhost, its
   * host's name and IP addresses. */
  const char *const *http_hosts;
} MusterServerOptions;

/* options may be NULL. */
MusterServer *muster_server_new (MusterMaster *master, const MusterServerOptions *options);
/* Stops the server first. */
void muster_server_free (MusterServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServer, muster_server_free)

/* Serves on HOST:PORT (port 0 selects a free one). Returns the port, or 0 with an error:
 * PERMISSION_DENIED for an address beyond loopback without TLS, unless insecure. Also on
 * unix:/PATH, which returns 1: without TLS and tokens, as the kernel tells who connects. A socket
 * that a dead process left is replaced; one on which a process listens is UNAVAILABLE. Before
 * start. */
int muster_server_listen (MusterServer *self, const char *address, GError **error);
/* The same for a port that serves only health, for probes that mustn't reach the master. Any
 * address is allowed, since it serves health only, in plain text. Before start. During a stop it
 * still answers NOT_SERVING while steps end. */
int muster_server_listen_health (MusterServer *self, const char *address, GError **error);
/* Serves a page at /, /api/status, /metrics (OpenMetrics), /healthz and /readyz over HTTP, with
 * TLS if the server has it. /healthz and /readyz are open; all else needs a token with the role of
 * reading, if the server has tokens. Addresses as for muster_server_listen (). Before start. */
int muster_server_listen_http (MusterServer *self, const char *address, GError **error);

/* What muster_server_listen () and muster_server_listen_http () check about an address before they
 * bind it, without a server. */
gboolean muster_server_may_listen (const MusterServerOptions *options, const char *address,
                                   GError **error);

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

/* Drains the server before a stop: health is NOT_SERVING, sessions and claims are refused
 * (UNAVAILABLE), and chiefs are told to save; steps on existing sessions run. Returns at once.
 * within_us: when the caller will stop it at the latest; chiefs don't save for longer. */
void muster_server_drain (MusterServer *self, gint64 within_us);
/* TRUE when no chief is left that saves at a drain and hasn't done so. Else *awaited (nullable out,
 * transfer full) names the first one: "'digits', worker:0 (host:4711),". Any thread. */
gboolean muster_server_is_drained (MusterServer *self, char **awaited);

/* Notifies watchers, lets steps end for grace_us, then cancels them. */
void muster_server_stop (MusterServer *self, gint64 grace_us);

G_END_DECLS
