// SPDX-License-Identifier: Apache-2.0
/* A session at a server: each operation is one call of MasterService, encoded by hand where it
 * may be large. Errors that mean a lost session become ABORTED. */
#include "base/log_private.h"
#include "base/protowire_private.h"
#include "graph/graph_devices_private.h"
#include "graph/graph_nodes_private.h"
#include "graph/run_options_private.h"
#include "master/coordinated_private.h"
#include "master/remote/remote_call_private.h"
#include "master/remote/remote_master_private.h"
#include "master/remote/remote_private.h"
#include "rpc/fork_private.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"

/* A callable of the master. Ours are numbered separately, from 1, since TensorFlow's first is 0. */
typedef struct {
  gint64 remote;
  gsize n_fetches;
} Callable;

struct _MusterRemoteSession {
  MusterSession parent;
  MusterRpcClient *client;      /* (owned) */
  MusterHeartbeat *heartbeat;   /* (owned) */
  MusterRpcClient *coordinator; /* (owned) (nullable) */
  gint is_closed;               /* atomic */
  gboolean has_one_task;        /* nodes of its graphs are for any task */

  GMutex extending; /* one extension at a time, because each needs the version of the one before */
  gint64 graph_version; /* guarded by extending */

  GMutex lock;
  GArray *callables; /* guarded by lock: (element-type Callable), at their number less 1 */
};

G_DEFINE_FINAL_TYPE (MusterRemoteSession, muster_remote_session, MUSTER_TYPE_SESSION)

MusterSession *
muster_remote_session_new (MusterRpcClient *client, MusterHeartbeat *heartbeat, const char *handle,
                           gint64 graph_version, MusterGraph *graph)
{
  MusterRemoteSession *self = g_object_new (MUSTER_TYPE_REMOTE_SESSION, NULL);
  self->client = muster_rpc_client_ref (client);
  self->heartbeat = muster_heartbeat_ref (heartbeat);
  self->graph_version = graph_version;
  muster_session_set_identity (MUSTER_SESSION (self), handle, graph);
  muster_heartbeat_add_session (heartbeat, self, handle);
  return MUSTER_SESSION (self);
}

void
muster_remote_session_set_coordinator (MusterRemoteSession *self, MusterRpcClient *coordinator)
{
  self->coordinator = muster_rpc_client_ref (coordinator);
  muster_session_set_coordinated (MUSTER_SESSION (self));
}

void
muster_remote_session_set_one_task (MusterRemoteSession *self)
{
  self->has_one_task = TRUE;
}

static char *
handle_of (MusterRemoteSession *self)
{
  return (char *)muster_session_handle (MUSTER_SESSION (self));
}

/* TensorFlow's servers refuse 0 and, for a while, repeated numbers. */
static gint64
new_request_id (void)
{
  const double range = 9007199254740992.0; /* 2^53: what a double holds exactly */
  return 1 + (gint64)(muster_clock_random (muster_system_clock ()) * range);
}

/* Logs with the number that the master's log has, too. */
static void
log_step (MusterRemoteSession *self, const char *event, gint64 request_id, const char *what)
{
  muster_log (G_LOG_LEVEL_DEBUG, event, "MUSTER_SESSION", handle_of (self), "MUSTER_REQUEST",
              MUSTER_LOG_INT (request_id), "MESSAGE", "%s", what);
}

/* The error of TensorFlow's master (MasterSession) while a reset closes the session; a moment later
 * it would be ABORTED, "Session … is not found". */
static gboolean
is_closing (MusterRemoteSession *self, const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_FAILED_PRECONDITION) &&
         g_str_has_suffix (error->message, "Session is closed.") &&
         !g_atomic_int_get (&self->is_closed);
}

/* TensorFlow's master lists the errors of several tasks, with the code of the first. That one was
 * possibly cancelled because the session was lost at another: "CANCELLED: …", then "ABORTED: From
 * /job:ps…". */
static gboolean
is_cancelled_elsewhere (MusterRemoteSession *self, const GError *error)
{
  return muster_error_is (error, MUSTER_ERROR_CANCELLED) &&
         (strstr (error->message, "\nABORTED: From /job:") != NULL ||
          strstr (error->message, "\nUNAVAILABLE: From /job:") != NULL) &&
         !g_atomic_int_get (&self->is_closed);
}

