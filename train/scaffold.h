// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph.h"

G_BEGIN_DECLS

/* MusterScaffold is what starting a model needs, read from a meta graph's collections and built
 * where they lack it: the init op, the local init op, the gate and the ready op. What is built has
 * the same nodes and names in every process, so that graphs still compare equal on the master.
 * Immutable and counted; strings are borrowed from it. */

typedef struct _MusterScaffold MusterScaffold;

/* INVALID_ARGUMENT where the meta graph contradicts itself. */
MusterScaffold *muster_scaffold_new (MusterMetaGraph *meta_graph, GError **error);

/* Loads a .meta file; errors name it. DATA_LOSS for a checkpoint's that isn't as it was saved
 * (bundle/checkpoint_look.h). */
MusterScaffold *muster_scaffold_load (const char *path, GError **error);

MusterScaffold *muster_scaffold_ref (MusterScaffold *self);
void muster_scaffold_unref (MusterScaffold *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterScaffold, muster_scaffold_unref)

MusterMetaGraph *muster_scaffold_meta_graph (MusterScaffold *self);

/* The graph to make sessions with: the meta graph's own, and what was built. */
MusterGraph *muster_scaffold_graph (MusterScaffold *self);

const char *muster_scaffold_init_op (MusterScaffold *self);       /* (nullable) */
const char *muster_scaffold_local_init_op (MusterScaffold *self); /* (nullable) */
const char *
muster_scaffold_ready_op (MusterScaffold *self); /* (nullable): a model without variables */
const char *muster_scaffold_ready_for_local_init_op (MusterScaffold *self); /* (nullable) */
const char *muster_scaffold_train_op (MusterScaffold *self);                /* (nullable) */
const char *muster_scaffold_summary_op (MusterScaffold *self); /* (nullable) a tensor */

/* The tensor that reads the global step, "global_step:0", or NULL if the model has none. */
const char *muster_scaffold_global_step (MusterScaffold *self);

/* How many variables there are, local ones included. */
gsize muster_scaffold_n_variables (MusterScaffold *self);

G_END_DECLS
