// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/meta_graph/meta_graph_edit_private.h"

G_BEGIN_DECLS

/* Renames from one scope to another: "FROM/x" becomes "TO/x". Names that aren't below FROM are
 * removed. NULL is the graph's root, for either. */
typedef struct {
  MusterMetaGraphEdit *edit; /* (not owned) */
  const char *from, *to;
  GHashTable *gone; /* (nullable) (not owned) a set of nodes to remove as well */
} MusterScopeMove;

/* TRUE if a node with that name is kept. */
gboolean muster_scope_move_keeps (const MusterScopeMove *self, const char *node);

/* Renames the node, its inputs and its colocation. Inputs from outside become "unbound_inputs_x".
 */
#define MUSTER_UNBOUND "unbound_inputs_"
void muster_scope_move_node (const MusterScopeMove *self, Tensorflow__NodeDef *node);

/* Renames the collections' items and the savers in them. Items that can't be renamed (contexts of
 * loops) are removed. */
gboolean muster_scope_move_collections (const MusterScopeMove *self, GError **error);

/* FALSE for a saver with a name that is removed. */
gboolean muster_scope_move_saver (const MusterScopeMove *self, Tensorflow__SaverDef *saver);

G_END_DECLS
