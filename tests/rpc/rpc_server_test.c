// SPDX-License-Identifier: Apache-2.0
#include "base/blocking_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <string.h>

MUSTER_TEST (RpcServer, refuses_a_port_in_use)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcServer) second = muster_rpc_server_new ();

  MUSTER_EXPECT_EQ (muster_rpc_server_listen (second, f.address, NULL, &error), 0);

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, f.address);
  MUSTER_EXPECT_TRUE (strstr (error->message, "address already in use") != NULL);
}

/* One of localhost's addresses is another's: the others alone would be taken for that server. */
MUSTER_TEST (RpcServer, refuses_a_name_of_which_an_address_is_in_use)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcServer) second = muster_rpc_server_new ();
  g_autofree char *name = g_strdup_printf ("localhost%s", strrchr (f.address, ':'));

  MUSTER_EXPECT_EQ (muster_rpc_server_listen (second, name, NULL, &error), 0);

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, ": address already in use; ");
}

MUSTER_TEST (RpcServer, refuses_what_is_no_address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  MUSTER_EXPECT_EQ (muster_rpc_server_listen (server, "nowhere", NULL, &error), 0);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (RpcServer, may_be_stopped_twice_and_freed_unstarted)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  MusterRpcServer *unstarted = muster_rpc_server_new ();

  muster_rpc_server_stop (f.server, MUSTER_SECOND);
  muster_rpc_server_stop (f.server, 0);
  muster_rpc_server_free (unstarted);
}

static gpointer
stop_with_grace (gpointer server)
{
  muster_rpc_server_stop (server, 30 * MUSTER_SECOND);
  return NULL;
}

MUSTER_TEST (RpcServer, lets_an_open_call_end_within_the_grace)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&caller, &f);
  MUSTER_EXPECT_TRUE (call != NULL);
  GThread *stopper = g_thread_new ("stopper", stop_with_grace, f.server);

  muster_rpc_call_reply (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&caller);
  g_thread_join (stopper);

  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcServer, that_stops_cancels_its_open_calls)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  EchoThread caller;
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&caller, &f);
  MUSTER_EXPECT_TRUE (call != NULL);

  muster_rpc_server_stop (f.server, 0);
  g_autoptr (GError) error = echo_thread_join (&caller);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (echo_pop (f.gone) == call);
  muster_rpc_call_reply (call, NULL); /* after the end: dropped */
}

typedef struct {
  Echo *echo;
  gint is_over; /* atomic */
} Load;

static gpointer
call_until_over (gpointer data)
{
  Load *self = data;
  while (!g_atomic_int_get (&self->is_over)) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) answer = echo_call (self->echo, "/test.Echo/Echo", "x", NULL, &error);
    if (error != NULL)
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  }
  return NULL;
}

MUSTER_TEST (RpcServer, may_be_stopped_under_load)
{
  for (int round = 0; round < 10; round++) {
    g_auto (Echo) f = {0};
    echo_start (&f);
    Load load = {.echo = &f};
    GThread *threads[8];
    for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
      threads[i] = g_thread_new ("caller", call_until_over, &load);
    g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "it is up", NULL, NULL);

    muster_rpc_server_stop (f.server, round % 2 == 0 ? 0 : 10 * MUSTER_MILLISECOND);

    g_atomic_int_set (&load.is_over, TRUE);
    for (gsize i = 0; i < G_N_ELEMENTS (threads); i++)
      g_thread_join (threads[i]);
  }
}

/* A server whose Hold blocks its thread until a Release comes. */
typedef struct {
  MusterRpcServer *server;
  MusterRpcClient *client;
  GAsyncQueue *releases;
  gboolean is_announced;
} Holder;

static void
on_hold (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Holder *self = data;
  if (self->is_announced)
    muster_about_to_block ();
  if (g_async_queue_timeout_pop (self->releases, 30 * MUSTER_SECOND) != NULL)
    muster_rpc_call_reply (call, NULL);
  else
    muster_rpc_call_finish (call, NULL);
}

static void
on_release (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Holder *self = data;
  g_async_queue_push (self->releases, self);
  muster_rpc_call_reply (call, NULL);
}

static gpointer
hold (gpointer data)
{
  Holder *self = data;
  MusterRpcOptions options = echo_options ();
  GError *error = NULL;
  GBytes *answer =
      muster_rpc_client_call (self->client, "/test.Holder/Hold", NULL, &options, NULL, &error);
  g_clear_pointer (&answer, g_bytes_unref);
  return error;
}

