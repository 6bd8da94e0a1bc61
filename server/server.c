// SPDX-License-Identifier: Apache-2.0
/* A server: it creates its parts, registers the services, listens, drains and stops. Stopping
 * has an order, in muster_server_stop (). */
#include "server/server.h"

#include "base/log_private.h"
#include "rpc/address_private.h"
#include "rpc/fork_private.h"
#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/gateway/gateway.h"
#include "server/http/http_service.h"
#include "server/services/announce_service.h"
#include "server/services/files_service.h"
#include "server/services/health_service.h"
#include "server/services/master_service.h"
#include "server/services/member_service.h"
#include "server/services/readiness_service.h"
#include "server/services/status_service.h"
#include "server/services/status_watch.h"

/* The time limit for closing all sessions of one collection. A master that doesn't answer must
 * collect its sessions itself. */
#define CLOSE_EXPIRED (5 * MUSTER_SECOND)

/* Calls besides steps and watches: sessions, claims, leases, status, health. */
#define SPARE_STREAMS 4096
/* Calls whose request hasn't arrived, besides the steps. */
#define SPARE_BARE 1024

#define DEFAULT_CHIEF_LEASE_US (15 * MUSTER_SECOND)

/* Half of the RPC server's threads; the others accept calls. */
static guint
n_blocking_threads (void)
{
  return CLAMP (g_get_num_processors (), 2, 16);
}

/* The collector's function: closes expired sessions. */
static void
on_expired (GPtrArray *expired, gpointer data)
{
  MusterServer *self = data;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  gint64 deadline_us = muster_deadline_after (now_us, CLOSE_EXPIRED);
  for (guint i = 0; i < expired->len; i++) {
    MusterServed *served = expired->pdata[i];
    muster_log (G_LOG_LEVEL_INFO, "session-reaped", "MUSTER_SESSION", served->handle,
                "MUSTER_SECONDS", MUSTER_LOG_SECONDS (served->lease_us), "MESSAGE",
                "closed a session whose client is gone");
    muster_readiness_service_session_gone (self->readiness, served);
    (void)muster_session_close (served->session, deadline_us, NULL,
                                NULL); /* nobody to report an error to */
  }
}

static guint
max_threads (MusterServer *self)
{
  return (guint)MIN (muster_limits_max (self->limits, MUSTER_LIMIT_STEPS), G_MAXINT / 2);
}

/* A connection may have as many calls as the limits allow. A gateway has only one connection, so
 * with fewer its steps could wait until its watches end. */
static guint
max_streams (MusterLimits *limits)
{
  return (guint)MIN (muster_limits_max (limits, MUSTER_LIMIT_STEPS) +
                         muster_limits_max (limits, MUSTER_LIMIT_WATCHERS) + SPARE_STREAMS,
                     G_MAXINT);
}

static gboolean
admit_request (gsize n_bytes, gpointer limits, GError **error)
{
  return muster_limits_allow (limits, MUSTER_LIMIT_REQUEST_BYTES, n_bytes, error);
}

static gboolean
is_shared (gpointer limits)
{
  MusterLimitUse sessions;
  muster_limits_read (limits, MUSTER_LIMIT_SESSIONS, &sessions);
  return sessions.used > 1;
}

static MusterRpcServer *
new_rpc_server (MusterLimits *limits)
{
  const MusterRpcServerLimits of_rpc = {
      .admit = admit_request,
      .is_shared = is_shared,
      .data = limits,
      .streams = max_streams (limits),
      .bare = (guint)MIN (muster_limits_max (limits, MUSTER_LIMIT_STEPS) + SPARE_BARE, G_MAXINT),
  };
  return muster_rpc_server_new_with_limits (&of_rpc);
}

static void
measure_streams (MusterLimitUse *usage, gpointer data)
{
  const MusterServer *self = data;
  usage->used = muster_rpc_server_n_calls (self->rpc);
  usage->max = max_streams (self->limits);
  usage->refused = muster_rpc_server_n_ended (self->rpc);
}

