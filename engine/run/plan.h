// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterPlan is a step made ready (docs/decisions/0013): of a graph, the nodes that its fetches and
 * targets need, cut at its feeds, in an order that can be walked, each bound to its kernel and
 * checked against its op's signature. Immutable but for its spare scratch and what its nodes keep
 * from step to step; counted; any thread. */

MusterPlan *muster_plan_ref (MusterPlan *self);
void muster_plan_unref (MusterPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPlan, muster_plan_unref)

/* Clears what a node owns. */
void muster_plan_node_clear (MusterPlanNode *node);

/* A hash of what a plan is found by, the names of a step, and whether it is that step's. */
guint64 muster_step_hash (const MusterStep *step);
gboolean muster_plan_is_for (const MusterPlan *self, const MusterStep *step);

/* MusterProgram is a graph as the engine runs it: the parsed graph, its constants' values and the
 * plans made for it so far. All sessions whose graphs have the same bytes share one. Counted; any
 * thread. */

MusterProgram *muster_program_new (MusterGraph *graph);
MusterProgram *muster_program_ref (MusterProgram *self);
void muster_program_unref (MusterProgram *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProgram, muster_program_unref)

MusterGraph *muster_program_graph (MusterProgram *self); /* borrowed */

/* Whether a session may be made over it, found once: engine/run/graph_check.h. */
gboolean muster_program_check (MusterProgram *self, gboolean soft_placement, GError **error);

/* The plan for a step's feeds, fetches and targets (transfer full): an earlier one, or made now.
 * INVALID_ARGUMENT, NOT_FOUND with TensorFlow's words where it has some.
 * The number of plans kept is bounded; the one unused for longest goes. */
MusterPlan *muster_program_plan (MusterProgram *self, const MusterStep *step, guint64 hash,
                                 GError **error);

/* Makes a plan (transfer full), for muster_program_plan (), which keeps it. */
MusterPlan *muster_plan_new (MusterProgram *program, const MusterStep *step, GError **error);

/* The value of a Const, decoded once (transfer full). */
MusterTensor *muster_program_constant (MusterProgram *self, guint32 node, GError **error);

G_END_DECLS
