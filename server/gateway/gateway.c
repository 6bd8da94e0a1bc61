// SPDX-License-Identifier: Apache-2.0
/* Creating and ending sessions behind a gateway, and calls to the master as a whole. Calls on a
 * session are in gateway_step.c. */
#include "server/gateway/gateway_private.h"

#include "base/protowire_private.h"
#include "ready/backoff.h"
#include "rpc/proto/master.pb-c.h"
#include "server/core/drain.h"
#include "server/core/nested_message_private.h"
#include "server/core/service.h"
#include "server/core/session_guard.h"
#include "server/services/announce_service.h"
#include "server/services/health_service.h"
#include "server/services/master_service.h"
#include "server/services/readiness_service.h"

#include <string.h>

/* A master may answer CreateSession after its caller's deadline. The gateway waits this much
 * longer, so that it can close the session. */
#define LINGER (60 * MUSTER_SECOND)

enum { CREATE_SESSION_GRAPH = 1, CREATE_SESSION_CONFIG = 2, CREATE_SESSION_TARGET = 3 };

/* --- reading messages --- */

static MusterRpcMessage *
message_of (GBytes *request)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_rope_append (&rope, request);
  return muster_rpc_message_new (&rope);
}

/* Reads the fields of a serialised request. */
static gboolean
peek_bytes (GBytes *request, MusterGatewayPeek *peek, GError **error)
{
  MusterRpcMessage *message = message_of (request);
  gboolean is_good = muster_gateway_peek (message, MUSTER_GATEWAY_OTHER, peek, error);
  muster_rpc_message_free (message);
  return is_good;
}

/* --- creating sessions --- */

/* A CreateSession in progress. */
typedef struct {
  MusterGateway *gateway; /* (not owned) */
  MusterMaster *remote;   /* (owned) (nullable) until it is forwarded */
  MusterGraph *graph;     /* (owned) (nullable) the graph that is forwarded */
  char *way;              /* (owned) (nullable) the gateways up to here */
  gint64 lease_us;
  gboolean has_place; /* it counts towards the limit of sessions */
} Creation;

static void
creation_free (Creation *self)
{
  if (self->has_place)
    muster_limits_release (self->gateway->server->limits, MUSTER_LIMIT_SESSIONS);
  g_clear_object (&self->remote);
  if (self->graph != NULL)
    muster_gateway_graphs_release (self->gateway->graphs, self->graph);
  g_free (self->way);
  g_free (self);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Creation, creation_free)

/* Adds the session to the table. If its client has gone, the session is closed instead. */
static gboolean
take_in (Creation *self, MusterRpcCall *call, const MusterRpcMessage *answer, GError **error)
{
  MusterServer *server = self->gateway->server;
  MusterGatewayPeek peek;
  if (!muster_gateway_peek (answer, MUSTER_GATEWAY_OTHER, &peek, error))
    return FALSE;
  if (*peek.handle == '\0') {
    return muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s' created a session without a handle",
                        muster_master_target (self->remote));
  }
  g_autoptr (MusterSession) session =
      muster_remote_master_adopt (MUSTER_REMOTE_MASTER (self->remote), peek.handle, self->graph);
  muster_gateway_graphs_keep (self->gateway->graphs, session, self->graph);
  if (muster_rpc_call_is_gone (call))
    return TRUE;
  guint64 n_bytes = g_bytes_get_size (muster_graph_bytes (self->graph));
  g_autoptr (MusterServed) served = muster_sessions_enter (server->sessions, peek.handle, session,
                                                           n_bytes, self->lease_us, error);
  if (served == NULL) {
    muster_remote_session_forget (session); /* another client uses it too */
    return FALSE;
  }
  self->has_place = FALSE; /* the table owns it now */
  if (self->lease_us > 0)
    muster_session_reaper_watch (server->reaper, self->lease_us);
  return TRUE;
}

static void
on_created (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data)
{
  g_autoptr (Creation) self = data;
  g_autoptr (GError) error = NULL;
  const MusterRpcMessage *answer = muster_rpc_proxied_response (passed);
  if (answer == NULL || take_in (self, call, answer, &error))
    muster_rpc_call_finish_proxied (call, passed);
  else
    muster_rpc_call_finish (call, error);
}

