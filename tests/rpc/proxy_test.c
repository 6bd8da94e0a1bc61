// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/proxy_private.h"

#include "rpc/client/rpc_call_private.h"
#include "rpc/server/rpc_server_state_private.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <grpc/support/time.h>
#include <string.h>

#define BOUND_US (30 * MUSTER_SECOND)

/* A server whose methods are passed on to an echo's, and a client of it. */
typedef struct {
  Echo echo;  /* the one behind */
  Echo front; /* only its client, for echo_call () and threads */
  MusterRpcServer *server;
  MusterRpcClient *behind;
  GAsyncQueue *ended; /* (element-type GError) of all that were passed on; done () for none */
  GAsyncQueue *gone;  /* a word for each caller of WaitOn that has gone */
} Front;

static GError *
done (void)
{
  return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNKNOWN, "done");
}

static void
on_proxied (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data)
{
  Front *self = data;
  const GError *error = muster_rpc_proxied_error (passed);
  MUSTER_EXPECT_TRUE ((error == NULL) == (muster_rpc_proxied_response (passed) != NULL));
  g_async_queue_push (self->ended, error != NULL ? g_error_copy (error) : done ());
  muster_rpc_call_finish_proxied (call, passed);
}

static void
pass (MusterRpcCall *call, MusterRpcMessage *request, gpointer data, const char *method)
{
  Front *self = data;
  const MusterRpcProxyOptions options = {.method = method};
  muster_rpc_call_proxy (call, self->behind, request, &options, on_proxied, self);
}

static void
proxy_echo (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  pass (call, request, data, "/test.Echo/Echo");
}

static void
proxy_fail (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  pass (call, request, data, "/test.Echo/Fail");
}

static void
proxy_wait (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  pass (call, request, data, "/test.Echo/Wait");
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Front *self = data;
  g_async_queue_push (self->gone, self);
}

static void
proxy_wait_on (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  Front *self = data;
  const MusterRpcProxyOptions options = {
      .method = "/test.Echo/Wait",
      .outlives_caller = TRUE,
      .deadline_us = echo_options ().deadline_us,
  };
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone), self,
                         NULL);
  muster_rpc_call_proxy (call, self->behind, request, &options, on_proxied, self);
}

/* A status with details, as TensorFlow's. */
static void
on_detailed (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND, "not here");
  grpc_slice details = grpc_slice_from_static_buffer ("\x08\x05\x00\xff", 4);
  muster_rpc_call_end (call, NULL, error, &details);
}

static void
proxy_detailed (MusterRpcCall *call, MusterRpcMessage *request, gpointer data)
{
  pass (call, request, data, "/test.Front/Behind");
}

static void
front_start (Front *self, gboolean is_itself)
{
  g_autoptr (GError) error = NULL;
  echo_start (&self->echo);
  self->ended = g_async_queue_new_full ((GDestroyNotify)g_error_free);
  self->gone = g_async_queue_new ();
  self->server = muster_rpc_server_new ();
  muster_rpc_server_add_message_method (self->server, "/test.Echo/Echo", proxy_echo, self);
  muster_rpc_server_add_message_method (self->server, "/test.Echo/Fail", proxy_fail, self);
  muster_rpc_server_add_message_method (self->server, "/test.Echo/Wait", proxy_wait, self);
  muster_rpc_server_add_message_method (self->server, "/test.Echo/WaitOn", proxy_wait_on, self);
  muster_rpc_server_add_message_method (self->server, "/test.Front/Detailed", proxy_detailed, self);
  muster_rpc_server_add_method (self->server, "/test.Front/Behind", on_detailed, self);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", port);
  self->front.client = muster_rpc_client_new (address, NULL);
  /* Before the server starts: its threads read it. */
  self->behind = muster_rpc_client_new (is_itself ? address : self->echo.address, NULL);
  muster_rpc_server_start (self->server);
}

static void
front_clear (Front *self)
{
  g_clear_pointer (&self->front.client, muster_rpc_client_unref);
  g_clear_pointer (&self->server, muster_rpc_server_free);
  muster_rpc_client_unref (self->behind);
  g_async_queue_unref (self->ended);
  g_async_queue_unref (self->gone);
  echo_clear (&self->echo);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Front, front_clear)

static void
expect_proxy_of (gsize size)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  g_autoptr (GError) error = NULL;
  guint8 *data = g_malloc (size);
  for (gsize i = 0; i < size; i++)
    data[i] = (guint8)(i * 7 + i / 251);
  g_autoptr (GBytes) bytes = g_bytes_new_take (data, size);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_rope_append (&request, bytes);
  MusterRpcOptions options = echo_options_for (300 * MUSTER_SECOND);

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.front.client, "/test.Echo/Echo", &request, &options, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_bytes_equal (answer, bytes));
}

MUSTER_TEST (RpcProxy, brings_messages_both_ways)
{
  expect_proxy_of (0);
  expect_proxy_of (5);
  expect_proxy_of ((gsize)64 << 20);
}

