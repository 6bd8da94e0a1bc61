// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/ready_op.h"
#include "tests/gtest_shim.h"

static MusterMetaGraph *
model (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) text = muster_tensor_new_string ("a");
  muster_graph_builder_variable (builder, "w", one);
  muster_graph_builder_variable (builder, "label", text);
  muster_graph_builder_node (builder, "VarHandleOp", "r");
  muster_graph_builder_device (builder, "/job:ps/task:1");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (builder, "shape", 0, NULL);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  return muster_meta_graph_new_for_graph (graph);
}

MUSTER_TEST (ready_op, asks_every_variable)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *op = NULL;
  g_autoptr (MusterMetaGraph) meta = model ();
  g_autoptr (MusterGraph) graph = muster_graph_with_ready_op (meta, TRUE, &op, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  const MusterNode *gather = muster_graph_find_node (graph, op);
  MUSTER_ASSERT_NOT_NULL (gather);
  MUSTER_EXPECT_STREQ (gather->kind->op, "GatherV2");
  const MusterNode *pack = muster_graph_find_node (graph, "muster/ready/all/is_initialized");
  MUSTER_ASSERT_NOT_NULL (pack);
  MUSTER_EXPECT_EQ (muster_node_int (pack, "N", 0), 3);
  MUSTER_ASSERT_EQ (pack->n_input, 3u);
  const MusterNode *of_w = muster_graph_node (graph, muster_node_input (pack, 0, NULL));
  const MusterNode *of_r = muster_graph_node (graph, muster_node_input (pack, 2, NULL));
  MUSTER_EXPECT_STREQ (of_w->kind->op, "IsVariableInitialized");
  g_autofree char *input = muster_graph_input_text (graph, of_w, 0);
  MUSTER_EXPECT_STREQ (input, "w");
  MUSTER_EXPECT_EQ ((int)muster_node_dtype (of_w, "dtype", MUSTER_INVALID), MUSTER_FLOAT);
  MUSTER_EXPECT_STREQ (of_r->kind->op, "VarIsInitializedOp");
  MUSTER_EXPECT_STREQ (of_r->kind->device, "/job:ps/task:1");
}

MUSTER_TEST (ready_op, is_the_same_in_every_process)
{
  g_autofree char *op = NULL;
  g_autofree char *other_op = NULL;
  g_autoptr (MusterMetaGraph) meta = model ();
  g_autoptr (MusterMetaGraph) other = model ();
  g_autoptr (MusterGraph) graph = muster_graph_with_ready_op (meta, FALSE, &op, NULL);
  g_autoptr (MusterGraph) other_graph = muster_graph_with_ready_op (other, FALSE, &other_op, NULL);
  MUSTER_EXPECT_STREQ (op, other_op);
  MUSTER_EXPECT_TRUE (muster_graph_equal (graph, other_graph));
}

MUSTER_TEST (ready_op, is_added_once)
{
  g_autofree char *op = NULL;
  g_autofree char *again = NULL;
  g_autofree char *local = NULL;
  g_autoptr (MusterMetaGraph) meta = model ();
  g_autoptr (MusterGraph) graph = muster_graph_with_ready_op (meta, FALSE, &op, NULL);
  g_autoptr (MusterMetaGraph) with = muster_meta_graph_new_for_graph (graph);
  g_autoptr (MusterGraph) twice = muster_graph_with_ready_op (with, FALSE, &again, NULL);
  MUSTER_EXPECT_STREQ (again, op);
  MUSTER_EXPECT_TRUE (muster_graph_equal (twice, graph));
  g_autoptr (MusterGraph) both = muster_graph_with_ready_op (with, TRUE, &local, NULL);
  MUSTER_EXPECT_TRUE (muster_graph_parse (both, NULL));
  MUSTER_EXPECT_FALSE (g_str_equal (local, op));
}

MUSTER_TEST (ready_op, of_no_variables_yields_none)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *op = NULL;
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  g_autoptr (MusterGraph) empty = muster_graph_new (nothing);
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new_for_graph (empty);
  g_autoptr (MusterGraph) graph = muster_graph_with_ready_op (meta, TRUE, &op, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_graph_n_nodes (graph), 1u);
  MUSTER_EXPECT_STREQ (muster_graph_find_node (graph, op)->kind->op, "Const");
}

MUSTER_TEST (ready_op, needs_a_graph)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *op = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\x0a\5abc", 5);
  g_autoptr (MusterGraph) malformed = muster_graph_new (bytes);
  g_autoptr (MusterMetaGraph) meta = muster_meta_graph_new_for_graph (malformed);
  MUSTER_EXPECT_NULL (muster_graph_with_ready_op (meta, TRUE, &op, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_NULL (op);
}
