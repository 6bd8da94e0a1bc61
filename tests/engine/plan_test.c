// SPDX-License-Identifier: Apache-2.0
#include "base/memory_account_private.h"
#include "base/unpack_private.h"
#include "graph/graph_nodes_private.h"
#include "tests/engine/fixture.h"

/* x + two, and a negation of it. */
static MusterSession *
open_sum (void)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  add_constant (b, "two", 2);
  add_binary (b, "AddV2", "sum", "x", "two");
  add_unary (b, "Neg", "minus", "sum");
  return open_session (NULL, b);
}

MUSTER_TEST (Plan, computes_a_fetch_from_a_feed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sum ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) full = run_one (session, "x:0", one, "minus:0", &error);
  g_autoptr (MusterTensor) bare = run_one (session, "x", one, "minus", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (float_of (full), -3.0f);
  MUSTER_EXPECT_EQ (float_of (bare), -3.0f);
}

MUSTER_TEST (Plan, cuts_the_graph_at_a_tensor_fed_in_its_middle)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sum ();
  g_autoptr (MusterTensor) seven = muster_tensor_new_float (7);
  g_autoptr (MusterTensor) got = run_one (session, "sum:0", seven, "minus:0", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (float_of (got), -7.0f);
}

MUSTER_TEST (Plan, leaves_what_was_fed_unchanged)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sum ();
  g_autoptr (MusterTensor) seven = muster_tensor_new_float (7);
  g_autoptr (MusterTensor) got = run_one (session, "sum:0", seven, "minus:0", &error);
  g_autoptr (MusterTensor) again = run_one (session, "sum:0", seven, "minus:0", &error);
  MUSTER_EXPECT_EQ (float_of (seven), 7.0f);
  MUSTER_EXPECT_EQ (float_of (again), -7.0f);
}

MUSTER_TEST (Plan, gives_each_of_two_equal_fetches)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_sum ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  const MusterFeed feed = {"x", one};
  const char *const fetches[] = {"sum", "minus", "sum:0"};
  MusterTensor *got[3];
  const MusterStep step = {.feeds = &feed, .n_feeds = 1, .fetches = fetches, .n_fetches = 3};
  MUSTER_ASSERT_TRUE (muster_session_run (session, &step, got, NULL, NULL, &error));

  MUSTER_EXPECT_EQ (float_of (got[0]), 3.0f);
  MUSTER_EXPECT_EQ (float_of (got[1]), -3.0f);
  MUSTER_EXPECT_EQ (float_of (got[2]), 3.0f);
  for (int i = 0; i < 3; i++)
    muster_tensor_unref (got[i]);
}

MUSTER_TEST (Plan, says_what_is_fed_wrongly)
{
  g_autoptr (MusterSession) session = open_sum ();
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1);
  g_autoptr (MusterTensor) two = muster_tensor_new (MUSTER_FLOAT, 1, (gint64[]){2});
  g_autoptr (MusterTensor) fine = muster_tensor_new_float (1);
  struct {
    const char *feed;
    MusterTensor *value;
    const char *fetch;
    MusterError code;
    const char *text;
  } cases[] = {
      {"x:0", one, "sum", MUSTER_ERROR_INVALID_ARGUMENT,
       "Cannot feed value of type int32 for Tensor 'x:0', which has type float"},
      {"sum", one, "minus", MUSTER_ERROR_INVALID_ARGUMENT, "which has type float"},
      {"x", two, "sum", MUSTER_ERROR_INVALID_ARGUMENT,
       "Cannot feed value of shape [2] for Tensor 'x', which has shape []"},
      {"nope:0", fine, "sum", MUSTER_ERROR_NOT_FOUND,
       "FeedInputs: unable to find feed output nope:0"},
      {"x:4", fine, "sum", MUSTER_ERROR_INVALID_ARGUMENT, "x:4 should have output index < 1"},
      {"x:0", fine, "x:0", MUSTER_ERROR_INVALID_ARGUMENT, "x:0 is both fed and fetched."},
      {"x", fine, "nope:0", MUSTER_ERROR_NOT_FOUND, "FetchOutputs node nope:0: not found"},
      {"x", fine, "sum:3", MUSTER_ERROR_INVALID_ARGUMENT,
       "FetchOutputs sum:3: output index too large, must be < 1"},
      {NULL, NULL, "sum", MUSTER_ERROR_INVALID_ARGUMENT,
       "You must feed a value for placeholder tensor 'x' with dtype float\n\t [[{{node x}}]]"},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) got =
        run_one (session, cases[i].feed, cases[i].value, cases[i].fetch, &error);
    MUSTER_EXPECT_NULL (got);
    EXPECT_SAYS (error, cases[i].code, cases[i].text);
  }
}

