// SPDX-License-Identifier: Apache-2.0
/* Steps that feed a position, behind a gateway. */
#include "tests/server/lasting_step.h"

#include "base/protowire_private.h"
#include "rpc/server/proxy_private.h"
#include "rpc/server/rpc_server_private.h"

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
behind_release (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  muster_rpc_call_reply (call, NULL);
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
  muster_rpc_server_add_method (self->server, "/tensorflow.MasterService/ReleaseCallable",
                                behind_release, self);
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

static gboolean
behind_wait_until_gone (MusterRpcCall *call)
{
  const gint64 until_us = test_deadline ();
  while (!muster_rpc_call_is_gone (call) &&
         muster_clock_now_us (muster_system_clock ()) < until_us) {
  }
  return muster_rpc_call_is_gone (call);
}

static void
expect_to_outlive_its_caller (LastingWay way)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  LastingStep step = {.session = f.session, .way = way, .cancellable = cancellable};
  LastingStep ordinary = {
      .session = f.session, .way = way, .feed = "x:0", .cancellable = cancellable};
  lasting_step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);
  lasting_step_start (&ordinary);
  g_autoptr (MusterRpcCall) beside = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (beside);

  g_cancellable_cancel (cancellable);

  lasting_step_join (&step);
  lasting_step_join (&ordinary);
  MUSTER_EXPECT_TRUE (behind_wait_until_gone (beside));
  MUSTER_EXPECT_FALSE (muster_rpc_call_is_gone (passed));
  muster_rpc_call_reply (passed, NULL);
  muster_rpc_call_reply (beside, NULL);
  g_clear_error (&step.error);
  g_clear_error (&ordinary.error);
}

MUSTER_TEST (GatewaySteps, outlive_their_caller)
{
  expect_to_outlive_its_caller (LASTING_WHOLE);
}

MUSTER_TEST (GatewaySteps, outlive_their_caller_as_callables)
{
  expect_to_outlive_its_caller (LASTING_CALLABLE);
}

MUSTER_TEST (GatewaySteps, are_no_callables_that_were_released)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  LastingStep step = {.session = f.session,
                      .way = LASTING_CALLABLE,
                      .callable = lasting_make_callable (f.session),
                      .cancellable = cancellable};
  MUSTER_EXPECT_TRUE (
      muster_session_release_callable (f.session, step.callable, test_deadline (), NULL, NULL));
  lasting_step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);

  g_cancellable_cancel (cancellable);

  lasting_step_join (&step);
  MUSTER_EXPECT_TRUE (behind_wait_until_gone (passed));
  muster_rpc_call_reply (passed, NULL);
  g_clear_error (&step.error);
}

MUSTER_TEST (GatewaySteps, are_waited_for_by_a_close_of_their_session)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  LastingStep step = {.session = f.session};
  LastingClose closing = {f.session, NULL};
  lasting_step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);

  GThread *thread = g_thread_new ("close", lasting_close, &closing);
  MUSTER_EXPECT_TRUE (lasting_wait_for_sessions (&f.front, 0));
  for (int i = 0; i < 30; i++) /* the close has its time to go on too early */
    MUSTER_EXPECT_TRUE (lasting_wait_for_sessions (&f.front, 0));
  g_async_queue_push (f.events, (gpointer) "answered");
  muster_rpc_call_reply (passed, NULL);

  g_thread_join (thread);
  lasting_step_join (&step);
  MUSTER_EXPECT_NO_ERROR (closing.error);
  MUSTER_EXPECT_STREQ (g_async_queue_pop (f.events), "answered");
  MUSTER_EXPECT_STREQ (g_async_queue_pop (f.events), "closed");
  g_clear_error (&closing.error);
  g_clear_error (&step.error);
}

MUSTER_TEST (GatewaySteps, are_ended_by_a_gateway_that_stops)
{
  g_auto (Behind) f = {0};
  behind_start (&f);
  MUSTER_ASSERT_NOT_NULL (f.session);
  LastingStep step = {.session = f.session};
  lasting_step_start (&step);
  g_autoptr (MusterRpcCall) passed = behind_take_step (&f);
  MUSTER_ASSERT_NOT_NULL (passed);

  muster_server_stop (f.front.server, 0);

  lasting_step_join (&step);
  MUSTER_EXPECT_TRUE (step.error != NULL);
  muster_rpc_call_reply (passed, NULL);
  g_clear_error (&step.error);
}
