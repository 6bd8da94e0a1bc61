// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* How a graph differs from the chief's, in one line of at most some hundred bytes, or NULL if they
 * compute the same (transfer full): "node 'dense/kernel' (VariableV2): attr shape is [784,10], but
 * [784,20] in the chief's". Nodes are known by their names, in whatever order they stand. A node
 * that both have in different form is named before one that only one of them has, since a chief
 * may well have a summary or a queue more than its workers.
 *
 * What doesn't count: the order of attributes and of control inputs; attributes whose names begin
 * with "_", which are notes to the runtime; and where a node is placed, except on a parameter
 * server, since each worker places its own part on itself.
 *
 * Takes time in proportion to both graphs. Any thread. */
char *muster_graph_difference (MusterGraph *graph, MusterGraph *chiefs);

G_END_DECLS