/* Sets the error of an operation; failure is (transfer full). */
static void
fail_call (MusterRemoteSession *self, GError *failure, GError **error)
{
  if (is_closing (self, failure) || is_cancelled_elsewhere (self, failure))
    failure->code = MUSTER_ERROR_ABORTED;
  g_propagate_error (error, failure);
}

/* A call on the session. Returns the response (transfer full). */
static GBytes *
call (MusterRemoteSession *self, const char *method, MusterRope *request, gint64 deadline_us,
      GCancellable *cancellable, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  GError *failure = NULL;
  GBytes *answer =
      muster_rpc_client_call (self->client, method, request, &options, cancellable, &failure);
  if (answer == NULL)
    fail_call (self, failure, error);
  return answer;
}

/* The same, unpacked into arena. */
static gpointer
ask (MusterRemoteSession *self, const char *method, MusterRope *request,
     const ProtobufCMessageDescriptor *descriptor, MusterArena *arena, gint64 deadline_us,
     GCancellable *cancellable, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = deadline_us};
  GError *failure = NULL;
  gpointer answer = muster_remote_call (self->client, method, request, descriptor, arena, &options,
                                        cancellable, &failure);
  if (answer == NULL)
    fail_call (self, failure, error);
  return answer;
}

/* (transfer container) The names are borrowed. */
static char **
feed_names (const MusterStep *step)
{
  char **names = g_new (char *, MAX (step->n_feeds, 1));
  for (gsize i = 0; i < step->n_feeds; i++)
    names[i] = (char *)step->feeds[i].name;
  return names;
}

/* (transfer full) As the steps name them: in full. */
static GStrv
fetch_names (const MusterStep *step)
{
  char **names = g_new0 (char *, step->n_fetches + 1);
  for (gsize i = 0; i < step->n_fetches; i++)
    names[i] = g_strconcat (step->fetches[i], muster_step_fetch_suffix (step->fetches[i]), NULL);
  return names;
}

/* --- steps --- */

/* Returns a timeout for the master that is slightly shorter, so that it ends the step itself and
 * its error arrives in time. */
static gint64
masters_timeout_ms (gint64 left_us)
{
  gint64 margin_us = MIN (left_us / 20, MUSTER_DEADLINE_MARGIN_US);
  return MAX ((left_us - margin_us) / MUSTER_MILLISECOND, 1);
}

/* Adds the timeout for the master. */
static GBytes *
options_with_timeout (GBytes *options, gint64 left_us)
{
  GByteArray *bytes = g_byte_array_new ();
  if (options != NULL && g_bytes_get_size (options) > 0)
    g_byte_array_append (bytes, g_bytes_get_data (options, NULL), g_bytes_get_size (options));
  muster_proto_put_uint (bytes, MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS,
                         (guint64)masters_timeout_ms (left_us));
  return g_byte_array_free_to_bytes (bytes);
}

/* Returns the options to send (transfer full), with the step's deadline, unless they have a
 * timeout, which the master observes. */
static GBytes *
bound_options (const MusterStep *step)
{
  gint64 timeout_us = 0;
  (void)muster_run_options_read (step->options,
                                 &timeout_us); /* the master refuses malformed ones */
  if (step->deadline_us == MUSTER_WAIT_FOREVER || timeout_us > 0)
    return step->options != NULL ? g_bytes_ref (step->options) : NULL;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return options_with_timeout (step->options,
                               muster_deadline_remaining (step->deadline_us, now_us));
}

/* TensorFlow's master sends the handle of a variable where one is fetched. */
static void
explain_handle (MusterRemoteSession *self, const MusterStep *step, GError **failure)
{
  MusterGraph *graph = muster_session_graph (MUSTER_SESSION (self));
  for (gsize i = 0; graph != NULL && i < step->n_fetches; i++) {
    const char *fetch = step->fetches[i];
    g_autofree char *name = g_strndup (fetch, strcspn (fetch, ":"));
    const MusterNode *node = muster_graph_find_node (graph, name);
    if (node == NULL || strcmp (node->kind->op, "VarHandleOp") != 0)
      continue;
    g_clear_error (failure);
    (void)muster_graph_refuse_fetch (graph, node, fetch, MUSTER_RESOURCE, failure);
    return;
  }
}

