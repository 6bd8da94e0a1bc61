// SPDX-License-Identifier: Apache-2.0
/* The part of TensorFlow's MasterService that runs: steps, steps in parts, and callables. admit
 * () is the one place where a request is counted, checked against repetition, and given a use of
 * its session. */
#include "server/services/step_service.h"

#include "base/log_private.h"
#include "base/memory_account_private.h"
#include "graph/positioned_step_private.h"
#include "graph/run_options_private.h"
#include "graph/tensor_proto_private.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/core/session_guard.h"

/* The task that TensorFlow's server puts at the start of a step's error messages. */
#define TASK "/job:localhost/replica:0/task:0"

static gboolean
is_cancelled (const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_CANCELLED) ||
         g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* Converts a step's error to the format that TensorFlow's clients expect. A node's error is
 * prefixed with the task; an error of the request isn't. */
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

/* Ends a step's call with an error: in the body if the caller wants that, because a status's
 * message would be truncated. The status's details contain that it may be repeated. */
static void
reply_error (MusterRpcCall *call, gboolean in_body, const GError *error)
{
  if (!in_body || muster_memory_refused_here () > 0) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_step_response_encode_error (&rope, error);
  muster_rpc_call_reply (call, &rope);
}

/* Ends the call with the error of a step that ran. */
static void
reply_step_error (MusterServed *served, MusterRpcCall *call, gboolean in_body, const GError *error)
{
  g_autoptr (GError) told = step_error (served, error);
  reply_error (call, in_body, told);
}

/* What is needed to admit a request that must not run twice. */
typedef struct {
  const char *method;         /* for errors */
  const char *session_handle; /* (nullable) */
  gint64 request_id;          /* 0: none */
  gboolean is_step;           /* it counts among the server's steps */
  gboolean is_lasting;        /* it is run to its end */
} Admission;

/* Size of a fetch's name and framing in a response. */
#define PIECE_SIZE 256

/* Counts the memory of a response besides its tensors, until it is sent. What is copied into it
 * is in an array that grows to up to twice the size. A few bytes of a repeated string may become
 * gigabytes. */
static gboolean
count_response (MusterRpcCall *call, MusterTensor *const *tensors, gsize n, GError **error)
{
  gsize n_bytes = n * PIECE_SIZE;
  for (gsize i = 0; i < n && n_bytes < G_MAXINT32; i++)
    n_bytes += 2 * muster_tensor_proto_copied_size (tensors[i]);
  const gboolean fits = muster_rpc_call_count_memory (call, n_bytes, error);
  muster_memory_forget_refused (); /* its step has run */
  return fits;
}

/* An admitted request: a use of its session and, if it is a step, one of the server's steps. */
typedef struct {
  MusterSessionGuard guard;
  gboolean is_step;
  const char *method; /* static */
  gint64 request_id;
  gint64 began_us;
} Admitted;

/* All requests are admitted here. Returns FALSE if the request came before, too many steps are
 * running, or the session is gone. */
static gboolean
admit (MusterServer *server, const Admission *wanted, Admitted *self, GError **error)
{
  if (!muster_request_ids_enter (server->request_ids, wanted->request_id, wanted->method, error) ||
      (wanted->is_step && !muster_limits_take (server->limits, MUSTER_LIMIT_STEPS, error)))
    return FALSE;
  const MusterSessionGuard guard =
      muster_session_guard_begin (server, wanted->session_handle, wanted->is_lasting, error);
  if (guard.served == NULL && wanted->is_step)
    muster_limits_release (server->limits, MUSTER_LIMIT_STEPS);
  if (guard.served == NULL)
    return FALSE;
  *self = (Admitted){.guard = guard,
                     .is_step = wanted->is_step,
                     .method = wanted->method,
                     .request_id = wanted->request_id,
                     .began_us = muster_clock_now_us (server->clock)};
  if (self->is_step)
    muster_step_meter_begin (server->steps, self->began_us);
  muster_log (G_LOG_LEVEL_DEBUG, "step", "MUSTER_METHOD", self->method, "MUSTER_SESSION",
              guard.served->handle, "MUSTER_REQUEST", MUSTER_LOG_INT (self->request_id), "MESSAGE",
              "%s begins", self->method);
  return TRUE;
}

/* Call this before the response is sent, like muster_session_guard_end (). Idempotent. A request
 * that had no effect may come again with its number. */
static void
leave (Admitted *self, gboolean is_done)
{
  MusterServer *server = self->guard.server;
  if (!self->guard.is_open)
    return;
  gint64 now_us = muster_clock_now_us (server->clock);
  if (self->is_step) {
    muster_limits_release (server->limits, MUSTER_LIMIT_STEPS);
    muster_step_meter_add (server->steps, now_us, now_us - self->began_us);
  }
  if (is_done)
    muster_memory_forget_refused ();
  else if (muster_memory_refused_here () > 0)
    muster_request_ids_leave (server->request_ids, self->request_id);
  muster_log (G_LOG_LEVEL_DEBUG, "step-done", "MUSTER_METHOD", self->method, "MUSTER_SESSION",
              self->guard.served->handle, "MUSTER_REQUEST", MUSTER_LOG_INT (self->request_id),
              "MUSTER_SECONDS", MUSTER_LOG_SECONDS (now_us - self->began_us), "MESSAGE",
              "%s has ended", self->method);
  muster_session_guard_end (&self->guard);
}

