// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/**
 * muster_graph_with_ready_op:
 * @meta_graph: a model
 * @include_local: whether local variables count too
 * @op: (out) (transfer full): the op to fetch: a string vector of the variables without a value,
 *   empty when the model is ready. It is empty as well for a model without variables
 *
 * Adds TensorFlow's report_uninitialized_variables to a model that has no ready op. Every process
 * adds the same nodes with the same names, so the graphs still compare equal.
 *
 * Returns: (transfer full): the graph with these nodes
 */
MusterGraph *muster_graph_with_ready_op (MusterMetaGraph *meta_graph, gboolean include_local,
                                         char **op, GError **error);

G_END_DECLS
