// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* MusterGraph is a GraphDef: its bytes, immutable, and its nodes, parsed when first needed
 * (docs/decisions/0012). It is written as the bytes that were read, so nothing is lost.
 * Reference-counted; any thread may read. graph/graph_nodes.h has the protobuf nodes, for the
 * modules that need them. */

typedef struct _MusterGraph MusterGraph;

#define MUSTER_TYPE_GRAPH (muster_graph_get_type ())
GType muster_graph_get_type (void);

/* Doesn't parse. muster_graph_parse () reports a malformed graph. */
MusterGraph *muster_graph_new (GBytes *bytes);

MusterGraph *muster_graph_ref (MusterGraph *self);
void muster_graph_unref (MusterGraph *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraph, muster_graph_unref)

/**
 * muster_graph_bytes:
 *
 * The serialised GraphDef.
 *
 * Returns: (transfer none)
 */
GBytes *muster_graph_bytes (MusterGraph *self);

/* A hash of the bytes, computed once and kept. */
guint64 muster_graph_hash (MusterGraph *self);

/* TRUE if the bytes are the same. */
gboolean muster_graph_equal (MusterGraph *a, MusterGraph *b);

/* Parses the graph unless that was done. INVALID_ARGUMENT for bytes that aren't a GraphDef or nest
 * too deep, for a node without a name or with another's name, and for an input that names no node.
 * Any thread. The result is kept. */
gboolean muster_graph_parse (MusterGraph *self, GError **error);

/* These functions parse first. They return 0, FALSE or NULL for a malformed graph. */
gsize muster_graph_n_nodes (MusterGraph *self);
gboolean muster_graph_has_node (MusterGraph *self, const char *name);

/* A new graph with extra's nodes after this one's: the bytes of both, concatenated, as protobuf
 * merges. It keeps a reference to this graph, whose nodes aren't parsed again. */
MusterGraph *muster_graph_extended (MusterGraph *self, MusterGraph *extra);

/**
 * muster_graph_split_input:
 * @name: (out) (transfer full)
 *
 * Splits an input: "name:3", "name" or "^name". *name becomes the node's name (transfer full).
 * Returns the output's number: 0 if none is given, -1 for a control input "^name".
 */
int muster_graph_split_input (const char *input, char **name);

G_END_DECLS
