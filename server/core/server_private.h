// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "ready/hub_private.h"
#include "ready/member_registry_private.h"
#include "rpc/server/rpc_server_private.h"
#include "server/core/handler_pool.h"
#include "server/core/held_files.h"
#include "server/core/histogram.h"
#include "server/core/known_graphs.h"
#include "server/core/limits.h"
#include "server/core/request_ids.h"
#include "server/core/session_reaper.h"
#include "server/core/sessions.h"
#include "server/core/step_meter.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* What the services of a server share. Methods are registered with the server as their user data.
 */

/* Each has its own header. */
typedef struct _MusterReadinessService MusterReadinessService;
typedef struct _MusterAnnounceService MusterAnnounceService;
typedef struct _MusterMemberService MusterMemberService;
typedef struct _MusterStatusWatch MusterStatusWatch;
typedef struct _MusterHealthService MusterHealthService;
typedef struct _MusterHttpService MusterHttpService;
typedef struct _MusterGateway MusterGateway;

struct _MusterServer {
  MusterMaster *master;              /* (owned) */
  MusterClock *clock;                /* (owned) */
  MusterLimits *limits;              /* (owned) */
  MusterSessions *sessions;          /* (owned) */
  MusterRequestIds *request_ids;     /* (owned) */
  MusterChiefRegistry *registry;     /* (owned) */
  MusterReadinessHub *hub;           /* (owned) */
  MusterKnownGraphs *known_graphs;   /* (owned) */
  MusterSessionReaper *reaper;       /* (owned) */
  MusterStepMeter *steps;            /* (owned) */
  MusterHistogram watch_latency;     /* from a change to the message about it */
  MusterHistogram restores;          /* how long chiefs restored */
  MusterReadinessService *readiness; /* (owned) */
  MusterAnnounceService *announcing; /* (owned) */
  MusterMemberService *membership;   /* (owned) */
  MusterMemberRegistry *members;     /* (owned by membership) */
  MusterStatusWatch *status_watch;   /* (owned) */
  MusterHandlerPool *handler_pool;   /* (owned) */
  MusterHeldFiles *files;            /* (owned) other machines' checkpoints */
  MusterGateway *gateway;            /* (owned) (nullable) if the master is behind gRPC */
  GMutex master_lock;
  char *master_failure;        /* (owned) (nullable) guarded by master_lock */
  gboolean is_of_cluster;      /* it stands before a task of TensorFlow's cluster */
  MusterHealthService *health; /* (owned) */
  MusterRpcServer *rpc;        /* (owned) */
  MusterRpcClient *itself;     /* (owned) (nullable) after the first check */
  MusterRpcServer *health_rpc; /* (owned) (nullable) the port that serves only health */
  MusterHttpService *http;     /* (owned) (nullable) */
  GPtrArray *methods;          /* (owned) data of the methods from muster_server_add_method () */
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  gboolean is_insecure;              /* may listen beyond loopback without credentials */
  char **expected;                   /* (owned) (nullable) */
  gint is_stopping;                  /* atomic */
  gboolean is_started;
  gint64 drain_until_us; /* atomic; 0: it serves; on the system clock */
  gint64 started_us;
  char **http_hosts;      /* (owned) (nullable) */
  gint64 idle_session_us; /* 0: sessions without a lease are kept */
};

G_END_DECLS
