// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/small_model.h"

#include "base/protowire_private.h"
#include "checkpoint/format/bundle_reader.h"
#include "checkpoint/format/bundle_writer.h"

const MusterSmallVariable muster_small_variables[2] = {
    {"v", MUSTER_FLOAT, 1, {2, 0}},
    {"w", MUSTER_INT64, 0, {0, 0}},
};

static MusterTensor *
filled (const MusterSmallVariable *variable, int value)
{
  MusterTensor *tensor = muster_tensor_new (variable->dtype, variable->n_dims, variable->dims);
  memset (muster_tensor_data_mutable (tensor), value, muster_tensor_n_bytes (tensor));
  return tensor;
}

static void
add_strings (MusterGraphBuilder *builder, const char *name, GPtrArray *strings)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_strv ((const char *const *)strings->pdata);
  muster_graph_builder_constant (builder, name, tensor);
}

/* The constants that SaveV2 and RestoreV2 share: names, and no slices. */
static void
add_names (MusterGraphBuilder *builder, const MusterSmallVariable *variables, gsize n)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autoptr (GPtrArray) slices = g_ptr_array_new ();
  for (gsize i = 0; i < n; i++) {
    g_ptr_array_add (names, (gpointer)variables[i].name);
    g_ptr_array_add (slices, (gpointer) "");
  }
  g_ptr_array_add (names, NULL);
  g_ptr_array_add (slices, NULL);
  add_strings (builder, "save/names", names);
  add_strings (builder, "save/slices", slices);
}

static void
add_dtypes (MusterGraphBuilder *builder, const MusterSmallVariable *variables, gsize n)
{
  g_autofree MusterDType *dtypes = g_new (MusterDType, n);

  for (gsize i = 0; i < n; i++)
    dtypes[i] = variables[i].dtype;
  muster_graph_builder_attr_types (builder, "dtypes", dtypes, n);
}

static void
begin_io (MusterGraphBuilder *builder, const char *op, const char *name)
{
  muster_graph_builder_node (builder, op, name);
  muster_graph_builder_input (builder, "save/Const");
  muster_graph_builder_input (builder, "save/names");
  muster_graph_builder_input (builder, "save/slices");
}

void
muster_saver_graph_add_after (MusterGraphBuilder *builder, const char *name, const char *input,
                              const char *node)
{
  g_autofree char *control = g_strconcat ("^", node, NULL);

  muster_graph_builder_node (builder, "Identity", name);
  muster_graph_builder_input (builder, input);
  muster_graph_builder_input (builder, control);
  muster_graph_builder_attr_type (builder, "T", MUSTER_STRING);
}

static void
add_save (MusterGraphBuilder *builder, const MusterSmallVariable *variables, gsize n)
{
  g_autoptr (MusterTensor) model = muster_tensor_new_string ("model");
  muster_graph_builder_constant (builder, "save/Const", model);
  add_names (builder, variables, n);
  begin_io (builder, "SaveV2", "save/SaveV2");
  for (gsize i = 0; i < n; i++)
    muster_graph_builder_input (builder, variables[i].name);
  add_dtypes (builder, variables, n);
  muster_saver_graph_add_after (builder, "save/control_dependency", "save/Const", "save/SaveV2");
}

void
muster_saver_graph_add_assign (MusterGraphBuilder *builder, const char *name, const char *variable,
                               MusterDType dtype, const char *restore, gsize i)
{
  g_autofree char *value = g_strdup_printf ("%s:%" G_GSIZE_FORMAT, restore, i);

  muster_graph_builder_node (builder, "Assign", name);
  muster_graph_builder_input (builder, variable);
  muster_graph_builder_input (builder, i == 0 ? restore : value);
  muster_graph_builder_attr_type (builder, "T", dtype);
  muster_graph_builder_attr_bool (builder, "use_locking", TRUE);
  muster_graph_builder_attr_bool (builder, "validate_shape", TRUE);
}

static void
add_restore (MusterGraphBuilder *builder, const MusterSmallVariable *variables, gsize n)
{
  g_autoptr (GPtrArray) assigns = g_ptr_array_new_with_free_func (g_free);
  begin_io (builder, "RestoreV2", "save/RestoreV2");
  add_dtypes (builder, variables, n);
  for (gsize i = 0; i < n; i++) {
    char *name = g_strdup_printf ("save/Assign_%" G_GSIZE_FORMAT, i);
    g_ptr_array_add (assigns, name);
    muster_saver_graph_add_assign (builder, name, variables[i].name, variables[i].dtype,
                                   "save/RestoreV2", i);
  }
  g_ptr_array_add (assigns, NULL);
  muster_graph_builder_group (builder, "save/restore_all", (const char *const *)assigns->pdata);
}

