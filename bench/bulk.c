// SPDX-License-Identifier: Apache-2.0
/* TensorFlow's MasterService with nothing behind it, through the bare gRPC C core: a step is
 * answered as soon as its message is there. What a client takes here, no server can save it. And
 * muster's C client, at such a server and at muster's. */
#include "bench/bench.h"

#include "base/protowire_private.h"
#include "graph/tensor_proto_private.h"
#include "rpc/messages/rpc_message_private.h"
#include "rpc/messages/run_step_private.h"

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdio.h>

/* A request over it brings a tensor, and is answered with a number; another fetches one. */
#define MUCH ((gsize)1 << 20)

enum { CREATE_HANDLE = 1, EXTEND_VERSION = 4, RUN_FETCH = 3 };

typedef struct {
  grpc_server *server;
  grpc_completion_queue *queue;
  MusterTensor *number, *bulk; /* (owned) what a step answers */
} Server;

typedef struct {
  grpc_call *call;
  grpc_call_details details;
  grpc_metadata_array metadata;
  grpc_byte_buffer *request, *answer;
  int cancelled;
  enum { REQUESTED, RECEIVED, ANSWERED } state;
} Call;

static void
request_call (Server *self)
{
  Call *call = g_new0 (Call, 1);
  grpc_metadata_array_init (&call->metadata);
  grpc_call_details_init (&call->details);
  (void)grpc_server_request_call (self->server, &call->call, &call->details, &call->metadata,
                                  self->queue, self->queue, call);
}

static void
start (Call *call, const grpc_op *ops, gsize n_ops)
{
  if (grpc_call_start_batch (call->call, ops, n_ops, call, NULL) != GRPC_CALL_OK)
    bench_fail ("the bare server can't answer");
}

static void
receive (Call *call)
{
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &call->request;
  call->state = RECEIVED;
  start (call, &op, 1);
}

/* Every fetch gets the same tensor. */
static void
answer_step (const Server *self, const grpc_byte_buffer *request, MusterRope *out)
{
  const gboolean is_fed = muster_rpc_message_size (request) > MUCH;
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, request);
  while (muster_rpc_reader_next (&reader, &field)) {
    if (field.number != RUN_FETCH || field.data == NULL)
      continue;
    g_autoptr (GError) error = NULL;
    g_autofree char *name = g_strndup ((const char *)field.data, field.size);
    MusterTensor *tensor = is_fed ? self->number : self->bulk;
    muster_step_response_encode_run (out, (const char *const *)&name, &tensor, 1, NULL, &error);
    bench_check (error, "answering");
  }
}

static void
answer (const Server *self, Call *call)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autofree char *path = grpc_slice_to_c_string (call->details.method);
  if (g_str_has_suffix (path, "/CreateSession"))
    muster_proto_put_string (muster_rope_tail (&rope), CREATE_HANDLE, "bare");
  else if (g_str_has_suffix (path, "/ExtendSession"))
    muster_proto_put_uint (muster_rope_tail (&rope), EXTEND_VERSION, 1);
  else if (g_str_has_suffix (path, "/RunStep"))
    answer_step (self, call->request, &rope);
  call->answer = muster_rpc_message_new (&rope);
  grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_SEND_MESSAGE},
                    {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
                    {.op = GRPC_OP_RECV_CLOSE_ON_SERVER}};
  ops[1].data.send_message.send_message = call->answer;
  ops[2].data.send_status_from_server.status = GRPC_STATUS_OK;
  ops[3].data.recv_close_on_server.cancelled = &call->cancelled;
  call->state = ANSWERED;
  start (call, ops, G_N_ELEMENTS (ops));
}

static void
free_call (Call *call)
{
  muster_rpc_message_free (call->request);
  muster_rpc_message_free (call->answer);
  grpc_call_unref (call->call);
  grpc_call_details_destroy (&call->details);
  grpc_metadata_array_destroy (&call->metadata);
  g_free (call);
}

static gpointer G_GNUC_NORETURN
serve (gpointer data)
{
  Server *self = data;
  for (;;) {
    Call *call =
        grpc_completion_queue_next (self->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL).tag;
    if (call->state == REQUESTED) {
      request_call (self);
      receive (call);
    } else if (call->state == RECEIVED && call->request != NULL) {
      answer (self, call);
    } else {
      free_call (call);
    }
  }
}