MUSTER_TEST (RpcProxy, brings_just_under_two_gigabytes)
{
  if (g_getenv ("MUSTER_LONG") == NULL)
    MUSTER_SKIP ("runs with MUSTER_LONG");
  expect_proxy_of (((gsize)2 << 30) - 100);
}

MUSTER_TEST (RpcProxy, brings_the_status_with_its_text)
{
  static const MusterError codes[] = {MUSTER_ERROR_ABORTED, MUSTER_ERROR_FAILED_PRECONDITION,
                                      MUSTER_ERROR_UNAVAILABLE, MUSTER_ERROR_OUT_OF_RANGE};
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  for (gsize i = 0; i < G_N_ELEMENTS (codes); i++) {
    g_autoptr (GError) error = NULL;
    echo_fail_with (&f.echo, codes[i], "the master's own words");

    g_autoptr (GBytes) answer = echo_call (&f.front, "/test.Echo/Fail", "", NULL, &error);

    MUSTER_EXPECT_NULL (answer);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, codes[i]);
    MUSTER_EXPECT_TRUE (g_str_has_suffix (error->message, "the master's own words"));
  }
}

/* Two hops away from its master, a client hears of the master's own UNAVAILABLE as the master told
 * it: it isn't the master that is out of reach. */
MUSTER_TEST (RpcProxy, leaves_the_words_of_a_server_that_says_unavailable)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  g_autoptr (GError) error = NULL;
  echo_fail_with (&f.echo, MUSTER_ERROR_UNAVAILABLE, "a task is gone");

  g_autoptr (GBytes) answer = echo_call (&f.front, "/test.Echo/Fail", "", NULL, &error);

  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_NULL (strstr (error->message, f.echo.address));
}

MUSTER_TEST (RpcProxy, says_which_server_is_out_of_reach)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  g_autoptr (GError) error = NULL;
  muster_rpc_server_stop (f.echo.server, 0);

  g_autoptr (GBytes) answer = echo_call (&f.front, "/test.Echo/Echo", "", NULL, &error);

  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, f.echo.address);
}

/* When its server stops, gRPC may report the connection's end as if the server had sent it. */
MUSTER_TEST (RpcProxy, says_which_server_has_ended_the_connection)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  g_autoptr (GError) error = NULL;
  echo_fail_with (&f.echo, MUSTER_ERROR_UNAVAILABLE, "GOAWAY received");

  g_autoptr (GBytes) answer = echo_call (&f.front, "/test.Echo/Fail", "", NULL, &error);

  MUSTER_EXPECT_NULL (answer);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, f.echo.address);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, ": the connection was closed");
}

MUSTER_TEST (RpcProxy, brings_the_details_of_a_status)
{
  g_auto (Front) f = {0};
  front_start (&f, TRUE);
  const MusterRpcOptions options = echo_options ();
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck (NULL);
  MusterRpcUnary unary = {0};
  MusterRpcChannel *channel = muster_rpc_client_hold_channel (f.front.client);
  muster_rpc_unary_start (&unary, f.front.client, channel,
                          muster_rpc_channel_new_call (channel, "/test.Front/Detailed",
                                                       options.deadline_us, now_us, queue),
                          muster_grpc_buffer_from_rope (NULL), &options, &unary);
  grpc_completion_queue_pluck (queue, &unary, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);

  MUSTER_EXPECT_EQ ((int)unary.outcome.status, MUSTER_ERROR_NOT_FOUND);
  gboolean is_there = FALSE;
  for (size_t i = 0; i < unary.trailing.count; i++) {
    const grpc_metadata *item = &unary.trailing.metadata[i];
    if (grpc_slice_str_cmp (item->key, "grpc-status-details-bin") == 0)
      is_there = grpc_slice_buf_start_eq (item->value, "\x08\x05\x00\xff", 4) == 1;
  }
  MUSTER_EXPECT_TRUE (is_there);
  muster_rpc_unary_clear (&unary);
  grpc_completion_queue_shutdown (queue);
  grpc_completion_queue_destroy (queue);
}

MUSTER_TEST (RpcProxy, brings_the_deadline)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  EchoThread caller;
  echo_thread_prepare (&caller, &f.front, "/test.Echo/Wait");
  echo_thread_run (&caller);

  g_autoptr (MusterRpcCall) arrived = echo_pop (f.echo.arrived);
  MUSTER_ASSERT_NOT_NULL (arrived);
  gint64 apart_us = muster_rpc_call_deadline_us (arrived) - caller.options.deadline_us;

  MUSTER_EXPECT_LT (ABS (apart_us), MUSTER_SECOND);
  g_cancellable_cancel (caller.cancellable);
  g_autoptr (GError) error = echo_thread_join (&caller);
  muster_rpc_call_finish (arrived, NULL);
}

