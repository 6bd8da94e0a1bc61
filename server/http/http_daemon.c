// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_daemon.h"

#include <sys/socket.h>

/* The policy of gRPC's port: TLS 1.2 and later, ephemeral keys, authenticated encryption. */
#define TLS_POLICY                                                                                 \
  "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"                 \
  "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"
/* Limits a request's headers, and the amount that is sent at once. */
#define CONNECTION_BYTES ((size_t)32 << 10)
/* The service has a smaller limit. */
#define MAX_CONNECTIONS 1024u
/* Ends connections that neither send nor receive; the service also bounds their lifetime. */
#define IDLE_SECONDS 10u

struct _MusterHttpDaemon {
  struct MHD_Daemon *daemon; /* (owned) */
  GSource *source;           /* (owned) */
};

/* libmicrohttpd as a source of a main loop: one file descriptor, and a timeout. */
typedef struct {
  GSource source;
  struct MHD_Daemon *daemon; /* (not owned) */
  gpointer tag;
} DaemonSource;

static gboolean
is_due (struct MHD_Daemon *daemon, gint *timeout_ms)
{
  MHD_UNSIGNED_LONG_LONG left_ms;
  gboolean has_timeout = MHD_get_timeout (daemon, &left_ms) == MHD_YES;
  *timeout_ms = has_timeout ? (gint)MIN (left_ms, G_MAXINT) : -1;
  return has_timeout && left_ms == 0;
}

static gboolean
prepare (GSource *source, gint *timeout_ms)
{
  return is_due (((DaemonSource *)source)->daemon, timeout_ms);
}

static gboolean
check (GSource *source)
{
  DaemonSource *self = (DaemonSource *)source;
  gint timeout_ms;
  return g_source_query_unix_fd (source, self->tag) != 0 || is_due (self->daemon, &timeout_ms);
}

static gboolean
dispatch (GSource *source, GSourceFunc callback G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  (void)MHD_run (((DaemonSource *)source)->daemon);
  return G_SOURCE_CONTINUE;
}

static GSource *
source_new (struct MHD_Daemon *daemon)
{
  static GSourceFuncs funcs = {.prepare = prepare, .check = check, .dispatch = dispatch};
  GSource *source = g_source_new (&funcs, sizeof (DaemonSource));
  DaemonSource *self = (DaemonSource *)source;
  self->daemon = daemon;
  self->tag = g_source_add_unix_fd (
      source, MHD_get_daemon_info (daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, G_IO_IN);
  return source;
}

MusterHttpDaemon *
muster_http_daemon_new (GMainContext *context, const MusterHttpCallbacks *callbacks,
                        const MusterHttpTls *tls)
{
  const unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                         (tls != NULL ? MHD_USE_TLS : 0);
  struct MHD_OptionItem items[4] = {{MHD_OPTION_END, 0, NULL}};
  if (tls != NULL) {
    items[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, (gpointer)tls->certificate};
    items[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (gpointer)tls->key};
    items[2] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, (gpointer)TLS_POLICY};
    items[3] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
  }
  struct MHD_Daemon *daemon = MHD_start_daemon (
      flags, 0, NULL, NULL, callbacks->answer, callbacks->user_data,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
      MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_NOTIFY_CONNECTION, callbacks->connection, callbacks->user_data, MHD_OPTION_ARRAY,
      items, MHD_OPTION_END);
  if (daemon == NULL)
    return NULL;
  MusterHttpDaemon *self = g_new (MusterHttpDaemon, 1);
  *self = (MusterHttpDaemon){daemon, source_new (daemon)};
  g_source_attach (self->source, context);
  return self;
}

void
muster_http_daemon_free (MusterHttpDaemon *self)
{
  if (self == NULL)
    return;
  g_source_destroy (self->source);
  g_source_unref (self->source);
  MHD_stop_daemon (self->daemon);
  g_free (self);
}

gboolean
muster_http_daemon_add (MusterHttpDaemon *self, int fd, const struct sockaddr *address,
                        socklen_t size)
{
  gboolean is_taken = MHD_add_connection (self->daemon, fd, address, size) == MHD_YES;
  (void)MHD_run (self->daemon); /* libmicrohttpd may have queued the connection */
  return is_taken;
}
