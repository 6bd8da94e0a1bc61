// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "graph/proto/meta_graph.pb-c.h"
#include "saver/builder/saver_builder.h"
#include "saver/saver.h"
#include "tests/gtest_shim.h"

/* muster_saver_build (): what is chosen and refused. That the nodes are TensorFlow's is
 * tests/tensorflow/saver_test.py's to show. */

#define N_DIMS 2

typedef struct {
  const char *name;
  const char *full_name;           /* NULL: not a part */
  gint64 full[N_DIMS], at[N_DIMS]; /* of a part; its shape is [2,3] */
} Model;

static void
add_variable (MusterGraphBuilder *builder, const char *name)
{
  gint64 dims[N_DIMS] = {2, 3};
  g_autoptr (MusterTensor) zeros = muster_tensor_new (MUSTER_FLOAT, N_DIMS, dims);
  memset (muster_tensor_data_mutable (zeros), 0, 6 * sizeof (float));
  muster_graph_builder_variable (builder, name, zeros);
}

static GBytes *
pack (const ProtobufCMessage *message)
{
  gsize size = protobuf_c_message_get_packed_size (message);
  guint8 *data = g_malloc (size + 1);
  protobuf_c_message_pack (message, data);
  return g_bytes_new_take (data, size);
}

static GBytes *
variable_def (const Model *model)
{
  Tensorflow__VariableDef def = TENSORFLOW__VARIABLE_DEF__INIT;
  Tensorflow__SaveSliceInfoDef slice = TENSORFLOW__SAVE_SLICE_INFO_DEF__INIT;
  g_autofree char *name = g_strconcat (model->name, ":0", NULL);
  g_autofree char *snapshot = g_strconcat (model->name, "/read:0", NULL);
  gint64 shape[N_DIMS] = {2, 3};

  def.variable_name = name;
  def.snapshot_name = snapshot;
  if (model->full_name != NULL) {
    slice.full_name = (char *)model->full_name;
    slice.n_full_shape = slice.n_var_offset = slice.n_var_shape = N_DIMS;
    slice.full_shape = (gint64 *)model->full;
    slice.var_offset = (gint64 *)model->at;
    slice.var_shape = shape;
    def.save_slice_info_def = &slice;
  }
  return pack (&def.base);
}

static MusterMetaGraph *
make (const Model *variables, guint n, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (GPtrArray) defs = g_ptr_array_new_with_free_func ((GDestroyNotify)g_bytes_unref);
  g_autofree ProtobufCBinaryData *items = g_new0 (ProtobufCBinaryData, n + 1);

  muster_graph_builder_node (builder, "NoOp", "not_a_variable");
  for (guint i = 0; i < n; i++) {
    add_variable (builder, variables[i].name);
    GBytes *def = variable_def (&variables[i]);
    items[i].data = (guint8 *)g_bytes_get_data (def, &items[i].len);
    g_ptr_array_add (defs, def);
  }
  add_variable (builder, "uncollected");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, error);
  GBytes *graph_bytes = muster_graph_bytes (graph);

  Tensorflow__CollectionDef__BytesList list = TENSORFLOW__COLLECTION_DEF__BYTES_LIST__INIT;
  Tensorflow__CollectionDef collection = TENSORFLOW__COLLECTION_DEF__INIT;
  Tensorflow__MetaGraphDef__CollectionDefEntry entry =
      TENSORFLOW__META_GRAPH_DEF__COLLECTION_DEF_ENTRY__INIT;
  Tensorflow__MetaGraphDef__CollectionDefEntry *entries = &entry;
  Tensorflow__MetaGraphDef def = TENSORFLOW__META_GRAPH_DEF__INIT;
  list.n_value = n;
  list.value = items;
  collection.kind_case = TENSORFLOW__COLLECTION_DEF__KIND_BYTES_LIST;
  collection.bytes_list = &list;
  entry.key = (char *)"variables";
  entry.value = &collection;
  def.n_collection_def = 1;
  def.collection_def = &entries;
  def.graph_def.data = (guint8 *)g_bytes_get_data (graph_bytes, &def.graph_def.len);
  g_autoptr (GBytes) bytes = pack (&def.base);
  return muster_meta_graph_new (bytes, error);
}

static const Model two[] = {{.name = "v0"}, {.name = "v1"}};
static const Model split[] = {
    {.name = "p/part_0", .full_name = "p", .full = {4, 3}, .at = {0, 0}},
    {.name = "p/part_1", .full_name = "p", .full = {4, 3}, .at = {2, 0}},
};

