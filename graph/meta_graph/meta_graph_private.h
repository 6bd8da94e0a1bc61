// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope.h"
#include "base/unpack.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/proto/meta_graph.pb-c.h"

G_BEGIN_DECLS

/* The variables of a meta graph, gathered from its collections in whatever order these stand in the
 * file, and put into order at the end: global ones, then local ones. Without any collection of
 * variables, the graph's variable nodes. */

typedef struct {
  MusterGraph *graph;    /* (not owned) */
  MusterArena *arena;    /* (not owned) */
  GArray *globals;       /* (owned) (element-type MusterVariableInfo) until finish () */
  GArray *locals;        /* (owned) until finish () */
  GHashTable *trainable; /* (owned) a set of names, until finish () */
  gboolean has_collections;
  GArray *infos; /* (owned) the outcome */
} MusterVariables;

/* What a collection says of one variable. */
typedef struct {
  const char *tensor;                 /* "dense/kernel:0" */
  const Tensorflow__VariableDef *def; /* (nullable) where the collection has names only */
} MusterVariableSource;

void muster_variables_init (MusterVariables *self, MusterGraph *graph, MusterArena *arena);
gboolean muster_variables_add (MusterVariables *self, const char *key,
                               const MusterVariableSource *source, GError **error);
void muster_variables_finish (MusterVariables *self);
void muster_variables_clear (MusterVariables *self);

G_END_DECLS
