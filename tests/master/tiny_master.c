// SPDX-License-Identifier: Apache-2.0
#include "tests/master/tiny_master.h"

#include "base/unpack_private.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"
#include "rpc/proto/muster.pb-c.h"

#include <string.h>

#define GRAPH_VERSION 5

static void
reply_message (MusterRpcCall *call, const ProtobufCMessage *message)
{
  g_autoptr (GBytes) bytes = muster_pack (message);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  muster_rpc_call_reply (call, &rope);
}

/* TRUE (and answered) where the master has lost its session, or is closing it. */
static gboolean
is_lost (TinyMaster *self, MusterRpcCall *call)
{
  if (g_atomic_int_get (&self->is_lost))
    tiny_fail (call, MUSTER_ERROR_ABORTED, "Session tiny is not found.");
  else if (g_atomic_int_get (&self->is_closing))
    tiny_fail (call, MUSTER_ERROR_FAILED_PRECONDITION, "Session is closed.");
  else
    return FALSE;
  return TRUE;
}

static GBytes *
copy_field (ProtobufCBinaryData field)
{
  return g_bytes_new (field.data, field.len);
}

static void
reply_created (MusterRpcCall *call)
{
  Tensorflow__CreateSessionResponse response = TENSORFLOW__CREATE_SESSION_RESPONSE__INIT;
  response.session_handle = "tiny";
  response.graph_version = GRAPH_VERSION;
  reply_message (call, &response.base);
}

static void
on_create (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__CreateSessionRequest *message =
      tiny_unpack (&tensorflow__create_session_request__descriptor, request, arena);
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->graph, g_bytes_unref);
  g_clear_pointer (&self->config, g_bytes_unref);
  self->graph = copy_field (message->graph_def);
  self->config = copy_field (message->config);
  self->version = GRAPH_VERSION;
  g_free (self->lease);
  self->lease = g_strdup (muster_rpc_call_header (call, "muster-lease"));
  g_mutex_unlock (&self->lock);
  g_atomic_int_inc (&self->n_sent);
  reply_created (call);
}

static void
on_create_known (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data)
{
  TinyMaster *self = data;
  const gint code = g_atomic_int_get (&self->known_answer);
  g_atomic_int_inc (&self->n_asked);
  if (code == 0) {
    reply_created (call);
    return;
  }
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, code, "not here");
  muster_rpc_call_finish (call, error);
}

static void
on_extend (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  if (is_lost (self, call))
    return;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ExtendSessionRequest *message =
      tiny_unpack (&tensorflow__extend_session_request__descriptor, request, arena);
  g_mutex_lock (&self->lock);
  gboolean is_current = message->current_graph_version == self->version &&
                        strcmp (message->session_handle, "tiny") == 0;
  Tensorflow__ExtendSessionResponse response = TENSORFLOW__EXTEND_SESSION_RESPONSE__INIT;
  self->version += 3;
  response.new_graph_version = self->version;
  g_mutex_unlock (&self->lock);
  if (is_current)
    reply_message (call, &response.base);
  else
    tiny_fail (call, MUSTER_ERROR_ABORTED, "Current version is another");
}

static void
note_step (TinyMaster *self, const MusterStepRequest *request)
{
  g_mutex_lock (&self->lock);
  g_clear_pointer (&self->options, g_bytes_unref);
  GBytes *options = request->step.options;
  self->options = options != NULL ? g_bytes_ref (options) : NULL;
  self->request_id = request->request_id;
  g_mutex_unlock (&self->lock);
}

static void
on_run (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  if (is_lost (self, call))
    return;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_run (request, NULL);
  g_assert (read != NULL && read->store_errors_in_response_body);
  g_assert_cmpstr (read->session_handle, ==, "tiny");
  note_step (self, read);
  const MusterStep *step = &read->step;
  const char *target = step->n_targets > 0 ? step->targets[0] : "";
  if (strcmp (target, "hang") == 0) {
    g_async_queue_push (self->hanging, call);
    return;
  }
  g_autoptr (GError) error = NULL;
  if (strcmp (target, "fail") == 0)
    error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION,
                                 "Attempting to use uninitialized value a");
  if (strcmp (target, "closed") == 0)
    error =
        g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "Session is closed.");
  if (g_str_has_prefix (target, "\n====="))
    error = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, target);
  g_autofree MusterTensor **tensors = g_new0 (MusterTensor *, step->n_fetches + 1);
  for (gsize i = 0; i < step->n_fetches; i++)
    tensors[i] = step->feeds[0].tensor;
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  if (error != NULL)
    muster_step_response_encode_error (&reply, error);
  else
    muster_step_response_encode_run (&reply, step->fetches, tensors, step->n_fetches, NULL, NULL);
  muster_rpc_call_reply (call, &reply);
}

