// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"

#include <string.h>

#include "base/error.h"
#include "graph/graph_nodes_private.h"
#include "graph/tensor_proto_private.h"
#include "tests/gtest_shim.h"

static const MusterNode *
source_of (MusterGraph *graph, const MusterNode *node, gsize input)
{
  return muster_graph_node (graph, muster_node_input (node, input, NULL));
}

MUSTER_TEST (graph_builder, writes_constants)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_constant (builder, "two", two);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterNode *node = muster_graph_find_node (graph, "two");
  MUSTER_ASSERT_NOT_NULL (node);
  MUSTER_EXPECT_EQ ((int)muster_node_dtype (node, "dtype", MUSTER_INVALID), MUSTER_FLOAT);
  const Tensorflow__AttrValue *value = muster_node_attr (node, "value");
  MUSTER_ASSERT_NOT_NULL (value);
  MUSTER_ASSERT_EQ (value->value_case, TENSORFLOW__ATTR_VALUE__VALUE_TENSOR);
  g_autoptr (MusterTensor) back =
      muster_tensor_proto_read (value->tensor.data, value->tensor.len, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (back, two));
}

MUSTER_TEST (graph_builder, writes_a_variable_with_its_assign_and_read)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const gint64 dims[] = {2, 3};
  g_autoptr (MusterTensor) zeros = muster_tensor_new (MUSTER_DOUBLE, 2, dims);
  memset (muster_tensor_data_mutable (zeros), 0, 48);
  muster_graph_builder_variable (builder, "w", zeros);
  muster_graph_builder_group (builder, "init", (const char *[]){"w/Assign", NULL});
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_graph_parse (graph, &error));
  MUSTER_ASSERT_NO_ERROR (error);

  const MusterNode *variable = muster_graph_find_node (graph, "w");
  const MusterNode *assign = muster_graph_find_node (graph, "w/Assign");
  const MusterNode *read = muster_graph_find_node (graph, "w/read");
  const MusterNode *init = muster_graph_find_node (graph, "init");
  MUSTER_ASSERT_TRUE (variable != NULL && assign != NULL && read != NULL && init != NULL);
  gint64 shape[2] = {0};
  MUSTER_EXPECT_STREQ (variable->kind->op, "VariableV2");
  MUSTER_EXPECT_EQ (muster_node_shape (variable, "shape", shape, 2), 2);
  MUSTER_EXPECT_EQ (shape[1], 3);
  MUSTER_EXPECT_STREQ (assign->kind->op, "Assign");
  MUSTER_EXPECT_TRUE (source_of (graph, assign, 0) == variable);
  MUSTER_EXPECT_STREQ (source_of (graph, assign, 1)->kind->op, "Const");
  MUSTER_EXPECT_EQ ((int)muster_node_dtype (assign, "T", MUSTER_INVALID), MUSTER_DOUBLE);
  MUSTER_EXPECT_STREQ (read->kind->op, "Identity");
  MUSTER_EXPECT_STREQ (init->kind->op, "NoOp");
  MUSTER_EXPECT_TRUE (source_of (graph, init, 0) == assign);
  MUSTER_EXPECT_TRUE (muster_node_input_is_control (init, 0));
}

MUSTER_TEST (graph_builder, writes_devices_and_lists_of_types)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  const MusterDType types[] = {MUSTER_FLOAT, MUSTER_STRING};
  muster_graph_builder_node (builder, "FIFOQueueV2", "queue");
  muster_graph_builder_device (builder, "/job:ps/task:1");
  muster_graph_builder_attr_types (builder, "component_types", types, 2);
  muster_graph_builder_attr_types (builder, "none", NULL, 0);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  const MusterNode *node = muster_graph_find_node (graph, "queue");
  MUSTER_ASSERT_NOT_NULL (node);
  MUSTER_EXPECT_STREQ (node->kind->device, "/job:ps/task:1");
  const Tensorflow__AttrValue *list = muster_node_attr (node, "component_types");
  MUSTER_ASSERT_EQ (list->value_case, TENSORFLOW__ATTR_VALUE__VALUE_LIST);
  MUSTER_ASSERT_EQ (list->list->n_type, 2u);
  MUSTER_EXPECT_EQ (list->list->type[1], MUSTER_STRING);
  const Tensorflow__AttrValue *none = muster_node_attr (node, "none");
  MUSTER_ASSERT_EQ (none->value_case, TENSORFLOW__ATTR_VALUE__VALUE_LIST);
  MUSTER_EXPECT_EQ (none->list->n_type, 0u);
}

static void
expect_mistake (MusterGraphBuilder *taken, const char *names)
{
  g_autoptr (MusterGraphBuilder) builder = taken;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_graph_builder_end (builder, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, names);
}

MUSTER_TEST (graph_builder, reports_a_mistake_at_the_end)
{
  MusterGraphBuilder *twice = muster_graph_builder_new ();
  muster_graph_builder_node (twice, "NoOp", "same");
  muster_graph_builder_node (twice, "NoOp", "same");
  expect_mistake (twice, "'same'");
  MusterGraphBuilder *early = muster_graph_builder_new ();
  muster_graph_builder_input (early, "x");
  expect_mistake (early, "'x'");
  MusterGraphBuilder *unnamed = muster_graph_builder_new ();
  muster_graph_builder_node (unnamed, "NoOp", "");
  expect_mistake (unnamed, "'NoOp'");
  muster_graph_builder_free (NULL);
}
