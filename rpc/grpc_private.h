// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/rope.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>

G_BEGIN_DECLS

/* What client and server share of the gRPC C core (docs/decisions/0002): its start, its buffers,
 * its clock and its statuses. */

/* The message limit, both ways: protobuf's own. */
#define MUSTER_MAX_MESSAGE G_MAXINT32

/* Starts the C core once a process (it is never shut down: a thread of its own may outlive main),
 * and keeps it from writing to stderr, unless GRPC_VERBOSITY asks for that. */
void muster_grpc_init (void);
/* As little of it as whoever uses OpenSSL before needs. */
void muster_openssl_init (void);

/* What an event on a completion queue is for. */
typedef struct {
  void (*done) (gpointer owner, gboolean ok);
  gpointer owner; /* (not owned) */
} MusterRpcTag;

/* Takes events off a queue of MusterRpcTags until the queue is shut down and empty. */
void muster_grpc_serve (grpc_completion_queue *queue);

/* An integer channel argument. */
grpc_arg muster_grpc_arg (const char *key, int value);

/* FALSE with RESOURCE_EXHAUSTED for a message that no peer would take. */
gboolean muster_grpc_check_size (const MusterRope *message, GError **error);

/* A rope as a message: large pieces by reference, small ones copied. */
grpc_byte_buffer *muster_grpc_buffer_from_rope (MusterRope *rope);

/* A message as bytes: held where it is one slice, else gathered by one copy, after which the buffer
 * is empty. NULL (with RESOURCE_EXHAUSTED) where there isn't the memory. */
GBytes *muster_grpc_buffer_take_bytes (grpc_byte_buffer *buffer, GError **error);

/* An instant of muster_system_clock () as gRPC's, and back. */
gpr_timespec muster_grpc_deadline (gint64 deadline_us, gint64 now_us);
gint64 muster_grpc_deadline_us (gpr_timespec deadline);

/* A status text that every peer can take: valid UTF-8, at most 4 KB, and small enough when HTTP/2
 * has escaped it. */
char *muster_grpc_status_text (const char *text);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_byte_buffer, grpc_byte_buffer_destroy)

G_END_DECLS
