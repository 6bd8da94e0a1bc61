// SPDX-License-Identifier: Apache-2.0
/* What the functions of a library do with a variable; foreign_graph_test.py has TensorFlow's own.
 */
#include "base/protowire_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/graph_walk_private.h"
#include "graph/missing_ops_private.h"
#include "tests/gtest_shim.h"

/* Appends a node to a graph (number 1) or a function (3). Words are its inputs; "f=NAME" is an
 * attribute that names a function. */
static void
put_node (GByteArray *out, guint32 number, const char *op, const char *name, const char *words)
{
  g_autoptr (GByteArray) node = g_byte_array_new ();
  g_auto (GStrv) each = g_strsplit (words, " ", -1);
  muster_proto_put_string (node, 1, name);
  muster_proto_put_string (node, 2, op);
  for (char **word = each; *word != NULL; word++) {
    g_autoptr (GByteArray) list = g_byte_array_new ();
    g_autoptr (GByteArray) value = g_byte_array_new ();
    g_autoptr (GByteArray) attr = g_byte_array_new ();
    if (!g_str_has_prefix (*word, "f=")) {
      muster_proto_put_string (node, 3, *word);
      continue;
    }
    muster_proto_put_string (list, 1, *word + 2);
    muster_proto_put_bytes (value, 10, list->data, list->len);
    muster_proto_put_string (attr, 1, *word);
    muster_proto_put_bytes (attr, 2, value->data, value->len);
    muster_proto_put_bytes (node, 5, attr->data, attr->len);
  }
  muster_proto_put_bytes (out, number, node->data, node->len);
}

/* Begins a function of two arguments, "a" and "b". */
static GByteArray *
function_new (const char *name)
{
  g_autoptr (GByteArray) signature = g_byte_array_new ();
  GByteArray *function = g_byte_array_new ();
  muster_proto_put_string (signature, 1, name);
  for (const char *argument = "a\0b\0"; *argument; argument += 2) {
    g_autoptr (GByteArray) arg = g_byte_array_new ();
    muster_proto_put_string (arg, 1, argument);
    muster_proto_put_bytes (signature, 2, arg->data, arg->len);
  }
  muster_proto_put_bytes (function, 1, signature->data, signature->len);
  return function;
}

static void
put_function (GByteArray *graph, GByteArray *function)
{
  g_autoptr (GByteArray) library = g_byte_array_new ();
  muster_proto_put_bytes (library, 1, function->data, function->len);
  muster_proto_put_bytes (graph, 2, library->data, library->len);
  g_byte_array_unref (function);
}

/* A function whose body is one node. */
static void
put_small_function (GByteArray *graph, const char *name, const char *op, const char *words)
{
  GByteArray *function = function_new (name);
  put_node (function, 3, op, "node", words);
  put_function (graph, function);
}

static MusterGraph *
end (GByteArray *bytes)
{
  g_autoptr (GBytes) all = g_byte_array_free_to_bytes (bytes);
  return muster_graph_new (all);
}

/* The variables v and w. */
static GByteArray *
begin (void)
{
  GByteArray *bytes = g_byte_array_new ();
  put_node (bytes, 1, "VarHandleOp", "v", "");
  put_node (bytes, 1, "VarHandleOp", "w", "");
  return bytes;
}

/* The names of the variables that a node writes. */
static char *
written (MusterGraph *graph, const char *node)
{
  g_autoptr (GArray) found = g_array_new (FALSE, FALSE, sizeof (gsize));
  GString *text = g_string_new (NULL);
  muster_graph_written (graph, (gsize)muster_graph_find_named (graph, node), found);
  for (guint i = 0; i < found->len; i++)
    g_string_append (text, muster_graph_node (graph, g_array_index (found, gsize, i))->name);
  return g_string_free (text, FALSE);
}

#define EXPECT_WRITTEN(graph, node, names)                                                         \
  do {                                                                                             \
    g_autofree char *found_ = written (graph, node);                                               \
    MUSTER_EXPECT_STREQ (found_, names);                                                           \
  } while (0)

