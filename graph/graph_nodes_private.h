// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope_private.h"
#include "graph/functions_private.h"
#include "graph/graph.h"
#include "graph/node_private.h"

G_BEGIN_DECLS

/* The nodes of a graph, for the modules that compute or rewrite it (engine, saver, ready). Results
 * are borrowed from the graph. All functions parse first, and return NULL or -1 for a malformed
 * graph. */

const MusterNode *muster_graph_node (MusterGraph *self, gsize index);
gssize muster_graph_find (MusterGraph *self, const char *name, gsize name_size);
const MusterNode *muster_graph_find_node (MusterGraph *self, const char *name);
/* The node of an op's or a tensor's name, such as "x", "x:1" or "^x" (nullable). */
gssize muster_graph_find_named (MusterGraph *self, const char *name);

/* What a Const node holds (transfer full); NULL for a node of another op, or if it can't be read.
 */
MusterTensor *muster_node_constant (const MusterNode *node);

/* The input as the graph has it: "x:1", "x" or "^x". The node is one of the graph's. */
char *muster_graph_input_text (MusterGraph *self, const MusterNode *node, gsize i);

/* Where each node's NodeDef is in the graph's bytes, in the graph's order (transfer full). NULL for
 * a malformed graph. */
typedef struct {
  const guint8 *data;
  gsize size;
} MusterNodeBytes;

MusterNodeBytes *muster_graph_node_bytes (MusterGraph *self);

/* The graph with one more control input, from the node named after, at each node that chosen marks.
 * chosen has a byte for each node, in the graph's order. NULL for a malformed graph. */
MusterGraph *muster_graph_with_control_input (MusterGraph *self, const guint8 *chosen,
                                              const char *after);

/* Appends the graph's bytes to the rope, an extension's in pieces, each of whole fields. Large
 * pieces aren't copied. */
void muster_graph_put (MusterGraph *self, MusterRope *rope);
/* How many bytes these are. */
gsize muster_graph_size (MusterGraph *self);

/* The nodes that a graph has after those of before. The graph must be before itself or an extension
 * of it. */
MusterGraph *muster_graph_added (MusterGraph *self, MusterGraph *before);

/* An attribute, or NULL. Of duplicate keys the last one counts, as in protobuf. */
const Tensorflow__AttrValue *muster_attr_find (Tensorflow__NodeDef__AttrEntry *const *attrs,
                                               gsize n, const char *name);
const Tensorflow__AttrValue *muster_node_attr (const MusterNode *node, const char *name);

/* The value of an attribute; fallback if it is absent or of another type. */
MusterDType muster_node_dtype (const MusterNode *node, const char *name, MusterDType fallback);
gint64 muster_node_int (const MusterNode *node, const char *name, gint64 fallback);
gboolean muster_node_bool (const MusterNode *node, const char *name, gboolean fallback);
float muster_node_float (const MusterNode *node, const char *name, float fallback);
/* A NUL-terminated copy, or NULL. */
char *muster_node_string (const MusterNode *node, const char *name);
/* Reads a shape attribute. Returns the rank, or -1 if it is unknown or the attribute absent. Writes
 * at most max sizes to dims; -1 is an unknown size. */
int muster_node_shape (const MusterNode *node, const char *name, gint64 *dims, int max);

/* FALSE with UNIMPLEMENTED: an output of the node is of that type, which no tensor holds. */
gboolean muster_graph_refuse_fetch (MusterGraph *self, const MusterNode *node, const char *fetch,
                                    MusterDType dtype, GError **error);

/* The variables of the nodes, by what identifies one on a master: kind, device, container and name.
 * Two graphs with the same key share the variable. (element-type utf8 utf8) The values are the
 * variables' names. Computed once and kept; any thread. */
GHashTable *muster_graph_variables (MusterGraph *self);
/* TRUE if one of them is in one of the containers. */
gboolean muster_graph_has_variable_in (MusterGraph *self, const char *const *containers);

/* The functions of its library. Read once and kept; any thread. */
const MusterFunctions *muster_graph_functions (MusterGraph *self);

/* A graph's VersionDef. */
typedef struct {
  gint32 producer; /* of the TensorFlow that made it; 0: none is given */
  gint32 min_consumer;
  gboolean is_bad; /* the consumer that was asked for is among the bad ones */
} MusterGraphVersions;

MusterGraphVersions muster_graph_versions (MusterGraph *self, gint32 consumer);

/* The same as muster_node_shape () for the shape that a placeholder is fed with: TensorFlow up to
 * producer 21 wrote {}, a scalar's, where the shape was unknown. */
int muster_graph_feed_shape (MusterGraph *self, const MusterNode *placeholder, gint64 *dims,
                             int max);

G_END_DECLS
