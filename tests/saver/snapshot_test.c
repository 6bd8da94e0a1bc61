// SPDX-License-Identifier: Apache-2.0
#include "graph/meta_graph/meta_graph.h"
#include "saver/async/snapshot_private.h"

#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "saver/builder/saver_builder.h"
#include "tests/gtest_shim.h"

/* What a snapshot adds to a session's graph. */

/* A session that keeps what it is extended by, and runs nothing. */
typedef struct {
  MusterSession parent;
  MusterGraph *added; /* (owned) */
} MusterRecorder;
typedef MusterSessionClass MusterRecorderClass;

static GType muster_recorder_get_type (void);
G_DEFINE_TYPE (MusterRecorder, muster_recorder, MUSTER_TYPE_SESSION)

static gboolean
recorder_extend (MusterSession *session, MusterGraph *graph, gint64 deadline_us G_GNUC_UNUSED,
                 GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  MusterRecorder *self = (MusterRecorder *)session;
  g_clear_pointer (&self->added, muster_graph_unref);
  self->added = muster_graph_ref (graph);
  return TRUE;
}

static void
recorder_finalize (GObject *object)
{
  g_clear_pointer (&((MusterRecorder *)object)->added, muster_graph_unref);
  G_OBJECT_CLASS (muster_recorder_parent_class)->finalize (object);
}

static void
muster_recorder_class_init (MusterRecorderClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = recorder_finalize;
  klass->extend = recorder_extend;
}

static void
muster_recorder_init (MusterRecorder *self G_GNUC_UNUSED)
{
}

static void
add_variable (MusterGraphBuilder *b, const char *name, const char *device)
{
  muster_graph_builder_node (b, "VariableV2", name);
  muster_graph_builder_device (b, device);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 0, NULL);
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_string (b, "shared_name", "");
}

/* "a" and "b" live on different tasks. */
static MusterMetaGraph *
two_tasks (void)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  add_variable (b, "a", "/job:ps/task:0");
  add_variable (b, "b", "/job:ps/task:1");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterMetaGraph) bare = muster_meta_graph_new_for_graph (graph);
  MusterMetaGraph *meta_graph = muster_saver_build (
      bare,
      &(MusterSaverBuild){.variables = (const char *const[]){"a", "b", NULL}, .sharded = TRUE},
      &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return meta_graph;
}

/* B001.23: every node says where it runs, so that the thread which runs them needs no place of its
 * own: the shadows lie with their variables, and each task writes its own. */
MUSTER_TEST (Snapshot, leaves_everything_where_it_is)
{
  g_autoptr (MusterMetaGraph) meta_graph = two_tasks ();
  g_autoptr (MusterSession) session = g_object_new (muster_recorder_get_type (), NULL);
  g_autoptr (GError) error = NULL;
  guint n_on[2] = {0, 0}, n_written[2] = {0, 0};
  g_autoptr (MusterSnapshot) snapshot =
      muster_snapshot_new (session, muster_meta_graph_graph (meta_graph),
                           muster_meta_graph_saver (meta_graph)->save_tensor, "shadow",
                           MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterGraph) all = muster_graph_extended (muster_meta_graph_graph (meta_graph),
                                                       ((MusterRecorder *)session)->added);
  MUSTER_ASSERT_TRUE (muster_graph_parse (all, &error));
  for (gsize i = 0; i < muster_graph_n_nodes (all); i++) {
    const MusterNode *node = muster_graph_node (all, i);
    if (!g_str_has_prefix (node->name, "shadow/") ||
        g_str_equal (node->kind->op, "NoOp") ||      /* groups */
        g_str_equal (node->kind->op, "Placeholder")) /* fed, so it runs nowhere */
      continue;
    const gboolean on_second = strstr (node->kind->device, "/task:1") != NULL;
    MUSTER_TRACE ("%s (%s) on '%s'", node->name, node->kind->op, node->kind->device);
    MUSTER_EXPECT_TRUE (on_second || strstr (node->kind->device, "/task:0"));
    n_on[on_second] += g_str_equal (node->kind->op, "VarHandleOp");
    n_written[on_second] += g_str_equal (node->kind->op, "SaveV2");
  }
  MUSTER_EXPECT_EQ (n_on[0], 1u);
  MUSTER_EXPECT_EQ (n_on[1], 1u);
  MUSTER_EXPECT_EQ (n_written[0], 1u);
  MUSTER_EXPECT_EQ (n_written[1], 1u);
  MUSTER_EXPECT_TRUE (strstr (muster_snapshot_device (snapshot), "/job:ps"));
}

/* TensorFlow makes constants of zeros whose shape it knows, and keeps them. */
MUSTER_TEST (Snapshot, reserves_memory_of_a_shape_that_is_fed)
{
  g_autoptr (MusterMetaGraph) meta_graph = two_tasks ();
  g_autoptr (MusterSession) session = g_object_new (muster_recorder_get_type (), NULL);
  g_autoptr (GError) error = NULL;
  guint n = 0;
  g_autoptr (MusterSnapshot) snapshot =
      muster_snapshot_new (session, muster_meta_graph_graph (meta_graph),
                           muster_meta_graph_saver (meta_graph)->save_tensor, "shadow",
                           MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterGraph) all = muster_graph_extended (muster_meta_graph_graph (meta_graph),
                                                       ((MusterRecorder *)session)->added);
  MUSTER_ASSERT_TRUE (muster_graph_parse (all, &error));
  for (gsize i = 0; i < muster_graph_n_nodes (all); i++) {
    const MusterNode *node = muster_graph_node (all, i);
    if (!g_str_equal (node->kind->op, "ZerosLike"))
      continue;
    const MusterNode *shaped = muster_graph_node (all, muster_node_input (node, 0, NULL));
    MUSTER_EXPECT_STREQ (shaped->kind->op, "Reshape");
    MUSTER_ASSERT_TRUE (shaped->n_input == 2);
    const MusterNode *shape = muster_graph_node (all, muster_node_input (shaped, 1, NULL));
    MUSTER_EXPECT_STREQ (shape->kind->op, "Placeholder");
    n++;
  }
  MUSTER_EXPECT_EQ (n, 2u);
}
