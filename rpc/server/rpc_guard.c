// SPDX-License-Identifier: Apache-2.0
/* Checks each call before its request is read: the token or certificate, and the role that the
 * method needs. */
#include "rpc/server/rpc_server_state_private.h"

#include "base/log_private.h"

#include <grpc/grpc_security_constants.h>
#include <string.h>

#define NO_TOKEN    "this server requires a token; set --token-file"
#define WRONG_TOKEN "wrong token; set --token-file to the server's token"

#define MAX_REFUSAL 512

struct _MusterRpcGuard {
  gatomicrefcount refs;              /* the server's, and gRPC's */
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  GPtrArray *methods; /* (owned) (element-type MusterRpcMethod) not changed once calls come */
  guint version;      /* atomic: of the certificate that gRPC has; gRPC asks for one at a time */
  MusterLogLimit refusals;
};

MusterRpcGuard *
muster_rpc_guard_new (MusterRpcCredentials *credentials, GPtrArray *methods)
{
  MusterRpcGuard *self = g_new0 (MusterRpcGuard, 1);
  g_atomic_ref_count_init (&self->refs);
  self->credentials = credentials != NULL ? muster_rpc_credentials_ref (credentials) : NULL;
  self->methods = g_ptr_array_ref (methods);
  g_atomic_int_set (&self->version, 0); /* after the rest, which fetch_config () reads after it */
  return self;
}

void
muster_rpc_guard_unref (gpointer guard)
{
  MusterRpcGuard *self = guard;
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  muster_rpc_credentials_unref (self->credentials);
  g_ptr_array_unref (self->methods);
  g_free (self);
}

/* --- the certificate --- */

/* Called by gRPC when the address is opened, and before each handshake, on any thread that polls:
 * also on one of a client in the same process. */
static grpc_ssl_certificate_config_reload_status
fetch_config (void *data, grpc_ssl_server_certificate_config **config)
{
  MusterRpcGuard *self = data;
  guint version = (guint)g_atomic_int_get (&self->version);
  muster_rpc_credentials_refresh (self->credentials);
  if (version == muster_rpc_credentials_version (self->credentials))
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  *config = muster_rpc_credentials_server_config (self->credentials, &version);
  g_atomic_int_set (&self->version, version);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

static grpc_server_credentials *
make_credentials (MusterRpcGuard *self, GError **error)
{
  if (!muster_rpc_credentials_has_tls (self->credentials))
    return grpc_insecure_server_credentials_create ();
  if (!muster_rpc_credentials_has_certificate (self->credentials)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "a TLS server needs a certificate and its key; set both files");
    return NULL;
  }
  grpc_ssl_client_certificate_request_type asks =
      muster_rpc_credentials_has_ca (self->credentials)
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return grpc_ssl_server_credentials_create_with_options (
      grpc_ssl_server_credentials_create_options_using_config_fetcher (asks, fetch_config, self));
}

/* --- the calls --- */

static gboolean
slice_is (grpc_slice slice, const char *text)
{
  return GRPC_SLICE_LENGTH (slice) == strlen (text) &&
         memcmp (GRPC_SLICE_START_PTR (slice), text, strlen (text)) == 0;
}

static const grpc_slice *
find (const grpc_metadata *metadata, size_t n_metadata, const char *key)
{
  for (size_t i = 0; i < n_metadata; i++)
    if (slice_is (metadata[i].key, key))
      return &metadata[i].value;
  return NULL;
}

/* The method with that path (nullable). */
static const MusterRpcMethod *
find_method (const MusterRpcGuard *self, const grpc_slice *path)
{
  for (guint i = 0; path != NULL && i < self->methods->len; i++) {
    const MusterRpcMethod *method = self->methods->pdata[i];
    if (method->path != NULL && slice_is (*path, method->path))
      return method;
  }
  return NULL;
}

/* Writes why a caller below the needed role is refused. */
static grpc_status_code
refuse (const MusterRpcCaller *caller, const MusterRpcMethod *method, MusterRole needed,
        char why[MAX_REFUSAL])
{
  if (caller->lacks_token || caller->is_unknown) {
    g_strlcpy (why, caller->lacks_token ? NO_TOKEN : WRONG_TOKEN, MAX_REFUSAL);
    return GRPC_STATUS_UNAUTHENTICATED;
  }
  const char *slash = method != NULL ? strrchr (method->path, '/') : NULL;
  g_snprintf (why, MAX_REFUSAL, "%s needs the role '%s', and %s%s%s has %s%s%s",
              slash != NULL ? slash + 1 : "this call", muster_role_name (needed),
              *caller->name != '\0' ? "the client '" : "this token", caller->name,
              *caller->name != '\0' ? "'" : "", caller->role == MUSTER_ROLE_NONE ? "no role" : "'",
              caller->role == MUSTER_ROLE_NONE ? "" : muster_role_name (caller->role),
              caller->role == MUSTER_ROLE_NONE ? "" : "'");
  return GRPC_STATUS_PERMISSION_DENIED;
}

