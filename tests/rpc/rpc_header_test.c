// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <string.h>

static const char WAIT[] = "/test.Echo/Wait";

/* Makes a call with headers on a thread; the server's end of it. */
static MusterRpcCall *
arrive (Echo *echo, EchoThread *caller, const MusterRpcHeader *headers, gsize n_headers)
{
  echo_thread_prepare (caller, echo, WAIT);
  caller->options.headers = headers;
  caller->options.n_headers = n_headers;
  echo_thread_run (caller);
  return echo_pop (echo->arrived);
}

MUSTER_TEST (RpcHeader, arrives_as_it_was_sent)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autofree char *large = g_strnfill (3000, 'v');
  const MusterRpcHeader headers[] = {
      {"muster-role", "worker 3 of 8; ~{}\"%"}, {"empty", ""}, {"x_1.y", large}};
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = arrive (&f, &caller, headers, G_N_ELEMENTS (headers));
  MUSTER_EXPECT_TRUE (call != NULL);

  const char *role = muster_rpc_call_header (call, "muster-role");
  MUSTER_EXPECT_STREQ (role, headers[0].value);
  MUSTER_EXPECT_STREQ (muster_rpc_call_header (call, "empty"), "");
  MUSTER_EXPECT_STREQ (muster_rpc_call_header (call, "x_1.y"), large);
  MUSTER_EXPECT_NULL (muster_rpc_call_header (call, "absent"));
  MUSTER_EXPECT_NULL (muster_rpc_call_header (call, "muster-rol"));
  MUSTER_EXPECT_TRUE (muster_rpc_call_header (call, "muster-role") == role);

  muster_rpc_call_reply (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&caller);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (role, headers[0].value); /* the call is still held */
}

MUSTER_TEST (RpcHeader, of_a_request_is_in_the_log_of_both_ends)
{
  static const char *const events[] = {"request", "call", "answer", "response"};
  g_auto (Echo) f = {0};
  echo_start (&f);
  const MusterRpcHeader header = {MUSTER_REQUEST_HEADER, "a-1"};
  EchoThread caller;
  heard_begin (G_LOG_LEVEL_DEBUG);

  g_autoptr (MusterRpcCall) call = arrive (&f, &caller, &header, 1);
  MUSTER_ASSERT_NOT_NULL (call);
  muster_rpc_call_reply (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&caller);

  MUSTER_EXPECT_NO_ERROR (error);
  for (gsize i = 0; i < G_N_ELEMENTS (events); i++) {
    g_autofree char *name = heard_field (events[i], "MUSTER_X_REQUEST_ID");
    g_autofree char *method = heard_field (events[i], "MUSTER_METHOD");
    MUSTER_EXPECT_STREQ (name, "a-1");
    MUSTER_EXPECT_STREQ (method, WAIT);
  }
  heard_end ();
}

MUSTER_TEST (RpcHeader, goes_with_a_stream)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  const MusterRpcHeader header = {"a-key", "a value"};
  MusterRpcOptions options = echo_options ();
  options.headers = &header;
  options.n_headers = 1;
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (f.client, "/test.Echo/Open", NULL, &options, &error);
  g_autoptr (MusterRpcCall) call = echo_pop (f.arrived);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (muster_rpc_call_header (call, "a-key"), "a value");
  muster_rpc_call_finish (call, NULL);
}

MUSTER_TEST (RpcHeader, is_absent_from_a_call_without)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = arrive (&f, &caller, NULL, 0);
  MUSTER_EXPECT_TRUE (call != NULL);

  MUSTER_EXPECT_NULL (muster_rpc_call_header (call, "muster-role"));

  muster_rpc_call_reply (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&caller);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
expect_refused (Echo *echo, const MusterRpcHeader *headers, gsize n_headers)
{
  MusterRpcOptions options = echo_options ();
  options.headers = headers;
  options.n_headers = n_headers;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (
      muster_rpc_client_call (echo->client, "/test.Echo/Echo", NULL, &options, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (RpcHeader, that_http_would_not_take_is_refused)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autofree char *huge = g_strnfill (5000, 'v');
  const MusterRpcHeader bad[] = {
      {"", "v"},
      {NULL, "v"},
      {"Upper", "v"},
      {"a key", "v"},
      {":path", "v"},
      {"grpc-x", "v"},
      {"x-bin", "v"},
      {"authorization", "Bearer x"},
      {"k", "a\nb"},
      {"k", "\u00e9"},
      {"k", NULL},
      {"k", huge},
      {"k\u00e9", ""},
      {"k", "a\x7f"
            "b"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    MUSTER_TRACE ("header %d", (int)i);
    expect_refused (&f, &bad[i], 1);
  }
  MusterRpcHeader many[17];
  for (gsize i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = (MusterRpcHeader){"k", "v"};
  expect_refused (&f, many, G_N_ELEMENTS (many));
}
