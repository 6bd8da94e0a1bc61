// SPDX-License-Identifier: Apache-2.0
/* What queues do with elements and with who waits; what sets the kinds apart: queue_kinds_test.c.
 */
#include "engine/run/registry.h"
#include "tests/engine/queue_fixture.h"

MUSTER_TEST (Queue, gives_what_came_first_in_both_generations)
{
  for (int is_old = 0; is_old < 2; is_old++) {
    const Wanted wanted = {.op = "FIFOQueue", .capacity = -1, .is_old = is_old};
    g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
    put (session, 9);
    put_many (session, counted, 8);
    MUSTER_EXPECT_EQ (size_of (session), 9);
    EXPECT_GIVES (session, "take", 0, "9");
    EXPECT_GIVES (session, "take_many", 3, "1 2 3");
    EXPECT_GIVES (session, "up_to", 2, "4 5");
    EXPECT_GIVES (session, "take_many", 0, "");
    EXPECT_GIVES (session, "take", 0, "6");
    MUSTER_EXPECT_EQ (size_of (session), 2);
  }
}

MUSTER_TEST (Queue, lets_a_step_wait_until_there_is_something)
{
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 3};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  g_auto (Step) take = {.session = session, .op = "take_many", .n = 5};
  g_auto (Step) after = {.session = session, .op = "take"};
  put (session, 9);
  start (&take);
  wait_for_size (session, 0); /* it has what there is */
  start (&after);
  put_many (session, counted, 8); /* more than the queue holds */
  join (&take);
  join (&after);
  EXPECT_REPORTED (&take, "9 1 2 3 4");
  EXPECT_REPORTED (&after, "5");
  MUSTER_EXPECT_EQ (size_of (session), 3);
}

MUSTER_TEST (Queue, lets_a_step_wait_while_it_is_full)
{
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 2};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  g_auto (Step) fill = {.session = session, .op = "put_many", .put = counted, .n_put = 5};
  start (&fill);
  wait_for_size (session, 2);
  for (int i = 0; i < 5; i++) {
    g_autofree char *wanted_value = g_strdup_printf ("%d", i + 1);
    EXPECT_GIVES (session, "take", 0, wanted_value);
  }
  join (&fill);
  MUSTER_EXPECT_NO_ERROR (fill.error);
}

MUSTER_TEST (Queue, loses_nothing_to_a_step_that_ran_out_of_time)
{
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  g_auto (Step) one = {.session = session, .op = "take", .deadline_us = soon ()};
  run_step (&one);
  EXPECT_SAYS (one.error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");

  put_many (session, counted, 3);
  g_auto (Step) many = {.session = session, .op = "take_many", .n = 4, .deadline_us = soon ()};
  run_step (&many);
  EXPECT_SAYS (many.error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");
  MUSTER_EXPECT_EQ (size_of (session), 3);
  EXPECT_GIVES (session, "take_many", 3, "1 2 3");
}

/* The first in line wants more than there is, and gives up: the next one gets it. */
MUSTER_TEST (Queue, serves_the_next_in_line_once_the_first_has_gone)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_autoptr (MusterSession) hasty = open_queue (master, &wanted);
  g_auto (Step) first = {.session = hasty, .op = "take_many", .n = 4};
  g_auto (Step) second = {.session = session, .op = "take_many", .n = 2};
  put_many (session, counted, 2);
  start (&first);
  wait_for_size (session, 0);
  start (&second);
  MUSTER_EXPECT_TRUE (muster_session_close (hasty, test_deadline (), NULL, NULL));
  join (&first);
  join (&second);
  MUSTER_EXPECT_ERROR (first.error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED);
  EXPECT_REPORTED (&second, "1 2");
}

MUSTER_TEST (Queue, closes_after_those_who_put_in)
{
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 2, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  g_auto (Step) fill = {.session = session, .op = "put_many", .put = counted, .n_put = 3};
  g_auto (Step) end = {.session = session, .op = "close"};
  g_auto (Step) late = {.session = session, .op = "put", .put = counted};
  start (&fill);
  wait_for_size (session, 2);
  start (&end);
  EXPECT_GIVES (session, "take", 0, "1");
  join (&fill);
  join (&end);
  MUSTER_EXPECT_NO_ERROR (end.error);

  run_step (&late);
  EXPECT_SAYS (late.error, MUSTER_ERROR_CANCELLED, "FIFOQueue 'q' is closed.");
  EXPECT_GIVES (session, "close", 0, "Queue 'q' is already closed.");
  EXPECT_GIVES (session, "take_many", 3,
                "FIFOQueue 'q' is closed and has insufficient elements (requested 3, current size "
                "2)");
  EXPECT_GIVES (session, "up_to", 3, "2 3");
  g_auto (Step) none = {.session = session, .op = "take"};
  run_step (&none);
  EXPECT_SAYS (none.error, MUSTER_ERROR_OUT_OF_RANGE,
               "FIFOQueue 'q' is closed and has insufficient elements (requested 1, current size "
               "0)");
}

MUSTER_TEST (Queue, notifies_who_waits_that_it_was_closed)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 2, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) fill = {.session = session, .op = "put_many", .put = counted, .n_put = 5};
  start (&fill);
  wait_for_size (session, 2);
  EXPECT_GIVES (session, "close_now", 0, "");
  EXPECT_GIVES (session, "close_now", 0, "");
  join (&fill);
  EXPECT_SAYS (fill.error, MUSTER_ERROR_CANCELLED, "Enqueue operation was cancelled");
  EXPECT_GIVES (session, "take_many", 2, "1 2");

  g_autoptr (MusterSession) other =
      open_queue (master, &(Wanted){.op = "FIFOQueue", .capacity = 4, .shared_name = "other"});
  g_auto (Step) many = {.session = other, .op = "take_many", .n = 3};
  g_auto (Step) up_to = {.session = other, .op = "up_to", .n = 3};
  put_many (other, counted, 2);
  start (&many);
  wait_for_size (other, 0);
  EXPECT_GIVES (other, "close", 0, "");
  join (&many);
  EXPECT_REPORTED (&many, "FIFOQueue 'other' is closed and has insufficient elements (requested 1, "
                          "current size 0)");
  run_step (&up_to); /* what the other one couldn't use */
  EXPECT_REPORTED (&up_to, "1 2");
}