static MusterMetaGraph *
make_well (const Model *variables, guint n)
{
  g_autoptr (GError) error = NULL;
  MusterMetaGraph *meta_graph = make (variables, n, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return meta_graph;
}

/* The keys and slices that the graph saves, "v0 v1[4 3 0,2:0,3]". */
static char *
saved_keys (MusterMetaGraph *meta_graph)
{
  g_autoptr (GString) text = g_string_new (NULL);
  const char *const nodes[] = {"save/SaveV2/tensor_names", "save/SaveV2/shape_and_slices"};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterTensor) names =
      muster_session_fetch (session, nodes[0], MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterTensor) slices =
      muster_session_fetch (session, nodes[1], MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  for (gint64 i = 0; names != NULL && i < muster_tensor_n_elements (names); i++) {
    MusterString name = muster_tensor_string (names, i), slice = muster_tensor_string (slices, i);
    g_string_append_printf (text, "%s%.*s", i > 0 ? " " : "", (int)name.size, name.data);
    if (slice.size > 0)
      g_string_append_printf (text, "[%.*s]", (int)slice.size, slice.data);
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static void
expect_refused (MusterMetaGraph *meta_graph, const MusterSaverBuild *how, MusterError code,
                const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) built = muster_saver_build (meta_graph, how, &error);
  MUSTER_EXPECT_NULL (built);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, words));
  if (error != NULL && strstr (error->message, words) == NULL)
    MUSTER_EXPECT_STREQ (error->message, words);
}

/* SAV.20 */
MUSTER_TEST (SaverBuilder, takes_all_global_variables_and_tensorflows_defaults)
{
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) built = muster_saver_build (model, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_ASSERT_TRUE (built != NULL);
  const MusterSaverInfo *saver = muster_meta_graph_saver (built);
  MUSTER_ASSERT_TRUE (saver != NULL);
  MUSTER_EXPECT_STREQ (saver->filename_tensor, "save/Const:0");
  MUSTER_EXPECT_STREQ (saver->save_tensor, "save/control_dependency:0");
  MUSTER_EXPECT_STREQ (saver->restore_op, "save/restore_all");
  MUSTER_EXPECT_EQ (saver->max_to_keep, 5);
  MUSTER_EXPECT_EQ (saver->keep_every_n_hours, 10000.0F);
  MUSTER_EXPECT_FALSE (saver->sharded);
  MUSTER_EXPECT_EQ (saver->version, 2);
  g_autofree char *keys = saved_keys (built);
  MUSTER_EXPECT_STREQ (keys, "v0 v1");
  MUSTER_EXPECT_NULL (muster_meta_graph_saver (model));
}

/* SAV.21 */
MUSTER_TEST (SaverBuilder, orders_what_a_list_and_a_map_name_by_key)
{
  const char *const list[] = {"v1", "uncollected", "v0", NULL};
  const MusterSaverKey map[] = {{"zebra", "v0"}, {"ant", "v1"}};
  const MusterSaverBuild by_list = {.variables = list};
  const MusterSaverBuild by_map = {.map = map, .n_map = 2};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  g_autoptr (MusterMetaGraph) listed = muster_saver_build (model, &by_list, NULL);
  g_autoptr (MusterMetaGraph) mapped = muster_saver_build (model, &by_map, NULL);
  g_autofree char *list_keys = saved_keys (listed);
  g_autofree char *map_keys = saved_keys (mapped);
  MUSTER_EXPECT_STREQ (list_keys, "uncollected v0 v1");
  MUSTER_EXPECT_STREQ (map_keys, "ant zebra");
}

/* SAV.31 */
MUSTER_TEST (SaverBuilder, saves_parts_as_slices_of_the_whole)
{
  const char *const list[] = {"p", NULL};
  const MusterSaverKey map[] = {{"q", "p"}, {"uncollected", "uncollected"}};
  const MusterSaverBuild by_list = {.variables = list};
  const MusterSaverBuild by_map = {.map = map, .n_map = 2};
  g_autoptr (MusterMetaGraph) model = make_well (split, 2);
  g_autoptr (MusterMetaGraph) listed = muster_saver_build (model, &by_list, NULL);
  g_autoptr (MusterMetaGraph) mapped = muster_saver_build (model, &by_map, NULL);
  g_autofree char *list_keys = saved_keys (listed);
  g_autofree char *map_keys = saved_keys (mapped);
  MUSTER_EXPECT_STREQ (list_keys, "p[4 3 0,2:0,3] p[4 3 2,2:0,3]");
  MUSTER_EXPECT_STREQ (map_keys, "q[4 3 0,2:0,3] q[4 3 2,2:0,3] uncollected");
}

