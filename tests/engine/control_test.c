// SPDX-License-Identifier: Apache-2.0
/* Conditionals as TensorFlow 1's cond writes them: Switch, Merge, and the dead values between. */
#include "engine/run/registry.h"
#include "tests/engine/fixture.h"

static void
add_switch (MusterGraphBuilder *b, const char *name, const char *data, const char *pred)
{
  add_binary (b, "Switch", name, data, pred);
}

static void
add_merge (MusterGraphBuilder *b, const char *name, const char *first, const char *second)
{
  add_binary (b, "Merge", name, first, second);
  muster_graph_builder_attr_int (b, "N", 2);
}

/* What tf.cond makes of a placeholder: "NAME/f" and "NAME/t", of which one is dead. */
static void
add_pivots (MusterGraphBuilder *b, const char *name)
{
  g_autofree char *pivot = g_strconcat (name, "/Switch", NULL);
  muster_graph_builder_placeholder (b, name, MUSTER_BOOL, -1, NULL);
  muster_graph_builder_node (b, "Switch", pivot);
  muster_graph_builder_input (b, name);
  muster_graph_builder_input (b, name);
  muster_graph_builder_attr_type (b, "T", MUSTER_BOOL);
  for (int i = 0; i < 2; i++) {
    g_autofree char *side = g_strconcat (name, i == 0 ? "/f" : "/t", NULL);
    g_autofree char *output = g_strdup_printf ("%s:%d", pivot, i);
    muster_graph_builder_node (b, "Identity", side);
    muster_graph_builder_input (b, output);
    muster_graph_builder_attr_type (b, "T", MUSTER_BOOL);
  }
}

static void
add_constant_in (MusterGraphBuilder *b, const char *name, float value, const char *pivot)
{
  add_constant (b, name, value);
  muster_graph_builder_input (b, pivot);
}

/* m = p ? x + 1 : -x, x = 5, as cond writes it. */
static MusterGraphBuilder *
new_cond (void)
{
  MusterGraphBuilder *b = muster_graph_builder_new ();
  add_pivots (b, "p");
  add_constant (b, "x", 5);
  add_switch (b, "sx", "x", "p");
  add_constant_in (b, "one", 1, "^p/t");
  add_unary (b, "Neg", "minus", "sx");
  add_binary (b, "AddV2", "plus", "sx:1", "one");
  add_merge (b, "m", "minus", "plus");
  return b;
}

/* A step that feeds predicate p, and q unless it is negative. */
static gboolean
run (MusterSession *session, int p, int q, const char *fetch, const char *target,
     MusterTensor **fetched, GError **error)
{
  g_autoptr (MusterTensor) p_value = muster_tensor_new_bool (p);
  g_autoptr (MusterTensor) q_value = muster_tensor_new_bool (q > 0);
  const MusterFeed feeds[] = {{"p", p_value}, {"q", q_value}};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = q >= 0 ? 2 : 1,
                           .fetches = &fetch,
                           .n_fetches = fetch != NULL,
                           .targets = &target,
                           .n_targets = target != NULL,
                           .deadline_us = test_deadline ()};
  return muster_session_run (session, &step, fetched, NULL, NULL, error);
}

static float
fetch_if (MusterSession *session, int p, int q, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) fetched = NULL;
  run (session, p, q, name, NULL, &fetched, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (fetched != NULL && muster_tensor_dtype (fetched) == MUSTER_INT32)
    return (float)((const gint32 *)muster_tensor_data (fetched))[0];
  return float_of (fetched);
}

static void
run_target (MusterSession *session, int p, const char *target)
{
  g_autoptr (GError) error = NULL;
  run (session, p, -1, NULL, target, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
expect_dead (MusterSession *session, int p, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) fetched = NULL;
  MUSTER_EXPECT_FALSE (run (session, p, -1, name, NULL, &fetched, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Retval[0] does not have value");
}

MUSTER_TEST (Control, gives_the_value_of_the_branch_that_the_predicate_names)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  g_autoptr (MusterSession) session = open_session (NULL, b);
  for (int i = 0; i < 3; i++) {
    MUSTER_EXPECT_EQ (fetch_if (session, FALSE, -1, "m"), -5.0f);
    MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "m"), 6.0f);
  }
  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, -1, "m:1"), 0.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "m:1"), 1.0f);
}

MUSTER_TEST (Control, gives_a_value_of_a_cond_within_a_cond)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_pivots (b, "p");
  add_pivots (b, "q");
  add_constant (b, "x", 5);
  add_switch (b, "outer", "x", "p");
  add_switch (b, "inner", "outer:1", "q");
  add_unary (b, "Neg", "minus", "inner");
  add_unary (b, "Square", "square", "inner:1");
  add_merge (b, "mi", "minus", "square");
  add_merge (b, "mo", "mi", "outer");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, FALSE, "mo"), 5.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, TRUE, "mo"), 5.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, FALSE, "mo"), -5.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, TRUE, "mo"), 25.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, TRUE, "mo:1"), 1.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, TRUE, "mo:1"), 0.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, TRUE, "mi:1"), 1.0f);
}

