// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"
#include "train/monitored/coordinator.h"

G_BEGIN_DECLS

/* MusterQueueRunner fills a queue of the graph, like TensorFlow's QueueRunner; it is read from the
 * meta graph's collection "queue_runners". A monitored session starts its scaffold's queue runners
 * in each session. The master must support queues; otherwise the enqueue op fails, the error names
 * the operation, and the training ends. Reference-counted, immutable. */

typedef struct _MusterQueueRunner MusterQueueRunner;

/* The meta graph's queue runners (element-type MusterQueueRunner) (transfer full), possibly none.
 * INVALID_ARGUMENT for one that is malformed or names an op that the graph lacks. */
GPtrArray *muster_queue_runners_of (MusterMetaGraph *meta_graph, GError **error);

void muster_queue_runner_unref (MusterQueueRunner *self);

/* Starts a thread for each enqueue op, which runs it until a stop or until the queue is closed,
 * detected by the runner's exception types (OUT_OF_RANGE if it has none). The last of a runner's
 * threads then runs the close op, so that dequeues end. Other failures are reported to the
 * coordinator. One more thread for each runner runs its cancel op at a stop. All belong to the
 * coordinator. */
void muster_queue_runners_start (GPtrArray *runners, MusterSession *session,
                                 MusterCoordinator *coordinator);

G_END_DECLS
