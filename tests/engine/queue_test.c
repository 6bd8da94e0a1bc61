// SPDX-License-Identifier: Apache-2.0
#include "engine/queue.h"

#include "base/protowire.h"
#include "tests/engine/fixture.h"

/* A queue of floats "q" with an op of each kind around it, in one generation of ops. "x" is fed to
 * "put" and "put_many" (which takes it as a vector), "n" to "take_many" and "up_to". */
typedef struct {
  const char *op; /* "FIFOQueue" */
  gint64 capacity;
  gint64 min_after_dequeue;
  gint64 seed, seed2;
  gboolean is_old;
  gboolean is_shapeless;
  const char *shared_name; /* (nullable) */
} Wanted;

static void
add_op (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name)
{
  g_autofree char *full = g_strconcat (op, wanted->is_old ? "" : "V2", NULL);
  muster_graph_builder_node (b, full, name);
  if (!g_str_equal (name, "q"))
    muster_graph_builder_input (b, "q");
}

static void
add_put (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name)
{
  add_op (b, wanted, op, name);
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_types (b, "Tcomponents", (MusterDType[]){MUSTER_FLOAT}, 1);
}

static void
add_take (MusterGraphBuilder *b, const Wanted *wanted, const char *op, const char *name,
          const char *n)
{
  add_op (b, wanted, op, name);
  if (n != NULL)
    muster_graph_builder_input (b, n);
  muster_graph_builder_attr_types (b, "component_types", (MusterDType[]){MUSTER_FLOAT}, 1);
}

static void
add_queue (MusterGraphBuilder *b, const Wanted *wanted)
{
  add_op (b, wanted, wanted->op, "q");
  muster_graph_builder_attr_types (b, "component_types", (MusterDType[]){MUSTER_FLOAT}, 1);
  if (!wanted->is_shapeless)
    muster_graph_builder_attr_shapes (b, "shapes", 1, 0, NULL);
  muster_graph_builder_attr_int (b, "capacity", wanted->capacity);
  if (strstr (wanted->op, "Shuffle") != NULL) {
    muster_graph_builder_attr_int (b, "min_after_dequeue", wanted->min_after_dequeue);
    muster_graph_builder_attr_int (b, "seed", wanted->seed);
    muster_graph_builder_attr_int (b, "seed2", wanted->seed2);
  }
  muster_graph_builder_attr_string (b, "container", "");
  muster_graph_builder_attr_string (b, "shared_name",
                                    wanted->shared_name != NULL ? wanted->shared_name : "");
}

static MusterSession *
open_queue (MusterMaster *master, const Wanted *wanted)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, -1, NULL);
  muster_graph_builder_placeholder (b, "n", MUSTER_INT32, 0, NULL);
  add_queue (b, wanted);
  add_put (b, wanted, "QueueEnqueue", "put");
  add_put (b, wanted, "QueueEnqueueMany", "put_many");
  add_take (b, wanted, "QueueDequeue", "take", NULL);
  add_take (b, wanted, "QueueDequeueMany", "take_many", "n");
  add_take (b, wanted, "QueueDequeueUpTo", "up_to", "n");
  add_op (b, wanted, "QueueSize", "size");
  add_op (b, wanted, "QueueIsClosed", "is_closed");
  add_op (b, wanted, "QueueClose", "close");
  add_op (b, wanted, "QueueClose", "close_now");
  muster_graph_builder_attr_bool (b, "cancel_pending_enqueues", TRUE);
  return open_session (master, b);
}

/* One step, on a thread of its own where it may wait. */
typedef struct {
  MusterSession *session;
  const char *op;
  const float *put; /* (nullable) */
  int n_put;        /* 0: a scalar */
  int n;            /* how many to take */
  gint64 deadline_us;
  MusterTensor *got; /* (owned) (nullable) */
  GError *error;     /* (owned) (nullable) */
  GThread *thread;   /* (owned) (nullable) */
} Step;

