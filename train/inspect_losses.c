// SPDX-License-Identifier: Apache-2.0
/* Finds what a graph's training minimises. */
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "train/inspect_private.h"

#include <string.h>

#define MOST_LOSSES 16

gboolean
muster_inspect_is_gradient (MusterGraph *graph, gsize node)
{
  return strstr (muster_graph_node (graph, node)->name, "gradients") != NULL;
}

/* Returns TRUE for a loss's usual name, in any scope but that of the gradients. A summary of it
 * usually has the same name. */
static gboolean
has_loss_name (MusterGraph *graph, gsize i)
{
  static const char *const names[] = {"loss", "total_loss", "cost", NULL};
  const MusterNode *node = muster_graph_node (graph, i);
  const char *slash = strrchr (node->name, '/');
  return g_strv_contains (names, slash != NULL ? slash + 1 : node->name) &&
         !muster_inspect_is_gradient (graph, i) && strstr (node->kind->op, "Summary") == NULL;
}

/* Takes op. */
static void
add_loss (const MusterInspect *self, GPtrArray *losses, char *op, int output)
{
  g_autofree char *owned = op;
  const gssize node = muster_graph_find_named (self->graph, op);
  if (node >= 0 && self->in_loop[node])
    return;
  g_autofree char *tensor = g_strdup_printf ("%s:%d", op, output);
  if (losses->len < MOST_LOSSES &&
      !g_ptr_array_find_with_equal_func (losses, tensor, g_str_equal, NULL))
    g_ptr_array_add (losses, g_steal_pointer (&tensor));
}

/* Returns the NAME in "SCOPE/NAME_grad/…"; NULL for another name. (transfer full) */
static char *
differentiated (const char *node, const char *scope, gsize scope_size)
{
  if (strncmp (node, scope, scope_size) != 0)
    return NULL;
  const char *end = strstr (node + scope_size, "_grad/");
  return end != NULL ? g_strndup (node + scope_size, (gsize)(end - node) - scope_size) : NULL;
}

/* Finds losses by TensorFlow's gradients, which begin with ones of the loss's shape,
 * "SCOPE/Fill" or "SCOPE/grad_ys_0", the input of its derivative "SCOPE/LOSS_grad/…". */
static void
add_minimised (const MusterInspect *self, GPtrArray *losses)
{
  const gsize n = muster_graph_n_nodes (self->graph);
  for (gsize i = 0; i < n; i++) {
    const MusterNode *node = muster_graph_node (self->graph, i);
    for (gsize k = 0; self->trains_by[i] && k < node->n_input; k++) {
      const MusterNode *ones = muster_graph_node (self->graph, muster_node_input (node, k, NULL));
      const char *slash = strrchr (ones->name, '/');
      if (slash == NULL || strcmp (ones->kind->op, "Fill") != 0 ||
          !(g_str_has_prefix (slash, "/Fill") || g_str_has_prefix (slash, "/grad_ys_")))
        continue;
      char *op = differentiated (node->name, ones->name, (gsize)(slash + 1 - ones->name));
      if (op != NULL && muster_graph_has_node (self->graph, op))
        add_loss (self, losses, op, 0);
      else
        g_free (op);
    }
  }
}

/* Puts the first loss that depends on the one at the front before it, such as one with a penalty of
 * the other's gradient. */
static void
put_whole_first (const MusterInspect *self, GPtrArray *losses)
{
  for (guint i = 1; i < losses->len; i++) {
    g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (self->graph) + 1);
    muster_graph_mark_needs (self->graph, losses->pdata[i], needed);
    if (needed[muster_graph_find_named (self->graph, losses->pdata[0])])
      g_ptr_array_insert (losses, 0, g_ptr_array_steal_index (losses, i));
  }
}

GPtrArray *
muster_inspect_find_losses (const MusterInspect *self, guint *n_minimised)
{
  const char *const *items = muster_meta_graph_collection (self->meta_graph, "losses");
  GPtrArray *losses = g_ptr_array_new_with_free_func (g_free);
  add_minimised (self, losses);
  put_whole_first (self, losses);
  *n_minimised = losses->len;
  for (gsize i = 0; i < muster_graph_n_nodes (self->graph); i++)
    if (has_loss_name (self->graph, i))
      add_loss (self, losses, g_strdup (muster_graph_node (self->graph, i)->name), 0);
  for (; items != NULL && *items != NULL; items++) {
    char *op = NULL;
    const int output = muster_graph_split_input (*items, &op);
    if (output >= 0)
      add_loss (self, losses, op, output);
    else
      g_free (op);
  }
  return losses;
}