int
bench_serve_bulk (void)
{
  grpc_init ();
  grpc_arg any_size = {.type = GRPC_ARG_INTEGER,
                       .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
                       .value.integer = -1};
  Server self = {.queue = grpc_completion_queue_create_for_next (NULL),
                 .server = grpc_server_create (&(grpc_channel_args){1, &any_size}, NULL),
                 .number = muster_tensor_new_float (1),
                 .bulk = bench_ones (BENCH_BULK)};
  grpc_server_register_completion_queue (self.server, self.queue, NULL);
  grpc_server_credentials *plain = grpc_insecure_server_credentials_create ();
  int port = grpc_server_add_http2_port (self.server, "127.0.0.1:0", plain);
  grpc_server_credentials_release (plain);
  grpc_server_start (self.server);
  for (int i = 0; i < 4; i++)
    request_call (&self);
  g_thread_unref (g_thread_new ("bulk", serve, &self));
  printf ("127.0.0.1:%d\n", port);
  fflush (stdout);
  return getchar () == EOF ? 0 : 1;
}

/* --- muster's C client --- */

#define N_ROUNDS 15

enum { MUSTER, BARE, N_PLACES };

static MusterGraph *
kept_vector (void)
{
  static const gint64 dims[] = {BENCH_BULK};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 1, dims);
  muster_graph_builder_node (b, "VariableV2", "kept");
  muster_graph_builder_attr_type (b, "dtype", MUSTER_FLOAT);
  muster_graph_builder_attr_shape (b, "shape", 1, dims);
  muster_graph_builder_node (b, "Assign", "keep");
  muster_graph_builder_input (b, "kept");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  MusterGraph *graph = muster_graph_builder_end (b, &error);
  bench_check (error, "building a vector");
  return graph;
}

static double
step_seconds (MusterSession *session, MusterTensor *fed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) fetched = NULL;
  const MusterFeed feed = {"x:0", fed};
  const char *fetch = "kept:0", *target = "keep";
  const MusterStep assign = {.feeds = &feed,
                             .n_feeds = 1,
                             .targets = &target,
                             .n_targets = 1,
                             .deadline_us = MUSTER_WAIT_FOREVER};
  const MusterStep read = {.fetches = &fetch, .n_fetches = 1, .deadline_us = MUSTER_WAIT_FOREVER};
  const double begun = bench_now_s ();
  muster_session_run (session, fed != NULL ? &assign : &read, &fetched, NULL, NULL, &error);
  bench_check (error, "moving a vector");
  return bench_now_s () - begun;
}

static void
measure_client (const char *what, MusterSession **sessions, MusterTensor *fed)
{
  GArray *seconds[N_PLACES];
  for (int i = 0; i < N_PLACES; i++)
    seconds[i] = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint round = 0; round <= N_ROUNDS; round++)
    for (int i = 0; i < N_PLACES; i++) {
      const double took = step_seconds (sessions[i], fed);
      if (round > 0) /* memory is new to the first */
        g_array_append_val (seconds[i], took);
    }
  bench_print (&(BenchRow){.what = what,
                           .muster = bench_median (seconds[MUSTER]),
                           .other = bench_median (seconds[BARE]),
                           .name = "a bare gRPC server"});
  for (int i = 0; i < N_PLACES; i++)
    g_array_unref (seconds[i]);
}

void
bench_bulk_client (const char *ours, const char *bare)
{
  g_autoptr (MusterMaster) at_muster = bench_remote (ours);
  g_autoptr (MusterMaster) at_bare = bench_remote (bare);
  g_autoptr (MusterGraph) graph = kept_vector ();
  g_autoptr (MusterTensor) x = bench_ones (BENCH_BULK);
  MusterSession *sessions[] = {bench_create_session (at_muster, graph),
                               bench_create_session (at_bare, graph)};
  measure_client ("assign 64 MiB, muster's client", sessions, x);
  measure_client ("fetch 64 MiB, muster's client", sessions, NULL);
  for (int i = 0; i < N_PLACES; i++)
    g_object_unref (sessions[i]);
}
