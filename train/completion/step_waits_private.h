// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* What a run of the marked nodes (graph/graph_walk_private.h) may wait for without end, for a
 * message: a queue of the graph, such as that of a SyncReplicasOptimizer's tokens. NULL: nothing in
 * the graph. (transfer full) */
char *muster_step_waits_for (MusterMetaGraph *meta_graph, const guint8 *needed);

G_END_DECLS
