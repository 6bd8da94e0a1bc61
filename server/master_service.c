// SPDX-License-Identifier: Apache-2.0
#include "server/server_private.h"

#include "base/protowire.h"
#include "base/unpack.h"
#include "wire/proto/master.pb-c.h"
#include "wire/run_step.h"

/* Where a step ran, as TensorFlow's server begins the text of its errors. */
#define TASK "/job:localhost/replica:0/task:0"

#define MILLISECONDS_AT_MOST (MUSTER_WAIT_FOREVER / MUSTER_MILLISECOND)

/* Unpacks a request or ends the call. The macro only spares the descriptor's cast. */
static gpointer
unpack_or_fail (MusterRpcCall *call, GBytes *request, const ProtobufCMessageDescriptor *descriptor,
                MusterArena *arena)
{
  g_autoptr (GError) error = NULL;
  gsize size;
  const void *data = g_bytes_get_data (request, &size);
  gpointer message = muster_unpack (descriptor, data, size, arena, descriptor->short_name, &error);
  if (message == NULL)
    muster_rpc_call_finish (call, error);
  return message;
}

/* The session of a request, or the end of the call. */
static MusterServed *
find_or_fail (MusterServer *server, MusterRpcCall *call, const char *handle)
{
  g_autoptr (GError) error = NULL;
  MusterServed *served =
      muster_sessions_find (server->sessions, handle != NULL ? handle : "", &error);
  if (served == NULL)
    muster_rpc_call_finish (call, error);
  return served;
}

/* A field that is a message of its own, as it lies in the request; one that comes in parts is those
 * in a row, as protobuf merges messages. NULL where there is none. */
static GBytes *
embedded (GBytes *request, guint32 number)
{
  gsize size;
  const guint8 *data = g_bytes_get_data (request, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  GBytes *found = NULL;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != number || field.type != MUSTER_WIRE_BYTES)
      continue;
    g_autoptr (GBytes) first = found;
    if (first == NULL) {
      found = g_bytes_new_from_bytes (request, field.data - data, field.size);
    } else {
      GByteArray *both = g_byte_array_new ();
      g_byte_array_append (both, g_bytes_get_data (first, NULL), g_bytes_get_size (first));
      g_byte_array_append (both, field.data, field.size);
      found = g_byte_array_free_to_bytes (both);
    }
  }
  return found;
}

static gint64
from_milliseconds (gint64 timeout_ms)
{
  if (timeout_ms <= 0)
    return 0;
  return timeout_ms < MILLISECONDS_AT_MOST ? timeout_ms * MUSTER_MILLISECOND : MUSTER_WAIT_FOREVER;
}

/* --- sessions --- */

static gboolean
read_config (GBytes *config, gint64 *timeout_us, GError **error)
{
  *timeout_us = 0;
  if (config == NULL)
    return TRUE;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ConfigProto *read =
      muster_unpack (&tensorflow__config_proto__descriptor, g_bytes_get_data (config, NULL),
                     g_bytes_get_size (config), arena, "session's ConfigProto", error);
  if (read == NULL)
    return FALSE;
  if (read->use_per_session_threads || read->n_session_inter_op_thread_pool > 0) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                         "Distributed session does not support session thread pool options.");
    return FALSE;
  }
  *timeout_us = from_milliseconds (read->operation_timeout_in_ms);
  return TRUE;
}

static MusterServed *
make_session (MusterServer *server, MusterRpcCall *call, GBytes *request, GError **error)
{
  /* Checked along the schema, but not unpacked: the graph would be copied. */
  if (!muster_unpack_check (&tensorflow__create_session_request__descriptor,
                            g_bytes_get_data (request, NULL), g_bytes_get_size (request),
                            "CreateSessionRequest", error))
    return NULL;
  g_autoptr (GBytes) config = embedded (request, 2);
  gint64 timeout_us;
  if (!read_config (config, &timeout_us, error))
    return NULL;
  g_autoptr (GBytes) graph_bytes = embedded (request, 1);
  if (graph_bytes == NULL)
    graph_bytes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) graph = muster_graph_new (graph_bytes);
  g_autoptr (MusterSession) session = muster_master_create_session (
      server->master, graph, config, muster_rpc_call_deadline_us (call),
      muster_rpc_call_cancellable (call), error);
  return session != NULL ? muster_sessions_add (server->sessions, session, timeout_us) : NULL;
}

