// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/types.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterPlan is a compiled step (docs/decisions/0013): the nodes of a graph that its fetches and
 * targets need, up to its feeds, in execution order, each bound to its kernel and checked against
 * its op's signature. Immutable except for spare memory and the nodes' memos; reference-counted;
 * any thread. */

MusterPlan *muster_plan_ref (MusterPlan *self);
void muster_plan_unref (MusterPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterPlan, muster_plan_unref)

/* Clears what a node owns. */
void muster_plan_node_clear (MusterPlanNode *node);

/* The hash of a step's names, by which plans are found, and whether a plan is for that step. */
guint64 muster_step_hash (const MusterStep *step);
gboolean muster_plan_is_for (const MusterPlan *self, const MusterStep *step);

/* MusterProgram is a graph for the engine: the parsed graph, its constants' values and its plans so
 * far. Sessions whose graphs have the same bytes share one. Reference-counted; any thread. */

MusterProgram *muster_program_new (MusterGraph *graph);
MusterProgram *muster_program_ref (MusterProgram *self);
void muster_program_unref (MusterProgram *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterProgram, muster_program_unref)

MusterGraph *muster_program_graph (MusterProgram *self); /* borrowed */

/* Whether a session may be created with it, computed once: engine/run/graph_check.h. */
gboolean muster_program_check (MusterProgram *self, gboolean soft_placement, GError **error);

/* The ops of its graph that the engine lacks; borrowed. */
const char *const *muster_program_lacks (MusterProgram *self);

/* The plan for a step's feeds, fetches and targets (transfer full), from the cache or new.
 * INVALID_ARGUMENT or NOT_FOUND, with TensorFlow's text if it has one. The cache is bounded; the
 * least recently used plan is dropped. A very large one isn't kept before its second use. */
MusterPlan *muster_program_plan (MusterProgram *self, const MusterStep *step, guint64 hash,
                                 GError **error);

/* Makes a plan (transfer full), for muster_program_plan (), which keeps it. */
MusterPlan *muster_plan_new (MusterProgram *program, const MusterStep *step, GError **error);

/* For muster_plan_new (), with the nodes, their inputs and the fetches in place: marks the nodes
 * that are only there for a control edge from them, which need not compute anything. As
 * TensorFlow's dependency optimizer does. */
void muster_plan_skip_unread (MusterPlan *self);

/* The value of a Const, decoded once (transfer full). */
MusterTensor *muster_program_constant (MusterProgram *self, guint32 node, GError **error);

G_END_DECLS
