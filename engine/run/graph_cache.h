// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/plan.h"

G_BEGIN_DECLS

/* Programs by their graph's content (docs/decisions/0012): a hash, then a compare. A program stays
 * while a session has it, and a few stay beyond that. Any thread. */

typedef struct _MusterGraphCache MusterGraphCache;

MusterGraphCache *muster_graph_cache_new (void);
void muster_graph_cache_free (MusterGraphCache *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraphCache, muster_graph_cache_free)

/* The program of a graph with these bytes (transfer full), parsed; INVALID_ARGUMENT for a malformed
 * graph. */
MusterProgram *muster_graph_cache_take (MusterGraphCache *self, MusterGraph *graph, GError **error);

/* Gives back what take gave. */
void muster_graph_cache_give (MusterGraphCache *self, MusterProgram *program);

G_END_DECLS
