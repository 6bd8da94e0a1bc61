// SPDX-License-Identifier: Apache-2.0
/* A master behind gRPC: creates sessions, lists devices, resets. A large graph is named by its
 * SHA-256 first and sent only if the master doesn't have it. */
#include "master/remote/remote_master.h"

#include "base/protowire_private.h"
#include "base/require_private.h"
#include "graph/graph_devices_private.h"
#include "graph/graph_nodes_private.h"
#include "master/remote/remote_call_private.h"
#include "master/remote/remote_master_private.h"
#include "master/remote/remote_private.h"
#include "master/remote/shared_probe_private.h"
#include "rpc/address_private.h"
#include "rpc/digest_private.h"
#include "rpc/proto/master.pb-c.h"

#define SCHEME         "grpc://"
#define SECURED_SCHEME "grpcs://"

/* Sending a smaller graph costs no more than asking for it. */
#define LEAST_NAMED_BYTES (64 << 10)

struct _MusterRemoteMaster {
  GObject parent;
  char *target;                    /* (owned) "grpc://HOST:PORT", "unix:/PATH" */
  MusterRpcClient *client;         /* (owned) */
  MusterHeartbeat *heartbeat;      /* (owned) */
  MusterRemoteMaster *coordinator; /* (owned) (nullable) */
  GBytes *placing; /* (owned) (nullable) the ConfigProto of sessions that have none */

  char *outside, *shared_device; /* (owned) (nullable) of a task outside the cluster */
  gint is_shared;                /* atomic: its sessions share what is there */

  gint knows_no_graphs; /* atomic: the master lacks CreateKnown, or can't be asked */
  GMutex lock;
  MusterGraph *named; /* (owned) (nullable) guarded by lock: the graph of digest */
  MusterDigest digest;
};

static void muster_remote_master_iface_init (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterRemoteMaster, muster_remote_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER,
                                                      muster_remote_master_iface_init))

static const char *
check_address (const char *target, const char *address, GError **error)
{
  g_autofree char *host = NULL;
  guint16 port;
  if (muster_address_unix_path (address) != NULL)
    return muster_address_check (address, error) ? address : NULL;
  if (!muster_address_parse (address, &host, &port, error))
    return NULL;
  if (port != 0)
    return address;
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "'%s' has port 0; a master's port is from 1 to 65535", target);
  return NULL;
}

/* The scheme decides whether TLS is used, and the credentials must agree. *to_use is set to the
 * credentials, (transfer full) (nullable). */
static gboolean
choose_credentials (const char *target, MusterRpcCredentials *given, gboolean is_secured,
                    MusterRpcCredentials **to_use, GError **error)
{
  gboolean has_tls = muster_rpc_credentials_has_tls (given);
  const char *address = strstr (target, "://") != NULL ? strstr (target, "://") + 3 : target;
  if (is_secured && given == NULL) {
    *to_use = muster_rpc_credentials_new (&(MusterRpcSecurity){.tls = TRUE}, error);
    return *to_use != NULL;
  }
  if (is_secured == has_tls) {
    *to_use = given != NULL ? muster_rpc_credentials_ref (given) : NULL;
    return TRUE;
  }
  if (has_tls && muster_address_unix_path (target) != NULL)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is a socket of this machine, without TLS: remove the TLS settings", target);
  else if (has_tls)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is plain text, but there are credentials for TLS: use 'grpcs://%s'", target,
                 address);
  else
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' needs TLS, which the credentials don't ask for: make them with tls set",
                 target);
  return FALSE;
}

MusterMaster *
muster_remote_master_new (const char *target, GError **error)
{
  muster_require (error, NULL, target);
  return muster_remote_master_new_secured (target, NULL, error);
}

MusterMaster *
muster_remote_master_new_secured (const char *target, MusterRpcCredentials *credentials,
                                  GError **error)
{
  muster_require (error, NULL, target);
  gboolean is_secured = g_str_has_prefix (target, SECURED_SCHEME);
  const char *scheme = is_secured ? SECURED_SCHEME : SCHEME;
  const char *rest = g_str_has_prefix (target, scheme) ? target + strlen (scheme) : target;
  const char *address = check_address (target, rest, error);
  g_autoptr (MusterRpcCredentials) to_use = NULL;
  if (address == NULL || !choose_credentials (target, credentials, is_secured, &to_use, error))
    return NULL;
  MusterRemoteMaster *self = g_object_new (MUSTER_TYPE_REMOTE_MASTER, NULL);
  self->target = muster_address_unix_path (address) != NULL ? g_strdup (address)
                                                            : g_strconcat (scheme, address, NULL);
  self->client = muster_rpc_client_new (address, to_use);
  self->heartbeat = muster_heartbeat_new (self->client, NULL);
  return MUSTER_MASTER (self);
}