/* Runs a step, or a part of partial_run (nullable). */
static gboolean
run (MusterRemoteSession *self, const char *partial_run, const MusterStep *step,
     MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) options = bound_options (step);
  MusterStepRequest request = {
      .session_handle = handle_of (self),
      .step = *step,
      .partial_run = partial_run,
      .store_errors_in_response_body = TRUE,
      .request_id = new_request_id (),
  };
  request.step.options = options;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  if (!muster_step_request_encode_run (&request, &rope, error))
    return FALSE;
  log_step (self, "step", request.request_id, "RunStep is sent");
  g_autoptr (GBytes) response =
      call (self, MUSTER_MASTER_METHOD ("RunStep"), &rope, step->deadline_us, cancellable, error);
  log_step (self, "step-done", request.request_id,
            response != NULL ? "RunStep was answered" : "RunStep has failed");
  if (response == NULL)
    return FALSE;
  GError *failure = NULL;
  if (muster_step_response_decode_run (response, step->fetches, step->n_fetches, fetched, metadata,
                                       &failure))
    return TRUE;
  if (muster_error_is (failure, MUSTER_ERROR_INVALID_ARGUMENT) &&
      strstr (failure->message, "its type resource") != NULL)
    explain_handle (self, step, &failure);
  fail_call (self, failure, error); /* errors are in the body */
  return FALSE;
}

static gboolean
remote_run (MusterSession *session, const MusterStep *step, MusterTensor **fetched,
            GBytes **metadata, GCancellable *cancellable, GError **error)
{
  return run (MUSTER_REMOTE_SESSION (session), NULL, step, fetched, metadata, cancellable, error);
}

static gboolean
remote_run_part (MusterSession *session, const char *partial_run, const MusterStep *part,
                 MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable,
                 GError **error)
{
  return run (MUSTER_REMOTE_SESSION (session), partial_run, part, fetched, metadata, cancellable,
              error);
}

static char *
remote_set_up_partial_run (MusterSession *session, const MusterStep *step, gint64 deadline_us,
                           GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  g_autofree char **feeds = feed_names (step);
  g_auto (GStrv) fetches = fetch_names (step);
  Tensorflow__PartialRunSetupRequest message = TENSORFLOW__PARTIAL_RUN_SETUP_REQUEST__INIT;
  message.session_handle = handle_of (self);
  message.feed = feeds;
  message.n_feed = step->n_feeds;
  message.fetch = fetches;
  message.n_fetch = step->n_fetches;
  message.target = (char **)step->targets;
  message.n_target = step->n_targets;
  message.request_id = new_request_id ();
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__PartialRunSetupResponse *response = ask (
      self, MUSTER_MASTER_METHOD ("PartialRunSetup"), &request,
      &tensorflow__partial_run_setup_response__descriptor, arena, deadline_us, cancellable, error);
  return response != NULL ? g_strdup (response->partial_run_handle) : NULL;
}

static gboolean
remote_extend (MusterSession *session, MusterGraph *graph, gint64 deadline_us,
               GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  g_autoptr (GMutexLocker) extending = g_mutex_locker_new (&self->extending);
  g_autoptr (MusterGraph) placed =
      self->has_one_task ? muster_graph_of_any_task (graph, error) : muster_graph_ref (graph);
  if (placed == NULL)
    return FALSE;
  GBytes *bytes = muster_graph_bytes (placed);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  GByteArray *tail = muster_rope_tail (&request);
  muster_proto_put_string (tail, 1, handle_of (self));
  muster_proto_put_uint (tail, 3, (guint64)self->graph_version);
  muster_proto_put_head (tail, 2, g_bytes_get_size (bytes));
  muster_rope_append (&request, bytes);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__ExtendSessionResponse *response = ask (
      self, MUSTER_MASTER_METHOD ("ExtendSession"), &request,
      &tensorflow__extend_session_response__descriptor, arena, deadline_us, cancellable, error);
  if (response == NULL)
    return FALSE;
  self->graph_version = response->new_graph_version;
  return TRUE;
}

static void
encode_close (MusterRemoteSession *self, MusterRope *out)
{
  muster_proto_put_string (muster_rope_tail (out), 1, handle_of (self));
}

