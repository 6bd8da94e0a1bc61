// SPDX-License-Identifier: Apache-2.0
/* The HTTP port: listening, its thread with a main context, and certificates. Connections go to
 * http_guests.c, requests to http_answers.c. */
#include "server/http/http_service.h"

#include "base/log_private.h"
#include "rpc/address_private.h"
#include "rpc/credentials_private.h"
#include "rpc/listen_private.h"
#include "server/core/server_private.h"
#include "server/http/http_answers.h"
#include "server/http/http_guests.h"

struct _MusterHttpService {
  MusterHttpAnswers *answers;        /* (owned) */
  GMainContext *context;             /* (owned) */
  GMainLoop *loop;                   /* (owned) */
  MusterHttpGuests *guests;          /* (owned) (nullable) from listening until it is stopped */
  GSocketService *listener;          /* (owned) */
  MusterRpcCredentials *credentials; /* (owned) (nullable) with TLS */
  guint version;                     /* of the certificate in use */
  GThread *thread;                   /* (owned) (nullable) */
};

/* --- listening --- */

/* A new certificate applies to new connections. */
static void
use_new_certificate (MusterHttpService *self)
{
  g_auto (MusterRpcPems) pems = {0};
  muster_rpc_credentials_refresh (self->credentials);
  if (muster_rpc_credentials_version (self->credentials) == self->version ||
      !muster_rpc_credentials_pems (self->credentials, &pems))
    return;
  self->version = pems.version;
  if (!muster_http_guests_use_tls (self->guests,
                                   &(MusterHttpTls){pems.certificate.text, pems.key.text}))
    muster_log (G_LOG_LEVEL_WARNING, "certificate", "MESSAGE",
                "the HTTP port keeps its certificate: libmicrohttpd refuses the new one");
}

/* The listener's signal handler. */
static gboolean
on_incoming (GSocketService *listener G_GNUC_UNUSED, GSocketConnection *connection,
             GObject *source G_GNUC_UNUSED, gpointer data)
{
  MusterHttpService *self = data;
  if (self->credentials != NULL)
    use_new_certificate (self);
  muster_http_guests_add (self->guests, connection);
  return TRUE;
}

MusterHttpService *
muster_http_service_new (MusterServer *server, const char *const *names)
{
  MusterHttpService *self = g_new0 (MusterHttpService, 1);
  if (muster_rpc_credentials_has_certificate (server->credentials))
    self->credentials = muster_rpc_credentials_ref (server->credentials);
  self->context = g_main_context_new ();
  self->answers = muster_http_answers_new (server, self->context, names);
  self->loop = g_main_loop_new (self->context, FALSE);
  g_main_context_push_thread_default (self->context);
  self->listener = g_socket_service_new ();
  g_main_context_pop_thread_default (self->context);
  g_signal_connect (self->listener, "incoming", G_CALLBACK (on_incoming), self);
  return self;
}

void
muster_http_service_free (MusterHttpService *self)
{
  if (self == NULL)
    return;
  muster_http_service_stop (self);
  muster_http_answers_free (self->answers);
  muster_rpc_credentials_unref (self->credentials);
  g_main_loop_unref (self->loop);
  g_main_context_unref (self->context);
  g_free (self);
}

static gboolean
listen_on (MusterHttpService *self, GPtrArray *sockets, GError **error)
{
  for (guint i = 0; i < sockets->len; i++) {
    GSocket *socket = sockets->pdata[i];
    g_socket_set_listen_backlog (socket, 2 * MUSTER_HTTP_MAX_GUESTS);
    if (!g_socket_listen (socket, error) ||
        !g_socket_listener_add_socket (G_SOCKET_LISTENER (self->listener), socket, NULL, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
make_guests (MusterHttpService *self, GError **error)
{
  g_auto (MusterRpcPems) pems = {0};
  gboolean has_tls = muster_rpc_credentials_pems (self->credentials, &pems);
  const MusterHttpTls tls = {pems.certificate.text, pems.key.text};
  if (self->guests != NULL)
    return TRUE;
  self->version = pems.version;
  self->guests = muster_http_guests_new (self->context, has_tls ? &tls : NULL, muster_http_answer,
                                         self->answers);
  return self->guests != NULL ||
         muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "can't serve HTTP%s: libmicrohttpd %s",
                      has_tls ? " with TLS" : "",
                      has_tls ? "refuses the certificate" : "can't start");
}

int
muster_http_service_listen (MusterHttpService *self, const char *address, GError **error)
{
  g_autofree char *host = NULL;
  g_autoptr (GError) why = NULL;
  int port;
  g_autoptr (GPtrArray) sockets = muster_listen_bind (address, &host, &port, error);
  if (sockets == NULL || !make_guests (self, error))
    return 0;
  muster_http_answers_add_name (self->answers, host);
  g_main_context_push_thread_default (self->context);
  const gboolean listens = listen_on (self, sockets, &why);
  g_main_context_pop_thread_default (self->context);
  if (!listens)
    muster_listen_fail (address, why, error);
  return listens ? port : 0;
}

static gpointer
work (gpointer data)
{
  MusterHttpService *self = data;
  g_main_context_push_thread_default (self->context);
  g_main_loop_run (self->loop);
  g_main_context_pop_thread_default (self->context);
  return NULL;
}

void
muster_http_service_start (MusterHttpService *self)
{
  g_return_if_fail (self->thread == NULL);
  self->thread = g_thread_new ("muster-http", work, self);
}

static gboolean
quit (gpointer loop)
{
  g_main_loop_quit (loop);
  return G_SOURCE_REMOVE;
}

void
muster_http_service_stop (MusterHttpService *self)
{
  if (self->listener == NULL)
    return;
  if (self->thread != NULL) {
    g_autoptr (GSource) source = g_idle_source_new (); /* runs even if the loop hasn't started */
    g_source_set_callback (source, quit, self->loop, NULL);
    g_source_attach (source, self->context);
    g_thread_join (g_steal_pointer (&self->thread));
  }
  g_main_context_push_thread_default (self->context);
  g_socket_service_stop (self->listener);
  g_socket_listener_close (G_SOCKET_LISTENER (self->listener));
  while (g_main_context_iteration (self->context, FALSE))
    ; /* lets cancelled operations finish */
  g_clear_object (&self->listener);
  muster_http_answers_end (self->answers);
  g_clear_pointer (&self->guests, muster_http_guests_free);
  g_main_context_pop_thread_default (self->context);
}
