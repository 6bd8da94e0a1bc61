// SPDX-License-Identifier: Apache-2.0
#include "rpc/address_private.h"

#include "base/require_private.h"

#include <string.h>
#include <sys/un.h>

#define UNIX "unix:"

static gboolean
bad_address (const char *address, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid address '%s': %s (use HOST:PORT, [IPV6]:PORT or unix:/PATH)",
                      address, why);
}

/* The characters of a host's name or number, without schemes, paths and spaces. */
static gboolean
is_plausible_host (const char *host)
{
  if (*host == '\0')
    return FALSE;
  for (const char *c = host; *c != '\0'; c++)
    if (!g_ascii_isalnum (*c) && strchr ("-._:", *c) == NULL)
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
  if (strchr (name, '%') != NULL)
    return bad_address (address, "an IPv6 address with a zone ('%') isn't supported", error);
  if (!is_plausible_host (name))
    return bad_address (address, "malformed host", error);
  if (!bracketed && strchr (name, ':') != NULL)
    return bad_address (address, "an IPv6 address needs brackets", error);

  guint64 number = 0;
  if (!g_ascii_string_to_unsigned (colon + 1, 10, 0, G_MAXUINT16, &number, NULL))
    return bad_address (address,
                        g_str_equal (name, "unix") ? "a socket's path must be absolute"
                                                   : "the port is not a number from 0 to 65535",
                        error);
  *host = g_steal_pointer (&name);
  *port = (guint16)number;
  return TRUE;
}

const char *
muster_address_unix_path (const char *address)
{
  g_return_val_if_fail (address != NULL, NULL);
  return g_str_has_prefix (address, UNIX "/") ? address + strlen (UNIX) : NULL;
}

char *
muster_address_unix_uri (const char *address)
{
  g_return_val_if_fail (address != NULL, NULL);
  const char *path = muster_address_unix_path (address);
  g_autofree char *escaped = path != NULL ? g_uri_escape_string (path, "/", FALSE) : NULL;
  return escaped != NULL ? g_strconcat (UNIX, escaped, NULL) : NULL;
}

gboolean
muster_address_check (const char *address, GError **error)
{
  muster_require (error, FALSE, address);
  static const struct sockaddr_un any;
  const char *path = muster_address_unix_path (address);
  g_autofree char *host = NULL;
  guint16 port;
  if (path == NULL)
    return muster_address_parse (address, &host, &port, error);
  if (strlen (path) < sizeof any.sun_path)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid address '%s': a socket's path has at most %d bytes", address,
                      (int)sizeof any.sun_path - 1);
}

const char *
muster_address_in_target (const char *target, gboolean *tls)
{
  static const char plain[] = "grpc://", secured[] = "grpcs://";
  g_return_val_if_fail (target != NULL, NULL);
  const gboolean has_tls = g_str_has_prefix (target, secured);
  if (tls != NULL)
    *tls = has_tls;
  if (has_tls)
    return target + strlen (secured);
  if (g_str_has_prefix (target, plain))
    return target + strlen (plain);
  return muster_address_unix_path (target) != NULL ? target : NULL;
}

gboolean
muster_address_is_loopback (const char *address)
{
  g_return_val_if_fail (address != NULL, FALSE);
  if (muster_address_unix_path (address) != NULL)
    return TRUE;
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
