// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* Meta graphs made from others: nothing is changed in place, and what isn't spoken of here is kept
 * as it came. */

/* The same with another saver as its own, and with graph (self's own, or that with nodes added) as
 * its graph. A saver that was its own before goes into the collection "savers" if that lacks it, so
 * that it can still be found; collect: so does the new one. Without saver (nullable) it has none of
 * its own. */
MusterMetaGraph *muster_meta_graph_with_saver (MusterMetaGraph *self, MusterGraph *graph,
                                               const MusterSaverInfo *saver, gboolean collect,
                                               GError **error);

/* A collection that holds one op. */
typedef struct {
  const char *key;
  const char *op; /* NULL: the collection goes */
} MusterCollectedOp;

/* The same with graph as its graph, where variables (n of them: nodes of graph; name, initializer,
 * snapshot and is_resource count) come behind the other global ones, and where each of ops takes
 * the place of a whole collection. A meta graph without a collection of variables, which counts the
 * graph's nodes, gets none: those are found all the same. */
MusterMetaGraph *muster_meta_graph_with_variables (MusterMetaGraph *self, MusterGraph *graph,
                                                   const MusterVariableInfo *variables, gsize n,
                                                   const MusterCollectedOp *ops, gsize n_ops,
                                                   GError **error);

G_END_DECLS
