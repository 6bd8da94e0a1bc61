// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/client/reach_probe.h"
#include "rpc/client/rpc_client.h"
#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"

G_BEGIN_DECLS

/* What the unary call and the stream share of a client. */

struct _MusterRpcClient {
  gatomicrefcount refs;
  char *address;
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  gboolean is_token_exposed; /* no call may be made: it would bear the token in plain text */
  grpc_channel *channel;     /* atomic: (nullable) muster_rpc_client_channel () makes it */

  GMutex lock;
  GPtrArray *idle; /* guarded by lock: (element-type grpc_completion_queue) for unary calls */
  /* Guarded by lock: the queue of streams and of forgotten calls (nullable), from the first of them
   * on. Its thread owns it, and ends when the client has gone and the queue is empty. */
  grpc_completion_queue *pump;

  /* How the server is found again (rpc_reach.c); guarded by lock. */
  MusterReachProber prober;
  gboolean is_down; /* it couldn't be reached when that was last known; read without, too */
  int down_why;
  gint64 probe_answered_us;
  gint64 nudged_us;
  gboolean is_polled; /* the channel is polled, by means of polled, and polled_until_us at most */
  gint64 polled_until_us;
  MusterRpcTag polled;
  GCond changed; /* is_polled may have */
};

/* Without credentials, over a channel (transfer full) that there is; address is for people. */
MusterRpcClient *muster_rpc_client_new_over (grpc_channel *channel, const char *address);

/* The channel (owned by self). A process that has gRPC in it wakes some five times a second
 * whatever it does: gRPC is started, and a channel made, by who first needs one. */
grpc_channel *muster_rpc_client_channel (MusterRpcClient *self);
gboolean muster_rpc_client_has_channel (MusterRpcClient *self);
gboolean muster_rpc_client_is_connected (MusterRpcClient *self);

/* FALSE with UNAVAILABLE where there is no channel and nobody for one: nobody listens. */
gboolean muster_rpc_client_probe_first (MusterRpcClient *self, const MusterRpcOptions *options,
                                        GCancellable *cancellable, GError **error);

grpc_completion_queue *muster_rpc_client_pump (MusterRpcClient *self);

/* Has the channel connect soon, rather than at the end of gRPC's own pause. */
void muster_rpc_client_nudge (MusterRpcClient *self);
/* A call has failed since there was no connection. */
void muster_rpc_client_note_unreachable (MusterRpcClient *self);
/* A call has been answered. */
void muster_rpc_client_note_answer (MusterRpcClient *self);

/* A call that isn't started; free with grpc_call_unref (). */
grpc_call *muster_rpc_client_new_call (MusterRpcClient *self, const char *method,
                                       gint64 deadline_us, gint64 now_us,
                                       grpc_completion_queue *queue);

/* FALSE for options or a request that can't be sent, or a deadline that has passed. */
gboolean muster_rpc_client_check (MusterRpcClient *self, const MusterRope *request,
                                  const MusterRpcOptions *options, gint64 now_us, GError **error);

#define MUSTER_RPC_MAX_HEADERS 16

/* The token and the headers that go with a call; needed until its first batch has begun. */
typedef struct {
  grpc_metadata items[1 + MUSTER_RPC_MAX_HEADERS];
  gsize n_items;
} MusterRpcMetadata;

/* FALSE with INVALID_ARGUMENT for headers that gRPC wouldn't take. */
gboolean muster_rpc_headers_check (const MusterRpcOptions *options, GError **error);

void muster_rpc_metadata_init (MusterRpcMetadata *self, MusterRpcClient *client,
                               const MusterRpcOptions *options);
void muster_rpc_metadata_clear (MusterRpcMetadata *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRpcMetadata, muster_rpc_metadata_clear)

/* SEND_INITIAL_METADATA, SEND_MESSAGE, SEND_CLOSE_FROM_CLIENT: how each call begins. */
void muster_rpc_client_opening_ops (grpc_op ops[3], MusterRpcMetadata *metadata,
                                    grpc_byte_buffer *request, gboolean wait_for_ready);

/* How a call ended. */
typedef struct {
  grpc_status_code status;
  grpc_slice text;
  gint64 started_us;
  gint64 deadline_us;
} MusterRpcOutcome;

/* Of what gRPC says where nobody answered, what people need, and the code for it: UNAVAILABLE,
 * or UNAUTHENTICATED for a server whose certificate isn't good. Borrowed from text, or static. */
const char *muster_rpc_cause (const char *text, MusterRpcCredentials *credentials,
                              MusterError *code);

/* Whether that was said of a server to which no connection came about. */
gboolean muster_rpc_is_unconnected (const char *text);

/* The same for a request that was too large for the server: names the limit (transfer full). NULL
 * for any other text. */
char *muster_rpc_size_cause (const char *text);

/* A unary call's ends: what gRPC fills in. To be zero at first. */
typedef struct {
  grpc_call *call;           /* (owned) */
  grpc_byte_buffer *request; /* (owned) */
  grpc_byte_buffer *answer;  /* (owned) (nullable) */
  grpc_metadata_array initial, trailing;
  MusterRpcOutcome outcome;
  const char *cause; /* (owned) (nullable) how it failed, in gRPC's own words */
} MusterRpcUnary;

/* Starts it; call and request are (transfer full). tag tells when the rest is filled in. */
void muster_rpc_unary_start (MusterRpcUnary *self, MusterRpcClient *client, grpc_call *call,
                             grpc_byte_buffer *request, const MusterRpcOptions *options,
                             gpointer tag);
void muster_rpc_unary_clear (MusterRpcUnary *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRpcUnary, muster_rpc_unary_clear)

/* Turns an outcome that isn't OK into an error. */
void muster_rpc_client_set_error (MusterRpcClient *self, const MusterRpcOutcome *outcome,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS
