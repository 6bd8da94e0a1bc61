// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/builder/saver_builder.h"

G_BEGIN_DECLS

/* One tensor of a checkpoint. */
typedef struct {
  char *key;                          /* (owned) */
  const MusterVariableInfo *variable; /* (not owned) */
  const char *slice;                  /* (not owned) "": the whole variable */
} MusterSaveable;

/* Adds the nodes that save and restore saveables (element-type MusterSaveable, in the order of the
 * checkpoint, at least one) under scope, which must be unused. Sets *info, whose strings are
 * (transfer full). */
MusterGraph *muster_saver_add_nodes (MusterGraph *graph, const char *scope, GArray *saveables,
                                     const MusterSaverBuild *how, MusterSaverInfo *info,
                                     GError **error);

/* The meta graph with a saver of saveables, which are sorted by key. */
MusterMetaGraph *muster_saver_build_saveables (MusterMetaGraph *meta_graph, GArray *saveables,
                                               const MusterSaverBuild *how, GError **error);

G_END_DECLS
