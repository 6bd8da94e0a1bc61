// SPDX-License-Identifier: Apache-2.0
#include "base/memory_account_private.h"
#include "master/remote/target.h"
#include "tests/engine/fixture.h"

static MusterSession *
open_model (MusterMaster *master)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_variable (b, "v", 5);
  add_constant (b, "one", 1);
  add_binary (b, "AssignAdd", "up", "v", "one");
  muster_graph_builder_node (b, "VarHandleOp", "r");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_string (b, "shared_name", "r");
  muster_graph_builder_node (b, "ReadVariableOp", "r/Read");
  muster_graph_builder_input (b, "r");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "AssignVariableOp", "r/Assign");
  muster_graph_builder_input (b, "r");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "ReadVariableOp", "r/ReadInt");
  muster_graph_builder_input (b, "r");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_INT32);
  return open_session (master, b);
}

MUSTER_TEST (LocalMaster, says_in_TensorFlows_words_that_a_variable_has_no_value)
{
  g_autoptr (MusterSession) session = open_model (NULL);
  const struct {
    const char *fetch;
    const char *text;
  } cases[] = {
      {"v", "Attempting to use uninitialized value v\n\t [[{{node v}}]]"},
      {"v/read", "Attempting to use uninitialized value v\n\t [[{{node v/read}}]]"},
      {"up", "Attempting to use uninitialized value v\n\t [[{{node up}}]]"},
      {"r/Read",
       "Could not find variable r. This could mean that the variable has been deleted. In TF1, it "
       "can also mean the variable is uninitialized. Debug info: container=localhost, status "
       "error message=Resource localhost/r/N10tensorflow3VarE does not exist.\n\t [[{{node "
       "r/Read}}]]"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, cases[i].fetch, &error);
    EXPECT_SAYS (error, MUSTER_ERROR_FAILED_PRECONDITION, cases[i].text);
  }
}

/* RunOptions with trace_level FULL_TRACE, SOFTWARE_TRACE and none, and a timeout */
MUSTER_TEST (LocalMaster, traces_a_step_where_it_is_asked_to)
{
  static const guint8 options[][4] = {{8, 3, 16, 100}, {8, 1, 16, 100}, {8, 0, 16, 100}};
  g_autoptr (MusterSession) session = open_model (NULL);
  const char *target = "r/Assign";
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++) {
    g_autoptr (GBytes) asked = g_bytes_new_static (options[i], sizeof options[i]);
    g_autoptr (GBytes) metadata = NULL;
    g_autoptr (GError) error = NULL;
    MusterStep step = {.targets = &target, .n_targets = 1, .options = asked};
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, &metadata, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (metadata != NULL, options[i][1] > 0);
    const char *data = metadata != NULL ? g_bytes_get_data (metadata, NULL) : "";
    gsize size = metadata != NULL ? g_bytes_get_size (metadata) : 0;
    static const char label[] = "r/Assign = AssignVariableOp(r, ";
    MUSTER_EXPECT_EQ (memmem (data, size, label, strlen (label)) != NULL, options[i][1] > 0);
  }
}

/* They may have held a timeout. */
MUSTER_TEST (LocalMaster, refuses_a_step_whose_options_are_malformed)
{
  static const guint8 options[][4] = {{16, 100, 16}, {18, 1, 0}, {8, 3, 0xff, 0xff}};
  g_autoptr (MusterSession) session = open_model (NULL);
  const char *target = "r/Assign";
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) asked = g_bytes_new_static (options[i], i == 2 ? 4 : 3);
    const MusterStep step = {.targets = &target, .n_targets = 1, .options = asked};
    MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
    EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "RunOptions");
  }
}

MUSTER_TEST (LocalMaster, refuses_to_read_a_handle_as_another_dtype)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_model (NULL);
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "r/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));

  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "r/ReadInt", &error);

  MUSTER_EXPECT_EQ (fetch_float (session, "r/Read"), 1.0f);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Expected int32 got float");
}