void
muster_remote_master_set_pace (MusterRemoteMaster *self, const MusterHeartbeatPace *pace)
{
  muster_heartbeat_unref (self->heartbeat);
  self->heartbeat = muster_heartbeat_new (self->client, pace);
}

void
muster_remote_master_set_one_task (MusterRemoteMaster *self)
{
  static const guint8 soft_placement[] = {7 << 3, 1}; /* allow_soft_placement: true */
  self->placing = g_bytes_new_static (soft_placement, sizeof soft_placement);
}

MusterGraph *
muster_remote_master_place (MusterRemoteMaster *self, MusterGraph *graph, GBytes **config,
                            GError **error)
{
  if (self->placing == NULL || *config != NULL)
    return muster_graph_ref (graph);
  *config = self->placing;
  return muster_graph_of_any_task (graph, error);
}

void
muster_remote_master_set_outside (MusterRemoteMaster *self, const char *address, const char *device)
{
  g_free (self->outside);
  g_free (self->shared_device);
  self->outside = g_strdup (address);
  self->shared_device = g_strdup (device);
  g_atomic_int_set (&self->is_shared, FALSE);
}

void
muster_remote_master_copy_outside (MusterRemoteMaster *self, MusterRemoteMaster *other)
{
  muster_remote_master_set_outside (self, other->outside, other->shared_device);
}

const char *
muster_remote_master_outside (MusterRemoteMaster *self)
{
  return self->outside;
}

static void
put_field (MusterRope *out, guint32 number, GBytes *bytes)
{
  if (bytes == NULL || g_bytes_get_size (bytes) == 0)
    return;
  muster_proto_put_head (muster_rope_tail (out), number, g_bytes_get_size (bytes));
  muster_rope_append (out, bytes);
}

/* Sends the graph as its bytes, without protobuf-c, because it may be large. */
static void
put_graph (MusterRope *out, MusterGraph *graph)
{
  g_auto (MusterRope) bytes = MUSTER_ROPE_INIT;
  muster_graph_put (graph, &bytes);
  if (muster_rope_size (&bytes) > 0)
    muster_proto_put_head (muster_rope_tail (out), 1, muster_rope_size (&bytes));
  muster_graph_put (graph, out);
}

/* Keeps the digest of the last graph: a client usually has one. */
static MusterDigest
digest_of (MusterRemoteMaster *self, MusterGraph *graph, MusterRope *bytes)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (self->named != graph) {
    self->digest = muster_digest_of (bytes);
    g_clear_pointer (&self->named, muster_graph_unref);
    self->named = muster_graph_ref (graph);
  }
  return self->digest;
}