/* A session that the master has lost counts as closed. */
static gboolean
remote_close (MusterSession *session, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  if (!g_atomic_int_compare_and_exchange (&self->is_closed, FALSE, TRUE) ||
      muster_rpc_is_forked ()) /* it is the parent's */
    return TRUE;
  muster_heartbeat_remove_session (self->heartbeat, self);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  encode_close (self, &request);
  MusterRpcOptions options = {.deadline_us = deadline_us};
  g_autoptr (GError) failure = NULL;
  g_autoptr (GBytes) response =
      muster_rpc_client_call (self->client, MUSTER_MASTER_METHOD ("CloseSession"), &request,
                              &options, cancellable, &failure);
  if (response != NULL || muster_error_is (failure, MUSTER_ERROR_ABORTED))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

MusterRpcClient *
muster_remote_session_client (MusterSession *session)
{
  return MUSTER_REMOTE_SESSION (session)->client;
}

void
muster_remote_session_forget (MusterSession *session)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  if (g_atomic_int_compare_and_exchange (&self->is_closed, FALSE, TRUE))
    muster_heartbeat_remove_session (self->heartbeat, self);
}

static gint64
keep_callable (MusterRemoteSession *self, gint64 remote, gsize n_fetches)
{
  Callable callable = {remote, n_fetches};
  g_mutex_lock (&self->lock);
  g_array_append_val (self->callables, callable);
  gint64 number = self->callables->len;
  g_mutex_unlock (&self->lock);
  return number;
}

static gboolean
find_callable (MusterRemoteSession *self, gint64 number, Callable *out, GError **error)
{
  g_mutex_lock (&self->lock);
  gboolean is_known = number > 0 && number <= (gint64)self->callables->len;
  if (is_known)
    *out = g_array_index (self->callables, Callable, number - 1);
  g_mutex_unlock (&self->lock);
  if (!is_known)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "callable %" G_GINT64_FORMAT " was not made by this session", number);
  return is_known;
}

static void
encode_make_callable (MusterRemoteSession *self, const MusterStep *step, MusterRope *out)
{
  g_autofree char **feeds = feed_names (step);
  g_auto (GStrv) fetches = fetch_names (step);
  Tensorflow__CallableOptions options = TENSORFLOW__CALLABLE_OPTIONS__INIT;
  options.feed = feeds;
  options.n_feed = step->n_feeds;
  options.fetch = fetches;
  options.n_fetch = step->n_fetches;
  options.target = (char **)step->targets;
  options.n_target = step->n_targets;
  if (step->options != NULL) {
    gsize size;
    options.run_options.data = (guint8 *)g_bytes_get_data (step->options, &size);
    options.run_options.len = size;
  }
  Tensorflow__MakeCallableRequest message = TENSORFLOW__MAKE_CALLABLE_REQUEST__INIT;
  message.session_handle = handle_of (self);
  message.options = &options;
  message.request_id = new_request_id ();
  muster_remote_pack (out, &message.base);
}

static gint64
remote_make_callable (MusterSession *session, const MusterStep *step, gint64 deadline_us,
                      GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  encode_make_callable (self, step, &request);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__MakeCallableResponse *response =
      ask (self, MUSTER_MASTER_METHOD ("MakeCallable"), &request,
           &tensorflow__make_callable_response__descriptor, arena, deadline_us, cancellable, error);
  return response != NULL ? keep_callable (self, response->handle, step->n_fetches) : 0;
}

static gboolean
remote_run_callable (MusterSession *session, gint64 number, MusterTensor *const *feeds,
                     gsize n_feeds, gint64 deadline_us, MusterTensor **fetched, GBytes **metadata,
                     GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  Callable callable;
  if (!find_callable (self, number, &callable, error))
    return FALSE;
  if (fetched == NULL && callable.n_fetches > 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "muster_session_run_callable: 'fetched' is NULL");
  MusterStepRequest step = {
      .session_handle = handle_of (self),
      .bare_feeds = (MusterTensor **)feeds,
      .n_bare_feeds = n_feeds,
      .callable = callable.remote,
      .request_id = new_request_id (),
  };
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  if (!muster_step_request_encode_callable (&step, &request, error))
    return FALSE;
  log_step (self, "step", step.request_id, "RunCallable is sent");
  g_autoptr (GBytes) response =
      call (self, MUSTER_MASTER_METHOD ("RunCallable"), &request, deadline_us, cancellable, error);
  log_step (self, "step-done", step.request_id,
            response != NULL ? "RunCallable was answered" : "RunCallable has failed");
  return response != NULL && muster_step_response_decode_callable (response, callable.n_fetches,
                                                                   fetched, metadata, error);
}

