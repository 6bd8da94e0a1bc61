// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"

G_BEGIN_DECLS

/* The restore part of a graph: the RestoreV2 nodes behind the restore op with their names, slices
 * and dtypes, and the ops that use each output. Nodes are borrowed from the graph. Immutable. */

/* A tensor that the restore reads. The plan owns the texts. */
typedef struct {
  const char *name;   /* in the checkpoint */
  const char *slice;  /* "" for the whole */
  const char *output; /* the tensor that it becomes: "save/RestoreV2:3" */
  MusterDType dtype;
  const MusterNode *variable; /* (nullable) the variable that it is assigned to */
  gboolean is_reshaped;       /* the graph itself reshapes it to the variable's shape */
  /* The shape that the graph gives for it: from the slice's text ("10 4 0,4:-" -> [10,4]), or the
   * variable's. n_dims is the rank, or -1 if unknown. */
  int n_dims;
  const gint64 *dims;
} MusterWanted;

/* An op that uses what was read, usually Assign. */
typedef struct {
  const MusterNode *op;
  const MusterNode *variable; /* (nullable) */
  guint first_use;            /* in uses */
  guint n_uses;
} MusterAssignment;

typedef struct {
  MusterGraph *graph;  /* (owned) */
  GArray *wanted;      /* (owned) (element-type MusterWanted) */
  GArray *by_name;     /* (owned) (element-type guint) indexes of wanted, sorted by name */
  GArray *assignments; /* (owned) (element-type MusterAssignment) */
  GArray *uses;        /* (owned) (element-type guint) indexes of wanted */
  GPtrArray *restores; /* (owned) (element-type utf8) the RestoreV2 nodes; borrowed */
  GStringChunk *texts; /* (owned) */
  MusterArena *arena;  /* (owned) for shapes */
  gboolean can_feed;   /* everything that is read is known: the outputs may be fed instead */
} MusterRestorePlan;

MusterRestorePlan *muster_restore_plan_new (MusterGraph *graph, const char *restore_op,
                                            GError **error);
void muster_restore_plan_free (MusterRestorePlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRestorePlan, muster_restore_plan_free)

G_END_DECLS