static void
on_close (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__CloseSessionRequest *message =
      tiny_unpack (&tensorflow__close_session_request__descriptor, request, arena);
  g_async_queue_push (self->closed, g_strdup (message->session_handle));
  if (g_atomic_int_get (&self->is_deaf))
    g_async_queue_push (self->hanging, call);
  else if (!is_lost (self, call))
    muster_rpc_call_reply (call, NULL);
}

static void
on_renew (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__RenewRequest *message =
      tiny_unpack (&muster__renew_request__descriptor, request, arena);
  g_autoptr (GString) handles = g_string_new (NULL);
  for (gsize i = 0; i < message->n_session_handle; i++)
    g_string_append_printf (handles, "%s%s", i > 0 ? " " : "", message->session_handle[i]);
  int answer = g_atomic_int_get (&self->renew_answer);
  Muster__RenewResponse response = MUSTER__RENEW_RESPONSE__INIT;
  response.gone = message->session_handle;
  response.n_gone = answer == TINY_GONE ? message->n_session_handle : 0;
  if (answer == TINY_SILENT)
    g_async_queue_push (self->hanging, call);
  else if (answer == 0 || answer == TINY_GONE)
    reply_message (call, &response.base);
  else
    tiny_fail (call, answer, "no");
  g_async_queue_push (self->renewed, g_strdup (handles->str));
}

static void
on_list (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  Tensorflow__DeviceAttributes here = TENSORFLOW__DEVICE_ATTRIBUTES__INIT;
  here.name = "/job:worker/replica:0/task:0/device:CPU:0";
  here.device_type = "CPU";
  here.memory_limit = 1 << 28;
  here.incarnation = G_MAXUINT64 - 1;
  Tensorflow__DeviceAttributes there = here;
  there.name = "/job:ps/replica:0/task:0/device:CPU:0";
  Tensorflow__ListDevicesResponse response = TENSORFLOW__LIST_DEVICES_RESPONSE__INIT;
  response.local_device = (Tensorflow__DeviceAttributes *[]){&here};
  response.n_local_device = 1;
  response.remote_device = (Tensorflow__DeviceAttributes *[]){&there};
  response.n_remote_device = 1;
  reply_message (call, &response.base);
}

static void
on_reset (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ResetRequest *message =
      tiny_unpack (&tensorflow__reset_request__descriptor, request, arena);
  g_mutex_lock (&self->lock);
  g_strfreev (self->containers);
  self->containers = g_new0 (char *, message->n_container + 1);
  for (gsize i = 0; i < message->n_container; i++)
    self->containers[i] = g_strdup (message->container[i]);
  g_mutex_unlock (&self->lock);
  muster_rpc_call_reply (call, NULL);
}

static void
on_set_up_partial_run (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  if (is_lost (self, call))
    return;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__PartialRunSetupRequest *message =
      tiny_unpack (&tensorflow__partial_run_setup_request__descriptor, request, arena);
  Tensorflow__PartialRunSetupResponse response = TENSORFLOW__PARTIAL_RUN_SETUP_RESPONSE__INIT;
  response.partial_run_handle = message->n_feed > 0 ? message->feed[0] : "";
  reply_message (call, &response.base);
}

/* The first callable is number 0, as TensorFlow's is; the second 1. */
static void
on_make_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  if (is_lost (self, call))
    return;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__MakeCallableRequest *message =
      tiny_unpack (&tensorflow__make_callable_request__descriptor, request, arena);
  g_assert (message->options->n_feed == 1 && message->options->n_fetch == 1);
  g_mutex_lock (&self->lock);
  Tensorflow__MakeCallableResponse response = TENSORFLOW__MAKE_CALLABLE_RESPONSE__INIT;
  response.handle = self->version++ - GRAPH_VERSION;
  g_mutex_unlock (&self->lock);
  reply_message (call, &response.base);
}

static void
on_run_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  if (is_lost (data, call))
    return;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_callable (request, NULL);
  g_assert (read != NULL);
  g_autoptr (MusterTensor) number = muster_tensor_new_int64 (read->callable);
  MusterTensor *answers[] = {read->n_bare_feeds > 0 ? read->bare_feeds[0] : number};
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_step_response_encode_callable (&reply, answers, 1, NULL, NULL);
  muster_rpc_call_reply (call, &reply);
}

static void
on_release_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  if (is_lost (self, call))
    return;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ReleaseCallableRequest *message =
      tiny_unpack (&tensorflow__release_callable_request__descriptor, request, arena);
  g_mutex_lock (&self->lock);
  self->released = message->handle;
  g_mutex_unlock (&self->lock);
  muster_rpc_call_reply (call, NULL);
}

static void
send_readiness (MusterRpcCall *call, const Muster__ReadinessState *readiness)
{
  g_autoptr (GBytes) bytes = muster_pack (&readiness->base);
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, bytes);
  muster_rpc_call_send (call, &rope);
}

