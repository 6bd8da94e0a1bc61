// SPDX-License-Identifier: Apache-2.0
#include "base/protowire_private.h"
#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/gtest_shim.h"
#include "train/monitored/scaffold.h"
#include "train/monitored/scaffold_private.h"

#include <string.h>

#define LINREG "tests/fixtures/linreg.meta"

/* The same with a collection of nodes in the place of one of that name. Takes meta_graph. */
static MusterMetaGraph *
with_collection (MusterMetaGraph *meta_graph, const char *key, ...)
{
  enum { META_COLLECTION = 4, KEY = 1, VALUE = 2, NODE_LIST = 1, LIST_VALUE = 1 };
  g_autoptr (MusterMetaGraph) old = meta_graph;
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  g_autoptr (GError) error = NULL;
  GByteArray *all = g_byte_array_new ();
  GBytes *before = muster_meta_graph_bytes (old);
  const char *name;
  va_list names;

  va_start (names, key);
  while ((name = va_arg (names, const char *)) != NULL)
    muster_proto_put_string (list, LIST_VALUE, name);
  va_end (names);
  muster_proto_put_bytes (value, NODE_LIST, list->data, list->len);
  muster_proto_put_string (entry, KEY, key);
  muster_proto_put_bytes (entry, VALUE, value->data, value->len);
  g_byte_array_append (all, g_bytes_get_data (before, NULL), (guint)g_bytes_get_size (before));
  muster_proto_put_bytes (all, META_COLLECTION, entry->data, entry->len);
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (all);
  MusterMetaGraph *with = muster_meta_graph_new (bytes, &error);
  g_assert_no_error (error);
  return with;
}

/* y = w x + b with a local variable, and nothing that says how to start it. */
static MusterMetaGraph *
bare_linreg (void)
{
  static const char *const keys[] = {"init_op", "local_init_op", "ready_op",
                                     "ready_for_local_init_op", "summary_op"};
  g_autoptr (GError) error = NULL;
  MusterMetaGraph *meta_graph = muster_meta_graph_load (LINREG, &error);
  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    meta_graph = with_collection (meta_graph, keys[i], NULL);
  return meta_graph;
}

/* "b w": what an op that names variables says, sorted. */
static char *
names_of (MusterSession *session, const char *op)
{
  g_autofree char *tensor = g_strconcat (op, ":0", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, tensor, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (GString) text = g_string_new (NULL);

  g_assert_no_error (error);
  for (gint64 i = 0; i < muster_tensor_n_elements (value); i++) {
    MusterString name = muster_tensor_string (value, i);
    g_string_append_printf (text, "%s%.*s", i > 0 ? " " : "", (int)name.size, name.data);
  }
  return g_strdup (text->str);
}

static void
run (MusterSession *session, const char *op)
{
  g_autoptr (GError) error = NULL;
  muster_session_run_op (session, op, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

/* MON.1, MON.2, MON.5: what the collections lack is built, and does what it says */
MUSTER_TEST (scaffold, builds_what_the_collections_lack)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) bare = bare_linreg ();
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (bare, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_scaffold_graph (scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const char *gate = muster_scaffold_ready_for_local_init_op (scaffold);
  const char *ready = muster_scaffold_ready_op (scaffold);

  g_autofree char *before = names_of (session, gate);
  run (session, muster_scaffold_init_op (scaffold));
  g_autofree char *open = names_of (session, gate);
  g_autofree char *nearly = names_of (session, ready);
  run (session, muster_scaffold_local_init_op (scaffold));
  g_autofree char *after = names_of (session, ready);

  MUSTER_EXPECT_STREQ (before, "global_step w b"); /* global ones alone */
  MUSTER_EXPECT_STREQ (open, "");
  MUSTER_EXPECT_STREQ (nearly, "local_scale");
  MUSTER_EXPECT_STREQ (after, "");
  MUSTER_EXPECT_STREQ (muster_scaffold_summary_op (scaffold), "muster/summaries:0");
}

/* MON.5 */
MUSTER_TEST (scaffold, initialises_tables_with_the_local_variables)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph =
      with_collection (bare_linreg (), "table_initializer", "w/Assign", "b/Assign", NULL);
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new (meta_graph, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  const MusterNode *node = muster_graph_find_node (muster_scaffold_graph (scaffold),
                                                   muster_scaffold_local_init_op (scaffold));

  MUSTER_ASSERT_NOT_NULL (node);
  MUSTER_EXPECT_EQ (node->n_input, 3u);
}

/* MON.3 */
MUSTER_TEST (scaffold, must_be_given_which_of_two)
{
  static const char *const keys[] = {"init_op", "local_init_op", "ready_op",
                                     "ready_for_local_init_op", "summary_op"};
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) meta_graph =
        with_collection (bare_linreg (), keys[i], "train", "loss", NULL);
    g_autofree char *wanted =
        g_strdup_printf ("More than one item in the collection \"%s\".", keys[i]);
    const MusterScaffoldOptions options = {.init_op = "train",
                                           .local_init_op = "train",
                                           .ready_op = "train",
                                           .ready_for_local_init_op = "train",
                                           .summary_op = "loss"};

    MUSTER_EXPECT_NULL (muster_scaffold_new (meta_graph, &error));
    g_autoptr (MusterScaffold) told = muster_scaffold_new_with (meta_graph, &options, NULL);

    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error && g_str_has_prefix (error->message, wanted));
    MUSTER_EXPECT_TRUE (told != NULL);
  }
}

