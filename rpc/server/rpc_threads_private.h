// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/grpc_private.h"

G_BEGIN_DECLS

/* The threads that take events from a server's queue and handle them.
 *
 * Two threads polling one queue cost a small call a third of its time: when one leaves to handle an
 * event, gRPC wakes the other. So as few threads poll as the load needs, one at first, and none
 * polls while a handler runs. To avoid a standstill, a handler that is about to block calls
 * muster_about_to_block () (base/blocking_private.h), and another thread starts polling at once. In
 * addition a keeper thread, awake only while there are calls, adds a thread when all are busy and
 * removes it later; but not where events are so small that handing them over costs more than it
 * gains. */

typedef struct _MusterRpcThreads MusterRpcThreads;

/* What an event's handler calls where it may take long: `notice` is called, by any thread, once it
 * has taken longer than a few milliseconds; not after the end. */
void muster_rpc_threads_begin_work (void (*notice) (gpointer data), gpointer data);
void muster_rpc_threads_end_work (void);

/* Starts at most n_max threads on the queue, which isn't owned. */
MusterRpcThreads *muster_rpc_threads_new (grpc_completion_queue *queue, guint n_max);

/* Waits for the threads to end, after the queue was shut down. */
void muster_rpc_threads_join (MusterRpcThreads *self);

G_END_DECLS