/* Begins a creation. graph is a part of request; NULL: there was none, with an error. */
static gboolean
begin_creation (Creation *self, MusterRpcCall *call, GBytes *graph, GBytes *request, GError **error)
{
  MusterServer *server = self->gateway->server;
  self->way = graph != NULL ? muster_gateway_way (self->gateway, call, error) : NULL;
  if (self->way == NULL || !muster_server_admits (server, error) ||
      !muster_server_read_lease (server, call, &self->lease_us, error) ||
      !muster_limits_allow (server->limits, MUSTER_LIMIT_GRAPH_BYTES, g_bytes_get_size (graph),
                            error))
    return FALSE;
  self->has_place = muster_limits_take (server->limits, MUSTER_LIMIT_SESSIONS, error);
  if (!self->has_place)
    return FALSE;
  g_autoptr (GBytes) shared =
      muster_known_graphs_share (server->known_graphs, graph, g_bytes_get_size (request));
  self->graph = muster_gateway_graphs_get (self->gateway->graphs, shared, error);
  if (self->graph == NULL)
    return FALSE;
  self->remote = muster_master_remote (server->master, muster_rpc_call_deadline_us (call),
                                       muster_rpc_call_cancellable (call), error);
  return self->remote != NULL;
}

/* Takes creation. */
static void
forward_creation (Creation *creation, MusterRpcCall *call, MusterRpcMessage *message)
{
  const MusterRpcHeader headers[] = {{MUSTER_SESSION_LEASE_HEADER, MUSTER_SESSION_LEASE_SECONDS},
                                     {MUSTER_GATEWAY_WAY, creation->way}};
  const MusterRpcProxyOptions options = {
      .method = MUSTER_MASTER_SERVICE ("CreateSession"),
      .outlives_caller = TRUE,
      .deadline_us = muster_deadline_after (muster_rpc_call_deadline_us (call), LINGER),
      .headers = headers,
      .n_headers = G_N_ELEMENTS (headers),
  };
  MusterRpcClient *client = muster_remote_master_client (MUSTER_REMOTE_MASTER (creation->remote));
  muster_rpc_call_proxy (call, client, message, &options, on_created, creation);
}

/* Returns the CreateSession for the master. */
static MusterRpcMessage *
message_with (GBytes *graph, GBytes *config, const char *target)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  muster_proto_put_head (muster_rope_tail (&rope), CREATE_SESSION_GRAPH, g_bytes_get_size (graph));
  muster_rope_append (&rope, graph);
  if (config != NULL) {
    muster_proto_put_head (muster_rope_tail (&rope), CREATE_SESSION_CONFIG,
                           g_bytes_get_size (config));
    muster_rope_append (&rope, config);
  }
  muster_proto_put_string (muster_rope_tail (&rope), CREATE_SESSION_TARGET, target);
  return muster_rpc_message_new (&rope);
}

/* Sends the creation (transfer full), which has begun. request (nullable) is passed on unchanged
 * if the master takes what it contains: config (nullable), and the graph. */
static void
place_creation (Creation *creation, MusterRpcCall *call, GBytes *request, GBytes *config)
{
  g_autoptr (Creation) self = creation;
  g_autoptr (GError) error = NULL;
  GBytes *wanted = config;
  g_autoptr (MusterGraph) placed = muster_remote_master_place (MUSTER_REMOTE_MASTER (self->remote),
                                                               self->graph, &wanted, &error);
  if (placed == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  const char *outside = muster_remote_master_outside (MUSTER_REMOTE_MASTER (self->remote));
  MusterRpcMessage *message = request != NULL && wanted == config && outside == NULL
                                  ? message_of (request)
                                  : message_with (muster_graph_bytes (placed), wanted, outside);
  forward_creation (g_steal_pointer (&self), call, message);
}

static void
create_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) graph = muster_server_nested_graph (request, CREATE_SESSION_GRAPH, &error);
  g_autoptr (GBytes) config = NULL;
  g_autoptr (Creation) creation = g_new0 (Creation, 1);
  creation->gateway = server->gateway;
  if (begin_creation (creation, call, graph, request, &error) &&
      muster_server_nested_message (request, CREATE_SESSION_CONFIG, &config, &error))
    place_creation (g_steal_pointer (&creation), call, request, config);
  else
    muster_rpc_call_finish (call, error);
}