static void
admitted_clear (Admitted *self)
{
  leave (self, TRUE);
  muster_session_guard_clear (&self->guard);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Admitted, admitted_clear)

/* --- steps --- */

/* Returns what ends a step early. A positioned step outlives its caller and the caller's
 * deadline; only its own timeouts and a stop of the server end it. */
static GCancellable *
bound_step (MusterRpcCall *call, const Admitted *admitted, gint64 own_timeout_us,
            gint64 *deadline_us)
{
  const gint64 timeout_us =
      own_timeout_us != 0 ? own_timeout_us : admitted->guard.served->timeout_us;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (!admitted->guard.is_lasting) {
    *deadline_us = muster_rpc_call_deadline_within (call, timeout_us);
    return muster_rpc_call_cancellable (call);
  }
  *deadline_us = timeout_us != 0 ? muster_deadline_after (now_us, timeout_us) : MUSTER_WAIT_FOREVER;
  return muster_rpc_call_stop_cancellable (call);
}

static void
run_step (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_run (request, &error);
  if (read == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  const gboolean in_body = read->store_errors_in_response_body;
  const gboolean is_lasting = muster_step_is_positioned (&read->step);
  const Admission wanted = {"RunStep", read->session_handle, read->request_id, TRUE, is_lasting};
  g_auto (Admitted) self = {0};
  if (!admit (data, &wanted, &self, &error)) {
    reply_error (call, in_body, error);
    return;
  }

  MusterServed *served = self.guard.served;
  MusterStep *step = &read->step;
  g_autoptr (GBytes) metadata = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  MusterTensor **tensors = g_new0 (MusterTensor *, step->n_fetches);
  GCancellable *cancellable = bound_step (call, &self, read->timeout_us, &step->deadline_us);
  gboolean done =
      G_LIKELY (read->partial_run == NULL)
          ? muster_session_run (served->session, step, tensors, &metadata, cancellable, &error)
          : muster_session_run_part (served->session, read->partial_run, step, tensors, &metadata,
                                     cancellable, &error);
  leave (&self, done || read->partial_run != NULL); /* a refusal ends a step in parts */
  if (done && count_response (call, tensors, step->n_fetches, &error) &&
      muster_step_response_encode_run (&rope, step->fetches, tensors, step->n_fetches, metadata,
                                       &error))
    muster_rpc_call_reply (call, &rope);
  else
    reply_step_error (served, call, in_body, error);
  free_tensors (tensors, step->n_fetches);
}

/* A request's step. feeds has room for n_feeds; the names are borrowed. */
static MusterStep
named_step (MusterFeed *feeds, char **feed_names, gsize n_feeds, char **fetches, gsize n_fetches,
            char **targets, gsize n_targets)
{
  for (gsize i = 0; i < n_feeds; i++)
    feeds[i] = (MusterFeed){feed_names[i], NULL};
  return (MusterStep){.feeds = feeds,
                      .n_feeds = n_feeds,
                      .fetches = (const char *const *)fetches,
                      .n_fetches = n_fetches,
                      .targets = (const char *const *)targets,
                      .n_targets = n_targets};
}

static void
set_up_partial_run (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__PartialRunSetupRequest *read = muster_server_unpack (
      call, request, &tensorflow__partial_run_setup_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GError) error = NULL;
  const Admission wanted = {"PartialRunSetup", read->session_handle, read->request_id, FALSE,
                            FALSE};
  g_auto (Admitted) self = {0};
  if (!admit (data, &wanted, &self, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autofree MusterFeed *feeds = g_new (MusterFeed, read->n_feed);
  const MusterStep step = named_step (feeds, read->feed, read->n_feed, read->fetch, read->n_fetch,
                                      read->target, read->n_target);
  g_autofree char *handle = muster_session_set_up_partial_run (
      self.guard.served->session, &step, muster_rpc_call_deadline_us (call),
      muster_rpc_call_cancellable (call), &error);
  leave (&self, handle != NULL);
  if (handle == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__PartialRunSetupResponse response = TENSORFLOW__PARTIAL_RUN_SETUP_RESPONSE__INIT;
  response.partial_run_handle = handle;
  muster_server_reply (call, &response.base);
}

/* --- callables --- */

/* Rejects callable options that muster's masters don't support. */
static gboolean
check_callable (const Tensorflow__CallableOptions *options, GError **error)
{
  if (options->n_feed_devices + options->n_fetch_devices > 0) {
    return muster_fail (
        error, MUSTER_ERROR_UNIMPLEMENTED,
        "CallableOptions::feed_devices and CallableOptions::fetch_devices to configure "
        "feeding/fetching tensors to/from device memory is not yet supported when using a remote "
        "session.");
  }
  if (options->n_tensor_connection == 0)
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_UNIMPLEMENTED,
      "A callable's tensor_connection ('%s' to '%s') is not supported: connect the two in "
      "the graph, or use TensorFlow's runtime (--master=tensorflow)",
      options->tensor_connection[0]->from_tensor, options->tensor_connection[0]->to_tensor);
}

/* Returns the handle, or 0. */
static gint64
enter_callable (MusterServed *served, MusterRpcCall *call,
                const Tensorflow__CallableOptions *options, GError **error)
{
  MusterServedCallable callable = {options->n_feed, options->n_fetch, 0, FALSE};
  g_autoptr (GBytes) run_options =
      options->run_options.len > 0
          ? g_bytes_new (options->run_options.data, options->run_options.len)
          : NULL;
  if (!check_callable (options, error))
    return 0;
  if (!muster_run_options_read (run_options, &callable.timeout_us)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "malformed RunOptions of a callable");
    return 0;
  }
  g_autofree MusterFeed *feeds = g_new (MusterFeed, options->n_feed);
  MusterStep step = named_step (feeds, options->feed, options->n_feed, options->fetch,
                                options->n_fetch, options->target, options->n_target);
  step.options = run_options;
  callable.is_positioned = muster_step_is_positioned (&step);
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
      muster_server_unpack (call, request, &tensorflow__make_callable_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GError) error = NULL;
  const Admission wanted = {"MakeCallable", read->session_handle, read->request_id, FALSE, FALSE};
  g_auto (Admitted) self = {0};
  if (!admit (data, &wanted, &self, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  const Tensorflow__CallableOptions none = TENSORFLOW__CALLABLE_OPTIONS__INIT;
  gint64 handle = enter_callable (self.guard.served, call,
                                  read->options != NULL ? read->options : &none, &error);
  leave (&self, handle != 0);
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
  if (read->n_bare_feeds == callable->n_feeds)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Callable %" G_GINT64_FORMAT " takes %" G_GSIZE_FORMAT
                      " feeds, got %" G_GSIZE_FORMAT,
                      read->callable, callable->n_feeds, read->n_bare_feeds);
}

static void
reply_callable (Admitted *self, MusterRpcCall *call, const MusterStepRequest *read,
                const MusterServedCallable *callable)
{
  MusterServed *served = self->guard.served;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) metadata = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  MusterTensor **tensors = g_new0 (MusterTensor *, callable->n_fetches);
  gint64 deadline_us;
  GCancellable *cancellable = bound_step (call, self, callable->timeout_us, &deadline_us);
  gboolean done = muster_session_run_callable (served->session, read->callable, read->bare_feeds,
                                               read->n_bare_feeds, deadline_us, tensors, &metadata,
                                               cancellable, &error);
  leave (self, done);
  if (done && count_response (call, tensors, callable->n_fetches, &error) &&
      muster_step_response_encode_callable (&rope, tensors, callable->n_fetches, metadata, &error))
    muster_rpc_call_reply (call, &rope);
  else
    reply_step_error (served, call, FALSE, error);
  free_tensors (tensors, callable->n_fetches);
}

static void
run_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStepRequest) read = muster_step_request_decode_callable (request, &error);
  if (read == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  const gboolean is_lasting = muster_sessions_is_positioned (((MusterServer *)data)->sessions,
                                                             read->session_handle, read->callable);
  const Admission wanted = {"RunCallable", read->session_handle, read->request_id, TRUE,
                            is_lasting};
  g_auto (Admitted) self = {0};
  MusterServedCallable callable;
  if (admit (data, &wanted, &self, &error) &&
      find_callable (self.guard.served, read, &callable, &error)) {
    reply_callable (&self, call, read, &callable);
  } else {
    leave (&self, FALSE);
    muster_rpc_call_finish (call, error);
  }
}

static void
release_callable (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ReleaseCallableRequest *read = muster_server_unpack (
      call, request, &tensorflow__release_callable_request__descriptor, arena);
  if (read == NULL)
    return;
  g_auto (MusterSessionGuard) guard = muster_session_guard_enter (data, call, read->session_handle);
  if (guard.served == NULL)
    return;
  g_autoptr (GError) error = NULL;
  /* Releasing an unknown callable succeeds, as on TensorFlow's server. */
  gboolean done =
      !muster_served_remove_callable (guard.served, read->handle) ||
      muster_session_release_callable (guard.served->session, read->handle,
                                       muster_rpc_call_deadline_us (call), NULL, &error);
  muster_session_guard_end (&guard);
  if (!done) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__ReleaseCallableResponse response = TENSORFLOW__RELEASE_CALLABLE_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
}

void
muster_step_service_enter (MusterServer *server)
{
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("PartialRunSetup"), set_up_partial_run);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("RunStep"), run_step);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("MakeCallable"), make_callable);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("RunCallable"), run_callable);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("ReleaseCallable"), release_callable);
}
