// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include "rpc/address.h"
#include "server/core/server_private.h"
#include "server/gateway/gateway.h"
#include "server/http/http_service.h"
#include "server/services/announce_service.h"
#include "server/services/health_service.h"
#include "server/services/master_service.h"
#include "server/services/readiness_service.h"
#include "server/services/status_service.h"

/* The time limit for closing all sessions of one collection. A master that doesn't answer must
 * collect its sessions itself. */
#define CLOSE_EXPIRED (5 * MUSTER_SECOND)

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

MusterServer *
muster_server_new (MusterMaster *master, const MusterServerOptions *options)
{
  const MusterServerOptions usual = {0};
  const MusterServerOptions *wanted = options != NULL ? options : &usual;
  MusterServer *self = g_new0 (MusterServer, 1);
  self->master = g_object_ref (master);
  self->clock = g_object_ref (wanted->clock != NULL ? wanted->clock : muster_system_clock ());
  self->started_us = muster_clock_now_us (self->clock);
  self->credentials =
      wanted->credentials != NULL ? muster_rpc_credentials_ref (wanted->credentials) : NULL;
  self->is_insecure = wanted->insecure;
  self->idle_session_us = wanted->idle_session_us;
  self->limits = muster_limits_new (&wanted->limits);
  self->sessions = muster_sessions_new (self->clock, self->limits);
  self->request_ids = muster_request_ids_new ();
  self->known_graphs = muster_known_graphs_new ();
  self->reaper = muster_session_reaper_new (self->sessions, self->clock, on_expired, self);
  self->steps = muster_step_meter_new ();
  self->handler_pool = muster_handler_pool_new (n_blocking_threads (), max_threads (self));
  self->rpc = muster_rpc_server_new_with_max_request (
      muster_limits_max (self->limits, MUSTER_LIMIT_REQUEST_BYTES));
  self->methods = g_ptr_array_new_with_free_func (g_free);
  gint64 lease_us = wanted->chief_lease_us > 0 ? wanted->chief_lease_us : DEFAULT_CHIEF_LEASE_US;
  self->registry = muster_chief_registry_new (self->clock, lease_us);
  self->hub = muster_readiness_hub_new (master, self->registry, self->clock);
  self->health = muster_health_service_new (self->hub, self->registry);
  self->readiness = muster_readiness_service_new (self);
  self->announcing = muster_announce_service_new (self);
  if (muster_master_is_remote (master)) {
    self->gateway = muster_gateway_new (self);
    muster_gateway_enter (self->gateway);
  } else {
    muster_master_service_enter (self);
  }
  muster_readiness_service_enter (self->readiness);
  muster_announce_service_enter (self->announcing);
  muster_status_service_enter (self);
  muster_health_service_enter (self->health, self->rpc);
  return self;
}

void
muster_server_free (MusterServer *self)
{
  if (self == NULL)
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
  muster_health_service_free (self->health);
  g_ptr_array_unref (self->methods);
  muster_chief_registry_free (self->registry);
  muster_session_reaper_free (self->reaper);
  muster_sessions_free (self->sessions);
  muster_request_ids_free (self->request_ids);
  muster_known_graphs_free (self->known_graphs);
  muster_limits_free (self->limits);
  muster_step_meter_free (self->steps);
  muster_gateway_free (self->gateway);
  muster_rpc_credentials_unref (self->credentials);
  g_object_unref (self->clock);
  g_object_unref (self->master);
  g_free (self);
}

/* An address other than loopback is reachable by untrusted clients. */
static gboolean
may_listen (MusterServer *self, const char *address, gboolean is_secured, const char *what_to_do,
            GError **error)
{
  if (is_secured || self->is_insecure || muster_address_is_loopback (address))
    return TRUE;
  g_autofree char *host = NULL;
  guint16 port;
  if (muster_address_parse (address, &host, &port, error)) /* otherwise its error is reported */
    muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED, "'%s' is reachable from other machines: %s",
                 address, what_to_do);
  return FALSE;
}

int
muster_server_listen (MusterServer *self, const char *address, GError **error)
{
  gboolean is_secured = muster_rpc_credentials_has_tls (self->credentials);
  if (!may_listen (self, address, is_secured,
                   "use --tls-cert and --tls-key, listen on localhost, or use --insecure to accept "
                   "any client",
                   error))
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
  if (!may_listen (self, address, FALSE,
                   "HTTP has no TLS and no token; listen on localhost, or use --insecure to answer "
                   "any client",
                   error))
    return 0;
  if (self->http == NULL)
    self->http = muster_http_service_new (self);
  return muster_http_service_listen (self->http, address, error);
}

void
muster_server_start (MusterServer *self)
{
  if (self->http != NULL)
    muster_http_service_start (self->http);
  muster_rpc_server_start (self->rpc);
  if (self->health_rpc != NULL)
    muster_rpc_server_start (self->health_rpc);
}

/* Watches end first, as they would outlast any grace. The health port and HTTP end last, as they
 * report the server's state. */
void
muster_server_stop (MusterServer *self, gint64 grace_us)
{
  MusterClock *clock = muster_system_clock (); /* gRPC doesn't use the fake clock */
  gint64 until_us = muster_deadline_after (muster_clock_now_us (clock), grace_us);
  g_atomic_int_set (&self->is_stopping, TRUE);
  g_clear_pointer (&self->itself, muster_rpc_client_unref);
  muster_health_service_stop (self->health);
  muster_announce_service_stop (self->announcing);
  muster_session_reaper_stop (self->reaper);
  muster_readiness_service_stop (self->readiness);
  muster_rpc_server_stop (self->rpc, grace_us);
  if (self->health_rpc != NULL)
    muster_rpc_server_stop (self->health_rpc,
                            muster_deadline_remaining (until_us, muster_clock_now_us (clock)));
  if (self->http != NULL)
    muster_http_service_stop (self->http);
}
