// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/background_private.h"
#include "master/remote/remote_master_private.h"
#include "rpc/server/proxy_private.h"
#include "server/core/server_private.h"
#include "server/gateway/gateway.h"

G_BEGIN_DECLS

/* The maximum size of a session handle in bytes; TensorFlow's and muster's have 16. */
#define MUSTER_GATEWAY_MAX_HANDLE 255

/* Shares one graph between all sessions with the same bytes, while any of them exists, so that
 * thousands of clients don't hold their model thousands of times. */
typedef struct _MusterGatewayGraphs MusterGatewayGraphs;
MusterGatewayGraphs *muster_gateway_graphs_new (void);
void muster_gateway_graphs_unref (MusterGatewayGraphs *self);
/* (transfer full) until it is released. */
MusterGraph *muster_gateway_graphs_get (MusterGatewayGraphs *self, GBytes *bytes, GError **error);
void muster_gateway_graphs_release (MusterGatewayGraphs *self, MusterGraph *graph);
/* Keeps a graph from here for as long as the session exists. */
void muster_gateway_graphs_keep (MusterGatewayGraphs *self, MusterSession *session,
                                 MusterGraph *graph);
guint muster_gateway_graphs_size (MusterGatewayGraphs *self);

/* Records which steps have been run in any session, by a hash of the session and the names.
 * Bounded: a forgotten one counts as new. */
#define MUSTER_GATEWAY_SEEN 8192

/* The header with the gateways that a call has passed, this one too (transfer full). NULL with
 * FAILED_PRECONDITION if it has passed this one before, or too many. */
#define MUSTER_GATEWAY_WAY "muster-gateways"
void muster_gateway_begin_way (MusterGateway *self);
char *muster_gateway_way (MusterGateway *self, MusterRpcCall *call, GError **error);

/* Looks after the tasks that the master's sessions need. When one was restarted, the sessions from
 * before are taken from the table, told why, and closed at the master, which ends their steps: a
 * step that waits for something else, such as its input, notices nothing by itself. */
typedef struct _MusterGatewayTasks MusterGatewayTasks;
/* needed: see MusterServerOptions. */
MusterGatewayTasks *muster_gateway_tasks_new (MusterServer *server, const char *const *needed);
/* Idempotent. */
void muster_gateway_tasks_stop (MusterGatewayTasks *self);
void muster_gateway_tasks_free (MusterGatewayTasks *self);

/* What is read from a request. */
typedef struct {
  char handle[MUSTER_GATEWAY_MAX_HANDLE + 1];
  guint64 names;      /* a hash of the names in a step */
  guint64 node_bytes; /* of the graph in an extension */
  gint64 request_id;  /* of a step or callable; 0: none */
  gint64 callable;    /* that is run or released */
  gboolean wants_errors_in_body;
  gboolean is_positioned; /* the step, or the callable that is made, feeds a position */
} MusterGatewayPeek;

/* Field numbers have another meaning in each kind. */
typedef enum {
  MUSTER_GATEWAY_STEP,
  MUSTER_GATEWAY_CALLABLE, /* of RunCallable */
  MUSTER_GATEWAY_MAKING,   /* of MakeCallable */
  MUSTER_GATEWAY_RELEASE,  /* of ReleaseCallable */
  MUSTER_GATEWAY_EXTENSION,
  MUSTER_GATEWAY_OTHER, /* only the handle is read */
} MusterGatewayKind;

static inline gboolean
muster_gateway_is_step (MusterGatewayKind kind)
{
  return kind == MUSTER_GATEWAY_STEP || kind == MUSTER_GATEWAY_CALLABLE;
}

/* A method on a session. */
typedef struct {
  MusterServer *server; /* (not owned) */
  const char *path;     /* static */
  MusterGatewayKind kind;
} MusterGatewayMethod;

#define MUSTER_GATEWAY_N_METHODS 6

struct _MusterGateway {
  MusterServer *server;              /* (not owned) */
  MusterGatewayGraphs *graphs;       /* (owned) */
  MusterGatewayTasks *tasks;         /* (owned) */
  MusterBackgroundTask *look;        /* (owned) (nullable) at the master, once it has started */
  char id[16 + 2];                   /* its own in the header of the way, with the comma */
  guint64 seen[MUSTER_GATEWAY_SEEN]; /* atomic */
  MusterGatewayMethod methods[MUSTER_GATEWAY_N_METHODS];
};

/* FALSE with INVALID_ARGUMENT for a malformed message. */
gboolean muster_gateway_peek (const MusterRpcMessage *message, MusterGatewayKind kind,
                              MusterGatewayPeek *peek, GError **error);

/* If the error of a call shows that the master has lost the session, removes it here too. */
void muster_gateway_note_loss (MusterGateway *self, MusterServed *served, const GError *error);

/* Registers the methods on sessions. */
void muster_gateway_enter_steps (MusterGateway *self);

G_END_DECLS
