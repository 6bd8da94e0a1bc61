// SPDX-License-Identifier: Apache-2.0
/* The connections of the HTTP port: their number and lifetime are limited, and each new one is
 * given to libmicrohttpd. After a change of certificates, a new daemon takes new connections, and
 * the old one ends with its last. */
#include "server/http/http_guests.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The limit of a connection's lifetime, so that slow clients can't occupy all connections. */
#define LIFETIME_SECONDS 10

struct _MusterHttpGuests {
  GMainContext *context;         /* (owned) */
  MusterHttpCallbacks callbacks; /* user_data is this struct */
  MHD_AccessHandlerCallback answer;
  gpointer user_data;       /* of answer */
  MusterHttpDaemon *daemon; /* (owned) of new connections */
  GPtrArray *earlier;       /* (owned) (element-type MusterHttpDaemon) with other certificates */
  GQueue guests;            /* (element-type MusterHttpGuest) (owned) oldest first */
  GHashTable *arriving;     /* (element-type fd MusterHttpGuest) not yet known to the daemon */
  guint n_streams;
};

struct _MusterHttpGuest {
  MusterHttpGuests *guests; /* (not owned) */
  MusterHttpDaemon *daemon; /* (not owned) */
  GList link;
  int fd;          /* (not owned) libmicrohttpd closes it */
  GSource *timer;  /* (owned) (nullable) */
  gboolean is_in;  /* libmicrohttpd has begun the connection */
  gboolean asked;  /* it has sent a request */
  gboolean stays;  /* it counts as a stream */
  gboolean is_out; /* its socket was shut down */
};

static void
drop_timer (MusterHttpGuest *self)
{
  if (self->timer == NULL)
    return;
  g_source_destroy (self->timer);
  g_clear_pointer (&self->timer, g_source_unref);
}

static void
guest_free (MusterHttpGuest *self)
{
  drop_timer (self);
  g_queue_unlink (&self->guests->guests, &self->link);
  self->guests->n_streams -= self->stays;
  if (!self->is_in)
    g_hash_table_remove (self->guests->arriving, GINT_TO_POINTER (self->fd));
  g_free (self);
}

/* Shuts the socket down: libmicrohttpd then sees a disconnected peer, and closes the connection.
 * */
static void
show_out (MusterHttpGuest *self)
{
  self->is_out = TRUE;
  drop_timer (self);
  if (self->is_in)
    shutdown (self->fd, SHUT_RDWR);
}

static gboolean
on_time_is_up (gpointer guest)
{
  show_out (guest);
  return G_SOURCE_REMOVE;
}

/* --- what libmicrohttpd reports --- */

