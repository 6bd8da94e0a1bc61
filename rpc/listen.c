// SPDX-License-Identifier: Apache-2.0
#include "rpc/listen.h"

#include "rpc/address.h"

#include <gio/gio.h>

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
static gboolean
can_bind (GSocketAddress *address, GError **error)
{
  g_autoptr (GSocket) socket = g_socket_new (g_socket_address_get_family (address),
                                             G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, error);
  return socket != NULL && g_socket_bind (socket, address, TRUE, error);
}

gboolean
muster_listen_check (const char *address, GError **error)
{
  g_autofree char *host = NULL;
  guint16 port;
  if (!muster_address_parse (address, &host, &port, error))
    return FALSE;
  g_autoptr (GSocketConnectable) name = g_network_address_new (host, port);
  g_autoptr (GSocketAddressEnumerator) enumerator = g_socket_connectable_enumerate (name);
  g_autoptr (GError) first = NULL;
  gboolean is_free = FALSE;
  for (;;) {
    g_autoptr (GError) why = NULL;
    g_autoptr (GSocketAddress) at = g_socket_address_enumerator_next (enumerator, NULL, &why);
    const gboolean is_there = at != NULL && can_bind (at, &why);
    is_free = is_free || is_there;
    if (g_error_matches (why, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)) {
      muster_listen_fail (address, why, error);
      return FALSE;
    }
    if (first == NULL)
      first = g_steal_pointer (&why);
    if (at == NULL)
      break;
  }
  if (!is_free)
    muster_listen_fail (address, first, error);
  return is_free;
}
