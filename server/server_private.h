// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "ready/chief_registry.h"
#include "ready/hub.h"
#include "rpc/proto/muster.pb-c.h"
#include "rpc/server/rpc_server.h"
#include "server/core/handler_pool.h"
#include "server/core/limits.h"
#include "server/core/request_ids.h"
#include "server/core/session_reaper.h"
#include "server/core/sessions.h"
#include "server/core/step_meter.h"
#include "server/http/http_service.h"
#include "server/server.h"
#include "server/services/health_service.h"

G_BEGIN_DECLS

/* What the services of one server share. A service's methods are entered with the server as their
 * user data. */

typedef struct _MusterReadinessService MusterReadinessService;
typedef struct _MusterAnnounceService MusterAnnounceService;
typedef struct _MusterGateway MusterGateway;

/* A method of ours, as the RPC server knows it: run by the crew. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterRpcHandler handler;
} MusterServerMethod;

struct _MusterServer {
  MusterMaster *master;              /* (owned) */
  MusterClock *clock;                /* (owned) */
  MusterLimits *limits;              /* (owned) */
  MusterSessions *sessions;          /* (owned) */
  MusterRequestIds *request_ids;     /* (owned) */
  MusterBoard *board;                /* (owned) */
  MusterCollector *collector;        /* (owned) */
  MusterStepMeter *steps;            /* (owned) */
  MusterReadinessService *readiness; /* (owned) */
  MusterAnnounceService *announcing; /* (owned) */
  MusterCrew *crew;                  /* (owned) */
  MusterGateway *gateway;            /* (owned) (nullable) where the master is behind gRPC */
  MusterHealthService *health;       /* (owned) */
  MusterRpcServer *rpc;              /* (owned) */
  MusterRpcClient *itself;           /* (owned) (nullable) from the first check on */
  MusterRpcServer *health_rpc;       /* (owned) (nullable) the port that offers only health */
  MusterHttpService *http;           /* (owned) (nullable) */
  GPtrArray *methods;                /* (owned) (element-type MusterServerMethod) */
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  gboolean is_insecure;              /* it may listen beyond loopback without them */
  gint is_stopping;                  /* atomic */
  gint64 started_us;
  gint64 idle_session_us; /* 0: sessions without a lease are kept */
};

/* Of TensorFlow's MasterService. */
#define MUSTER_MASTER_SERVICE(name) "/tensorflow.MasterService/" name

/* Enters a method, "/package.Service/Name". */
void muster_server_add_method (MusterServer *self, const char *path, MusterRpcHandler handler);

/* Answers with a packed message. */
void muster_server_reply (MusterRpcCall *call, const ProtobufCMessage *message);

/* Unpacks a request, or ends the call and returns NULL. */
gpointer muster_server_unpack (MusterRpcCall *call, GBytes *request,
                               const ProtobufCMessageDescriptor *descriptor, MusterArena *arena);

/* /muster.Readiness: Claim and Announce; it has the board's leases run out. */
MusterAnnounceService *muster_announce_service_new (MusterServer *server);
void muster_announce_service_free (MusterAnnounceService *self);
void muster_announce_service_enter (MusterAnnounceService *self);
/* Something on the board has changed. Any thread. */
void muster_announce_service_board_changed (MusterAnnounceService *self);
/* The master was reset, after n_claims claims of the board's. */
void muster_announce_service_reset (MusterAnnounceService *self, guint64 n_claims);
/* Ends all leases' streams, and grants no more. Idempotent. */
void muster_announce_service_stop (MusterAnnounceService *self);

/* A text as a message's field, which is never NULL; borrowed. */
char *muster_server_text (const char *text);

/* An announcement as a message, which borrows its texts. */
void muster_server_fill_announcement (Muster__Announcement *message,
                                      const MusterAnnouncement *chief);

/* A timeout as TensorFlow's messages have it; 0 (or less): none. */
gint64 muster_server_from_milliseconds (gint64 timeout_ms);

/* For how long the session that a call makes lives without a word from its client; 0: until it is
 * closed. */
gboolean muster_server_read_lease (MusterServer *server, MusterRpcCall *call, gint64 *lease_us,
                                   GError **error);

/* A call that is at a session, which doesn't expire meanwhile. */
typedef struct {
  MusterServer *server; /* (not owned) */
  MusterServed *served; /* (owned) (nullable) */
  gboolean is_open;
} MusterUse;

/* served is NULL for an unknown session: then the call has been ended. */
MusterUse muster_server_use (MusterServer *server, MusterRpcCall *call, const char *handle);
/* Before the call is answered: a client may go by the answer. Idempotent. */
void muster_use_end (MusterUse *self);
void muster_use_clear (MusterUse *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterUse, muster_use_clear)

/* TensorFlow's MasterService; its steps and callables have a file of their own. */
void muster_master_service_enter (MusterServer *server);
void muster_step_service_enter (MusterServer *server);

/* TensorFlow's MasterService in front of a master behind gRPC: calls pass as the bytes they are
 * (server/gateway/gateway_private.h). */
MusterGateway *muster_gateway_new (MusterServer *server);
void muster_gateway_free (MusterGateway *self);
void muster_gateway_enter (MusterGateway *self);

/* /muster.Readiness: Renew and Status. */
void muster_status_service_enter (MusterServer *server);
/* Resident memory; 0 where the system doesn't say. */
gint64 muster_server_resident_bytes (void);

/* /muster.Readiness: Watch. */
MusterReadinessService *muster_readiness_service_new (MusterServer *server);
void muster_readiness_service_free (MusterReadinessService *self);
void muster_readiness_service_enter (MusterReadinessService *self);
/* The board says something else of a model. Any thread. */
void muster_readiness_service_model_changed (MusterReadinessService *self, const char *model);
MusterReadinessHub *muster_readiness_service_hub (MusterReadinessService *self); /* borrowed */
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
