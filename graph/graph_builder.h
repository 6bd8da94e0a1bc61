// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

G_BEGIN_DECLS

/**
 * MusterGraphBuilder:
 *
 * Writes a graph node by node, for examples, for tests, and for the ready op of a model that has
 * none. Begin a node, add its inputs and attributes, begin the next. The caller chooses the nodes'
 * names, which must be unique. A mistake (a name used twice) is reported by
 * [method@GraphBuilder.end]. Reference-counted; not thread-safe.
 *
 * ```c
 * muster_graph_builder_constant (b, "two", two);
 * muster_graph_builder_node (b, "AddV2", "sum");
 * muster_graph_builder_input (b, "x");
 * muster_graph_builder_input (b, "two");
 * muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
 * ```
 *
 * TensorFlow's documentation lists the operations with their inputs and attributes. Operations and
 * attributes are written as given; the master that runs the graph checks them.
 */
typedef struct _MusterGraphBuilder MusterGraphBuilder;

#define MUSTER_TYPE_GRAPH_BUILDER (muster_graph_builder_get_type ())
GType muster_graph_builder_get_type (void);

/**
 * muster_graph_builder_new:
 *
 * Begins a graph. It gets the GraphDef version of TensorFlow 1.15, which every later one reads.
 *
 * Returns: (transfer full): a builder without nodes
 */
MusterGraphBuilder *muster_graph_builder_new (void);

/**
 * muster_graph_builder_new_extension:
 *
 * Begins nodes that are added to an existing graph ([method@Graph.extended]). The result has no
 * versions, so that graph keeps its own. Inputs may name nodes of that graph.
 *
 * Returns: (transfer full): a builder without nodes
 */
MusterGraphBuilder *muster_graph_builder_new_extension (void);

/**
 * muster_graph_builder_ref: (skip)
 * @self: a builder
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterGraphBuilder *muster_graph_builder_ref (MusterGraphBuilder *self);

/**
 * muster_graph_builder_free: (skip)
 * @self: (nullable): a builder
 *
 * Drops a reference; the last one frees the builder.
 */
void muster_graph_builder_free (MusterGraphBuilder *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraphBuilder, muster_graph_builder_free)

/**
 * muster_graph_builder_node:
 * @self: a builder
 * @op: the operation, such as "MatMul"
 * @name: the node's name, unique in the graph
 *
 * Begins a node, the current one for the functions that add inputs and attributes.
 */
void muster_graph_builder_node (MusterGraphBuilder *self, const char *op, const char *name);

/**
 * muster_graph_builder_input:
 * @self: a builder
 * @input: a tensor, "node" or "node:1", or a control input, "^node"
 *
 * Adds an input to the current node. Control inputs come last.
 */
void muster_graph_builder_input (MusterGraphBuilder *self, const char *input);

/**
 * muster_graph_builder_device:
 * @self: a builder
 * @device: a device, whole or in part, such as "/job:ps/task:1" or "/cpu:0"
 *
 * Places the current node.
 */
void muster_graph_builder_device (MusterGraphBuilder *self, const char *device);

/**
 * muster_graph_builder_attr_type:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to an element type.
 */
void muster_graph_builder_attr_type (MusterGraphBuilder *self, const char *name, MusterDType value);

/**
 * muster_graph_builder_attr_types:
 * @self: a builder
 * @name: the attribute
 * @values: (array length=n): its values
 * @n: the number of values
 *
 * Sets an attribute of the current node to a list of element types.
 */
void muster_graph_builder_attr_types (MusterGraphBuilder *self, const char *name,
                                      const MusterDType *values, gsize n);

/**
 * muster_graph_builder_attr_int:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to an integer.
 */
void muster_graph_builder_attr_int (MusterGraphBuilder *self, const char *name, gint64 value);

/**
 * muster_graph_builder_attr_float:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to a number.
 */
void muster_graph_builder_attr_float (MusterGraphBuilder *self, const char *name, float value);

/**
 * muster_graph_builder_attr_bool:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to a truth value.
 */
void muster_graph_builder_attr_bool (MusterGraphBuilder *self, const char *name, gboolean value);