MUSTER_TEST (Control, takes_the_first_of_two_values)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  add_merge (b, "both", "x", "sx:1");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "both:1"), 0.0f);
}

MUSTER_TEST (Control, does_not_run_the_other_branch)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  add_variable (b, "v", 1);
  add_binary (b, "AssignAdd", "count", "v", "one");
  muster_graph_builder_node (b, "Placeholder", "unfed");
  muster_graph_builder_input (b, "^p/f");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  add_merge (b, "m2", "unfed", "count");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  run_target (session, FALSE, "v/Assign");

  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "m2"), 2.0f);
  run_target (session, FALSE, "count");
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 2.0f);
}

MUSTER_TEST (Control, is_dead_through_a_control_edge)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  muster_graph_builder_group (b, "group", (const char *[]){"x", "minus", NULL});
  add_constant_in (b, "after", 3, "^group");
  add_constant_in (b, "after_switch", 4, "^sx");
  add_merge (b, "merged", "minus", "plus");
  muster_graph_builder_input (b, "^group");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, -1, "after"), 3.0f);
  expect_dead (session, TRUE, "after");
  run_target (session, TRUE, "after");
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "after_switch"), 4.0f);
  /* A merge goes by what it merges. */
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "merged"), 6.0f);
}

MUSTER_TEST (Control, refuses_to_fetch_what_is_dead)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  g_autoptr (MusterTensor) yes = muster_tensor_new_bool (TRUE);
  g_autoptr (GError) error = NULL;
  add_merge (b, "none", "minus", "sx");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const MusterFeed feed = {"p", yes};
  const char *fetches[] = {"m", "minus"};
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = fetches,
                           .n_fetches = 2,
                           .deadline_us = test_deadline ()};
  MusterTensor *fetched[2] = {NULL, NULL};

  expect_dead (session, TRUE, "sx");
  expect_dead (session, FALSE, "sx:1");
  expect_dead (session, TRUE, "none");
  expect_dead (session, TRUE, "none:1");
  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, fetched, NULL, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "Retval[1] does not have value: 'minus' (op 'Neg')");
  MUSTER_EXPECT_NULL (fetched[0]);
  run_target (session, TRUE, "none");
}

MUSTER_TEST (Control, a_fed_value_is_alive)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  g_autoptr (MusterTensor) yes = muster_tensor_new_bool (TRUE);
  g_autoptr (MusterTensor) seven = muster_tensor_new_float (7);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const MusterFeed feeds[] = {{"p", yes}, {"sx:0", seven}};
  const char *fetches[] = {"m", "plus"};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = 2,
                           .fetches = fetches,
                           .n_fetches = 2,
                           .deadline_us = test_deadline ()};
  MusterTensor *fetched[2] = {NULL, NULL};
  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, fetched, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (float_of (fetched[0]), -7.0f);
  MUSTER_EXPECT_EQ (float_of (fetched[1]), 6.0f);
  muster_tensor_unref (fetched[0]);
  muster_tensor_unref (fetched[1]);
}

MUSTER_TEST (Control, refuses_a_predicate_that_is_no_scalar)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  g_autoptr (MusterTensor) two = muster_tensor_new (MUSTER_BOOL, 1, (const gint64[]){2});
  memset (muster_tensor_data_mutable (two), 0, 2);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (MusterTensor) got = run_one (session, "p", two, "m", &error);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "The second input must be a scalar, but it has shape [2]");
}

MUSTER_TEST (Control, refuses_to_merge_nothing)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_node (b, "Merge", "m");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_int (b, "N", 0);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "m", &error);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "must be at least minimum 1");
}

MUSTER_TEST (Control, passes_a_reference_on)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  add_variable (b, "v", 1);
  add_binary (b, "RefSwitch", "sv", "v", "p");
  add_binary (b, "Assign", "set", "sv:1", "x");
  add_binary (b, "RefMerge", "mv", "sv", "set");
  muster_graph_builder_attr_int (b, "N", 2);
  add_binary (b, "AssignAdd", "add", "mv", "x");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  /* Without a value it can be assigned to, not merged. */
  g_autoptr (MusterTensor) no = muster_tensor_new_bool (FALSE);
  g_autoptr (MusterTensor) got = run_one (session, "p", no, "mv", &error);
  EXPECT_SAYS (error, MUSTER_ERROR_FAILED_PRECONDITION, "Attempting to use uninitialized value sv");
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "add"), 10.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, -1, "add"), 15.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "mv:1"), 1.0f);
}

