// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"

G_BEGIN_DECLS

/**
 * muster_meta_graph_complete:
 * @self: a meta graph
 * @train_ops: (nullable) (array zero-terminated=1): the ops that train, together one step; %NULL:
 *   those of the collection "train_op"
 * @notes: (out) (optional) (transfer full) (array zero-terminated=1): what was added and why, a
 *   line for each; empty if nothing was
 *
 * The meta graph with what it lacks for a training, in this order:
 *
 * - one train op, in the collection "train_op": if there are several, `muster/train`, which runs
 *   all of them that no other one runs. An op that a queue runner runs isn't one. The conditional
 *   replaces an op in one of its branches. Of the graph of a SyncReplicasOptimizer: the op that it
 *   returned, and the ops of its tokens
 * - variables that the train ops write and no collection has: they are global ones, initialised and
 *   saved with the others
 * - a global step, if it trains and has none that is an integer; and `muster/train` advances the
 *   global step, if nothing but its initialiser writes it
 * - `muster/after_restore`, which a chief runs after a restore: it makes what the train ops read
 *   and only the init op would make, an iterator or a table
 * - a saver of all global variables in the V2 format, if its own isn't one
 *
 * The same graph gets the same nodes in every process, and a meta graph that lacks nothing is
 * returned as it is. [ctor@Scaffold.load] and muster_train () complete their graphs by this
 * function; [ctor@Scaffold.new] adds none of it. Without @train_ops, train ops that write the same
 * variable are left as they are, and `muster_train ()` refuses them. INVALID_ARGUMENT for an
 * op of @train_ops that the graph lacks, and for two that write the same variable. Any thread.
 *
 * Returns: (transfer full): the meta graph
 */
MusterMetaGraph *muster_meta_graph_complete (MusterMetaGraph *self, const char *const *train_ops,
                                             char ***notes, GError **error);

/**
 * muster_meta_graph_has_own_input:
 * @self: a meta graph
 *
 * Whether its train ops take their input from the graph itself: from a queue that its queue runners
 * fill, an iterator or a reader. The end of such an input ends a training.
 *
 * Returns: %TRUE if they do
 */
gboolean muster_meta_graph_has_own_input (MusterMetaGraph *self);

G_END_DECLS
