// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/grpc_private.h"

G_BEGIN_DECLS

/* The threads that take events off a server's queue and handle them on the spot.
 *
 * Two threads in one queue cost a small call a third of its time: whenever one leaves to handle an
 * event, gRPC wakes the other. So as few poll as the load needs, one at first, and a handler runs
 * while nobody polls. That must not become a standstill: a handler that is about to block says so
 * (base/blocking.h) and another thread takes its place at once; and a keeper, awake only while
 * there are calls, adds a thread where all are held up, whatever they do, and takes it away again.
 */

typedef struct _MusterRpcThreads MusterRpcThreads;

/* Starts n_max threads on the queue, which isn't owned. */
MusterRpcThreads *muster_rpc_threads_new (grpc_completion_queue *queue, guint n_max);

/* Waits for their end, after the queue was shut down. */
void muster_rpc_threads_join (MusterRpcThreads *self);

G_END_DECLS