MUSTER_TEST (functions, that_only_read_write_nothing_however_they_call_themselves)
{
  enum { N = 300 };
  GByteArray *bytes = begin ();
  GByteArray *function = function_new ("reads");
  put_node (function, 3, "ReadVariableOp", "value", "a");
  for (int i = 0; i < N; i++) {
    g_autofree char *name = g_strdup_printf ("again_%d", i);
    put_node (function, 3, "StatefulPartitionedCall", name, "a b f=reads");
  }
  put_function (bytes, function);
  for (int i = 0; i < N; i++) {
    g_autofree char *name = g_strdup_printf ("call_%d", i);
    put_node (bytes, 1, "StatefulPartitionedCall", name, "v w f=reads");
  }
  g_autoptr (MusterGraph) graph = end (bytes);
  for (int i = 0; i < N; i++) {
    g_autofree char *name = g_strdup_printf ("call_%d", i);
    EXPECT_WRITTEN (graph, name, "");
  }
}

MUSTER_TEST (functions, that_call_one_another_in_a_circle_write_what_one_of_them_writes)
{
  GByteArray *bytes = begin ();
  put_small_function (bytes, "one", "If", "cond a b f=other f=reads");
  GByteArray *function = function_new ("other");
  put_node (function, 3, "While", "loop", "b a f=one f=reads");
  put_node (function, 3, "Identity", "passed", "b");
  put_node (function, 3, "AssignAddVariableOp", "add", "passed:output:0 value");
  put_function (bytes, function);
  put_small_function (bytes, "reads", "ReadVariableOp", "a");
  put_node (bytes, 1, "StatefulPartitionedCall", "both", "v w f=one");
  put_node (bytes, 1, "StatefulPartitionedCall", "neither", "v w f=reads");
  put_node (bytes, 1, "If", "branch", "v:0 v w f=reads f=second");
  put_small_function (bytes, "second", "AssignVariableOp", "b value");
  g_autoptr (MusterGraph) graph = end (bytes);
  EXPECT_WRITTEN (graph, "both", "vw");
  EXPECT_WRITTEN (graph, "neither", "");
  EXPECT_WRITTEN (graph, "branch", "w");
}

MUSTER_TEST (functions, write_by_a_node_whose_op_is_the_function)
{
  GByteArray *bytes = begin ();
  put_small_function (bytes, "writes", "AssignVariableOp", "b value");
  put_small_function (bytes, "inner", "writes", "b a");
  put_node (bytes, 1, "writes", "own", "v w");
  put_node (bytes, 1, "StatefulPartitionedCall", "call", "v w f=inner");
  g_autoptr (MusterGraph) graph = end (bytes);
  EXPECT_WRITTEN (graph, "own", "w");
  EXPECT_WRITTEN (graph, "call", "v");
}

MUSTER_TEST (functions, may_write_by_an_op_that_isnt_known_to_read)
{
  static const char *const ops[] = {"RngReadAndSkip", "StatefulUniform", "MapDataset",
                                    "SymbolicGradient", "IdentityN"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    GByteArray *bytes = begin ();
    put_small_function (bytes, "function", ops[i], "a f=reads");
    put_small_function (bytes, "reads", "ReadVariableOp", "a");
    put_node (bytes, 1, "StatefulPartitionedCall", "call", "v w f=function");
    g_autoptr (MusterGraph) graph = end (bytes);
    EXPECT_WRITTEN (graph, "call", "v");
  }
}

MUSTER_TEST (functions, get_the_inputs_behind_those_that_choose_them)
{
  static const char *const inputs[] = {"target v w", "one two three v"};
  static const char *const ops[] = {"RemoteCall", "For"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    GByteArray *bytes = begin ();
    for (const char *const *name = (const char *const[]){"target", "one", "two", "three", NULL};
         *name; name++)
      put_node (bytes, 1, "Const", *name, "");
    put_small_function (bytes, "second", "AssignVariableOp", "b value");
    g_autofree char *words = g_strconcat (inputs[i], " f=second", NULL);
    put_node (bytes, 1, ops[i], "call", words);
    g_autoptr (MusterGraph) graph = end (bytes);
    EXPECT_WRITTEN (graph, "call", i == 0 ? "w" : "v"); /* a loop's first argument is its number */
  }
}