/* What creates a session. */
typedef struct {
  MusterRemoteMaster *master;
  MusterGraph *graph;
  GBytes *config; /* (nullable) */
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Creation;

static MusterSession *
call_create (const Creation *self, const char *method, MusterRope *request, GError **error)
{
  MusterRemoteMaster *master = self->master;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MusterRpcHeader lease = {MUSTER_SESSION_LEASE_HEADER, MUSTER_SESSION_LEASE_SECONDS};
  MusterRpcOptions options = {.deadline_us = self->deadline_us, .headers = &lease, .n_headers = 1};
  Tensorflow__CreateSessionResponse *response = muster_remote_call (
      master->client, method, request, &tensorflow__create_session_response__descriptor, arena,
      &options, self->cancellable, error);
  if (response == NULL)
    return NULL;
  MusterSession *session =
      muster_remote_session_new (master->client, master->heartbeat, response->session_handle,
                                 response->graph_version, self->graph);
  g_autoptr (GStrvBuilder) lacks = g_strv_builder_new ();
  for (gsize i = 0; i < response->n_muster_lacks; i++)
    g_strv_builder_add (lacks, response->muster_lacks[i]);
  g_auto (GStrv) all = g_strv_builder_end (lacks);
  muster_session_set_lacks (session, (const char *const *)all);
  if (master->coordinator != NULL)
    muster_remote_session_set_coordinator (MUSTER_REMOTE_SESSION (session),
                                           master->coordinator->client);
  return session;
}

/* Creates a session of a graph that the master may have, without sending it. NULL without an
 * error: the graph must be sent. */
static MusterSession *
create_known (const Creation *self, GError **error)
{
  g_auto (MusterRope) bytes = MUSTER_ROPE_INIT, request = MUSTER_ROPE_INIT;
  Muster__CreateKnownRequest message = MUSTER__CREATE_KNOWN_REQUEST__INIT;
  GError *failure = NULL;
  if (self->graph == NULL || g_atomic_int_get (&self->master->knows_no_graphs))
    return NULL;
  muster_graph_put (self->graph, &bytes);
  if (muster_rope_size (&bytes) < LEAST_NAMED_BYTES)
    return NULL;
  MusterDigest digest = digest_of (self->master, self->graph, &bytes);
  message.graph_sha256 = (ProtobufCBinaryData){MUSTER_DIGEST_BYTES, digest.bytes};
  message.graph_bytes = muster_rope_size (&bytes);
  if (self->config != NULL)
    message.config = (ProtobufCBinaryData){g_bytes_get_size (self->config),
                                           (guint8 *)g_bytes_get_data (self->config, NULL)};
  muster_remote_pack (&request, &message.base);
  MusterSession *session = call_create (self, "/muster.Readiness/CreateKnown", &request, &failure);
  /* A proxy may pass only TensorFlow's services. */
  if (muster_error_is (failure, MUSTER_ERROR_UNIMPLEMENTED) ||
      muster_error_is (failure, MUSTER_ERROR_PERMISSION_DENIED))
    g_atomic_int_set (&self->master->knows_no_graphs, TRUE);
  else if (failure != NULL && !muster_error_is (failure, MUSTER_ERROR_NOT_FOUND))
    g_propagate_error (error, g_steal_pointer (&failure));
  g_clear_error (&failure);
  return session;
}

static MusterSession *
create_session (MusterMaster *master, MusterGraph *graph, GBytes *config, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  const Creation creation = {MUSTER_REMOTE_MASTER (master), graph, config, deadline_us,
                             cancellable};
  GError *failure = NULL;
  MusterSession *session = create_known (&creation, &failure);
  if (failure != NULL)
    g_propagate_error (error, failure);
  if (session != NULL || failure != NULL)
    return session;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (MusterGraph) placed =
      muster_remote_master_place (creation.master, graph, &config, error);
  if (placed == NULL)
    return NULL;
  put_graph (&request, placed);
  put_field (&request, 2, config);
  muster_proto_put_string (muster_rope_tail (&request), 3, creation.master->outside);
  session = call_create (&creation, MUSTER_MASTER_METHOD ("CreateSession"), &request, error);
  if (session != NULL && placed != graph)
    muster_remote_session_set_one_task (MUSTER_REMOTE_SESSION (session));
  return session;
}

/* Tries once whether the sessions share variables. */
static gboolean
check_shared (MusterRemoteMaster *self, GBytes *config, gint64 deadline_us,
              GCancellable *cancellable, GError **error)
{
  if (self->outside == NULL || config == NULL || g_atomic_int_exchange (&self->is_shared, TRUE))
    return TRUE;
  const gboolean is_shared =
      muster_remote_probe_shared (MUSTER_MASTER (self), self->outside, self->shared_device, config,
                                  deadline_us, cancellable, error);
  g_atomic_int_set (&self->is_shared, is_shared);
  return is_shared;
}

/* A master that can't be reached is UNAVAILABLE at once; the caller decides about retries and
 * reports it. */
static MusterSession *
remote_create_session (MusterMaster *master, MusterGraph *graph, GBytes *config, gint64 deadline_us,
                       GCancellable *cancellable, GError **error)
{
  return check_shared (MUSTER_REMOTE_MASTER (master), config, deadline_us, cancellable, error)
             ? create_session (master, graph, config, deadline_us, cancellable, error)
             : NULL;
}

static void
add_devices (GPtrArray *devices, Tensorflow__DeviceAttributes **from, gsize n)
{
  for (gsize i = 0; i < n; i++) {
    MusterDevice *device = g_new0 (MusterDevice, 1);
    device->name = g_strdup (from[i]->name);
    device->type = g_strdup (from[i]->device_type);
    device->memory_limit = from[i]->memory_limit;
    device->incarnation = from[i]->incarnation;
    g_ptr_array_add (devices, device);
  }
}

static GPtrArray *
remote_list_devices (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable,
                     GError **error)
{
  MusterRemoteMaster *self = MUSTER_REMOTE_MASTER (master);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MusterRpcOptions options = {.deadline_us = deadline_us};
  Tensorflow__ListDevicesResponse *response = muster_remote_call (
      self->client, MUSTER_MASTER_METHOD ("ListDevices"), &request,
      &tensorflow__list_devices_response__descriptor, arena, &options, cancellable, error);
  if (response == NULL)
    return NULL;
  GPtrArray *devices = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_device_free);
  add_devices (devices, response->local_device, response->n_local_device);
  add_devices (devices, response->remote_device, response->n_remote_device);
  return devices;
}

