// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_hosts.h"

#include <gio/gio.h>
#include <string.h>

/* Removes the port, the brackets of an IPv6 address and a trailing dot. */
static char *
name_of (const char *host)
{
  const char *bracket = strchr (host, ']');
  if (*host == '[' && bracket != NULL)
    return g_strndup (host + 1, (gsize)(bracket - host - 1));
  gsize n = strcspn (host, ":");
  if (n > 0 && host[n - 1] == '.')
    n--;
  return g_strndup (host, n);
}

gboolean
muster_http_host_is_own (const char *host, const char *const *names)
{
  if (host == NULL)
    return TRUE;
  g_autofree char *name = name_of (host);
  if (g_hostname_is_ip_address (name) || g_ascii_strcasecmp (name, "localhost") == 0 ||
      g_ascii_strcasecmp (name, g_get_host_name ()) == 0)
    return TRUE;
  for (gsize i = 0; names != NULL && names[i] != NULL; i++)
    if (g_ascii_strcasecmp (name, names[i]) == 0)
      return TRUE;
  return FALSE;
}