/* gRPC doesn't say here from which address the call came. */
static void
log_refusal (MusterRpcGuard *self, const MusterRpcCaller *caller, const grpc_slice *path,
             const char *why)
{
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_INFO, &self->refusals, left_out))
    return;
  g_autofree char *method = path != NULL ? grpc_slice_to_c_string (*path) : NULL;
  muster_log (G_LOG_LEVEL_INFO, "refused", "MUSTER_METHOD", method, "MUSTER_CLIENT", caller->name,
              "MUSTER_ROLE", muster_role_name (caller->role), "MUSTER_LEFT_OUT", left_out,
              "MESSAGE", "a call was refused: %s", why);
}

/* The token stays with the call, for muster_rpc_call_role (). */
static void
process (void *state, grpc_auth_context *context, const grpc_metadata *metadata, size_t n_metadata,
         grpc_process_auth_metadata_done_cb done, void *user_data)
{
  MusterRpcGuard *self = state;
  const grpc_slice *path = find (metadata, n_metadata, ":path");
  const MusterRpcMethod *method = find_method (self, path);
  MusterRole needed = method != NULL ? method->role : MUSTER_ROLE_READ;
  MusterRpcCaller caller = {.role = MUSTER_ROLE_NONE};
  if (needed != MUSTER_ROLE_NONE) {
    muster_rpc_credentials_refresh (self->credentials);
    muster_rpc_credentials_identify (self->credentials, context,
                                     find (metadata, n_metadata, "authorization"), &caller);
  }
  if (caller.role >= needed) {
    done (user_data, NULL, 0, NULL, 0, GRPC_STATUS_OK, NULL);
    return;
  }
  char why[MAX_REFUSAL];
  grpc_status_code code = refuse (&caller, method, needed, why);
  g_autofree char *text = muster_grpc_status_text (why);
  log_refusal (self, &caller, path, text);
  done (user_data, NULL, 0, NULL, 0, code, text);
}

grpc_server_credentials *
muster_rpc_guard_credentials (MusterRpcGuard *self, GError **error)
{
  grpc_server_credentials *made = make_credentials (self, error);
  if (made == NULL || !muster_rpc_credentials_has_guard (self->credentials))
    return made;
  g_atomic_ref_count_inc (&self->refs);
  grpc_server_credentials_set_auth_metadata_processor (
      made, (grpc_auth_metadata_processor){process, muster_rpc_guard_unref, self});
  return made;
}

static gboolean
is_tls (const grpc_auth_context *context)
{
  grpc_auth_property_iterator all = grpc_auth_context_find_properties_by_name (
      context, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  const grpc_auth_property *type = grpc_auth_property_iterator_next (&all);
  return type != NULL && g_str_equal (type->value, GRPC_SSL_TRANSPORT_SECURITY_TYPE);
}

/* Nothing says at which address a call came in. Usually there is one; of several, the lowest role
 * counts, without those that can't have let it in. */
void
muster_rpc_guards_identify (GPtrArray *guards, grpc_call *call, const grpc_slice *authorization,
                            MusterRpcCaller *caller)
{
  grpc_auth_context *context = grpc_call_auth_context (call);
  gboolean has_tls = context != NULL && is_tls (context);
  gboolean is_let_in = FALSE;
  *caller = (MusterRpcCaller){.role = MUSTER_ROLE_ADMIN};
  for (guint i = 0; i < guards->len; i++) {
    const MusterRpcGuard *guard = guards->pdata[i];
    MusterRpcCaller here;
    if (muster_rpc_credentials_has_tls (guard->credentials) != has_tls)
      continue;
    muster_rpc_credentials_identify (guard->credentials, context, authorization, &here);
    if (is_let_in && (here.lacks_token || here.role > caller->role))
      continue;
    *caller = here;
    is_let_in = !here.lacks_token;
  }
  if (context != NULL)
    grpc_auth_context_release (context);
}
