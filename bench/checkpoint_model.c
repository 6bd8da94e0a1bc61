// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"
#include "graph/meta_graph/meta_graph.h"

#include "base/protowire_private.h"
#include "graph/graph_builder.h"

#define SAVE    "save/SaveV2"
#define RESTORE "save/RestoreV2"

static char *
variable_name (guint i)
{
  return g_strdup_printf ("layer_%u/block_%u/kernel", i / 100, i % 100);
}

/* Begins a SaveV2 or RestoreV2 of all variables. */
static void
begin_io (MusterGraphBuilder *b, const char *op, const char *node, char **names)
{
  const guint n = g_strv_length (names);
  g_autofree const char **slices = g_new0 (const char *, n + 1);
  g_autofree MusterDType *dtypes = g_new (MusterDType, n);
  g_autofree char *of_names = g_strconcat (node, "/tensor_names", NULL);
  g_autofree char *of_slices = g_strconcat (node, "/shape_and_slices", NULL);
  for (guint i = 0; i < n; i++) {
    slices[i] = "";
    dtypes[i] = MUSTER_FLOAT;
  }
  g_autoptr (MusterTensor) name_tensor = muster_tensor_new_strv ((const char *const *)names);
  g_autoptr (MusterTensor) slice_tensor = muster_tensor_new_strv (slices);
  muster_graph_builder_constant (b, of_names, name_tensor);
  muster_graph_builder_constant (b, of_slices, slice_tensor);
  muster_graph_builder_node (b, op, node);
  muster_graph_builder_input (b, "save/Const");
  muster_graph_builder_input (b, of_names);
  muster_graph_builder_input (b, of_slices);
  muster_graph_builder_attr_types (b, "dtypes", dtypes, n);
}

static void
add_save (MusterGraphBuilder *b, char **names)
{
  begin_io (b, "SaveV2", SAVE, names);
  for (gsize i = 0; names[i] != NULL; i++)
    muster_graph_builder_input (b, names[i]);
  muster_graph_builder_node (b, "Identity", "save/control_dependency");
  muster_graph_builder_input (b, "save/Const");
  muster_graph_builder_input (b, "^" SAVE);
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);
}

static void
add_restore (MusterGraphBuilder *b, char **names)
{
  g_autoptr (GStrvBuilder) assigns = g_strv_builder_new ();
  begin_io (b, "RestoreV2", RESTORE, names);
  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *assign = g_strdup_printf ("save/Assign_%u", i);
    g_autofree char *value = g_strdup_printf (i == 0 ? RESTORE : RESTORE ":%u", i);
    muster_graph_builder_node (b, "Assign", assign);
    muster_graph_builder_input (b, names[i]);
    muster_graph_builder_input (b, value);
    muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
    g_strv_builder_add (assigns, assign);
  }
  g_auto (GStrv) ops = g_strv_builder_end (assigns);
  muster_graph_builder_group (b, "save/restore_all", (const char *const *)ops);
}

static MusterGraph *
build_graph (guint n, gint64 n_elements)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) value = muster_tensor_new_float (1.5f);
  g_autoptr (MusterTensor) prefix = muster_tensor_new_string ("model");
  g_autoptr (MusterTensor) dims = muster_tensor_new_from_data (
      MUSTER_INT64, 1, (const gint64[]){1}, &n_elements, sizeof n_elements, &error);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new (), assigns = g_strv_builder_new ();
  muster_graph_builder_constant (b, "value", value);
  muster_graph_builder_constant (b, "dims", dims);
  muster_graph_builder_constant (b, "save/Const", prefix);
  for (guint i = 0; i < n; i++) {
    g_autofree char *name = variable_name (i);
    g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
    bench_add_variable (b, &(BenchVariable){.name = name,
                                            .n_dims = 1,
                                            .shape = &n_elements,
                                            .dims = "dims",
                                            .dims_type = MUSTER_INT64,
                                            .value = "value"});
    g_strv_builder_add (builder, name);
    g_strv_builder_add (assigns, assign);
  }
  g_auto (GStrv) names = g_strv_builder_end (builder);
  g_auto (GStrv) ops = g_strv_builder_end (assigns);
  muster_graph_builder_group (b, "init", (const char *const *)ops);
  add_save (b, names);
  add_restore (b, names);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a model to save");
  return graph;
}

MusterMetaGraph *
bench_saved_model (guint n, gint64 n_elements)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = build_graph (n, n_elements);
  g_autoptr (GByteArray) saver = g_byte_array_new ();
  GByteArray *bytes = g_byte_array_new ();
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (graph), &size);
  muster_proto_put_string (saver, 1, "save/Const:0");
  muster_proto_put_string (saver, 2, "save/control_dependency:0");
  muster_proto_put_string (saver, 3, "save/restore_all");
  muster_proto_put_uint (saver, 7, 2); /* V2 */
  muster_proto_put_bytes (bytes, 2, data, size);
  muster_proto_put_bytes (bytes, 3, saver->data, saver->len);
  g_autoptr (GBytes) meta = g_byte_array_free_to_bytes (bytes);
  MusterMetaGraph *meta_graph = muster_meta_graph_new (meta, &error);
  bench_check (error, "building a model to save");
  return meta_graph;
}
