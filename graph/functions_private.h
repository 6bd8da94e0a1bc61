// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"
#include "graph/node_private.h"

G_BEGIN_DECLS

/* The functions of a graph's library, whose bodies are read where a node calls them. */
typedef struct _MusterFunctions MusterFunctions;

MusterFunctions *muster_functions_new (MusterGraph *graph);
void muster_functions_free (MusterFunctions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFunctions, muster_functions_free)

/* FALSE if no function that a node calls changes the variable of its input by an op that writes. */
gboolean muster_functions_may_write (MusterFunctions *self, const MusterNode *call, gsize input,
                                     gboolean (*writes) (const char *op));

/* TRUE if a function that a node refers to has an op that is wanted, itself or in a function that
 * it refers to. */
gboolean muster_functions_have (MusterFunctions *self, const MusterNode *node,
                                gboolean (*wanted) (const char *op));

G_END_DECLS