static gboolean
remote_reset (MusterMaster *master, const char *const *containers, gint64 deadline_us,
              GCancellable *cancellable, GError **error)
{
  MusterRemoteMaster *self = MUSTER_REMOTE_MASTER (master);
  Tensorflow__ResetRequest message = TENSORFLOW__RESET_REQUEST__INIT;
  message.container = (char **)containers;
  message.n_container = containers != NULL ? g_strv_length ((char **)containers) : 0;
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_remote_pack (&request, &message.base);
  g_autoptr (MusterArena) arena = muster_arena_new ();
  MusterRpcOptions options = {.deadline_us = deadline_us};
  return muster_remote_call (self->client, MUSTER_MASTER_METHOD ("Reset"), &request,
                             &tensorflow__reset_response__descriptor, arena, &options, cancellable,
                             error) != NULL;
}

static MusterMaster *
remote_remote (MusterMaster *master, gint64 deadline_us G_GNUC_UNUSED,
               GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  return g_object_ref (master);
}

static MusterServerState
remote_reach (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable)
{
  return muster_rpc_client_reach (MUSTER_REMOTE_MASTER (master)->client, deadline_us, cancellable);
}

gboolean
muster_remote_master_await (MusterRemoteMaster *self, gint64 deadline_us, GCancellable *cancellable,
                            GError **error)
{
  muster_require (error, FALSE, self);
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  const MusterRpcOptions options = {.deadline_us = deadline_us, .wait_for_ready = TRUE};
  (void)muster_rpc_client_reach (self->client, deadline_us,
                                 cancellable); /* the call reports the error */
  g_autoptr (GBytes) response = muster_rpc_client_call (
      self->client, MUSTER_MASTER_METHOD ("ListDevices"), &request, &options, cancellable, error);
  return response != NULL;
}

static MusterMembership *
remote_join (MusterMaster *master, const MusterJoin *join, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  MusterRemoteMaster *self = MUSTER_REMOTE_MASTER (master);
  if (self->coordinator != NULL)
    self = self->coordinator;
  return muster_remote_join (self->client, self->target, join, deadline_us, cancellable, error);
}

static gboolean
remote_set_coordinator (MusterMaster *master, MusterMaster *coordinator, GError **error)
{
  MusterRemoteMaster *self = MUSTER_REMOTE_MASTER (master);
  if (!MUSTER_IS_REMOTE_MASTER (coordinator))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s' can't coordinate a job: use the address of a `muster serve`",
                        muster_master_target (coordinator));
  g_set_object (&self->coordinator, MUSTER_REMOTE_MASTER (coordinator));
  return TRUE;
}

MusterRpcClient *
muster_remote_master_client (MusterRemoteMaster *self)
{
  return self->client;
}

MusterSession *
muster_remote_master_adopt (MusterRemoteMaster *self, const char *handle, MusterGraph *graph)
{
  return muster_remote_session_new (self->client, self->heartbeat, handle, 0, graph);
}

static const char *
remote_target (MusterMaster *master)
{
  return MUSTER_REMOTE_MASTER (master)->target;
}

static void
muster_remote_master_iface_init (MusterMasterInterface *iface)
{
  iface->create_session = remote_create_session;
  iface->list_devices = remote_list_devices;
  iface->reset = remote_reset;
  iface->target = remote_target;
  iface->remote = remote_remote;
  iface->reach = remote_reach;
  iface->join = remote_join;
  iface->set_coordinator = remote_set_coordinator;
}

static void
muster_remote_master_finalize (GObject *object)
{
  MusterRemoteMaster *self = MUSTER_REMOTE_MASTER (object);
  g_free (self->target);
  g_free (self->outside);
  g_free (self->shared_device);
  g_clear_object (&self->coordinator);
  g_clear_pointer (&self->heartbeat, muster_heartbeat_unref);
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  g_clear_pointer (&self->named, muster_graph_unref);
  g_clear_pointer (&self->placing, g_bytes_unref);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_remote_master_parent_class)->finalize (object);
}

static void
muster_remote_master_class_init (MusterRemoteMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_remote_master_finalize;
}

static void
muster_remote_master_init (MusterRemoteMaster *self)
{
  g_mutex_init (&self->lock);
}
