// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"
#include "rpc/server/rpc_server.h"
#include "rpc/server/rpc_threads_private.h"

G_BEGIN_DECLS

/* What server (it takes calls in) and call (it answers one) know of each other.
 *
 * The rule that keeps stopping safe: a batch may be started on a call only while its is_gone is
 * FALSE, under its lock; and the queue is shut down only when no call is open (n_open is 0). A
 * call is open from when it is requested until its RECV_CLOSE has come, or the request has failed.
 */

typedef struct {
  MusterRpcServer *server;  /* (not owned) */
  char *path;               /* (owned) (nullable) NULL: every method that nobody registered */
  MusterRpcHandler handler; /* (nullable) as above */
  MusterRpcMessageHandler message_handler; /* (nullable) instead of handler */
  gpointer user_data;                      /* (not owned) */
  void *registered; /* gRPC's name for it, from start on (not owned) (nullable) */
} MusterRpcMethod;

struct _MusterRpcServer {
  gatomicrefcount refs; /* the owner's, and one for each call */
  grpc_server *server;  /* (owned) (nullable) NULL once stopped */
  grpc_completion_queue *queue;
  GPtrArray *methods;        /* (owned) (element-type MusterRpcMethod) */
  GPtrArray *open_methods;   /* (owned) (element-type char *) paths; complete from start on */
  MusterRpcThreads *threads; /* (owned) (nullable) while it runs */
  MusterRpcTag shut;

  GMutex stopping; /* held for the length of a stop */
  GMutex lock;
  GCond changed;       /* is_shut or n_open */
  gboolean is_started; /* guarded by stopping */
  gboolean is_shut;    /* guarded by lock: gRPC takes no more calls */
  gint n_open;         /* guarded by lock: calls requested that are not gone, and those passed on */
  GQueue passing; /* guarded by lock: (element-type grpc_call) passed on, that outlive a caller */
  gboolean is_cancelling; /* guarded by lock: those are cancelled, and such as come */
};

struct _MusterRpcCall {
  gatomicrefcount refs;    /* until it is answered, until it is gone, one for a batch under way */
  MusterRpcServer *server; /* (owned) */
  MusterRpcMethod *method; /* (not owned) */
  grpc_call *call;         /* (owned) (nullable) until it is taken in */
  grpc_metadata_array metadata;
  grpc_call_details details; /* of a method that nobody registered */
  grpc_byte_buffer *request; /* (owned) (nullable) */
  gpr_timespec deadline;
  int was_cancelled;
  MusterRpcTag requested, closed, sent;

  GMutex lock;               /* guards all below */
  GCancellable *cancellable; /* (owned) (nullable) made when it is asked for */
  gboolean is_gone;          /* its RECV_CLOSE came: nothing may be started on it */
  gboolean is_answered;
  gboolean has_sent_metadata;
  gboolean has_sent_status;
  GQueue messages;           /* (element-type grpc_byte_buffer) to be sent */
  grpc_byte_buffer *sending; /* (owned) (nullable) */
  gboolean is_sending;       /* a batch of ours is under way */
  int status;
  char *status_text;         /* (owned) (nullable) */
  grpc_slice status_details; /* (owned) beside the text; empty: none */
  GSList *headers;           /* (owned) those that were asked for */
};

/* How a status says more than its text, in the trailing metadata: a google.rpc.Status. */
#define MUSTER_RPC_DETAILS "grpc-status-details-bin"

/* Ends a call with a message (transfer full) or with error, to which details (nullable) belong. */
void muster_rpc_call_end (MusterRpcCall *self, grpc_byte_buffer *message, const GError *error,
                          const grpc_slice *details);

/* A call that is to be taken in; the reference is the one it holds until it is answered. */
MusterRpcCall *muster_rpc_call_new (MusterRpcMethod *method);

void muster_rpc_server_ref_private (MusterRpcServer *self);
void muster_rpc_server_unref_private (MusterRpcServer *self);

/* Asks gRPC for the next call of a method. */
void muster_rpc_server_request (MusterRpcMethod *method);

/* A call that is passed on, which may outlive its caller but not the server: its link's data is the
 * grpc_call, which is cancelled when the server stops. */
void muster_rpc_server_enter (MusterRpcServer *self, GList *passing);
void muster_rpc_server_leave (MusterRpcServer *self, GList *passing);

/* One call more, or fewer, is open. */
void muster_rpc_server_count (MusterRpcServer *self, gint change);

/* Has each call that comes in by `secured` show that text, except those of the open methods
 * (element-type char *, a "/package.Service/Name" each), before its request is read. */
void muster_rpc_guard (grpc_server_credentials *secured, const grpc_slice *authorization,
                       GPtrArray *open_methods);

G_END_DECLS
