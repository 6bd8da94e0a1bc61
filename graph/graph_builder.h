// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* MusterGraphBuilder writes a graph node by node, for examples, for tests, and for the ready op of
 * a model that has none. Begin a node, add its inputs and attributes, begin the next. The caller
 * chooses the nodes' names, which must be unique. A mistake (a name used twice) is reported by
 * muster_graph_builder_end (). Not thread-safe.
 *
 *   muster_graph_builder_constant (b, "two", two);
 *   muster_graph_builder_node (b, "AddV2", "sum");
 *   muster_graph_builder_input (b, "x");
 *   muster_graph_builder_input (b, "two");
 *   muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT); */

typedef struct _MusterGraphBuilder MusterGraphBuilder;

MusterGraphBuilder *muster_graph_builder_new (void);
/* For nodes that are added to an existing graph. The result has no versions, so that graph keeps
 * its own. */
MusterGraphBuilder *muster_graph_builder_new_extension (void);
void muster_graph_builder_free (MusterGraphBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraphBuilder, muster_graph_builder_free)

void muster_graph_builder_node (MusterGraphBuilder *self, const char *op, const char *name);

/* The following apply to the current node, the last one begun. An input is "node", "node:1" or
 * "^node". */
void muster_graph_builder_input (MusterGraphBuilder *self, const char *input);
void muster_graph_builder_device (MusterGraphBuilder *self, const char *device);
void muster_graph_builder_attr_type (MusterGraphBuilder *self, const char *name, MusterDType value);
void muster_graph_builder_attr_types (MusterGraphBuilder *self, const char *name,
                                      const MusterDType *values, gsize n);
void muster_graph_builder_attr_int (MusterGraphBuilder *self, const char *name, gint64 value);
void muster_graph_builder_attr_float (MusterGraphBuilder *self, const char *name, float value);
void muster_graph_builder_attr_bool (MusterGraphBuilder *self, const char *name, gboolean value);
void muster_graph_builder_attr_string (MusterGraphBuilder *self, const char *name,
                                       const char *value);
void muster_graph_builder_attr_shape (MusterGraphBuilder *self, const char *name, int n_dims,
                                      const gint64 *dims);
/* n shapes, all of rank n_dims; dims has the sizes of each shape in turn. For a queue's components.
 */
void muster_graph_builder_attr_shapes (MusterGraphBuilder *self, const char *name, gsize n,
                                       int n_dims, const gint64 *dims);
void muster_graph_builder_attr_tensor (MusterGraphBuilder *self, const char *name,
                                       MusterTensor *value);
/* Places the current node on the device of the node with (TensorFlow's attribute "_class"). */
void muster_graph_builder_colocate (MusterGraphBuilder *self, const char *with);

/* Complete nodes. */
void muster_graph_builder_constant (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *value);
void muster_graph_builder_placeholder (MusterGraphBuilder *self, const char *name,
                                       MusterDType dtype, int n_dims, const gint64 *dims);
/* A reference variable, "NAME/Assign" that assigns initial_value to it, and "NAME/read". */
void muster_graph_builder_variable (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *initial_value);
/* A NoOp with control inputs from ops (NULL-terminated): a group, such as an init op. */
void muster_graph_builder_group (MusterGraphBuilder *self, const char *name,
                                 const char *const *ops);

/* The graph, or INVALID_ARGUMENT, which names the mistake. The builder can only be freed
 * afterwards. */
MusterGraph *muster_graph_builder_end (MusterGraphBuilder *self, GError **error);

G_END_DECLS
