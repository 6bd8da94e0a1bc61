// SPDX-License-Identifier: Apache-2.0
/* A crowd's own client: gRPC's C core, each connection a channel that shares nothing, all on one
 * completion queue. muster's client would share connections, and need a thread for each watch. */
#include "bench/bench.h"
#include "bench/connect.h"

#include "base/protowire_private.h"
#include "base/unpack_private.h"
#include "rpc/proto/master.pb-c.h"
#include "rpc/proto/muster.pb-c.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <string.h>

/* Sessions that are being created at once. */
#define N_AT_ONCE 16
/* A server that says nothing for so long has failed. */
#define PATIENCE_S 60

#define FIELD_READY 2 /* the field */

typedef struct _Watcher Watcher;

/* What an event is for. */
typedef struct {
  void (*done) (Watcher *watcher);
  Watcher *watcher;
} Tag;

/* One watcher: first the call that creates its session, then its watch. */
struct _Watcher {
  BenchCrowd *crowd;
  grpc_channel *channel; /* (not owned) */
  char *handle;          /* (owned) (nullable) of its session */
  gboolean is_watching;  /* else it creates that */
  Tag opened, heard, ended;
  guint n_pending; /* batches under way */

  grpc_call *call; /* (owned) (nullable) */
  grpc_metadata_array initial, trailing;
  grpc_byte_buffer *request, *message; /* (owned) (nullable) */
  grpc_status_code status;
  grpc_slice details;
  gboolean is_greeted; /* has heard its first turn */
  gboolean is_ready;
};

struct _BenchCrowd {
  grpc_completion_queue *queue;
  grpc_channel **channels;
  guint n_channels;
  Watcher *watchers;
  guint n_watchers;
  GBytes *create; /* (owned) the request for a session */
  char *ready_op; /* (owned) */

  guint n_begun, n_created, n_greeted, n_ready;
  gboolean is_ending;
};

static grpc_byte_buffer *
buffer_of (GBytes *bytes)
{
  gsize size;
  const void *data = g_bytes_get_data (bytes, &size);
  grpc_slice slice = grpc_slice_new_with_user_data (
      (void *)data, size, (void (*) (void *))g_bytes_unref, g_bytes_ref (bytes));
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create (&slice, 1);
  grpc_slice_unref (slice);
  return buffer;
}

static GBytes *
bytes_of (grpc_byte_buffer *buffer)
{
  grpc_byte_buffer_reader reader;
  if (!grpc_byte_buffer_reader_init (&reader, buffer))
    bench_fail ("an answer can't be read");
  grpc_slice all = grpc_byte_buffer_reader_readall (&reader);
  GBytes *bytes = g_bytes_new (GRPC_SLICE_START_PTR (all), GRPC_SLICE_LENGTH (all));
  grpc_slice_unref (all);
  grpc_byte_buffer_reader_destroy (&reader);
  return bytes;
}

static void end_call (Watcher *self);

static void
handle (const grpc_event *event)
{
  Tag *tag = event->tag;
  Watcher *watcher = tag->watcher;
  watcher->n_pending--;
  tag->done (watcher);
  if (watcher->n_pending == 0)
    end_call (watcher);
}

/* Handles events until *count is n. */
static void
run_until (BenchCrowd *self, const guint *count, guint n)
{
  while (*count < n) {
    gpr_timespec patience = gpr_time_add (gpr_now (GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_seconds (PATIENCE_S, GPR_TIMESPAN));
    grpc_event event = grpc_completion_queue_next (self->queue, patience, NULL);
    if (event.type != GRPC_OP_COMPLETE)
      bench_fail ("no answer for %d s, with %u of %u watchers done", PATIENCE_S, *count, n);
    handle (&event);
  }
}

static void
start_batch (Watcher *self, const grpc_op *ops, gsize n, Tag *tag)
{
  self->n_pending++;
  if (grpc_call_start_batch (self->call, ops, n, tag, NULL) != GRPC_CALL_OK)
    bench_fail ("gRPC refuses a batch");
}

static void
receive (Watcher *self)
{
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &self->message;
  start_batch (self, &op, 1, &self->heard);
}

/* Opens a call, and asks for its first message and its end. */
static void
open_call (Watcher *self, const char *method, GBytes *request)
{
  self->call = grpc_channel_create_call (self->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                         self->crowd->queue, grpc_slice_from_static_string (method),
                                         NULL, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
  self->request = buffer_of (request);
  self->details = grpc_empty_slice ();
  grpc_metadata_array_init (&self->initial);
  grpc_metadata_array_init (&self->trailing);

  grpc_op ops[4] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_SEND_MESSAGE},
                    {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA}};
  ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY;
  ops[1].data.send_message.send_message = self->request;
  ops[3].data.recv_initial_metadata.recv_initial_metadata = &self->initial;
  start_batch (self, ops, G_N_ELEMENTS (ops), &self->opened);
  grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
  end.data.recv_status_on_client.trailing_metadata = &self->trailing;
  end.data.recv_status_on_client.status = &self->status;
  end.data.recv_status_on_client.status_details = &self->details;
  start_batch (self, &end, 1, &self->ended);
  receive (self);
}

static void
close_call (Watcher *self)
{
  g_clear_pointer (&self->call, grpc_call_unref);
  g_clear_pointer (&self->request, grpc_byte_buffer_destroy);
  g_clear_pointer (&self->message, grpc_byte_buffer_destroy);
  grpc_metadata_array_destroy (&self->initial);
  grpc_metadata_array_destroy (&self->trailing);
  grpc_slice_unref (self->details);
}

