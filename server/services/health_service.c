// SPDX-License-Identifier: Apache-2.0
/* gRPC's health service: Check, and Watch with a message at each change. The status is that of
 * the server or of a model, computed from the registry and the readiness of its ready op. */
#include "server/services/health_service.h"

#include "base/unpack_private.h"
#include "rpc/proto/health.pb-c.h"
#include "server/core/service.h"

#include <string.h>

typedef Grpc__Health__V1__HealthCheckRequest Request;
typedef Grpc__Health__V1__HealthCheckResponse Response;
typedef Grpc__Health__V1__HealthCheckResponse__ServingStatus Status;
#define SERVING         GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

struct _MusterHealthService {
  MusterReadinessHub *hub;       /* (not owned) */
  MusterChiefRegistry *registry; /* (not owned) */

  GMutex lock;
  gboolean drains;     /* guarded by lock */
  gboolean is_cut_off; /* guarded by lock */
  gboolean stopped;    /* guarded by lock */
  /* The open watches: MusterRpcCall -> Watch. A call holds its own reference until it is ended;
   * whoever removes it from the table ends it. Guarded by lock. */
  GHashTable *watchers;
};

/* A watch, with what is needed when its caller ends it; lives as long as the call's cancellable, so
 * as long as it is listed. */
typedef struct {
  MusterHealthService *service; /* (not owned) */
  MusterRpcCall *call;          /* (not owned) */
  char *name;                   /* (owned) */
  Status told;                  /* last status sent; guarded by the service's lock */
} Watch;

static void
free_watch (gpointer data)
{
  Watch *watch = data;
  g_free (watch->name);
  g_free (watch);
}

void
muster_health_service_free (MusterHealthService *self)
{
  if (self == NULL)
    return;
  muster_health_service_stop (self);
  g_hash_table_unref (self->watchers);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* The requested service's name, in arena. */
static const char *
read_service (GBytes *bytes, MusterArena *arena, GError **error)
{
  const Request *request = muster_unpack (&grpc__health__v1__health_check_request__descriptor,
                                          g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes),
                                          arena, "HealthCheckRequest", error);
  return request != NULL ? request->service : NULL;
}

static gboolean
is_serving (const MusterAnnouncement *chief)
{
  return chief->prepared && chief->is_ready && chief->phase != MUSTER_CHIEF_OVER &&
         !muster_chief_phase_is_preparing (chief->phase);
}

/* Call with the lock held. The registry releases its own lock before it reports a change. */
static Status
find_status (MusterHealthService *self, const char *name)
{
  const gboolean is_out = self->drains || self->stopped || self->is_cut_off;
  if (*name == '\0')
    return is_out ? NOT_SERVING : SERVING;
  g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (self->registry, name);
  if (chief == NULL)
    return SERVICE_UNKNOWN;
  if (is_out || muster_readiness_hub_waits_for_tasks (self->hub, name))
    return NOT_SERVING;
  return is_serving (chief) ? SERVING : NOT_SERVING;
}

static void
pack_status (MusterRope *rope, Status status)
{
  Response response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
  response.status = status;
  g_autoptr (GBytes) packed = muster_pack (&response.base);
  muster_rope_append (rope, packed);
}

static void
send_status (MusterRpcCall *call, Status status)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  pack_status (&rope, status);
  muster_rpc_call_send_state (call, &rope);
}

static void
finish_unknown (MusterRpcCall *call, const char *name)
{
  g_autoptr (GError) error = g_error_new (MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                                          "unknown service '%s': no chief has announced this "
                                          "model; use the empty name for the whole server",
                                          name);
  muster_rpc_call_finish (call, error);
}

static void
check (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterHealthService *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const char *name = read_service (request, arena, &error);
  if (name == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_mutex_lock (&self->lock);
  Status status = find_status (self, name);
  g_mutex_unlock (&self->lock);
  if (status == SERVICE_UNKNOWN) {
    finish_unknown (call, name);
    return;
  }
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  pack_status (&rope, status);
  muster_rpc_call_reply (call, &rope);
}

static void
finish_stopping (MusterRpcCall *call)
{
  g_autoptr (GError) error = muster_server_stopping_error ();
  muster_rpc_call_finish (call, error);
}

/* Called by the call's own cancellable, so the call is alive. */
static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Watch *gone = data;
  g_mutex_lock (&gone->service->lock);
  gboolean is_ours = g_hash_table_remove (gone->service->watchers, gone->call);
  g_mutex_unlock (&gone->service->lock);
  if (!is_ours)
    return;
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the caller cancelled the watch");
  muster_rpc_call_finish (gone->call, error);
}