MUSTER_TEST (Queue, ends_a_step_that_waits_when_its_session_is_closed)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4, .shared_name = "q"};
  g_autoptr (MusterSession) first = open_queue (master, &wanted);
  g_autoptr (MusterSession) second = open_queue (master, &wanted);
  g_auto (Step) take = {.session = first, .op = "take_many", .n = 3};
  put_many (second, counted, 2);
  start (&take);
  wait_for_size (second, 0);
  MUSTER_EXPECT_TRUE (muster_session_close (first, test_deadline (), NULL, NULL));
  MUSTER_EXPECT_EQ (size_of (second), 2); /* at once: a close waits for its steps */
  join (&take);
  EXPECT_SAYS (take.error, MUSTER_ERROR_CANCELLED,
               "Step was cancelled by an explicit call to `Session::Close()`.");
}

MUSTER_TEST (Queue, is_gone_with_a_reset_and_whoever_waits_is_notified)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) take = {.session = session, .op = "take_many", .n = 3};
  put (session, 1);
  start (&take);
  wait_for_size (session, 0);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, NULL));
  join (&take);
  MUSTER_EXPECT_ERROR (take.error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_autoptr (MusterSession) next = open_queue (master, &wanted);
  MUSTER_EXPECT_EQ (size_of (next), 0);
}

/* A kernel that has found the queue and comes to it only after a reset. */
static gint late_steps[2]; /* atomic: found, let on */

static gboolean
take_late (MusterKernel *k, GError **error)
{
  MusterQueue *queue = muster_kernel_resource (k, 0, &muster_queue_type, error);
  if (queue == NULL)
    return FALSE;
  g_atomic_int_set (&late_steps[0], 1);
  while (!g_atomic_int_get (&late_steps[1]))
    g_thread_yield ();
  return muster_queue_dequeue (queue, k, error);
}

static const MusterOp late_ops[] = {
    {"TakeLate", "handle:resource -> component:float", "", take_late,
     MUSTER_OP_STATEFUL | MUSTER_OP_RESOURCE},
    {NULL, NULL, NULL, NULL, 0},
};

MUSTER_TEST (Queue, that_went_with_a_reset_has_not_come_to_an_end)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  const gint64 end_us = test_deadline ();
  muster_op_register (late_ops);
  muster_graph_builder_placeholder (b, "n", MUSTER_INT32, 0, NULL);
  add_queue (b, &wanted);
  muster_graph_builder_node (b, "TakeLate", "late");
  muster_graph_builder_input (b, "q");
  g_autoptr (MusterSession) session = open_session (master, b);
  g_auto (Step) take = {.session = session, .op = "late"};
  start (&take);
  while (!g_atomic_int_get (&late_steps[0]) &&
         muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, test_deadline (), NULL, NULL));
  g_atomic_int_set (&late_steps[1], 1);
  join (&take);
  EXPECT_SAYS (take.error, MUSTER_ERROR_CANCELLED, "Dequeue operation was cancelled");
}