/* x of no known shape, as TensorFlow of a producer wrote it. */
static MusterGraph *
graph_of_producer (const char *op, guint8 producer)
{
  g_autoptr (GString) bytes = g_string_new (NULL);
  /* node { name: "x" op: op attr { dtype: DT_FLOAT } attr { shape {} } } versions { producer } */
  static const char attrs[] = "\x2a\x0b\x0a\x05"
                              "dtype\x12\x02\x30\x01\x2a\x0b\x0a\x05"
                              "shape\x12\x02\x3a";
  const gsize size = strlen (op);
  g_string_append_c (bytes, '\x0a');
  g_string_append_c (bytes, (char)(3 + 2 + size + sizeof attrs));
  g_string_append_len (bytes, "\x0a\x01x\x12", 4);
  g_string_append_c (bytes, (char)size);
  g_string_append (bytes, op);
  g_string_append_len (bytes, attrs, sizeof attrs); /* its NUL is the shape's size */
  g_string_append_len (bytes, "\x22\x02\x08", 3);
  g_string_append_c (bytes, (char)producer);
  g_autoptr (GBytes) graph = g_bytes_new (bytes->str, bytes->len);
  return muster_graph_new (graph);
}

/* TensorFlow's bound, which tests/tensorflow/foreign_graph_test.py compares with it. */
MUSTER_TEST (Plan, takes_an_empty_shape_for_an_unknown_one_of_early_producers_alone)
{
  static const struct {
    const char *op;
    guint8 producer;
    int n_dims;
  } cases[] = {{"Placeholder", 0, -1},   {"Placeholder", 21, -1},
               {"Placeholder", 22, 0},   {"Placeholder", 100, 0},
               {"PlaceholderV2", 21, 0}, {"PlaceholderWithDefault", 21, 0}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterGraph) graph = graph_of_producer (cases[i].op, cases[i].producer);
    gint64 dims[1];
    MUSTER_ASSERT_TRUE (muster_graph_parse (graph, NULL));
    MUSTER_EXPECT_EQ (muster_graph_feed_shape (graph, muster_graph_node (graph, 0), dims, 1),
                      cases[i].n_dims);
  }
}

MUSTER_TEST (Plan, says_which_target_is_missing_and_that_something_must_run)
{
  g_autoptr (GError) missing = NULL;
  g_autoptr (GError) nothing = NULL;
  g_autoptr (MusterSession) session = open_sum ();
  const MusterStep empty = {0};
  MUSTER_EXPECT_FALSE (
      muster_session_run_op (session, "nope", MUSTER_WAIT_FOREVER, NULL, &missing));
  MUSTER_EXPECT_FALSE (muster_session_run (session, &empty, NULL, NULL, NULL, &nothing));

  EXPECT_SAYS (missing, MUSTER_ERROR_NOT_FOUND,
               "PruneForTargets: Some target nodes not found: nope ");
  EXPECT_SAYS (nothing, MUSTER_ERROR_INVALID_ARGUMENT,
               "Must specify at least one target to fetch or execute.");
}

