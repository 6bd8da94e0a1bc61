// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "graph/graph_builder.h"
#include "master/remote_master.h"

MusterMaster *
bench_remote (const char *address)
{
  g_autoptr (GError) error = NULL;
  MusterMaster *master = muster_remote_master_new (address, &error);
  bench_check (error, address);
  return master;
}

MusterGraph *
bench_addition (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_constant (b, "two", two);
  muster_graph_builder_node (b, "AddV2", "sum");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "two");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building an addition");
  return graph;
}

static MusterGraph *
build_variables (guint n)
{
  static const float zeros[4] = {0};
  const gint64 dims[] = {4};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) value =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, dims, zeros, sizeof zeros, &error);
  g_autoptr (GPtrArray) assigns = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < n; i++) {
    g_autofree char *name = g_strdup_printf ("layer_%u/block_%u/kernel", i / 100, i % 100);
    muster_graph_builder_variable (b, name, value);
    g_ptr_array_add (assigns, g_strconcat (name, "/Assign", NULL));
  }
  g_ptr_array_add (assigns, NULL);
  muster_graph_builder_group (b, "init", (const char *const *)assigns->pdata);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a model");
  return graph;
}

MusterGraph *
bench_model (guint n, char **ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) variables = build_variables (n);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (variables);
  MusterGraph *graph = muster_graph_with_ready_op (meta_graph, FALSE, ready_op, &error);
  bench_check (error, "adding a ready op");
  return graph;
}