MUSTER_TEST (LocalMaster, shares_variables_between_sessions_and_beyond_them)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) before = open_model (master);
  {
    g_autoptr (MusterSession) chief = open_model (master);
    MUSTER_EXPECT_TRUE (
        muster_session_run_op (chief, "v/Assign", MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_session_run_op (chief, "up", MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_session_close (chief, MUSTER_WAIT_FOREVER, NULL, &error));
  }
  g_autoptr (MusterSession) after = open_model (master);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (fetch_float (before, "v"), 6.0f);
  MUSTER_EXPECT_EQ (fetch_float (after, "v/read"), 6.0f);
}

/* A step's zero field is no limit; a verb's 0 is an instant, and long past. */
MUSTER_TEST (LocalMaster, takes_a_deadline_of_0_for_one_that_has_passed)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = open_model (master);
  static const char *const target = "v/Assign";
  const MusterStep step = {.targets = &target, .n_targets = 1};
  const gint64 callable =
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, NULL);
  GError *errors[6] = {NULL};
  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, NULL));

  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "up", 0, NULL, &errors[0]));
  MUSTER_EXPECT_NULL (muster_session_fetch (session, "v/read", 0, NULL, &errors[1]));
  MUSTER_EXPECT_FALSE (
      muster_session_run_callable (session, callable, NULL, 0, 0, NULL, NULL, NULL, &errors[2]));
  MUSTER_EXPECT_NULL (muster_master_create_session (master, muster_session_graph (session), NULL, 0,
                                                    NULL, &errors[3]));
  MUSTER_EXPECT_NULL (muster_master_list_devices (master, 0, NULL, &errors[4]));
  MUSTER_EXPECT_FALSE (muster_master_reset (master, NULL, 0, NULL, &errors[5]));

  for (gsize i = 0; i < G_N_ELEMENTS (errors); i++) {
    MUSTER_EXPECT_ERROR (errors[i], MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    g_clear_error (&errors[i]);
  }
}

MUSTER_TEST (LocalMaster, parses_equal_graphs_once)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) first = open_model (master);
  g_autoptr (MusterSession) second = open_model (master);
  MUSTER_EXPECT_PTR_EQ (muster_session_graph (first), muster_session_graph (second));
  MUSTER_EXPECT_TRUE (!g_str_equal (muster_session_handle (first), muster_session_handle (second)));
}

/* Decision 15: a read after the update, with no edge that says so, sees it. */
MUSTER_TEST (LocalMaster, reads_a_reference_when_it_is_used)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_model (NULL);
  const char *const fetches[] = {"v/read", "up"};
  MusterTensor *got[2];
  const MusterStep step = {.fetches = fetches, .n_fetches = 2};
  MUSTER_EXPECT_TRUE (
      muster_session_run_op (session, "v/Assign", MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_TRUE (muster_session_run (session, &step, got, NULL, NULL, &error));

  MUSTER_EXPECT_EQ (float_of (got[0]), 6.0f);
  MUSTER_EXPECT_EQ (float_of (got[1]), 6.0f);
  muster_tensor_unref (got[0]);
  muster_tensor_unref (got[1]);
}

MUSTER_TEST (LocalMaster, extends_a_session)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_model (NULL);
  MUSTER_EXPECT_EQ (fetch_float (session, "one"), 1.0f);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new_extension ();
  add_unary (b, "Neg", "minus", "one");
  g_autoptr (MusterGraph) more = muster_graph_builder_end (b, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_ASSERT_TRUE (muster_session_extend (session, more, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_EQ (fetch_float (session, "minus"), -1.0f);
  MUSTER_EXPECT_EQ (fetch_float (session, "one"), 1.0f);
  MUSTER_EXPECT_FALSE (muster_session_extend (session, more, MUSTER_WAIT_FOREVER, NULL, &error));

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "GraphDef argument to Extend includes node 'minus', which was created by a "
               "previous call to Create or Extend in this session.");
}

/* A resource variable of a container, with ops to give it a value and to ask whether it has one. */
static MusterGraph *
graph_of_shadow (const char *container, const char *scope)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autofree char *handle = g_strconcat (scope, "/v", NULL);
  g_autofree char *value = g_strconcat (scope, "/value", NULL);
  g_autofree char *assign = g_strconcat (scope, "/assign", NULL);
  g_autofree char *is_there = g_strconcat (scope, "/is_there", NULL);
  muster_graph_builder_constant (b, value, one);
  muster_graph_builder_node (b, "VarHandleOp", handle);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", -1, NULL);
  muster_graph_builder_attr_string (b, "container", container);
  muster_graph_builder_attr_string (b, "shared_name", "v");
  muster_graph_builder_node (b, "AssignVariableOp", assign);
  muster_graph_builder_input (b, handle);
  muster_graph_builder_input (b, value);
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "VarIsInitializedOp", is_there);
  muster_graph_builder_input (b, handle);
  return muster_graph_builder_end (b, NULL);
}

