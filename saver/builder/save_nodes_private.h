// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_nodes_private.h"

G_BEGIN_DECLS

/* The inputs of a SaveV2: a tensor for each name and slice from the fourth one on. */
enum { MUSTER_SAVE_NAMES = 1, MUSTER_SAVE_SLICES = 2, MUSTER_SAVE_TENSORS = 3 };

/* The SaveV2 nodes that an op needs, sorted by name. What these nodes need is irrelevant. The nodes
 * are the graph's; the array is (transfer full). */
GPtrArray *muster_save_nodes_behind (MusterGraph *graph, const char *op);

/* The type of that input of a SaveV2; MUSTER_INVALID if it isn't known. */
MusterDType muster_save_node_dtype (const MusterNode *save, gsize input);

/* The node behind an input, and behind those that only pass a value on. */
const MusterNode *muster_save_node_source (MusterGraph *graph, const MusterNode *node, gsize input);

G_END_DECLS
