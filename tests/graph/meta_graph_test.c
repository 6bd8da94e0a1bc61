// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph.h"
#include "graph/meta_graph/ready_op.h"

#include <string.h>

#include "base/error.h"
#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/proto/meta_graph.pb-c.h"
#include "tests/gtest_shim.h"

static MusterMetaGraph *
fixture (const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename ("tests/fixtures", name, NULL);
  MusterMetaGraph *meta = muster_meta_graph_load (path, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return meta;
}

MUSTER_TEST (meta_graph, knows_the_ops_of_tensorflows_scaffold)
{
  g_autoptr (MusterMetaGraph) meta = fixture ("linreg.meta");
  MUSTER_ASSERT_NOT_NULL (meta);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "init_op"), "group_deps");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "local_init_op"), "group_deps_1");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "ready_op"), "concat:0");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "ready_for_local_init_op"), "concat_1:0");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "train_op"), "train");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (meta, "global_step"), "global_step:0");
  MUSTER_EXPECT_NULL (muster_meta_graph_op (meta, "no_such_thing"));
  MUSTER_EXPECT_NULL (muster_meta_graph_collection (meta, "no_such_thing"));
  const char *const *trainable = muster_meta_graph_collection (meta, "trainable_variables");
  MUSTER_ASSERT_TRUE (trainable != NULL && trainable[0] != NULL && trainable[1] != NULL);
  MUSTER_EXPECT_STREQ (trainable[0], "w:0");
  MUSTER_EXPECT_STREQ (trainable[1], "b:0");
  MUSTER_EXPECT_NULL (trainable[2]);
}

MUSTER_TEST (meta_graph, knows_its_variables)
{
  gsize n;
  g_autoptr (MusterMetaGraph) meta = fixture ("linreg.meta");
  MUSTER_ASSERT_NOT_NULL (meta);
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta, &n);
  MUSTER_ASSERT_EQ (n, 4u);
  const MusterVariableInfo *step = &variables[0], *w = &variables[1], *b = &variables[2];
  const MusterVariableInfo *local = &variables[3];
  MUSTER_EXPECT_STREQ (step->name, "global_step");
  MUSTER_EXPECT_EQ ((int)step->dtype, MUSTER_INT64);
  MUSTER_EXPECT_EQ (step->n_dims, 0);
  MUSTER_EXPECT_FALSE (step->is_trainable);
  MUSTER_EXPECT_FALSE (step->is_resource);
  MUSTER_EXPECT_STREQ (w->name, "w");
  MUSTER_EXPECT_STREQ (w->initializer, "w/Assign");
  MUSTER_EXPECT_STREQ (w->snapshot, "w/Read/ReadVariableOp:0");
  MUSTER_EXPECT_TRUE (w->is_resource && w->is_trainable && !w->is_local);
  MUSTER_EXPECT_EQ ((int)w->dtype, MUSTER_FLOAT);
  MUSTER_EXPECT_STREQ (w->device, "");
  MUSTER_EXPECT_STREQ (b->name, "b");
  MUSTER_EXPECT_STREQ (b->snapshot, "b/read:0");
  MUSTER_EXPECT_FALSE (b->is_resource);
  MUSTER_EXPECT_STREQ (local->name, "local_scale");
  MUSTER_EXPECT_TRUE (local->is_local);
  MUSTER_EXPECT_FALSE (local->is_trainable);
}

MUSTER_TEST (meta_graph, knows_the_shapes_of_its_variables)
{
  gsize n;
  g_autoptr (MusterMetaGraph) meta = fixture ("digits.meta");
  MUSTER_ASSERT_NOT_NULL (meta);
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta, &n);
  MUSTER_ASSERT_EQ (n, 15u);
  MUSTER_EXPECT_STREQ (variables[1].name, "hidden/kernel");
  MUSTER_ASSERT_EQ (variables[1].n_dims, 2);
  MUSTER_EXPECT_EQ (variables[1].dims[0], 64);
  for (gsize i = 0; i < n; i++)
    MUSTER_EXPECT_TRUE (muster_graph_has_node (muster_meta_graph_graph (meta), variables[i].name));
}