static void
on_connection (void *data, struct MHD_Connection *connection, void **context,
               enum MHD_ConnectionNotificationCode code)
{
  MusterHttpGuests *self = data;
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    if (*context != NULL)
      guest_free (*context);
    return;
  }
  gpointer fd = GINT_TO_POINTER (
      MHD_get_connection_info (connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
  MusterHttpGuest *guest = g_hash_table_lookup (self->arriving, fd);
  g_hash_table_remove (self->arriving, fd);
  *context = guest;
  if (guest != NULL)
    guest->is_in = TRUE;
}

MusterHttpGuest *
muster_http_guest_of (struct MHD_Connection *connection)
{
  return MHD_get_connection_info (connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void
muster_http_guest_asked (MusterHttpGuest *self)
{
  self->asked = TRUE;
}

gboolean
muster_http_guest_stays (MusterHttpGuest *self)
{
  if (self->stays || self->guests->n_streams >= MUSTER_HTTP_MAX_STREAMS)
    return self->stays;
  self->stays = TRUE;
  self->guests->n_streams++;
  drop_timer (self);
  return TRUE;
}

static enum MHD_Result
on_request (void *data, struct MHD_Connection *connection, const char *url, const char *method,
            const char *version, const char *upload, size_t *n_upload, void **request)
{
  MusterHttpGuests *self = data;
  return self->answer (self->user_data, connection, url, method, version, upload, n_upload,
                       request);
}

/* --- guests --- */

/* Ends the oldest connection that hasn't sent a request, or the oldest of all; those that stay
 * have a limit of their own. */
static void
make_room (MusterHttpGuests *self)
{
  MusterHttpGuest *oldest = NULL, *silent = NULL;
  guint n = 0;
  for (GList *link = self->guests.head; link != NULL; link = link->next) {
    MusterHttpGuest *guest = link->data;
    if (guest->is_out)
      continue;
    n++;
    if (oldest == NULL && !guest->stays)
      oldest = guest;
    if (silent == NULL && !guest->asked)
      silent = guest;
  }
  if (n >= MUSTER_HTTP_MAX_GUESTS && oldest != NULL)
    show_out (silent != NULL ? silent : oldest);
}

static MusterHttpGuest *
guest_new (MusterHttpGuests *self, int fd)
{
  MusterHttpGuest *guest = g_new0 (MusterHttpGuest, 1);
  guest->guests = self;
  guest->daemon = self->daemon;
  guest->fd = fd;
  guest->link.data = guest;
  guest->timer = g_timeout_source_new_seconds (LIFETIME_SECONDS);
  g_source_set_callback (guest->timer, on_time_is_up, guest, NULL);
  g_source_attach (guest->timer, self->context);
  g_queue_push_tail_link (&self->guests, &guest->link);
  g_hash_table_insert (self->arriving, GINT_TO_POINTER (fd), guest);
  return guest;
}

/* Forgets a connection that libmicrohttpd dropped without a call. */
static void
forget_arriving (MusterHttpGuests *self, int fd)
{
  MusterHttpGuest *guest = g_hash_table_lookup (self->arriving, GINT_TO_POINTER (fd));
  if (guest != NULL)
    guest_free (guest);
}

void
muster_http_guests_add (MusterHttpGuests *self, GSocketConnection *connection)
{
  struct sockaddr_storage address;
  g_autoptr (GSocketAddress) remote = g_socket_connection_get_remote_address (connection, NULL);
  if (remote == NULL || !g_socket_address_to_native (remote, &address, sizeof address, NULL))
    return;
  int own = g_socket_get_fd (g_socket_connection_get_socket (connection));
  int fd = fcntl (own, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    return;
  make_room (self);
  forget_arriving (self, fd);
  guest_new (self, fd);
  if (!muster_http_daemon_add (self->daemon, fd, (struct sockaddr *)&address,
                               (socklen_t)g_socket_address_get_native_size (remote)))
    forget_arriving (self, fd);
}

/* --- life --- */

static gboolean
has_guests (MusterHttpGuests *self, MusterHttpDaemon *daemon)
{
  for (GList *link = self->guests.head; link != NULL; link = link->next)
    if (((MusterHttpGuest *)link->data)->daemon == daemon)
      return TRUE;
  return FALSE;
}

/* Ends the connections of earlier daemons, and frees the daemons that have none any more. */
static void
retire (MusterHttpGuests *self)
{
  for (GList *link = self->guests.head; link != NULL; link = link->next) {
    MusterHttpGuest *guest = link->data;
    if (guest->daemon != self->daemon && !guest->is_out)
      show_out (guest);
  }
  for (guint i = self->earlier->len; i-- > 0;)
    if (!has_guests (self, self->earlier->pdata[i]))
      g_ptr_array_remove_index (self->earlier, i);
}

gboolean
muster_http_guests_use_tls (MusterHttpGuests *self, const MusterHttpTls *tls)
{
  MusterHttpDaemon *daemon = muster_http_daemon_new (self->context, &self->callbacks, tls);
  if (daemon == NULL)
    return FALSE;
  retire (self);
  g_ptr_array_add (self->earlier, self->daemon);
  self->daemon = daemon;
  return TRUE;
}

MusterHttpGuests *
muster_http_guests_new (GMainContext *context, const MusterHttpTls *tls,
                        MHD_AccessHandlerCallback answer, gpointer user_data)
{
  MusterHttpGuests *self = g_new0 (MusterHttpGuests, 1);
  self->context = g_main_context_ref (context);
  self->callbacks = (MusterHttpCallbacks){on_request, on_connection, self};
  self->answer = answer;
  self->user_data = user_data;
  g_queue_init (&self->guests);
  self->arriving = g_hash_table_new (NULL, NULL);
  self->earlier = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_http_daemon_free);
  self->daemon = muster_http_daemon_new (context, &self->callbacks, tls);
  if (self->daemon == NULL)
    g_clear_pointer (&self, muster_http_guests_free);
  return self;
}

void
muster_http_guests_free (MusterHttpGuests *self)
{
  if (self == NULL)
    return;
  muster_http_daemon_free (self->daemon);
  g_ptr_array_unref (self->earlier);
  while (self->guests.head != NULL) /* never reached the daemon */
    guest_free (self->guests.head->data);
  g_hash_table_unref (self->arriving);
  g_main_context_unref (self->context);
  g_free (self);
}