MUSTER_TEST (Control, reads_a_reference_late)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  add_variable (b, "v", 1);
  add_switch (b, "sv", "v", "p");
  add_merge (b, "mv", "sv", "sv:1");
  add_binary (b, "AssignAdd", "add", "v", "x");
  muster_graph_builder_input (b, "^mv");
  add_unary (b, "Neg", "read", "mv");
  muster_graph_builder_input (b, "^add");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  run_target (session, FALSE, "v/Assign");

  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "read"), -6.0f);
}

MUSTER_TEST (Control, passes_a_handle_on)
{
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  muster_graph_builder_node (b, "VarHandleOp", "h");
  muster_graph_builder_attr_string (b, "shared_name", "h");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "AssignVariableOp", "init");
  muster_graph_builder_input (b, "h");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "Switch", "sh");
  muster_graph_builder_input (b, "h");
  muster_graph_builder_input (b, "p");
  muster_graph_builder_attr_type (b, "T", MUSTER_RESOURCE);
  muster_graph_builder_node (b, "ReadVariableOp", "read");
  muster_graph_builder_input (b, "sh:1");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  add_merge (b, "mr", "minus", "read");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  run_target (session, FALSE, "init");

  MUSTER_EXPECT_EQ (fetch_if (session, TRUE, -1, "mr"), 5.0f);
  MUSTER_EXPECT_EQ (fetch_if (session, FALSE, -1, "mr"), -5.0f);
}

/* A kernel that waits until another of its step lets it go on. */
static MusterKernel *waiting;
static guint n_waited;

static void
wait_no_longer (MusterKernel *k, gpointer data G_GNUC_UNUSED)
{
  waiting = NULL;
  muster_kernel_resume (k, g_error_new (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "nobody says go"));
}

static gboolean
wait_for_go (MusterKernel *k, GError **error G_GNUC_UNUSED)
{
  muster_kernel_suspend (k, wait_no_longer, NULL);
  waiting = k;
  n_waited++;
  return TRUE;
}

static gboolean
go (MusterKernel *k G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  MusterKernel *k_waiting = g_steal_pointer (&waiting);
  if (k_waiting == NULL)
    return TRUE;
  muster_kernel_set_output (k_waiting, 0, muster_tensor_new_float (8));
  muster_kernel_resume (k_waiting, NULL);
  return TRUE;
}

static MusterSession *
open_waiting (void)
{
  static const MusterOp ops[] = {
      {"TestWait", " -> y:float", "", wait_for_go, MUSTER_OP_STATEFUL},
      {"TestGo", " -> ", "", go, MUSTER_OP_STATEFUL},
      {0},
  };
  static gsize once;
  if (g_once_init_enter (&once)) {
    muster_op_register (ops);
    g_once_init_leave (&once, 1);
  }
  n_waited = 0;
  g_autoptr (MusterGraphBuilder) b = new_cond ();
  muster_graph_builder_node (b, "TestWait", "wait");
  muster_graph_builder_node (b, "TestWait", "wait_in");
  muster_graph_builder_input (b, "^p/t");
  add_merge (b, "m2", "minus", "wait_in");
  add_binary (b, "AddV2", "sum", "wait", "m");
  muster_graph_builder_node (b, "TestGo", "go");
  muster_graph_builder_node (b, "TestGo", "go_after");
  muster_graph_builder_input (b, "^m");
  muster_graph_builder_input (b, "^m2");
  return open_session (NULL, b);
}

static float
fetch_with (MusterSession *session, int p, const char *fetch, const char *target)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) fetched = NULL;
  run (session, p, -1, fetch, target, &fetched, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return float_of (fetched);
}

MUSTER_TEST (Control, a_kernel_is_suspended_in_the_branch_that_is_taken)
{
  g_autoptr (MusterSession) session = open_waiting ();
  for (int i = 0; i < 2; i++) {
    MUSTER_ASSERT_EQ (fetch_with (session, TRUE, "m2", "go"), 8.0f);
    MUSTER_ASSERT_EQ (fetch_with (session, FALSE, "m2", "go"), -5.0f);
  }
  MUSTER_EXPECT_EQ (n_waited, 2);
}

MUSTER_TEST (Control, a_conditional_runs_while_a_kernel_is_suspended)
{
  g_autoptr (MusterSession) session = open_waiting ();
  /* "wait" goes on only when both conditionals are through. */
  for (int i = 0; i < 2; i++)
    MUSTER_ASSERT_EQ (fetch_with (session, FALSE, "sum", "go_after"), 3.0f);
  MUSTER_EXPECT_EQ (n_waited, 2);
}
