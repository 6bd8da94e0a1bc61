// SPDX-License-Identifier: Apache-2.0
/* What a graph lacks is added; tests/tensorflow/graph_kinds_test.py has TensorFlow's own graphs. */
#include "train/completion/completion.h"

#include "base/error.h"
#include "graph/after_restore_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph_edit.h"
#include "saver/builder/saver_builder.h"
#include "tests/gtest_shim.h"
#include "train/completion/step_waits_private.h"
#include "train/completion/sync_replicas_private.h"
#include "train/completion/train_ops_private.h"

#include <string.h>

static void
add_train_op (MusterGraphBuilder *builder, const char *name, const char *variable)
{
  g_autofree char *one = g_strconcat (name, "/one", NULL);
  g_autoptr (MusterTensor) value = muster_tensor_new_float (1);

  muster_graph_builder_constant (builder, one, value);
  muster_graph_builder_node (builder, "AssignAdd", name);
  muster_graph_builder_input (builder, variable);
  muster_graph_builder_input (builder, one);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
}

/* Two variables, an op that trains each, another one for the first, and one for both. */
static MusterMetaGraph *
make_model (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  static const char *const both[] = {"train_a", "train_b", NULL};
  g_autoptr (GError) error = NULL;
  muster_graph_builder_variable (builder, "a", zero);
  muster_graph_builder_variable (builder, "b", zero);
  add_train_op (builder, "train_a", "a");
  add_train_op (builder, "train_b", "b");
  add_train_op (builder, "again_a", "a");
  muster_graph_builder_group (builder, "both", both);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  return muster_meta_graph_new_for_graph (graph);
}

static MusterMetaGraph *
complete (MusterMetaGraph *model, const char *one, const char *other, char ***notes, GError **error)
{
  const char *const ops[] = {one, other, NULL};
  return muster_meta_graph_complete (model, ops, notes, error);
}

MUSTER_TEST (Completion, adds_a_step_one_train_op_and_a_saver)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_auto (GStrv) notes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = complete (model, "train_a", "train_b", &notes, &error);
  g_assert_no_error (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "train_op"), "muster/train");
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "global_step"), "global_step");
  MUSTER_EXPECT_TRUE (muster_meta_graph_saver (whole) != NULL);
  MUSTER_EXPECT_EQ (g_strv_length (notes), 4u);
}

MUSTER_TEST (Completion, leaves_what_is_complete_as_it_is)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_auto (GStrv) notes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) once = complete (model, "train_a", "train_b", NULL, &error);
  g_autoptr (MusterMetaGraph) twice = muster_meta_graph_complete (once, NULL, &notes, &error);
  g_assert_no_error (error);
  MUSTER_EXPECT_TRUE (once == twice);
  MUSTER_EXPECT_EQ (g_strv_length (notes), 0u);
}

MUSTER_TEST (Completion, makes_the_same_graph_in_every_process)
{
  g_autoptr (MusterMetaGraph) one = make_model ();
  g_autoptr (MusterMetaGraph) other = make_model ();
  g_autoptr (MusterMetaGraph) a = complete (one, "train_a", "train_b", NULL, NULL);
  g_autoptr (MusterMetaGraph) b = complete (other, "train_a", "train_b", NULL, NULL);
  MUSTER_EXPECT_TRUE (g_bytes_equal (muster_meta_graph_bytes (a), muster_meta_graph_bytes (b)));
}

MUSTER_TEST (Completion, runs_an_op_that_another_one_runs_once)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (GError) error = NULL;
  static const char *const ops[] = {"both", "train_a", "train_b", NULL};
  g_auto (GStrv) notes = NULL;
  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (model, ops, &notes, &error);
  g_assert_no_error (error);
  for (char **line = notes; *line != NULL; line++)
    MUSTER_EXPECT_TRUE (strstr (*line, "train ops") == NULL);
}

MUSTER_TEST (Completion, refuses_two_train_ops_that_write_one_variable)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (complete (model, "train_a", "again_a", NULL, &error));

  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "both write 'a'") != NULL);
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "--train-op=NAME") != NULL);
}

MUSTER_TEST (Completion, refuses_a_train_op_that_the_graph_lacks)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (complete (model, "nothing", NULL, NULL, &error));
  MUSTER_EXPECT_TRUE (error && strstr (error->message, "'nothing'") != NULL);
}

MUSTER_TEST (Completion, adds_no_step_to_a_graph_that_trains_nothing)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (model, NULL, NULL, &error);
  g_assert_no_error (error);
  MUSTER_EXPECT_NULL (muster_meta_graph_op (whole, "global_step"));
  MUSTER_EXPECT_FALSE (muster_meta_graph_has_own_input (whole));
}

