// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/feed_option_private.h"
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
  char **own_notes;            /* (owned) (nullable) the same, where there is a proposal */
  char *proposal;              /* (owned) (nullable) a train op that no collection has */
  MusterScaffold *scaffold;    /* (owned) */
  MusterMetaGraph *meta_graph; /* (not owned) */
  MusterGraph *graph;          /* (not owned) */
  MusterFeedUsers *users;      /* (owned) */
  GPtrArray *facts;            /* (owned) (element-type MusterGraphFact) */
  GPtrArray *others;           /* (owned) (nullable) (element-type utf8) train ops: the first is
                                * described, the others can't be in a step with it */
  GPtrArray *losses;           /* (owned) (element-type utf8) tensors, the reported one first */
  guint n_minimised;           /* of them the first, which the train op minimises */
  char *why_not;               /* (owned) (nullable) the graph can't be trained as it is */
  guint8 *in_loop;             /* (owned) marks the nodes in loops */
  guint8 *trains_by;           /* (owned) marks the nodes that the train op needs */
} MusterInspect;

void muster_inspect_add (MusterInspect *self, const char *topic, const char *name,
                         const char *text);

/* TRUE for a node of tf.gradients (). */
gboolean muster_inspect_is_gradient (MusterGraph *graph, gsize node);

/* Those that the train op minimises first: their number. (transfer full) */
GPtrArray *muster_inspect_find_losses (const MusterInspect *self, guint *n_minimised);

/* What writes variables by itself at some time: the training (of any train op), the queue runners,
 * and all initialisers. (transfer full) */
guint8 *muster_inspect_mark_writers (const MusterInspect *self);

void muster_inspect_add_commands (MusterInspect *self);

G_END_DECLS
