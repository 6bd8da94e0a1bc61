// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/credentials_private.h"
#include "wire/grpc_private.h"
#include "wire/rpc_server.h"
#include "wire/rpc_threads_private.h"

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
  gpointer user_data;       /* (not owned) */
  void *registered;         /* gRPC's name for it, from start on (not owned) (nullable) */
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
  gboolean has_listened;
  gboolean is_shut; /* guarded by lock: gRPC takes no more calls */
  gint n_open;      /* guarded by lock: calls requested that are not gone */
};

typedef struct _MusterRpcCallHeader MusterRpcCallHeader;
void muster_rpc_call_headers_free (MusterRpcCallHeader *first);

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
  char *status_text;            /* (owned) (nullable) */
  MusterRpcCallHeader *headers; /* (owned) (nullable) those that were asked for */
};

/* A call that is to be taken in; the reference is the one it holds until it is answered. */
MusterRpcCall *muster_rpc_call_new (MusterRpcMethod *method);

void muster_rpc_server_ref_private (MusterRpcServer *self);
void muster_rpc_server_unref_private (MusterRpcServer *self);

/* Asks gRPC for the next call of a method. */
void muster_rpc_server_request (MusterRpcMethod *method);

/* One call more, or fewer, is open. */
void muster_rpc_server_count (MusterRpcServer *self, gint change);

G_END_DECLS
