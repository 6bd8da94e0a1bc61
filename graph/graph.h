// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/**
 * MusterGraph:
 *
 * A GraphDef: its bytes, immutable, and its nodes, parsed when first needed (docs/decisions/0012).
 * It is written as the bytes that were read, so nothing is lost. Reference-counted; any thread may
 * read.
 */
typedef struct _MusterGraph MusterGraph;

#define MUSTER_TYPE_GRAPH (muster_graph_get_type ())
GType muster_graph_get_type (void);

/**
 * muster_graph_new:
 * @bytes: a serialised GraphDef, which is referenced
 *
 * Doesn't parse. [method@Graph.parse] reports a malformed graph.
 *
 * Returns: (transfer full): a graph of these bytes
 */
MusterGraph *muster_graph_new (GBytes *bytes);

/**
 * muster_graph_ref: (skip)
 * @self: a graph
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterGraph *muster_graph_ref (MusterGraph *self);

/**
 * muster_graph_unref: (skip)
 * @self: (nullable): a graph
 *
 * Drops a reference; the last one frees the graph.
 */
void muster_graph_unref (MusterGraph *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraph, muster_graph_unref)

/**
 * muster_graph_bytes:
 * @self: a graph
 *
 * The serialised GraphDef.
 *
 * Returns: (transfer none): the bytes
 */
GBytes *muster_graph_bytes (MusterGraph *self);

/**
 * muster_graph_hash:
 * @self: a graph
 *
 * A hash of the bytes, computed once and kept.
 *
 * Returns: the hash
 */
guint64 muster_graph_hash (MusterGraph *self);

/**
 * muster_graph_equal:
 * @a: a graph
 * @b: another
 *
 * Compares two graphs.
 *
 * Returns: %TRUE if the bytes are the same
 */
gboolean muster_graph_equal (MusterGraph *a, MusterGraph *b);

/**
 * muster_graph_parse:
 * @self: a graph
 *
 * Parses the graph unless that was done. INVALID_ARGUMENT for bytes that aren't a GraphDef or nest
 * too deep, for a node without a name or with another's name, and for an input that names no node.
 * Any thread. The result is kept.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_graph_parse (MusterGraph *self, GError **error);

/**
 * muster_graph_n_nodes:
 * @self: a graph
 *
 * Counts the nodes; parses first.
 *
 * Returns: their number; 0 for a malformed graph
 */
gsize muster_graph_n_nodes (MusterGraph *self);

/**
 * muster_graph_has_node:
 * @self: a graph
 * @name: a node's name
 *
 * Looks for a node; parses first.
 *
 * Returns: %TRUE if there is such a node; %FALSE for a malformed graph
 */
gboolean muster_graph_has_node (MusterGraph *self, const char *name);

/**
 * muster_graph_placeholder_dtype:
 * @self: a graph
 * @tensor: a placeholder's output, "x:0" or "x"
 *
 * The type that a placeholder is fed with.
 *
 * Returns: its dtype; %MUSTER_INVALID if @tensor is no placeholder of the graph
 */
MusterDType muster_graph_placeholder_dtype (MusterGraph *self, const char *tensor);

/**
 * muster_graph_extended:
 * @self: a graph
 * @extra: nodes to add ([ctor@GraphBuilder.new_extension])
 *
 * Adds nodes after this graph's own: the bytes of both, concatenated, as protobuf merges. The
 * result keeps a reference to this graph, whose nodes aren't parsed again.
 *
 * Returns: (transfer full): a new graph
 */
MusterGraph *muster_graph_extended (MusterGraph *self, MusterGraph *extra);

/**
 * muster_graph_split_input:
 * @input: a node's input: "name:3", "name" or "^name"
 * @name: (out) (transfer full): the node's name
 *
 * Splits an input.
 *
 * Returns: the output's number: 0 if none is given, -1 for a control input "^name"
 */
int muster_graph_split_input (const char *input, char **name);

G_END_DECLS
