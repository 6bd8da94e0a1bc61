// SPDX-License-Identifier: Apache-2.0
#include "tests/rpc/echo.h"

#include <stdlib.h>

#define BOUND_US (30 * MUSTER_SECOND)

static void
on_echo (MusterRpcCall *call, GBytes *request, gpointer data G_GNUC_UNUSED)
{
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_rope_append (&reply, request);
  muster_rpc_call_reply (call, &reply);
}

static GError *
copy_failure (Echo *self)
{
  g_mutex_lock (&self->lock);
  GError *copy = self->failure != NULL ? g_error_copy (self->failure) : NULL;
  g_mutex_unlock (&self->lock);
  return copy;
}

static void
on_fail (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  g_autoptr (GError) failure = copy_failure (data);
  muster_rpc_call_finish (call, failure);
}

typedef struct {
  Echo *echo;
  MusterRpcCall *call;
} Departure;

static void
on_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  Departure *departure = data;
  g_async_queue_push (departure->echo->gone, departure->call);
}

static void
on_wait (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Departure *departure = g_new (Departure, 1);
  *departure = (Departure){data, call};
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_gone), departure,
                         g_free);
  g_async_queue_push (departure->echo->arrived, muster_rpc_call_ref (call));
}

static void
send_number (MusterRpcCall *call, int number)
{
  g_autofree char *text = g_strdup_printf ("%d", number);
  g_auto (MusterRope) message = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&message), (const guint8 *)text, strlen (text));
  muster_rpc_call_send (call, &message);
}

static void
on_count (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (GError) failure = copy_failure (data);
  g_autofree char *text = g_strndup (g_bytes_get_data (request, NULL), g_bytes_get_size (request));
  for (int i = 0; i < atoi (text); i++)
    send_number (call, i);
  muster_rpc_call_finish (call, failure);
}

/* Large ones, so that few fit into the buffers on the way. */
#define STATE_BYTES 100000

static void
on_states (MusterRpcCall *call, GBytes *request, gpointer data)
{
  Echo *self = data;
  g_autofree char *text = g_strndup (g_bytes_get_data (request, NULL), g_bytes_get_size (request));
  for (int i = 0; i < atoi (text); i++) {
    g_autofree char *state = g_strdup_printf ("%-*d", STATE_BYTES, i);
    g_auto (MusterRope) message = MUSTER_ROPE_INIT;
    g_byte_array_append (muster_rope_tail (&message), (const guint8 *)state, STATE_BYTES);
    muster_rpc_call_send_state (call, &message);
  }
  g_async_queue_push (self->arrived, muster_rpc_call_ref (call));
  muster_rpc_call_finish (call, NULL);
}

static void
on_open (MusterRpcCall *call, GBytes *request, gpointer data)
{
  send_number (call, 0);
  on_wait (call, request, data);
}

void
echo_start (Echo *self)
{
  g_autoptr (GError) error = NULL;
  g_mutex_init (&self->lock);
  self->arrived = g_async_queue_new_full ((GDestroyNotify)muster_rpc_call_unref);
  self->gone = g_async_queue_new ();
  self->server = muster_rpc_server_new ();
  muster_rpc_server_add_method (self->server, "/test.Echo/Echo", on_echo, self);
  muster_rpc_server_add_method (self->server, "/test.Echo/Fail", on_fail, self);
  muster_rpc_server_add_method (self->server, "/test.Echo/Wait", on_wait, self);
  muster_rpc_server_add_method (self->server, "/test.Echo/Count", on_count, self);
  muster_rpc_server_add_method (self->server, "/test.Echo/States", on_states, self);
  muster_rpc_server_add_method (self->server, "/test.Echo/Open", on_open, self);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  g_assert_no_error (error);
  muster_rpc_server_start (self->server);
  self->address = g_strdup_printf ("127.0.0.1:%d", port);
  self->client = muster_rpc_client_new (self->address, NULL);
}

void
echo_clear (Echo *self)
{
  muster_rpc_server_free (self->server);
  muster_rpc_client_unref (self->client);
  g_free (self->address);
  g_clear_error (&self->failure);
  g_mutex_clear (&self->lock);
  g_async_queue_unref (self->arrived);
  g_async_queue_unref (self->gone);
}

void
echo_fail_with (Echo *self, int code, const char *text)
{
  g_mutex_lock (&self->lock);
  g_clear_error (&self->failure);
  self->failure = g_error_new_literal (MUSTER_ERROR, code, text);
  g_mutex_unlock (&self->lock);
}

MusterRpcOptions
echo_options_for (gint64 timeout_us)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return (MusterRpcOptions){.deadline_us = now_us + timeout_us};
}

MusterRpcOptions
echo_options (void)
{
  return echo_options_for (BOUND_US);
}

GBytes *
echo_call (Echo *self, const char *method, const char *text, GCancellable *cancellable,
           GError **error)
{
  MusterRpcOptions options = echo_options ();
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)text, strlen (text));
  return muster_rpc_client_call (self->client, method, &request, &options, cancellable, error);
}

MusterRpcCall *
echo_pop (GAsyncQueue *queue)
{
  return g_async_queue_timeout_pop (queue, BOUND_US);
}

static gpointer
call_on_thread (gpointer data)
{
  EchoThread *self = data;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  GBytes *answer = muster_rpc_client_call (self->echo->client, self->method, &request,
                                           &self->options, self->cancellable, &self->error);
  g_clear_pointer (&answer, g_bytes_unref);
  return NULL;
}

void
echo_thread_prepare (EchoThread *self, Echo *echo, const char *method)
{
  *self = (EchoThread){
      .echo = echo,
      .method = method,
      .options = echo_options (),
      .cancellable = g_cancellable_new (),
  };
}

void
echo_thread_run (EchoThread *self)
{
  self->thread = g_thread_new ("caller", call_on_thread, self);
}

void
echo_thread_start (EchoThread *self, Echo *echo, const char *method)
{
  echo_thread_prepare (self, echo, method);
  echo_thread_run (self);
}

MusterRpcCall *
echo_thread_start_waiting (EchoThread *self, Echo *echo)
{
  echo_thread_start (self, echo, "/test.Echo/Wait");
  return echo_pop (echo->arrived);
}

GError *
echo_thread_join (EchoThread *self)
{
  g_thread_join (self->thread);
  g_object_unref (self->cancellable);
  return self->error;
}
