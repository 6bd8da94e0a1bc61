// SPDX-License-Identifier: Apache-2.0
#include "rpc/address.h"

#include "base/require.h"

#include <string.h>

static gboolean
bad_address (const char *address, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid address '%s': %s (use HOST:PORT or [IPV6]:PORT)", address, why);
}

/* The characters of a host's name or number, without schemes, paths and spaces. */
static gboolean
is_plausible_host (const char *host)
{
  if (*host == '\0')
    return FALSE;
  for (const char *c = host; *c != '\0'; c++)
    if (!g_ascii_isalnum (*c) && strchr ("-._%:", *c) == NULL)
      return FALSE;
  return TRUE;
}

/* Where the host ends: at the last colon, or after the bracket that closes. */
static const char *
find_port (const char *address)
{
  if (address[0] != '[')
    return strrchr (address, ':');
  const char *closing = strchr (address, ']');
  return closing != NULL && closing[1] == ':' ? closing + 1 : NULL;
}

gboolean
muster_address_parse (const char *address, char **host, guint16 *port, GError **error)
{
  muster_require (error, FALSE, address, host, port);

  const char *colon = find_port (address);
  if (colon == NULL)
    return bad_address (address, "no port", error);
  gboolean bracketed = address[0] == '[';
  g_autofree char *name = bracketed ? g_strndup (address + 1, colon - address - 2)
                                    : g_strndup (address, colon - address);
  if (!is_plausible_host (name))
    return bad_address (address, "malformed host", error);
  if (!bracketed && strchr (name, ':') != NULL)
    return bad_address (address, "an IPv6 address needs brackets", error);

  guint64 number = 0;
  if (!g_ascii_string_to_unsigned (colon + 1, 10, 0, G_MAXUINT16, &number, NULL))
    return bad_address (address, "the port is not a number from 0 to 65535", error);
  *host = g_steal_pointer (&name);
  *port = (guint16)number;
  return TRUE;
}

gboolean
muster_address_is_loopback (const char *address)
{
  g_return_val_if_fail (address != NULL, FALSE);
  g_autofree char *host = NULL;
  guint16 port;
  if (!muster_address_parse (address, &host, &port, NULL))
    return FALSE;
  g_autoptr (GInetAddress) number = g_inet_address_new_from_string (host);
  return number != NULL ? g_inet_address_get_is_loopback (number)
                        : g_ascii_strcasecmp (host, "localhost") == 0;
}

char *
muster_address_format (const char *host, guint16 port)
{
  g_return_val_if_fail (host != NULL, NULL);
  return g_strdup_printf (strchr (host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
}
