// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph_edit_private.h"

G_BEGIN_DECLS

/* Moves names from one scope into another: "FROM/x" becomes "TO/x", and what isn't below FROM is
 * left out. Either may be NULL: the graph's root. */
typedef struct {
  MusterMetaGraphEdit *edit; /* (not owned) */
  const char *from, *to;
  GHashTable *gone; /* (nullable) (not owned) a set of nodes that are left out too */
} MusterScopeMove;

/* The new name of "x", "x:0", "^x" or "loc:@x" in the edit's arena, or NULL for what is left out.
 */
char *muster_scope_move_name (const MusterScopeMove *self, const char *name);

/* Whether a node of that name is kept. */
gboolean muster_scope_move_keeps (const MusterScopeMove *self, const char *node);

/* Name, inputs and colocation; inputs from outside become "unbound_inputs_x". */
#define MUSTER_UNBOUND "unbound_inputs_"
void muster_scope_move_node (const MusterScopeMove *self, Tensorflow__NodeDef *node);

/* The collections, and the savers in them. What can't be moved (contexts of loops) is left out. */
gboolean muster_scope_move_collections (const MusterScopeMove *self, GError **error);

/* FALSE for a saver one of whose names is left out. */
gboolean muster_scope_move_saver (const MusterScopeMove *self, Tensorflow__SaverDef *saver);

G_END_DECLS