static void
expect_release_gets_through (gboolean is_announced)
{
  Holder f = {.is_announced = is_announced, .releases = g_async_queue_new ()};
  f.server = muster_rpc_server_new ();
  muster_rpc_server_add_method (f.server, "/test.Holder/Hold", on_hold, &f);
  muster_rpc_server_add_method (f.server, "/test.Holder/Release", on_release, &f);
  g_autofree char *address = g_strdup_printf (
      "127.0.0.1:%d", muster_rpc_server_listen (f.server, "127.0.0.1:0", NULL, NULL));
  muster_rpc_server_start (f.server);
  f.client = muster_rpc_client_new (address, NULL);
  for (int round = 0; round < 5; round++) {
    GThread *holders[3]; /* one fewer than the server has threads, at least */
    for (gsize i = 0; i < G_N_ELEMENTS (holders); i++)
      holders[i] = g_thread_new ("holder", hold, &f);
    for (gsize i = 0; i < G_N_ELEMENTS (holders); i++) {
      g_autoptr (GError) error = NULL;
      MusterRpcOptions options = echo_options ();
      g_autoptr (GBytes) answer =
          muster_rpc_client_call (f.client, "/test.Holder/Release", NULL, &options, NULL, &error);
      MUSTER_EXPECT_NO_ERROR (error);
    }
    for (gsize i = 0; i < G_N_ELEMENTS (holders); i++) {
      g_autoptr (GError) error = g_thread_join (holders[i]);
      MUSTER_EXPECT_NO_ERROR (error);
    }
  }
  muster_rpc_client_unref (f.client);
  muster_rpc_server_free (f.server);
  g_async_queue_unref (f.releases);
}

MUSTER_TEST (RpcServer, takes_calls_while_handlers_say_that_they_block)
{
  expect_release_gets_through (TRUE);
}

MUSTER_TEST (RpcServer, takes_calls_while_handlers_block_without_a_word)
{
  expect_release_gets_through (FALSE);
}

/* A server whose Work keeps its thread until its caller has gone. */
typedef struct {
  GAsyncQueue *begun, *noticed; /* a message for each call */
} Worker;

static void
on_work (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Worker *self = data;
  GCancellable *gone = muster_rpc_call_cancellable (call);
  const gint64 until_us = test_deadline ();
  g_async_queue_push (self->begun, self);
  while (!g_cancellable_is_cancelled (gone) &&
         muster_clock_now_us (muster_system_clock ()) < until_us)
    g_thread_yield ();
  g_async_queue_push (self->noticed, g_cancellable_is_cancelled (gone) ? "gone" : "not gone");
  muster_rpc_call_finish (call, NULL);
}

typedef struct {
  MusterRpcClient *client;
  GCancellable *cancellable;
} Leaver;

static gpointer
call_work (gpointer data)
{
  Leaver *self = data;
  MusterRpcOptions options = echo_options ();
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_rpc_client_call (self->client, "/test.Worker/Work", NULL, &options,
                                              self->cancellable, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  return NULL;
}

MUSTER_TEST (RpcServer, tells_a_handler_that_computes_that_its_caller_has_gone)
{
  Worker f = {.begun = g_async_queue_new (), .noticed = g_async_queue_new ()};
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  muster_rpc_server_add_method (server, "/test.Worker/Work", on_work, &f);
  g_autofree char *address = g_strdup_printf (
      "127.0.0.1:%d", muster_rpc_server_listen (server, "127.0.0.1:0", NULL, NULL));
  muster_rpc_server_start (server);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  Leaver leaver = {muster_rpc_client_new (address, NULL), cancellable};
  GThread *caller = g_thread_new ("leaver", call_work, &leaver);

  MUSTER_EXPECT_TRUE (g_async_queue_timeout_pop (f.begun, 30 * MUSTER_SECOND) != NULL);
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_STREQ (g_async_queue_timeout_pop (f.noticed, 40 * MUSTER_SECOND), "gone");
  g_thread_join (caller);
  muster_rpc_client_unref (leaver.client);
  muster_rpc_server_stop (server, 0);
  g_async_queue_unref (f.begun);
  g_async_queue_unref (f.noticed);
}
