// SPDX-License-Identifier: Apache-2.0
/* Nodes that a step needs for nothing but a control edge. */
#include "engine/run/registry.h"
#include "engine/session/op_tables.h"
#include "tests/engine/fixture.h"

#include <math.h>

static int n_runs; /* of the test's ops */

static gboolean
count (MusterKernel *k, GError **error)
{
  n_runs++;
  MusterTensor *x = muster_kernel_input (k, 0), *y = muster_kernel_output_like (k, 0, x, error);
  if (y == NULL)
    return FALSE;
  *(float *)muster_tensor_data_mutable (y) = 1 + *(const float *)muster_tensor_data (x);
  return TRUE;
}

static const MusterOp ops[] = {
    {"TestUnread", "x:float -> y:float", "", count, MUSTER_OP_FORWARD},
    {"TestEffect", "x:float -> y:float", "", count, MUSTER_OP_STATEFUL},
    {0},
};

static MusterGraphBuilder *
new_graph (void)
{
  static gsize once;
  if (g_once_init_enter (&once)) {
    muster_op_register (ops);
    g_once_init_leave (&once, 1);
  }
  n_runs = 0;
  return muster_graph_builder_new ();
}

static void
add_node (MusterGraphBuilder *b, const char *op, const char *name, const char *input)
{
  muster_graph_builder_node (b, op, name);
  muster_graph_builder_input (b, input);
}

static void
run_target (MusterSession *session, const char *target, GError **error)
{
  const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
  muster_session_run (session, &step, NULL, NULL, NULL, error);
}

/* How often the test's ops run for that target. */
static int
runs_of (MusterSession *session, const char *target)
{
  g_autoptr (GError) error = NULL;
  n_runs = 0;
  run_target (session, target, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return n_runs;
}

/* a = x + 1, b = a + 1, minus = -a, effect = a + 1; "done" after b, "effected" after effect and b.
 */
static MusterSession *
open_chain (void)
{
  g_autoptr (MusterGraphBuilder) b = new_graph ();
  add_constant (b, "x", 1);
  add_node (b, "TestUnread", "a", "x");
  add_node (b, "TestUnread", "b", "a");
  add_unary (b, "Neg", "minus", "a");
  add_node (b, "NoOp", "done", "^b");
  add_node (b, "TestEffect", "effect", "a");
  add_node (b, "NoOp", "effected", "^effect");
  muster_graph_builder_input (b, "^b");
  return open_session (NULL, b);
}

MUSTER_TEST (Unread, is_not_computed_for_a_control_edge)
{
  g_autoptr (MusterSession) session = open_chain ();
  MUSTER_EXPECT_EQ (runs_of (session, "done"), 0);
}

MUSTER_TEST (Unread, is_computed_where_the_step_names_it)
{
  g_autoptr (MusterSession) session = open_chain ();
  MUSTER_EXPECT_EQ (runs_of (session, "b"), 2);
  MUSTER_EXPECT_EQ (runs_of (session, "a"), 1);
  MUSTER_EXPECT_EQ (fetch_float (session, "b"), 3.0f);
}

MUSTER_TEST (Unread, is_computed_as_far_as_another_node_reads_it)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_chain ();
  const char *fetch = "minus", *target = "done";
  const MusterStep step = {.fetches = &fetch,
                           .n_fetches = 1,
                           .targets = &target,
                           .n_targets = 1,
                           .deadline_us = test_deadline ()};
  for (int i = 0; i < 2; i++) {
    g_autoptr (MusterTensor) got = NULL;
    n_runs = 0;
    muster_session_run (session, &step, &got, NULL, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (float_of (got), -2.0f);
    MUSTER_EXPECT_EQ (n_runs, 1);
  }
}

MUSTER_TEST (Unread, is_computed_where_that_has_an_effect)
{
  g_autoptr (MusterSession) session = open_chain ();
  MUSTER_EXPECT_EQ (runs_of (session, "effected"), 2); /* a, and the effect; not b */
}

MUSTER_TEST (Unread, fails_where_it_checks_its_input)
{
  g_autoptr (GError) unset = NULL, nan = NULL, unfed = NULL;
  g_autoptr (MusterGraphBuilder) b = new_graph ();
  add_variable (b, "v", 1);
  add_unary (b, "Identity", "read", "v");
  add_node (b, "NoOp", "after_read", "^read");
  add_constant (b, "nothing", NAN);
  add_unary (b, "CheckNumerics", "check", "nothing");
  muster_graph_builder_attr_string (b, "message", "here");
  add_node (b, "NoOp", "after_check", "^check");
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  add_node (b, "TestUnread", "y", "x");
  add_node (b, "NoOp", "after_x", "^y");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  run_target (session, "after_read", &unset);
  run_target (session, "after_check", &nan);
  run_target (session, "after_x", &unfed);

  EXPECT_SAYS (unset, MUSTER_ERROR_FAILED_PRECONDITION, "Attempting to use uninitialized value v");
  EXPECT_SAYS (nan, MUSTER_ERROR_INVALID_ARGUMENT, "here : Tensor had NaN");
  EXPECT_SAYS (unfed, MUSTER_ERROR_INVALID_ARGUMENT, "You must feed a value");
}

/* p ? x : y, where what gives y is only in the branch by a control edge from an unread node. */
MUSTER_TEST (Unread, passes_on_that_it_is_dead)
{
  g_autoptr (MusterGraphBuilder) b = new_graph ();
  muster_graph_builder_placeholder (b, "p", MUSTER_BOOL, 0, NULL);
  add_constant (b, "x", 5);
  add_binary (b, "Switch", "s", "x", "p");
  add_node (b, "TestUnread", "a", "s");
  add_node (b, "TestUnread", "b", "a");
  add_constant (b, "y", 7);
  muster_graph_builder_input (b, "^b");
  add_unary (b, "Identity", "taken", "s:1");
  add_binary (b, "Merge", "m", "y", "taken");
  muster_graph_builder_attr_int (b, "N", 2);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  for (int p = 0; p < 2; p++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) pred = muster_tensor_new_bool (p);
    g_autoptr (MusterTensor) got = run_one (session, "p", pred, "m", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (float_of (got), p ? 5.0f : 7.0f);
  }
  MUSTER_EXPECT_EQ (n_runs, 0);
}

MUSTER_TEST (Unread, is_not_in_a_trace)
{
  static const guint8 full_trace[] = {8, 3};
  static const char *const targets[] = {"done", "b"};
  g_autoptr (MusterSession) session = open_chain ();
  g_autoptr (GBytes) options = g_bytes_new_static (full_trace, sizeof full_trace);
  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) metadata = NULL;
    const MusterStep step = {.targets = &targets[i], .n_targets = 1, .options = options};
    muster_session_run (session, &step, NULL, &metadata, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    gsize size;
    const char *data = g_bytes_get_data (metadata, &size);
    MUSTER_EXPECT_EQ (memmem (data, size, "TestUnread(", strlen ("TestUnread(")) != NULL, i == 1);
  }
}

