// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_builder.h"
#include "ready/readiness_private.h"
#include "tests/doubles/fake_master.h"
#include "tests/gtest_shim.h"

static gboolean
judge (MusterTensor *value, MusterReadyOpResult *readiness, GError **error)
{
  g_autoptr (MusterTensor) owned = value;
  return muster_ready_op_judge ("ready", owned, NULL, readiness, error);
}

static gboolean
judge_failure (MusterError code, const char *message, MusterReadyOpResult *readiness,
               GError **error)
{
  g_autoptr (GError) failure = g_error_new_literal (MUSTER_ERROR, (gint)code, message);
  return muster_ready_op_judge ("ready", NULL, failure, readiness, error);
}

/* B002.56 */
MUSTER_TEST (Readiness, is_ready_without_a_value)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (judge (NULL, &readiness, NULL));
  MUSTER_EXPECT_TRUE (readiness.is_ready);
}

/* B002.56: old assert_variables_initialized returns ranks */
MUSTER_TEST (Readiness, is_ready_for_int32_whatever_the_numbers)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (judge (muster_tensor_new_int32 (17), &readiness, NULL));
  MUSTER_EXPECT_TRUE (readiness.is_ready);
}

/* B002.56 */
MUSTER_TEST (Readiness, is_ready_for_no_elements_of_any_dtype_and_rank)
{
  gint64 dims[] = {3, 0};
  const char *const none[] = {NULL};
  g_auto (MusterReadyOpResult) floats = {0};
  g_auto (MusterReadyOpResult) strings = {0};
  MUSTER_EXPECT_TRUE (judge (muster_tensor_new (MUSTER_FLOAT, 2, dims), &floats, NULL));
  MUSTER_EXPECT_TRUE (judge (muster_tensor_new_strv (none), &strings, NULL));

  MUSTER_EXPECT_TRUE (floats.is_ready && strings.is_ready);
}

/* B002.56 */
MUSTER_TEST (Readiness, names_what_is_missing)
{
  const char *const names[] = {"a", "b", NULL};
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (judge (muster_tensor_new_strv (names), &readiness, NULL));

  MUSTER_EXPECT_FALSE (readiness.is_ready);
  MUSTER_EXPECT_STREQ (readiness.why_not, "Variables not initialized: a, b");
  MUSTER_ASSERT_NOT_NULL (readiness.missing);
  MUSTER_EXPECT_STREQ (readiness.missing[1], "b");
  MUSTER_EXPECT_NULL (readiness.missing[2]);
}

/* B002.57, DIFF.11 */
MUSTER_TEST (Readiness, refuses_a_result_that_is_no_list_of_names)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  g_autoptr (GError) number = NULL;
  g_autoptr (GError) scalar = NULL;
  MUSTER_EXPECT_FALSE (judge (muster_tensor_new_int64 (3), &readiness, &number));
  MUSTER_EXPECT_FALSE (judge (muster_tensor_new_string ("v"), &readiness, &scalar));

  MUSTER_EXPECT_ERROR (number, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_ASSERT_TRUE (number != NULL);
  MUSTER_EXPECT_TRUE (strstr (number->message, "'ready'") && strstr (number->message, "int64") &&
                      strstr (number->message, "[]"));
  MUSTER_EXPECT_ERROR (scalar, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* B002.57, DIFF.11 */
MUSTER_TEST (Readiness, escapes_bytes_that_are_no_utf8)
{
  const char *const names[] = {"caf\xE9", "\xC3\xA9t\xC3\xA9", NULL};
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (judge (muster_tensor_new_strv (names), &readiness, NULL));

  MUSTER_EXPECT_STREQ (readiness.why_not, "Variables not initialized: caf\\xE9, \xC3\xA9t\xC3\xA9");
}

/* B002.58, DIFF.10 */
MUSTER_TEST (Readiness, takes_an_uninitialized_value_for_a_reason)
{
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (judge_failure (MUSTER_ERROR_FAILED_PRECONDITION,
                                     "Attempting to use uninitialized value v", &readiness, NULL));

  MUSTER_EXPECT_FALSE (readiness.is_ready);
  MUSTER_EXPECT_STREQ (readiness.why_not, "Attempting to use uninitialized value v");
}

/* B002.58 (case matters), B002.59, B002.61 */
MUSTER_TEST (Readiness, passes_other_failures_on)
{
  const struct {
    MusterError code;
    const char *message;
  } failures[] = {
      {MUSTER_ERROR_FAILED_PRECONDITION, "Uninitialized value v"},
      {MUSTER_ERROR_FAILED_PRECONDITION, "table is empty"},
      {MUSTER_ERROR_INVALID_ARGUMENT, "uninitialized"},
      {MUSTER_ERROR_UNAVAILABLE, "uninitialized"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (failures); i++) {
    g_auto (MusterReadyOpResult) readiness = {0};
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (judge_failure (failures[i].code, failures[i].message, &readiness, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, (int)failures[i].code);
    MUSTER_EXPECT_STREQ (error->message, failures[i].message);
  }
}

static gboolean
probe (MusterFakeSetup *f, const char *op, MusterReadyOpResult *readiness, GError **error)
{
  return muster_ready_op_probe (f->session, op, MUSTER_WAIT_FOREVER, NULL, readiness, error);
}

/* B002.55 */
MUSTER_TEST (Readiness, runs_nothing_without_an_op)
{
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (NULL);
  g_auto (MusterReadyOpResult) readiness = {0};
  MUSTER_EXPECT_TRUE (probe (&f, NULL, &readiness, NULL));

  g_autofree char *diary = muster_fake_master_diary (f.master);
  MUSTER_EXPECT_TRUE (readiness.is_ready);
  MUSTER_EXPECT_STREQ (diary, "create");
}

MUSTER_TEST (Readiness, fetches_the_op_and_judges)
{
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (NULL);
  g_auto (MusterReadyOpResult) readiness = {0};
  muster_fake_master_op_reports (f.master, "ready", "v", NULL);

  MUSTER_EXPECT_TRUE (probe (&f, "ready", &readiness, NULL));
  MUSTER_EXPECT_STREQ (readiness.why_not, "Variables not initialized: v");
}

/* B002.56: no value */
MUSTER_TEST (Readiness, runs_an_op_without_an_output_for_its_effect)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "NoOp", "check");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (graph);
  g_auto (MusterReadyOpResult) readiness = {0};

  muster_fake_master_op_yields (f.master, "check", NULL);
  MUSTER_EXPECT_TRUE (probe (&f, "check", &readiness, NULL));

  MUSTER_EXPECT_TRUE (readiness.is_ready);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "check"), 1u);
}

