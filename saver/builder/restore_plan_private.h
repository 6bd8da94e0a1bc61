// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "graph/graph_nodes.h"

G_BEGIN_DECLS

/* What a restore does, as the graph says it: the RestoreV2 nodes behind the restore op with their
 * names, slices and dtypes, and the ops that each output goes to. Nodes are borrowed from the
 * graph. Constant once made. */

/* A tensor that the restore reads. The texts are the plan's. */
typedef struct {
  const char *name;   /* in the checkpoint */
  const char *slice;  /* "" for the whole */
  const char *output; /* where it comes out: "save/RestoreV2:3" */
  MusterDType dtype;
  const Tensorflow__NodeDef *variable; /* (nullable) where it goes */
  gboolean is_reshaped;                /* the graph gives it the variable's shape itself */
  int n_dims;                          /* the shape, as muster_wanted_shape () tells it */
  const gint64 *dims;
} MusterWanted;

/* An op that takes in what was read: mostly Assign. */
typedef struct {
  const Tensorflow__NodeDef *op;
  const Tensorflow__NodeDef *variable; /* (nullable) */
  guint first_use;                     /* in uses */
  guint n_uses;
} MusterAssignment;

typedef struct {
  MusterGraph *graph;  /* (owned) */
  GArray *wanted;      /* (owned) (element-type MusterWanted) */
  GArray *by_name;     /* (owned) (element-type guint) indexes of wanted, in the names' order */
  GArray *assignments; /* (owned) (element-type MusterAssignment) */
  GArray *uses;        /* (owned) (element-type guint) indexes of wanted */
  GPtrArray *restores; /* (owned) (element-type utf8) the RestoreV2 nodes; borrowed */
  GStringChunk *texts; /* (owned) */
  MusterArena *arena;  /* (owned) of shapes */
  gboolean can_feed;   /* all that is read is known: the outputs may be fed instead */
} MusterRestorePlan;

MusterRestorePlan *muster_restore_plan_new (MusterGraph *graph, const char *restore_op,
                                            GError **error);
void muster_restore_plan_free (MusterRestorePlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRestorePlan, muster_restore_plan_free)

/* The shape that the graph has for a tensor: of the slice's whole ("10 4 0,4:-" -> [10,4]), or of
 * the variable. The rank is -1 where it doesn't say. dims has room for MUSTER_MAX_DIMS. */
int muster_wanted_shape (const MusterWanted *self, gint64 *dims);

G_END_DECLS
