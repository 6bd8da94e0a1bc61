// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"

#include <string.h>

/* A system's bundle of all authorities has a quarter of it. */
#define MAX_PEM   ((gsize)1 << 20)
#define MAX_TOKEN ((gsize)4096)
/* What an editor may leave behind a token. */
#define MAX_BLANK ((gsize)64)

struct _MusterRpcCredentials {
  gatomicrefcount refs;
  gboolean has_tls;
  MusterSecret certificate, key, ca; /* text is NULL where there is none */
  gboolean has_token;
  grpc_slice authorization; /* with has_token: "Bearer TOKEN" */
  /* (nullable) One for all clients, which thus can share connections; from the first channel on,
   * since it starts gRPC. */
  grpc_channel_credentials *channel;
};

static gboolean
fail (GError **error, const char *text)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, text);
  return FALSE;
}

static gboolean
read_certificates (MusterSecret *pem, const char *path, const char *what, GError **error)
{
  return path == NULL || (muster_secret_read (pem, path, what, MAX_PEM, error) &&
                          muster_pem_check_certificates (pem, path, error));
}

static gboolean
read_pems (MusterRpcCredentials *self, const MusterRpcSecurity *security, GError **error)
{
  const char *certificate = security->certificate_file;
  const char *key = security->key_file;
  if (certificate == NULL && key != NULL)
    return fail (error, "a key is given without its certificate: give both files");
  if (certificate != NULL && key == NULL)
    return fail (error, "a certificate is given without its key: give both files");
  if (!read_certificates (&self->ca, security->ca_file, "the CA file", error) ||
      !read_certificates (&self->certificate, certificate, "the certificate file", error))
    return FALSE;
  return key == NULL ||
         (muster_secret_read (&self->key, key, "the key file", MAX_PEM, error) &&
          muster_pem_check_key (&self->key, key, &self->certificate, certificate, error));
}

static gboolean
bad_token (const char *path, const char *why, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "the token file '%s' %s", path,
               why);
  return FALSE;
}

static void
wipe (void *text, size_t size)
{
  explicit_bzero (text, size);
  g_free (text);
}

static gboolean
read_token (MusterRpcCredentials *self, const char *path, GError **error)
{
  static const char scheme[] = "Bearer ";
  g_auto (MusterSecret) token = {0};
  if (path == NULL)
    return TRUE;
  if (!muster_secret_read (&token, path, "the token file", MAX_TOKEN + MAX_BLANK, error))
    return FALSE;
  gsize size = token.size;
  while (size > 0 && g_ascii_isspace (token.text[size - 1]))
    size--;
  if (size == 0)
    return bad_token (path, "is empty", error);
  if (size > MAX_TOKEN)
    return bad_token (path, "is too long: a token may have 4096 bytes", error);
  for (gsize i = 0; i < size; i++)
    if (!g_ascii_isprint (token.text[i]))
      return bad_token (path, "must hold one line of printable ASCII", error);

  gsize head = strlen (scheme);
  char *text = g_malloc (head + size);
  memcpy (text, scheme, head);
  memcpy (text + head, token.text, size);
  self->authorization = grpc_slice_new_with_len (text, head + size, wipe);
  self->has_token = TRUE;
  return TRUE;
}

static grpc_channel_credentials *
make_channel_credentials (const MusterRpcCredentials *self)
{
  if (!self->has_tls)
    return grpc_insecure_credentials_create ();
  grpc_ssl_pem_key_cert_pair own = {self->key.text, self->certificate.text};
  return grpc_ssl_credentials_create_ex (self->ca.text, self->key.text != NULL ? &own : NULL, NULL,
                                         NULL);
}

MusterRpcCredentials *
muster_rpc_credentials_new (const MusterRpcSecurity *security, GError **error)
{
  muster_require (error, NULL, security);
  muster_openssl_init ();
  g_autoptr (MusterRpcCredentials) self = g_new0 (MusterRpcCredentials, 1);
  g_atomic_ref_count_init (&self->refs);
  if (!read_pems (self, security, error) || !read_token (self, security->token_file, error))
    return NULL;
  self->has_tls = security->tls || self->certificate.text != NULL || self->ca.text != NULL;
  return g_steal_pointer (&self);
}

MusterRpcCredentials *
muster_rpc_credentials_ref (MusterRpcCredentials *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_rpc_credentials_unref (MusterRpcCredentials *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  muster_secret_clear (&self->certificate);
  muster_secret_clear (&self->key);
  muster_secret_clear (&self->ca);
  if (self->has_token)
    grpc_slice_unref (self->authorization);
  g_clear_pointer (&self->channel, grpc_channel_credentials_release);
  g_free (self);
}

gboolean
muster_rpc_credentials_has_tls (const MusterRpcCredentials *self)
{
  return self != NULL && self->has_tls;
}

gboolean
muster_rpc_credentials_has_token (const MusterRpcCredentials *self)
{
  return self != NULL && self->has_token;
}

gboolean
muster_rpc_credentials_has_certificate (const MusterRpcCredentials *self)
{
  return self != NULL && self->certificate.text != NULL;
}

const grpc_slice *
muster_rpc_credentials_authorization (const MusterRpcCredentials *self)
{
  return muster_rpc_credentials_has_token (self) ? &self->authorization : NULL;
}

grpc_channel *
muster_rpc_credentials_open_channel (MusterRpcCredentials *self, const char *target,
                                     const grpc_channel_args *args)
{
  if (self == NULL) {
    g_autoptr (grpc_channel_credentials) plain = grpc_insecure_credentials_create ();
    return grpc_channel_create (target, plain, args);
  }
  if (g_once_init_enter (&self->channel))
    g_once_init_leave (&self->channel, make_channel_credentials (self));
  return grpc_channel_create (target, self->channel, args);
}

grpc_server_credentials *
muster_rpc_credentials_for_server (MusterRpcCredentials *self, GError **error)
{
  if (!muster_rpc_credentials_has_tls (self))
    return grpc_insecure_server_credentials_create ();
  if (!muster_rpc_credentials_has_certificate (self)) {
    fail (error, "a server needs a certificate and its key for TLS: give both files");
    return NULL;
  }
  grpc_ssl_pem_key_cert_pair own = {self->key.text, self->certificate.text};
  grpc_ssl_client_certificate_request_type asks =
      self->ca.text != NULL ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                            : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return grpc_ssl_server_credentials_create_with_options (
      grpc_ssl_server_credentials_create_options_using_config (
          asks, grpc_ssl_server_certificate_config_create (self->ca.text, &own, 1)));
}
