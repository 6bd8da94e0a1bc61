// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/rpc_call_private.h"

#include <string.h>

/* gRPC's text, the credentials to which it applies, and our text. */
typedef struct {
  const char *pattern;
  enum { ANY, PLAIN, WITH_CA, WITHOUT_CERTIFICATE, WITH_CERTIFICATE } client;
  MusterError code;
  const char *cause;
} Cause;

/* Waiting doesn't repair a certificate: that isn't UNAVAILABLE. */
static const Cause causes[] = {
    {"certificate verify failed", WITH_CA, MUSTER_ERROR_UNAUTHENTICATED,
     "its certificate isn't trusted: the CA of --tls-ca didn't sign it, or one of the two has "
     "expired; set --tls-ca to the CA that signed it, or renew them"},
    {"certificate verify failed", ANY, MUSTER_ERROR_UNAUTHENTICATED,
     "its certificate isn't trusted; set --tls-ca to the CA that signed it"},
    {"is not in peer certificate", ANY, MUSTER_ERROR_UNAUTHENTICATED,
     "its certificate is for another host name; use a name in the certificate"},
    {"wrong version number", ANY, MUSTER_ERROR_UNAVAILABLE,
     "TLS handshake failed: the port speaks plain text; use grpc://"},
    {": Socket closed", PLAIN, MUSTER_ERROR_UNAVAILABLE,
     "the port closes connections; if it speaks TLS, use grpcs://"},
    {": Socket closed", WITHOUT_CERTIFICATE, MUSTER_ERROR_UNAVAILABLE,
     "the port closes connections; if it requires a client certificate, set --tls-cert and "
     "--tls-key"},
    {": Socket closed", WITH_CERTIFICATE, MUSTER_ERROR_UNAVAILABLE,
     "the port closes connections; check that the server trusts the CA that signed --tls-cert"},
};

static gboolean
fits (const Cause *cause, const char *text, MusterRpcCredentials *credentials)
{
  if (strstr (text, cause->pattern) == NULL)
    return FALSE;
  if (cause->client == ANY)
    return TRUE;
  if (cause->client == WITH_CA)
    return muster_rpc_credentials_has_ca (credentials);
  if (!muster_rpc_credentials_has_tls (credentials))
    return cause->client == PLAIN;
  return cause->client == (muster_rpc_credentials_has_certificate (credentials)
                               ? WITH_CERTIFICATE
                               : WITHOUT_CERTIFICATE);
}

gboolean
muster_rpc_is_unconnected (const char *text)
{
  return g_str_has_prefix (text, "failed to connect to all addresses") ||
         g_str_has_prefix (text, "DNS resolution failed");
}

/* A server that stops sends GOAWAY, or resets its open calls, which gRPC then calls cancelled. */
gboolean
muster_rpc_is_end (const char *text)
{
  static const char *const ends[] = {
      "GOAWAY received", "Socket closed", "Connection reset by peer", "Transport closed",
      "Broken pipe",     "CANCELLED",     "Cancelling all calls",     NULL};
  return g_strv_contains (ends, text);
}

/* A Unix socket is never TLS's. */
static gboolean
is_turned_away (const char *text)
{
  return strstr (text, "unix:") != NULL &&
         (strstr (text, ": Socket closed") != NULL || strstr (text, ": Broken pipe") != NULL ||
          strstr (text, ": Connection reset by peer") != NULL);
}

/* gRPC lists one failure after another: the last is the cause. */
const char *
muster_rpc_cause (const char *text, MusterRpcCredentials *credentials, MusterError *code)
{
  static const char unreachable[] = "Failed to connect to remote host: ";
  *code = MUSTER_ERROR_UNAVAILABLE;
  const char *last = g_strrstr (text, unreachable);
  if (last != NULL)
    return last + strlen (unreachable);
  if (is_turned_away (text))
    return "the server closes connections of this user; add the user to its --allow-user";
  if (muster_rpc_is_end (text))
    return "the connection was closed";
  gboolean is_connecting = g_str_has_prefix (text, "failed to connect to all addresses");
  for (gsize i = 0; is_connecting && i < G_N_ELEMENTS (causes); i++) {
    if (!fits (&causes[i], text, credentials))
      continue;
    *code = causes[i].code;
    return causes[i].cause;
  }
  return text;
}