static gboolean
is_there (MusterSession *session, const char *scope)
{
  g_autofree char *name = g_strconcat (scope, "/is_there:0", NULL);
  g_autoptr (MusterTensor) value =
      muster_session_fetch (session, name, MUSTER_WAIT_FOREVER, NULL, NULL);
  return value != NULL && *(const guint8 *)muster_tensor_data (value) != 0;
}

/* What a client sets apart goes with its session, also where it was killed; what others named
 * stays. */
MUSTER_TEST (LocalMaster, drops_a_sessions_own_containers_with_it)
{
  static const char *const containers[] = {MUSTER_SESSION_CONTAINER "a", "another", ""};
  for (gsize i = 0; i < G_N_ELEMENTS (containers); i++) {
    g_autoptr (MusterMaster) master = muster_local_master_new ();
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterGraph) first = graph_of_shadow ("begin", "begin");
    g_autoptr (MusterGraph) more = graph_of_shadow (containers[i], "more");
    g_autoptr (MusterSession) one =
        muster_master_create_session (master, first, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
    g_autoptr (MusterSession) two =
        muster_master_create_session (master, more, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_ASSERT_TRUE (muster_session_extend (one, more, MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_ASSERT_TRUE (
        muster_session_run_op (one, "more/assign", MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_ASSERT_TRUE (
        muster_session_run_op (one, "begin/assign", MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_EXPECT_TRUE (is_there (two, "more"));

    MUSTER_EXPECT_TRUE (muster_session_close (one, MUSTER_WAIT_FOREVER, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (is_there (two, "more"), i > 0);
  }
}

MUSTER_TEST (LocalMaster, knows_a_closed_session_no_more)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_model (NULL);
  MUSTER_EXPECT_TRUE (muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_TRUE (muster_session_close (session, MUSTER_WAIT_FOREVER, NULL, NULL));
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "one", &error);

  EXPECT_SAYS (error, MUSTER_ERROR_ABORTED, " is not found.");
}

static void
count (gpointer counter)
{
  g_atomic_int_inc ((gint *)counter);
}

MUSTER_TEST (LocalMaster, a_reset_drops_variables_and_sessions)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) uninitialized = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) old = open_model (master);
  gint told = 0;
  MUSTER_EXPECT_TRUE (muster_session_run_op (old, "v/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));
  const gulong id = muster_master_on_readiness_changed (master, count, &told);

  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, NULL));
  g_autoptr (MusterTensor) none = run_one (old, NULL, NULL, "v", &error);
  g_autoptr (MusterSession) fresh = open_model (master);
  g_autoptr (MusterTensor) empty = run_one (fresh, NULL, NULL, "v", &uninitialized);

  EXPECT_SAYS (error, MUSTER_ERROR_ABORTED, " is not found. Possibly, this master has restarted.");
  EXPECT_SAYS (uninitialized, MUSTER_ERROR_FAILED_PRECONDITION, "uninitialized value v");
  MUSTER_EXPECT_EQ (told, 1);
  muster_master_off_readiness_changed (master, id);
}

MUSTER_TEST (LocalMaster, reports_once_for_each_step_that_initialises)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = open_model (master);
  const char *const both[] = {"v/Assign", "r/Assign"};
  const MusterStep init = {.targets = both, .n_targets = 2};
  gint told = 0;
  const gulong id = muster_master_on_readiness_changed (master, count, &told);
  MUSTER_EXPECT_TRUE (muster_session_run (session, &init, NULL, NULL, NULL, NULL));
  MUSTER_EXPECT_EQ (told, 1);
  MUSTER_EXPECT_TRUE (muster_session_run (session, &init, NULL, NULL, NULL, NULL));
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "up", MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_EQ (told, 1);
  muster_master_off_readiness_changed (master, id);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_EQ (told, 1);
}

MUSTER_TEST (LocalMaster, keeps_a_callable_under_a_number)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) wrong = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  add_unary (b, "Neg", "minus", "x");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  const MusterFeed feed = {"x:0", NULL};
  const char *fetch = "minus:0";
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = &fetch, .n_fetches = 1};
  MusterTensor *got = NULL;

  const gint64 callable =
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_TRUE (callable != 0);
  MUSTER_ASSERT_TRUE (muster_session_run_callable (session, callable, &two, 1, MUSTER_WAIT_FOREVER,
                                                   &got, NULL, NULL, &error));
  MUSTER_EXPECT_EQ (float_of (got), -2.0f);
  muster_tensor_unref (got);
  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, NULL, 0, MUSTER_WAIT_FOREVER,
                                                    &got, NULL, NULL, &wrong));
  EXPECT_SAYS (wrong, MUSTER_ERROR_INVALID_ARGUMENT, "takes 1 tensors, 0 were fed");
  MUSTER_EXPECT_TRUE (
      muster_session_release_callable (session, callable, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (muster_session_run_callable (session, callable, &two, 1, MUSTER_WAIT_FOREVER,
                                                    &got, NULL, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "No such callable handle: 1");
}

MUSTER_TEST (LocalMaster, keeps_ten_thousand_callables_at_most_and_counts_their_options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_node (b, "NoOp", "nothing");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const char *target = "nothing";
  char content[4000] = {0x7a, (char)0x9d, 0x1f}; /* field 15, of which nothing is known */
  g_autoptr (GBytes) options = g_bytes_new_static (content, sizeof content);
  const MusterStep step = {.targets = &target, .n_targets = 1, .options = options};
  const gint64 first =
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, NULL);
  const guint64 used = muster_memory_used (MUSTER_MEMORY_GRAPHS);
  for (int i = 1; i < 10000; i++)
    MUSTER_ASSERT_TRUE (
        muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, NULL) != 0);
  MUSTER_EXPECT_GT (muster_memory_used (MUSTER_MEMORY_GRAPHS), used + 9900 * sizeof content);

  MUSTER_EXPECT_EQ (
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, &error), 0);
  EXPECT_SAYS (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "10000 callables; release some");
  MUSTER_EXPECT_TRUE (
      muster_session_release_callable (session, first, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_TRUE (
      muster_session_make_callable (session, &step, MUSTER_WAIT_FOREVER, NULL, NULL) != 0);
}

MUSTER_TEST (LocalMaster, lists_one_cpu_whose_incarnation_is_its_own)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterMaster) other = muster_local_master_new ();
  g_autoptr (GPtrArray) devices =
      muster_master_list_devices (master, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autoptr (GPtrArray) others =
      muster_master_list_devices (other, MUSTER_WAIT_FOREVER, NULL, NULL);

  MUSTER_ASSERT_EQ (devices->len, 1);
  const MusterDevice *device = g_ptr_array_index (devices, 0);
  MUSTER_EXPECT_STREQ (device->name, "/job:localhost/replica:0/task:0/device:CPU:0");
  MUSTER_EXPECT_STREQ (device->type, "CPU");
  MUSTER_EXPECT_TRUE (device->incarnation !=
                      ((MusterDevice *)g_ptr_array_index (others, 0))->incarnation);
}

MUSTER_TEST (LocalMaster, is_one_and_the_same_for_every_local_target)
{
  g_autoptr (GError) error = NULL;
  muster_local_master_offer ();
  g_autoptr (MusterMaster) first = muster_master_new_for_target ("local", &error);
  g_autoptr (MusterMaster) second = muster_master_new_for_target ("local", &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_PTR_EQ (first, second);
  MUSTER_EXPECT_STREQ (muster_master_target (first), "local");
}
