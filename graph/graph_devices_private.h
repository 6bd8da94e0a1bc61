// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* The graph for a master of one task: no node is bound to a task of a cluster that the graph was
 * made for. The graph itself if none is, or NULL for a malformed one. (transfer full) Bodies of
 * functions stay as they are. */
MusterGraph *muster_graph_of_any_task (MusterGraph *self, GError **error);

G_END_DECLS
