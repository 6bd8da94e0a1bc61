// SPDX-License-Identifier: Apache-2.0
/* A model whose every variable is updated, in place, in every step. */
#include "bench/bench.h"

#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/saver_builder.h"

static void
add_constants (MusterGraphBuilder *b, gint32 side)
{
  const gint32 sides[] = {side, side};
  const gint64 n = 2;
  g_autoptr (MusterTensor) shape =
      muster_tensor_new_from_data (MUSTER_INT32, 1, &n, sides, sizeof sides, NULL);
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) rate = muster_tensor_new_float (0.5f);
  g_autoptr (MusterTensor) step = muster_tensor_new_int64 (1);
  muster_graph_builder_constant (b, "shape", shape);
  muster_graph_builder_constant (b, "one", one);
  muster_graph_builder_constant (b, "rate", rate);
  muster_graph_builder_constant (b, "one_step", step);
}

static void
add_variable (MusterGraphBuilder *b, const char *name, gint32 side)
{
  bench_add_variable (b, &(BenchVariable){.name = name,
                                          .n_dims = 2,
                                          .shape = (const gint64[]){side, side},
                                          .dims = "shape",
                                          .dims_type = MUSTER_INT32,
                                          .value = "one"});
}

static void
add_descent (MusterGraphBuilder *b, const char *variable, const char *name)
{
  muster_graph_builder_node (b, "ApplyGradientDescent", name);
  muster_graph_builder_input (b, variable);
  muster_graph_builder_input (b, "rate");
  muster_graph_builder_input (b, "gradient");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
}

static void
add_global_step (MusterGraphBuilder *b)
{
  g_autoptr (MusterTensor) zero = muster_tensor_new_int64 (0);
  muster_graph_builder_variable (b, "global_step", zero);
  muster_graph_builder_node (b, "AssignAdd", "global_step/train");
  muster_graph_builder_input (b, "global_step");
  muster_graph_builder_input (b, "one_step");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT64);
}

static void
add_parameter (MusterGraphBuilder *b, const char *name, gint32 side, GPtrArray *inits,
               GPtrArray *trains)
{
  char *train = g_strconcat (name, "/train", NULL);
  add_variable (b, name, side);
  add_descent (b, name, train);
  g_ptr_array_add (inits, g_strconcat (name, "/Assign", NULL));
  g_ptr_array_add (trains, train);
}

/* The gradient is a variable too, which is saved if it is asked for. */
static MusterMetaGraph *
build (MusterGraphBuilder *b, guint n, gint32 side, gboolean saves_gradient)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) inits = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) trains = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  add_constants (b, side);
  add_global_step (b);
  g_ptr_array_add (inits, g_strdup ("global_step/Assign"));
  g_ptr_array_add (trains, g_strdup ("global_step/train"));
  g_ptr_array_add (names, g_strdup ("global_step"));
  add_variable (b, "gradient", side);
  g_ptr_array_add (inits, g_strdup ("gradient/Assign"));
  if (saves_gradient)
    g_ptr_array_add (names, g_strdup ("gradient"));
  for (guint i = 0; i < n; i++) {
    char *name = g_strdup_printf ("v%u", i);
    g_ptr_array_add (names, name);
    add_parameter (b, name, side, inits, trains);
  }
  g_ptr_array_add (inits, NULL);
  g_ptr_array_add (trains, NULL);
  g_ptr_array_add (names, NULL);
  muster_graph_builder_group (b, "init", (const char *const *)inits->pdata);
  muster_graph_builder_group (b, "train", (const char *const *)trains->pdata);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a model that is updated");
  g_autoptr (MusterMetaGraph) bare = muster_meta_graph_new_for_graph (graph);
  MusterSaverBuild how = {.variables = (const char *const *)names->pdata, .max_to_keep = 2};
  MusterMetaGraph *meta_graph = muster_saver_build (bare, &how, &error);
  bench_check (error, "building its saver");
  return meta_graph;
}

MusterMetaGraph *
bench_updated_model (guint n, gint32 side)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  return build (b, n, side, FALSE);
}

MusterMetaGraph *
bench_trained_model (guint n, gint32 side)
{
  static const MusterCollectedOp ops[] = {{"init_op", "init"}, {"train_op", "train"}};
  static const gint64 rows[] = {-1, 64};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 2, rows);
  g_autoptr (MusterMetaGraph) saved = build (b, n, side, TRUE);
  MusterMetaGraph *meta_graph = muster_meta_graph_with_variables (
      saved, muster_meta_graph_graph (saved), NULL, 0, ops, G_N_ELEMENTS (ops), &error);
  bench_check (error, "naming the ops of a model");
  return meta_graph;
}
