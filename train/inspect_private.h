// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph.h"
#include "train/inspect.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* One inspection. */
typedef struct {
  const char *path;            /* (not owned) */
  const char *target;          /* (not owned) */
  const char *const *asked;    /* (not owned) (nullable) the train ops that were chosen */
  const char *const *notes;    /* (not owned) what was completed */
  MusterScaffold *scaffold;    /* (owned) */
  MusterMetaGraph *meta_graph; /* (not owned) */
  MusterGraph *graph;          /* (not owned) */
  GPtrArray *facts;            /* (owned) (element-type MusterGraphFact) */
  GPtrArray *others;           /* (owned) (nullable) (element-type utf8) train ops: the first is
                                * described, the others can't be in a step with it */
  GPtrArray *losses;           /* (owned) (element-type utf8) tensors, the reported one first */
  char *why_not;               /* (owned) (nullable) the graph can't be trained as it is */
  guint8 *trains_by;           /* (owned) marks the nodes that the train op needs */
} MusterInspect;

void muster_inspect_add (MusterInspect *self, const char *topic, const char *name,
                         const char *text);

/* Whether the train op has the gradient of a loss. */
gboolean muster_inspect_is_trained (const MusterInspect *self, const char *loss);

/* (transfer full) */
GPtrArray *muster_inspect_find_losses (const MusterInspect *self);

void muster_inspect_add_commands (MusterInspect *self);

G_END_DECLS
