// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "train/completion/queue_runner_def_private.h"
#include "train/monitored/coordinator.h"

G_BEGIN_DECLS

/* A monitored session fills its scaffold's queues in each session, like TensorFlow's QueueRunner.
 * The master must support queues; otherwise the enqueue op fails, the error names the operation,
 * and the training ends. */

/* Starts a thread for each enqueue op, which runs it until a stop or until the queue is closed,
 * detected by the runner's exception types (OUT_OF_RANGE if it has none). The last of a runner's
 * threads then runs the close op, so that dequeues end. Other failures are reported to the
 * coordinator. One more thread for each runner runs its cancel op at a stop. All belong to the
 * coordinator. */
void muster_queue_runners_start (GPtrArray *runners, MusterSession *session,
                                 MusterCoordinator *coordinator);

G_END_DECLS