/* Lists the watch and sends the current status atomically, so that no change is missed. Returns
 * FALSE once stopped: the watch isn't listed, and the caller ends it. */
static gboolean
list_watch (MusterHealthService *self, Watch *watch)
{
  g_mutex_lock (&self->lock);
  gboolean stopped = self->stopped;
  watch->told = find_status (self, watch->name);
  send_status (watch->call, watch->told);
  if (!stopped)
    g_hash_table_insert (self->watchers, watch->call, watch);
  g_mutex_unlock (&self->lock);
  return !stopped;
}

static void
watch (MusterRpcCall *call, GBytes *request, gpointer data)
{
  MusterHealthService *self = data;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  const char *name = read_service (request, arena, &error);
  if (name == NULL ||
      (*name != '\0' && !muster_chief_registry_check_name ("service's name", name, &error))) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autoptr (MusterRpcCall) held =
      muster_rpc_call_ref (call); /* once listed, other threads may end it */
  Watch *listed = g_new (Watch, 1);
  *listed = (Watch){self, call, g_strdup (name), SERVICE_UNKNOWN};
  if (!list_watch (self, listed)) {
    free_watch (listed);
    finish_stopping (call);
    return;
  }
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone), listed,
                         free_watch);
}

void
muster_health_service_note_change (MusterHealthService *self, const char *model)
{
  GHashTableIter iter;
  gpointer value;
  g_mutex_lock (&self->lock);
  Status status = find_status (self, model);
  g_hash_table_iter_init (&iter, self->watchers);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Watch *watch = value;
    if (watch->told == status || strcmp (watch->name, model) != 0)
      continue;
    watch->told = status;
    send_status (watch->call, status);
  }
  g_mutex_unlock (&self->lock);
}

/* The hub's callback. */
static void
on_model_changed (const char *model, gpointer data)
{
  muster_health_service_note_change (data, model);
}

MusterHealthService *
muster_health_service_new (MusterReadinessHub *hub, MusterChiefRegistry *registry)
{
  MusterHealthService *self = g_new0 (MusterHealthService, 1);
  self->hub = hub;
  self->registry = registry;
  g_mutex_init (&self->lock);
  self->watchers = g_hash_table_new (NULL, NULL);
  muster_readiness_hub_watch_models (hub, on_model_changed, self);
  return self;
}

void
muster_health_service_enter (MusterHealthService *self, MusterRpcServer *rpc)
{
  muster_rpc_server_add_open_method (rpc, "/grpc.health.v1.Health/Check", check, self);
  muster_rpc_server_add_open_method (rpc, "/grpc.health.v1.Health/Watch", watch, self);
}

guint
muster_health_service_n_watchers (MusterHealthService *self)
{
  g_mutex_lock (&self->lock);
  guint n = g_hash_table_size (self->watchers);
  g_mutex_unlock (&self->lock);
  return n;
}

/* Call with the lock held. */
static void
tell_all (MusterHealthService *self)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->watchers);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Watch *watch = value;
    const Status status = find_status (self, watch->name);
    if (watch->told == status)
      continue;
    watch->told = status;
    send_status (watch->call, status);
  }
}

void
muster_health_service_set_cut_off (MusterHealthService *self, gboolean is_cut_off)
{
  g_mutex_lock (&self->lock);
  self->is_cut_off = is_cut_off;
  tell_all (self);
  g_mutex_unlock (&self->lock);
}

void
muster_health_service_drain (MusterHealthService *self)
{
  g_mutex_lock (&self->lock);
  self->drains = TRUE;
  tell_all (self);
  g_mutex_unlock (&self->lock);
}

void
muster_health_service_stop (MusterHealthService *self)
{
  GHashTable *none = g_hash_table_new (NULL, NULL);
  g_mutex_lock (&self->lock);
  self->stopped = TRUE;
  g_autoptr (GHashTable) ending = self->watchers;
  self->watchers = none;
  g_mutex_unlock (&self->lock);

  GHashTableIter iter;
  gpointer call, value;
  g_hash_table_iter_init (&iter, ending);
  while (g_hash_table_iter_next (&iter, &call, &value)) {
    const Watch *watch = value;
    if (watch->told == SERVING)
      send_status (call, NOT_SERVING);
    finish_stopping (call);
  }
}