MUSTER_TEST (meta_graph, knows_its_saver)
{
  g_autoptr (MusterMetaGraph) meta = fixture ("digits.meta");
  MUSTER_ASSERT_NOT_NULL (meta);
  const MusterSaverInfo *saver = muster_meta_graph_saver (meta);
  MUSTER_ASSERT_NOT_NULL (saver);
  MUSTER_EXPECT_STREQ (saver->filename_tensor, "save/Const:0");
  MUSTER_EXPECT_STREQ (saver->save_tensor, "save/control_dependency:0");
  MUSTER_EXPECT_STREQ (saver->restore_op, "save/restore_all");
  MUSTER_EXPECT_EQ (saver->max_to_keep, 5);
  MUSTER_EXPECT_EQ (saver->keep_every_n_hours, 10000.0f);
  MUSTER_EXPECT_FALSE (saver->sharded);
}

MUSTER_TEST (meta_graph, gives_its_graph_uncopied_and_its_bytes_as_they_came)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize size;
  g_file_get_contents ("tests/fixtures/digits.meta", &contents, &size, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (GBytes) bytes = g_bytes_new (contents, size);
  const char *start = g_bytes_get_data (bytes, NULL);
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new (bytes, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_PTR_EQ (muster_meta_graph_bytes (meta), bytes);
  gsize graph_size;
  const char *graph =
      g_bytes_get_data (muster_graph_bytes (muster_meta_graph_graph (meta)), &graph_size);
  MUSTER_EXPECT_TRUE (graph > start && graph + graph_size <= start + size);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (muster_meta_graph_graph (meta)), 305u);
}

MUSTER_TEST (meta_graph, refuses_attributes_that_nest_twenty_thousand_deep)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_meta_graph_load ("tests/fixtures/nested.meta", &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "nested.meta");
  MUSTER_EXPECT_TRUE (strstr (error->message, "too deep") != NULL);
}

MUSTER_TEST (meta_graph, names_a_file_that_is_not_there)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_meta_graph_load ("/nowhere/model.meta", &error));
  MUSTER_EXPECT_SAYS (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "'/nowhere/model.meta'");
}

MUSTER_TEST (meta_graph, around_a_graph_finds_the_variables_among_its_nodes)
{
  gsize n;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  muster_graph_builder_variable (builder, "w", one);
  muster_graph_builder_node (builder, "VarHandleOp", "r");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new_for_graph (graph);

  const MusterVariableInfo *variables = muster_meta_graph_variables (meta, &n);

  MUSTER_ASSERT_EQ (n, 2u);
  MUSTER_EXPECT_STREQ (variables[0].name, "w");
  MUSTER_EXPECT_STREQ (variables[0].initializer, "w/Assign");
  MUSTER_EXPECT_STREQ (variables[0].snapshot, "w/read:0");
  MUSTER_EXPECT_EQ (variables[0].n_dims, 0);
  MUSTER_EXPECT_TRUE (variables[1].is_resource);
  MUSTER_EXPECT_EQ (variables[1].n_dims, -1);
  MUSTER_EXPECT_NULL (variables[1].initializer);
  MUSTER_EXPECT_NULL (muster_meta_graph_saver (meta));
  g_autoptr (MusterMetaGraph) back = muster_meta_graph_new (muster_meta_graph_bytes (meta), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_graph_equal (muster_meta_graph_graph (back), graph));
}

/* One collection, as field 4 of a MetaGraphDef. */
static void
put_collection (GByteArray *out, const char *key, const Tensorflow__CollectionDef *collection)
{
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  g_autoptr (GBytes) value = muster_pack (&collection->base);
  muster_proto_put_string (entry, 1, key);
  muster_proto_put_bytes (entry, 2, g_bytes_get_data (value, NULL), g_bytes_get_size (value));
  muster_proto_put_bytes (out, 4, entry->data, entry->len);
}

static MusterMetaGraph *
meta_of (const char *key, const Tensorflow__CollectionDef *collection, GError **error)
{
  g_autoptr (GByteArray) out = g_byte_array_new ();
  put_collection (out, key, collection);
  g_autoptr (GBytes) bytes = g_bytes_new (out->data, out->len);
  return muster_meta_graph_new (bytes, error);
}

