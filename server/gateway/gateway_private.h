// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote/remote_master_private.h"
#include "rpc/server/proxy.h"
#include "server/core/server_private.h"
#include "server/gateway/gateway.h"

G_BEGIN_DECLS

/* How many bytes a session's handle may have; TensorFlow's and muster's have 16. */
#define MUSTER_GATEWAY_MAX_HANDLE 255

/* One graph for all sessions with the same bytes, while there is one of them: so that a crowd
 * doesn't hold its model thousands of times. */
typedef struct _MusterGatewayGraphs MusterGatewayGraphs;
MusterGatewayGraphs *muster_gateway_graphs_new (void);
void muster_gateway_graphs_unref (MusterGatewayGraphs *self);
/* (transfer full) until it is released. */
MusterGraph *muster_gateway_graphs_get (MusterGatewayGraphs *self, GBytes *bytes);
void muster_gateway_graphs_release (MusterGatewayGraphs *self, MusterGraph *graph);
/* The session has that graph, which came from here, for as long as it lives. */
void muster_gateway_graphs_keep (MusterGatewayGraphs *self, MusterSession *session,
                                 MusterGraph *graph);
guint muster_gateway_graphs_size (MusterGatewayGraphs *self);

/* Which steps have been run, of all sessions: each by a hash of its session and its names. Bounded:
 * one that has been forgotten counts as new. */
#define MUSTER_GATEWAY_SEEN 8192

/* What stands in a request. */
typedef struct {
  char handle[MUSTER_GATEWAY_MAX_HANDLE + 1];
  guint64 names;      /* a hash of what a step runs */
  guint64 node_bytes; /* of the graph that an extension brings */
  gboolean wants_errors_in_body;
} MusterGatewayPeek;

/* What has a number means something else in each. */
typedef enum {
  MUSTER_GATEWAY_STEP,
  MUSTER_GATEWAY_CALLABLE, /* of RunCallable */
  MUSTER_GATEWAY_EXTENSION,
  MUSTER_GATEWAY_OTHER, /* only the handle is looked at */
} MusterGatewayKind;

/* What is called on a session. */
typedef struct {
  MusterServer *server; /* (not owned) */
  const char *path;     /* static */
  MusterGatewayKind kind;
} MusterGatewayMethod;

#define MUSTER_GATEWAY_N_METHODS 6

struct _MusterGateway {
  MusterServer *server;              /* (not owned) */
  MusterGatewayGraphs *graphs;       /* (owned) */
  guint64 seen[MUSTER_GATEWAY_SEEN]; /* atomic */
  MusterGatewayMethod methods[MUSTER_GATEWAY_N_METHODS];
};

/* FALSE with INVALID_ARGUMENT for a message that is malformed. */
gboolean muster_gateway_peek (const MusterRpcMessage *message, MusterGatewayKind kind,
                              MusterGatewayPeek *peek, GError **error);

/* Whether its master has lost the session, as it tells a call that was at it: then it is gone here
 * too. */
void muster_gateway_note_loss (MusterGateway *self, MusterServed *served, const GError *error);

/* Enters what is called on a session. */
void muster_gateway_enter_steps (MusterGateway *self);

G_END_DECLS
