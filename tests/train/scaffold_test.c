// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"
#include "train/scaffold.h"

#include <string.h>

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
