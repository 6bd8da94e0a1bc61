// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/require.h"
#include "engine/run/registry.h"
#include "engine/session/local_master.h"
#include "engine/session/op_tables.h"
#include "graph/graph_nodes.h"
#include "graph/graph_walk.h"

#include <string.h>

#define MOST_NAMED 8

/* The nodes of each op that the engine hasn't. (transfer full) */
static GHashTable *
count_missing (MusterGraph *graph, const guint8 *needed)
{
  GHashTable *missing = g_hash_table_new (g_str_hash, g_str_equal);
  for (gsize i = 0; i < muster_graph_n_nodes (graph); i++) {
    const char *op = muster_graph_node (graph, i)->kind->op;
    if (!needed[i] || muster_op_find_entry (op) != NULL)
      continue;
    const guint n = GPOINTER_TO_UINT (g_hash_table_lookup (missing, op));
    g_hash_table_insert (missing, (gpointer)op, GUINT_TO_POINTER (n + 1));
  }
  return missing;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* "Enter in 12 nodes, Merge in 1 node" */
static char *
list_missing (GHashTable *missing)
{
  GString *text = g_string_new (NULL);
  guint n;
  g_autofree gpointer *names = g_hash_table_get_keys_as_array (missing, &n);
  qsort (names, n, sizeof *names, compare_names);
  for (guint i = 0; i < MIN (n, MOST_NAMED); i++) {
    const guint n_nodes = GPOINTER_TO_UINT (g_hash_table_lookup (missing, names[i]));
    g_string_append_printf (text, "%s%s in %u node%s", i > 0 ? ", " : "", (char *)names[i], n_nodes,
                            n_nodes == 1 ? "" : "s");
  }
  if (n > MOST_NAMED)
    g_string_append_printf (text, " and %u more", n - MOST_NAMED);
  return g_string_free (text, FALSE);
}

gboolean
muster_local_master_check_ops (MusterGraph *graph, const char *const *names, GError **error)
{
  muster_require (error, FALSE, graph, names);
  muster_op_tables_register ();
  if (!muster_graph_parse (graph, error))
    return FALSE;
  g_autofree guint8 *needed = g_new0 (guint8, muster_graph_n_nodes (graph) + 1);
  for (; *names != NULL; names++)
    muster_graph_mark_needs (graph, *names, needed);
  g_autoptr (GHashTable) missing = count_missing (graph, needed);
  const guint n = g_hash_table_size (missing);
  if (n == 0)
    return TRUE;
  g_autofree char *list = list_missing (missing);
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "this run needs %u operation%s that muster's own engine hasn't (%s); add "
                      "--master=tensorflow, which has all",
                      n, n == 1 ? "" : "s", list);
}