MUSTER_TEST (functions, that_are_lacking_may_write)
{
  GByteArray *bytes = begin ();
  put_small_function (bytes, "inner", "PartitionedCall", "b f=lacking");
  put_node (bytes, 1, "PartitionedCall", "lacks", "v w f=lacking");
  put_node (bytes, 1, "PartitionedCall", "call", "v w f=inner");
  g_autoptr (MusterGraph) graph = end (bytes);
  EXPECT_WRITTEN (graph, "lacks", "vw");
  EXPECT_WRITTEN (graph, "call", "w");
}

MUSTER_TEST (functions, have_the_ops_of_those_that_they_refer_to)
{
  GByteArray *bytes = begin ();
  put_small_function (bytes, "one", "If", "a f=other f=one");
  put_small_function (bytes, "other", "MapDataset", "a f=python f=one");
  put_small_function (bytes, "python", "PyFunc", "a");
  put_small_function (bytes, "none", "Case", "a f=none f=lacking");
  put_node (bytes, 1, "FilterDataset", "without", "v f=none");
  put_node (bytes, 1, "FilterDataset", "with", "v f=one");
  g_autoptr (MusterGraph) graph = end (bytes);
  MUSTER_ASSERT_EQ (muster_graph_n_nodes (graph), 4u);
  const guint8 all[] = {TRUE, TRUE, TRUE, TRUE, FALSE};
  const guint8 others[] = {TRUE, TRUE, TRUE, FALSE, FALSE};
  MUSTER_EXPECT_STREQ (muster_graph_program_op (graph, all)->name, "with");
  MUSTER_EXPECT_NULL (muster_graph_program_op (graph, others));
}

/* Consumers before what they consume: each of many needs no pass of its own over the graph. */
MUSTER_TEST (graph_walk, finds_loops_and_merges_in_any_order)
{
  enum { N = 20000 };
  GByteArray *bytes = g_byte_array_new ();
  put_node (bytes, 1, "Identity", "after", "whole exit");
  put_node (bytes, 1, "Exit", "exit", "loop_0");
  put_node (bytes, 1, "Merge", "whole", "branch_0 switch");
  for (int i = 0; i < N; i++) {
    g_autofree char *branch = g_strdup_printf ("branch_%d", i);
    g_autofree char *loop = g_strdup_printf ("loop_%d", i);
    g_autofree char *before = g_strdup_printf (i + 1 < N ? "branch_%d" : "switch:1", i + 1);
    g_autofree char *inner = g_strdup_printf (i + 1 < N ? "loop_%d" : "enter", i + 1);
    put_node (bytes, 1, "Identity", branch, before);
    put_node (bytes, 1, "Identity", loop, inner);
  }
  put_node (bytes, 1, "Enter", "enter", "x");
  put_node (bytes, 1, "Switch", "switch", "x x");
  put_node (bytes, 1, "Const", "x", "");
  g_autoptr (MusterGraph) graph = end (bytes);
  const gsize n = muster_graph_n_nodes (graph);
  g_autofree guint8 *in_loop = muster_graph_mark_loops (graph);
  gsize n_in_loop = 0;
  for (gsize i = 0; i < n; i++)
    n_in_loop += in_loop[i];
  MUSTER_EXPECT_EQ (n_in_loop, (gsize)N + 1);
  MUSTER_EXPECT_FALSE (in_loop[muster_graph_find_named (graph, "after")]);
  MUSTER_EXPECT_EQ (muster_graph_whole_of_branch (graph, n - 5), 2u);
  MUSTER_EXPECT_EQ (muster_graph_whole_of_branch (graph, 0), 0u);
}