static gpointer
run_step (gpointer data)
{
  Step *step = data;
  g_autoptr (MusterTensor) x = NULL;
  g_autoptr (MusterTensor) n = muster_tensor_new_int32 (step->n);
  const gboolean fetches = step->op[0] != 'p' && step->op[0] != 'c';
  if (step->put != NULL)
    x = muster_tensor_new_from_data (MUSTER_FLOAT, step->n_put > 0, (gint64[]){step->n_put},
                                     step->put, MAX (step->n_put, 1) * sizeof (float), NULL);
  const MusterFeed feeds[] = {{step->put != NULL ? "x" : "n", step->put != NULL ? x : n}};
  const MusterStep wanted = {.feeds = feeds,
                             .n_feeds = 1,
                             .fetches = &step->op,
                             .n_fetches = fetches,
                             .targets = &step->op,
                             .n_targets = !fetches,
                             .deadline_us =
                                 step->deadline_us != 0 ? step->deadline_us : TEST_DEADLINE_US};
  (void)muster_session_run (step->session, &wanted, fetches ? &step->got : NULL, NULL, NULL,
                            &step->error);
  return NULL;
}

static void
start (Step *step)
{
  step->thread = g_thread_new (step->op, run_step, step);
}

static void
join (Step *step)
{
  g_thread_join (g_steal_pointer (&step->thread));
}

static void
step_clear (Step *step)
{
  muster_tensor_unref (step->got);
  g_clear_error (&step->error);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Step, step_clear)

static void
put (MusterSession *session, float value)
{
  g_auto (Step) step = {.session = session, .op = "put", .put = &value};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
}

static void
put_many (MusterSession *session, const float *values, int n)
{
  g_auto (Step) step = {.session = session, .op = "put_many", .put = values, .n_put = n};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
}

/* What a step gave, "1 2 3", or its error. */
static char *
told (Step *step)
{
  if (step->error != NULL)
    return g_strndup (step->error->message, strcspn (step->error->message, "\n"));
  GString *text = g_string_new (NULL);
  for (gint64 i = 0; step->got != NULL && i < muster_tensor_n_elements (step->got); i++)
    g_string_append_printf (text, "%s%g", i > 0 ? " " : "",
                            ((const float *)muster_tensor_data (step->got))[i]);
  return g_string_free (text, FALSE);
}

static char *
run_told (MusterSession *session, const char *op, int n)
{
  g_auto (Step) step = {.session = session, .op = op, .n = n};
  run_step (&step);
  return told (&step);
}

#define EXPECT_GIVES(session, op, n, wanted)                                                       \
  do {                                                                                             \
    g_autofree char *told_ = run_told (session, op, n);                                            \
    MUSTER_EXPECT_STREQ (told_, wanted);                                                           \
  } while (0)

#define EXPECT_TOLD(step, wanted)                                                                  \
  do {                                                                                             \
    g_autofree char *told_ = told (step);                                                          \
    MUSTER_EXPECT_STREQ (told_, wanted);                                                           \
  } while (0)

static int
size_of (MusterSession *session)
{
  g_auto (Step) step = {.session = session, .op = "size"};
  run_step (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
  return step.got != NULL ? *(const gint32 *)muster_tensor_data (step.got) : -1;
}

/* Until the queue has so many: steps on other threads have come as far as they can. */
static void
wait_for_size (MusterSession *session, int size)
{
  const gint64 end_us = TEST_DEADLINE_US;
  while (size_of (session) != size && muster_clock_now_us (muster_system_clock ()) < end_us)
    g_thread_yield ();
  MUSTER_EXPECT_EQ (size_of (session), size);
}

static gint64
soon (void)
{
  return muster_clock_now_us (muster_system_clock ()) + 5 * MUSTER_MILLISECOND;
}

static const float counted[] = {1, 2, 3, 4, 5, 6, 7, 8};

MUSTER_TEST (Queue, gives_what_came_first_in_both_generations)
{
  for (int is_old = 0; is_old < 2; is_old++) {
    g_autoptr (MusterMaster) master = muster_local_master_new ();
    const Wanted wanted = {.op = "FIFOQueue", .capacity = -1, .is_old = is_old};
    g_autoptr (MusterSession) session = open_queue (master, &wanted);
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
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 3};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) take = {.session = session, .op = "take_many", .n = 5};
  g_auto (Step) after = {.session = session, .op = "take"};
  put (session, 9);
  start (&take);
  wait_for_size (session, 0); /* it has what there is */
  start (&after);
  put_many (session, counted, 8); /* more than the queue holds */
  join (&take);
  join (&after);
  EXPECT_TOLD (&take, "9 1 2 3 4");
  EXPECT_TOLD (&after, "5");
  MUSTER_EXPECT_EQ (size_of (session), 3);
}

