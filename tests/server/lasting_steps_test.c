// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"
#include "tests/server/stuck_master.h"

#include "base/protowire.h"
#include "graph/graph_builder.h"
#include "rpc/server/proxy.h"
#include "rpc/server/rpc_server.h"

/* A step of a positioned job: it feeds muster/position. */

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

/* How a step is run. */
typedef enum { WHOLE, CALLABLE, PART } Way;

typedef struct {
  MusterSession *session; /* (not owned) */
  Way way;
  const char *feed;          /* (nullable) NULL: the position */
  const char *fetch;         /* (nullable) NULL: "stuck:0" */
  GCancellable *cancellable; /* (not owned) (nullable) */
  GThread *thread;
  GError *error; /* (owned) (nullable) */
} Step;

static void
run_callable (Step *self, const MusterStep *step, MusterTensor **got)
{
  const gint64 callable =
      muster_session_make_callable (self->session, step, test_deadline (), NULL, &self->error);
  MUSTER_EXPECT_NO_ERROR (self->error);
  muster_session_run_callable (self->session, callable, &step->feeds[0].tensor, 1, test_deadline (),
                               got, NULL, self->cancellable, &self->error);
}

static void
run_part (Step *self, const MusterStep *step, MusterTensor **got)
{
  g_autofree char *parts =
      muster_session_set_up_partial_run (self->session, step, test_deadline (), NULL, &self->error);
  MUSTER_EXPECT_NO_ERROR (self->error);
  muster_session_run_part (self->session, parts, step, got, NULL, self->cancellable, &self->error);
}

static gpointer
run_step (gpointer data)
{
  Step *self = data;
  g_autoptr (MusterTensor) position = muster_tensor_new_int64 (4);
  g_autoptr (MusterTensor) got = NULL;
  const MusterFeed feed = {self->feed != NULL ? self->feed : "muster/position:0", position};
  const char *fetch = self->fetch != NULL ? self->fetch : "stuck:0";
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = &fetch,
                           .n_fetches = 1,
                           .deadline_us = test_deadline ()};
  if (self->way == CALLABLE)
    run_callable (self, &step, &got);
  else if (self->way == PART)
    run_part (self, &step, &got);
  else
    muster_session_run (self->session, &step, &got, NULL, self->cancellable, &self->error);
  return NULL;
}

static void
step_start (Step *self)
{
  self->thread = g_thread_new ("step", run_step, self);
}

static void
step_join (Step *self)
{
  g_thread_join (self->thread);
}

static gboolean
wait_for_sessions (Served *served, int n)
{
  const gint64 until_us = test_deadline ();
  for (;;) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const Muster__StatusResponse *status = served_status (served, arena);
    if (status == NULL || (int)status->sessions == n)
      return status != NULL;
    if (muster_clock_now_us (muster_system_clock ()) > until_us)
      return FALSE;
  }
}

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
expect_to_outlive_its_caller (Way way)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Step step = {.session = f.session, .way = way, .cancellable = cancellable};
  step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));
  g_cancellable_cancel (cancellable);
  step_join (&step);
  MUSTER_EXPECT_ERROR (step.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&step.error);
  let_messages_pass (&f.front);

  g_autoptr (GCancellable) other = g_cancellable_new ();
  Step ordinary = {.session = f.session, .way = way, .feed = "x:0", .cancellable = other};
  step_start (&ordinary);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 2));
  g_cancellable_cancel (other);
  step_join (&ordinary);
  MUSTER_EXPECT_ERROR (ordinary.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&ordinary.error);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  stuck_master_let_go (f.master);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 0));
  MUSTER_EXPECT_EQ (stuck_master_n_whole (f.master), 1U);
}

MUSTER_TEST (LastingSteps, outlive_their_caller)
{
  expect_to_outlive_its_caller (WHOLE);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_as_callables)
{
  expect_to_outlive_its_caller (CALLABLE);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_as_parts)
{
  expect_to_outlive_its_caller (PART);
}