/* A saver of a part is replaced, and the names that it gives are kept. */
MUSTER_TEST (Completion, replaces_a_saver_that_leaves_a_variable_out)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  static const MusterSaverKey map[] = {{"renamed", "a"}};
  static const MusterSaverBuild part = {.map = map, .n_map = 1, .max_to_keep = 7};
  g_auto (GStrv) notes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) partial = muster_saver_build (model, &part, &error);
  g_assert_no_error (error);

  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (partial, NULL, &notes, &error);

  g_assert_no_error (error);
  MUSTER_EXPECT_TRUE (strstr (notes[0], "leaves out 'b'") != NULL);
  MUSTER_EXPECT_EQ (muster_meta_graph_saver (whole)->max_to_keep, 7);
  g_autoptr (MusterMetaGraph) again = muster_meta_graph_complete (whole, NULL, NULL, &error);
  MUSTER_EXPECT_TRUE (again == whole);
}

/* The model with two ops: one needs a placeholder with a default, one a placeholder. */
static MusterMetaGraph *
make_model_with_placeholders (void)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  static const char *const with_default[] = {"default", NULL}, *const fed[] = {"fed", NULL};
  g_autoptr (GError) error = NULL;
  muster_graph_builder_node (builder, "PlaceholderWithDefault", "default");
  muster_graph_builder_input (builder, "train_a/one");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (builder, "shape", 0, NULL);
  muster_graph_builder_node (builder, "Placeholder", "fed");
  muster_graph_builder_attr_type (builder, "dtype", MUSTER_FLOAT);
  muster_graph_builder_group (builder, "needs_default", with_default);
  muster_graph_builder_group (builder, "needs_fed", fed);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  g_autoptr (MusterGraph) whole = muster_graph_extended (muster_meta_graph_graph (model), extra);
  return muster_meta_graph_new_for_graph (whole);
}

/* Nothing is fed after a restore: what needs it stays the init op's. */
MUSTER_TEST (Completion, makes_nothing_after_a_restore_that_needs_a_feed)
{
  static const char *const tables[] = {"needs_default", "needs_fed"};
  for (gsize i = 0; i < G_N_ELEMENTS (tables); i++) {
    g_autoptr (MusterMetaGraph) model = make_model_with_placeholders ();
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) table =
        muster_meta_graph_with_op (model, "table_initializer", tables[i], &error);
    g_autoptr (MusterMetaGraph) own =
        muster_meta_graph_with_op (table, "local_init_op", "train_a", &error);
    g_assert_no_error (error);

    g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (own, NULL, NULL, &error);

    g_assert_no_error (error);
    MUSTER_EXPECT_EQ (
        !!muster_graph_has_node (muster_meta_graph_graph (whole), MUSTER_AFTER_RESTORE), i == 0);
  }
}

/* No checkpoint holds a table, and no init op runs after a restore. */
MUSTER_TEST (Completion, keeps_what_only_the_init_op_makes_for_a_restore)
{
  g_autoptr (MusterMetaGraph) model = make_model ();
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) notes = NULL;
  g_autoptr (MusterMetaGraph) table =
      muster_meta_graph_with_op (model, "table_initializer", "train_b", &error);
  g_autoptr (MusterMetaGraph) by_default = muster_meta_graph_complete (table, NULL, NULL, &error);
  g_autoptr (MusterMetaGraph) own =
      muster_meta_graph_with_op (table, "local_init_op", "train_a", &error);
  g_assert_no_error (error);

  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (own, NULL, &notes, &error);

  g_assert_no_error (error);
  MUSTER_EXPECT_FALSE (
      muster_graph_has_node (muster_meta_graph_graph (by_default), MUSTER_AFTER_RESTORE));
  MUSTER_EXPECT_TRUE (
      muster_graph_has_node (muster_meta_graph_graph (whole), MUSTER_AFTER_RESTORE));
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "local_init_op"), "train_a");
  MUSTER_EXPECT_TRUE (strstr (notes[0], "'train_b' runs after a restore as well") != NULL);
  g_autoptr (MusterMetaGraph) again = muster_meta_graph_complete (whole, NULL, NULL, &error);
  MUSTER_EXPECT_TRUE (again == whole);
}

/* --- a SyncReplicasOptimizer --- */