/* What a server may say of a chief, some of it nonsense. */
static void
fill_chief (Muster__ReadinessState *readiness, Muster__Announcement *chief,
            const Muster__WatchRequest *message)
{
  static char long_text[10001];
  memset (long_text, 'n', sizeof long_text - 1);
  chief->model = message->model;
  chief->task = message->task;
  chief->who = message->who;
  chief->phase = (Muster__Phase)99;
  chief->epoch = 7;
  chief->phase_age_us = -5;
  chief->step = 12;
  chief->durable_step = 10;
  chief->durable = "model.ckpt-10";
  chief->detail = long_text;
  chief->alive = TRUE;
  readiness->keeps_announcements = TRUE;
  readiness->chief = chief;
  readiness->graph_difference = "node 'a' is missing";
}

/* Closed, then ready; then a question fails where the ready op is "bad"; then the session is gone,
 * unless the ready op is "open": then nothing more comes. */
static void
on_watch (MusterRpcCall *call, GBytes *request, gpointer data)
{
  TinyMaster *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Muster__WatchRequest *message =
      tiny_unpack (&muster__watch_request__descriptor, request, arena);
  Muster__ReadinessState waiting = MUSTER__READINESS_STATE__INIT;
  waiting.why_gate = "a and b are uninitialized";
  waiting.missing = (char *[]){"a", "b"};
  waiting.n_missing = 2;
  Muster__Announcement chief = MUSTER__ANNOUNCEMENT__INIT;
  if (*message->model != '\0')
    fill_chief (&waiting, &chief, message);
  send_readiness (call, &waiting);
  Muster__ReadinessState ready = MUSTER__READINESS_STATE__INIT;
  ready.tasks = -1; /* can't be */
  ready.min_tasks = 2;
  ready.gate_open = TRUE;
  ready.ready = TRUE;
  send_readiness (call, &ready);
  if (strcmp (message->ready_op, "open") == 0) {
    g_async_queue_push (self->hanging, call);
    return;
  }
  Muster__ReadinessState failed = MUSTER__READINESS_STATE__INIT;
  failed.error_code = MUSTER_ERROR_NOT_FOUND;
  failed.error_message = "no such op";
  if (strcmp (message->ready_op, "bad") == 0)
    send_readiness (call, &failed);
  tiny_fail (call, MUSTER_ERROR_ABORTED, "the session is gone");
}

static const struct {
  const char *path;
  MusterRpcHandler handler;
} methods[] = {
    {"/tensorflow.MasterService/CreateSession", on_create},
    {"/tensorflow.MasterService/ExtendSession", on_extend},
    {"/tensorflow.MasterService/RunStep", on_run},
    {"/tensorflow.MasterService/CloseSession", on_close},
    {"/tensorflow.MasterService/ListDevices", on_list},
    {"/tensorflow.MasterService/Reset", on_reset},
    {"/tensorflow.MasterService/PartialRunSetup", on_set_up_partial_run},
    {"/tensorflow.MasterService/MakeCallable", on_make_callable},
    {"/tensorflow.MasterService/RunCallable", on_run_callable},
    {"/tensorflow.MasterService/ReleaseCallable", on_release_callable},
    {"/muster.Readiness/CreateKnown", on_create_known},
    {"/muster.Readiness/Watch", on_watch},
    {"/muster.Readiness/Renew", on_renew},
};

void
tiny_master_start (TinyMaster *self)
{
  g_autoptr (GError) error = NULL;
  g_mutex_init (&self->lock);
  self->closed = g_async_queue_new_full (g_free);
  self->hanging = g_async_queue_new ();
  self->renewed = g_async_queue_new_full (g_free);
  self->server = muster_rpc_server_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    muster_rpc_server_add_method (self->server, methods[i].path, methods[i].handler, self);
  tiny_registry_add (&self->registry, self->server);
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  g_assert_no_error (error);
  muster_rpc_server_start (self->server);
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%d", port);
  self->master = muster_remote_master_new (target, &error);
  g_assert_no_error (error);
}

static void
end_held_calls (TinyMaster *self)
{
  for (MusterRpcCall *call; (call = g_async_queue_try_pop (self->hanging)) != NULL;)
    muster_rpc_call_finish (call, NULL);
  tiny_registry_stop (&self->registry);
}

void
tiny_master_clear (TinyMaster *self)
{
  end_held_calls (self);
  g_clear_object (&self->master);
  muster_rpc_server_stop (self->server, 0);
  end_held_calls (self); /* a handler may have kept one after that; now none runs any more */
  muster_rpc_server_free (self->server);
  tiny_registry_clear (&self->registry);
  g_clear_pointer (&self->graph, g_bytes_unref);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_clear_pointer (&self->options, g_bytes_unref);
  g_strfreev (self->containers);
  g_free (self->lease);
  g_async_queue_unref (self->renewed);
  g_async_queue_unref (self->closed);
  g_async_queue_unref (self->hanging);
  g_mutex_clear (&self->lock);
}