typedef struct {
  MusterSession *session; /* (not owned) */
  GError *error;          /* (owned) (nullable) */
} Close;

static gpointer
run_close (gpointer data)
{
  Close *self = data;
  muster_session_close (self->session, test_deadline (), NULL, &self->error);
  return NULL;
}

static void
expect_to_be_waited_for (Way way)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  Step step = {.session = f.session, .way = way};
  Close closing = {f.session, NULL};
  step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  GThread *thread = g_thread_new ("close", run_close, &closing);
  MUSTER_EXPECT_TRUE (wait_for_sessions (&f.front, 0));
  let_messages_pass (&f.front);
  stuck_master_let_go (f.master);

  g_thread_join (thread);
  step_join (&step);
  MUSTER_EXPECT_NO_ERROR (closing.error);
  MUSTER_EXPECT_NO_ERROR (step.error);
  MUSTER_EXPECT_EQ (stuck_master_n_whole (f.master), 1U);
  g_clear_error (&closing.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (LastingSteps, are_waited_for_by_a_close_of_their_session)
{
  expect_to_be_waited_for (WHOLE);
}

MUSTER_TEST (LastingSteps, are_waited_for_by_a_close_as_callables)
{
  expect_to_be_waited_for (CALLABLE);
}

MUSTER_TEST (LastingSteps, are_not_cut_by_a_close_that_has_no_time)
{
  g_auto (Fixture) f = fixture ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_NOT_NULL (f.session);
  Step step = {.session = f.session};
  step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  MUSTER_EXPECT_FALSE (
      muster_session_close (f.session, test_deadline_in (100 * MUSTER_MILLISECOND), NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (wait_for_sessions (&f.front, 0));
  stuck_master_let_go (f.master);

  step_join (&step);
  MUSTER_EXPECT_NO_ERROR (step.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (LastingSteps, are_ended_by_a_server_that_stops)
{
  g_auto (Fixture) f = fixture ();
  MUSTER_ASSERT_NOT_NULL (f.session);
  Step step = {.session = f.session};
  step_start (&step);
  MUSTER_EXPECT_TRUE (stuck_master_wait_for (f.master, 1));

  muster_server_stop (f.front.server, 0);

  step_join (&step);
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
  Step step = {.session = session, .fetch = "dequeue:0"};
  step_start (&step);
  for (;;) {
    g_autoptr (MusterArena) arena = muster_arena_new ();
    const Muster__Limit *steps = served_limit (served_status (&f, arena), "steps");
    if (steps == NULL || steps->used == 1)
      break;
  }

  MUSTER_EXPECT_TRUE (muster_master_reset (f.remote, NULL, test_deadline (), NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  step_join (&step);
  MUSTER_EXPECT_TRUE (step.error != NULL);
  g_clear_error (&step.error);
}

/* --- a gateway --- */

/* A master that answers a step when the test does, and notes what comes. */
typedef struct {
  MusterRpcServer *server;
  GAsyncQueue *steps;  /* (element-type MusterRpcCall) */
  GAsyncQueue *events; /* (element-type utf8) static */
  gint n_callables;    /* atomic */
  Served front;
  MusterSession *session;
} Behind;

static void
behind_create (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  g_auto (MusterRope) answer = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&answer), (const guint8 *)"\x0a\x03one", 5);
  muster_rpc_call_reply (call, &answer);
}

static void
behind_make_callable (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Behind *self = data;
  g_auto (MusterRope) answer = MUSTER_ROPE_INIT;
  muster_proto_put_uint (muster_rope_tail (&answer), 1,
                         (guint64)g_atomic_int_add (&self->n_callables, 1) + 1);
  muster_rpc_call_reply (call, &answer);
}

static void
behind_run (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  g_async_queue_push (((Behind *)data)->steps, muster_rpc_call_ref (call));
}

static void
behind_close (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  g_async_queue_push (((Behind *)data)->events, (gpointer) "closed");
  muster_rpc_call_reply (call, NULL);
}

static void
behind_start (Behind *self)
{
  g_autoptr (GError) error = NULL;
  self->steps = g_async_queue_new_full ((GDestroyNotify)muster_rpc_call_unref);
  self->events = g_async_queue_new ();
  self->server = muster_rpc_server_new ();
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/CreateSession",
                                behind_create, self);
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/RunStep", behind_run,
                                self);
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/MakeCallable",
                                behind_make_callable, self);
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/RunCallable", behind_run,
                                self);
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/CloseSession",
                                behind_close, self);
  const int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  muster_rpc_server_start (self->server);
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", port);
  g_autoptr (MusterMaster) master = muster_remote_master_new (address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  self->front = served_start_over (master);
  self->session = served_session (&self->front, NULL);
}

static void
behind_clear (Behind *self)
{
  g_clear_object (&self->session);
  served_clear (&self->front);
  muster_rpc_server_free (self->server);
  g_async_queue_unref (self->steps);
  g_async_queue_unref (self->events);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Behind, behind_clear)

static MusterRpcCall *
behind_take_step (Behind *self)
{
  return g_async_queue_timeout_pop (self->steps, 30 * MUSTER_SECOND);
}

static void
expect_to_outlive_its_caller_behind_a_gateway (Way way)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Step step = {.session = f.session, .way = way, .cancellable = cancellable};
  Step ordinary = {.session = f.session, .way = way, .feed = "x:0", .cancellable = cancellable};
  step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);
  step_start (&ordinary);
  g_autoptr (MusterRpcCall) beside = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (beside);

  g_cancellable_cancel (cancellable);

  step_join (&step);
  step_join (&ordinary);
  const gint64 until_us = test_deadline ();
  while (!muster_rpc_call_is_gone (beside) &&
         muster_clock_now_us (muster_system_clock ()) < until_us) {
  }
  MUSTER_EXPECT_TRUE (muster_rpc_call_is_gone (beside));
  MUSTER_EXPECT_FALSE (muster_rpc_call_is_gone (passed));
  muster_rpc_call_reply (passed, NULL);
  muster_rpc_call_reply (beside, NULL);
  g_clear_error (&step.error);
  g_clear_error (&ordinary.error);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_behind_a_gateway)
{
  expect_to_outlive_its_caller_behind_a_gateway (WHOLE);
}