static gboolean
remote_release_callable (MusterSession *session, gint64 number, gint64 deadline_us,
                         GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  Callable callable;
  if (!find_callable (self, number, &callable, error))
    return FALSE;
  Tensorflow__ReleaseCallableRequest message = TENSORFLOW__RELEASE_CALLABLE_REQUEST__INIT;
  message.session_handle = handle_of (self);
  message.handle = callable.remote;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  g_autoptr (GBytes) response = call (self, MUSTER_MASTER_METHOD ("ReleaseCallable"), &request,
                                      deadline_us, cancellable, error);
  return response != NULL;
}

static MusterWatch *
remote_watch (MusterSession *session, const MusterWatchFor *what, gint64 deadline_us,
              GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  const MusterWatchFor announced = {.model = what->model, .task = what->task};
  if (self->coordinator != NULL)
    return muster_remote_watch_new (self->coordinator, NULL, "", &announced, deadline_us, error);
  return muster_remote_watch_new (self->client, self->heartbeat, handle_of (self), what,
                                  deadline_us, error);
}

static MusterLease *
remote_claim (MusterSession *session, const MusterClaim *claim, MusterAnnouncement **before,
              gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  const MusterRemoteClaimant own = {self->client, handle_of (self), NULL};
  const MusterRemoteClaimant coordinator = {self->coordinator, "", muster_session_graph (session)};
  if (self->coordinator != NULL)
    return muster_coordinated_lease_claim (&coordinator, &own, claim, before, deadline_us,
                                           cancellable, error);
  return muster_remote_lease_claim (&own, claim, before, deadline_us, cancellable, error);
}

static void
remote_give_up (MusterSession *session)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (session);
  if (!g_atomic_int_compare_and_exchange (&self->is_closed, FALSE, TRUE))
    return;
  muster_heartbeat_remove_session (self->heartbeat, self);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  encode_close (self, &request);
  muster_rpc_client_send_and_forget (self->client, MUSTER_MASTER_METHOD ("CloseSession"), &request,
                                     MUSTER_FORGET_US);
}

/* A session that was freed is closed in the background. */
static void
muster_remote_session_dispose (GObject *object)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (object);
  if (self->client != NULL)
    remote_give_up (MUSTER_SESSION (self));
  g_clear_pointer (&self->heartbeat, muster_heartbeat_unref);
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  g_clear_pointer (&self->coordinator, muster_rpc_client_unref);
  G_OBJECT_CLASS (muster_remote_session_parent_class)->dispose (object);
}

static void
muster_remote_session_finalize (GObject *object)
{
  MusterRemoteSession *self = MUSTER_REMOTE_SESSION (object);
  g_array_unref (self->callables);
  g_mutex_clear (&self->extending);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_remote_session_parent_class)->finalize (object);
}

static void
muster_remote_session_class_init (MusterRemoteSessionClass *klass)
{
  MusterSessionClass *session = MUSTER_SESSION_CLASS (klass);
  session->run = remote_run;
  session->set_up_partial_run = remote_set_up_partial_run;
  session->run_part = remote_run_part;
  session->extend = remote_extend;
  session->close = remote_close;
  session->give_up = remote_give_up;
  session->make_callable = remote_make_callable;
  session->run_callable = remote_run_callable;
  session->release_callable = remote_release_callable;
  session->watch = remote_watch;
  session->claim = remote_claim;
  G_OBJECT_CLASS (klass)->dispose = muster_remote_session_dispose;
  G_OBJECT_CLASS (klass)->finalize = muster_remote_session_finalize;
}

static void
muster_remote_session_init (MusterRemoteSession *self)
{
  g_mutex_init (&self->extending);
  g_mutex_init (&self->lock);
  self->callables = g_array_new (FALSE, FALSE, sizeof (Callable));
}
