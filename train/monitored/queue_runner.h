// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "master/session.h"
#include "train/monitored/coordinator.h"

G_BEGIN_DECLS

/* MusterQueueRunner fills a queue of the graph: TensorFlow's QueueRunner, read from the meta
 * graph's collection "queue_runners". A monitored session starts those of its scaffold in each
 * session that it makes; the master must have queues, or the enqueue ops' failure, which names the
 * operation that it lacks, ends the training. Counted, immutable. */

typedef struct _MusterQueueRunner MusterQueueRunner;

/* (element-type MusterQueueRunner) (transfer full) those of the meta graph, which may be none.
 * INVALID_ARGUMENT for one that is malformed or names an op that the graph lacks. */
GPtrArray *muster_queue_runners_of (MusterMetaGraph *meta_graph, GError **error);

void muster_queue_runner_unref (MusterQueueRunner *self);

/* Starts, for each enqueue op, a thread that runs it until there is a stop or the queue is closed,
 * which is what the runner's exception types say (OUT_OF_RANGE where it names none): the last of a
 * runner's threads then runs the close op, so that who dequeues finds the end. Another failure is
 * reported to the coordinator. One thread more for each runner runs its cancel op at the stop. All
 * are the coordinator's. */
void muster_queue_runners_start (GPtrArray *runners, MusterSession *session,
                                 MusterCoordinator *coordinator);

G_END_DECLS
