// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_difference_private.h"

#include "graph/graph_builder.h"
#include "tests/gtest_shim.h"

static MusterGraph *
end (MusterGraphBuilder *builder)
{
  g_autoptr (GError) error = NULL;
  MusterGraph *graph = muster_graph_builder_end (builder, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return graph;
}

typedef void (*Change) (MusterGraphBuilder *builder);

/* "x" and "y", placeholders, and what a change makes of "z". */
static MusterGraph *
graph_with (Change change)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_placeholder (builder, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_placeholder (builder, "y", MUSTER_FLOAT, 0, NULL);
  if (change != NULL)
    change (builder);
  return end (builder);
}

#define EXPECT_DIFFERENCE(a, b, words)                                                             \
  do {                                                                                             \
    g_autofree char *difference_ = muster_graph_difference (a, b);                                 \
    MUSTER_EXPECT_STREQ (difference_, words);                                                      \
  } while (0)
#define EXPECT_SAME(a, b)                                                                          \
  do {                                                                                             \
    g_autofree char *difference_ = muster_graph_difference (a, b);                                 \
    MUSTER_EXPECT_TRUE (difference_ == NULL);                                                      \
  } while (0)

/* What the two changes make of one graph differs in these words. */
static void
expect (Change mine, Change chiefs, const char *words)
{
  g_autoptr (MusterGraph) a = graph_with (mine);
  g_autoptr (MusterGraph) b = graph_with (chiefs);
  g_autofree char *difference = muster_graph_difference (a, b);
  if (words != NULL)
    MUSTER_EXPECT_STREQ (difference, words);
  else
    MUSTER_EXPECT_TRUE (difference == NULL);
}

static void
shape_of (MusterGraphBuilder *b, gint64 size)
{
  muster_graph_builder_node (b, "VariableV2", "dense/kernel");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 2, (const gint64[]){784, size});
}
static void
ten (MusterGraphBuilder *b)
{
  shape_of (b, 10);
}
static void
twenty (MusterGraphBuilder *b)
{
  shape_of (b, 20);
}

MUSTER_TEST (GraphDifference, is_none_between_graphs_of_the_same_bytes)
{
  expect (ten, ten, NULL);
}

MUSTER_TEST (GraphDifference, names_the_node_and_the_attribute)
{
  expect (ten, twenty,
          "node 'dense/kernel' (VariableV2): attr shape is [784,10], but [784,20] in the chief's");
}

MUSTER_TEST (GraphDifference, names_a_node_that_only_one_has)
{
  expect (ten, NULL, "node 'dense/kernel' (VariableV2) is not in the chief's");
  expect (NULL, ten, "node 'dense/kernel' (VariableV2) is only in the chief's");
}

static void
ten_and_more (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "NoOp", "mine");
  shape_of (b, 10);
}

MUSTER_TEST (GraphDifference, names_a_node_that_both_have_first)
{
  expect (ten_and_more, twenty,
          "node 'dense/kernel' (VariableV2): attr shape is [784,10], but [784,20] in the chief's");
}

static void
a_then_b (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "NoOp", "a");
  muster_graph_builder_node (b, "NoOp", "b");
}
static void
b_then_a (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "NoOp", "b");
  muster_graph_builder_node (b, "NoOp", "a");
}

MUSTER_TEST (GraphDifference, ignores_the_order_of_nodes)
{
  expect (a_then_b, b_then_a, NULL);
}

static void
attrs_one_way (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "Op", "z");
  muster_graph_builder_attr_int (b, "i", 1);
  muster_graph_builder_attr_float (b, "f", 0.5f);
  muster_graph_builder_attr_bool (b, "b", TRUE);
  muster_graph_builder_attr_string (b, "s", "text");
  muster_graph_builder_attr_types (b, "types", (const MusterDType[]){MUSTER_FLOAT}, 1);
}
static void
attrs_the_other_way (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "Op", "z");
  muster_graph_builder_attr_types (b, "types", (const MusterDType[]){MUSTER_FLOAT}, 1);
  muster_graph_builder_attr_string (b, "s", "text");
  muster_graph_builder_attr_bool (b, "b", TRUE);
  muster_graph_builder_attr_float (b, "f", 0.5f);
  muster_graph_builder_attr_int (b, "i", 1);
  muster_graph_builder_attr_string (b, "_class", "loc:@elsewhere");
}

