// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/held_port.h"
#include "tests/rpc/echo.h"

#include <string.h>

MUSTER_TEST (RpcCall, brings_the_answer)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;

  g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "hello", NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (answer, NULL), g_bytes_get_size (answer), "hello", 5);
}

MUSTER_TEST (RpcCall, may_be_empty_both_ways)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options ();

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.client, "/test.Echo/Echo", NULL, &options, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (g_bytes_get_size (answer), 0);
}

static void
expect_echo_of (gsize size)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  guint8 *data = g_malloc (size);
  for (gsize i = 0; i < size; i++)
    data[i] = (guint8)(i * 7 + i / 251);
  g_autoptr (GBytes) bytes = g_bytes_new_take (data, size);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)"head", 4);
  muster_rope_append (&request, bytes);
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)"tail", 4);
  MusterRpcOptions options = echo_options_for (300 * MUSTER_SECOND);

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.client, "/test.Echo/Echo", &request, &options, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_ASSERT_EQ (g_bytes_get_size (answer), size + 8);
  const guint8 *got = g_bytes_get_data (answer, NULL);
  MUSTER_EXPECT_TRUE (memcmp (got, "head", 4) == 0);
  MUSTER_EXPECT_TRUE (memcmp (got + 4, data, size) == 0);
  MUSTER_EXPECT_TRUE (memcmp (got + 4 + size, "tail", 4) == 0);
}

MUSTER_TEST (RpcCall, carries_large_messages)
{
  expect_echo_of (5000);
  expect_echo_of (100000);
  expect_echo_of ((gsize)64 << 20);
}

MUSTER_TEST (RpcCall, carries_just_under_two_gigabytes)
{
  if (g_getenv ("MUSTER_LONG") == NULL)
    MUSTER_SKIP ("runs with MUSTER_LONG");
  expect_echo_of (((gsize)2 << 30) - 100);
}

MUSTER_TEST (RpcCall, over_two_gigabytes_is_refused_before_it_is_sent)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  static const guint8 byte;
  g_autoptr (GBytes) claimed = g_bytes_new_static (&byte, ((gsize)2 << 30) + 1); /* never read */
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_rope_append (&request, claimed);
  MusterRpcOptions options = echo_options ();

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (f.client, "/test.Echo/Echo", &request, &options, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

MUSTER_TEST (RpcCall, fails_with_the_servers_code_and_text)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  for (int code = 1; code <= 16; code++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = g_strdup_printf ("why 100%% \n é %d", code);
    echo_fail_with (&f, code, text);

    MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Fail", "", NULL, &error));

    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, text);
  }
}

MUSTER_TEST (RpcCall, of_an_unknown_method_is_unimplemented)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  for (int i = 0; i < 20; i++) { /* more than are asked for in advance */
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Nothing", "x", NULL, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "/test.Echo/Nothing");
  }
}

MUSTER_TEST (RpcCall, status_text_is_truncated_and_made_valid)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autofree char *long_text = g_strnfill (20000, 'x');
  memcpy (long_text, "bad \xff byte", 10);
  echo_fail_with (&f, MUSTER_ERROR_NOT_FOUND, long_text);

  MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Fail", "", NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_TRUE (g_utf8_validate (error->message, -1, NULL));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (error->message, "bad \uFFFD byte"));
  MUSTER_EXPECT_LE (strlen (error->message), 4096u);
  MUSTER_EXPECT_GT (strlen (error->message), 4000u);
}

MUSTER_TEST (RpcCall, status_text_that_http_escapes_still_arrives)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  GString *text = g_string_new (NULL);
  for (int i = 0; i < 5000; i++)
    g_string_append (text, "é\n");
  echo_fail_with (&f, MUSTER_ERROR_NOT_FOUND, text->str);

  MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Fail", "", NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (text->str, error->message));
  MUSTER_EXPECT_GT (strlen (error->message), 1000u);
  g_string_free (text, TRUE);
}

MUSTER_TEST (RpcCall, that_was_cancelled_before_is_not_made)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Echo", "", cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

MUSTER_TEST (RpcCall, that_is_cancelled_ends_on_both_sides)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&caller, &f);
  MUSTER_EXPECT_TRUE (call != NULL);

  g_cancellable_cancel (caller.cancellable);
  g_autoptr (GError) error = echo_thread_join (&caller);

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (echo_pop (f.gone) == call);
  MUSTER_EXPECT_TRUE (g_cancellable_is_cancelled (muster_rpc_call_cancellable (call)));
  muster_rpc_call_reply (call, NULL); /* too late: nobody minds */
}

MUSTER_TEST (RpcCall, ends_at_its_deadline_on_both_sides)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) connected = echo_call (&f, "/test.Echo/Echo", "", NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MusterRpcOptions options = echo_options_for (MUSTER_SECOND);
  options.wait_for_ready = TRUE;

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (f.client, "/test.Echo/Wait", NULL, &options, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (error->message, "no answer from '127.0.0.1:"));
  MUSTER_EXPECT_TRUE (strstr (error->message, "no gRPC connection") == NULL);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);
  MUSTER_ASSERT_NOT_NULL (call);
  MUSTER_EXPECT_TRUE (echo_pop (f.gone) == call);
  muster_rpc_call_reply (call, NULL);
}

