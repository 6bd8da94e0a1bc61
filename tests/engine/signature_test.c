// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/fixture.h"

/* Runs node "bad" and expects to be refused with a text. */
static void
expect_refused (MusterGraphBuilder *b, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_session (NULL, b);
  MUSTER_EXPECT_FALSE (muster_session_run_op (session, "bad", MUSTER_WAIT_FOREVER, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, text);
}

MUSTER_TEST (Signature, refuses_an_input_of_another_dtype)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 1);
  muster_graph_builder_node (b, "Neg", "bad");
  muster_graph_builder_input (b, "c:0");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);

  expect_refused (b, "Input 0 of node bad was passed float from c:0 incompatible with expected "
                     "int32.");
}

MUSTER_TEST (Signature, refuses_a_value_where_a_reference_is_wanted)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 1);
  add_binary (b, "Assign", "bad", "c", "c");

  expect_refused (b, "was passed float from c incompatible with expected float_ref.");
}

MUSTER_TEST (Signature, refuses_a_dtype_that_the_op_does_not_take)
{
  g_autoptr (MusterTensor) text = muster_tensor_new_string ("hello");
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_constant (b, "c", text);
  muster_graph_builder_node (b, "Neg", "bad");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_attr_type (b, "T", MUSTER_STRING);

  expect_refused (b, "Value for attr 'T' of string is not in the list of allowed values");
}

/* The signature takes "float" in a list for itself, not for the set of that name. */
MUSTER_TEST (Signature, refuses_a_float_of_another_size_than_those_that_are_listed)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 1);
  muster_graph_builder_node (b, "Cast", "half");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_attr_type (b, "SrcT", MUSTER_FLOAT);
  muster_graph_builder_attr_type (b, "DstT", MUSTER_HALF);
  add_unary (b, "Bucketize", "bad", "half");
  muster_graph_builder_attr_type (b, "T", MUSTER_HALF);

  expect_refused (b, "Value for attr 'T' of half is not in the list of allowed values: float, "
                     "double, int32, int64");
}

/* A step of a negation with one more attribute. */
static gboolean
negates_with (const char *attribute, GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 3);
  muster_graph_builder_node (b, "Neg", "minus");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_bool (b, attribute, FALSE);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "minus", error);
  return got != NULL;
}

MUSTER_TEST (Signature, refuses_an_attribute_that_the_op_does_not_have)
{
  g_autoptr (GError) error = NULL, none = NULL;
  MUSTER_EXPECT_FALSE (negates_with ("keep_dims", &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "NodeDef mentions attr 'keep_dims' not in Op<name=Neg>; NodeDef: {{node minus}}");
  MUSTER_EXPECT_TRUE (negates_with ("_internal", &none));
  MUSTER_EXPECT_NO_ERROR (none);
  MUSTER_EXPECT_TRUE (negates_with ("use_locking", &none));
  MUSTER_EXPECT_NO_ERROR (none);
}

MUSTER_TEST (Signature, refuses_an_attribute_that_must_be_false_by_name)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 3);
  for (int i = 0; i < 2; i++) {
    muster_graph_builder_node (b, "Cast", i == 0 ? "rounds" : "truncates");
    muster_graph_builder_input (b, "c");
    muster_graph_builder_attr_type (b, "SrcT", MUSTER_FLOAT);
    muster_graph_builder_attr_type (b, "DstT", MUSTER_FLOAT);
    muster_graph_builder_attr_bool (b, "Truncate", i == 1);
  }
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "rounds"), 3.0f);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "truncates", &error);
  EXPECT_SAYS (error, MUSTER_ERROR_UNIMPLEMENTED,
               "attr 'Truncate' of node 'truncates' (op 'Cast') is true, which muster's own engine "
               "doesn't support; use TensorFlow's runtime");
}

MUSTER_TEST (Signature, refuses_too_few_and_too_many_inputs)
{
  g_autoptr (MusterGraphBuilder) few = muster_graph_builder_new ();
  add_constant (few, "c", 1);
  add_unary (few, "AddV2", "bad", "c");
  g_autoptr (MusterGraphBuilder) many = muster_graph_builder_new ();
  add_constant (many, "c", 1);
  add_binary (many, "Neg", "bad", "c", "c");

  expect_refused (few, "Node 'bad' (op 'AddV2') takes 2 inputs");
  expect_refused (many, "Node 'bad' (op 'Neg') takes 1 inputs");
}

MUSTER_TEST (Signature, refuses_an_output_that_the_source_does_not_have)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 1);
  add_unary (b, "Neg", "bad", "c:2");

  expect_refused (
      b, "Node 'bad': Connecting to invalid output 2 of source node c which has 1 outputs.");
}

MUSTER_TEST (Signature, takes_an_absent_type_from_the_input)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 3);
  muster_graph_builder_node (b, "Neg", "minus");
  muster_graph_builder_input (b, "c");
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "minus"), -3.0f);
}

MUSTER_TEST (Signature, reads_a_counted_input)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_constant (b, "c", 3);
  add_constant (b, "d", 4);
  muster_graph_builder_node (b, "AddN", "sum");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_input (b, "d");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_attr_int (b, "N", 3);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_node (b, "AddN", "lies");
  muster_graph_builder_input (b, "c");
  muster_graph_builder_attr_int (b, "N", 1000000000000);
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = open_session (NULL, b);

  MUSTER_EXPECT_EQ (fetch_float (session, "sum"), 10.0f);
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "lies", &error);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "'N'");
}
