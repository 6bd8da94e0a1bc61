// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_access.h"

#include <string.h>

static void
wipe (char *text, gsize size)
{
  if (text != NULL)
    explicit_bzero (text, size);
  g_free (text);
}

/* Returns the role of "USER:TOKEN" in Base64. The user is ignored. */
static MusterRole
role_of_basic (MusterRpcCredentials *credentials, const char *encoded)
{
  gsize size = 0;
  char *decoded = (char *)g_base64_decode (encoded, &size);
  const char *colon = decoded != NULL ? memchr (decoded, ':', size) : NULL;
  MusterRole role = colon != NULL ? muster_rpc_credentials_role (credentials, colon + 1,
                                                                 decoded + size - (colon + 1))
                                  : MUSTER_ROLE_NONE;
  wipe (decoded, size);
  return role;
}

static MusterRole
role_of (MusterRpcCredentials *credentials, const char *authorization)
{
  if (authorization == NULL)
    return MUSTER_ROLE_NONE;
  if (g_ascii_strncasecmp (authorization, "Bearer ", 7) == 0)
    return muster_rpc_credentials_role (credentials, authorization + 7, -1);
  if (g_ascii_strncasecmp (authorization, "Basic ", 6) == 0)
    return role_of_basic (credentials, authorization + 6);
  return MUSTER_ROLE_NONE;
}

MusterHttpAccess
muster_http_access (MusterRpcCredentials *credentials, struct MHD_Connection *connection)
{
  if (!muster_rpc_credentials_has_token (credentials))
    return muster_rpc_credentials_role (credentials, NULL, -1) >= MUSTER_ROLE_READ
               ? MUSTER_HTTP_OPEN
               : MUSTER_HTTP_NO_WAY;
  const char *authorization =
      MHD_lookup_connection_value (connection, MHD_HEADER_KIND, "Authorization");
  muster_rpc_credentials_refresh (credentials);
  return role_of (credentials, authorization) >= MUSTER_ROLE_READ ? MUSTER_HTTP_LET_IN
                                                                  : MUSTER_HTTP_STOPPED;
}
