// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/board.h"
#include "server/crew.h"
#include "server/health_service.h"
#include "server/server.h"
#include "server/sessions.h"
#include "wire/proto/muster.pb-c.h"
#include "wire/rpc_server.h"

#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

/* What the services of one server share. A service's methods are entered with the server as their
 * user data. */

typedef struct _MusterReadinessService MusterReadinessService;
typedef struct _MusterAnnounceService MusterAnnounceService;

/* A method of ours, as the RPC server knows it: run by the crew. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterRpcHandler handler;
} MusterServerMethod;

struct _MusterServer {
  MusterMaster *master;              /* (owned) */
  MusterClock *clock;                /* (owned) */
  MusterSessions *sessions;          /* (owned) */
  MusterBoard *board;                /* (owned) */
  MusterReadinessService *readiness; /* (owned) */
  MusterAnnounceService *announcing; /* (owned) */
  MusterCrew *crew;                  /* (owned) */
  MusterHealthService *health;       /* (owned) */
  MusterRpcServer *rpc;              /* (owned) */
  MusterRpcServer *health_rpc;       /* (owned) (nullable) the port that offers only health */
  GPtrArray *methods;                /* (owned) (element-type MusterServerMethod) */
  gint64 started_us;
  gint64 n_steps; /* atomic */
};

/* One step more was asked for. */
static inline void
muster_server_count_step (MusterServer *self)
{
  __atomic_fetch_add (&self->n_steps, 1, __ATOMIC_RELAXED);
}

/* Enters a method, "/package.Service/Name". */
void muster_server_add_method (MusterServer *self, const char *path, MusterRpcHandler handler);

/* Answers with a packed message. */
void muster_server_reply (MusterRpcCall *call, const ProtobufCMessage *message);

/* TensorFlow's MasterService. */
void muster_master_service_enter (MusterServer *server);

/* /muster.Readiness: Claim and Announce; it has the board's leases run out. */
MusterAnnounceService *muster_announce_service_new (MusterServer *server);
void muster_announce_service_free (MusterAnnounceService *self);
void muster_announce_service_enter (MusterAnnounceService *self);
/* Something on the board has changed. Any thread. */
void muster_announce_service_board_changed (MusterAnnounceService *self);
/* Ends all leases' streams, and grants no more. Idempotent. */
void muster_announce_service_stop (MusterAnnounceService *self);

/* An announcement as a message, which borrows its texts. */
void muster_server_fill_announcement (Muster__Announcement *message,
                                      const MusterAnnouncement *chief);

/* /muster.Readiness: Watch and Status. */
MusterReadinessService *muster_readiness_service_new (MusterServer *server);
void muster_readiness_service_free (MusterReadinessService *self);
void muster_readiness_service_enter (MusterReadinessService *self);
/* Ends the watches of a session that was closed or reset. */
void muster_readiness_service_session_gone (MusterReadinessService *self, MusterServed *served);
/* Ends all watches, and takes no more. Idempotent. */
void muster_readiness_service_stop (MusterReadinessService *self);

/* Who waits here, as Status lists it. */
typedef struct {
  char *task;  /* (owned) "worker:3"; "" where it didn't say */
  char *who;   /* (owned) "HOST:PID"; "" likewise */
  char *model; /* (owned) "" where the two ops alone decide */
  gint64 age_us;
  const char *waits_for; /* static: "gate", "ready", or "" for one that was told that it is ready */
  char *why;             /* (owned) as it was told last; "" before, and when ready */
} MusterWaiting;

void muster_waiting_free (MusterWaiting *self);

/* (transfer full) (element-type MusterWaiting) the longest waiting first, at most max of them. */
GPtrArray *muster_readiness_service_waiters (MusterReadinessService *self, guint max);
guint muster_readiness_service_n_watchers (MusterReadinessService *self);

G_END_DECLS
