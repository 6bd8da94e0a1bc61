// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/require.h"
#include "engine/run/registry.h"
#include "engine/session/local_master.h"
#include "engine/session/op_tables.h"
#include "graph/graph_walk.h"
#include "graph/missing_ops.h"

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
  g_auto (GStrv) lacks = muster_op_lacking (graph);
  g_autofree char *missing = muster_graph_missing_ops (graph, needed, (const char *const *)lacks);
  return missing == NULL ||
         muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "this run needs %s that muster's own engine hasn't; add --master=tensorflow, "
                      "which has all of TensorFlow's",
                      missing);
}
