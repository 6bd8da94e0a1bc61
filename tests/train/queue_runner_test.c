// SPDX-License-Identifier: Apache-2.0
/* Queue runners on the fake master; tests/tensorflow/train_test.py has them on real queues. */
#include "base/protowire_private.h"
#include "graph/graph_builder.h"
#include "graph/graph_walk_private.h"
#include "graph/meta_graph/meta_graph.h"
#include "tests/doubles/fake_master.h"
#include "tests/gtest_shim.h"
#include "train/completion/step_waits_private.h"
#include "train/monitored/queue_runner_private.h"

/* tensorflow.QueueRunnerDef */
enum { QUEUE = 1, ENQUEUE = 2, CLOSE = 3, CANCEL = 4, CLOSED_BY = 5 };

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterCoordinator *coordinator;
  GPtrArray *runners;
  gint n_left; /* atomic: how many enqueues there is room for in all */
} Filling;

static MusterGraph *
make_graph (void)
{
  static const char *const ops[] = {"enqueue", "enqueue_1", "close", "cancel"};
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++)
    muster_graph_builder_node (builder, "NoOp", ops[i]);
  muster_graph_builder_node (builder, "FIFOQueueV2", "q");
  muster_graph_builder_node (builder, "QueueDequeueV2", "row");
  muster_graph_builder_input (builder, "q");
  return muster_graph_builder_end (builder, NULL);
}

/* A meta graph with one queue runner. */
static MusterMetaGraph *
make_meta_graph (const void *runner, gsize size)
{
  enum { META_COLLECTION = 4, KEY = 1, VALUE = 2, BYTES_LIST = 2, LIST_VALUE = 1 };
  g_autoptr (MusterGraph) graph = make_graph ();
  g_autoptr (MusterMetaGraph) plain = muster_meta_graph_new_for_graph (graph);
  g_autoptr (GByteArray) list = g_byte_array_new ();
  g_autoptr (GByteArray) value = g_byte_array_new ();
  g_autoptr (GByteArray) entry = g_byte_array_new ();
  GByteArray *all = g_byte_array_new ();
  GBytes *before = muster_meta_graph_bytes (plain);
  g_autoptr (GError) error = NULL;

  muster_proto_put_bytes (list, LIST_VALUE, runner, size);
  muster_proto_put_bytes (value, BYTES_LIST, list->data, list->len);
  muster_proto_put_string (entry, KEY, "queue_runners");
  muster_proto_put_bytes (entry, VALUE, value->data, value->len);
  g_byte_array_append (all, g_bytes_get_data (before, NULL), (guint)g_bytes_get_size (before));
  muster_proto_put_bytes (all, META_COLLECTION, entry->data, entry->len);
  g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (all);
  MusterMetaGraph *meta_graph = muster_meta_graph_new (bytes, &error);
  g_assert_no_error (error);
  return meta_graph;
}

/* Two threads fill "q". */
static GByteArray *
make_runner (void)
{
  GByteArray *runner = g_byte_array_new ();
  muster_proto_put_string (runner, QUEUE, "q");
  muster_proto_put_string (runner, ENQUEUE, "enqueue");
  muster_proto_put_string (runner, ENQUEUE, "enqueue_1");
  muster_proto_put_string (runner, CLOSE, "close");
  muster_proto_put_string (runner, CANCEL, "cancel");
  return runner;
}

static gboolean
enqueue (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
         MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  Filling *filling = user_data;
  if (g_atomic_int_add (&filling->n_left, -1) > 0)
    return TRUE;
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE, "the input has ended");
  return FALSE;
}

static void
set_up (Filling *self, const GByteArray *runner, int n)
{
  g_autoptr (MusterMetaGraph) meta_graph = make_meta_graph (runner->data, runner->len);
  g_autoptr (GError) error = NULL;
  self->clock = muster_fake_clock_new ();
  self->master = muster_fake_master_new (self->clock);
  self->n_left = n;
  muster_fake_master_op_calls (self->master, "enqueue", enqueue, self);
  muster_fake_master_op_calls (self->master, "enqueue_1", enqueue, self);
  muster_fake_master_op_yields (self->master, "close", NULL);
  muster_fake_master_op_yields (self->master, "cancel", NULL);
  self->session = muster_master_create_session (MUSTER_MASTER (self->master),
                                                muster_meta_graph_graph (meta_graph), NULL,
                                                MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
  self->coordinator = muster_coordinator_new (NULL, FALSE);
  self->runners = muster_queue_runners_of (meta_graph, &error);
  g_assert_no_error (error);
}

static void
tear_down (Filling *self)
{
  g_clear_object (&self->session);
  g_clear_object (&self->coordinator);
  g_clear_pointer (&self->runners, g_ptr_array_unref);
  g_clear_object (&self->master);
  g_clear_object (&self->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Filling, tear_down)

static void
wait_for (Filling *self, const char *op)
{
  while (muster_fake_master_n_calls (self->master, op) == 0)
    g_thread_yield ();
}

/* The last thread that finds the end closes the queue; a stop cancels what still waits in it. */
MUSTER_TEST (QueueRunner, fills_until_the_input_ends_and_closes_once)
{
  g_autoptr (GByteArray) runner = make_runner ();
  g_auto (Filling) f = {0};
  g_autoptr (GError) error = NULL;
  set_up (&f, runner, 100);

  muster_queue_runners_start (f.runners, f.session, f.coordinator);
  wait_for (&f, "close");
  MUSTER_EXPECT_FALSE (muster_coordinator_should_stop (f.coordinator));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "cancel"), 0u);
  muster_coordinator_request_stop (f.coordinator, NULL, NULL);
  MUSTER_EXPECT_TRUE (muster_coordinator_join (f.coordinator, MUSTER_WAIT_FOREVER, FALSE,
                                               MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "enqueue") +
                        muster_fake_master_n_calls (f.master, "enqueue_1"),
                    102u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "close"), 1u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "cancel"), 1u);
}

