// SPDX-License-Identifier: Apache-2.0
/* TensorFlow's MasterService except steps: CreateSession, ExtendSession, CloseSession, Reset,
 * ListDevices; and CreateKnown of muster's own service. Large requests are checked and read without
 * unpacking the graph. */
#include "server/services/master_service.h"

#include "rpc/proto/master.pb-c.h"
#include "rpc/proto/muster.pb-c.h"
#include "server/core/drain.h"
#include "server/core/nested_message_private.h"
#include "server/core/server_private.h"
#include "server/core/service.h"
#include "server/core/session_guard.h"
#include "server/services/announce_service.h"
#include "server/services/readiness_service.h"
#include "server/services/step_service.h"

/* The header of a client that renews its sessions, in CreateSession: whole seconds. */
#define LEASE_HEADER  "muster-lease"
#define LONGEST_LEASE 3600

enum {
  CREATE_SESSION_GRAPH = 1,
  CREATE_SESSION_CONFIG = 2,
  EXTEND_SESSION_GRAPH = 2,
};

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
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Distributed session does not support session thread pool options.");
  }
  *timeout_us = muster_server_from_milliseconds (read->operation_timeout_in_ms);
  return TRUE;
}

gboolean
muster_server_read_lease (MusterServer *server, MusterRpcCall *call, gint64 *lease_us,
                          GError **error)
{
  const char *text = muster_rpc_call_header (call, LEASE_HEADER);
  guint64 seconds = 0;
  *lease_us = server->idle_session_us;
  if (text == NULL)
    return TRUE;
  if (!g_ascii_string_to_unsigned (text, 10, 1, LONGEST_LEASE, &seconds, NULL)) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the header " LEASE_HEADER " '%s' is invalid (use 1 to %d seconds)", text,
                        LONGEST_LEASE);
  }
  *lease_us = (gint64)seconds * MUSTER_SECOND;
  return TRUE;
}

/* The fields of CreateSession that are used. */
typedef struct {
  MusterGraph *graph; /* (owned) (nullable) */
  gsize graph_bytes;
  GBytes *config; /* (owned) (nullable) */
  gint64 timeout_us;
  gint64 lease_us;
} Wanted;

static void
wanted_clear (Wanted *self)
{
  g_clear_pointer (&self->graph, muster_graph_unref);
  g_clear_pointer (&self->config, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Wanted, wanted_clear)

static gboolean
take_graph (Wanted *self, MusterServer *server, GBytes *graph, gsize held_bytes, GError **error)
{
  self->graph_bytes = g_bytes_get_size (graph);
  if (!muster_limits_allow (server->limits, MUSTER_LIMIT_GRAPH_BYTES, self->graph_bytes, error))
    return FALSE;
  g_autoptr (GBytes) shared = muster_known_graphs_share (server->known_graphs, graph, held_bytes);
  self->graph = muster_graph_new (shared);
  return TRUE;
}

static gboolean
read_wanted (Wanted *self, MusterServer *server, MusterRpcCall *call, GBytes *request,
             GError **error)
{
  /* Checked against the schema but not unpacked, because that would copy the graph. */
  if (!muster_unpack_check (&tensorflow__create_session_request__descriptor,
                            g_bytes_get_data (request, NULL), g_bytes_get_size (request),
                            "CreateSessionRequest", error))
    return FALSE;
  if (!muster_server_nested_message (request, CREATE_SESSION_CONFIG, &self->config, error) ||
      !read_config (self->config, &self->timeout_us, error) ||
      !muster_server_read_lease (server, call, &self->lease_us, error))
    return FALSE;
  g_autoptr (GBytes) graph_bytes =
      muster_server_nested_graph (request, CREATE_SESSION_GRAPH, error);
  return graph_bytes != NULL &&
         take_graph (self, server, graph_bytes, g_bytes_get_size (request), error);
}

GBytes *
muster_server_find_graph (MusterServer *server, const Muster__CreateKnownRequest *request,
                          GError **error)
{
  GBytes *graph = NULL;
  if (request->graph_sha256.len != MUSTER_DIGEST_BYTES) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "a graph is named by its SHA-256 of %d bytes, not of %" G_GSIZE_FORMAT,
                 MUSTER_DIGEST_BYTES, request->graph_sha256.len);
    return NULL;
  }
  graph = muster_known_graphs_find (server->known_graphs, request->graph_sha256.data,
                                    request->graph_bytes);
  if (graph == NULL)
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "This server doesn't have the graph; send it");
  return graph;
}