MUSTER_TEST (GraphDifference, ignores_the_order_of_attributes_and_notes)
{
  expect (attrs_one_way, attrs_the_other_way, NULL);
}

#define ATTR_CHANGE(name, call)                                                                    \
  static void name (MusterGraphBuilder *b)                                                         \
  {                                                                                                \
    muster_graph_builder_node (b, "Op", "z");                                                      \
    call;                                                                                          \
  }
ATTR_CHANGE (no_attr, (void)0)
ATTR_CHANGE (int_one, muster_graph_builder_attr_int (b, "v", 1))
ATTR_CHANGE (int_two, muster_graph_builder_attr_int (b, "v", 2))
ATTR_CHANGE (float_one, muster_graph_builder_attr_float (b, "v", 1))
ATTR_CHANGE (float_two, muster_graph_builder_attr_float (b, "v", 2))
ATTR_CHANGE (is_true, muster_graph_builder_attr_bool (b, "v", TRUE))
ATTR_CHANGE (is_false, muster_graph_builder_attr_bool (b, "v", FALSE))
ATTR_CHANGE (text_a, muster_graph_builder_attr_string (b, "v", "a"))
ATTR_CHANGE (text_b, muster_graph_builder_attr_string (b, "v", "b\n"))
ATTR_CHANGE (type_float, muster_graph_builder_attr_type (b, "v", MUSTER_FLOAT))
ATTR_CHANGE (type_int, muster_graph_builder_attr_type (b, "v", MUSTER_INT32))
ATTR_CHANGE (types_one,
             muster_graph_builder_attr_types (b, "v", (const MusterDType[]){MUSTER_FLOAT}, 1))
ATTR_CHANGE (types_two,
             muster_graph_builder_attr_types (b, "v",
                                              (const MusterDType[]){MUSTER_FLOAT, MUSTER_FLOAT}, 2))
static void
tensor_of (MusterGraphBuilder *b, float value)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_float (value);
  muster_graph_builder_attr_tensor (b, "v", tensor);
}
ATTR_CHANGE (tensor_one, tensor_of (b, 1))
ATTR_CHANGE (tensor_two, tensor_of (b, 2))

MUSTER_TEST (GraphDifference, reports_every_kind_of_attribute)
{
  expect (int_one, int_two, "node 'z' (Op): attr v is 1, but 2 in the chief's");
  expect (float_one, float_two, "node 'z' (Op): attr v is 1, but 2 in the chief's");
  expect (is_true, is_false, "node 'z' (Op): attr v is true, but false in the chief's");
  expect (text_a, text_b, "node 'z' (Op): attr v is 'a', but 'b ' in the chief's");
  expect (type_float, type_int, "node 'z' (Op): attr v is float, but int32 in the chief's");
  expect (types_one, types_two, "node 'z' (Op): attr v differs");
  expect (tensor_one, tensor_two, "node 'z' (Op): attr v differs");
  expect (int_one, float_one, "node 'z' (Op): attr v differs");
  expect (int_one, no_attr, "node 'z' (Op): attr v is only here");
  expect (no_attr, int_one, "node 'z' (Op): attr v is only in the chief's");
  expect (tensor_one, tensor_one, NULL);
}

/* "z", whose attribute "f" is the function "g" of T = type. */
static MusterGraph *
with_function (char type)
{
  char def[] = "\x0a\x1c\x0a\x01z\x12\x02Op\x2a\x13\x0a\x01"
               "f\x12\x0e\x52\x0c\x0a\x01g\x12"
               "\x07\x0a\x01T\x12\x02\x30\x01";
  def[sizeof def - 2] = type;
  g_autoptr (GBytes) bytes = g_bytes_new (def, sizeof def - 1);
  return muster_graph_new (bytes);
}

MUSTER_TEST (GraphDifference, compares_functions)
{
  g_autoptr (MusterGraph) of_float = with_function (MUSTER_FLOAT);
  g_autoptr (MusterGraph) of_int = with_function (MUSTER_INT32);
  g_autoptr (GBytes) none = g_bytes_new_static ("\x22\x00", 2); /* versions */
  g_autoptr (MusterGraph) rest = muster_graph_new (none);
  g_autoptr (MusterGraph) same = muster_graph_extended (of_float, rest);
  EXPECT_DIFFERENCE (of_float, of_int, "node 'z' (Op): attr f differs");
  EXPECT_SAME (of_float, same);
}