MUSTER_TEST (RpcCall, gives_the_server_its_deadline)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&caller, &f);
  MUSTER_EXPECT_TRUE (call != NULL);

  gint64 deadline_us = muster_rpc_call_deadline_us (call);
  muster_rpc_call_reply (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&caller);

  MUSTER_EXPECT_NO_ERROR (error);
  /* gRPC counts in milliseconds and rounds. */
  MUSTER_EXPECT_NEAR (deadline_us, caller.options.deadline_us, MUSTER_SECOND);
}

MUSTER_TEST (RpcCall, without_a_deadline_has_none_on_the_server)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller = {.echo = &f};
  echo_thread_start (&caller, &f, "/test.Echo/Echo");
  g_autoptr (GError) first = echo_thread_join (&caller);
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.client, "/test.Echo/Echo", NULL, &options, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (first);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcCall, takes_a_deadline_of_0_for_one_that_has_passed)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = {0};

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (f.client, "/test.Echo/Echo", NULL, &options, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
}

MUSTER_TEST (RpcCall, without_a_server_is_unavailable_at_once)
{
  g_autofree char *address = NULL;
  g_autoptr (GSocket) held = test_hold_port (&address);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options ();

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (client, "/test.Echo/Echo", NULL, &options, NULL, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, address);
}

MUSTER_TEST (RpcCall, that_waits_for_a_server_says_that_it_was_not_connected)
{
  g_autofree char *address = NULL;
  g_autoptr (GSocket) held = test_hold_port (&address);
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options_for (200 * MUSTER_MILLISECOND);
  options.wait_for_ready = TRUE;

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (client, "/test.Echo/Echo", NULL, &options, NULL, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "no gRPC connection");
  MUSTER_EXPECT_TRUE (strstr (error->message, address) != NULL);
}

MUSTER_TEST (RpcCall, that_waits_for_a_server_reaches_one_that_comes_later)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autofree char *address = NULL;
  g_autoptr (GSocket) held = test_hold_port (&address);
  g_clear_pointer (&f.client, muster_rpc_client_unref);
  f.client = muster_rpc_client_new (address, NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (echo_call (&f, "/test.Echo/Echo", "", NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  g_clear_error (&error);

  g_autoptr (MusterRpcServer) late = muster_rpc_server_new ();
  g_clear_object (&held);
  if (muster_rpc_server_listen (late, address, NULL, NULL) == 0)
    MUSTER_SKIP ("somebody took the port");
  muster_rpc_server_start (late);
  MusterRpcOptions options = echo_options ();
  options.wait_for_ready = TRUE;

  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (f.client, "/test.Echo/Echo", NULL, &options, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED); /* it answered */
}

typedef struct {
  Echo *echo;
  int n_good;
} Caller;

static gpointer
call_many (gpointer data)
{
  Caller *self = data;
  for (int i = 0; i < 200; i++) {
    g_autofree char *text = g_strdup_printf ("%p %d", (gpointer)self, i);
    g_autoptr (GBytes) answer = echo_call (self->echo, "/test.Echo/Echo", text, NULL, NULL);
    g_autoptr (GBytes) wanted = g_bytes_new (text, strlen (text));
    self->n_good += answer != NULL && g_bytes_equal (answer, wanted);
  }
  return NULL;
}

MUSTER_TEST (RpcCall, may_be_made_by_many_threads_at_once)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  Caller callers[24] = {0};
  GThread *threads[24];
  for (gsize i = 0; i < G_N_ELEMENTS (callers); i++) {
    callers[i].echo = &f;
    threads[i] = g_thread_new ("caller", call_many, &callers[i]);
  }
  for (gsize i = 0; i < G_N_ELEMENTS (callers); i++) {
    g_thread_join (threads[i]);
    MUSTER_EXPECT_EQ (callers[i].n_good, 200);
  }
}

static gpointer
cancel_many (gpointer data)
{
  Echo *echo = data;
  for (int i = 0; i < 100; i++) {
    EchoThread caller;
    echo_thread_start (&caller, echo, "/test.Echo/Echo");
    g_cancellable_cancel (caller.cancellable);
    g_autoptr (GError) error = echo_thread_join (&caller);
    if (error != NULL)
      MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  }
  return NULL;
}

MUSTER_TEST (RpcCall, may_be_cancelled_at_any_moment)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  GThread *threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("canceller", cancel_many, &f);
  for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_autoptr (GError) error = NULL;

  g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "after", NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcCall, that_is_forgotten_still_arrives)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  muster_rpc_client_send_and_forget (f.client, "/test.Echo/Wait", NULL, 30 * MUSTER_SECOND);

  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);

  MUSTER_ASSERT_NOT_NULL (call);
  g_clear_pointer (&f.client, muster_rpc_client_unref); /* the forgotten call outlives it */
  muster_rpc_call_reply (call, NULL);
}