MUSTER_TEST (Queue, lets_a_step_wait_while_it_is_full)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 2};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
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
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
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
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) first = {.session = session,
                         .op = "take_many",
                         .n = 4,
                         .deadline_us = muster_clock_now_us (muster_system_clock ()) +
                                        200 * MUSTER_MILLISECOND};
  g_auto (Step) second = {.session = session, .op = "take_many", .n = 2};
  put_many (session, counted, 2);
  start (&first);
  wait_for_size (session, 0);
  start (&second);
  join (&first);
  join (&second);
  EXPECT_SAYS (first.error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");
  EXPECT_TOLD (&second, "1 2");
}

MUSTER_TEST (Queue, closes_after_those_who_put_in)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 2, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
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

MUSTER_TEST (Queue, tells_who_waits_that_it_was_closed)
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
  EXPECT_TOLD (&many, "FIFOQueue 'other' is closed and has insufficient elements (requested 1, "
                      "current size 0)");
  run_step (&up_to); /* what the other one couldn't use */
  EXPECT_TOLD (&up_to, "1 2");
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
  MUSTER_EXPECT_TRUE (muster_session_close (first, TEST_DEADLINE_US, NULL, NULL));
  MUSTER_EXPECT_EQ (size_of (second), 2); /* at once: a close waits for its steps */
  join (&take);
  EXPECT_SAYS (take.error, MUSTER_ERROR_CANCELLED,
               "Step was cancelled by an explicit call to `Session::Close()`.");
}

MUSTER_TEST (Queue, is_gone_with_a_reset_and_whoever_waits_hears_it)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) take = {.session = session, .op = "take_many", .n = 3};
  put (session, 1);
  start (&take);
  wait_for_size (session, 0);
  MUSTER_EXPECT_TRUE (muster_master_reset (master, NULL, TEST_DEADLINE_US, NULL, NULL));
  join (&take);
  MUSTER_EXPECT_ERROR (take.error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  g_autoptr (MusterSession) next = open_queue (master, &wanted);
  MUSTER_EXPECT_EQ (size_of (next), 0);
}

static guint64
number_in (MusterProtoReader reader, guint32 wanted)
{
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == wanted && field.type == MUSTER_WIRE_VARINT)
      return field.value;
  return 0;
}

/* When the node that takes has ended, by the step's trace: the last one in it. */
static gint64
taken_us (GBytes *metadata)
{
  enum { STEP_STATS = 1, DEVICE = 1, NODE = 2, NAME = 1, START_US = 2, ALL_END_US = 5 };
  static const guint32 path[] = {STEP_STATS, DEVICE, NODE};
  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (metadata, NULL), g_bytes_get_size (metadata));
  MusterProtoField field;
  for (gsize level = 0; level < G_N_ELEMENTS (path); level++) {
    MusterProtoReader inner = {0};
    while (muster_proto_read_field (&reader, &field))
      if (field.number == path[level])
        inner = muster_proto_reader (field.data, field.size);
    reader = inner;
  }
  return (gint64)(number_in (reader, START_US) + number_in (reader, ALL_END_US));
}

