// SPDX-License-Identifier: Apache-2.0
/* A gRPC server: it binds addresses, registers methods, and requests calls in advance. */
#include "rpc/server/rpc_server_state_private.h"

#include "base/log_private.h"
#include "base/wait_private.h"
#include "rpc/address_private.h"
#include "rpc/fork_private.h"
#include "rpc/listen_private.h"
#include "rpc/server/frames_private.h"
#include "rpc/server/open_files_private.h"
#include "rpc/server/received_private.h"

#include <grpc/support/time.h>

#define MIN_THREADS 4
#define MAX_THREADS 32
/* Calls requested in advance, for each method. */
#define REQUESTED_AHEAD 4

/* A peer that vanished silently (power loss) is detected after these where the connection's other
 * end isn't the peer itself. */
#define KEEPALIVE_MS         60000
#define KEEPALIVE_TIMEOUT_MS 20000
/* The minimum interval of client pings that gRPC accepts. */
#define MIN_PING_INTERVAL_MS 5000

/* Half of TLS's largest record: gRPC keeps one of these for each connection. */
#define TLS_FRAME 8192

/* A token, the headers that muster_rpc_headers_check () allows, and gRPC's own. */
#define MAX_METADATA 16384

#define MAX_STREAMS 64000
#define MAX_BARE    2048
/* Calls that a client opens before it acknowledges the settings, which takes it one round trip. */
#define MAX_UNSETTLED 1000
/* Calls that one connection may take back within ten seconds. */
#define MAX_ABORTED 1000
/* A message's size is checked before decompression, but not after it. */
#define NO_COMPRESSION (1 << GRPC_COMPRESS_NONE)

static void
method_free (gpointer data)
{
  MusterRpcMethod *method = data;
  g_free (method->path);
  g_free (method);
}

