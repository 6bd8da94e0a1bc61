// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* What has to be initialised in every session, since no checkpoint holds it, but is by the init op
 * alone, which doesn't run after a restore: the ops that begin the iterators which the train ops
 * (element-type utf8) read, and, if the graph has a local init op of its own, the tables'.
 * (transfer full) (element-type utf8) */
GPtrArray *muster_local_init_missing (MusterMetaGraph *meta_graph, const GPtrArray *train_ops);

/* The meta graph in which they run after every restore, too. */
MusterMetaGraph *muster_local_init_add (MusterMetaGraph *meta_graph, const GPtrArray *missing,
                                        GError **error);

G_END_DECLS
