// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/rope_private.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

G_BEGIN_DECLS

/* What client and server share of gRPC's C core (docs/decisions/0002): initialisation, buffers,
 * clock, statuses. */

/* The message limit in both directions, protobuf's own. */
#define MUSTER_MAX_MESSAGE G_MAXINT32

/* Initialises the C core once. It is never shut down, since one of its threads may outlive main ().
 * Its logging to stderr is disabled unless GRPC_VERBOSITY is set. */
void muster_grpc_init (void);
/* Initialises only what OpenSSL needs, for use before muster_grpc_init (). */
void muster_openssl_init (void);

/* The purpose of an event on a completion queue. */
typedef struct {
  void (*done) (gpointer owner, gboolean ok);
  gpointer owner; /* (not owned) */
  /* done () waits for nothing and runs no handler: what it completes at once, its thread handles
   * next, without waking another. */
  gboolean is_brief;
} MusterRpcTag;

/* Handles the events of a queue, of which each is a MusterRpcTag, until the queue is shut down and
 * empty. */
void muster_grpc_serve (grpc_completion_queue *queue);

/* An integer channel argument. */
grpc_arg muster_grpc_arg (const char *key, int value);

/* A channel argument, of clients and servers: their TCP connections notice within 20 s that the
 * other side is gone, or that a router between them forgot them. */
grpc_arg muster_grpc_socket_arg (void);

/* FALSE with RESOURCE_EXHAUSTED if the message exceeds MUSTER_MAX_MESSAGE. */
gboolean muster_grpc_check_size (const MusterRope *message, GError **error);

/* Converts a rope to a message: large pieces by reference, small ones copied. */
grpc_byte_buffer *muster_grpc_buffer_from_rope (MusterRope *rope);

/* Converts a message to bytes: without a copy if it is one slice, otherwise with one copy, after
 * which the buffer is empty. NULL with RESOURCE_EXHAUSTED if there isn't enough memory. */
GBytes *muster_grpc_buffer_take_bytes (grpc_byte_buffer *buffer, GError **error);

/* Convert an instant of muster_system_clock () to gRPC's, and back. */
gpr_timespec muster_grpc_deadline (gint64 deadline_us, gint64 now_us);
gint64 muster_grpc_deadline_us (gpr_timespec deadline);

/* Makes a status text that every peer accepts: valid UTF-8, at most 4 KB, and short enough after
 * HTTP/2's escaping. */
char *muster_grpc_status_text (const char *text);

/* The trailing metadata with a status's details: a google.rpc.Status. */
#define MUSTER_RPC_DETAILS "grpc-status-details-bin"

/* Those of a call that did nothing and may be made again: a google.rpc.RetryInfo. */
grpc_slice muster_grpc_retry_details (const GError *error);
/* Whether the trailing metadata has such details. */
gboolean muster_grpc_may_retry (const grpc_metadata_array *trailing);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_byte_buffer, grpc_byte_buffer_destroy)

G_END_DECLS
