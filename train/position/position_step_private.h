// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_builder.h"

G_BEGIN_DECLS

#define MUSTER_POSITION_INIT_OP "muster/position_init"
/* Every write of the train op depends on it. */
#define MUSTER_POSITION_BEGUN_STEP "muster/step/begun"

/* What the nodes are added to. */
typedef struct {
  MusterGraphBuilder *builder;
  const char *device;
  const char *train_op;
  gint64 n_tasks; /* slots, if it is dealt */
  gboolean is_dealt;
  gboolean has_fence; /* its tasks may have a master each (position_fence.c) */
} MusterPositionNodes;

/* Adds the variables, a task's steps and, unless init_op is NULL, an op that initialises it all. */
void muster_position_add_nodes (MusterPositionNodes *self, const char *init_op);

G_END_DECLS