MUSTER_TEST (Readiness, finds_out_that_an_op_has_no_output_where_the_graph_is_unknown)
{
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (NULL);
  g_auto (MusterReadyOpResult) readiness = {0};
  muster_fake_master_op_yields (f.master, "check", NULL);
  MUSTER_EXPECT_TRUE (probe (&f, "check:0", &readiness, NULL));

  MUSTER_EXPECT_TRUE (readiness.is_ready);
}

/* A master that refuses the fetch, but would run the op, has not said that the model is ready. */
MUSTER_TEST (Readiness, takes_no_failed_fetch_of_a_known_op_for_ready)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, "GatherV2", "ready");
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, NULL);
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (graph);
  g_auto (MusterReadyOpResult) readiness = {0};
  g_autoptr (GError) error = NULL;

  muster_fake_master_op_reports (f.master, "ready", "v", NULL);
  muster_fake_master_fail (f.master, "ready", 1, 1, MUSTER_ERROR_INVALID_ARGUMENT, "not so");

  MUSTER_EXPECT_FALSE (probe (&f, "ready:0", &readiness, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_FALSE (readiness.is_ready);
}

MUSTER_TEST (Readiness, says_that_an_op_is_unknown)
{
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (NULL);
  g_auto (MusterReadyOpResult) readiness = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (probe (&f, "nothing", &readiness, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (Readiness, asks_whether_it_is_ready_only_behind_an_open_gate)
{
  g_auto (MusterFakeSetup) f = muster_fake_setup_new (NULL);
  g_auto (MusterReadiness) closed = {0};
  g_auto (MusterReadiness) open = {0};
  g_auto (MusterReadyOp) gate = {0};
  g_auto (MusterReadyOp) ready = {0};
  muster_ready_op_find (&gate, "gate", NULL);
  muster_ready_op_find (&ready, "ready", NULL);
  muster_fake_master_op_reports (f.master, "gate", "v", NULL);
  muster_fake_master_op_reports (f.master, "ready", "v", "local", NULL);
  MUSTER_ASSERT_TRUE (
      muster_readiness_probe (f.session, &gate, &ready, MUSTER_WAIT_FOREVER, NULL, &closed, NULL));
  muster_fake_master_set_variable (f.master, "v");
  MUSTER_ASSERT_TRUE (
      muster_readiness_probe (f.session, &gate, &ready, MUSTER_WAIT_FOREVER, NULL, &open, NULL));

  MUSTER_EXPECT_TRUE (!closed.gate_open && !closed.is_ready);
  MUSTER_EXPECT_STREQ (closed.why_gate, "Variables not initialized: v");
  MUSTER_EXPECT_NULL (closed.why_not_ready);
  MUSTER_EXPECT_TRUE (open.gate_open && !open.is_ready);
  MUSTER_EXPECT_STREQ (open.why_not_ready, "Variables not initialized: local");
  MUSTER_EXPECT_STREQ (open.missing[0], "local");
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "ready"), 1u);
}
