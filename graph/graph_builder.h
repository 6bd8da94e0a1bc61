// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/* MusterGraphBuilder writes a graph in C, node by node: enough for examples, for tests, and for the
 * ready op of a model that has none. Begin a node, add its inputs and attributes, begin the next.
 * Names of nodes are the caller's and unique. Not thread-safe. A mistake (a name used twice) shows
 * at muster_graph_builder_end ().
 *
 *   muster_graph_builder_constant (b, "two", two);
 *   muster_graph_builder_node (b, "AddV2", "sum");
 *   muster_graph_builder_input (b, "x");
 *   muster_graph_builder_input (b, "two");
 *   muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT); */

typedef struct _MusterGraphBuilder MusterGraphBuilder;

MusterGraphBuilder *muster_graph_builder_new (void);
/* For nodes that go into a graph of somebody else's making: without versions, so that that graph
 * keeps its own. */
MusterGraphBuilder *muster_graph_builder_new_extension (void);
void muster_graph_builder_free (MusterGraphBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraphBuilder, muster_graph_builder_free)

void muster_graph_builder_node (MusterGraphBuilder *self, const char *op, const char *name);

/* Of the node begun last. An input is "node", "node:1" or "^node". */
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
/* n shapes of one rank, the sizes one shape after the other: of a queue's components. */
void muster_graph_builder_attr_shapes (MusterGraphBuilder *self, const char *name, gsize n,
                                       int n_dims, const gint64 *dims);
void muster_graph_builder_attr_tensor (MusterGraphBuilder *self, const char *name,
                                       MusterTensor *value);
/* The node stands where that other one does (TensorFlow's attribute "_class"). */
void muster_graph_builder_colocate (MusterGraphBuilder *self, const char *with);

/* Whole nodes that every graph needs. */
void muster_graph_builder_constant (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *value);
void muster_graph_builder_placeholder (MusterGraphBuilder *self, const char *name,
                                       MusterDType dtype, int n_dims, const gint64 *dims);
/* A reference variable and its "NAME/Assign" from initial_value, and "NAME/read". */
void muster_graph_builder_variable (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *initial_value);
/* A NoOp that waits for others: a group, such as an init op. NULL-terminated. */
void muster_graph_builder_group (MusterGraphBuilder *self, const char *name,
                                 const char *const *ops);

/* The graph; INVALID_ARGUMENT names the mistake. The builder is spent. */
MusterGraph *muster_graph_builder_end (MusterGraphBuilder *self, GError **error);

G_END_DECLS
