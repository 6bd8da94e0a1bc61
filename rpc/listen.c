// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen_private.h"

#include "rpc/address_private.h"

#include <gio/gio.h>

/* Ports that are tried for port 0 of a host with several addresses. */
#define MAX_PICKS 32

static char *
cause_of (const GError *why)
{
  if (why == NULL)
    return g_strdup ("the host has no address");
  if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))
    return g_strdup ("address already in use; use another port, or 0 for a free one");
  if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
    return g_strdup ("permission denied; use a port above 1023");
  return g_strdup (why->message);
}

void
muster_listen_fail (const char *address, const GError *why, GError **error)
{
  g_autofree char *cause = cause_of (why);
  muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "can't listen on %s: %s", address, cause);
}

/* Binds without listening, so that no client connects to a temporary socket. Binding alone detects
 * another listener. */
static GSocket *
bind_at (GSocketAddress *address, guint16 port, GError **error)
{
  g_autoptr (GSocketAddress) at = g_inet_socket_address_new (
      g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)), port);
  g_autoptr (GSocket) socket = g_socket_new (g_socket_address_get_family (at), G_SOCKET_TYPE_STREAM,
                                             G_SOCKET_PROTOCOL_TCP, error);
  return socket != NULL && g_socket_bind (socket, at, TRUE, error) ? g_steal_pointer (&socket)
                                                                   : NULL;
}

static guint16
port_of (GSocket *socket)
{
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (socket, NULL);
  return bound != NULL ? g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)) : 0;
}

/* Binds all addresses of a host to one port, for 0 the one that the first gets. Fails if it is in
 * use at one of them, or if there is none. The sockets are added to held. */
static gboolean
bind_all (const char *host, guint16 port, GPtrArray *held, GError **error)
{
  g_autoptr (GSocketConnectable) name = g_network_address_new (host, port);
  g_autoptr (GSocketAddressEnumerator) enumerator = g_socket_connectable_enumerate (name);
  g_autoptr (GError) first = NULL;
  const guint before = held->len;
  for (;;) {
    g_autoptr (GError) why = NULL;
    g_autoptr (GSocketAddress) at = g_socket_address_enumerator_next (enumerator, NULL, &why);
    GSocket *socket = at != NULL ? bind_at (at, port, &why) : NULL;
    if (socket != NULL) {
      g_ptr_array_add (held, socket);
      port = port_of (socket);
    }
    if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)) {
      g_propagate_error (error, g_steal_pointer (&why));
      return FALSE;
    }
    if (first == NULL)
      first = g_steal_pointer (&why);
    if (at == NULL)
      break;
  }
  if (held->len == before)
    g_propagate_error (error, g_steal_pointer (&first));
  return held->len > before;
}

GPtrArray *
muster_listen_bind (const char *address, char **host, int *port, GError **error)
{
  g_autoptr (GPtrArray) held = g_ptr_array_new_with_free_func (g_object_unref);
  guint16 wanted;
  if (!muster_address_parse (address, host, &wanted, error))
    return NULL;
  for (guint left = wanted == 0 ? MAX_PICKS : 1;; left--) {
    g_autoptr (GError) why = NULL;
    const guint before = held->len;
    if (bind_all (*host, wanted, held, &why)) {
      if (before > 0) /* of tries that failed */
        g_ptr_array_remove_range (held, 0, before);
      *port = port_of (held->pdata[0]);
      return g_steal_pointer (&held);
    }
    if (left > 1 && g_error_matches (why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))
      continue; /* a socket of this try stays bound: the next one gets another port */
    muster_listen_fail (address, why, error);
    g_clear_pointer (host, g_free);
    return NULL;
  }
}

char *
muster_listen_pick (const char *address, GError **error)
{
  g_autofree char *host = NULL;
  int port;
  g_autoptr (GPtrArray) bound = muster_listen_bind (address, &host, &port, error);
  if (bound == NULL)
    return NULL;
  return bound->len > 1 ? muster_address_format (host, (guint16)port) : g_strdup (address);
}