/* Each op of the queue with a wrong wish. */
MUSTER_TEST (Queue, refuses_in_TensorFlows_words)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_autoptr (MusterSession) shapeless =
      open_queue (master, &(Wanted){.op = "FIFOQueue", .capacity = 4, .is_shapeless = TRUE});
  const Wanted others[] = {
      {.op = "RandomShuffleQueue", .capacity = 4, .shared_name = "q"},
      {.op = "FIFOQueue", .capacity = 5, .shared_name = "q"},
      {.op = "FIFOQueue", .capacity = 4, .shared_name = "q", .is_shapeless = TRUE},
      {.op = "RandomShuffleQueue", .capacity = 4, .min_after_dequeue = 4},
      {.op = "RandomShuffleQueue", .capacity = 4, .min_after_dequeue = -1},
  };
  const char *const says[] = {
      "Expected FIFOQueue, found RandomShuffleQueueV2",
      "Shared queue 'q' has capacity 4 but requested capacity was 5",
      "Shared queue 'q' has component shapes [[]] but requested component shapes were []",
      "min_after_dequeue 4 must be < capacity 4",
      "min_after_dequeue -1 must be >= 0",
  };
  g_auto (Step) vector = {.session = session, .op = "put", .put = counted, .n_put = 2};
  g_auto (Step) scalar = {.session = session, .op = "put_many", .put = counted};
  put (session, 1);
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (MusterSession) other = open_queue (master, &others[i]);
    EXPECT_GIVES (other, "take", 0, says[i]);
  }
  run_step (&vector);
  EXPECT_REPORTED (&vector, "Shape mismatch in tuple component 0. Expected [], got [2]");
  run_step (&scalar);
  MUSTER_EXPECT_ERROR (scalar.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  EXPECT_GIVES (session, "take_many", -1, "DequeueManyOp requested -1 < 0 elements");
  EXPECT_GIVES (session, "up_to", -1, "DequeueUpToOp requested -1 < 0 elements");
  EXPECT_GIVES (shapeless, "take_many", 1,
                "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified "
                "shapes.");
  MUSTER_EXPECT_EQ (size_of (session), 1);
}

/* Producers and consumers by the dozen, each with too little time: what went in comes out once. */
typedef struct {
  MusterSession *session;
  gint n_put, n_taken; /* atomic */
  gint sum_put, sum_taken;
} Market;

enum { N_TRADERS = 6, N_TRADES = 150 };

static gpointer
produce (gpointer data)
{
  Market *market = data;
  for (int i = 0; i < N_TRADES; i++) {
    const float values[] = {(float)i, (float)i + 1};
    g_auto (Step)
        step = {.session = market->session,
                .op = i % 2 == 0 ? "put" : "put_many",
                .put = values,
                .n_put = i % 2 == 0 ? 0 : 1,
                .deadline_us =
                    i % 3 == 0 ? muster_clock_now_us (muster_system_clock ()) + (i % 7) * 50 : 0};
    run_step (&step);
    if (step.error != NULL)
      continue;
    g_atomic_int_inc (&market->n_put);
    g_atomic_int_add (&market->sum_put, i);
  }
  return NULL;
}

static gpointer
consume (gpointer data)
{
  Market *market = data;
  for (int i = 0;; i++) {
    g_auto (Step)
        step = {.session = market->session,
                .op = i % 2 == 0 ? "take" : "take_many",
                .n = 1 + i % 5,
                .deadline_us = muster_clock_now_us (muster_system_clock ()) + (i % 11) * 50};
    run_step (&step);
    if (g_error_matches (step.error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE) &&
        size_of (market->session) == 0)
      return NULL;
    for (gint64 j = 0; step.got != NULL && j < muster_tensor_n_elements (step.got); j++) {
      g_atomic_int_inc (&market->n_taken);
      g_atomic_int_add (&market->sum_taken,
                        (gint)((const float *)muster_tensor_data (step.got))[j]);
    }
  }
}

MUSTER_TEST (Queue, loses_and_doubles_nothing_under_a_crowd_in_a_hurry)
{
  GThread *producers[N_TRADERS], *consumers[N_TRADERS];
  const Wanted wanted = {.op = "RandomShuffleQueue", .capacity = 7, .min_after_dequeue = 2};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  Market market = {.session = session};
  for (int i = 0; i < N_TRADERS; i++) {
    producers[i] = g_thread_new ("produce", produce, &market);
    consumers[i] = g_thread_new ("consume", consume, &market);
  }
  for (int i = 0; i < N_TRADERS; i++)
    g_thread_join (producers[i]);
  EXPECT_GIVES (session, "close", 0, "");
  for (int i = 0; i < N_TRADERS; i++)
    g_thread_join (consumers[i]);
  MUSTER_EXPECT_GT (market.n_put, N_TRADERS * N_TRADES / 2);
  MUSTER_EXPECT_EQ (market.n_taken, market.n_put);
  MUSTER_EXPECT_EQ (market.sum_taken, market.sum_put);
}
