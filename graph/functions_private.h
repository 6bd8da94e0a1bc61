// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node_private.h"

G_BEGIN_DECLS

/* The functions of a graph's library: what they do, found once. Constant. */
typedef struct _MusterFunctions MusterFunctions;

/* graph: its bytes in pieces, each of whole fields. (element-type GBytes) */
MusterFunctions *muster_functions_new (const GPtrArray *graph);
void muster_functions_free (MusterFunctions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFunctions, muster_functions_free)

/* TRUE for an op that calls functions with its inputs. */
gboolean muster_functions_are_called (const MusterFunctions *self, const char *op);

/* FALSE if no function that a node calls changes the variable of its input. */
gboolean muster_functions_may_write (const MusterFunctions *self, const MusterNode *call,
                                     gsize input);

/* The functions that have an op that is wanted, themselves or in one that they refer to.
 * (transfer container) (element-type utf8) */
GHashTable *muster_functions_with_op (const MusterFunctions *self,
                                      gboolean (*wanted) (const char *op));

/* TRUE if a node refers to one of the functions. */
gboolean muster_functions_refer (const MusterFunctions *self, const MusterNode *node,
                                 GHashTable *names);

G_END_DECLS
