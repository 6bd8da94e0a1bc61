// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* TensorFlow's SyncReplicasOptimizer in a graph. Each replica's step applies its gradients to
 * accumulators and waits for a token; an op that the chief runs all the time takes enough gradients
 * from them, updates the variables and puts as many tokens as there are replicas into a queue. */

#define MUSTER_SYNC_BEGIN  "muster/sync/begin"  /* sets the accumulators' step */
#define MUSTER_SYNC_TOKENS "muster/sync/tokens" /* fills the queue up to … */
#define MUSTER_SYNC_LEVEL  "muster/sync/n:0"    /* … so many tokens, an int32: n_tokens */
#define MUSTER_SYNC_COUNT  "muster/sync/count"  /* _0, …: the gradients in each accumulator */

/* Clear it. */
typedef struct {
  char *update;     /* (owned) what the chief runs all the time */
  char *train;      /* (owned) the op of a replica's step */
  char *token;      /* (owned) the token that it gets: "sync_rep_local_step…:0" */
  char *queue;      /* (owned) the tokens' */
  GPtrArray *local; /* (owned) (element-type utf8) the tensors with the replica's own step */
  GArray *takes;    /* (owned) (element-type gsize) the nodes that take gradients */
  gint64 n_tokens;  /* one for each gradient of an update */
  gboolean is_run;  /* a queue runner of the graph runs update */
} MusterSyncReplicas;

void muster_sync_replicas_clear (MusterSyncReplicas *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSyncReplicas, muster_sync_replicas_clear)

/* FALSE if the graph has none. */
gboolean muster_sync_replicas_find (MusterMetaGraph *meta_graph, MusterSyncReplicas *self);

/* Whether a run of that op or tensor takes a token, and may wait for it. */
gboolean muster_sync_replicas_takes_token (const MusterSyncReplicas *self, MusterGraph *graph,
                                           const char *name);

/* The meta graph with the ops above. */
MusterMetaGraph *muster_sync_replicas_add (const MusterSyncReplicas *self,
                                           MusterMetaGraph *meta_graph, GError **error);

G_END_DECLS
