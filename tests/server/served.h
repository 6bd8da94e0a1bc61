// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "master/lease.h"
#include "master/remote/remote_master.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

G_BEGIN_DECLS

/* A server over a local master, on a free port of the loopback, and two ways to reach it: the
 * remote master, and bare calls. */
typedef struct {
  MusterMaster *local;   /* (owned) the one that is served */
  MusterServer *server;  /* (owned) */
  MusterMaster *remote;  /* (owned) */
  MusterRpcClient *bare; /* (owned) */
} Served;

Served served_start (void);
/* The same over another master. */
Served served_start_over (MusterMaster *master);
/* The same with these options; NULL for either is the default. */
Served served_start_with (MusterMaster *master, const MusterServerOptions *options);
/* The same at that address (tests/held_port.h), where the test starts another one later. */
Served served_start_at (const char *address);
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

/* A step on a thread that fetches "stuck:0" of a MusterStuckMaster; and its error (transfer full).
 */
typedef struct {
  MusterSession *session;    /* (not owned) */
  GCancellable *cancellable; /* (not owned) (nullable) */
  GThread *thread;
  GError *error;
} ServedStuck;

void served_stuck_start (ServedStuck *self, MusterSession *session, GCancellable *cancellable);
GError *served_stuck_join (ServedStuck *self);

/* Watches a ready op; claims the model "digits" for worker:0. ready_op (nullable) of the claim. */
MusterWatch *served_watch_ready (MusterSession *session, const char *ready_op);
MusterLease *served_claim (MusterSession *session, const char *ready_op);

/* The error's text holds these words. */
#define EXPECT_SAYS(error, words)                                                                  \
  MUSTER_EXPECT_TRUE ((error) != NULL && strstr ((error)->message, words) != NULL)

/* One bare call of "/tensorflow.MasterService/NAME"; the pieces are a packed message. */
GBytes *served_call (Served *self, const char *name, GBytes *message, GError **error);

/* One bare call of any method. lease (nullable) is sent as the header muster-lease. */
GBytes *served_ask (Served *self, const char *method, const ProtobufCMessage *message,
                    const char *lease, GError **error);

/* What Status says; in arena. NULL where the test has failed. */
Muster__StatusResponse *served_status (Served *self, MusterArena *arena);
/* One of its limits; NULL where there is none of that name. */
Muster__Limit *served_limit (Muster__StatusResponse *status, const char *name);

/* A session made by a bare call: its handle, or NULL with an error. */
char *served_bare_session (Served *self, const char *lease, GError **error);
/* Runs an op in it. */
gboolean served_bare_step (Served *self, const char *handle, const char *target, GError **error);
/* The handles that are not known there, of one that is renewed; NULL where it is. */
char *served_renew (Served *self, const char *handle);

G_END_DECLS
