// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/plan.h"

G_BEGIN_DECLS

/* MusterGraphCache finds programs by their graph's bytes (docs/decisions/0012): by hash, then
 * comparison. Programs are kept while a session uses them, and a few beyond that. Any thread. */

typedef struct _MusterGraphCache MusterGraphCache;

MusterGraphCache *muster_graph_cache_new (void);
void muster_graph_cache_free (MusterGraphCache *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterGraphCache, muster_graph_cache_free)

/* The program of a graph with these bytes (transfer full), parsed. INVALID_ARGUMENT for a malformed
 * graph, RESOURCE_EXHAUSTED if it exceeds the process's limit of memory. */
MusterProgram *muster_graph_cache_acquire (MusterGraphCache *self, MusterGraph *graph,
                                           GError **error);

/* Returns a program from muster_graph_cache_acquire (). */
void muster_graph_cache_release (MusterGraphCache *self, MusterProgram *program);

G_END_DECLS
