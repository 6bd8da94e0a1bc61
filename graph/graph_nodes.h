// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope.h"
#include "graph/graph.h"
#include "graph/proto/graph.pb-c.h"

G_BEGIN_DECLS

/* The nodes of a graph, for rooms that compute or rewrite it (engine, saver, ready). Borrowed from
 * the graph; all parse first, and answer NULL or -1 for a malformed one. */

const Tensorflow__NodeDef *muster_graph_node (MusterGraph *self, gsize index);
gssize muster_graph_find (MusterGraph *self, const char *name, gsize name_size);
const Tensorflow__NodeDef *muster_graph_find_node (MusterGraph *self, const char *name);

/* The node that input i of a node comes from, by their indexes, both of which must be there;
 * *output is below 0 for a control input. */
gsize muster_graph_input (MusterGraph *self, gsize node, gsize i, int *output);

/* The same graph in which the nodes that chosen marks (a byte for each node of the graph, in its
 * order) have one more control input, of the node named after. NULL for a malformed graph. */
MusterGraph *muster_graph_with_control_input (MusterGraph *self, const guint8 *chosen,
                                              const char *after);

/* Adds the graph's bytes to the rope, an extension's in pieces: nothing large is copied. */
void muster_graph_put (MusterGraph *self, MusterRope *rope);

/* What a graph, which extends before or is before, has behind it. */
MusterGraph *muster_graph_added (MusterGraph *self, MusterGraph *before);

/* An attribute, or NULL. With duplicate keys the last one wins, as in protobuf. */
const Tensorflow__AttrValue *muster_node_attr (const Tensorflow__NodeDef *node, const char *name);

/* Typed looks; fallback where the attribute is absent or of another kind. */
MusterDType muster_node_dtype (const Tensorflow__NodeDef *node, const char *name,
                               MusterDType fallback);
gint64 muster_node_int (const Tensorflow__NodeDef *node, const char *name, gint64 fallback);
gboolean muster_node_bool (const Tensorflow__NodeDef *node, const char *name, gboolean fallback);
float muster_node_float (const Tensorflow__NodeDef *node, const char *name, float fallback);
/* NUL-terminated copy, or NULL. */
char *muster_node_string (const Tensorflow__NodeDef *node, const char *name);
/* A shape attribute: the rank goes to the return value (-1: unknown rank or absent), the sizes (-1:
 * unknown) to dims, of which at most max are written. */
int muster_node_shape (const Tensorflow__NodeDef *node, const char *name, gint64 *dims, int max);

G_END_DECLS