static void
create_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterServed) served = make_session (data, call, request, &error);
  if (served == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__CreateSessionResponse response = TENSORFLOW__CREATE_SESSION_RESPONSE__INIT;
  response.session_handle = served->handle;
  muster_server_reply (call, &response.base);
}

/* Returns the new version, or -1. */
static gint64
extend (MusterServed *served, MusterRpcCall *call, GBytes *request, gint64 expected, GError **error)
{
  g_autoptr (GBytes) nodes = embedded (request, 2);
  if (nodes == NULL)
    nodes = g_bytes_new_static ("", 0);
  g_autoptr (MusterGraph) extra = muster_graph_new (nodes);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&served->extending);
  if (served->graph_version != expected) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                 "Current version is %" G_GINT64_FORMAT " but caller expected %" G_GINT64_FORMAT
                 ".",
                 served->graph_version, expected);
    return -1;
  }
  if (!muster_session_extend (served->session, extra, muster_rpc_call_deadline_us (call),
                              muster_rpc_call_cancellable (call), error))
    return -1;
  return ++served->graph_version;
}

static void
extend_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ExtendSessionRequest *read =
      unpack_or_fail (call, request, &tensorflow__extend_session_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (MusterServed) served = find_or_fail (data, call, read->session_handle);
  if (served == NULL)
    return;
  g_autoptr (GError) error = NULL;
  gint64 version = extend (served, call, request, read->current_graph_version, &error);
  if (version < 0) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__ExtendSessionResponse response = TENSORFLOW__EXTEND_SESSION_RESPONSE__INIT;
  response.new_graph_version = version;
  muster_server_reply (call, &response.base);
}

