// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_service.h"

#include "rpc/address.h"
#include "rpc/listen.h"
#include "server/http/pages.h"

#include <libsoup/soup.h>

#define MAX_GUESTS 64
/* The limit of a connection's lifetime, so that slow clients can't occupy all connections. */
#define LIFETIME_SECONDS 10

struct _MusterHttpService {
  MusterServer *server;     /* (not owned) */
  GMainContext *context;    /* (owned) */
  GMainLoop *loop;          /* (owned) */
  SoupServer *soup;         /* (owned) */
  GSocketService *listener; /* (owned) */
  GThread *thread;          /* (owned) (nullable) */
  /* (element-type GSocketConnection Guest) used only by the thread while it runs */
  GHashTable *guests;
};

/* A connection and its timeout. */
typedef struct {
  MusterHttpService *service;    /* (not owned) */
  GSocketConnection *connection; /* (not owned) */
  GSource *timer;                /* (owned) */
} Guest;

static void
guest_free (gpointer data)
{
  Guest *self = data;
  g_source_destroy (self->timer);
  g_source_unref (self->timer);
  g_free (self);
}

/* --- requests --- */

static void
answer (SoupServerMessage *message, guint status, const char *type, char *text)
{
  SoupMessageHeaders *headers = soup_server_message_get_response_headers (message);
  soup_message_headers_replace (headers, "Connection", "close");
  soup_message_headers_replace (headers, "Cache-Control", "no-store");
  soup_server_message_set_status (message, status, NULL);
  soup_server_message_set_response (message, type, SOUP_MEMORY_TAKE, text, strlen (text));
}

static gboolean
wants_open_metrics (SoupServerMessage *message)
{
  SoupMessageHeaders *headers = soup_server_message_get_request_headers (message);
  const char *accepted = soup_message_headers_get_list (headers, "Accept");
  return accepted != NULL && strstr (accepted, "application/openmetrics-text") != NULL;
}

static void
answer_health (MusterServer *server, SoupServerMessage *message)
{
  gboolean serves = muster_pages_serves (server);
  answer (message, serves ? 200 : 503, "text/plain; charset=utf-8",
          g_strdup (serves ? "serving\n" : "stopping\n"));
}

static void
answer_ready (MusterServer *server, SoupServerMessage *message)
{
  gboolean is_ready;
  char *text = muster_pages_ready (server, &is_ready);
  answer (message, is_ready ? 200 : 503, "text/plain; charset=utf-8", text);
}

static void
answer_metrics (MusterServer *server, SoupServerMessage *message)
{
  gboolean open = wants_open_metrics (message);
  answer (message, 200,
          open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8",
          muster_pages_metrics (server, open));
}

/* libsoup's handler for all paths. */
static void
on_request (SoupServer *soup G_GNUC_UNUSED, SoupServerMessage *message, const char *path,
            GHashTable *query G_GNUC_UNUSED, gpointer data)
{
  static const struct {
    const char *path;
    void (*answer) (MusterServer *server, SoupServerMessage *message);
  } pages[] = {
      {"/healthz", answer_health},
      {"/readyz", answer_ready},
      {"/metrics", answer_metrics},
  };
  MusterHttpService *self = data;
  for (gsize i = 0; i < G_N_ELEMENTS (pages); i++) {
    if (strcmp (path, pages[i].path) != 0)
      continue;
    if (soup_server_message_get_method (message) == SOUP_METHOD_GET) {
      pages[i].answer (self->server, message);
      return;
    }
    soup_message_headers_replace (soup_server_message_get_response_headers (message), "Allow",
                                  "GET");
    answer (message, 405, "text/plain; charset=utf-8", g_strdup ("use GET\n"));
    return;
  }
  answer (message, 404, "text/plain; charset=utf-8",
          g_strdup ("not found; use /healthz, /readyz or /metrics\n"));
}

/* libsoup's handler after the headers: the body is discarded. */
static void
drop_body (SoupServer *soup G_GNUC_UNUSED, SoupServerMessage *message,
           const char *path G_GNUC_UNUSED, GHashTable *query G_GNUC_UNUSED,
           gpointer data G_GNUC_UNUSED)
{
  soup_message_body_set_accumulate (soup_server_message_get_request_body (message), FALSE);
}

/* --- connections --- */

static gboolean
on_time_is_up (gpointer data)
{
  const Guest *guest = data;
  /* libsoup sees a disconnected peer, and closes the connection. */
  g_socket_shutdown (g_socket_connection_get_socket (guest->connection), TRUE, TRUE, NULL);
  return G_SOURCE_REMOVE;
}

static void
on_guest_gone (gpointer data, GObject *connection)
{
  MusterHttpService *self = data;
  g_hash_table_remove (self->guests, connection);
}

