// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* Changes to meta graphs. Each function returns a new one; everything that its comment doesn't
 * mention is copied unchanged. */

/* Sets the saver (nullable: none) and the graph, which is self's own or that with nodes added. A
 * previous saver moves into the collection "savers" unless it is there already. With collect, the
 * new saver is added there too. */
MusterMetaGraph *muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                                               const MusterSaverInfo *saver, gboolean collect,
                                               GError **error);

/* A collection with one op. */
typedef struct {
  const char *key;
  const char *op; /* (nullable) NULL removes the collection */
} MusterCollectedOp;

/* Sets the graph, appends n variables to the global ones, and replaces one whole collection for
 * each of ops. The variables are nodes of graph; their name, initializer, snapshot and is_resource
 * are used. If self has no collection of variables, none is added: its variables are found by the
 * graph's nodes. */
MusterMetaGraph *muster_meta_graph_with_variables (MusterMetaGraph *self, MusterGraph *graph,
                                                   const MusterVariableInfo *variables, gsize n,
                                                   const MusterCollectedOp *ops, gsize n_ops,
                                                   GError **error);

G_END_DECLS