MusterServer *
muster_server_new (MusterMaster *master, const MusterServerOptions *options)
{
  const MusterServerOptions usual = {0};
  const MusterServerOptions *wanted = options != NULL ? options : &usual;
  MusterServer *self = g_new0 (MusterServer, 1);
  self->master = g_object_ref (master);
  self->clock = g_object_ref (wanted->clock != NULL ? wanted->clock : muster_system_clock ());
  self->started_us = muster_clock_now_us (self->clock);
  g_mutex_init (&self->master_lock);
  self->credentials =
      wanted->credentials != NULL ? muster_rpc_credentials_ref (wanted->credentials) : NULL;
  self->is_insecure = wanted->insecure;
  self->idle_session_us = wanted->idle_session_us;
  self->http_hosts = g_strdupv ((char **)wanted->http_hosts);
  self->expected = g_strdupv ((char **)wanted->expected);
  self->is_of_cluster = wanted->needed != NULL;
  self->limits = muster_limits_new (&wanted->limits);
  self->sessions = muster_sessions_new (self->clock, self->limits);
  self->request_ids = muster_request_ids_new ();
  self->known_graphs = muster_known_graphs_new ();
  self->reaper = muster_session_reaper_new (self->sessions, self->clock, on_expired, self);
  self->steps = muster_step_meter_new ();
  self->handler_pool = muster_handler_pool_new (n_blocking_threads (), max_threads (self));
  self->rpc = new_rpc_server (self->limits);
  muster_limits_measure (self->limits, MUSTER_LIMIT_STREAMS, measure_streams, self);
  muster_rpc_server_allow_users (self->rpc, wanted->users, wanted->n_users);
  self->methods = g_ptr_array_new_with_free_func (g_free);
  self->files = muster_held_files_new (wanted->file_bytes);
  gint64 lease_us = wanted->chief_lease_us > 0 ? wanted->chief_lease_us : DEFAULT_CHIEF_LEASE_US;
  self->registry = muster_chief_registry_new (self->clock, lease_us);
  self->hub = muster_readiness_hub_new (master, self->registry, self->clock);
  self->health = muster_health_service_new (self->hub, self->registry);
  self->readiness = muster_readiness_service_new (self);
  self->announcing = muster_announce_service_new (self);
  self->membership = muster_member_service_new (self);
  if (muster_master_is_remote (master)) {
    self->gateway = muster_gateway_new (self, wanted->needed);
    muster_gateway_enter (self->gateway);
  } else {
    muster_master_service_enter (self);
  }
  muster_readiness_service_enter (self->readiness);
  muster_announce_service_enter (self->announcing);
  muster_member_service_enter (self->membership);
  muster_status_service_enter (self);
  muster_files_service_enter (self);
  muster_health_service_enter (self->health, self->rpc);
  return self;
}

void
muster_server_free (MusterServer *self)
{
  if (self == NULL || muster_rpc_is_forked ()) /* in a child process its threads are the parent's */
    return;
  muster_server_stop (self, 0);
  muster_http_service_free (self->http);
  muster_handler_pool_free (self->handler_pool);
  muster_rpc_server_free (self->rpc);
  muster_rpc_server_free (self->health_rpc);
  muster_announce_service_free (self->announcing);
  muster_readiness_service_stop (self->readiness);
  muster_readiness_hub_free (self->hub); /* joins its thread, which calls the service */
  muster_readiness_service_free (self->readiness);
  muster_member_service_free (self->membership);
  muster_status_watch_free (self->status_watch);
  muster_health_service_free (self->health);
  g_ptr_array_unref (self->methods);
  muster_held_files_free (self->files);
  muster_chief_registry_free (self->registry);
  muster_session_reaper_free (self->reaper);
  muster_sessions_free (self->sessions);
  muster_request_ids_free (self->request_ids);
  muster_known_graphs_free (self->known_graphs);
  muster_limits_free (self->limits);
  muster_step_meter_free (self->steps);
  muster_gateway_free (self->gateway);
  g_mutex_clear (&self->master_lock);
  g_free (self->master_failure);
  muster_rpc_credentials_unref (self->credentials);
  g_strfreev (self->http_hosts);
  g_strfreev (self->expected);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_free (self);
}

/* Other addresses than loopback can be reached by untrusted clients. */
gboolean
muster_server_may_listen (const MusterServerOptions *options, const char *address, GError **error)
{
  if (!muster_address_check (address, error))
    return FALSE;
  if (options->insecure || muster_rpc_credentials_has_tls (options->credentials) ||
      muster_address_is_loopback (address))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                      "'%s' is reachable from other machines: use --tls-cert and --tls-key, listen "
                      "on localhost, or use --insecure to accept any client",
                      address);
}

int
muster_server_listen (MusterServer *self, const char *address, GError **error)
{
  const MusterServerOptions own = {.insecure = self->is_insecure, .credentials = self->credentials};
  if (!muster_server_may_listen (&own, address, error))
    return 0;
  return muster_rpc_server_listen (self->rpc, address, self->credentials, error);
}

int
muster_server_listen_health (MusterServer *self, const char *address, GError **error)
{
  if (self->health_rpc == NULL) {
    self->health_rpc = muster_rpc_server_new ();
    muster_health_service_enter (self->health, self->health_rpc);
  }
  return muster_rpc_server_listen (self->health_rpc, address, NULL, error);
}

