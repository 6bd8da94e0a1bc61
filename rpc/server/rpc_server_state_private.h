// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"
#include "rpc/server/rpc_peers_private.h"
#include "rpc/server/rpc_server_private.h"
#include "rpc/server/rpc_threads_private.h"
#include "rpc/server/unix_socket_private.h"

G_BEGIN_DECLS

/* What the server (which accepts calls) and a call (which answers one) share.
 *
 * Stopping is safe because of two rules. A batch is started on a call only while its is_gone is
 * FALSE, under its lock. The queue is shut down only when no call is open (n_open is 0). A call is
 * open from its request until its RECV_CLOSE, or until the request fails. */

typedef struct {
  MusterRpcServer *server;                 /* (not owned) */
  char *path;                              /* (owned) (nullable) NULL: all unregistered methods */
  MusterRpcHandler handler;                /* (nullable) NULL for message handlers */
  MusterRpcMessageHandler message_handler; /* (nullable) instead of handler */
  gpointer user_data;                      /* (not owned) */
  MusterRole role;                         /* that a caller needs; NONE: open */
  void *registered; /* gRPC's registration, after start (not owned) (nullable) */
} MusterRpcMethod;

struct _MusterRpcServer {
  gatomicrefcount refs; /* the owner's, and one for each call */
  grpc_server *server;  /* (owned) (nullable) NULL once stopped */
  grpc_completion_queue *queue;
  GPtrArray *methods;          /* (owned) (element-type MusterRpcMethod) */
  GPtrArray *guards;           /* (owned) (element-type MusterRpcGuard) of the addresses */
  MusterRpcThreads *threads;   /* (owned) (nullable) while the server runs */
  GArray *users;               /* (owned) (element-type guint32) */
  GPtrArray *sockets;          /* (owned) (element-type MusterUnixSocket) */
  MusterRpcPeers *peers;       /* (owned) */
  MusterRpcAdmit admit;        /* (nullable) */
  MusterRpcIsShared is_shared; /* (nullable) */
  gpointer data;               /* (not owned) of both */
  MusterRpcTag shut;

  GMutex stopping; /* held during a stop */
  GMutex lock;
  GCond changed;        /* signals is_shut and n_open */
  gboolean is_started;  /* guarded by stopping */
  gboolean is_shut;     /* guarded by lock: gRPC accepts no more calls */
  guint64 n_ended;      /* atomic: connections that were ended */
  gint n_open;          /* guarded by lock: requested calls that aren't gone, and forwarded ones */
  GQueue passing;       /* guarded by lock: (element-type grpc_call) (owned) forwarded calls that
                           outlive their caller */
  GCancellable *ending; /* (owned) cancelled with the open calls, at a stop */
  gboolean is_cancelling; /* guarded by lock: forwarded calls are being cancelled, new ones too */
};

struct _MusterRpcCall {
  gatomicrefcount refs;    /* until answered, until gone, and one for a running batch */
  MusterRpcServer *server; /* (owned) */
  MusterRpcMethod *method; /* (not owned) */
  grpc_call *call;         /* (owned) (nullable) until it is accepted */
  grpc_metadata_array metadata;
  grpc_call_details details; /* for unregistered methods */
  grpc_byte_buffer *request; /* (owned) (nullable) */
  gpr_timespec deadline;
  int was_cancelled;
  MusterRpcTag requested, received, closed, sent;
  MusterRpcPeer *connection; /* (not owned) (nullable) it counts there until it is gone */
  gboolean has_arrived;      /* its connection knows that it has a message */
  gsize n_counted;           /* bytes of its request that count in the process's memory */

  GMutex lock;               /* guards all below */
  GCancellable *cancellable; /* (owned) (nullable) created when requested */
  gboolean is_gone;          /* its RECV_CLOSE came: no batch may be started */
  gboolean is_watched;       /* a batch has its RECV_CLOSE alone */
  gboolean ends_with_answer; /* its RECV_CLOSE is in the batch of its status */
  gboolean is_answered;
  gboolean has_sent_metadata;
  gboolean has_sent_status;
  GQueue messages;           /* (element-type grpc_byte_buffer) not sent yet */
  grpc_byte_buffer *sending; /* (owned) (nullable) */
  gboolean is_sending;       /* a batch that sends is running */
  int status;
  char *status_text;         /* (owned) (nullable) */
  grpc_slice status_details; /* (owned) beside the text; empty: none */
  GSList *headers;           /* (owned) those that were asked for */
  char *peer;                /* (owned) (nullable) once it was asked for */
};

/* Ends a call with a message (transfer full), or with error and its details (nullable). */
void muster_rpc_call_end (MusterRpcCall *self, grpc_byte_buffer *message, const GError *error,
                          const grpc_slice *details);

/* A call to be accepted. It holds the reference until it is answered. */
MusterRpcCall *muster_rpc_call_new (MusterRpcMethod *method);

void muster_rpc_server_ref_private (MusterRpcServer *self);
void muster_rpc_server_unref_private (MusterRpcServer *self);

/* Requests the next call of a method from gRPC. */
void muster_rpc_server_request (MusterRpcMethod *method);

/* Register a forwarded call that may outlive its caller, but not the server: passing's data is the
 * grpc_call, which is cancelled when the server stops, and held in between. */
void muster_rpc_server_enter (MusterRpcServer *self, GList *passing);
void muster_rpc_server_leave (MusterRpcServer *self, GList *passing);

/* Changes n_open by `change`. */
void muster_rpc_server_count (MusterRpcServer *self, gint change);

/* What controls the access to one address of a server: its certificate, as it is now, and the role
 * that a call needs, looked at before its request is read. */
typedef struct _MusterRpcGuard MusterRpcGuard;

/* credentials (nullable); methods (element-type MusterRpcMethod) must not change once calls come.
 */
MusterRpcGuard *muster_rpc_guard_new (MusterRpcCredentials *credentials, GPtrArray *methods);
void muster_rpc_guard_unref (gpointer guard);
/* INVALID_ARGUMENT if the credentials have TLS settings but no certificate. (transfer full) */
grpc_server_credentials *muster_rpc_guard_credentials (MusterRpcGuard *self, GError **error);

/* Who made a call that one of these has let in (element-type MusterRpcGuard). */
void muster_rpc_guards_identify (GPtrArray *guards, grpc_call *call,
                                 const grpc_slice *authorization, MusterRpcCaller *caller);

/* The log of each call, at DEBUG. */
void muster_rpc_log_arrival (MusterRpcCall *self);
void muster_rpc_log_end (MusterRpcCall *self, const GError *error);

G_END_DECLS
