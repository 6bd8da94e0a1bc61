// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope.h"
#include "graph/graph.h"
#include "graph/proto/graph.pb-c.h"

G_BEGIN_DECLS

/* The nodes of a graph, for the modules that compute or rewrite it (engine, saver, ready). Results
 * are borrowed from the graph. All functions parse first, and return NULL or -1 for a malformed
 * graph. */

const Tensorflow__NodeDef *muster_graph_node (MusterGraph *self, gsize index);
gssize muster_graph_find (MusterGraph *self, const char *name, gsize name_size);
const Tensorflow__NodeDef *muster_graph_find_node (MusterGraph *self, const char *name);

/* The index of the node that input i of a node comes from. node and i must exist. *output is below
 * 0 for a control input. */
gsize muster_graph_input (MusterGraph *self, gsize node, gsize i, int *output);

/* The graph with one more control input, from the node named after, at each node that chosen marks.
 * chosen has a byte for each node, in the graph's order. NULL for a malformed graph. */
MusterGraph *muster_graph_with_control_input (MusterGraph *self, const guint8 *chosen,
                                              const char *after);

/* Appends the graph's bytes to the rope, an extension's in pieces. Large pieces aren't copied. */
void muster_graph_put (MusterGraph *self, MusterRope *rope);

/* The nodes that a graph has after those of before. The graph must be before itself or an extension
 * of it. */
MusterGraph *muster_graph_added (MusterGraph *self, MusterGraph *before);

/* An attribute, or NULL. Of duplicate keys the last one counts, as in protobuf. */
const Tensorflow__AttrValue *muster_node_attr (const Tensorflow__NodeDef *node, const char *name);

/* The value of an attribute; fallback if it is absent or of another type. */
MusterDType muster_node_dtype (const Tensorflow__NodeDef *node, const char *name,
                               MusterDType fallback);
gint64 muster_node_int (const Tensorflow__NodeDef *node, const char *name, gint64 fallback);
gboolean muster_node_bool (const Tensorflow__NodeDef *node, const char *name, gboolean fallback);
float muster_node_float (const Tensorflow__NodeDef *node, const char *name, float fallback);
/* A NUL-terminated copy, or NULL. */
char *muster_node_string (const Tensorflow__NodeDef *node, const char *name);
/* Reads a shape attribute. Returns the rank, or -1 if it is unknown or the attribute absent. Writes
 * at most max sizes to dims; -1 is an unknown size. */
int muster_node_shape (const Tensorflow__NodeDef *node, const char *name, gint64 *dims, int max);

G_END_DECLS