MUSTER_TEST (Plan, names_an_op_it_lacks_when_a_step_needs_it_and_the_way_out)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "two", 2);
  add_unary (b, "NoSuchOp", "first", "two");
  add_unary (b, "NoSuchOp", "second", "two");
  g_autoptr (MusterSession) session = open_session (master, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "two"), 2.0f);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "first", &error);

  MUSTER_EXPECT_NULL (got);
  EXPECT_SAYS (error, MUSTER_ERROR_NOT_FOUND, "Op type not registered 'NoSuchOp' in binary");
  EXPECT_SAYS (error, MUSTER_ERROR_NOT_FOUND, "used by 'first'");
  EXPECT_SAYS (error, MUSTER_ERROR_NOT_FOUND, "needs 1 operation (NoSuchOp in 1 node)");
  EXPECT_SAYS (error, MUSTER_ERROR_NOT_FOUND, "--master=grpc://");
}

MUSTER_TEST (Plan, knows_before_a_step_what_the_engine_lacks)
{
  static const char *const has[] = {"two", "not in the graph", NULL};
  static const char *const lacks[] = {"sum:0", NULL};
  static const char *const fed[] = {"first:0", "second", NULL};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "two", 2);
  add_unary (b, "NoSuchOp", "first", "two");
  add_unary (b, "NoSuchOp", "second", "first");
  add_unary (b, "Neg", "sum", "second");
  g_autoptr (MusterSession) session = open_session (master, b);
  MusterGraph *graph = muster_session_graph (session);

  MUSTER_EXPECT_STREQ (muster_session_lacks (session)[0], "NoSuchOp");
  MUSTER_EXPECT_NULL (muster_session_lacks (session)[1]);
  MUSTER_EXPECT_TRUE (muster_session_check_needs (session, graph, has, NULL, NULL));
  MUSTER_EXPECT_TRUE (muster_session_check_needs (session, graph, lacks, fed, NULL));
  MUSTER_EXPECT_FALSE (muster_session_check_needs (session, graph, lacks, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_UNIMPLEMENTED, "needs 1 operation (NoSuchOp in 2 nodes)");
  EXPECT_SAYS (error, MUSTER_ERROR_UNIMPLEMENTED, "add --master=tensorflow");
}

MUSTER_TEST (Plan, refuses_a_cycle)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_unary (b, "Neg", "a", "b");
  add_unary (b, "Neg", "b", "a");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "a", &error);

  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "cycle");
}

MUSTER_TEST (Plan, orders_nodes_by_control_edges)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_variable (b, "v", 5);
  muster_graph_builder_node (b, "Identity", "after");
  muster_graph_builder_input (b, "v");
  muster_graph_builder_input (b, "^v/Assign");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "after"), 5.0f);
}

MUSTER_TEST (Plan, runs_ten_thousand_nodes_in_a_chain)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "n0", 1);
  for (int i = 1; i <= 10000; i++) {
    g_autofree char *name = g_strdup_printf ("n%d", i);
    g_autofree char *input = g_strdup_printf ("n%d", i - 1);
    add_unary (b, "Neg", name, input);
  }
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "n9999"), -1.0f);
  MUSTER_EXPECT_EQ (fetch_float (session, "n10000"), 1.0f);
}

/* More kinds of steps than plans are kept. */
MUSTER_TEST (Plan, keeps_working_when_old_plans_are_dropped)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  for (int i = 0; i < 600; i++) {
    g_autofree char *name = g_strdup_printf ("c%d", i);
    add_constant (b, name, (float)i);
  }
  g_autoptr (MusterSession) session = open_session (NULL, b);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 600; i++) {
      g_autofree char *name = g_strdup_printf ("c%d", i);
      MUSTER_EXPECT_EQ (fetch_float (session, name), (float)i);
    }
}