MUSTER_TEST (meta_graph, reads_every_kind_of_collection)
{
  g_autoptr (GError) error = NULL;
  ProtobufCBinaryData items[] = {{4, (guint8 *)"text"},
                                 {3, (guint8 *)"a\xff"
                                               "b"}};
  gint64 numbers[] = {7, -1};
  float floats[] = {0.5f};
  Tensorflow__CollectionDef__BytesList bytes = TENSORFLOW__COLLECTION_DEF__BYTES_LIST__INIT;
  Tensorflow__CollectionDef__Int64List ints = TENSORFLOW__COLLECTION_DEF__INT64_LIST__INIT;
  Tensorflow__CollectionDef__FloatList reals = TENSORFLOW__COLLECTION_DEF__FLOAT_LIST__INIT;
  Tensorflow__CollectionDef collection = TENSORFLOW__COLLECTION_DEF__INIT;
  bytes.n_value = 2, bytes.value = items;
  ints.n_value = 2, ints.value = numbers;
  reals.n_value = 1, reals.value = floats;

  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
  collection.bytes_list = &bytes;
  g_autoptr (MusterMetaGraph) of_bytes = meta_of ("mine", &collection, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_collection (of_bytes, "mine")[0], "text");
  MUSTER_EXPECT_STREQ (muster_meta_graph_collection (of_bytes, "mine")[1], "a\xef\xbf\xbd"
                                                                           "b");

  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_INT64_LIST;
  collection.int64_list = &ints;
  g_autoptr (MusterMetaGraph) of_ints = meta_of ("mine", &collection, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_collection (of_ints, "mine")[1], "-1");

  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_FLOAT_LIST;
  collection.float_list = &reals;
  g_autoptr (MusterMetaGraph) of_floats = meta_of ("mine", &collection, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (of_floats, "mine"), "0.5");

  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND__NOT_SET;
  g_autoptr (MusterMetaGraph) of_none = meta_of ("mine", &collection, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_NOT_NULL (muster_meta_graph_collection (of_none, "mine"));
  MUSTER_EXPECT_NULL (muster_meta_graph_op (of_none, "mine"));
}

MUSTER_TEST (meta_graph, reads_variables_that_are_given_by_name_each_once)
{
  gsize n;
  g_autoptr (GError) error = NULL;
  char *names[] = {(char *)"a:0", (char *)"b:0", (char *)"a:0"};
  Tensorflow__CollectionDef__NodeList nodes = TENSORFLOW__COLLECTION_DEF__NODE_LIST__INIT;
  Tensorflow__CollectionDef collection = TENSORFLOW__COLLECTION_DEF__INIT;
  nodes.n_value = 3, nodes.value = names;
  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_NODE_LIST;
  collection.node_list = &nodes;
  g_autoptr (MusterMetaGraph) meta = meta_of ("variables", &collection, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterVariableInfo *variables = muster_meta_graph_variables (meta, &n);
  MUSTER_ASSERT_EQ (n, 2u);
  MUSTER_EXPECT_STREQ (variables[1].name, "b");
  MUSTER_EXPECT_EQ ((int)variables[1].dtype, MUSTER_INVALID);
  MUSTER_EXPECT_STREQ (variables[1].device, "");
  g_autofree char *op = NULL;
  MUSTER_EXPECT_NULL (muster_graph_with_ready_op (meta, FALSE, &op, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "'a'");
}

MUSTER_TEST (meta_graph, names_the_collection_whose_variable_is_malformed)
{
  g_autoptr (GError) error = NULL;
  ProtobufCBinaryData item = {2, (guint8 *)"\x0a\5"};
  Tensorflow__CollectionDef__BytesList bytes = TENSORFLOW__COLLECTION_DEF__BYTES_LIST__INIT;
  Tensorflow__CollectionDef collection = TENSORFLOW__COLLECTION_DEF__INIT;
  bytes.n_value = 1, bytes.value = &item;
  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
  collection.bytes_list = &bytes;
  MUSTER_EXPECT_NULL (meta_of ("local_variables", &collection, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "'local_variables'");
}

MUSTER_TEST (meta_graph, merges_a_graph_in_parts)
{
  g_autoptr (GError) error = NULL;
  const char bytes[] = "\x12\7\x0a\5\x0a\1a\x12\0\x12\7\x0a\5\x0a\1b\x12\0";
  g_autoptr (GBytes) held = g_bytes_new_static (bytes, sizeof bytes - 1);
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new (held, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (muster_meta_graph_graph (meta)), 2u);
}

MUSTER_TEST (meta_graph, survives_truncation_at_any_byte)
{
  g_autofree char *contents = NULL;
  gsize size;
  g_file_get_contents ("tests/fixtures/linreg.meta", &contents, &size, NULL);
  const gsize step = g_getenv ("MUSTER_LONG") != NULL ? 1 : 97;
  for (gsize cut = 0; cut < size; cut += step) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) bytes = g_bytes_new (contents, cut);
    g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new (bytes, &error);
    MUSTER_EXPECT_TRUE ((meta == NULL) == (error != NULL));
  }
}