/**
 * muster_graph_builder_attr_string:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to a text.
 */
void muster_graph_builder_attr_string (MusterGraphBuilder *self, const char *name,
                                       const char *value);

/**
 * muster_graph_builder_attr_shape:
 * @self: a builder
 * @name: the attribute
 * @n_dims: the rank, or -1 if it is unknown
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions; -1 for an unknown one
 *
 * Sets an attribute of the current node to a shape. From a language without pointers, leave out the
 * attribute of a shape of unknown rank: that is its default in TensorFlow.
 */
void muster_graph_builder_attr_shape (MusterGraphBuilder *self, const char *name, int n_dims,
                                      const gint64 *dims);

/**
 * muster_graph_builder_attr_shapes: (skip)
 * @self: a builder
 * @name: the attribute
 * @n: the number of shapes
 * @n_dims: the rank of each
 * @dims: (nullable): the sizes of each shape in turn
 *
 * Sets an attribute of the current node to a list of shapes of one rank, as a queue has for its
 * components.
 */
void muster_graph_builder_attr_shapes (MusterGraphBuilder *self, const char *name, gsize n,
                                       int n_dims, const gint64 *dims);

/**
 * muster_graph_builder_attr_tensor:
 * @self: a builder
 * @name: the attribute
 * @value: its value
 *
 * Sets an attribute of the current node to a tensor, which is copied into the graph.
 */
void muster_graph_builder_attr_tensor (MusterGraphBuilder *self, const char *name,
                                       MusterTensor *value);

/**
 * muster_graph_builder_colocate:
 * @self: a builder
 * @with: a node
 *
 * Places the current node on the device of the node @with (TensorFlow's attribute "_class").
 */
void muster_graph_builder_colocate (MusterGraphBuilder *self, const char *with);

/**
 * muster_graph_builder_constant:
 * @self: a builder
 * @name: the node's name
 * @value: the tensor, which is copied into the graph
 *
 * Adds a complete Const node.
 */
void muster_graph_builder_constant (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *value);

/**
 * muster_graph_builder_placeholder:
 * @self: a builder
 * @name: the node's name; "NAME:0" is fed
 * @dtype: the type of its elements
 * @n_dims: the rank, or -1 if it is unknown
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions; -1 for an unknown one, such
 *   as the batch's
 *
 * Adds a complete Placeholder node.
 */
void muster_graph_builder_placeholder (MusterGraphBuilder *self, const char *name,
                                       MusterDType dtype, int n_dims, const gint64 *dims);

/**
 * muster_graph_builder_variable:
 * @self: a builder
 * @name: the variable's name
 * @initial_value: its first value, which also gives its type and shape
 *
 * Adds a reference variable (VariableV2), "NAME/Assign", which assigns @initial_value to it, and
 * "NAME/read", its value. Ops that change the variable take "NAME" as their input; all others, and
 * fetches, take "NAME/read".
 *
 * ```c
 * muster_graph_builder_node (b, "AssignAdd", "count");
 * muster_graph_builder_input (b, "counter");
 * muster_graph_builder_input (b, "one");
 * muster_graph_builder_attr_type (b, "T", MUSTER_INT64);
 * ```
 */
void muster_graph_builder_variable (MusterGraphBuilder *self, const char *name,
                                    MusterTensor *initial_value);

/**
 * muster_graph_builder_group:
 * @self: a builder
 * @name: the node's name
 * @ops: (array zero-terminated=1): the ops to run, NULL-terminated
 *
 * Adds a NoOp with control inputs from @ops: a group, such as an init op.
 */
void muster_graph_builder_group (MusterGraphBuilder *self, const char *name,
                                 const char *const *ops);

/**
 * muster_graph_builder_end:
 * @self: a builder
 *
 * Ends the graph. Fails with INVALID_ARGUMENT, which names the first mistake. The builder can only
 * be freed afterwards.
 *
 * Returns: (transfer full): the graph
 */
MusterGraph *muster_graph_builder_end (MusterGraphBuilder *self, GError **error);

G_END_DECLS