/* What isn't among its exception types ends all, and doesn't close the queue. */
MUSTER_TEST (QueueRunner, reports_what_is_no_end)
{
  g_autoptr (GByteArray) runner = make_runner ();
  static const guint8 packed[] = {MUSTER_ERROR_CANCELLED, MUSTER_ERROR_ABORTED};
  g_auto (Filling) f = {0};
  g_autoptr (GError) error = NULL;
  muster_proto_put_bytes (runner, CLOSED_BY, packed, sizeof packed);
  set_up (&f, runner, 10);

  muster_queue_runners_start (f.runners, f.session, f.coordinator);
  MUSTER_EXPECT_FALSE (muster_coordinator_join (f.coordinator, MUSTER_WAIT_FOREVER, FALSE,
                                                MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_TRUE (error && g_str_has_prefix (error->message, "Filling the queue 'q': "));
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "close"), 0u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "cancel"), 1u);
}

/* The codes unpacked, and a stop in the middle. */
MUSTER_TEST (QueueRunner, takes_the_codes_that_it_is_given_for_the_end)
{
  g_autoptr (GByteArray) runner = make_runner ();
  g_auto (Filling) f = {0};
  g_autoptr (GError) error = NULL;
  muster_proto_put_uint (runner, CLOSED_BY, MUSTER_ERROR_OUT_OF_RANGE);
  muster_proto_put_uint (runner, CLOSED_BY, MUSTER_ERROR_INTERNAL);
  set_up (&f, runner, G_MAXINT);
  muster_fake_master_fail (f.master, "enqueue", 5, 1, MUSTER_ERROR_INTERNAL, "queue is broken");

  muster_queue_runners_start (f.runners, f.session, f.coordinator);
  while (muster_fake_master_n_calls (f.master, "enqueue") < 5)
    g_thread_yield ();
  wait_for (&f, "enqueue_1");
  muster_coordinator_request_stop (f.coordinator, NULL, NULL);
  MUSTER_EXPECT_TRUE (muster_coordinator_join (f.coordinator, MUSTER_WAIT_FOREVER, FALSE,
                                               MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "enqueue"), 5u);
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "close"), 0u);
}

/* A file of somebody else's making is checked before anything is done with it. */
MUSTER_TEST (QueueRunner, refuses_what_is_none)
{
  static const guint8 bad[][6] = {
      {10, 100, 'q'},              /* longer than what is left */
      {18, 2, 0xff, 0xfe},         /* no UTF-8 */
      {18, 4, 'n', 'o', 'n', 'e'}, /* an op that the graph lacks */
      {26, 4, 'n', 'o', 'n', 'e'}, /* a close op of that kind */
      {42, 2, 0x80, 0x80},         /* a code cut short */
      {16, 1},                     /* a number in the place of a name */
      {18, 2, 'a', 0},             /* a NUL in a name */
  };
  static const gsize sizes[] = {3, 4, 6, 6, 4, 2, 4};
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterMetaGraph) meta_graph = make_meta_graph (bad[i], sizes[i]);
    MUSTER_EXPECT_NULL (muster_queue_runners_of (meta_graph, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_TRUE (error && strstr (error->message, "queue_runners") != NULL);
  }
}

MUSTER_TEST (QueueRunner, is_named_as_what_fills_a_queue)
{
  g_autoptr (GByteArray) runner = make_runner ();
  g_autoptr (MusterMetaGraph) meta_graph = make_meta_graph (runner->data, runner->len);
  MusterGraph *graph = muster_meta_graph_graph (meta_graph);
  g_autofree guint8 *needed = g_malloc0 (muster_graph_n_nodes (graph) + 1);
  muster_graph_mark_needs (graph, "row", needed);
  g_autofree char *text = muster_step_waits_for (meta_graph, needed);
  MUSTER_EXPECT_STREQ (text,
                       "each step takes from the queue 'q', which a queue runner fills: check "
                       "its input");
}

MUSTER_TEST (QueueRunner, is_bounded_in_its_threads)
{
  g_autoptr (GByteArray) runner = make_runner ();
  g_autoptr (GError) error = NULL;
  for (int i = 0; i < 1100; i++)
    muster_proto_put_string (runner, ENQUEUE, "enqueue");
  g_autoptr (MusterMetaGraph) meta_graph = make_meta_graph (runner->data, runner->len);

  MUSTER_EXPECT_NULL (muster_queue_runners_of (meta_graph, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}
