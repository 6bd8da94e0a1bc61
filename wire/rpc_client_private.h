// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/grpc_private.h"

G_BEGIN_DECLS

/* What the unary call and the stream share of a client. */

struct _MusterRpcClient {
  gatomicrefcount refs;
  char *address;
  grpc_channel *channel;

  GMutex lock;
  GPtrArray *idle; /* guarded by lock: (element-type grpc_completion_queue) for unary calls */
  /* Guarded by lock: the queue of streams and of forgotten calls (nullable), from the first of them
   * on. Its thread owns it, and ends when the client has gone and the queue is empty. */
  grpc_completion_queue *pump;
};

grpc_completion_queue *muster_rpc_client_pump (MusterRpcClient *self);

/* A call that isn't started; free with grpc_call_unref (). */
grpc_call *muster_rpc_client_new_call (MusterRpcClient *self, const char *method,
                                       gint64 deadline_us, gint64 now_us,
                                       grpc_completion_queue *queue);

/* FALSE for options or a request that can't be sent, or a deadline that has passed. */
gboolean muster_rpc_client_check (MusterRpcClient *self, const MusterRope *request,
                                  const MusterRpcOptions *options, gint64 now_us, GError **error);

/* SEND_INITIAL_METADATA, SEND_MESSAGE, SEND_CLOSE_FROM_CLIENT: how each call begins. */
void muster_rpc_client_opening_ops (grpc_op ops[3], grpc_byte_buffer *request,
                                    gboolean wait_for_ready);

/* How a call ended. */
typedef struct {
  grpc_status_code status;
  grpc_slice text;
  gint64 started_us;
  gint64 deadline_us;
} MusterRpcOutcome;

/* Turns an outcome that isn't OK into an error. */
void muster_rpc_client_set_error (MusterRpcClient *self, const MusterRpcOutcome *outcome,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS
