// SPDX-License-Identifier: Apache-2.0
/* Shuffling and padding, and how a wait shows in a trace. */
#include "base/protowire_private.h"
#include "tests/engine/queue_fixture.h"

/* From TensorFlow 2.21: 1 to 8 in a RandomShuffleQueue with seed 1, seed2 2. */
MUSTER_TEST (QueueKinds, shuffles_as_TensorFlow_does)
{
  const Wanted wanted = {.op = "RandomShuffleQueue", .capacity = 20, .seed = 1, .seed2 = 2};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  put_many (session, counted, 8);
  EXPECT_GIVES (session, "take_many", 5, "8 4 1 5 7");
  put_many (session, counted, 8);
  EXPECT_GIVES (session, "take", 0, "1");
  EXPECT_GIVES (session, "take_many", 10, "8 5 3 3 4 2 6 6 7 2");
}

/* From TensorFlow 2.21: 0 to 9 by RandomShuffle with seed 1, seed2 2, in three steps. */
MUSTER_TEST (QueueKinds, rows_are_shuffled_as_by_TensorFlow)
{
  static const gint32 wanted[][10] = {{9, 0, 8, 6, 1, 3, 7, 2, 4, 5},
                                      {8, 7, 4, 3, 2, 1, 9, 5, 6, 0},
                                      {3, 0, 9, 6, 4, 5, 2, 8, 1, 7}};
  const gint32 rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const gint64 shape[] = {5, 2};
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
  g_autoptr (MusterSession) session = open_session (NULL, b);
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

MUSTER_TEST (QueueKinds, keeps_enough_to_shuffle_until_it_is_closed)
{
  const Wanted wanted = {
      .op = "RandomShuffleQueue", .capacity = 8, .min_after_dequeue = 3, .shared_name = "q"};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
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

/* Two components; a size that is left open is padded. */
MUSTER_TEST (QueueKinds, pads_what_differs_in_size)
{
  const MusterDType types[] = {MUSTER_FLOAT, MUSTER_STRING};
  const gint64 shapes[] = {-1, 2, -1, -1};
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
  g_autoptr (MusterSession) session = open_session (NULL, b);

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
                             .deadline_us = test_deadline ()};
    MUSTER_EXPECT_TRUE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
  }
  MusterTensor *got[2] = {NULL};
  const MusterStep step = {.fetches = (const char *[]){"take:0", "take:1"},
                           .n_fetches = 2,
                           .deadline_us = test_deadline ()};
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
                           .deadline_us = test_deadline ()};
  (void)muster_session_run (session, &step, &got, &metadata, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_tensor_unref (got);
  return metadata;
}

MUSTER_TEST (QueueKinds, traces_a_wait_with_what_waited)
{
  const Wanted wanted = {.op = "FIFOQueue", .capacity = 4};
  g_autoptr (MusterSession) session = open_queue (NULL, &wanted);
  put (session, 1);
  GThread *thread = g_thread_new ("traced", take_traced, session);
  wait_for_size (session, 0);
  const gint64 before_us = muster_clock_wall_us (muster_system_clock ());
  put (session, 2);
  g_autoptr (GBytes) metadata = g_thread_join (thread);
  MUSTER_ASSERT_NOT_NULL (metadata);
  MUSTER_EXPECT_GE (taken_us (metadata), before_us);
}
