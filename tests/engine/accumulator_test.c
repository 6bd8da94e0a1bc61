// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/accumulator.h"

#include "tests/engine/fixture.h"

static const MusterAccumulatorKind mean_kind = {.dtype = MUSTER_FLOAT, .n_dims = -1};

static gboolean
apply (MusterAccumulator *self, gint64 step, float value)
{
  g_autoptr (MusterTensor) gradient = muster_tensor_new_float (value);
  return muster_accumulator_apply (self, step, gradient, NULL);
}

static GMutex lock;
static GCond changed;

/* Who asks, and what came of it. */
typedef struct {
  guint n_called; /* guarded by lock, as the others */
  float value;
  gboolean cancelled;
} Taker;

static void
on_taken (gpointer data, MusterAccumulated *taken, GError *error)
{
  Taker *subscriber = data;
  g_mutex_lock (&lock);
  subscriber->n_called++;
  subscriber->cancelled = muster_error_is (error, MUSTER_ERROR_CANCELLED);
  if (taken != NULL) {
    subscriber->value = float_of (taken->parts[0]);
    muster_accumulated_clear (taken);
  }
  g_clear_error (&error);
  g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}

MUSTER_TEST (Accumulator, serves_those_who_ask_in_their_order)
{
  Taker first = {0}, second = {0};
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&mean_kind);
  muster_accumulator_take (self, 2, &first, on_taken);
  muster_accumulator_take (self, 1, &second, on_taken);

  apply (self, 0, 2);
  MUSTER_EXPECT_EQ (first.n_called + second.n_called, 0u);
  apply (self, 0, 4);
  MUSTER_EXPECT_EQ (first.n_called, 1u);
  MUSTER_EXPECT_EQ (first.value, 3.0f);
  MUSTER_EXPECT_EQ (second.n_called, 0u);

  apply (self, 0, 7); /* of the step before: taking has counted one up */
  MUSTER_EXPECT_EQ (muster_accumulator_n_accumulated (self), 0);
  apply (self, 1, 9);
  MUSTER_EXPECT_EQ (second.value, 9.0f);
  MUSTER_EXPECT_EQ (muster_accumulator_n_accumulated (self), 0);
}

MUSTER_TEST (Accumulator, lets_nobody_jump_the_queue)
{
  Taker first = {0};
  MusterAccumulated taken;
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&mean_kind);
  muster_accumulator_take (self, 2, &first, on_taken);
  apply (self, 0, 1);

  MUSTER_EXPECT_FALSE (muster_accumulator_try_take (self, 1, &taken, NULL));
  muster_accumulator_cancel (self, &first);
  MUSTER_EXPECT_TRUE (first.cancelled);
  MUSTER_ASSERT_TRUE (muster_accumulator_try_take (self, 1, &taken, NULL));
  MUSTER_EXPECT_EQ (float_of (taken.parts[0]), 1.0f);
  muster_accumulated_clear (&taken);
}

MUSTER_TEST (Accumulator, serves_those_behind_one_who_gives_up)
{
  Taker first = {0}, second = {0}, third = {0};
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&mean_kind);
  muster_accumulator_take (self, 5, &first, on_taken);
  muster_accumulator_take (self, 1, &second, on_taken);
  muster_accumulator_take (self, 1, &third, on_taken);
  apply (self, 0, 8);

  muster_accumulator_cancel (self, &first);
  muster_accumulator_cancel (self, &first); /* once is enough */
  MUSTER_EXPECT_EQ (first.n_called, 1u);
  MUSTER_EXPECT_EQ (second.value, 8.0f);

  muster_accumulator_cancel (self, NULL);
  MUSTER_EXPECT_TRUE (third.cancelled);
}

