// SPDX-License-Identifier: Apache-2.0
#include "tests/server/lasting_step.h"
#include "tests/server/stuck_master.h"

#include "graph/graph_builder.h"

typedef struct {
  MusterStuckMaster *master;
  Served front;
  MusterSession *session;
} Fixture;

static Fixture
fixture (void)
{
  Fixture f = {.master = stuck_master_new ()};
  f.front = served_start_over (MUSTER_MASTER (f.master));
  f.session = served_session (&f.front, NULL);
  return f;
}

static void
fixture_clear (Fixture *f)
{
  stuck_master_let_go (f->master);
  g_clear_object (&f->session);
  served_clear (&f->front);
  g_clear_object (&f->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* What was sent before has then arrived. */
static void
let_messages_pass (Served *served)
{
  for (int i = 0; i < 30; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSession) other = served_session (served, NULL);
    g_autoptr (MusterTensor) got = served_fetch (other, "quick:0", 0, NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_session_close (other, test_deadline (), NULL, NULL));
  }
}

/* Cancels a step, and then waits until another cancelled one, which isn't positioned, has ended. */
static void
expect_to_outlive_its_caller (LastingWay way)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  LastingStep step = {.session = f.session, .way = way, .cancellable = cancellable};
  lasting_step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));
  g_cancellable_cancel (cancellable);
  lasting_step_join (&step);
  MUSTER_EXPECT_ERROR (step.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&step.error);
  let_messages_pass (&f.front);

  g_autoptr (GCancellable) other = g_cancellable_new ();
  LastingStep ordinary = {.session = f.session, .way = way, .feed = "x:0", .cancellable = other};
  lasting_step_start (&ordinary);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 2));
  g_cancellable_cancel (other);
  lasting_step_join (&ordinary);
  MUSTER_EXPECT_ERROR (ordinary.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&ordinary.error);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  stuck_master_let_go (f.master);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  MUSTER_EXPECT_EQ (stuck_master_n_whole (f.master), 1U);
}

MUSTER_TEST (LastingSteps, outlive_their_caller)
{
  expect_to_outlive_its_caller (LASTING_WHOLE);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_as_callables)
{
  expect_to_outlive_its_caller (LASTING_CALLABLE);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_as_parts)
{
  expect_to_outlive_its_caller (LASTING_PART);
}

static void
expect_to_be_waited_for (LastingWay way)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  LastingStep step = {.session = f.session, .way = way};
  LastingClose closing = {f.session, NULL};
  lasting_step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  GThread *thread = g_thread_new ("close", lasting_close, &closing);
  MUSTER_EXPECT_TRUE (lasting_wait_for_sessions (&f.front, 0));
  let_messages_pass (&f.front);
  stuck_master_let_go (f.master);

  g_thread_join (thread);
  lasting_step_join (&step);
  MUSTER_EXPECT_NO_ERROR (closing.error);
  MUSTER_EXPECT_NO_ERROR (step.error);
  MUSTER_EXPECT_EQ (stuck_master_n_whole (f.master), 1U);
  g_clear_error (&closing.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (LastingSteps, are_waited_for_by_a_close_of_their_session)
{
  expect_to_be_waited_for (LASTING_WHOLE);
}

MUSTER_TEST (LastingSteps, are_waited_for_by_a_close_as_callables)
{
  expect_to_be_waited_for (LASTING_CALLABLE);
}

MUSTER_TEST (LastingSteps, are_not_cut_by_a_close_that_has_no_time)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_NOT_NULL (f.session);
  LastingStep step = {.session = f.session};
  lasting_step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  /* The call arrives by then; the step goes on for longer. */
  MUSTER_EXPECT_FALSE (
      muster_session_close (f.session, test_deadline_in (3 * MUSTER_SECOND), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (lasting_wait_for_sessions (&f.front, 0));
  stuck_master_let_go (f.master);

  lasting_step_join (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (LastingSteps, are_ended_by_a_server_that_stops)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  LastingStep step = {.session = f.session};
  lasting_step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  muster_server_stop (f.front.server, 0);

  lasting_step_join (&step);
  MUSTER_EXPECT_TRUE (step.error != NULL);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  g_clear_error (&step.error);
}

/* Dequeues what nobody enqueues, once a position is fed. */
static MusterGraph *
waiting_graph (void)
{
  static const MusterDType types[] = {MUSTER_INT64};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "muster/position", MUSTER_INT64, 0, NULL);
  muster_graph_builder_node (b, "FIFOQueueV2", "queue");
  muster_graph_builder_attr_types (b, "component_types", types, 1);
  muster_graph_builder_node (b, "QueueDequeueV2", "dequeue");
  muster_graph_builder_input (b, "queue");
  muster_graph_builder_input (b, "^muster/position");
  muster_graph_builder_attr_types (b, "component_types", types, 1);
  muster_graph_builder_node (b, "QueueSizeV2", "size");
  muster_graph_builder_input (b, "queue");
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return graph;
}

MUSTER_TEST (LastingSteps, are_ended_by_a_reset)
{
  g_auto (Served) f = served_start ();
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = waiting_graph ();
  g_autoptr (MusterSession) session =
      muster_master_create_session (f.remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  LastingStep step = {.session = session, .fetch = "dequeue:0"};
  lasting_step_start (&step);
  for (;;) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const Muster__Limit *steps = served_limit (served_status (&f, arena), "steps");
    if (steps == NULL || steps->used == 1)
      break;
  }

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  lasting_step_join (&step);
  MUSTER_EXPECT_TRUE (step.error != NULL);
  g_clear_error (&step.error);
}
