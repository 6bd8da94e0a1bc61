// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

static const char ECHO[] = "/test.Echo/Echo";

/* A server that takes requests of so many bytes, and counts those it sees. */
typedef struct {
  MusterRpcServer *server;
  MusterRpcClient *client;
  char *address;
  gsize max_request;
  gint n_seen; /* atomic */
} Limited;

static gboolean
admit (gsize n_bytes, gpointer data, GError **error)
{
  const Limited *self = data;
  return n_bytes <= self->max_request ||
         muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED, "%d bytes", (int)n_bytes);
}

static void
on_echo (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  Limited *self = data;
  g_atomic_int_inc (&self->n_seen);
  muster_rpc_call_reply (call, NULL);
}

static void
limited_start (Limited *self, gsize max_request)
{
  self->max_request = max_request;
  self->server =
      muster_rpc_server_new_with_limits (&(MusterRpcServerLimits){.admit = admit, .data = self});
  muster_rpc_server_add_method (self->server, ECHO, on_echo, self);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, NULL);
  MUSTER_EXPECT_NE (port, 0);
  muster_rpc_server_start (self->server);
  self->address = g_strdup_printf ("127.0.0.1:%d", port);
  self->client = muster_rpc_client_new (self->address, NULL);
}

static void
limited_clear (Limited *self)
{
  muster_rpc_client_unref (self->client);
  muster_rpc_server_free (self->server);
  g_free (self->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Limited, limited_clear)

static GBytes *
call_with (Limited *self, gsize size, GError **error)
{
  MusterRpcOptions options = echo_options ();
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_malloc0 (size), size);
  muster_rope_append (&request, bytes);
  return muster_rpc_client_call (self->client, ECHO, &request, &options, NULL, error);
}