int
muster_server_listen_http (MusterServer *self, const char *address, GError **error)
{
  const MusterServerOptions own = {.insecure = self->is_insecure, .credentials = self->credentials};
  if (!muster_server_may_listen (&own, address, error))
    return 0;
  if (self->http == NULL)
    self->http = muster_http_service_new (self, (const char *const *)self->http_hosts);
  return muster_http_service_listen (self->http, address, error);
}

void
muster_server_start (MusterServer *self)
{
  self->is_started = TRUE;
  if (self->http != NULL)
    muster_http_service_start (self->http);
  muster_rpc_server_start (self->rpc);
  if (self->health_rpc != NULL)
    muster_rpc_server_start (self->health_rpc);
  muster_gateway_start (self->gateway);
}

void
muster_server_drain (MusterServer *self, gint64 within_us)
{
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  if (!muster_server_begin_drain (self, muster_deadline_after (now_us, within_us)))
    return;
  muster_health_service_drain (self->health);
  muster_announce_service_drain (self->announcing);
  muster_status_watch_note (self->status_watch);
}

gboolean
muster_server_is_drained (MusterServer *self, char **awaited)
{
  g_autoptr (GPtrArray) chiefs = muster_chief_registry_list (self->registry);
  for (guint i = 0; i < chiefs->len; i++) {
    const MusterAnnouncement *chief = chiefs->pdata[i];
    if (!chief->alive || chief->drain != MUSTER_DRAIN_OFFERED ||
        chief->phase == MUSTER_CHIEF_OVER || chief->failed ||
        muster_chief_registry_is_elsewhere (self->registry, chief->model))
      continue; /* it makes no further save, or loses nothing by the stop */
    g_autofree char *owner = muster_announcement_owner (chief);
    if (awaited != NULL)
      *awaited = g_strdup_printf ("'%s', %s,", chief->model, owner);
    return FALSE;
  }
  return TRUE;
}

static void
log_stop (MusterServer *self, gint64 grace_us)
{
  MusterLimitUse steps;
  const guint n_sessions = muster_sessions_size (self->sessions);
  muster_limits_read (self->limits, MUSTER_LIMIT_STEPS, &steps);
  muster_log (G_LOG_LEVEL_INFO, "stop", "MUSTER_SESSIONS", MUSTER_LOG_INT (n_sessions),
              "MUSTER_STEPS", MUSTER_LOG_INT (steps.used), "MUSTER_SECONDS",
              MUSTER_LOG_SECONDS (grace_us), "MESSAGE",
              "stopping: %u session%s, %" G_GUINT64_FORMAT " step%s in progress", n_sessions,
              n_sessions == 1 ? "" : "s", steps.used, steps.used == 1 ? "" : "s");
}

static void
log_stopped (MusterServer *self, gint64 began_us)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  const gint64 up_us = muster_clock_now_us (self->clock) - self->started_us;
  g_autofree char *took = muster_format_duration (now_us - began_us);
  g_autofree char *up = muster_format_duration (up_us);
  muster_log (G_LOG_LEVEL_INFO, "stopped", "MUSTER_SECONDS",
              MUSTER_LOG_SECONDS ((now_us - began_us)), "MESSAGE",
              "stopped after %s; it was up for %s", took, up);
}

/* Ends watches first, because they would outlast any grace. The health port and HTTP end last,
 * because they report the server's state. */
void
muster_server_stop (MusterServer *self, gint64 grace_us)
{
  MusterClock *clock = muster_system_clock (); /* gRPC doesn't use the fake clock */
  const gint64 began_us = muster_clock_now_us (clock);
  gint64 until_us = muster_deadline_after (began_us, grace_us);
  const gboolean is_first =
      g_atomic_int_compare_and_exchange (&self->is_stopping, FALSE, TRUE) && self->is_started;
  if (is_first)
    log_stop (self, grace_us);
  g_clear_pointer (&self->itself, muster_rpc_client_unref);
  muster_gateway_stop (self->gateway);
  muster_health_service_stop (self->health);
  muster_announce_service_stop (self->announcing);
  muster_member_service_stop (self->membership);
  muster_files_service_stop (self);
  muster_status_watch_stop (self->status_watch);
  muster_session_reaper_stop (self->reaper);
  muster_readiness_service_stop (self->readiness);
  muster_rpc_server_stop (self->rpc, grace_us);
  if (self->health_rpc != NULL)
    muster_rpc_server_stop (self->health_rpc,
                            muster_deadline_remaining (until_us, muster_clock_now_us (clock)));
  if (self->http != NULL)
    muster_http_service_stop (self->http);
  if (is_first)
    log_stopped (self, began_us);
}