static void
node (MusterGraphBuilder *builder, const char *op, const char *name, const char *first,
      const char *second)
{
  muster_graph_builder_node (builder, op, name);
  if (first != NULL)
    muster_graph_builder_input (builder, first);
  if (second != NULL)
    muster_graph_builder_input (builder, second);
}

/* One variable, whose gradient is aggregated from two replicas. */
static MusterMetaGraph *
make_replica (void)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) number = muster_tensor_new_float (0);
  g_autoptr (MusterTensor) step = muster_tensor_new_int64 (0);
  g_autoptr (MusterTensor) two = muster_tensor_new_int32 (2);
  g_autoptr (GError) error = NULL;
  muster_graph_builder_variable (builder, "a", number);
  muster_graph_builder_variable (builder, "global_step", step);
  muster_graph_builder_variable (builder, "local", step);
  muster_graph_builder_constant (builder, "gradient", number);
  muster_graph_builder_constant (builder, "two", two);
  /* an input of the graph's own, and the local step of something else */
  node (builder, "FIFOQueueV2", "rows", NULL, NULL);
  node (builder, "QueueEnqueueManyV2", "enqueue_rows", "rows", "gradient");
  node (builder, "QueueDequeueV2", "row", "rows", NULL);
  node (builder, "Assign", "take_row", "a", "row");
  node (builder, "ConditionalAccumulator", "accumulator", NULL, NULL);
  node (builder, "FIFOQueueV2", "queue", NULL, NULL);
  node (builder, "AccumulatorTakeGradient", "take", "accumulator", "two");
  node (builder, "AssignAdd", "update", "a", "take");
  node (builder, "QueueEnqueueManyV2", "enqueue", "queue", "global_step");
  muster_graph_builder_input (builder, "^update");
  node (builder, "AccumulatorApplyGradient", "apply", "accumulator", "local");
  muster_graph_builder_input (builder, "gradient");
  node (builder, "QueueDequeueV2", "dequeue", "queue", "^apply");
  node (builder, "Assign", "step", "local", "dequeue");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  return muster_meta_graph_new_for_graph (graph);
}

MUSTER_TEST (Completion, finds_what_synchronises_replicas)
{
  g_autoptr (MusterMetaGraph) model = make_replica ();
  g_auto (MusterSyncReplicas) sync = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (muster_sync_replicas_find (model, &sync));

  MUSTER_EXPECT_STREQ (sync.update, "enqueue");
  MUSTER_EXPECT_STREQ (sync.train, "step");
  MUSTER_EXPECT_STREQ (sync.token, "dequeue:0");
  MUSTER_EXPECT_STREQ (sync.queue, "queue");
  MUSTER_EXPECT_EQ (sync.local->len, 1u);
  MUSTER_EXPECT_STREQ (sync.local->pdata[0], "local:0");
  MUSTER_EXPECT_EQ (sync.takes->len, 1u);
  MUSTER_EXPECT_EQ (sync.n_tokens, 2);
  MUSTER_EXPECT_FALSE (sync.is_run);
  MusterGraph *graph = muster_meta_graph_graph (model);
  MUSTER_EXPECT_TRUE (muster_sync_replicas_takes_token (&sync, graph, "step"));
  MUSTER_EXPECT_FALSE (muster_sync_replicas_takes_token (&sync, graph, "update"));
  MUSTER_EXPECT_FALSE (muster_sync_replicas_takes_token (&sync, graph, "a:0"));
}

/* (transfer full) (nullable) */
static char *
waits_for (MusterMetaGraph *model, const char *op)
{
  MusterGraph *graph = muster_meta_graph_graph (model);
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  muster_graph_mark_needs (graph, op, needed);
  return muster_step_waits_for (model, needed);
}

MUSTER_TEST (Completion, names_the_queue_at_which_a_step_may_wait)
{
  g_autoptr (MusterMetaGraph) model = make_replica ();
  g_autofree char *token = waits_for (model, "step");
  g_autofree char *row = waits_for (model, "take_row");
  g_autofree char *none = waits_for (model, "update");
  MUSTER_ASSERT_TRUE (token != NULL && row != NULL);
  MUSTER_EXPECT_TRUE (strstr (token, "token in the queue 'queue'") != NULL);
  MUSTER_EXPECT_TRUE (strstr (token, "after 2 gradients") != NULL);
  MUSTER_EXPECT_TRUE (strstr (row, "queue 'rows', which no queue runner") != NULL);
  MUSTER_EXPECT_NULL (none);
}

