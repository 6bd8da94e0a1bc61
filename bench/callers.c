// SPDX-License-Identifier: Apache-2.0
/* Clients that do nothing but call: through the bare gRPC C core, on one thread for all. */
#include "bench/bench.h"
#include "bench/connect.h"

#include <grpc/byte_buffer.h>

typedef struct {
  grpc_channel *channel;
  grpc_call *call; /* (nullable) while one is under way */
  grpc_metadata_array initial, trailing;
  grpc_status_code status;
  grpc_slice details;
  grpc_byte_buffer *message, *answer;
} Caller;

struct _BenchCallers {
  grpc_completion_queue *queue;
  grpc_byte_buffer *message;
  const char *method; /* (not owned) */
  Caller *callers;    /* (owned) */
  guint n;
};

BenchCallers *
bench_callers_new (const char *address, const char *method, GBytes *message, guint n)
{
  grpc_init ();
  BenchCallers *self = g_new0 (BenchCallers, 1);
  gsize size;
  gconstpointer data = g_bytes_get_data (message, &size);
  grpc_slice slice = grpc_slice_from_copied_buffer (data, size);
  self->message = grpc_raw_byte_buffer_create (&slice, 1);
  grpc_slice_unref (slice);
  self->queue = grpc_completion_queue_create_for_next (NULL);
  self->method = method;
  self->callers = g_new0 (Caller, n);
  self->n = n;
  for (guint i = 0; i < n; i++)
    self->callers[i].channel = bench_connect (address, NULL);
  return self;
}

static void
begin (BenchCallers *self, Caller *caller)
{
  grpc_op ops[6] = {0};
  caller->call =
      grpc_channel_create_call (caller->channel, NULL, GRPC_PROPAGATE_DEFAULTS, self->queue,
                                grpc_slice_from_static_string (self->method), NULL,
                                gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
  grpc_metadata_array_init (&caller->initial);
  grpc_metadata_array_init (&caller->trailing);
  caller->message = grpc_byte_buffer_copy (self->message); /* sending it takes its bytes away */
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = caller->message;
  ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &caller->initial;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &caller->answer;
  ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[5].data.recv_status_on_client.trailing_metadata = &caller->trailing;
  ops[5].data.recv_status_on_client.status = &caller->status;
  ops[5].data.recv_status_on_client.status_details = &caller->details;
  if (grpc_call_start_batch (caller->call, ops, G_N_ELEMENTS (ops), caller, NULL) != GRPC_CALL_OK)
    bench_fail ("%s can't be called", self->method);
}

static void
end (BenchCallers *self, Caller *caller)
{
  if (caller->status != GRPC_STATUS_OK)
    bench_fail ("%s: status %d: %.*s", self->method, (int)caller->status,
                (int)GRPC_SLICE_LENGTH (caller->details),
                (const char *)GRPC_SLICE_START_PTR (caller->details));
  grpc_byte_buffer_destroy (caller->message);
  grpc_byte_buffer_destroy (caller->answer);
  grpc_metadata_array_destroy (&caller->initial);
  grpc_metadata_array_destroy (&caller->trailing);
  grpc_slice_unref (caller->details);
  g_clear_pointer (&caller->call, grpc_call_unref);
}

void
bench_callers_run (BenchCallers *self, guint n_calls)
{
  guint n_begun = 0;
  while (n_begun < MIN (n_calls, self->n))
    begin (self, &self->callers[n_begun++]);
  for (guint n_ended = 0; n_ended < n_calls; n_ended++) {
    Caller *caller =
        grpc_completion_queue_next (self->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL).tag;
    end (self, caller);
    if (n_begun < n_calls) {
      begin (self, caller);
      n_begun++;
    }
  }
}

void
bench_callers_free (BenchCallers *self)
{
  if (self == NULL)
    return;
  for (guint i = 0; i < self->n; i++)
    grpc_channel_destroy (self->callers[i].channel);
  grpc_completion_queue_shutdown (self->queue);
  while (
      grpc_completion_queue_next (self->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL).type !=
      GRPC_QUEUE_SHUTDOWN)
    ;
  grpc_completion_queue_destroy (self->queue);
  grpc_byte_buffer_destroy (self->message);
  g_free (self->callers);
  g_free (self);
}