static gpointer
take_traced (gpointer session)
{
  static const guint8 full_trace[] = {1 << 3, 3};
  g_autoptr (GBytes) options = g_bytes_new_static (full_trace, sizeof full_trace);
  g_autoptr (MusterTensor) two = muster_tensor_new_int32 (2);
  MusterTensor *got = NULL;
  GBytes *metadata = NULL;
  g_autoptr (GError) error = NULL;
  const MusterFeed feeds[] = {{"n", two}};
  const MusterStep step = {.feeds = feeds,
                           .n_feeds = 1,
                           .fetches = (const char *[]){"take_many"},
                           .n_fetches = 1,
                           .options = options,
                           .deadline_us = TEST_DEADLINE_US};
  (void)muster_session_run (session, &step, &got, &metadata, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_tensor_unref (got);
  return metadata;
}

MUSTER_TEST (Queue, traces_a_wait_with_what_waited)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  put (session, 1);
  GThread *thread = g_thread_new ("traced", take_traced, session);
  wait_for_size (session, 0);
  const gint64 before_us = muster_clock_wall_us (muster_system_clock ());
  put (session, 2);
  g_autoptr (GBytes) metadata = g_thread_join (thread);
  MUSTER_ASSERT_NOT_NULL (metadata);
  MUSTER_EXPECT_GE (taken_us (metadata), before_us);
}

/* From TensorFlow 2.21: 1 to 8 in a RandomShuffleQueue with seed 1, seed2 2. */
MUSTER_TEST (Queue, shuffles_as_TensorFlow_does)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "RandomShuffleQueue", .capacity = 20, .seed = 1, .seed2 = 2};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  put_many (session, counted, 8);
  EXPECT_GIVES (session, "take_many", 5, "8 4 1 5 7");
  put_many (session, counted, 8);
  EXPECT_GIVES (session, "take", 0, "1");
  EXPECT_GIVES (session, "take_many", 10, "8 5 3 3 4 2 6 6 7 2");
}

/* From TensorFlow 2.21: 0 to 9 by RandomShuffle with seed 1, seed2 2, in three steps. */
MUSTER_TEST (Queue, rows_are_shuffled_as_by_TensorFlow)
{
  static const gint32 wanted[][10] = {{9, 0, 8, 6, 1, 3, 7, 2, 4, 5},
                                      {8, 7, 4, 3, 2, 1, 9, 5, 6, 0},
                                      {3, 0, 9, 6, 4, 5, 2, 8, 1, 7}};
  const gint32 rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const gint64 shape[] = {5, 2};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x =
      muster_tensor_new_from_data (MUSTER_INT32, 1, (gint64[]){10}, rows, sizeof rows, NULL);
  g_autoptr (MusterTensor) pairs = muster_tensor_reshape (x, 2, shape);
  muster_graph_builder_placeholder (b, "x", MUSTER_INT32, -1, NULL);
  muster_graph_builder_node (b, "RandomShuffle", "shuffle");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_INT32);
  muster_graph_builder_attr_int (b, "seed", 1);
  muster_graph_builder_attr_int (b, "seed2", 2);
  g_autoptr (MusterSession) session = open_session (master, b);
  for (gsize i = 0; i < G_N_ELEMENTS (wanted); i++) {
    g_autoptr (MusterTensor) got = run_one (session, "x", x, "shuffle", &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_MEMEQ (muster_tensor_data (got), muster_tensor_n_bytes (got), wanted[i],
                         sizeof wanted[i]);
  }
  g_autoptr (MusterTensor) got = run_one (session, "x", pairs, "shuffle", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  for (int i = 0; i < 10; i += 2)
    MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (got))[i] + 1,
                      ((const gint32 *)muster_tensor_data (got))[i + 1]);
}