MUSTER_TEST (RpcLimits, refuse_a_request_over_the_limit_and_serve_on)
{
  g_auto (Limited) f = {0};
  limited_start (&f, 100000);
  for (int round = 0; round < 6; round++) { /* more than are asked for in advance */
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) fits = call_with (&f, 100000, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_NULL (call_with (&f, 100001, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
    MUSTER_TRACE ("%s", error->message);
    MUSTER_EXPECT_STREQ (error->message, "100001 bytes");
  }
  MUSTER_EXPECT_EQ (g_atomic_int_get (&f.n_seen), 6);
}

MUSTER_TEST (RpcLimits, may_be_set_without_ever_listening)
{
  g_autoptr (MusterRpcServer) server =
      muster_rpc_server_new_with_limits (&(MusterRpcServerLimits){.streams = 10, .bare = 10});
}

/* TRUE if the server has accepted it and speaks; FALSE if it was refused. */
static gboolean
is_served (GSocket *socket)
{
  char byte;
  g_autoptr (GError) error = NULL;
  gssize n = g_socket_receive (socket, &byte, 1, NULL, &error);
  MUSTER_EXPECT_FALSE (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT));
  return n == 1;
}

static GSocket *
make_socket (void)
{
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  g_socket_set_timeout (socket, 30);
  return socket;
}

MUSTER_TEST (RpcLimits, of_open_files_refuse_connections_and_serve_on)
{
  g_auto (Limited) f = {0};
  limited_start (&f, 1000);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) before = call_with (&f, 10, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  GSocket *sockets[64];
  for (gsize i = 0; i < G_N_ELEMENTS (sockets); i++)
    sockets[i] = make_socket ();
  struct rlimit usual;
  getrlimit (RLIMIT_NOFILE, &usual);
  int last = g_socket_get_fd (sockets[G_N_ELEMENTS (sockets) - 1]);
  struct rlimit tight = {(rlim_t)last + 8, usual.rlim_max};
  setrlimit (RLIMIT_NOFILE, &tight);

  g_autoptr (GSocketAddress) address = g_inet_socket_address_new_from_string (
      "127.0.0.1", (guint)atoi (strchr (f.address, ':') + 1));
  for (gsize i = 0; i < G_N_ELEMENTS (sockets); i++)
    g_socket_connect (sockets[i], address, NULL, NULL);
  int n_refused = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (sockets); i++)
    n_refused += !is_served (sockets[i]);
  g_autoptr (GBytes) meanwhile = call_with (&f, 10, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  for (gsize i = 0; i < G_N_ELEMENTS (sockets); i++)
    g_object_unref (sockets[i]);
  g_autoptr (GSocket) late = make_socket ();
  gboolean is_connected = g_socket_connect (late, address, NULL, &error);
  gboolean is_late_served = is_connected && is_served (late);
  setrlimit (RLIMIT_NOFILE, &usual);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_GE (n_refused, 64 - 8);
  MUSTER_EXPECT_LT (n_refused, 64);
  MUSTER_EXPECT_TRUE (is_late_served);
}

/* A compressed message of zeros, sent by a client that isn't muster's. */
static grpc_status_code
send_compressed (const char *address, gsize size)
{
  grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck (NULL);
  grpc_channel_credentials *plain = grpc_insecure_credentials_create ();
  grpc_arg gzip = {.type = GRPC_ARG_INTEGER,
                   .key = (char *)GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM,
                   .value.integer = GRPC_COMPRESS_GZIP};
  grpc_channel *channel = grpc_channel_create (address, plain, &(grpc_channel_args){1, &gzip});
  grpc_call *call = grpc_channel_create_call (
      channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue, grpc_slice_from_static_string (ECHO), NULL,
      gpr_time_add (gpr_now (GPR_CLOCK_MONOTONIC), gpr_time_from_seconds (30, GPR_TIMESPAN)), NULL);
  g_autofree char *zeros = g_malloc0 (size);
  grpc_slice slice = grpc_slice_from_copied_buffer (zeros, size);
  grpc_byte_buffer *message = grpc_raw_byte_buffer_create (&slice, 1);
  grpc_byte_buffer *answer = NULL;
  grpc_metadata_array initial, trailing;
  grpc_metadata_array_init (&initial);
  grpc_metadata_array_init (&trailing);
  grpc_status_code status = GRPC_STATUS_UNKNOWN;
  grpc_slice text = grpc_empty_slice ();
  grpc_op ops[6] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},  {.op = GRPC_OP_SEND_MESSAGE},
                    {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, {.op = GRPC_OP_RECV_STATUS_ON_CLIENT},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA},  {.op = GRPC_OP_RECV_MESSAGE}};
  ops[1].data.send_message.send_message = message;
  ops[3].data.recv_status_on_client.trailing_metadata = &trailing;
  ops[3].data.recv_status_on_client.status = &status;
  ops[3].data.recv_status_on_client.status_details = &text;
  ops[4].data.recv_initial_metadata.recv_initial_metadata = &initial;
  ops[5].data.recv_message.recv_message = &answer;
  grpc_call_start_batch (call, ops, G_N_ELEMENTS (ops), queue, NULL);
  grpc_completion_queue_pluck (queue, queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);

  grpc_slice_unref (text);
  grpc_slice_unref (slice);
  grpc_metadata_array_destroy (&initial);
  grpc_metadata_array_destroy (&trailing);
  g_clear_pointer (&answer, grpc_byte_buffer_destroy);
  grpc_byte_buffer_destroy (message);
  grpc_call_unref (call);
  grpc_channel_destroy (channel);
  grpc_channel_credentials_release (plain);
  grpc_completion_queue_destroy (queue);
  return status;
}

MUSTER_TEST (RpcLimits, are_not_evaded_by_compression)
{
  g_auto (Limited) f = {0};
  limited_start (&f, 100000);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_EQ ((int)send_compressed (f.address, 1000000), (int)GRPC_STATUS_UNIMPLEMENTED);

  MUSTER_EXPECT_EQ (g_atomic_int_get (&f.n_seen), 0);
  g_autoptr (GBytes) answer = call_with (&f, 10, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}
