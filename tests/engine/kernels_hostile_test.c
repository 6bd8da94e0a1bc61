// SPDX-License-Identifier: Apache-2.0
/* Kernels that are given sizes and attributes which no program sends: they refuse them, or make
 * nothing of them. */
#include "tests/engine/fixture.h"

/* The largest square whose elements can still be counted. */
#define MANY G_GINT64_CONSTANT (3037000499)

/* No matrix at all, of so many rows and columns. */
static MusterTensor *
no_matrix (void)
{
  return muster_tensor_new_from_data (MUSTER_FLOAT, 3, (gint64[]){0, MANY, MANY}, "", 0, NULL);
}

/* What op's first output is, of no matrix for each of its inputs. */
static MusterTensor *
run_on_nothing (const char *op, int n_inputs, GError **error)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) x = no_matrix ();
  muster_graph_builder_node (b, "Placeholder", "x");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, op, "y");
  for (int i = 0; i < n_inputs; i++)
    muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  return run_one (session, "x:0", x, "y:0", error);
}

MUSTER_TEST (LinearAlgebra, of_no_matrices_is_nothing_however_large_they_would_be)
{
  static const struct {
    const char *op;
    int n_inputs;
  } ops[] = {
      {"MatrixInverse", 1},     {"MatrixSolve", 2}, {"MatrixTriangularSolve", 2}, {"Cholesky", 1},
      {"MatrixDeterminant", 1}, {"Qr", 1},          {"LogMatrixDeterminant", 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) y = run_on_nothing (ops[i].op, ops[i].n_inputs, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (y != NULL && muster_tensor_n_elements (y) == 0);
  }
}

/* A list is where a message has its union: what is no list mustn't be taken for one. */
MUSTER_TEST (FixedSampler, takes_no_number_for_a_list_of_them)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) classes =
      muster_tensor_new_from_data (MUSTER_INT64, 2, (gint64[]){0, 1}, "", 0, NULL);
  muster_graph_builder_constant (b, "classes", classes);
  muster_graph_builder_node (b, "FixedUnigramCandidateSampler", "sampler");
  muster_graph_builder_input (b, "classes");
  muster_graph_builder_attr_int (b, "num_true", 1);
  muster_graph_builder_attr_int (b, "num_sampled", 1);
  muster_graph_builder_attr_int (b, "range_max", 2);
  muster_graph_builder_attr_bool (b, "unique", FALSE);
  muster_graph_builder_attr_int (b, "unigrams", 12345);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) drawn = run_one (session, NULL, NULL, "sampler:0", &error);
  MUSTER_EXPECT_NULL (drawn);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "unigrams");
}

MUSTER_TEST (ImageSummary, refuses_an_image_that_is_too_large_before_it_allocates)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) tag = muster_tensor_new_string ("image");
  g_autoptr (MusterTensor) none = muster_tensor_new_from_data (
      MUSTER_UINT8, 4, (gint64[]){0, 1 << 14, (1 << 14) + 1, 1}, "", 0, NULL);
  muster_graph_builder_constant (b, "tag", tag);
  muster_graph_builder_constant (b, "images", none);
  muster_graph_builder_node (b, "ImageSummary", "summary");
  muster_graph_builder_input (b, "tag");
  muster_graph_builder_input (b, "images");
  muster_graph_builder_attr_type (b, "T", MUSTER_UINT8);
  g_autoptr (MusterSession) session = open_session (NULL, b);
  g_autoptr (MusterTensor) summary = run_one (session, NULL, NULL, "summary:0", &error);
  MUSTER_EXPECT_NULL (summary);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Tensor too large for summary");
}