MUSTER_TEST (LastingSteps, outlive_their_caller_behind_a_gateway_as_callables)
{
  expect_to_outlive_its_caller_behind_a_gateway (CALLABLE);
}

MUSTER_TEST (LastingSteps, are_waited_for_by_a_close_behind_a_gateway)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Step step = {.session = f.session};
  Close closing = {f.session, NULL};
  step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);

  GThread *thread = g_thread_new ("close", run_close, &closing);
  MUSTER_EXPECT_TRUE (wait_for_sessions (&f.front, 0));
  for (int i = 0; i < 30; i++) /* the close has its time to go on too early */
    MUSTER_EXPECT_TRUE (wait_for_sessions (&f.front, 0));
  g_async_queue_push (f.events, (gpointer) "answered");
  muster_rpc_call_reply (passed, NULL);

  g_thread_join (thread);
  step_join (&step);
  MUSTER_EXPECT_NO_ERROR (closing.error);
  MUSTER_EXPECT_STREQ (g_async_queue_pop (f.events), "answered");
  MUSTER_EXPECT_STREQ (g_async_queue_pop (f.events), "closed");
  g_clear_error (&closing.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (LastingSteps, are_ended_by_a_gateway_that_stops)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  Step step = {.session = f.session};
  step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);

  muster_server_stop (f.front.server, 0);

  step_join (&step);
  MUSTER_EXPECT_TRUE (step.error != NULL);
  muster_rpc_call_reply (passed, NULL);
  g_clear_error (&step.error);
}
