// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue_spec.h"
#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* MusterQueue contains elements, each with a tensor for each component, and the kernels that wait:
 * enqueues while it is full, dequeues while it has too few elements. Both are served in order of
 * arrival, like TensorFlow: a batch is enqueued and dequeued element by element, so it may be
 * larger than the queue. Elements taken by a cancelled step are returned.
 *
 * Any thread. A kernel's call is complete when it returns, has failed, or has suspended the kernel;
 * its queue must exist until the kernel ends. */

typedef struct _MusterQueue MusterQueue;

extern const MusterResourceType muster_queue_type;

/* Moves spec's contents into the queue. */
MusterQueue *muster_queue_new (const char *name, MusterQueueSpec *spec);

const MusterQueueSpec *muster_queue_spec (const MusterQueue *self);

/* Enqueue one element, or the n elements of a batch (dimension 0); CANCELLED if the queue is
 * closed. tuple must have been checked (engine/kernels/data_flow/queue_spec.h). */
gboolean muster_queue_enqueue (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                               GError **error);
gboolean muster_queue_enqueue_many (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                                    GError **error);

/* Dequeue one element, or n as a batch, into k's outputs. OUT_OF_RANGE if the queue is closed and
 * has too few; with up_to it then returns those. Components of a batch must have a shape in the
 * spec. */
gboolean muster_queue_dequeue (MusterQueue *self, MusterKernel *k, GError **error);
gboolean muster_queue_dequeue_many (MusterQueue *self, MusterKernel *k, gint32 n, gboolean up_to,
                                    GError **error);

/* Closes the queue, after the waiting enqueues or, with cancel_pending, cancelling them. */
gboolean muster_queue_close (MusterQueue *self, MusterKernel *k, gboolean cancel_pending,
                             GError **error);

gint32 muster_queue_size (MusterQueue *self);
gboolean muster_queue_is_closed (MusterQueue *self);

G_END_DECLS
