// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* What no checkpoint holds and no local init op makes: the ops that begin the iterators which the
 * train ops (element-type utf8) read, and, if the graph has a local init op of its own, the
 * tables'. The init op makes it or not; it doesn't run after a restore. Not what needs a feed.
 * (transfer full) (element-type utf8) */
GPtrArray *muster_local_init_missing (MusterMetaGraph *meta_graph, const GPtrArray *train_ops);

/* INVALID_ARGUMENT names an iterator that the train ops read and that nothing can begin: several
 * ops do, of which the graph's program ran one at a time, or the one needs a feed; or whose state
 * the saver restores. */
gboolean muster_local_init_check (MusterMetaGraph *meta_graph, const GPtrArray *train_ops,
                                  GError **error);

/* The meta graph with MUSTER_AFTER_RESTORE, which runs them. */
MusterMetaGraph *muster_local_init_add (MusterMetaGraph *meta_graph, const GPtrArray *missing,
                                        GError **error);

G_END_DECLS