static gboolean
read_known (Wanted *self, MusterServer *server, MusterRpcCall *call,
            const Muster__CreateKnownRequest *request, GError **error)
{
  if (request->config.len > 0)
    self->config = g_bytes_new (request->config.data, request->config.len);
  if (!read_config (self->config, &self->timeout_us, error) ||
      !muster_server_read_lease (server, call, &self->lease_us, error))
    return FALSE;
  g_autoptr (GBytes) graph = muster_server_find_graph (server, request, error);
  return graph != NULL && take_graph (self, server, graph, 0, error);
}

static MusterServed *
make_session (MusterServer *server, MusterRpcCall *call, const Wanted *wanted, GError **error)
{
  if (!muster_server_admits (server, error) ||
      !muster_limits_take (server->limits, MUSTER_LIMIT_SESSIONS, error))
    return NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      server->master, wanted->graph, wanted->config, muster_rpc_call_deadline_us (call),
      muster_rpc_call_cancellable (call), error);
  if (session == NULL) {
    muster_limits_release (server->limits, MUSTER_LIMIT_SESSIONS);
    return NULL;
  }
  MusterServed *served = muster_sessions_add (server->sessions, session, wanted->graph_bytes,
                                              wanted->timeout_us, wanted->lease_us);
  if (wanted->lease_us > 0)
    muster_session_reaper_watch (server->reaper, wanted->lease_us);
  return served;
}

/* Takes served (nullable). */
static void
reply_created (MusterRpcCall *call, MusterServed *created, const GError *error)
{
  g_autoptr (MusterServed) served = created;
  if (served == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__CreateSessionResponse response = TENSORFLOW__CREATE_SESSION_RESPONSE__INIT;
  const char *const *lacks = muster_session_lacks (served->session);
  response.session_handle = served->handle;
  response.n_muster_lacks = lacks != NULL ? g_strv_length ((char **)lacks) : 0;
  response.muster_lacks = (char **)lacks;
  muster_server_reply (call, &response.base);
}

static void
create_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (GError) error = NULL;
  g_auto (Wanted) wanted = {0};
  MusterServed *served = read_wanted (&wanted, server, call, request, &error)
                             ? make_session (server, call, &wanted, &error)
                             : NULL;
  reply_created (call, served, error);
}

static void
create_known (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  g_auto (Wanted) wanted = {0};
  const Muster__CreateKnownRequest *read =
      muster_server_unpack (call, request, &muster__create_known_request__descriptor, arena);
  if (read == NULL)
    return;
  MusterServed *served = read_known (&wanted, server, call, read, &error)
                             ? make_session (server, call, &wanted, &error)
                             : NULL;
  reply_created (call, served, error);
}

/* Returns the new version, or -1. */
static gint64
extend (const MusterSessionGuard *guard, MusterRpcCall *call, GBytes *request, gint64 expected,
        GError **error)
{
  MusterServed *served = guard->served;
  g_autoptr (GBytes) nodes = muster_server_nested_graph (request, EXTEND_SESSION_GRAPH, error);
  if (nodes == NULL)
    return -1;
  g_autoptr (MusterGraph) extra = muster_graph_new (nodes);
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&served->extending);
  if (served->graph_version != expected) {
    muster_fail (error, MUSTER_ERROR_ABORTED,
                 "Current version is %" G_GINT64_FORMAT " but caller expected %" G_GINT64_FORMAT
                 ".",
                 served->graph_version, expected);
    return -1;
  }
  guint64 n_bytes = served->graph_bytes + g_bytes_get_size (nodes);
  if (!muster_limits_allow (guard->server->limits, MUSTER_LIMIT_GRAPH_BYTES, n_bytes, error) ||
      !muster_session_extend (served->session, extra, muster_rpc_call_deadline_us (call),
                              muster_rpc_call_cancellable (call), error))
    return -1;
  served->graph_bytes = n_bytes;
  return ++served->graph_version;
}

