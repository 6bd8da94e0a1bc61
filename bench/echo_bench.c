// SPDX-License-Identifier: Apache-2.0
/* What the wire alone costs: an empty unary call through gRPC's C core on both sides, over loopback
 * and with nothing of muster's in between. RunStep is measured against it.
 *
 *   echo_bench [CALLS]            prints the median and the 90th percentile in microseconds
 *   echo_bench serve PORT         only serves, until it is killed
 *   echo_bench call PORT [CALLS]  only calls */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define METHOD        "/bench.Echo/Echo"
#define N_WARM_UP     500
#define DEFAULT_CALLS 5000

/* The server: a call is requested with its message, and answered in one batch. */

static grpc_server *server;
static grpc_completion_queue *queue;
static void *method;

typedef struct {
  int is_answered;
  grpc_call *call;
  gpr_timespec deadline;
  grpc_metadata_array metadata;
  grpc_byte_buffer *message;
  int was_cancelled;
} Call;

static void
request_call (void)
{
  Call *self = calloc (1, sizeof *self);
  grpc_metadata_array_init (&self->metadata);
  grpc_server_request_registered_call (server, method, &self->call, &self->deadline,
                                       &self->metadata, &self->message, queue, queue, self);
}

static void
answer (Call *self)
{
  grpc_op ops[4] = {0};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = self->message;
  ops[2].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
  ops[3].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
  ops[3].data.recv_close_on_server.cancelled = &self->was_cancelled;
  self->is_answered = 1;
  grpc_call_start_batch (self->call, ops, 4, self, NULL);
}

static void
end (Call *self)
{
  grpc_byte_buffer_destroy (self->message);
  grpc_call_unref (self->call);
  grpc_metadata_array_destroy (&self->metadata);
  free (self);
}

static int
listen_on (const char *address)
{
  queue = grpc_completion_queue_create_for_next (NULL);
  server = grpc_server_create (NULL, NULL);
  grpc_server_register_completion_queue (server, queue, NULL);
  method = grpc_server_register_method (server, METHOD, NULL,
                                        GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
  grpc_server_credentials *credentials = grpc_insecure_server_credentials_create ();
  int port = grpc_server_add_http2_port (server, address, credentials);
  grpc_server_credentials_release (credentials);
  grpc_server_start (server);
  return port;
}

static void
serve (void)
{
  for (int i = 0; i < 16; i++)
    request_call ();
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next (queue, gpr_inf_future (GPR_CLOCK_REALTIME), NULL);
    Call *call = event.tag;
    if (call->is_answered) {
      end (call);
    } else if (event.success) {
      request_call ();
      answer (call);
    }
  }
}

/* The client. */

static void
call_once (grpc_channel *channel, grpc_completion_queue *plucked)
{
  grpc_call *call = grpc_channel_create_call (channel, NULL, GRPC_PROPAGATE_DEFAULTS, plucked,
                                              grpc_slice_from_static_string (METHOD), NULL,
                                              gpr_inf_future (GPR_CLOCK_REALTIME), NULL);
  grpc_byte_buffer *request = grpc_raw_byte_buffer_create (NULL, 0);
  grpc_byte_buffer *response = NULL;
  grpc_metadata_array initial, trailing;
  grpc_metadata_array_init (&initial);
  grpc_metadata_array_init (&trailing);
  grpc_status_code status;
  grpc_slice text;
  grpc_op ops[6] = {0};
  ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
  ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
  ops[1].op = GRPC_OP_SEND_MESSAGE;
  ops[1].data.send_message.send_message = request;
  ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
  ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
  ops[4].op = GRPC_OP_RECV_MESSAGE;
  ops[4].data.recv_message.recv_message = &response;
  ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
  ops[5].data.recv_status_on_client.trailing_metadata = &trailing;
  ops[5].data.recv_status_on_client.status = &status;
  ops[5].data.recv_status_on_client.status_details = &text;
  grpc_call_start_batch (call, ops, 6, call, NULL);
  grpc_completion_queue_pluck (plucked, call, gpr_inf_future (GPR_CLOCK_REALTIME), NULL);
  if (status != GRPC_STATUS_OK) {
    fprintf (stderr, "echo_bench: status %d\n", (int)status);
    exit (1);
  }
  grpc_byte_buffer_destroy (request);
  grpc_byte_buffer_destroy (response);
  grpc_slice_unref (text);
  grpc_metadata_array_destroy (&initial);
  grpc_metadata_array_destroy (&trailing);
  grpc_call_unref (call);
}

static double
now_us (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void
measure (int port, int n_calls)
{
  char address[64];
  snprintf (address, sizeof address, "ipv4:127.0.0.1:%d", port);
  grpc_channel_credentials *credentials = grpc_insecure_credentials_create ();
  grpc_channel *channel = grpc_channel_create (address, credentials, NULL);
  grpc_completion_queue *plucked = grpc_completion_queue_create_for_pluck (NULL);
  double *took_us = calloc ((size_t)n_calls, sizeof *took_us);
  for (int i = 0; i < N_WARM_UP; i++)
    call_once (channel, plucked);
  for (int i = 0; i < n_calls; i++) {
    double start_us = now_us ();
    call_once (channel, plucked);
    took_us[i] = now_us () - start_us;
  }
  qsort (took_us, (size_t)n_calls, sizeof *took_us, compare);
  printf ("echo median %.1f us p90 %.1f us calls %d\n", took_us[n_calls / 2],
          took_us[n_calls * 9 / 10], n_calls);
  free (took_us);
}

/* The server is a process of its own, as a master is; it says its port through a pipe. */
static int
start_server (pid_t *child)
{
  int ends[2];
  if (pipe (ends) != 0)
    exit (1);
  *child = fork ();
  if (*child == 0) {
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    grpc_init ();
    int port = listen_on ("127.0.0.1:0");
    if (write (ends[1], &port, sizeof port) != sizeof port)
      exit (1);
    serve ();
  }
  int port = 0;
  if (*child < 0 || read (ends[0], &port, sizeof port) != sizeof port || port == 0)
    exit (1);
  return port;
}

static int
count_from (const char *text)
{
  int n = text != NULL ? atoi (text) : DEFAULT_CALLS;
  return n > 0 ? n : DEFAULT_CALLS;
}

int
main (int argc, char **argv)
{
  if (argc > 2 && strcmp (argv[1], "serve") == 0) {
    char address[64];
    snprintf (address, sizeof address, "127.0.0.1:%d", atoi (argv[2]));
    grpc_init ();
    if (listen_on (address) == 0)
      return 1;
    serve ();
  }
  if (argc > 2 && strcmp (argv[1], "call") == 0) {
    grpc_init ();
    measure (atoi (argv[2]), count_from (argv[3]));
    return 0;
  }
  pid_t child;
  int port = start_server (&child);
  grpc_init ();
  measure (port, count_from (argc > 1 ? argv[1] : NULL));
  kill (child, SIGKILL);
  waitpid (child, NULL, 0);
  return 0;
}
