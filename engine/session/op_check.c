// SPDX-License-Identifier: Apache-2.0
#include "base/require_private.h"
#include "engine/run/registry.h"
#include "engine/session/local_master.h"
#include "engine/session/op_tables.h"
#include "graph/missing_ops_private.h"

gboolean
muster_local_master_check_ops (MusterGraph *graph, const char *const *names, GError **error)
{
  muster_require (error, FALSE, graph, names);
  muster_op_tables_register ();
  if (!muster_graph_parse (graph, error))
    return FALSE;
  g_auto (GStrv) lacks = muster_op_lacking (graph);
  return muster_graph_check_ops (graph, names, NULL, (const char *const *)lacks, TRUE, error);
}
