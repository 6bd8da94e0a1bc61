// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* Marks the node of an op's or a tensor's name (nullable) and all that it depends on, up to nodes
 * that are marked already; a byte for each node, in the graph's order. A name that the graph lacks
 * marks nothing. The graph is parsed. */
void muster_graph_mark_needs (MusterGraph *self, const char *name, guint8 *marked);

G_END_DECLS
