// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/* The train ops of a graph. */

#define MUSTER_TRAIN "muster/train" /* runs all of them; beside it, "muster/train/…" */

/* Each collected op once that no other one runs, nor a queue runner (transfer full) (element-type
 * utf8). ops (nullable) stand in for the collection; INVALID_ARGUMENT if the graph lacks one. */
GPtrArray *muster_train_ops_find (MusterMetaGraph *meta_graph, const char *const *ops,
                                  GError **error);

/* INVALID_ARGUMENT, with their names, if two of them write the same variable. */
gboolean muster_train_ops_check (MusterMetaGraph *meta_graph, const GPtrArray *ops, GError **error);

/* Marks what the ops (element-type utf8) run. (transfer full) */
guint8 *muster_train_ops_needed (MusterGraph *graph, const GPtrArray *ops);

/* completion.c: TRUE if what these run takes input from the graph itself: from a queue that its
 * queue runners fill, an iterator or a reader. */
gboolean muster_train_ops_take_input (MusterMetaGraph *meta_graph, const GPtrArray *ops);
/* Marks what the graph's queue runners run. (transfer full) */
guint8 *muster_train_ops_queued (MusterMetaGraph *meta_graph);

/* The variable's nodes that change it, within marked (nullable: in the whole graph), except its
 * initializer and what restores it. (transfer full) (element-type gsize) */
GArray *muster_train_ops_writers (MusterMetaGraph *meta_graph, const MusterVariableInfo *variable,
                                  const guint8 *marked);

/* TRUE for a node that writes a value from a checkpoint. */
gboolean muster_train_ops_restores (MusterGraph *graph, gsize node);

G_END_DECLS