MUSTER_TEST (Unread, leaves_a_run_in_parts_as_it_is)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = new_graph ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_placeholder (b, "z", MUSTER_FLOAT, 0, NULL);
  add_node (b, "TestUnread", "a", "x");
  add_unary (b, "Neg", "minus", "z");
  muster_graph_builder_input (b, "^a");
  add_unary (b, "Square", "square", "z");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) three = muster_tensor_new_float (3);
  const MusterFeed feeds[] = {{"z", three}, {"x", three}};
  const char *const fetches[] = {"square", "minus"};
  const MusterStep all = {.feeds = feeds, .n_feeds = 2, .fetches = fetches, .n_fetches = 2};
  g_autofree char *handle =
      muster_session_set_up_partial_run (session, &all, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  for (int i = 0; i < 2; i++) {
    g_autoptr (MusterTensor) got = NULL;
    const MusterStep part = {.feeds = &feeds[i],
                             .n_feeds = 1,
                             .fetches = &fetches[i],
                             .n_fetches = 1,
                             .deadline_us = test_deadline ()};
    muster_session_run_part (session, handle, &part, &got, NULL, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (float_of (got), i == 0 ? 9.0f : -3.0f);
  }
  MUSTER_EXPECT_EQ (n_runs, 0);
}

/* What an op does to a variable or a resource is an effect. */
MUSTER_TEST (Unread, has_an_effect_wherever_an_op_takes_a_variable_or_a_resource)
{
  muster_op_tables_register ();
  g_autoptr (GPtrArray) names = muster_op_names ();

  for (guint i = 0; i < names->len; i++) {
    const MusterOp *op = muster_op_find_entry (names->pdata[i])->op;
    const char *takes = op->signature;
    const gsize n = (gsize)(strstr (takes, "->") - takes);
    MUSTER_TRACE ("%s", op->name);
    if (memmem (takes, n, ":resource", strlen (":resource")) == NULL &&
        memmem (takes, n, ":&", strlen (":&")) == NULL)
      continue;
    MUSTER_EXPECT_NE (
        (guint)op->flags & (MUSTER_OP_STATEFUL | MUSTER_OP_READER | MUSTER_OP_RESOURCE), 0);
  }
  MUSTER_EXPECT_GT (names->len, 500);
}
