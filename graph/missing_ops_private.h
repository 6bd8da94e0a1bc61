// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "graph/node_private.h"

G_BEGIN_DECLS

/* The operations that the needed nodes have (marked TRUE, as muster_graph_mark_needed () does)
 * among those of lacks: "2 operations (Enter in 12 nodes, Merge in 1 node)"; "(… and 3 more)"
 * beyond a few. NULL: none. (transfer full) */
char *muster_graph_missing_ops (MusterGraph *graph, const guint8 *marked, const char *const *lacks);

/* A needed node (marked as above) that no master can run: it calls the Python program that exported
 * the graph, or a library of that program. NULL: none. */
const MusterNode *muster_graph_program_op (MusterGraph *graph, const guint8 *marked);

/* Whether these ops and tensors need none of lacks, but behind feeds (nullable): UNIMPLEMENTED
 * lists the missing ones, with the remedy for an engine in this process or one of a server. */
gboolean muster_graph_check_ops (MusterGraph *graph, const char *const *names,
                                 const char *const *feeds, const char *const *lacks,
                                 gboolean is_here, GError **error);

G_END_DECLS