MusterMetaGraph *
muster_small_model_new (const MusterSmallVariable *variables, gsize n, int max_to_keep)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (GPtrArray) initialisers = g_ptr_array_new_with_free_func (g_free);
  for (gsize i = 0; i < n; i++) {
    g_autoptr (MusterTensor) initial = filled (&variables[i], 0);
    muster_graph_builder_variable (builder, variables[i].name, initial);
    g_ptr_array_add (initialisers, g_strconcat (variables[i].name, "/Assign", NULL));
  }
  g_ptr_array_add (initialisers, NULL);
  muster_graph_builder_group (builder, "init", (const char *const *)initialisers->pdata);
  add_save (builder, variables, n);
  add_restore (builder, variables, n);
  return muster_saver_graph_end (builder, "save/control_dependency:0", FALSE, max_to_keep);
}

/* The graph and the SaverDef, as fields 2 and 3 of a MetaGraphDef. */
MusterMetaGraph *
muster_saver_graph_end (MusterGraphBuilder *builder, const char *save, gboolean is_sharded,
                        int max_to_keep)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  if (graph == NULL)
    g_error ("The model's graph: %s", error->message);
  g_autoptr (GByteArray) saver = g_byte_array_new ();
  GByteArray *bytes = g_byte_array_new ();
  gsize size;
  const void *data = g_bytes_get_data (muster_graph_bytes (graph), &size);

  muster_proto_put_string (saver, 1, "save/Const:0");
  muster_proto_put_string (saver, 2, save);
  muster_proto_put_string (saver, 3, "save/restore_all");
  muster_proto_put_uint (saver, 4, (guint64)max_to_keep);
  muster_proto_put_uint (saver, 5, is_sharded);
  muster_proto_put_uint (saver, 7, 2);
  muster_proto_put_bytes (bytes, 2, data, size);
  muster_proto_put_bytes (bytes, 3, saver->data, saver->len);
  g_autoptr (GBytes) meta = g_byte_array_free_to_bytes (bytes);
  MusterMetaGraph *meta_graph = muster_meta_graph_new (meta, &error);
  if (meta_graph == NULL)
    g_error ("The model: %s", error->message);
  return meta_graph;
}

gboolean
muster_small_model_write (const char *prefix, const MusterSmallVariable *variables, gsize n,
                          int value, GError **error)
{
  g_autoptr (MusterBundleWriter) writer =
      muster_bundle_writer_new (muster_local_storage (), prefix, error);

  for (gsize i = 0; writer != NULL && i < n; i++) {
    g_autoptr (MusterTensor) tensor = filled (&variables[i], value);
    if (!muster_bundle_writer_add (writer, variables[i].name, tensor, error))
      return FALSE;
  }
  return writer != NULL && muster_bundle_writer_finish (writer, error);
}

static gboolean
play_save (MusterFakeMaster *master, const MusterStep *step, MusterTensor **value,
           gpointer user_data G_GNUC_UNUSED, GError **error)
{
  MusterTensor *fed = step->n_feeds == 1 ? step->feeds[0].tensor : NULL;
  if (!muster_fake_master_has_variable (master, "v")) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                 "Attempting to use uninitialized value v");
    return FALSE;
  }
  MusterString name = muster_tensor_string (fed, 0);
  g_autofree char *prefix = g_strndup (name.data, name.size);
  *value = muster_tensor_ref (fed);
  return muster_small_model_write (prefix, muster_small_variables, 2, 1, error);
}

char *
muster_small_model_names (const char *prefix)
{
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, prefix, NULL);
  g_autoptr (GString) names = g_string_new (NULL);
  for (gsize i = 0; reader != NULL && i < muster_bundle_reader_n_entries (reader); i++)
    g_string_append_printf (names, "%s%s", i > 0 ? " " : "",
                            muster_bundle_reader_entry (reader, i)->name);
  return g_string_free (g_steal_pointer (&names), FALSE);
}

void
muster_small_model_play (MusterFakeMaster *master)
{
  muster_fake_master_op_sets (master, "init", "v", "w", NULL);
  muster_fake_master_op_sets (master, "save/restore_all", "v", "w", NULL);
  muster_fake_master_op_calls (master, "save/control_dependency", play_save, NULL);
}