static void
on_opened (Watcher *self)
{
  g_clear_pointer (&self->request, grpc_byte_buffer_destroy);
}

static void
on_ended (Watcher *self G_GNUC_UNUSED)
{
}

/* --- a session for each --- */

static void
create_next (BenchCrowd *self)
{
  if (self->n_begun < self->n_watchers)
    open_call (&self->watchers[self->n_begun++], "/tensorflow.MasterService/CreateSession",
               self->create);
}

static void
take_session (Watcher *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GBytes) bytes = bytes_of (self->message);
  const Tensorflow__CreateSessionResponse *response = muster_unpack (
      &tensorflow__create_session_response__descriptor, g_bytes_get_data (bytes, NULL),
      g_bytes_get_size (bytes), arena, "CreateSessionResponse", &error);
  bench_check (error, "creating a session");
  self->handle = g_strdup (response->session_handle);
}

/* --- a watch for each --- */

static gboolean
says_ready (grpc_byte_buffer *readiness)
{
  g_autoptr (GBytes) bytes = bytes_of (readiness);
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gboolean is_ready = FALSE;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == FIELD_READY)
      is_ready = field.value != 0;
  return is_ready;
}

static void
take_readiness (Watcher *self)
{
  BenchCrowd *crowd = self->crowd;
  gboolean is_ready = says_ready (self->message);
  g_clear_pointer (&self->message, grpc_byte_buffer_destroy);
  crowd->n_greeted += !self->is_greeted;
  crowd->n_ready += is_ready && !self->is_ready;
  self->is_greeted = TRUE;
  self->is_ready |= is_ready;
  if (!crowd->is_ending)
    receive (self);
}

static void
on_received (Watcher *self)
{
  if (self->message == NULL)
    return; /* it was the last; the status says why */
  if (self->is_watching)
    take_readiness (self);
  else
    take_session (self);
}

/* All batches of a call are over. */
static void
end_call (Watcher *self)
{
  BenchCrowd *crowd = self->crowd;
  if (!crowd->is_ending && (self->is_watching || self->handle == NULL))
    bench_fail ("%s: %.*s", self->is_watching ? "a watch ended" : "creating a session",
                (int)GRPC_SLICE_LENGTH (self->details),
                (const char *)GRPC_SLICE_START_PTR (self->details));
  close_call (self);
  if (self->is_watching)
    return;
  self->is_watching = TRUE;
  crowd->n_created++;
  create_next (crowd);
}

/* --- the crowd --- */

static GBytes *
create_request (MusterGraph *model)
{
  GBytes *graph = muster_graph_bytes (model);
  Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
  request.graph_def.data = (guint8 *)g_bytes_get_data (graph, &request.graph_def.len);
  return muster_pack (&request.base);
}

static void
watcher_init (Watcher *self, BenchCrowd *crowd, guint i)
{
  *self = (Watcher){.crowd = crowd, .channel = crowd->channels[i % crowd->n_channels]};
  self->opened = (Tag){on_opened, self};
  self->heard = (Tag){on_received, self};
  self->ended = (Tag){on_ended, self};
}

BenchCrowd *
bench_crowd_new (const BenchCrowdOptions *options)
{
  grpc_init ();
  BenchCrowd *self = g_new0 (BenchCrowd, 1);
  self->queue = grpc_completion_queue_create_for_next (NULL);
  self->n_channels = options->n_connections;
  self->channels = g_new0 (grpc_channel *, self->n_channels);
  for (guint i = 0; i < self->n_channels; i++)
    self->channels[i] = bench_connect (options->address, options->ca);
  self->n_watchers = options->n_watchers;
  self->watchers = g_new0 (Watcher, self->n_watchers);
  for (guint i = 0; i < self->n_watchers; i++)
    watcher_init (&self->watchers[i], self, i);
  self->create = create_request (options->model);
  self->ready_op = g_strdup (options->ready_op);
  for (int i = 0; i < N_AT_ONCE; i++)
    create_next (self);
  run_until (self, &self->n_created, self->n_watchers);
  return self;
}

void
bench_crowd_watch (BenchCrowd *self)
{
  for (guint i = 0; i < self->n_watchers; i++) {
    Muster__WatchRequest request = MUSTER__WATCH_REQUEST__INIT;
    request.session_handle = self->watchers[i].handle;
    request.ready_op = self->ready_op;
    g_autoptr (GBytes) packed = muster_pack (&request.base);
    open_call (&self->watchers[i], "/muster.Readiness/Watch", packed);
  }
  run_until (self, &self->n_greeted, self->n_watchers);
}

double
bench_crowd_until_ready (BenchCrowd *self)
{
  run_until (self, &self->n_ready, self->n_watchers);
  return bench_now_s ();
}

void
bench_crowd_free (BenchCrowd *self)
{
  if (self == NULL)
    return;
  self->is_ending = TRUE;
  for (guint i = 0; i < self->n_watchers; i++)
    if (self->watchers[i].call != NULL)
      grpc_call_cancel (self->watchers[i].call, NULL);
  grpc_completion_queue_shutdown (self->queue);
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next (self->queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
    if (event.type == GRPC_QUEUE_SHUTDOWN)
      break;
    handle (&event);
  }
  for (guint i = 0; i < self->n_watchers; i++)
    g_free (self->watchers[i].handle);
  for (guint i = 0; i < self->n_channels; i++)
    grpc_channel_destroy (self->channels[i]);
  grpc_completion_queue_destroy (self->queue);
  g_bytes_unref (self->create);
  g_free (self->watchers);
  g_free (self->channels);
  g_free (self->ready_op);
  g_free (self);
}
