// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/**
 * MusterGraphFact:
 * @topic: "graph", "completed", "placeholder", "train op", "global step", "init op", "loss",
 *   "metric", "variables", "other writer", "saver", "table", "queue", "input", or "command"
 * @name: the tensor or op; of "command" what it does: "train", "serve", "prepare", "evaluate"; ""
 *   where the topic has none
 * @text: what is known of it: "float[?,64]"; of "command" the command itself
 *
 * One thing that is known of a graph.
 */
typedef struct {
  char *topic;
  char *name;
  char *text;
} MusterGraphFact;

#define MUSTER_TYPE_GRAPH_FACT (muster_graph_fact_get_type ())
GType muster_graph_fact_get_type (void);

/**
 * muster_graph_fact_new:
 * @topic: its topic
 * @name: (nullable): of what
 * @text: (nullable): what is known
 *
 * Creates a fact.
 *
 * Returns: (transfer full): a fact
 */
MusterGraphFact *muster_graph_fact_new (const char *topic, const char *name, const char *text);

/**
 * muster_scaffold_propose_train_op:
 * @self: a loaded graph
 *
 * Looks for the op that a program may have run as its step, in a graph whose collections have no
 * train op that it has: the one that updates the most trainable variables, by gradients if any op
 * does.
 *
 * Returns: (transfer full) (nullable): the op; %NULL if there is none or a train op is known
 */
char *muster_scaffold_propose_train_op (MusterScaffold *self);

/**
 * muster_scaffold_inspect:
 * @self: a loaded, completed graph
 * @path: what it was loaded from, for the commands
 * @train_ops: (nullable) (array zero-terminated=1): the train ops that it was loaded with, for the
 *   commands; %NULL: those of the collection. Of collected ones that can't be one step, the first
 *   is described; if none is collected, muster_scaffold_propose_train_op ()'s
 * @target: the master that the commands name: "local", "tensorflow"
 *
 * Describes a graph for somebody who hasn't made it: what is to be fed, what trains, what is
 * reported and saved, and the commands that train it, prepare it on a server and evaluate it there.
 * Nothing is run. Facts of a topic follow one another; the loss that the commands report is the
 * first one.
 *
 * Returns: (transfer container) (element-type MusterGraphFact): the facts
 */
GPtrArray *muster_scaffold_inspect (MusterScaffold *self, const char *path,
                                    const char *const *train_ops, const char *target,
                                    GError **error);

G_END_DECLS
