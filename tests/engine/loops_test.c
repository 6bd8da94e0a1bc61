// SPDX-License-Identifier: Apache-2.0
/* Loops that several processors share: each element is where and what it has to be, for any number
 * of threads. */
#include "engine/run/parallel.h"
#include "tests/engine/fixture.h"

#include <math.h>

/* Of the operand x, and of what is picked from it; each result is several pieces. */
enum { A = 300, B = 40, C = 30, PICKS = 500, BATCH_PICKS = 50 };
enum { TABLE_ROWS = 1000, ROW = 64, N_UPDATES = 8192 };

/* Small whole numbers: their sums are exact in any order. */
static float
element (gint64 i)
{
  return (float)((i * 7919) % 101);
}

static void
add_floats (MusterGraphBuilder *builder, const char *name, int n_dims, const gint64 *dims)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_FLOAT, n_dims, dims);
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    data[i] = element (i);
  muster_graph_builder_constant (builder, name, tensor);
}

static gint32
index_at (gint64 i, gint64 limit)
{
  return (gint32)((i * i + 3) % limit);
}

static void
add_indices (MusterGraphBuilder *builder, const char *name, gint64 limit, int n_dims,
             const gint64 *dims)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_INT32, n_dims, dims);
  gint32 *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    data[i] = index_at (i, limit);
  muster_graph_builder_constant (builder, name, tensor);
}

static void
add_sum (MusterGraphBuilder *builder, const char *name, const gint32 *axes, gint64 n_axes)
{
  g_autofree char *axes_name = g_strconcat (name, "/axes", NULL);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_from_data (
      MUSTER_INT32, 1, &n_axes, axes, (gsize)n_axes * sizeof *axes, NULL);
  muster_graph_builder_constant (builder, axes_name, tensor);
  add_binary (builder, "Sum", name, "x", axes_name);
  muster_graph_builder_attr_type (builder, "Tidx", MUSTER_INT32);
}

static void
add_gather (MusterGraphBuilder *builder, const char *name, const char *indices, gint32 axis,
            gint64 batch_dims)
{
  g_autofree char *axis_name = g_strconcat (name, "/axis", NULL);
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new_from_data (MUSTER_INT32, 0, NULL, &axis, sizeof axis, NULL);
  muster_graph_builder_constant (builder, axis_name, tensor);
  muster_graph_builder_node (builder, "GatherV2", name);
  muster_graph_builder_input (builder, "x");
  muster_graph_builder_input (builder, indices);
  muster_graph_builder_input (builder, axis_name);
  muster_graph_builder_attr_type (builder, "Tparams", MUSTER_FLOAT);
  muster_graph_builder_attr_type (builder, "Tindices", MUSTER_INT32);
  muster_graph_builder_attr_type (builder, "Taxis", MUSTER_INT32);
  muster_graph_builder_attr_int (builder, "batch_dims", batch_dims);
}

/* --- what is computed, and each element of it --- */

static double
biased (gint64 i)
{
  return element (i) + element (i % C);
}

static double
scaled (gint64 i)
{
  return element (i) * element (i / (B * C));
}

static double
sum_of (gint64 first, gint64 n, gint64 step)
{
  double sum = 0;
  for (gint64 i = 0; i < n; i++)
    sum += element (first + i * step);
  return sum;
}

static double
sum_0 (gint64 i)
{
  return sum_of (i, A, B * C);
}

static double
sum_1 (gint64 i)
{
  return sum_of (i / C * B * C + i % C, B, C);
}

static double
sum_2 (gint64 i)
{
  return sum_of (i * C, C, 1);
}

static double
sum_02 (gint64 i)
{
  double sum = 0;
  for (gint64 a = 0; a < A; a++)
    sum += sum_of ((a * B + i) * C, C, 1);
  return sum;
}

static double
sum_all (gint64 i G_GNUC_UNUSED)
{
  return sum_of (0, A * B * C, 1);
}

static double
picked (gint64 i)
{
  return element (index_at (i / (B * C), A) * (B * C) + i % (B * C));
}

static double
picked_in_batches (gint64 i)
{
  const gint64 pick = i / C, batch = pick / BATCH_PICKS;
  return element ((batch * B + index_at (pick, B)) * C + i % C);
}

static const struct {
  const char *fetch;
  gint64 n;
  double (*expected) (gint64 i);
} results[] = {
    {"biased:0", A *B *C, biased},
    {"scaled:0", A *B *C, scaled},
    {"sum_0:0", B *C, sum_0},
    {"sum_1:0", A *C, sum_1},
    {"sum_2:0", A *B, sum_2},
    {"sum_02:0", B, sum_02},
    {"sum_all:0", 1, sum_all},
    {"picked:0", PICKS *B *C, picked},
    {"picked_in_batches:0", A *BATCH_PICKS *C, picked_in_batches},
};

static MusterGraphBuilder *
make_graph (void)
{
  MusterGraphBuilder *builder = muster_graph_builder_new ();
  add_floats (builder, "x", 3, (gint64[]){A, B, C});
  add_floats (builder, "bias", 1, (gint64[]){C});
  add_floats (builder, "factors", 3, (gint64[]){A, 1, 1});
  add_indices (builder, "picks", A, 1, (gint64[]){PICKS});
  add_indices (builder, "batch_picks", B, 2, (gint64[]){A, BATCH_PICKS});
  add_binary (builder, "AddV2", "biased", "x", "bias");
  add_binary (builder, "Mul", "scaled", "factors", "x");
  add_sum (builder, "sum_0", (gint32[]){0}, 1);
  add_sum (builder, "sum_1", (gint32[]){1}, 1);
  add_sum (builder, "sum_2", (gint32[]){2}, 1);
  add_sum (builder, "sum_02", (gint32[]){0, 2}, 2);
  add_sum (builder, "sum_all", (gint32[]){0, 1, 2}, 3);
  add_gather (builder, "picked", "picks", 0, 0);
  add_gather (builder, "picked_in_batches", "batch_picks", 1, 1);
  return builder;
}

