// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* A QueueRunnerDef of the meta graph's collection "queue_runners". Reference-counted, immutable. */
typedef struct {
  gatomicrefcount refs;
  char *queue;         /* (owned) (nullable) for messages */
  GPtrArray *enqueues; /* (owned) (element-type utf8) */
  char *close;         /* (owned) (nullable) */
  char *cancel;        /* (owned) (nullable) */
  guint32 closed_by;   /* a bit for each error code that means that the queue is closed */
} MusterQueueRunner;

/* The meta graph's queue runners (element-type MusterQueueRunner) (transfer full), possibly none.
 * INVALID_ARGUMENT for one that is malformed or names an op that the graph lacks. */
GPtrArray *muster_queue_runners_of (MusterMetaGraph *meta_graph, GError **error);

/* One of an op that is run until a stop. (transfer full) */
MusterQueueRunner *muster_queue_runner_new (const char *queue, const char *enqueue);

void muster_queue_runner_unref (MusterQueueRunner *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterQueueRunner, muster_queue_runner_unref)

G_END_DECLS