/* Init ops are large and run once. */
MUSTER_TEST (Plan, of_very_many_nodes_is_kept_from_its_second_use_on)
{
  enum { N = 70000 };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  for (int i = 0; i < N; i++) {
    g_ptr_array_add (names, g_strdup_printf ("node_%d", i));
    muster_graph_builder_node (b, "NoOp", names->pdata[i]);
  }
  g_ptr_array_add (names, NULL);
  muster_graph_builder_group (b, "init", (const char *const *)names->pdata);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  const guint64 before = muster_memory_used (MUSTER_MEMORY_GRAPHS);

  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const guint64 once = muster_memory_used (MUSTER_MEMORY_GRAPHS);
  muster_session_run_op (session, "init", MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const guint64 twice = muster_memory_used (MUSTER_MEMORY_GRAPHS);

  MUSTER_EXPECT_LE (once, before + N);
  MUSTER_EXPECT_LE (before + N * sizeof (gpointer), twice);
}

MUSTER_TEST (Plan, runs_a_node_once_however_often_it_is_named)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_variable (b, "v", 0);
  add_constant (b, "one", 1);
  add_binary (b, "AssignAdd", "up", "v", "one");
  g_autoptr (MusterSession) session = open_session (NULL, b);
  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "v/Assign", MUSTER_WAIT_FOREVER, NULL, NULL));
  const char *const fetches[] = {"up", "up:0"};
  const char *target = "up";
  MusterTensor *got[2];
  const MusterStep step = {.fetches = fetches, .n_fetches = 2, .targets = &target, .n_targets = 1};

  MUSTER_ASSERT_TRUE (muster_session_run (session, &step, got, NULL, NULL, &error));

  MUSTER_EXPECT_EQ (float_of (got[0]), 1.0f);
  MUSTER_EXPECT_EQ (fetch_float (session, "v"), 1.0f);
  muster_tensor_unref (got[0]);
  muster_tensor_unref (got[1]);
}

/* A Const of zeros whose shape has one size, written as a varint. */
static void
put_zeros (GByteArray *graph, char *name, const char *size)
{
  g_autofree char *shape = g_strdup_printf ("\x08%s", size);
  g_autofree char *dim = g_strdup_printf ("\x12%c%s", (int)strlen (shape), shape);
  g_autofree char *proto = g_strdup_printf ("\x08\1\x12%c%s", (int)strlen (dim), dim);
  Tensorflow__AttrValue dtype = TENSORFLOW__ATTR_VALUE__INIT, value = dtype;
  dtype.value_case = TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
  dtype.type = MUSTER_FLOAT;
  value.value_case = TENSORFLOW__ATTR_VALUE__VALUE_TENSOR;
  value.tensor = (ProtobufCBinaryData){strlen (proto), (guint8 *)proto};
  Tensorflow__NodeDef__AttrEntry entries[] = {TENSORFLOW__NODE_DEF__ATTR_ENTRY__INIT,
                                              TENSORFLOW__NODE_DEF__ATTR_ENTRY__INIT};
  entries[0].key = "dtype";
  entries[0].value = &dtype;
  entries[1].key = "value";
  entries[1].value = &value;
  Tensorflow__NodeDef__AttrEntry *attrs[] = {&entries[0], &entries[1]};
  Tensorflow__NodeDef node = TENSORFLOW__NODE_DEF__INIT, *nodes[] = {&node};
  node.name = name;
  node.op = "Const";
  node.n_attr = 2;
  node.attr = attrs;
  Tensorflow__GraphDef def = TENSORFLOW__GRAPH_DEF__INIT;
  def.n_node = 1;
  def.node = nodes;
  g_autoptr (GBytes) packed = muster_pack (&def.base);
  g_byte_array_append (graph, g_bytes_get_data (packed, NULL), (guint)g_bytes_get_size (packed));
}

MUSTER_TEST (Plan, believes_what_all_constants_claim_together_only_up_to_a_bound)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  GByteArray *both = g_byte_array_new ();
  put_zeros (both, "four", "\4");
  put_zeros (both, "many", "\xfe\xff\xff\xff\1"); /* alone it would just be believed */
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (both);
  g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
  g_autoptr (MusterSession) session =
      muster_master_create_session (master, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (fetch_float (session, "four"), 0.0f);
  MUSTER_EXPECT_NULL (run_one (session, NULL, NULL, "many", &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}
