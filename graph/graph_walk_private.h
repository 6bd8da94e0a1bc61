// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* What a node of a graph needs and what it writes. Nodes are identified by index; sets of nodes
 * have a byte for each, in the graph's order. The graph is parsed. */

/* Marks from and all nodes that it depends on, beside those that are marked already. */
void muster_graph_mark_needed (MusterGraph *self, gsize from, guint8 *marked);

/* The same from the node of an op's or a tensor's name (nullable); a name that the graph lacks
 * marks nothing. */
void muster_graph_mark_needs (MusterGraph *self, const char *name, guint8 *marked);

/* Marks the node of a tensor that is fed, so that what it alone needs isn't marked afterwards. */
void muster_graph_mark_fed (MusterGraph *self, const char *name, guint8 *marked);
#define MUSTER_GRAPH_FED 2 /* its mark; what is needed has TRUE */

/* Marks what depends on the nodes that are marked, but nothing behind an op that ends it
 * (nullable). */
void muster_graph_mark_following (MusterGraph *self, guint8 *marked, const char *end,
                                  const char *reference_end);

/* TRUE if the node may change a variable; a function call, one that is passed to it. */
gboolean muster_graph_writes (MusterGraph *self, gsize node);

/* TRUE for a call of a function. */
gboolean muster_graph_calls (MusterGraph *self, gsize node);

/* Adds the variables' nodes that the node changes (element-type gsize); none for one that doesn't
 * write. */
void muster_graph_written (MusterGraph *self, gsize node, GArray *variables);

/* The node that an input's value comes from, through nodes that pass it on unchanged, and through
 * the read of a variable; -1 if there is no such input. */
gssize muster_graph_origin (MusterGraph *self, gsize node, gsize input);

/* Marks the nodes inside the frames of loops, whose values nobody outside can fetch. (transfer
 * full)
 */
guint8 *muster_graph_mark_loops (MusterGraph *self);

/* The Merge that runs a node in a branch of a conditional, if the branch is taken, and that runs in
 * any case. The node itself if it isn't in a branch, or no Merge runs it. */
gsize muster_graph_whole_of_branch (MusterGraph *self, gsize node);

G_END_DECLS
