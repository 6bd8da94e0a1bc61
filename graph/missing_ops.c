// SPDX-License-Identifier: Apache-2.0
#include "graph/missing_ops_private.h"

#include "base/error.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"

#include <string.h>

#define MOST_NAMED 8

/* The number of needed nodes of each op that is lacking; 0 for the others. (transfer full) */
static GHashTable *
count (MusterGraph *graph, const guint8 *marked, const char *const *lacks)
{
  GHashTable *counts = g_hash_table_new (g_str_hash, g_str_equal);
  for (; *lacks != NULL; lacks++)
    g_hash_table_insert (counts, (gpointer)*lacks, NULL);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    gpointer op, n;
    if (marked[i] == TRUE &&
        g_hash_table_lookup_extended (counts, muster_graph_node (graph, i)->kind->op, &op, &n))
      g_hash_table_insert (counts, op, GUINT_TO_POINTER (GPOINTER_TO_UINT (n) + 1));
  }
  return counts;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static gboolean
is_needless (gpointer op G_GNUC_UNUSED, gpointer n, gpointer data G_GNUC_UNUSED)
{
  return n == NULL;
}

char *
muster_graph_missing_ops (MusterGraph *graph, const guint8 *marked, const char *const *lacks)
{
  g_autoptr (GHashTable) counts = count (graph, marked, lacks);
  guint n;
  g_hash_table_foreach_remove (counts, is_needless, NULL);
  g_autofree gpointer *names = g_hash_table_get_keys_as_array (counts, &n);
  if (n == 0)
    return NULL;
  qsort (names, n, sizeof *names, compare_names);
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_printf (text, "%u operation%s (", n, n == 1 ? "" : "s");
  for (guint i = 0; i < MIN (n, MOST_NAMED); i++) {
    const guint n_nodes = GPOINTER_TO_UINT (g_hash_table_lookup (counts, names[i]));
    g_string_append_printf (text, "%s%s in %u node%s", i > 0 ? ", " : "", (char *)names[i], n_nodes,
                            n_nodes == 1 ? "" : "s");
  }
  if (n > MOST_NAMED)
    g_string_append_printf (text, " and %u more", n - MOST_NAMED);
  g_string_append_c (text, ')');
  return g_strdup (text->str);
}

static gboolean
is_program_op (const char *op)
{
  static const char *const ops[] = {"PyFunc", "PyFuncStateless", "EagerPyFunc", NULL};
  return g_strv_contains (ops, op) || g_str_has_prefix (op, "Horovod");
}

/* Marks what begins the iterators that are marked, too. (transfer full) */
static guint8 *
mark_beginnings (MusterGraph *graph, const guint8 *marked)
{
  const gsize n = muster_graph_n_nodes (graph);
  guint8 *all = g_memdup2 (marked, n + 1);
  for (gsize i = 0; i < n; i++) {
    const gboolean begins = strcmp (muster_graph_node (graph, i)->kind->op, "MakeIterator") == 0;
    const gssize iterator = begins ? muster_graph_origin (graph, i, 1) : -1;
    if (iterator >= 0 && marked[iterator] == TRUE)
      muster_graph_mark_needed (graph, i, all);
  }
  return all;
}

const MusterNode *
muster_graph_program_op (MusterGraph *graph, const guint8 *marked)
{
  g_autofree guint8 *all = mark_beginnings (graph, marked);
  const MusterFunctions *functions = muster_graph_functions (graph);
  g_autoptr (GHashTable) of_program = muster_functions_with_op (functions, is_program_op);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const MusterNode *node = muster_graph_node (graph, i);
    if (all[i] == TRUE &&
        (is_program_op (node->kind->op) || muster_functions_refer (functions, node, of_program)))
      return node;
  }
  return NULL;
}

gboolean
muster_graph_check_ops (MusterGraph *graph, const char *const *names, const char *const *feeds,
                        const char *const *lacks, gboolean is_here, GError **error)
{
  g_autofree guint8 *marked = g_malloc0 (muster_graph_n_nodes (graph) + 1);

  for (; feeds != NULL && *feeds != NULL; feeds++)
    muster_graph_mark_fed (graph, *feeds, marked);
  for (; *names != NULL; names++)
    muster_graph_mark_needs (graph, *names, marked);
  g_autofree char *missing = muster_graph_missing_ops (graph, marked, lacks);
  if (missing == NULL)
    return TRUE;
  const MusterNode *of_program = muster_graph_program_op (graph, marked);
  if (of_program != NULL)
    return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                        "this run needs '%s' (%s), which calls the Python program that exported "
                        "the graph or a library of it; no master has it: run it in that program, "
                        "or export the graph without it",
                        of_program->name, of_program->kind->op);
  return muster_fail (
      error, MUSTER_ERROR_UNIMPLEMENTED,
      is_here ? "this run needs %s that muster's own engine lacks; add --master=tensorflow, which "
                "has all of TensorFlow's"
              : "this run needs %s that the server's engine lacks; restart the server with "
                "`muster serve --master=tensorflow`, which has all of TensorFlow's",
      missing);
}
