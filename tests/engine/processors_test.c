// SPDX-License-Identifier: Apache-2.0
/* Kernels on many processors: what they compute is the same, bit by bit, for any number of threads.
 */
#include "engine/run/parallel.h"
#include "tests/engine/fixture.h"

#include <math.h>

enum { M = 700, DEPTH = 150, N = 1100, N_ELEMENTS = 300001, N_BATCHES = 40, SIDE = 90 };

static const char *const fetches[] = {"product:0", "product_ta:0", "product_tb:0", "product_tab:0",
                                      "tall:0",    "batch:0",      "sum:0",        "scaled:0",
                                      "root:0",    "less:0",       "narrow:0",     "adam:0"};

/* Elements that don't sum exactly, the same in each call. */
static MusterTensor *
make_tensor (int n_dims, const gint64 *dims)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, n_dims, dims);
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    data[i] = (float)(((guint64)i * 2654435761u) % 1000003) / 1000003.0F + 0.001F;
  return tensor;
}

static void
add_tensor (MusterGraphBuilder *builder, const char *name, int n_dims, const gint64 *dims)
{
  g_autoptr (MusterTensor) tensor = make_tensor (n_dims, dims);
  muster_graph_builder_constant (builder, name, tensor);
}

static void
add_product (MusterGraphBuilder *builder, const char *name, const char *a, gboolean transposes_a,
             const char *b, gboolean transposes_b)
{
  add_binary (builder, "MatMul", name, a, b);
  muster_graph_builder_attr_bool (builder, "transpose_a", transposes_a);
  muster_graph_builder_attr_bool (builder, "transpose_b", transposes_b);
}