static void
close_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Tensorflow__CloseSessionRequest *read =
      unpack_or_fail (call, request, &tensorflow__close_session_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (MusterServed) served =
      muster_sessions_take (server->sessions, read->session_handle, &error);
  if (served != NULL)
    muster_readiness_service_session_gone (server->readiness, served);
  /* A caller that goes away meanwhile has still closed it. */
  if (served == NULL ||
      !muster_session_close (served->session, muster_rpc_call_deadline_us (call), NULL, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__CloseSessionResponse response = TENSORFLOW__CLOSE_SESSION_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

/* All sessions end, whichever containers are named, as on TensorFlow's server. */
static void
reset (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ResetRequest *read =
      unpack_or_fail (call, request, &tensorflow__reset_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GPtrArray) containers = g_ptr_array_new ();
  for (gsize i = 0; i < read->n_container; i++)
    g_ptr_array_add (containers, read->container[i]);
  g_ptr_array_add (containers, NULL);

  g_autoptr (GError) error = NULL;
  guint64 n_claims = muster_board_n_claims (server->board);
  g_autoptr (GPtrArray) all = muster_sessions_take_all (server->sessions);
  gboolean done = muster_master_reset (server->master, (const char *const *)containers->pdata,
                                       muster_rpc_call_deadline_us (call), NULL, &error);
  if (done)
    muster_board_reset (server->board, n_claims);
  for (guint i = 0; i < all->len; i++) {
    MusterServed *served = all->pdata[i];
    muster_readiness_service_session_gone (server->readiness, served);
    muster_session_close_quietly (served->session);
  }
  if (!done) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__ResetResponse response = TENSORFLOW__RESET_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

/* --- devices --- */

static void
reply_devices (MusterRpcCall *call, GPtrArray *devices)
{
  g_autofree Tensorflow__DeviceAttributes *attributes =
      g_new (Tensorflow__DeviceAttributes, devices->len);
  g_autofree Tensorflow__DeviceAttributes **pointers =
      g_new (Tensorflow__DeviceAttributes *, devices->len);
  for (guint i = 0; i < devices->len; i++) {
    const MusterDevice *device = devices->pdata[i];
    tensorflow__device_attributes__init (&attributes[i]);
    attributes[i].name = device->name;
    attributes[i].device_type = device->type;
    attributes[i].memory_limit = device->memory_limit;
    attributes[i].incarnation = device->incarnation;
    pointers[i] = &attributes[i];
  }
  Tensorflow__ListDevicesResponse response = TENSORFLOW__LIST_DEVICES_RESPONSE__INIT;
  response.n_local_device = devices->len;
  response.local_device = pointers;
  muster_server_reply (call, &response.base);
}

static void
list_devices (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ListDevicesRequest *read =
      unpack_or_fail (call, request, &tensorflow__list_devices_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterServed) served = NULL;
  if (*read->session_handle != '\0') {
    served = muster_sessions_find (server->sessions, read->session_handle, &error);
    if (served == NULL)
      error->code = MUSTER_ERROR_INVALID_ARGUMENT; /* here alone, as TensorFlow's server does */
  }
  g_autoptr (GPtrArray) devices = NULL;
  if (error == NULL)
    devices = muster_master_list_devices (server->master, muster_rpc_call_deadline_us (call),
                                          muster_rpc_call_cancellable (call), &error);
  if (devices == NULL)
    muster_rpc_call_finish (call, error);
  else
    reply_devices (call, devices);
}

/* --- steps --- */

/* The timeout in a serialised RunOptions; 0 where there is none. */
static gboolean
read_timeout (const void *data, gsize size, gint64 *timeout_us, GError **error)
{
  *timeout_us = 0;
  if (size == 0)
    return TRUE;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__RunOptions *options = muster_unpack (&tensorflow__run_options__descriptor, data,
                                                         size, arena, "step's RunOptions", error);
  if (options == NULL)
    return FALSE;
  *timeout_us = from_milliseconds (options->timeout_in_ms);
  return TRUE;
}

/* The earlier of the caller's deadline and a timeout that begins now. */
static gint64
step_deadline (MusterRpcCall *call, gint64 timeout_us)
{
  gint64 deadline_us = muster_rpc_call_deadline_us (call);
  if (timeout_us == 0)
    return deadline_us;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return MIN (deadline_us, muster_deadline_after (now_us, timeout_us));
}

static gboolean
is_cancelled (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_CANCELLED) ||
         g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* A step's error in the words that TensorFlow's clients know. What a node says is prefixed with
 * where it ran; what was wrong with the request isn't. */
static GError *
step_error (MusterServed *served, const GError *error)
{
  if (is_cancelled (error) && g_atomic_int_get (&served->is_closed))
    return g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED,
                                "Step was cancelled by an explicit call to `Session::Close()`.");
  g_autofree char *text = g_utf8_make_valid (error->message, -1);
  gboolean is_node = strstr (text, "{{node ") != NULL && !g_str_has_prefix (text, "From /");
  return g_error_new (MUSTER_ERROR, muster_error_to_wire (error), "%s%s",
                      is_node ? "From " TASK ":\n" : "", text);
}

static void
free_tensors (MusterTensor **tensors, gsize n)
{
  for (gsize i = 0; i < n; i++)
    muster_tensor_unref (tensors[i]);
  g_free (tensors);
}

/* Runs the step of a request. tensors has n_fetches. */
static gboolean
run_request (MusterServed *served, MusterRpcCall *call, const MusterStepRequest *read,
             MusterTensor **tensors, GBytes **metadata, GError **error)
{
  if (read->partial_run_handle != NULL && *read->partial_run_handle != '\0') {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                         "Partial runs are not supported by this server: run the step as a whole");
    return FALSE;
  }
  gint64 timeout_us = 0;
  if (read->options != NULL && !read_timeout (g_bytes_get_data (read->options, NULL),
                                              g_bytes_get_size (read->options), &timeout_us, error))
    return FALSE;

  g_autofree MusterFeed *feeds = g_new (MusterFeed, read->n_feeds);
  for (gsize i = 0; i < read->n_feeds; i++)
    feeds[i] = (MusterFeed){read->feed_names[i], read->feeds[i]};
  MusterStep step = {
      .feeds = feeds,
      .n_feeds = read->n_feeds,
      .fetches = read->fetches,
      .n_fetches = read->n_fetches,
      .targets = read->targets,
      .n_targets = read->n_targets,
      .options = read->options,
      .deadline_us = step_deadline (call, timeout_us != 0 ? timeout_us : served->timeout_us),
  };
  return muster_session_run (served->session, &step, tensors, metadata,
                             muster_rpc_call_cancellable (call), error);
}

/* An error of a step: in the body, where the caller wants it there (a status would be cut). */
static void
reply_step_error (MusterServed *served, MusterRpcCall *call, gboolean in_body, const GError *error)
{
  g_autoptr (GError) told = step_error (served, error);
  if (!in_body) {
    muster_rpc_call_finish (call, told);
    return;
  }
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_step_response_encode_run (&rope, NULL, NULL, 0, NULL, told);
  muster_rpc_call_reply (call, &rope);
}

/* The session that a step's request is for; NULL where the call has been ended with why not: it
 * couldn't be read (then error says so), or the session is gone. */
static MusterServed *
begin_step (MusterServer *server, MusterRpcCall *call, const MusterStepRequest *read,
            const GError *error)
{
  if (read == NULL) {
    muster_rpc_call_finish (call, error);
    return NULL;
  }
  MusterServed *served = find_or_fail (server, call, read->session_handle);
  if (served != NULL)
    muster_server_count_step (server);
  return served;
}

static void
run_step (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_run (request, &error);
  g_autoptr (MusterServed) served = begin_step (server, call, read, error);
  if (served == NULL)
    return;

  g_autoptr (GBytes) metadata = NULL;
  MusterTensor **tensors = g_new0 (MusterTensor *, read->n_fetches);
  if (run_request (served, call, read, tensors, &metadata, &error)) {
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    muster_step_response_encode_run (&rope, read->fetches, tensors, read->n_fetches, metadata,
                                     NULL);
    muster_rpc_call_reply (call, &rope);
  } else {
    reply_step_error (served, call, read->store_errors_in_response_body, error);
  }
  free_tensors (tensors, read->n_fetches);
}

static void
refuse_partial_run (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED,
                           "Partial runs are not supported by this server: run the step as a "
                           "whole, or use TensorFlow's own server");
  muster_rpc_call_finish (call, error);
}

/* --- callables --- */

/* Returns the handle, or 0. */
static gint64
enter_callable (MusterServed *served, MusterRpcCall *call,
                const Tensorflow__CallableOptions *options, GError **error)
{
  MusterServedCallable callable = {options->n_feed, options->n_fetch, 0};
  if (!read_timeout (options->run_options.data, options->run_options.len, &callable.timeout_us,
                     error))
    return 0;
  g_autofree MusterFeed *feeds = g_new (MusterFeed, options->n_feed);
  for (gsize i = 0; i < options->n_feed; i++)
    feeds[i] = (MusterFeed){options->feed[i], NULL};
  MusterStep step = {
      .feeds = feeds,
      .n_feeds = options->n_feed,
      .fetches = (const char *const *)options->fetch,
      .n_fetches = options->n_fetch,
      .targets = (const char *const *)options->target,
      .n_targets = options->n_target,
  };
  gint64 handle =
      muster_session_make_callable (served->session, &step, muster_rpc_call_deadline_us (call),
                                    muster_rpc_call_cancellable (call), error);
  if (handle != 0)
    muster_served_add_callable (served, handle, callable);
  return handle;
}

static void
make_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__MakeCallableRequest *read =
      unpack_or_fail (call, request, &tensorflow__make_callable_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (MusterServed) served = find_or_fail (data, call, read->session_handle);
  if (served == NULL)
    return;
  g_autoptr (GError) error = NULL;
  const Tensorflow__CallableOptions none = TENSORFLOW__CALLABLE_OPTIONS__INIT;
  gint64 handle =
      enter_callable (served, call, read->options != NULL ? read->options : &none, &error);
  if (handle == 0) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__MakeCallableResponse response = TENSORFLOW__MAKE_CALLABLE_RESPONSE__INIT;
  response.handle = handle;
  muster_server_reply (call, &response.base);
}

static gboolean
find_callable (MusterServed *served, const MusterStepRequest *read, MusterServedCallable *callable,
               GError **error)
{
  if (!muster_served_find_callable (served, read->callable, callable, error))
    return FALSE;
  if (read->n_feeds == callable->n_feeds)
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "Callable %" G_GINT64_FORMAT " takes %" G_GSIZE_FORMAT " feeds, but %" G_GSIZE_FORMAT
               " came",
               read->callable, callable->n_feeds, read->n_feeds);
  return FALSE;
}