static void
another_op (MusterGraphBuilder *b)
{
  muster_graph_builder_node (b, "Another", "z");
}

MUSTER_TEST (GraphDifference, reports_an_op_of_another_kind)
{
  expect (no_attr, another_op, "node 'z' (Op): it is of op Another in the chief's");
}

static void
sum_of (MusterGraphBuilder *b, const char *const *inputs)
{
  muster_graph_builder_node (b, "Sum", "z");
  for (; *inputs != NULL; inputs++)
    muster_graph_builder_input (b, *inputs);
}
#define INPUTS(name, ...)                                                                          \
  static void name (MusterGraphBuilder *b)                                                         \
  {                                                                                                \
    sum_of (b, (const char *const[]){__VA_ARGS__, NULL});                                          \
  }
INPUTS (of_x, "x")
INPUTS (of_x_0, "x:0")
INPUTS (of_x_1, "x:1")
INPUTS (of_y, "y")
INPUTS (of_both, "x", "y")
INPUTS (after_x_y, "x", "^x", "^y")
INPUTS (after_y_x, "x", "^y", "^x")
INPUTS (after_y, "x", "^y")

MUSTER_TEST (GraphDifference, reports_inputs)
{
  expect (of_x, of_x_0, NULL);
  expect (of_x, of_y, "node 'z' (Sum): input 0 is 'x', but 'y' in the chief's");
  expect (of_x, of_x_1, "node 'z' (Sum): input 0 is 'x', but 'x:1' in the chief's");
  expect (of_x, of_both, "node 'z' (Sum): it has 1 inputs, but 2 in the chief's");
  expect (after_x_y, after_y_x, NULL);
  expect (after_x_y, after_y, "node 'z' (Sum): its control inputs differ");
  expect (after_y, after_x_y, "node 'z' (Sum): its control inputs differ");
}

#define PLACED(name, where)                                                                        \
  static void name (MusterGraphBuilder *b)                                                         \
  {                                                                                                \
    muster_graph_builder_node (b, "Op", "z");                                                      \
    muster_graph_builder_device (b, where);                                                        \
  }
PLACED (on_worker_0, "/job:worker/task:0")
PLACED (on_worker_1, "/job:worker/task:1")
PLACED (on_ps_0, "/job:ps/task:0")
PLACED (on_ps_1, "/job:ps/task:1")

MUSTER_TEST (GraphDifference, compares_a_place_only_on_a_parameter_server)
{
  expect (on_worker_0, on_worker_1, NULL);
  expect (on_ps_0, on_ps_1,
          "node 'z' (Op): it is placed on '/job:ps/task:0', but on '/job:ps/task:1' in the "
          "chief's");
  expect (on_worker_0, on_ps_1,
          "node 'z' (Op): it is placed on '/job:worker/task:0', but on '/job:ps/task:1' in the "
          "chief's");
}

MUSTER_TEST (GraphDifference, stays_a_short_line_whatever_the_names)
{
  g_autofree char *name = g_strnfill (100000, 'n');
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  muster_graph_builder_node (builder, name, name);
  g_autoptr (MusterGraph) long_named = end (builder);
  g_autoptr (MusterGraph) plain = graph_with (NULL);

  g_autofree char *difference = muster_graph_difference (long_named, plain);

  MUSTER_ASSERT_NOT_NULL (difference);
  MUSTER_EXPECT_LT (strlen (difference), 400u);
  MUSTER_EXPECT_TRUE (strstr (difference, "nnn…' (nnn") != NULL);
}

MUSTER_TEST (GraphDifference, says_when_a_graph_cannot_be_read)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\x0a\xff", 2);
  g_autoptr (MusterGraph) broken = muster_graph_new (bytes);
  g_autoptr (MusterGraph) plain = graph_with (NULL);
  EXPECT_DIFFERENCE (broken, plain, "this graph can't be read");
  EXPECT_DIFFERENCE (plain, broken, "the chief's graph can't be read");
  EXPECT_SAME (broken, broken);
}