MUSTER_TEST (RpcProxy, ends_with_its_caller)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  EchoThread caller;
  echo_thread_start (&caller, &f.front, "/test.Echo/Wait");
  g_autoptr (MusterRpcCall) arrived = echo_pop (f.echo.arrived);
  MUSTER_ASSERT_NOT_NULL (arrived);

  g_cancellable_cancel (caller.cancellable);

  g_autoptr (GError) error = echo_thread_join (&caller);
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.echo.gone, BOUND_US) == arrived);
  g_autoptr (GError) ended = g_async_queue_timeout_pop (f.ended, BOUND_US);
  MUSTER_EXPECT_TRUE (ended != NULL);
  muster_rpc_call_finish (arrived, NULL);
}

MUSTER_TEST (RpcProxy, may_outlive_its_caller)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  EchoThread caller;
  echo_thread_start (&caller, &f.front, "/test.Echo/WaitOn");
  g_autoptr (MusterRpcCall) arrived = echo_pop (f.echo.arrived);
  MUSTER_ASSERT_NOT_NULL (arrived);

  g_cancellable_cancel (caller.cancellable);
  g_autoptr (GError) error = echo_thread_join (&caller);
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.gone, BOUND_US) != NULL);
  muster_rpc_call_reply (arrived, NULL);

  g_autoptr (GError) ended = g_async_queue_timeout_pop (f.ended, BOUND_US);
  MUSTER_EXPECT_ERROR (ended, MUSTER_ERROR, MUSTER_ERROR_UNKNOWN); /* it was answered */
}

MUSTER_TEST (RpcProxy, outlives_no_server)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  EchoThread first, second;
  echo_thread_start (&first, &f.front, "/test.Echo/WaitOn");
  echo_thread_start (&second, &f.front, "/test.Echo/Wait");
  g_autoptr (MusterRpcCall) one = echo_pop (f.echo.arrived);
  g_autoptr (MusterRpcCall) other = echo_pop (f.echo.arrived);
  MUSTER_ASSERT_TRUE (one != NULL && other != NULL);

  muster_rpc_server_stop (f.server, 0);

  g_autoptr (GError) error = echo_thread_join (&first);
  MUSTER_EXPECT_TRUE (error != NULL);
  g_autoptr (GError) another = echo_thread_join (&second);
  MUSTER_EXPECT_TRUE (another != NULL);
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.echo.gone, BOUND_US) != NULL);
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.echo.gone, BOUND_US) != NULL);
  muster_rpc_call_finish (one, NULL);
  muster_rpc_call_finish (other, NULL);
}

static gpointer
reply (gpointer arrived)
{
  muster_rpc_call_reply (arrived, NULL);
  return NULL;
}

/* The server that stops cancels those calls that haven't ended: it mustn't find one that has. */
static void
stop_while_one_ends (void)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  EchoThread caller;
  echo_thread_start (&caller, &f.front, "/test.Echo/WaitOn");
  MusterRpcCall *arrived = echo_pop (f.echo.arrived);
  MUSTER_ASSERT_NOT_NULL (arrived);

  GThread *replying = g_thread_new ("reply", reply, arrived);
  muster_rpc_server_stop (f.server, 0);

  g_thread_join (replying);
  g_autoptr (GError) error = echo_thread_join (&caller); /* either */
  g_autoptr (GError) ended = g_async_queue_timeout_pop (f.ended, BOUND_US);
  MUSTER_EXPECT_TRUE (ended != NULL);
}

MUSTER_TEST (RpcProxy, ends_once_while_its_server_stops)
{
  for (int i = 0; i < 300; i++)
    stop_while_one_ends ();
}

/* A caller may have had no more time; that is no warning's business. */
MUSTER_TEST (RpcProxy, takes_no_timeout_for_a_refusal)
{
  static const struct {
    MusterError code;
    gboolean is_refusal;
  } cases[] = {{MUSTER_ERROR_DEADLINE_EXCEEDED, FALSE},
               {MUSTER_ERROR_UNAVAILABLE, TRUE},
               {MUSTER_ERROR_UNAUTHENTICATED, TRUE}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    MUSTER_TRACE ("%d", (int)cases[i].code);
    g_autoptr (GError) error =
        g_error_new_literal (MUSTER_ERROR, cases[i].code, MUSTER_NO_ANSWER_FROM "m:1' in 10 s");
    g_autoptr (GError) refusal = muster_rpc_proxy_refusal (error, "m:1");
    MUSTER_EXPECT_EQ (refusal != NULL, cases[i].is_refusal);
  }
}

static gpointer
call_many (gpointer data)
{
  Front *f = data;
  for (int i = 0; i < 200; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) answer = echo_call (&f->front, "/test.Echo/Echo", "again", NULL, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  return NULL;
}

MUSTER_TEST (RpcProxy, passes_many_calls_at_once)
{
  g_auto (Front) f = {0};
  front_start (&f, FALSE);
  GThread *threads[8];
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("caller", call_many, &f);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}
