// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

/* A socket that keeps a port of the loopback for the test's own servers, which come and go: nobody
 * else is given it, while a server that asks for the address gets it. */
static inline GSocket *
test_hold_port (char **address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GInetAddress) loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new (loopback, 0);
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
  if (socket == NULL || !g_socket_bind (socket, any, TRUE, &error))
    g_error ("No port to be had: %s", error->message);
  g_autoptr (GSocketAddress) taken = g_socket_get_local_address (socket, NULL);
  *address = g_strdup_printf ("127.0.0.1:%u",
                              g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (taken)));
  return socket;
}
