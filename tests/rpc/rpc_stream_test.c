// SPDX-License-Identifier: Apache-2.0
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <stdlib.h>
#include <string.h>

static MusterRpcStream *
open_stream (Echo *f, const char *method, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)text, strlen (text));
  MusterRpcOptions options = echo_options ();
  MusterRpcStream *stream = muster_rpc_client_open (f->client, method, &request, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

/* The number in the next message, or -1. */
static int
next_number (MusterRpcStream *stream, GError **error)
{
  g_autoptr (GBytes) message =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, error);
  if (message == NULL)
    return -1;
  g_autofree char *text = g_strndup (g_bytes_get_data (message, NULL), g_bytes_get_size (message));
  return atoi (text);
}

MUSTER_TEST (RpcStream, brings_messages_in_order_and_ends)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Count", "2000");

  for (int i = 0; i < 2000; i++)
    MUSTER_ASSERT_EQ (next_number (stream, &error), i);
  for (int i = 0; i < 2; i++) { /* and stays ended */
    MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
    MUSTER_EXPECT_NO_ERROR (error);
  }
}

MUSTER_TEST (RpcStream, of_states_brings_few_of_those_that_were_not_read_in_time_and_the_last)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  int n_read = 0, last = -1;

  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/States", "1000");

  g_autoptr (MusterRpcCall) sent = g_async_queue_timeout_pop (f.arrived, 30 * MUSTER_SECOND);
  MUSTER_ASSERT_NOT_NULL (sent);
  for (int next; (next = next_number (stream, &error)) != -1; n_read++) {
    MUSTER_EXPECT_GT (next, last);
    last = next;
  }
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (last, 999);
  MUSTER_EXPECT_LT (n_read, 500);
}

MUSTER_TEST (RpcStream, without_a_message_ends_at_once)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Count", "0");

  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcStream, ends_with_the_servers_error_after_its_messages)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  echo_fail_with (&f, MUSTER_ERROR_ABORTED, "the session is gone");
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Count", "200");

  for (int i = 0; i < 200; i++)
    MUSTER_ASSERT_EQ (next_number (stream, &error), i);
  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_STREQ (error->message, "the session is gone");
}

MUSTER_TEST (RpcStream, of_an_unknown_method_is_unimplemented)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Nothing", "");

  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (RpcStream, that_is_freed_is_cancelled_at_the_server)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  MusterRpcStream *stream = open_stream (&f, "/test.Echo/Open", "");
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  MUSTER_EXPECT_TRUE (call != NULL);

  muster_rpc_stream_free (stream);

  MUSTER_EXPECT_TRUE (echo_pop (f.gone) == call);
  muster_rpc_call_finish (call, NULL);
}

MUSTER_TEST (RpcStream, that_is_freed_unread_does_not_hold_its_server_up)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  for (int i = 0; i < 20; i++)
    muster_rpc_stream_free (open_stream (&f, "/test.Echo/Count", "500"));
}

typedef struct {
  MusterRpcStream *stream;
  GCancellable *cancellable;
  GError *error;
} Reader;

static gpointer
read_one (gpointer data)
{
  Reader *self = data;
  GBytes *message = muster_rpc_stream_next_until (self->stream, MUSTER_WAIT_FOREVER,
                                                  self->cancellable, &self->error);
  g_clear_pointer (&message, g_bytes_unref);
  return NULL;
}

MUSTER_TEST (RpcStream, survives_a_wait_that_is_cancelled)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Open", "");
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Reader reader = {.stream = stream, .cancellable = cancellable};
  GThread *thread = g_thread_new ("reader", read_one, &reader);

  g_cancellable_cancel (cancellable);
  g_thread_join (thread);
  muster_rpc_call_finish (call, NULL);

  MUSTER_EXPECT_ERROR (reader.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&reader.error);
  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcStream, breaks_at_its_deadline)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) connected = echo_call (&f, "/test.Echo/Echo", "", NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterRpcOptions options = echo_options_for (MUSTER_SECOND);
  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (f.client, "/test.Echo/Open", NULL, &options, &error);
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);

  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  muster_rpc_call_finish (call, NULL);
}

MUSTER_TEST (RpcStream, breaks_when_its_server_stops)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Open", "");
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);

  muster_rpc_server_stop (f.server, 0);

  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  muster_rpc_call_finish (call, NULL);
}

MUSTER_TEST (RpcStream, many_share_a_client)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) streams =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_rpc_stream_free);
  for (int i = 0; i < 100; i++)
    g_ptr_array_add (streams, open_stream (&f, "/test.Echo/Count", "3"));
  for (int n = 0; n < 3; n++)
    for (guint i = 0; i < streams->len; i++)
      MUSTER_ASSERT_EQ (next_number (streams->pdata[i], &error), n);
}

MUSTER_TEST (RpcStream, can_be_inspected_and_goes_on)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Open", "");
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);

  for (int i = 0; i < 2; i++) {
    g_autoptr (GError) nothing = NULL;
    MUSTER_EXPECT_NULL (muster_rpc_stream_next_until (stream, 0, NULL, &nothing));
    MUSTER_EXPECT_ERROR (nothing, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  }
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  muster_rpc_call_finish (call, NULL);
  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
push (gpointer queue)
{
  g_async_queue_push (queue, queue);
}

MUSTER_TEST (RpcStream, that_is_ended_from_this_side_says_why)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) why =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "the session is gone");
  g_autoptr (GAsyncQueue) told = g_async_queue_new ();
  g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Open", "");
  MUSTER_EXPECT_EQ (next_number (stream, &error), 0);
  muster_rpc_stream_set_notify (stream, push, told);

  muster_rpc_stream_end (stream, why);

  MUSTER_EXPECT_EQ (next_number (stream, &error), -1);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_STREQ (error->message, "the session is gone");
  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (told, 30 * MUSTER_SECOND) != NULL);
  muster_rpc_stream_set_notify (stream, NULL, NULL);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  muster_rpc_call_finish (call, NULL);
}

MUSTER_TEST (RpcStream, counts_on_the_server_until_it_has_ended)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  for (int round = 0; round < 20; round++) {
    g_autoptr (MusterRpcStream) stream = open_stream (&f, "/test.Echo/Count", "3");
    g_autoptr (GError) error = NULL;
    while (next_number (stream, &error) >= 0)
      ;
  }

  const gint64 until_us = test_deadline ();
  while (muster_rpc_server_n_calls (f.server) != 0 &&
         muster_clock_now_us (muster_system_clock ()) < until_us)
    g_thread_yield ();

  MUSTER_EXPECT_EQ (muster_rpc_server_n_calls (f.server), 0);
}