static void
add_adam (MusterGraphBuilder *builder)
{
  static const char *const slots[] = {"w", "m", "v"};
  static const char *const scalars[] = {"half", "half", "half", "half", "half", "half", "elements"};
  for (gsize i = 0; i < G_N_ELEMENTS (slots); i++) {
    g_autoptr (MusterTensor) value = make_tensor (1, (gint64[]){N_ELEMENTS});
    muster_graph_builder_variable (builder, slots[i], value);
  }
  muster_graph_builder_group (builder, "init",
                              (const char *const[]){"w/Assign", "m/Assign", "v/Assign", NULL});
  muster_graph_builder_node (builder, "ApplyAdam", "adam");
  for (gsize i = 0; i < G_N_ELEMENTS (slots); i++)
    muster_graph_builder_input (builder, slots[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (scalars); i++)
    muster_graph_builder_input (builder, scalars[i]);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
}

static MusterGraphBuilder *
make_graph (void)
{
  MusterGraphBuilder *builder = muster_graph_builder_new ();
  add_tensor (builder, "a", 2, (gint64[]){M, DEPTH});
  add_tensor (builder, "at", 2, (gint64[]){DEPTH, M});
  add_tensor (builder, "b", 2, (gint64[]){DEPTH, N});
  add_tensor (builder, "bt", 2, (gint64[]){N, DEPTH});
  add_tensor (builder, "many", 3, (gint64[]){N_BATCHES, SIDE, SIDE});
  add_tensor (builder, "elements", 1, (gint64[]){N_ELEMENTS});
  add_constant (builder, "half", 0.5F);
  add_product (builder, "product", "a", FALSE, "b", FALSE);
  add_product (builder, "product_ta", "at", TRUE, "b", FALSE);
  add_product (builder, "product_tb", "a", FALSE, "bt", TRUE);
  add_product (builder, "product_tab", "at", TRUE, "bt", TRUE);
  add_product (builder, "tall", "bt", FALSE, "at", FALSE);
  add_binary (builder, "BatchMatMulV2", "batch", "many", "many");
  add_binary (builder, "AddV2", "sum", "elements", "elements");
  add_binary (builder, "Mul", "scaled", "half", "elements");
  add_unary (builder, "Sqrt", "root", "elements");
  add_binary (builder, "Less", "less", "elements", "half");
  muster_graph_builder_node (builder, "Cast", "bf16");
  muster_graph_builder_input (builder, "elements");
  muster_graph_builder_attr_type (builder, "SrcT", MUSTER_FLOAT);
  muster_graph_builder_attr_type (builder, "DstT", MUSTER_BFLOAT16);
  muster_graph_builder_node (builder, "Mul", "narrow");
  muster_graph_builder_input (builder, "bf16");
  muster_graph_builder_input (builder, "bf16");
  muster_graph_builder_attr_type (builder, "T", MUSTER_BFLOAT16);
  add_adam (builder);
  return builder;
}

typedef struct {
  MusterTensor *values[G_N_ELEMENTS (fetches)];
} Results;

static void
results_clear (Results *self)
{
  for (gsize i = 0; i < G_N_ELEMENTS (fetches); i++)
    g_clear_pointer (&self->values[i], muster_tensor_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Results, results_clear)

/* With so many threads of the pool. */
static void
run_all (int n_threads, Results *results)
{
  static const char *const init[] = {"init"};
  const MusterStep first = {.targets = init, .n_targets = 1, .deadline_us = test_deadline ()};
  const MusterStep step = {
      .fetches = fetches, .n_fetches = G_N_ELEMENTS (fetches), .deadline_us = test_deadline ()};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) builder = make_graph ();
  g_autoptr (MusterSession) session = open_session (NULL, builder);
  muster_parallel_limit (n_threads);
  MUSTER_EXPECT_TRUE (muster_session_run (session, &first, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, results->values, NULL, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  muster_parallel_limit (-1);
}

MUSTER_TEST (Processors, change_no_bit_of_a_result)
{
  static const int n_threads[] = {1, 3, -1};
  g_auto (Results) alone = {0};
  run_all (0, &alone);
  for (gsize t = 0; t < G_N_ELEMENTS (n_threads); t++) {
    g_auto (Results) together = {0};
    run_all (n_threads[t], &together);
    for (gsize i = 0; i < G_N_ELEMENTS (fetches); i++) {
      MUSTER_TRACE ("%s, %d threads", fetches[i], n_threads[t]);
      MUSTER_ASSERT_TRUE (alone.values[i] != NULL && together.values[i] != NULL);
      MUSTER_EXPECT_EQ (memcmp (muster_tensor_data (alone.values[i]),
                                muster_tensor_data (together.values[i]),
                                muster_tensor_n_bytes (alone.values[i])),
                        0);
    }
  }
}

/* The five products, element by element; a part that is left out or misplaced would show. */
MUSTER_TEST (Processors, compute_each_part_of_a_product)
{
  static const struct {
    gint64 m, n, a_row, a_step, b_step, b_column;
  } products[] = {{M, N, DEPTH, 1, N, 1},
                  {M, N, 1, M, N, 1},
                  {M, N, DEPTH, 1, 1, DEPTH},
                  {M, N, 1, M, 1, DEPTH},
                  {N, M, DEPTH, 1, M, 1}};
  g_autoptr (MusterTensor) elements = make_tensor (1, (gint64[]){(gint64)DEPTH * N});
  const float *x = muster_tensor_data (elements);
  g_auto (Results) results = {0};
  run_all (3, &results);
  for (gsize p = 0; p < G_N_ELEMENTS (products); p++) {
    MUSTER_ASSERT_TRUE (results.values[p] != NULL);
    const float *c = muster_tensor_data (results.values[p]);
    gint64 n_wrong = 0;
    for (gint64 i = 0; i < products[p].m; i++)
      for (gint64 j = 0; j < products[p].n; j++) {
        double sum = 0;
        for (gint64 l = 0; l < DEPTH; l++)
          sum += (double)x[i * products[p].a_row + l * products[p].a_step] *
                 (double)x[l * products[p].b_step + j * products[p].b_column];
        n_wrong += !(fabs (sum - c[i * products[p].n + j]) < 1e-3);
      }
    MUSTER_TRACE ("%s", fetches[p]);
    MUSTER_EXPECT_EQ (n_wrong, 0);
  }
}