/* The first gradient is held as it came, and must stay as it is. */
MUSTER_TEST (Accumulator, leaves_the_gradients_alone)
{
  MusterAccumulated taken;
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&mean_kind);
  g_autoptr (MusterTensor) gradient = muster_tensor_new_float (3);
  MUSTER_ASSERT_TRUE (muster_accumulator_apply (self, 0, gradient, NULL));
  MUSTER_ASSERT_TRUE (muster_accumulator_apply (self, 0, gradient, NULL));
  MUSTER_ASSERT_TRUE (muster_accumulator_apply (self, 0, gradient, NULL));
  MUSTER_ASSERT_TRUE (muster_accumulator_try_take (self, 3, &taken, NULL));
  MUSTER_EXPECT_EQ (float_of (taken.parts[0]), 3.0f);
  MUSTER_EXPECT_EQ (float_of (gradient), 3.0f);
  muster_accumulated_clear (&taken);
}

static MusterTensor *
row_indices (gint64 first, gint64 second)
{
  const gint64 n = 2, indices[] = {first, second};
  return muster_tensor_new_from_data (MUSTER_INT64, 1, &n, indices, sizeof indices, NULL);
}

static MusterTensor *
row_values (float first, float second)
{
  const gint64 dims[] = {2, 1};
  const float values[] = {first, second};
  return muster_tensor_new_from_data (MUSTER_FLOAT, 2, dims, values, sizeof values, NULL);
}

static float
value_at (const MusterTensor *tensor, int i)
{
  return ((const float *)muster_tensor_data (tensor))[i];
}

MUSTER_TEST (Accumulator, of_rows_leaves_the_gradients_alone)
{
  const MusterAccumulatorKind kind = {.dtype = MUSTER_FLOAT, .is_sparse = TRUE, .n_dims = -1};
  g_auto (MusterAccumulated) taken = {{NULL}};
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&kind);
  g_autoptr (MusterTensor) values = row_values (2, 4), indices = row_indices (1, 3);
  g_autoptr (MusterTensor) others = row_indices (3, 8);
  MUSTER_ASSERT_TRUE (muster_accumulator_apply_rows (self, 0, indices, values, NULL, NULL) &&
                      muster_accumulator_apply_rows (self, 0, others, values, NULL, NULL) &&
                      muster_accumulator_apply_rows (self, 0, indices, values, NULL, NULL));
  MUSTER_ASSERT_TRUE (muster_accumulator_try_take (self, 3, &taken, NULL));
  MUSTER_ASSERT_EQ (muster_tensor_n_elements (taken.parts[0]), 3);
  MUSTER_EXPECT_EQ (value_at (taken.parts[1], 0), 2.0f);
  MUSTER_EXPECT_NEAR (value_at (taken.parts[1], 1), 10.0f / 3, 1e-6);
  MUSTER_EXPECT_EQ (value_at (taken.parts[1], 2), 4.0f);
  MUSTER_EXPECT_EQ (value_at (values, 0), 2.0f);
  MUSTER_EXPECT_EQ (value_at (values, 1), 4.0f);
}

/* Nothing is lost and nothing given twice, whoever gives up meanwhile. */
#define N_GRADIENTS 2000

static gpointer
give_all (gpointer accumulator)
{
  for (int i = 0; i < N_GRADIENTS; i++)
    apply (accumulator, G_MAXINT64, 1);
  return NULL;
}

/* Asks and gives up at once, and counts what it got all the same. */
static gpointer
take_some (gpointer accumulator)
{
  gint64 sum = 0;
  for (int i = 0; i < N_GRADIENTS; i++) {
    const gint64 end_us = test_deadline ();
    Taker subscriber = {0};
    muster_accumulator_take (accumulator, 1, &subscriber, on_taken);
    muster_accumulator_cancel (accumulator, &subscriber);
    g_mutex_lock (&lock);
    while (subscriber.n_called == 0 && g_cond_wait_until (&changed, &lock, end_us))
      ;
    sum += subscriber.n_called == 1 ? (gint64)subscriber.value : -N_GRADIENTS;
    g_mutex_unlock (&lock);
  }
  return GINT_TO_POINTER ((gint)sum);
}