static void
on_shut (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  MusterRpcServer *self = owner;
  g_mutex_lock (&self->lock);
  self->is_shut = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static grpc_server *
create_server (guint max_streams)
{
  grpc_arg args[] = {
      muster_grpc_arg (GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, MUSTER_MAX_MESSAGE),
      muster_grpc_arg (GRPC_ARG_MAX_CONCURRENT_STREAMS, (int)MIN (max_streams, (guint)G_MAXINT)),
      muster_grpc_arg (GRPC_ARG_MAX_METADATA_SIZE, MAX_METADATA),
      muster_grpc_arg (GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, NO_COMPRESSION),
      muster_grpc_arg (GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
      muster_grpc_arg (GRPC_ARG_ALLOW_REUSEPORT, 0),
      muster_grpc_arg (GRPC_ARG_TSI_MAX_FRAME_SIZE, TLS_FRAME),
      muster_grpc_arg (GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
      muster_grpc_arg (GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
      muster_grpc_arg (GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
      muster_grpc_arg (GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, MIN_PING_INTERVAL_MS),
      muster_grpc_socket_arg (),
  };
  return grpc_server_create (&(grpc_channel_args){G_N_ELEMENTS (args), args}, NULL);
}

MusterRpcServer *
muster_rpc_server_new (void)
{
  return muster_rpc_server_new_with_limits (&(MusterRpcServerLimits){0});
}

static void
on_connection_ended (const char *peer, const char *why, gpointer data)
{
  MusterRpcServer *self = data;
  __atomic_fetch_add (&self->n_ended, 1, __ATOMIC_RELAXED);
  static MusterLogLimit messages;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (muster_log_bounded (G_LOG_LEVEL_MESSAGE, &messages, left_out))
    muster_log (G_LOG_LEVEL_MESSAGE, "limit", "MUSTER_LIMIT", "streams", "MUSTER_PEER", peer,
                "MUSTER_LEFT_OUT", left_out, "MESSAGE", "closed the connection of %s: %s", peer,
                why);
}

MusterRpcServer *
muster_rpc_server_new_with_limits (const MusterRpcServerLimits *limits)
{
  const guint n_streams = limits->streams != 0 ? limits->streams : MAX_STREAMS;
  const MusterRpcPeerLimits of_peers = {.max_calls = n_streams,
                                        .max_bare = limits->bare != 0 ? limits->bare : MAX_BARE,
                                        .max_aborted = MAX_ABORTED};
  muster_grpc_init ();
  muster_open_files_keep_spare ();
  MusterRpcServer *self = g_new0 (MusterRpcServer, 1);
  g_atomic_ref_count_init (&self->refs);
  g_mutex_init (&self->stopping);
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->shut = (MusterRpcTag){.done = on_shut, .owner = self};
  self->ending = g_cancellable_new ();
  self->methods = g_ptr_array_new_with_free_func (method_free);
  self->guards = g_ptr_array_new_with_free_func (muster_rpc_guard_unref);
  self->users = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->sockets = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_unix_socket_free);
  self->queue = grpc_completion_queue_create_for_next (NULL);
  self->peers = muster_rpc_peers_new (&of_peers, on_connection_ended, self);
  self->admit = limits->admit;
  self->is_shared = limits->is_shared;
  self->data = limits->data;
  muster_frames_allow (MAX_UNSETTLED, of_peers.max_bare);
  self->server = create_server (n_streams);
  grpc_server_register_completion_queue (self->server, self->queue, NULL);
  return self;
}

void
muster_rpc_server_ref_private (MusterRpcServer *self)
{
  g_atomic_ref_count_inc (&self->refs);
}

void
muster_rpc_server_unref_private (MusterRpcServer *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_ptr_array_unref (self->methods);
  g_object_unref (self->ending);
  g_array_unref (self->users);
  g_ptr_array_unref (self->sockets);
  g_ptr_array_unref (self->guards);
  muster_rpc_peers_free (self->peers);
  g_mutex_clear (&self->stopping);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  g_free (self);
}

void
muster_rpc_server_free (MusterRpcServer *self)
{
  if (self == NULL || muster_rpc_is_forked ())
    return;
  muster_rpc_server_stop (self, 0);
  muster_rpc_server_unref_private (self);
}

void
muster_rpc_server_add_method (MusterRpcServer *self, const char *path, MusterRpcHandler handler,
                              gpointer user_data)
{
  g_return_if_fail (!self->is_started);
  MusterRpcMethod *method = g_new0 (MusterRpcMethod, 1);
  *method = (MusterRpcMethod){
      .server = self,
      .path = g_strdup (path),
      .handler = handler,
      .user_data = user_data,
      .role = MUSTER_ROLE_RUN,
  };
  g_ptr_array_add (self->methods, method);
}

void
muster_rpc_server_add_message_method (MusterRpcServer *self, const char *path,
                                      MusterRpcMessageHandler handler, gpointer user_data)
{
  muster_rpc_server_add_method (self, path, NULL, user_data);
  MusterRpcMethod *method = self->methods->pdata[self->methods->len - 1];
  method->message_handler = handler;
}

void
muster_rpc_server_add_open_method (MusterRpcServer *self, const char *path,
                                   MusterRpcHandler handler, gpointer user_data)
{
  muster_rpc_server_add_method (self, path, handler, user_data);
  muster_rpc_server_require (self, path, MUSTER_ROLE_NONE);
}

void
muster_rpc_server_require (MusterRpcServer *self, const char *path, MusterRole role)
{
  g_return_if_fail (!self->is_started);
  for (guint i = 0; i < self->methods->len; i++) {
    MusterRpcMethod *method = self->methods->pdata[i];
    if (g_str_equal (method->path, path))
      method->role = role;
  }
}

/* gRPC gives no reason for a failure, and reports none if it could listen at some of a name's
 * addresses. */
static int
bind_address (MusterRpcServer *self, const char *address, MusterRpcCredentials *credentials,
              GError **error)
{
  MusterRpcGuard *guard = muster_rpc_guard_new (credentials, self->methods);
  g_ptr_array_add (self->guards, guard);
  g_autoptr (grpc_server_credentials) secured = muster_rpc_guard_credentials (guard, error);
  if (secured == NULL)
    return 0;
  int bound = grpc_server_add_http2_port (self->server, address, secured);
  if (bound == 0)
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "can't listen on %s: gRPC failed to bind it",
                 address);
  return bound;
}

/* The socket is removed with the server, after gRPC has closed it. */
static int
listen_unix (MusterRpcServer *self, const char *address, GError **error)
{
  const char *path = muster_address_unix_path (address);
  if (!muster_address_check (address, error))
    return 0;
  MusterUnixSocket *claim = muster_unix_socket_claim (
      path, (const guint32 *)(gconstpointer)self->users->data, self->users->len, error);
  if (claim == NULL)
    return 0;
  g_ptr_array_add (self->sockets, claim);
  g_autofree char *uri = muster_address_unix_uri (address);
  const int bound = bind_address (self, uri, NULL, error);
  return bound != 0 && muster_unix_socket_open (claim, error) ? bound : 0;
}

int
muster_rpc_server_listen (MusterRpcServer *self, const char *address,
                          MusterRpcCredentials *credentials, GError **error)
{
  g_return_val_if_fail (!self->is_started, 0);
  if (muster_address_unix_path (address) != NULL)
    return listen_unix (self, address, error);
  g_autofree char *picked = muster_listen_pick (address, error);
  return picked != NULL ? bind_address (self, picked, credentials, error) : 0;
}

void
muster_rpc_server_allow_users (MusterRpcServer *self, const guint32 *users, gsize n_users)
{
  g_array_append_vals (self->users, users, (guint)n_users);
}

void
muster_rpc_server_request (MusterRpcMethod *method)
{
  MusterRpcServer *self = method->server;
  MusterRpcCall *call = muster_rpc_call_new (method);
  muster_rpc_server_count (self, 1);
  grpc_call_error refused =
      method->registered != NULL
          ? grpc_server_request_registered_call (self->server, method->registered, &call->call,
                                                 &call->deadline, &call->metadata, NULL,
                                                 self->queue, self->queue, &call->requested)
          : grpc_server_request_call (self->server, &call->call, &call->details, &call->metadata,
                                      self->queue, self->queue, &call->requested);
  g_assert (refused == GRPC_CALL_OK); /* the queue is not shut down while a call is counted */
}

guint
muster_rpc_server_n_calls (MusterRpcServer *self)
{
  return muster_rpc_peers_n_calls (self->peers, NULL);
}

guint64
muster_rpc_server_n_ended (MusterRpcServer *self)
{
  return __atomic_load_n (&self->n_ended, __ATOMIC_RELAXED) + muster_received_n_ended ();
}

void
muster_rpc_server_count (MusterRpcServer *self, gint change)
{
  g_mutex_lock (&self->lock);
  self->n_open += change;
  if (self->n_open == 0)
    g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_rpc_server_enter (MusterRpcServer *self, GList *passing)
{
  grpc_call_ref (passing->data);
  g_mutex_lock (&self->lock);
  g_queue_push_tail_link (&self->passing, passing);
  gboolean is_late = self->is_cancelling;
  g_mutex_unlock (&self->lock);
  if (is_late)
    grpc_call_cancel (passing->data, NULL);
}

void
muster_rpc_server_leave (MusterRpcServer *self, GList *passing)
{
  g_mutex_lock (&self->lock);
  g_queue_unlink (&self->passing, passing);
  g_mutex_unlock (&self->lock);
  grpc_call_unref (passing->data);
}

/* Ends calls that outlive their callers. */
static void
cancel_proxied (MusterRpcServer *self)
{
  g_autoptr (GPtrArray) calls = g_ptr_array_new_with_free_func ((GDestroyNotify)grpc_call_unref);
  g_mutex_lock (&self->lock);
  self->is_cancelling = TRUE;
  for (GList *link = self->passing.head; link != NULL; link = link->next) {
    grpc_call_ref (link->data);
    g_ptr_array_add (calls, link->data);
  }
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < calls->len; i++)
    grpc_call_cancel (calls->pdata[i], NULL);
}

static void
register_methods (MusterRpcServer *self)
{
  for (guint i = 0; i < self->methods->len; i++) {
    MusterRpcMethod *method = self->methods->pdata[i];
    method->registered =
        grpc_server_register_method (self->server, method->path, NULL, GRPC_SRM_PAYLOAD_NONE, 0);
    g_assert (method->registered != NULL); /* else it was added twice */
  }
  muster_rpc_server_add_method (self, NULL, NULL, NULL); /* for all others */
}

void
muster_rpc_server_start (MusterRpcServer *self)
{
  g_return_if_fail (!self->is_started);
  register_methods (self);
  self->is_started = TRUE;
  grpc_server_start (self->server);
  for (guint i = 0; i < self->methods->len; i++)
    for (int n = 0; n < REQUESTED_AHEAD; n++)
      muster_rpc_server_request (self->methods->pdata[i]);
  self->threads = muster_rpc_threads_new (
      self->queue, CLAMP (2 * g_get_num_processors (), MIN_THREADS, MAX_THREADS));
}

static void
wait_until_shut (MusterRpcServer *self, gint64 grace_us)
{
  gint64 until_us = muster_deadline_after (muster_clock_now_us (muster_system_clock ()), grace_us);
  g_mutex_lock (&self->lock);
  while (!self->is_shut && grace_us > 0 &&
         muster_wait_change (&self->changed, &self->lock, until_us)) {
  }
  g_mutex_unlock (&self->lock);

  grpc_server_cancel_all_calls (self->server);
  cancel_proxied (self);
  g_cancellable_cancel (self->ending);
  g_mutex_lock (&self->lock);
  while (!self->is_shut || self->n_open > 0)
    g_cond_wait (&self->changed, &self->lock);
  g_mutex_unlock (&self->lock);
}

void
muster_rpc_server_stop (MusterRpcServer *self, gint64 grace_us)
{
  if (muster_rpc_is_forked ())
    return;
  g_mutex_lock (&self->stopping);
  if (self->server != NULL) {
    if (!self->is_started) /* the queue must be polled */
      muster_rpc_server_start (self);
    grpc_server_shutdown_and_notify (self->server, self->queue, &self->shut);
    wait_until_shut (self, grace_us);
    grpc_completion_queue_shutdown (self->queue);
    g_clear_pointer (&self->threads, muster_rpc_threads_join);
    g_clear_pointer (&self->server, grpc_server_destroy);
    g_clear_pointer (&self->queue, grpc_completion_queue_destroy);
    g_ptr_array_set_size (self->sockets, 0);
  }
  g_mutex_unlock (&self->stopping);
}
