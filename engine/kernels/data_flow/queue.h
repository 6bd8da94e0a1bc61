// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/data_flow/queue_spec.h"
#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* MusterQueue holds elements, each of a tensor for each component, and the kernels that wait at it:
 * those that put in while it is full, and those that take out while there is too little. Each side
 * is served in the order it came, in TensorFlow's way: a batch goes in and comes out element by
 * element, so that it may be larger than the queue. What a stopped step had taken goes back.
 *
 * Any thread. A kernel's call is done when it returns, has failed, or has suspended the kernel; its
 * queue must stay until the kernel ends. */

typedef struct _MusterQueue MusterQueue;

extern const MusterResourceType muster_queue_type;

/* Takes over what is in spec. */
MusterQueue *muster_queue_new (const char *name, MusterQueueSpec *spec);
void muster_queue_free (MusterQueue *self);

const MusterQueueSpec *muster_queue_spec (const MusterQueue *self);

/* Puts in one element, or the n elements of a batch (their dimension 0); CANCELLED if it is closed.
 * tuple has been checked (engine/kernels/data_flow/queue_spec.h). */
gboolean muster_queue_enqueue (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                               GError **error);
gboolean muster_queue_enqueue_many (MusterQueue *self, MusterKernel *k, MusterTensor *const *tuple,
                                    GError **error);

/* Takes one element out, or n as one batch, into k's outputs. OUT_OF_RANGE once it is closed and
 * has too few; with up_to, what it then has is given. A batch's components have a shape in the
 * spec. */
gboolean muster_queue_dequeue (MusterQueue *self, MusterKernel *k, GError **error);
gboolean muster_queue_dequeue_many (MusterQueue *self, MusterKernel *k, gint32 n, gboolean up_to,
                                    GError **error);

/* Closes it, after those who wait to put in or, with cancel_pending, in their stead. */
gboolean muster_queue_close (MusterQueue *self, MusterKernel *k, gboolean cancel_pending,
                             GError **error);

gint32 muster_queue_size (MusterQueue *self);
gboolean muster_queue_is_closed (MusterQueue *self);

G_END_DECLS
