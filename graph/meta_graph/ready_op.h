// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* report_uninitialized_variables for a model that has no ready op: a graph with its nodes added,
 * the same nodes of the same names in every process, so that graphs still compare equal. *op
 * (transfer full) is the op to fetch: it yields the names of the variables that have no value, a
 * string vector that is empty when the model is ready. With no variables it yields none. */
MusterGraph *muster_graph_with_ready_op (MusterMetaGraph *meta_graph, gboolean local_too, char **op,
                                         GError **error);

G_END_DECLS