static const int n_threads[] = {0, 1, 3, -1};

MUSTER_TEST (Loops, have_each_element_in_its_place)
{
  g_autoptr (MusterGraphBuilder) builder = make_graph ();
  g_autoptr (MusterSession) session = open_session (NULL, builder);
  for (gsize t = 0; t < G_N_ELEMENTS (n_threads); t++)
    for (gsize r = 0; r < G_N_ELEMENTS (results); r++) {
      g_autoptr (GError) error = NULL;
      g_autoptr (MusterTensor) value = NULL;
      const MusterStep step = {
          .fetches = &results[r].fetch, .n_fetches = 1, .deadline_us = test_deadline ()};
      muster_parallel_limit (n_threads[t]);
      MUSTER_EXPECT_TRUE (muster_session_run (session, &step, &value, NULL, NULL, &error));
      muster_parallel_limit (-1);
      MUSTER_TRACE ("%s, %d threads", results[r].fetch, n_threads[t]);
      MUSTER_ASSERT_NO_ERROR (error);
      MUSTER_ASSERT_EQ (muster_tensor_n_elements (value), results[r].n);
      const float *data = muster_tensor_data (value);
      gint64 n_wrong = 0;
      for (gint64 i = 0; i < results[r].n; i++)
        n_wrong += (double)data[i] != results[r].expected (i);
      MUSTER_EXPECT_EQ (n_wrong, 0);
    }
}

/* --- rows that are updated, some of them often --- */

static void
add_table (MusterGraphBuilder *builder, const char *name, float value)
{
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new (MUSTER_FLOAT, 2, (gint64[]){TABLE_ROWS, ROW});
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    data[i] = value;
  muster_graph_builder_variable (builder, name, tensor);
}

static MusterGraphBuilder *
make_embedding (void)
{
  static const char *const inputs[] = {"table", "accum", "rate", "gradient", "indices"};
  MusterGraphBuilder *builder = muster_graph_builder_new ();
  add_table (builder, "table", 1);
  add_table (builder, "accum", 0.1F);
  muster_graph_builder_group (builder, "init",
                              (const char *const[]){"table/Assign", "accum/Assign", NULL});
  add_constant (builder, "rate", 0.5F);
  add_floats (builder, "gradient", 2, (gint64[]){N_UPDATES, ROW});
  add_indices (builder, "indices", TABLE_ROWS, 1, (gint64[]){N_UPDATES});
  muster_graph_builder_node (builder, "SparseApplyAdagrad", "update");
  for (gsize i = 0; i < G_N_ELEMENTS (inputs); i++)
    muster_graph_builder_input (builder, inputs[i]);
  muster_graph_builder_attr_type (builder, "T", MUSTER_FLOAT);
  muster_graph_builder_attr_type (builder, "Tindices", MUSTER_INT32);
  return builder;
}

/* The updates one after the other. */
static float *
expected_table (void)
{
  float *table = g_new (float, TABLE_ROWS *ROW);
  g_autofree float *accum = g_new (float, TABLE_ROWS *ROW);
  for (gint64 i = 0; i < TABLE_ROWS * ROW; i++) {
    table[i] = 1;
    accum[i] = 0.1F;
  }
  for (gint64 u = 0; u < N_UPDATES; u++)
    for (gint64 c = 0; c < ROW; c++) {
      const gint64 at = (gint64)index_at (u, TABLE_ROWS) * ROW + c;
      const float gradient = element (u * ROW + c);
      accum[at] += gradient * gradient;
      table[at] -= gradient * 0.5F / sqrtf (accum[at]);
    }
  return table;
}

MUSTER_TEST (Loops, update_a_row_in_the_order_of_its_gradients)
{
  static const char *const init[] = {"init"}, *const fetches[] = {"update:0"};
  g_autofree float *expected = expected_table ();
  for (gsize t = 0; t < G_N_ELEMENTS (n_threads); t++) {
    const MusterStep first = {.targets = init, .n_targets = 1, .deadline_us = test_deadline ()};
    const MusterStep step = {.fetches = fetches, .n_fetches = 1, .deadline_us = test_deadline ()};
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) value = NULL;
    g_autoptr (MusterGraphBuilder) builder = make_embedding ();
    g_autoptr (MusterSession) session = open_session (NULL, builder);
    muster_parallel_limit (n_threads[t]);
    MUSTER_EXPECT_TRUE (muster_session_run (session, &first, NULL, NULL, NULL, &error));
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, &value, NULL, NULL, &error));
    muster_parallel_limit (-1);
    MUSTER_TRACE ("%d threads", n_threads[t]);
    MUSTER_ASSERT_NO_ERROR (error);
    const float *data = muster_tensor_data (value);
    gint64 n_wrong = 0;
    for (gint64 i = 0; i < TABLE_ROWS * ROW; i++)
      n_wrong += !(fabsf (data[i] - expected[i]) < 1e-3F);
    MUSTER_EXPECT_EQ (n_wrong, 0);
  }
}
