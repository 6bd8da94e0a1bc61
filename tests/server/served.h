// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/remote_master.h"
#include "server/server.h"
#include "tests/gtest_shim.h"
#include "wire/rpc_client.h"

G_BEGIN_DECLS

/* A server over a local master, on a free port of the loopback, and two ways to reach it: the
 * remote master, and bare calls. */
typedef struct {
  MusterMaster *local;   /* (owned) the one that is served */
  MusterServer *server;  /* (owned) */
  MusterMaster *remote;  /* (owned) */
  MusterRpcClient *bare; /* (owned) */
} Served;

/* How long a test waits for what should take no time. */
gint64 patience (void);

Served served_start (void);
/* The same over another master. */
Served served_start_over (MusterMaster *master);
/* The same with these options; NULL for either is the default. */
Served served_start_with (MusterMaster *master, const MusterServerOptions *options);
void served_clear (Served *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Served, served_clear)

/* "x" placeholder, "two" = 2, "sum" = x + two, variables "v" = 1 and "w" = 2 ("v/read", …), "init"
 * for both, "init_v" for one, and a ready op, whose name goes to *ready_op. */
MusterGraph *served_graph (char **ready_op);

/* A session over that graph; ready_op may be NULL. The test has failed where it returns NULL. */
MusterSession *served_session (Served *self, char **ready_op);

/* Runs one fetch with x fed. */
MusterTensor *served_fetch (MusterSession *session, const char *fetch, float x,
                            GCancellable *cancellable, GError **error);
gboolean served_run (MusterSession *session, const char *op, GError **error);

/* The error's text holds these words. */
#define EXPECT_SAYS(error, words)                                                                  \
  MUSTER_EXPECT_TRUE ((error) != NULL && strstr ((error)->message, words) != NULL)

/* One bare call of "/tensorflow.MasterService/NAME"; the pieces are a packed message. */
GBytes *served_call (Served *self, const char *name, GBytes *message, GError **error);

G_END_DECLS