MUSTER_TEST (Queue, keeps_enough_to_shuffle_until_it_is_closed)
{
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {
      .op = "RandomShuffleQueue", .capacity = 8, .min_after_dequeue = 3, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
  g_auto (Step) take = {.session = session, .op = "take_many", .n = 3, .deadline_us = soon ()};
  put_many (session, counted, 5);
  run_step (&take);
  EXPECT_SAYS (take.error, MUSTER_ERROR_DEADLINE_EXCEEDED, "Deadline Exceeded");
  MUSTER_EXPECT_EQ (size_of (session), 5);
  EXPECT_GIVES (session, "close", 0, "");
  g_auto (Step) all = {.session = session, .op = "take_many", .n = 5};
  run_step (&all);
  MUSTER_EXPECT_NO_ERROR (all.error);
  EXPECT_GIVES (session, "take", 0,
                "RandomShuffleQueue 'q' is closed and has insufficient elements (requested 1, "
                "current size 0)");
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
  EXPECT_TOLD (&vector, "Shape mismatch in tuple component 0. Expected [], got [2]");
  run_step (&scalar);
  MUSTER_EXPECT_ERROR (scalar.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  EXPECT_GIVES (session, "take_many", -1, "DequeueManyOp requested -1 < 0 elements");
  EXPECT_GIVES (session, "up_to", -1, "DequeueUpToOp requested -1 < 0 elements");
  EXPECT_GIVES (shapeless, "take_many", 1,
                "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified "
                "shapes.");
  MUSTER_EXPECT_EQ (size_of (session), 1);
}

/* Two components; a size that is left open is padded. */
MUSTER_TEST (Queue, pads_what_differs_in_size)
{
  const MusterDType types[] = {MUSTER_FLOAT, MUSTER_STRING};
  const gint64 shapes[] = {-1, 2, -1, -1};
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) three = muster_tensor_new_int32 (2);
  g_autoptr (GError) error = NULL;
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, -1, NULL);
  muster_graph_builder_placeholder (b, "s", MUSTER_STRING, -1, NULL);
  muster_graph_builder_constant (b, "n", three);
  muster_graph_builder_node (b, "PaddingFIFOQueueV2", "q");
  muster_graph_builder_attr_types (b, "component_types", types, 2);
  muster_graph_builder_attr_shapes (b, "shapes", 2, 2, shapes);
  muster_graph_builder_node (b, "QueueEnqueueV2", "put");
  muster_graph_builder_input (b, "q");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "s");
  muster_graph_builder_attr_types (b, "Tcomponents", types, 2);
  muster_graph_builder_node (b, "QueueDequeueManyV2", "take");
  muster_graph_builder_input (b, "q");
  muster_graph_builder_input (b, "n");
  muster_graph_builder_attr_types (b, "component_types", types, 2);
  g_autoptr (MusterSession) session = open_session (master, b);

  const MusterString words[] = {{"a", 1}, {"bc", 2}, {"d", 1}, {"e", 1}};
  const gint64 rows[][2] = {{2, 2}, {1, 2}}, letters[][2] = {{1, 3}, {2, 1}};
  for (int i = 0; i < 2; i++) {
    g_autoptr (MusterTensor) x = muster_tensor_new_from_data (MUSTER_FLOAT, 2, rows[i], counted,
                                                              (gsize)(rows[i][0] * 8), &error);
    g_autoptr (MusterTensor) s = muster_tensor_new_strings (2, letters[i], words + i);
    const MusterFeed feeds[] = {{"x", x}, {"s", s}};
    const MusterStep step = {.feeds = feeds,
                             .n_feeds = 2,
                             .targets = (const char *[]){"put"},
                             .n_targets = 1,
                             .deadline_us = TEST_DEADLINE_US};
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
  }
  MusterTensor *got[2] = {NULL};
  const MusterStep step = {.fetches = (const char *[]){"take:0", "take:1"},
                           .n_fetches = 2,
                           .deadline_us = TEST_DEADLINE_US};
  MUSTER_EXPECT_TRUE (muster_session_run (session, &step, got, NULL, NULL, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  const float wanted[] = {1, 2, 3, 4, 1, 2, 0, 0};
  MUSTER_EXPECT_MEMEQ (muster_tensor_data (got[0]), muster_tensor_n_bytes (got[0]), wanted,
                       sizeof wanted);
  g_autoptr (GString) text = g_string_new (NULL);
  for (gint64 i = 0; i < muster_tensor_n_elements (got[1]); i++) {
    const MusterString s = muster_tensor_string (got[1], i);
    g_string_append_printf (text, "%.*s,", (int)s.size, s.data);
  }
  MUSTER_EXPECT_STREQ (text->str, "a,bc,d,,,,bc,,,d,,,");
  muster_tensor_unref (got[0]);
  muster_tensor_unref (got[1]);
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
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  const Wanted wanted = {.op = "RandomShuffleQueue", .capacity = 7, .min_after_dequeue = 2};
  g_autoptr (MusterSession) session = open_queue (master, &wanted);
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