MUSTER_TEST (SaverBuilder, refuses_a_part_that_can_not_be_one)
{
  const Model outside[] = {{.name = "p", .full_name = "q", .full = {4, 3}, .at = {3, 0}}};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) model = make (outside, 1, &error);
  MUSTER_EXPECT_NULL (model);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* SAV.22 */
MUSTER_TEST (SaverBuilder, refuses_one_name_for_two_variables)
{
  const Model clash[] = {
      {.name = "p"},
      {.name = "q/part_0", .full_name = "p", .full = {4, 3}, .at = {0, 0}},
  };
  const char *const twice[] = {"v0", "v0", NULL};
  const char *const parts_twice[] = {"p", "p", NULL};
  const MusterSaverKey one_key[] = {{"x", "v0"}, {"x", "v1"}};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  g_autoptr (MusterMetaGraph) parts = make_well (split, 2);
  g_autoptr (MusterMetaGraph) clashing = make_well (clash, 2);
  MusterSaverBuild how = {.variables = twice};
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "At least two variables have the same name: v0");
  how = (MusterSaverBuild){.variables = parts_twice};
  expect_refused (parts, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "At least two variables have the same name: p");
  how = (MusterSaverBuild){.map = one_key, .n_map = 2};
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "At least two variables have the same name: x");
  expect_refused (clashing, NULL, MUSTER_ERROR_INVALID_ARGUMENT,
                  "Mixing slices and non-slices with the same name: p");
}

/* SAV.22: a map with distinct keys cures it */
MUSTER_TEST (SaverBuilder, takes_distinct_keys_for_what_would_clash)
{
  const Model clash[] = {
      {.name = "p"},
      {.name = "q/part_0", .full_name = "p", .full = {4, 3}, .at = {0, 0}},
  };
  const MusterSaverKey map[] = {{"whole", "p"}, {"part", "q/part_0"}};
  const MusterSaverBuild how = {.map = map, .n_map = 2};
  g_autoptr (MusterMetaGraph) model = make_well (clash, 2);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) built = muster_saver_build (model, &how, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *keys = saved_keys (built);
  MUSTER_EXPECT_STREQ (keys, "part whole");
}

/* SAV.23 */
MUSTER_TEST (SaverBuilder, refuses_two_names_for_one_variable)
{
  const MusterSaverKey map[] = {{"v0too", "v0"}, {"v0", "v0"}};
  const MusterSaverBuild how = {.map = map, .n_map = 2};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "The same saveable will be restored with two names: v0too");
}

/* SAV.24 */
MUSTER_TEST (SaverBuilder, refuses_what_is_not_a_variable)
{
  const char *const no_variable[] = {"not_a_variable", NULL};
  const char *const no_node[] = {"nowhere", NULL};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  MusterSaverBuild how = {.variables = no_variable};
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "Variable to save is not a Variable: not_a_variable");
  how = (MusterSaverBuild){.variables = no_node};
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT,
                  "Variable to save is not a Variable: the graph has nothing of the name: nowhere");
}

/* SAV.25 */
MUSTER_TEST (SaverBuilder, refuses_a_model_without_variables_unless_asked)
{
  const char *const none[] = {NULL};
  MusterSaverBuild how = {.variables = none};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT, "No variables to save");
  how.allow_empty = TRUE;
  g_autoptr (MusterMetaGraph) built = muster_saver_build (model, &how, NULL);
  MUSTER_EXPECT_TRUE (built == model);
}

/* SAV.26: a saver is built when the graph is there; before, there is none to save by, and one that
 * is built again stands beside it */
