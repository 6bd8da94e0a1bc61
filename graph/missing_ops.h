// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* The operations that the needed nodes have (marked TRUE, as muster_graph_mark_needed () does)
 * among those of lacks: "2 operations (Enter in 12 nodes, Merge in 1 node)"; "(… and 3 more)"
 * beyond a few. NULL: none. (transfer full) */
char *muster_graph_missing_ops (MusterGraph *graph, const guint8 *marked, const char *const *lacks);

G_END_DECLS