static void
welcome (MusterHttpService *self, GSocketConnection *connection)
{
  Guest *guest = g_new (Guest, 1);
  *guest = (Guest){self, connection, g_timeout_source_new_seconds (LIFETIME_SECONDS)};
  g_source_set_callback (guest->timer, on_time_is_up, guest, NULL);
  g_source_attach (guest->timer, self->context);
  g_hash_table_insert (self->guests, connection, guest);
  g_object_weak_ref (G_OBJECT (connection), on_guest_gone, self);
}

/* The listener's signal handler. Closes connections that libsoup can't take. */
static gboolean
on_incoming (GSocketService *listener G_GNUC_UNUSED, GSocketConnection *connection,
             GObject *source G_GNUC_UNUSED, gpointer data)
{
  MusterHttpService *self = data;
  g_autoptr (GSocketAddress) local = g_socket_connection_get_local_address (connection, NULL);
  g_autoptr (GSocketAddress) remote = g_socket_connection_get_remote_address (connection, NULL);
  if (g_hash_table_size (self->guests) >= MAX_GUESTS || local == NULL || remote == NULL)
    return TRUE;
  welcome (self, connection);
  (void)soup_server_accept_iostream (self->soup, G_IO_STREAM (connection), local, remote, NULL);
  return TRUE;
}

/* --- listening --- */

MusterHttpService *
muster_http_service_new (MusterServer *server)
{
  MusterHttpService *self = g_new0 (MusterHttpService, 1);
  self->server = server;
  self->context = g_main_context_new ();
  self->loop = g_main_loop_new (self->context, FALSE);
  self->guests = g_hash_table_new_full (NULL, NULL, NULL, guest_free);
  g_main_context_push_thread_default (self->context);
  self->soup = soup_server_new ("server-header", "muster", NULL);
  self->listener = g_socket_service_new ();
  g_socket_listener_set_backlog (G_SOCKET_LISTENER (self->listener), 2 * MAX_GUESTS);
  g_main_context_pop_thread_default (self->context);
  soup_server_add_handler (self->soup, NULL, on_request, self, NULL);
  soup_server_add_early_handler (self->soup, NULL, drop_body, NULL, NULL);
  g_signal_connect (self->listener, "incoming", G_CALLBACK (on_incoming), self);
  return self;
}

void
muster_http_service_free (MusterHttpService *self)
{
  if (self == NULL)
    return;
  muster_http_service_stop (self);
  g_hash_table_unref (self->guests);
  g_main_loop_unref (self->loop);
  g_main_context_unref (self->context);
  g_free (self);
}

/* With port 0, the first address gets a free port and the host's other addresses use the same one.
 */
static int
listen_at (MusterHttpService *self, GSocketAddress *address, int port, GError **error)
{
  g_autoptr (GSocketAddress) wanted = NULL;
  g_autoptr (GSocketAddress) taken = NULL;
  wanted = g_inet_socket_address_new (
      g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)), (guint16)port);
  if (!g_socket_listener_add_address (G_SOCKET_LISTENER (self->listener), wanted,
                                      G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL, &taken,
                                      error))
    return 0;
  return g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (taken));
}

/* Listens at all addresses of the host; one is enough. */
static int
listen_all (MusterHttpService *self, const char *host, guint16 port, GError **error)
{
  g_autoptr (GSocketConnectable) name = g_network_address_new (host, port);
  g_autoptr (GSocketAddressEnumerator) enumerator = g_socket_connectable_enumerate (name);
  g_autoptr (GError) first_error = NULL;
  int taken = 0;
  for (;;) {
    g_autoptr (GError) why = NULL;
    g_autoptr (GSocketAddress) address = g_socket_address_enumerator_next (enumerator, NULL, &why);
    int bound = address != NULL ? listen_at (self, address, taken != 0 ? taken : port, &why) : 0;
    taken = taken != 0 ? taken : bound;
    if (first_error == NULL)
      first_error = g_steal_pointer (&why);
    if (address == NULL)
      break;
  }
  if (taken == 0)
    g_propagate_error (error, g_steal_pointer (&first_error));
  return taken;
}

int
muster_http_service_listen (MusterHttpService *self, const char *address, GError **error)
{
  g_autofree char *host = NULL;
  g_autoptr (GError) why = NULL;
  guint16 port;
  if (!muster_listen_check (address, error) || !muster_address_parse (address, &host, &port, error))
    return 0;
  g_main_context_push_thread_default (self->context);
  int taken = listen_all (self, host, port, &why);
  g_main_context_pop_thread_default (self->context);
  if (taken == 0)
    muster_listen_fail (address, why, error);
  return taken;
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
  if (self->soup == NULL)
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
  soup_server_disconnect (self->soup);
  while (g_main_context_iteration (self->context, FALSE))
    ; /* lets cancelled operations finish */
  g_clear_object (&self->listener);
  g_clear_object (&self->soup);
  g_main_context_pop_thread_default (self->context);
}