MUSTER_TEST (SaverBuilder, builds_a_saver_once_the_variables_are_there)
{
  g_autoptr (MusterMetaGraph) early = make_well (two, 1);
  g_autoptr (MusterMetaGraph) late = make_well (two, 2);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_saver_new (early, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "has no SaverDef"));
  g_clear_error (&error);
  g_autoptr (MusterMetaGraph) built = muster_saver_build (late, NULL, &error);
  g_autoptr (MusterMetaGraph) again = muster_saver_build (built, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *keys = saved_keys (built), *still = saved_keys (again);
  MUSTER_EXPECT_STREQ (keys, "v0 v1");
  MUSTER_EXPECT_STREQ (still, "v0 v1");
  MUSTER_EXPECT_STREQ (muster_meta_graph_saver (again)->restore_op, "save_1/restore_all");
  g_autoptr (MusterSaver) saver = muster_saver_new (built, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* SAV.34 */
MUSTER_TEST (SaverBuilder, refuses_the_old_format)
{
  const MusterSaverBuild how = {.version = 1};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  expect_refused (model, &how, MUSTER_ERROR_UNIMPLEMENTED, "V1");
}

MUSTER_TEST (SaverBuilder, refuses_a_scope_that_tensorflow_would_not_take)
{
  const char *const scopes[] = {"", "with space", "_x", "x/", "a:0"};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  for (guint i = 0; i < G_N_ELEMENTS (scopes); i++) {
    MusterSaverBuild how = {.scope = scopes[i]};
    expect_refused (model, &how, MUSTER_ERROR_INVALID_ARGUMENT, "is not a valid scope name");
  }
}

MUSTER_TEST (SaverBuilder, keeps_several_savers_apart_by_scopes)
{
  const MusterSaverBuild collected = {.collect = TRUE, .max_to_keep = 3};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  gsize n;
  g_autoptr (MusterMetaGraph) one = muster_saver_build (model, NULL, NULL);
  g_autoptr (MusterMetaGraph) three = muster_saver_build (one, &collected, NULL);
  MUSTER_EXPECT_STREQ (muster_meta_graph_saver (three)->restore_op, "save_1/restore_all");
  const MusterSaverInfo *savers = muster_meta_graph_savers (three, &n);
  MUSTER_ASSERT_EQ (n, 2u);
  MUSTER_EXPECT_STREQ (savers[0].restore_op, "save/restore_all");
  MUSTER_EXPECT_STREQ (savers[1].restore_op, "save_1/restore_all");
  MUSTER_EXPECT_EQ (savers[1].max_to_keep, 3);
}

/* SAV.33 */
MUSTER_TEST (SaverBuilder, makes_a_default_saver_once)
{
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  g_autoptr (GError) error = NULL;
  gsize n;
  g_autoptr (MusterMetaGraph) first = muster_saver_default (model, &error);
  g_autoptr (MusterMetaGraph) second = muster_saver_default (first, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (first == second && first != model);
  MUSTER_EXPECT_TRUE (muster_meta_graph_saver (first)->sharded);
  (void)muster_meta_graph_savers (first, &n);
  MUSTER_EXPECT_EQ (n, 1u);
}

static void
expect_kept (MusterMetaGraph *model)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (model), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterSaver) saver = muster_saver_new (model, NULL, &error);
  const float nines[] = {9, 9, 9, 9, 9, 9};
  gint64 dims[N_DIMS] = {2, 3};
  g_autoptr (MusterTensor) value =
      muster_tensor_new_from_data (MUSTER_FLOAT, N_DIMS, dims, nines, sizeof nines, NULL);
  const MusterFeed feed = {"v1/initial_value:0", value};
  const char *const assigns[] = {"v0/Assign", "v1/Assign"};
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .targets = assigns, .n_targets = 2};

  muster_session_run (session, &step, NULL, NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *prefix = muster_saver_save (saver, session, muster_test_tmpdir (), 1,
                                               MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (
      muster_session_run_op (session, "v1/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));
  muster_saver_restore (saver, session, &(MusterRestoreOptions){.prefix = prefix}, NULL,
                        MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterTensor) v1 =
      muster_session_fetch (session, "v1/read:0", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (v1 ? ((const float *)muster_tensor_data (v1))[5] : 0, 9.0F);
}

MUSTER_TEST (SaverBuilder, builds_what_a_saver_saves_and_restores_with)
{
  const MusterSaverBuild plain = {0}, sharded = {.sharded = TRUE}, reshape = {.reshape = TRUE};
  const MusterSaverBuild *hows[] = {&plain, &sharded, &reshape};
  g_autoptr (MusterMetaGraph) model = make_well (two, 2);
  for (guint i = 0; i < G_N_ELEMENTS (hows); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) built = muster_saver_build (model, hows[i], &error);
    MUSTER_EXPECT_NO_ERROR (error);
    if (built != NULL)
      expect_kept (built);
  }
}
