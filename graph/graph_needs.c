// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_needs.h"

#include "graph/graph_nodes.h"

#include <string.h>

void
muster_graph_mark_needs (MusterGraph *self, const char *name, guint8 *marked)
{
  g_autoptr (GArray) open = g_array_new (FALSE, FALSE, sizeof (gsize));
  g_autofree char *op = NULL;
  if (name == NULL)
    return;
  (void)muster_graph_split_input (name, &op);
  const gssize found = muster_graph_find (self, op, strlen (op));
  if (found < 0 || marked[found])
    return;
  gsize next = (gsize)found;
  marked[next] = TRUE;
  g_array_append_val (open, next);
  while (open->len > 0) {
    const MusterNode *node = muster_graph_node (self, g_array_index (open, gsize, open->len - 1));
    g_array_set_size (open, open->len - 1);
    for (gsize i = 0; i < node->n_input; i++) {
      next = muster_node_input (node, i, NULL);
      if (marked[next])
        continue;
      marked[next] = TRUE;
      g_array_append_val (open, next);
    }
  }
}
