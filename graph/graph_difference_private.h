// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* Describes the first difference between a graph and the chief's in one line of at most a few
 * hundred bytes (transfer full), or returns NULL if both compute the same: "node 'dense/kernel'
 * (VariableV2): attr shape is [784,10], but [784,20] in the chief's". Nodes are compared by name,
 * in any order. A node that differs is reported before one that only one graph has, since a chief
 * may have a summary or a queue that its workers lack.
 *
 * Ignored: the order of attributes and of control inputs; attributes whose names begin with "_",
 * which only advise the runtime; and devices other than parameter servers, since each worker places
 * its own part on itself.
 *
 * The time is proportional to the size of both graphs. Any thread. */
char *muster_graph_difference (MusterGraph *graph, MusterGraph *chiefs);

G_END_DECLS