MUSTER_TEST (Completion, trains_by_the_op_that_takes_a_token)
{
  g_autoptr (MusterMetaGraph) model = make_replica ();
  g_auto (GStrv) notes = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (model, NULL, &notes, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterGraph *graph = muster_meta_graph_graph (whole);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "train_op"), "muster/train");
  MUSTER_EXPECT_TRUE (muster_graph_has_node (graph, MUSTER_SYNC_BEGIN));
  MUSTER_EXPECT_TRUE (muster_graph_has_node (graph, MUSTER_SYNC_TOKENS));
  MUSTER_EXPECT_TRUE (muster_graph_has_node (graph, MUSTER_SYNC_COUNT "_0"));
  MUSTER_EXPECT_FALSE (muster_meta_graph_has_own_input (whole)); /* tokens are none */
  g_autoptr (MusterMetaGraph) again = muster_meta_graph_complete (whole, NULL, NULL, &error);
  MUSTER_EXPECT_TRUE (again == whole);
}

/* What the chief runs all the time isn't a replica's step, though minimize () of the inner
 * optimizer has collected it. */
MUSTER_TEST (Completion, runs_no_op_that_the_chief_runs_for_all)
{
  g_autoptr (MusterMetaGraph) model = make_replica ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) collected =
      muster_meta_graph_with_op (model, "train_op", "update", &error);
  g_assert_no_error (error);

  g_autoptr (GPtrArray) ops = muster_train_ops_find (collected, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (ops->len, 1u);
  MUSTER_EXPECT_STREQ (ops->pdata[0], "step");
}

/* The queue may outlive a chief. */
MUSTER_TEST (Completion, fills_the_queue_by_what_it_lacks)
{
  g_autoptr (MusterMetaGraph) model = make_replica ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = muster_meta_graph_complete (model, NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterGraph *graph = muster_meta_graph_graph (whole);
  const MusterNode *lack = muster_graph_find_node (graph, "muster/sync/lack");
  MUSTER_EXPECT_STREQ (muster_graph_node (graph, muster_node_input (lack, 0, NULL))->name,
                       "muster/sync/n");
  const MusterNode *size = muster_graph_node (graph, muster_node_input (lack, 1, NULL));
  MUSTER_EXPECT_STREQ (size->kind->op, "QueueSizeV2");
}

/* --- the global step --- */

static MusterMetaGraph *
make_counter (const char *step_name)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_int64 (0);
  g_autoptr (MusterTensor) one = muster_tensor_new_int64 (1);
  g_autoptr (GError) error = NULL;
  muster_graph_builder_variable (builder, step_name, zero);
  muster_graph_builder_constant (builder, "one", one);
  muster_graph_builder_node (builder, "AssignAdd", "count");
  muster_graph_builder_input (builder, step_name);
  muster_graph_builder_input (builder, "one");
  muster_graph_builder_attr_type (builder, "T", MUSTER_INT64);
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_assert_no_error (error);
  return muster_meta_graph_new_for_graph (graph);
}

MUSTER_TEST (Completion, never_advances_a_step_that_an_op_advances)
{
  g_autoptr (MusterMetaGraph) model = make_counter ("global_step");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = complete (model, "count", NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "train_op"), "count");
  MUSTER_EXPECT_FALSE (
      muster_graph_has_node (muster_meta_graph_graph (whole), "muster/train/advance"));
}

MUSTER_TEST (Completion, takes_no_name_that_the_graph_has)
{
  g_autoptr (MusterMetaGraph) model = make_counter ("Global_Step/of_another");
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) whole = complete (model, "count", NULL, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "global_step"), "muster/global_step");
}

/* A restore writes the step, too, but no training does. */
MUSTER_TEST (Completion, advances_a_step_that_only_a_saver_writes)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (MusterTensor) zero = muster_tensor_new_float (0);
  g_autoptr (MusterTensor) step = muster_tensor_new_int64 (0);
  g_autoptr (GError) error = NULL;
  muster_graph_builder_variable (builder, "a", zero);
  muster_graph_builder_variable (builder, "global_step", step);
  add_train_op (builder, "train_a", "a");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  g_autoptr (MusterMetaGraph) model = muster_meta_graph_new_for_graph (graph);
  g_autoptr (MusterMetaGraph) saved = muster_saver_build (model, NULL, &error);
  g_assert_no_error (error);

  g_autoptr (MusterMetaGraph) whole = complete (saved, "train_a", NULL, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_meta_graph_op (whole, "train_op"), "muster/train");
  MUSTER_EXPECT_TRUE (
      muster_graph_has_node (muster_meta_graph_graph (whole), "muster/train/advance"));
}