static void
reply_callable (MusterServed *served, MusterRpcCall *call, const MusterStepRequest *read,
                const MusterServedCallable *callable)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) metadata = NULL;
  MusterTensor **tensors = g_new0 (MusterTensor *, callable->n_fetches);
  gint64 timeout_us = callable->timeout_us != 0 ? callable->timeout_us : served->timeout_us;
  if (muster_session_run_callable (served->session, read->callable, read->feeds, read->n_feeds,
                                   step_deadline (call, timeout_us), tensors, &metadata,
                                   muster_rpc_call_cancellable (call), &error)) {
    g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
    muster_step_response_encode_callable (&rope, tensors, callable->n_fetches, metadata);
    muster_rpc_call_reply (call, &rope);
  } else {
    reply_step_error (served, call, FALSE, error);
  }
  free_tensors (tensors, callable->n_fetches);
}

static void
run_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_callable (request, &error);
  g_autoptr (MusterServed) served = begin_step (server, call, read, error);
  if (served == NULL)
    return;
  MusterServedCallable callable;
  if (find_callable (served, read, &callable, &error))
    reply_callable (served, call, read, &callable);
  else
    muster_rpc_call_finish (call, error);
}

static void
release_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ReleaseCallableRequest *read =
      unpack_or_fail (call, request, &tensorflow__release_callable_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (MusterServed) served = find_or_fail (data, call, read->session_handle);
  if (served == NULL)
    return;
  g_autoptr (GError) error = NULL;
  if (!muster_served_remove_callable (served, read->handle, &error) ||
      !muster_session_release_callable (served->session, read->handle,
                                        muster_rpc_call_deadline_us (call), NULL, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__ReleaseCallableResponse response = TENSORFLOW__RELEASE_CALLABLE_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

void
muster_master_service_enter (MusterServer *server)
{
  static const struct {
    const char *path;
    MusterRpcHandler handler;
  } methods[] = {
      {"/tensorflow.MasterService/CreateSession", create_session},
      {"/tensorflow.MasterService/ExtendSession", extend_session},
      {"/tensorflow.MasterService/PartialRunSetup", refuse_partial_run},
      {"/tensorflow.MasterService/RunStep", run_step},
      {"/tensorflow.MasterService/CloseSession", close_session},
      {"/tensorflow.MasterService/ListDevices", list_devices},
      {"/tensorflow.MasterService/Reset", reset},
      {"/tensorflow.MasterService/MakeCallable", make_callable},
      {"/tensorflow.MasterService/RunCallable", run_callable},
      {"/tensorflow.MasterService/ReleaseCallable", release_callable},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    muster_server_add_method (server, methods[i].path, methods[i].handler);
}