/* MON.4, and DMON.17 for the global step */
MUSTER_TEST (scaffold, takes_what_is_passed_in_as_it_is)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (LINREG, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterScaffoldOptions options = {.init_op = "train",
                                         .local_init_op = "loss",
                                         .ready_op = "w/Assign",
                                         .ready_for_local_init_op = "b/Assign",
                                         .summary_op = "loss:0",
                                         .train_op = "b/Assign",
                                         .global_step = "b"};
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_new_with (meta_graph, &options, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gsize n = 1;

  MUSTER_EXPECT_STREQ (muster_scaffold_init_op (scaffold), "train");
  MUSTER_EXPECT_STREQ (muster_scaffold_local_init_op (scaffold), "loss");
  MUSTER_EXPECT_STREQ (muster_scaffold_ready_op (scaffold), "w/Assign");
  MUSTER_EXPECT_STREQ (muster_scaffold_ready_for_local_init_op (scaffold), "b/Assign");
  MUSTER_EXPECT_STREQ (muster_scaffold_summary_op (scaffold), "loss:0");
  MUSTER_EXPECT_STREQ (muster_scaffold_train_op (scaffold), "b/Assign");
  MUSTER_EXPECT_STREQ (muster_scaffold_global_step (scaffold), "b:0");
  MUSTER_EXPECT_TRUE (
      muster_graph_equal (muster_scaffold_graph (scaffold), muster_meta_graph_graph (meta_graph)));
  MUSTER_EXPECT_NULL (muster_scaffold_init_feeds (scaffold, &n));
  MUSTER_EXPECT_EQ (n, 0u);
  MUSTER_EXPECT_FALSE (muster_scaffold_has_init_func (scaffold));
}

MUSTER_TEST (scaffold, refuses_what_the_graph_lacks)
{
  const MusterScaffoldOptions wrong[] = {
      {.init_op = "nowhere"}, {.global_step = "nowhere:0"}, {.train_op = "nowhere"}};
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (LINREG, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (muster_scaffold_new_with (meta_graph, &wrong[i], &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error && strstr (error->message, "no node 'nowhere'") != NULL);
  }
}

MUSTER_TEST (scaffold, refuses_what_a_collection_names_and_the_graph_lacks)
{
  static const char *const keys[] = {"table_initializer", "summaries"};
  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) meta_graph =
        with_collection (bare_linreg (), keys[i], "gone", NULL);
    MUSTER_TRACE ("%s", keys[i]);
    MUSTER_EXPECT_NULL (muster_scaffold_new (meta_graph, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error && strstr (error->message, "gone") != NULL);
  }
}

static MusterMetaGraph *
one_variable (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  muster_graph_builder_variable (builder, "w", zero);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  return muster_meta_graph_new_for_graph (graph);
}

/* MON.6: and the same pieces each time */
MUSTER_TEST (scaffold, builds_the_saver_that_it_is_asked_for)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = one_variable ();
  g_autoptr (MusterScaffold) without = muster_scaffold_new (meta_graph, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterScaffold) a = muster_scaffold_with_saver (without, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterScaffold) b = muster_scaffold_with_saver (without, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  const MusterSaverInfo *saver = muster_meta_graph_saver (muster_scaffold_meta_graph (a));

  MUSTER_EXPECT_NULL (muster_meta_graph_saver (muster_scaffold_meta_graph (without)));
  MUSTER_ASSERT_NOT_NULL (saver);
  MUSTER_EXPECT_TRUE (muster_graph_has_node (muster_scaffold_graph (a), saver->restore_op));
  MUSTER_EXPECT_TRUE (muster_graph_equal (muster_scaffold_graph (a), muster_scaffold_graph (b)));
}

typedef struct {
  MusterScaffold *seen;
  int n_calls;
} Called;

static gboolean
note_call (MusterScaffold *scaffold, MusterSession *session G_GNUC_UNUSED,
           gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
           gpointer user_data, GError **error G_GNUC_UNUSED)
{
  Called *called = user_data;
  called->seen = scaffold;
  called->n_calls++;
  return TRUE;
}

/* MON.7, MON.8 */
MUSTER_TEST (scaffold, copied_from_another_calls_with_itself)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_load (LINREG, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  Called called = {0};
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  const MusterFeed feed = {"x:0", one};
  const MusterScaffoldOptions first = {.init_op = "train",
                                       .ready_op = "loss",
                                       .init_feeds = &feed,
                                       .n_init_feeds = 1,
                                       .init_func = note_call,
                                       .init_func_data = &called};
  g_autoptr (MusterScaffold) a = muster_scaffold_new_with (meta_graph, &first, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterScaffoldOptions second = {.ready_op = "w/Assign", .copy_from = a};
  g_autoptr (MusterScaffold) b = muster_scaffold_new_with (meta_graph, &second, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  gsize n = 0;

  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_scaffold_graph (b), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_TRUE (
      muster_scaffold_call_init_func (session, MUSTER_WAIT_FOREVER, NULL, b, &error));

  MUSTER_EXPECT_STREQ (muster_scaffold_init_op (b), "train");
  MUSTER_EXPECT_STREQ (muster_scaffold_ready_op (b), "w/Assign");
  MUSTER_ASSERT_NOT_NULL (muster_scaffold_init_feeds (b, &n));
  MUSTER_EXPECT_STREQ (muster_scaffold_init_feeds (b, &n)->name, "x:0");
  MUSTER_EXPECT_TRUE (called.seen == b);
  MUSTER_EXPECT_EQ (called.n_calls, 1);
}

MUSTER_TEST (scaffold, reads_the_ops_that_tensorflow_collected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load ("tests/fixtures/digits.meta", &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_STREQ (muster_scaffold_train_op (scaffold), "train");
  MUSTER_EXPECT_TRUE (muster_scaffold_init_op (scaffold) != NULL);
  MUSTER_EXPECT_TRUE (muster_scaffold_local_init_op (scaffold) != NULL);
  MUSTER_EXPECT_TRUE (muster_scaffold_ready_op (scaffold) != NULL);
  MUSTER_EXPECT_TRUE (muster_scaffold_ready_for_local_init_op (scaffold) != NULL);
  MUSTER_EXPECT_TRUE (muster_scaffold_global_step (scaffold) != NULL);
  MUSTER_EXPECT_GT (muster_scaffold_n_variables (scaffold), 4);
  MUSTER_EXPECT_TRUE (
      muster_graph_equal (muster_scaffold_graph (scaffold),
                          muster_meta_graph_graph (muster_scaffold_meta_graph (scaffold))));
}

MUSTER_TEST (scaffold, builds_a_ready_op_of_the_same_bytes_each_time_for_a_model_without_one)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  muster_graph_builder_variable (builder, "w", zero);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (graph);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterScaffold) a = muster_scaffold_new (meta_graph, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterScaffold) b = muster_scaffold_new (meta_graph, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_ASSERT_NOT_NULL (muster_scaffold_ready_op (a));
  MUSTER_EXPECT_TRUE (muster_graph_equal (muster_scaffold_graph (a), muster_scaffold_graph (b)));
  MUSTER_EXPECT_FALSE (muster_graph_equal (muster_scaffold_graph (a), graph));
}

MUSTER_TEST (scaffold, names_the_file_that_is_no_meta_graph)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "bad.meta", NULL);
  g_file_set_contents (path, "\xff\xff\xff\xff", 4, NULL);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (path, &error);

  MUSTER_EXPECT_NULL (scaffold);
  MUSTER_ASSERT_NOT_NULL (error);
  MUSTER_EXPECT_TRUE (strstr (error->message, "bad.meta") != NULL);
}
