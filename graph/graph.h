// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterGraph is a GraphDef: its bytes, immutable, and the nodes read from them when first asked
 * for (docs/decisions/0012: a graph is its bytes). What comes in goes out with nothing lost, since
 * what goes out is what came in. Counted; any thread may read. The protobuf view is in
 * graph/graph_nodes.h, for rooms that look inside. */

typedef struct _MusterGraph MusterGraph;

#define MUSTER_TYPE_GRAPH (muster_graph_get_type ())
GType muster_graph_get_type (void);

/* Nothing is parsed yet; a malformed graph shows at muster_graph_parse (). */
MusterGraph *muster_graph_new (GBytes *bytes);

MusterGraph *muster_graph_ref (MusterGraph *self);
void muster_graph_unref (MusterGraph *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraph, muster_graph_unref)

/**
 * muster_graph_bytes:
 *
 * Borrowed.
 *
 * Returns: (transfer none)
 */
GBytes *muster_graph_bytes (MusterGraph *self);

/* A hash of the bytes, computed once. */
guint64 muster_graph_hash (MusterGraph *self);

/* TRUE for the same bytes. */
gboolean muster_graph_equal (MusterGraph *a, MusterGraph *b);

/* Parses if that hasn't been done: INVALID_ARGUMENT for bytes that are no GraphDef, nest too deep,
 * name a node twice or not at all, or hold an input that names no node. Safe from any thread; the
 * verdict is kept. */
gboolean muster_graph_parse (MusterGraph *self, GError **error);

/* The functions below parse first and answer 0, FALSE or NULL for a malformed graph. */
gsize muster_graph_n_nodes (MusterGraph *self);
gboolean muster_graph_has_node (MusterGraph *self, const char *name);

/* A new graph with extra's nodes after this one's: the bytes of both, one after the other, as
 * protobuf merges. It holds on to this graph, whose nodes aren't parsed again. */
MusterGraph *muster_graph_extended (MusterGraph *self, MusterGraph *extra);

/**
 * muster_graph_split_input:
 * @name: (out) (transfer full)
 *
 * "name:3", "name" and "^name" taken apart: the node's name goes to *name (transfer full), and the
 * return value is the output's number, 0 where none is given, -1 for a control input "^name".
 */
int muster_graph_split_input (const char *input, char **name);

G_END_DECLS
