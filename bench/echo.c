// SPDX-License-Identifier: Apache-2.0
/* An empty unary call through the bare gRPC C core on both sides: what no RunStep can be faster
 * than. */
#include "bench/bench.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>

#define METHOD "/bench.Echo/Echo"

/* --- the server: one thread --- */

typedef struct {
  grpc_server *server;
  grpc_completion_queue *queue;
  void *method;
} Server;

typedef struct {
  gboolean is_answered;
  grpc_call *call;
  gpr_timespec deadline;
  grpc_metadata_array metadata;
  grpc_byte_buffer *message;
  int cancelled;
} Call;

static void
request_call (Server *self)
{
  Call *call = g_new0 (Call, 1);
  grpc_metadata_array_init (&call->metadata);
  grpc_server_request_registered_call (self->server, self->method, &call->call, &call->deadline,
                                       &call->metadata, &call->message, self->queue, self->queue,
                                       call);
}

static void
answer_call (Call *call)
{
  grpc_op ops[4] = {0};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = call->message;
  ops[2].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  ops[2].data.send_status_from_server.status = GRPC_STATUS_OK;
  ops[3].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  ops[3].data.recv_close_on_server.cancelled = &call->cancelled;
  call->is_answered = TRUE;
  if (grpc_call_start_batch (call->call, ops, G_N_ELEMENTS (ops), call, NULL) != GRPC_CALL_OK)
    bench_fail ("the echo can't answer");
}

static void
free_call (Call *call)
{
  grpc_byte_buffer_destroy (call->message);
  grpc_call_unref (call->call);
  grpc_metadata_array_destroy (&call->metadata);
  g_free (call);
}

static gpointer G_GNUC_NORETURN
serve (gpointer data)
{
  Server *self = data;
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next (self->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
    Call *call = event.tag;
    if (call->is_answered) {
      free_call (call);
    } else {
      request_call (self);
      answer_call (call);
    }
  }
}

int
bench_serve_echo (void)
{
  grpc_init ();
  Server self = {.queue = grpc_completion_queue_create_for_next (NULL),
                 .server = grpc_server_create (NULL, NULL)};
  grpc_server_register_completion_queue (self.server, self.queue, NULL);
  grpc_server_credentials *plain = grpc_insecure_server_credentials_create ();
  int port = grpc_server_add_http2_port (self.server, "127.0.0.1:0", plain);
  grpc_server_credentials_release (plain);
  self.method = grpc_server_register_method (self.server, METHOD, NULL,
                                             GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
  grpc_server_start (self.server);
  for (int i = 0; i < 16; i++)
    request_call (&self);
  g_thread_unref (g_thread_new ("echo", serve, &self));
  printf ("127.0.0.1:%d\n", port);
  fflush (stdout);
  return getchar () == EOF ? 0 : 1;
}

/* --- the client --- */

BenchCallers *
bench_echo_new (const char *address, guint n)
{
  g_autoptr (GBytes) empty = g_bytes_new_static ("", 0);
  return bench_callers_new (address, METHOD, empty, n);
}