MUSTER_TEST (Accumulator, gives_each_gradient_to_one_who_asked)
{
  const MusterAccumulatorKind kind = {.dtype = MUSTER_FLOAT, .is_sum = TRUE, .n_dims = 0};
  g_auto (MusterAccumulated) taken = {{NULL}};
  g_autoptr (MusterAccumulator) self = muster_accumulator_new (&kind);
  GThread *giver = g_thread_new ("giver", give_all, self);
  GThread *takers[] = {g_thread_new ("taker", take_some, self),
                       g_thread_new ("taker", take_some, self)};
  gint64 sum = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (takers); i++)
    sum += GPOINTER_TO_INT (g_thread_join (takers[i]));
  g_thread_join (giver);
  if (muster_accumulator_try_take (self, 1, &taken, NULL))
    sum += (gint64)float_of (taken.parts[0]);
  MUSTER_EXPECT_EQ (sum, N_GRADIENTS);
}

/* A session that takes from an accumulator, once it has said in v that it begins to. */
static MusterSession *
open_taker (MusterMaster *master)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_int32 (1), step = muster_tensor_new_int64 (0);
  muster_graph_builder_node (b, "ResourceConditionalAccumulator", "a");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_string (b, "shared_name", "a");
  muster_graph_builder_constant (b, "one", one);
  muster_graph_builder_constant (b, "step", step);
  add_constant (b, "gradient", 5);
  add_variable (b, "v", 7);
  muster_graph_builder_node (b, "ResourceAccumulatorTakeGradient", "take");
  muster_graph_builder_input (b, "a");
  muster_graph_builder_input (b, "one");
  muster_graph_builder_input (b, "^v/Assign");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_node (b, "ResourceAccumulatorApplyGradient", "give");
  muster_graph_builder_input (b, "a");
  muster_graph_builder_input (b, "step");
  muster_graph_builder_input (b, "gradient");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  return open_session (master, b);
}

static gpointer
take_in_step (gpointer session)
{
  GError *error = NULL;
  g_autoptr (MusterTensor) got = run_one (session, NULL, NULL, "take", &error);
  MUSTER_EXPECT_NULL (got);
  return error;
}

/* By a look at what the step does just before. */
static void
wait_until_it_takes (MusterSession *session)
{
  const gint64 end_us = test_deadline ();
  g_autoptr (MusterTensor) v = NULL;
  while (v == NULL && muster_clock_now_us (muster_system_clock ()) < end_us) {
    v = run_one (session, NULL, NULL, "v", NULL);
    g_thread_yield ();
  }
  MUSTER_EXPECT_TRUE (v != NULL);
}

static void
expect_end (void (*end) (MusterMaster *master, MusterSession *session), MusterError code)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) taker = open_taker (master);
  g_autoptr (MusterSession) other = open_taker (master);
  GThread *thread = g_thread_new ("taker", take_in_step, taker);
  wait_until_it_takes (other);
  end (master, taker);
  g_autoptr (GError) error = g_thread_join (thread);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

static void
close_session (MusterMaster *master G_GNUC_UNUSED, MusterSession *session)
{
  MUSTER_EXPECT_TRUE (muster_session_close (session, test_deadline (), NULL, NULL));
}

static void
reset_master (MusterMaster *master, MusterSession *session G_GNUC_UNUSED)
{
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, NULL));
}

MUSTER_TEST (Accumulator, keeps_no_step_whose_session_is_closed)
{
  expect_end (close_session, MUSTER_ERROR_CANCELLED);
}

MUSTER_TEST (Accumulator, keeps_no_step_over_a_reset)
{
  expect_end (reset_master, MUSTER_ERROR_ABORTED);
}

MUSTER_TEST (Accumulator, keeps_the_gradient_that_a_late_step_did_not_take)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = open_taker (NULL);
  const char *fetch = "take";
  const gint64 soon_us = test_deadline_in (MUSTER_MILLISECOND);
  const MusterStep late = {.fetches = &fetch, .n_fetches = 1, .deadline_us = soon_us};
  MusterTensor *got = NULL;
  MUSTER_EXPECT_FALSE (muster_session_run (session, &late, &got, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_clear_error (&error);

  MUSTER_EXPECT_TRUE (muster_session_run_op (session, "give", test_deadline (), NULL, &error));
  got = run_one (session, NULL, NULL, "take", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (float_of (got), 5.0f);
  muster_tensor_unref (got);
}
