// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/**
 * muster_meta_graph_with_saver:
 * @self: a meta graph
 * @graph: the new graph: its own, or that with nodes added
 * @saver: (nullable): the new saver; %NULL: none
 * @collect: whether @saver is also added to the collection "savers"
 *
 * Sets the saver and the graph. A previous saver moves into the collection "savers" unless it is
 * there already. Everything else is copied unchanged.
 *
 * Returns: (transfer full): a new meta graph
 */
MusterMetaGraph *muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                                               const MusterSaverInfo *saver, gboolean collect,
                                               GError **error);

/**
 * MusterCollectedOp:
 * @key: the collection
 * @op: its only op; %NULL removes the collection
 *
 * A collection with one op.
 */
typedef struct {
  const char *key;
  const char *op;
} MusterCollectedOp;

/**
 * muster_meta_graph_with_variables:
 * @self: a meta graph
 * @graph: the new graph: its own, or that with nodes added
 * @variables: (array length=n): nodes of @graph; their name, initializer, snapshot and is_resource
 *   are used
 * @n: the number of variables
 * @ops: (array length=n_ops): collections
 * @n_ops: the number of collections
 *
 * Sets the graph, appends @variables to the global ones, and replaces one whole collection for each
 * of @ops. If the meta graph has no collection of variables, none is added: its variables are found
 * by the graph's nodes. Everything else is copied unchanged.
 *
 * Returns: (transfer full): a new meta graph
 */
MusterMetaGraph *muster_meta_graph_with_variables (MusterMetaGraph *self, MusterGraph *graph,
                                                   const MusterVariableInfo *variables, gsize n,
                                                   const MusterCollectedOp *ops, gsize n_ops,
                                                   GError **error);

/**
 * muster_meta_graph_with_op:
 * @self: a meta graph
 * @key: a collection: "init_op", "train_op", "ready_op", "global_step", …
 * @op: (nullable): its only op, the node's name without ":0"; %NULL removes the collection
 *
 * Sets a collection of one node. Everything else is copied unchanged. [ctor@Scaffold.new] finds a
 * model's ops in such collections, `muster train` a built graph's train op in "train_op". Fails
 * with INVALID_ARGUMENT if the graph has no such op.
 *
 * Returns: (transfer full): a new meta graph
 */
MusterMetaGraph *muster_meta_graph_with_op (MusterMetaGraph *self, const char *key, const char *op,
                                            GError **error);

G_END_DECLS