static void
create_known (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Muster__CreateKnownRequest *read =
      muster_server_unpack (call, request, &muster__create_known_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GBytes) graph = muster_server_find_graph (server, read, &error);
  g_autoptr (GBytes) config =
      read->config.len > 0 ? g_bytes_new (read->config.data, read->config.len) : NULL;
  g_autoptr (Creation) creation = g_new0 (Creation, 1);
  creation->gateway = server->gateway;
  if (begin_creation (creation, call, graph, request, &error))
    place_creation (g_steal_pointer (&creation), call, NULL, config);
  else
    muster_rpc_call_finish (call, error);
}

/* --- closing sessions --- */

/* If the master failed to close the session, releasing it tries once more. */
static void
on_closed (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data)
{
  g_autoptr (MusterServed) served = data;
  const GError *error = muster_rpc_proxied_error (passed);
  if (error == NULL || muster_error_is (error, MUSTER_ERROR_ABORTED))
    muster_remote_session_forget (served->session);
  muster_rpc_call_finish_proxied (call, passed);
}

/* The session is closed even if the caller goes away. */
static void
close_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterServed) served = NULL;
  MusterGatewayPeek peek;
  if (peek_bytes (request, &peek, &error))
    served = muster_sessions_take (server->sessions, peek.handle, &error);
  if (served == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  muster_readiness_service_session_gone (server->readiness, served);
  if (!muster_session_guard_settle (call, served, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  const MusterRpcProxyOptions options = {
      .method = MUSTER_MASTER_SERVICE ("CloseSession"),
      .outlives_caller = TRUE,
      .deadline_us = muster_rpc_call_deadline_us (call),
  };
  MusterRpcClient *client = muster_remote_session_client (served->session);
  muster_rpc_call_proxy (call, client, message_of (request), &options, on_closed,
                         g_steal_pointer (&served));
}

void
muster_gateway_note_loss (MusterGateway *self, MusterServed *served, const GError *error)
{
  /* Recognises a reset by TensorFlow's and muster's messages, because a step may fail with the
   * same code for other reasons. A reset that isn't recognised only leaves the session in the
   * table. */
  const gboolean was_reset = muster_failure_is_reset (error);
  if (!muster_error_is (error, MUSTER_ERROR_ABORTED) ||
      (!was_reset &&
       strstr (error->message, " is not found. Possibly, this master has restarted.") == NULL))
    return;
  MusterSessions *sessions = self->server->sessions;
  g_autoptr (MusterServed) lost = was_reset ? muster_sessions_take_reset (sessions, served->handle)
                                            : muster_sessions_take (sessions, served->handle, NULL);
  if (lost == NULL)
    return;
  muster_remote_session_forget (lost->session);
  muster_readiness_service_session_gone (self->server->readiness, lost);
}

/* --- Reset and ListDevices --- */

/* A Reset in progress. */
typedef struct {
  MusterServer *server; /* (not owned) */
  guint64 n_claims;
  char **containers;   /* (owned) */
  GPtrArray *sessions; /* (owned) (element-type MusterServed) the sessions before the reset */
} Resetting;

static void
end_sessions (Resetting *self, gboolean is_done)
{
  for (guint i = 0; i < self->sessions->len; i++) {
    MusterServed *served = self->sessions->pdata[i];
    if (is_done)
      muster_remote_session_forget (served->session);
    muster_readiness_service_session_gone (self->server->readiness, served);
  }
}

static void
on_reset (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data)
{
  Resetting *self = data;
  gboolean is_done = muster_rpc_proxied_error (passed) == NULL;
  muster_server_audit (call, "Reset", NULL, muster_rpc_proxied_error (passed));
  if (is_done)
    muster_announce_service_reset (self->server->announcing, self->n_claims,
                                   (const char *const *)self->containers, self->sessions->len);
  else
    muster_sessions_unsay_reset (self->server->sessions, self->sessions);
  end_sessions (self, is_done);
  g_ptr_array_unref (self->sessions);
  g_strfreev (self->containers);
  g_free (self);
  muster_rpc_call_finish_proxied (call, passed);
}

/* Returns the master (transfer full), or NULL if it has ended the call with an error. *way
 * (transfer full) is the header for it. */
static MusterMaster *
find_remote (MusterServer *server, MusterRpcCall *call, char **way)
{
  g_autoptr (GError) error = NULL;
  MusterMaster *remote = NULL;
  *way = muster_gateway_way (server->gateway, call, &error);
  if (*way != NULL)
    remote = muster_master_remote (server->master, muster_rpc_call_deadline_us (call),
                                   muster_rpc_call_cancellable (call), &error);
  if (remote == NULL)
    muster_rpc_call_finish (call, error);
  return remote;
}

/* (transfer full) */
static char **
containers_of (const Tensorflow__ResetRequest *request)
{
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (gsize i = 0; i < request->n_container; i++)
    g_strv_builder_add (names, request->container[i]);
  return g_strv_builder_end (names);
}

/* Ends all sessions, whichever containers are named, as the master does. */
static void
reset (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const Tensorflow__ResetRequest *read =
      muster_server_unpack (call, request, &tensorflow__reset_request__descriptor, arena);
  if (read == NULL)
    return;
  if (!muster_announce_service_may_reset (server->announcing, call, &error)) {
    muster_server_audit (call, "Reset", NULL, error);
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autofree char *way = NULL;
  g_autoptr (MusterMaster) remote = find_remote (server, call, &way);
  if (remote == NULL)
    return;
  Resetting *resetting = g_new (Resetting, 1);
  *resetting = (Resetting){
      .server = server,
      .n_claims = muster_chief_registry_n_claims (server->registry),
      .containers = containers_of (read),
      .sessions = muster_sessions_take_all (server->sessions),
  };
  const MusterRpcHeader header = {MUSTER_GATEWAY_WAY, way};
  const MusterRpcProxyOptions options = {
      .method = MUSTER_MASTER_SERVICE ("Reset"),
      .outlives_caller = TRUE,
      .deadline_us = muster_rpc_call_deadline_us (call),
      .headers = &header,
      .n_headers = 1,
  };
  muster_rpc_call_proxy (call, muster_remote_master_client (MUSTER_REMOTE_MASTER (remote)),
                         message_of (request), &options, on_reset, resetting);
}

static void
on_listed (MusterRpcCall *call, MusterRpcProxied *passed, gpointer data G_GNUC_UNUSED)
{
  muster_rpc_call_finish_proxied (call, passed);
}

static void
list_devices (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autofree char *way = NULL;
  g_autoptr (MusterMaster) remote = find_remote (data, call, &way);
  const MusterRpcHeader header = {MUSTER_GATEWAY_WAY, way};
  const MusterRpcProxyOptions options = {
      .method = MUSTER_MASTER_SERVICE ("ListDevices"), .headers = &header, .n_headers = 1};
  if (remote != NULL)
    muster_rpc_call_proxy (call, muster_remote_master_client (MUSTER_REMOTE_MASTER (remote)),
                           message_of (request), &options, on_listed, NULL);
}

/* --- the gateway --- */

MusterGateway *
muster_gateway_new (MusterServer *server, const char *const *needed)
{
  MusterGateway *self = g_new0 (MusterGateway, 1);
  self->server = server;
  muster_gateway_begin_way (self);
  self->graphs = muster_gateway_graphs_new ();
  self->tasks = muster_gateway_tasks_new (server, needed);
  (void)muster_server_set_master_failure (server, "it hasn't answered yet");
  muster_health_service_set_cut_off (server->health, TRUE);
  return self;
}

void
muster_gateway_stop (MusterGateway *self)
{
  if (self == NULL)
    return;
  muster_gateway_tasks_stop (self->tasks);
  if (self->look != NULL)
    muster_background_task_stop (self->look);
}

void
muster_gateway_free (MusterGateway *self)
{
  if (self == NULL)
    return;
  muster_gateway_graphs_unref (self->graphs);
  muster_gateway_tasks_free (self->tasks);
  g_clear_pointer (&self->look, muster_background_task_free);
  g_free (self);
}

/* Handlers that may wait for the master to be reachable run in the handler pool. */
void
muster_gateway_enter (MusterGateway *self)
{
  MusterServer *server = self->server;
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("CreateSession"), create_session);
  muster_server_add_method (server, MUSTER_CREATE_KNOWN, create_known);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("CloseSession"), close_session);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("Reset"), reset);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("ListDevices"), list_devices);
  muster_rpc_server_require (server->rpc, MUSTER_MASTER_SERVICE ("ListDevices"), MUSTER_ROLE_READ);
  muster_gateway_enter_steps (self);
}