static void
extend_session (MusterRpcCall *call, GBytes *request, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ExtendSessionRequest *read =
      muster_server_unpack (call, request, &tensorflow__extend_session_request__descriptor, arena);
  if (read == NULL)
    return;
  g_auto (MusterSessionGuard) guard = muster_session_guard_enter (data, call, read->session_handle);
  if (guard.served == NULL)
    return;
  g_autoptr (GError) error = NULL;
  gint64 version = extend (&guard, call, request, read->current_graph_version, &error);
  muster_session_guard_end (&guard);
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
      muster_server_unpack (call, request, &tensorflow__close_session_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (MusterServed) served =
      muster_sessions_take (server->sessions, read->session_handle, &error);
  if (served != NULL)
    muster_readiness_service_session_gone (server->readiness, served);
  /* The session is closed even if the caller goes away. */
  if (served == NULL || !muster_session_guard_settle (call, served, &error) ||
      !muster_session_close (served->session, muster_rpc_call_deadline_us (call), NULL, &error)) {
    muster_rpc_call_finish (call, error);
    return;
  }
  Tensorflow__CloseSessionResponse response = TENSORFLOW__CLOSE_SESSION_RESPONSE__INIT;
  muster_server_reply (call, &response.base);
  muster_sessions_trim (server->sessions);
}

/* Ends all sessions, whichever containers are named, as TensorFlow's server does. */
static void
reset (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterServer *server = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Tensorflow__ResetRequest *read =
      muster_server_unpack (call, request, &tensorflow__reset_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GPtrArray) containers = g_ptr_array_new ();
  for (gsize i = 0; i < read->n_container; i++)
    g_ptr_array_add (containers, read->container[i]);
  g_ptr_array_add (containers, NULL);

  g_autoptr (GError) error = NULL;
  if (!muster_announce_service_may_reset (server->announcing, call, &error)) {
    muster_server_audit (call, "Reset", NULL, error);
    muster_rpc_call_finish (call, error);
    return;
  }
  guint64 n_claims = muster_chief_registry_n_claims (server->registry);
  g_autoptr (GPtrArray) all = muster_sessions_take_all (server->sessions);
  gboolean done = muster_master_reset (server->master, (const char *const *)containers->pdata,
                                       muster_rpc_call_deadline_us (call), NULL, &error);
  if (done)
    muster_announce_service_reset (server->announcing, n_claims,
                                   (const char *const *)containers->pdata, all->len);
  else
    muster_sessions_unsay_reset (server->sessions, all);
  muster_server_audit (call, "Reset", NULL, error);
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
    attributes[i].xla_global_id = -1; /* not an XLA device */
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
      muster_server_unpack (call, request, &tensorflow__list_devices_request__descriptor, arena);
  if (read == NULL)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterServed) served = NULL;
  if (*read->session_handle != '\0') {
    served = muster_sessions_find (server->sessions, read->session_handle, &error);
    if (served == NULL)
      error->code =
          MUSTER_ERROR_INVALID_ARGUMENT; /* TensorFlow's server uses this code only here */
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

void
muster_master_service_enter (MusterServer *server)
{
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("CreateSession"), create_session);
  muster_server_add_method (server, MUSTER_CREATE_KNOWN, create_known);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("ExtendSession"), extend_session);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("CloseSession"), close_session);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("ListDevices"), list_devices);
  muster_rpc_server_require (server->rpc, MUSTER_MASTER_SERVICE ("ListDevices"), MUSTER_ROLE_READ);
  muster_server_add_method (server, MUSTER_MASTER_SERVICE ("Reset"), reset);
  muster_step_service_enter (server);
}
