// SPDX-License-Identifier: Apache-2.0
#include "base/require.h"
#include "rpc/credentials_private.h"
#include "rpc/grpc_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC (BIO, BIO_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (X509, X509_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (EVP_PKEY, EVP_PKEY_free)

/* Four times the size of a system's bundle of authorities. */
#define MAX_PEM   ((gsize)1 << 20)
#define MAX_TOKEN ((gsize)4096)
/* Whitespace that an editor may add after a token. */
#define MAX_BLANK ((gsize)64)

/* Text that is wiped when it is freed. */
typedef struct {
  char *text; /* (owned) (nullable) NUL-terminated */
  gsize size;
} Secret;

struct _MusterRpcCredentials {
  gatomicrefcount refs;
  gboolean has_tls;
  Secret certificate, key, ca; /* text is NULL where there is none */
  gboolean has_token;
  grpc_slice authorization; /* with has_token: "Bearer TOKEN" */
  /* (nullable) One for all clients, which thus can share connections; from the first channel on,
   * since it starts gRPC. */
  grpc_channel_credentials *channel;
};

/* --- what is read from files --- */

static void
secret_clear (Secret *self)
{
  if (self->text != NULL)
    explicit_bzero (self->text, self->size);
  g_clear_pointer (&self->text, g_free);
  self->size = 0;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Secret, secret_clear)

/* Reads until the end or until `buffer` is full; -1 with errno. */
static gssize
read_all (int fd, char *buffer, gsize size)
{
  gsize n_read = 0;
  while (n_read < size) {
    gssize n = read (fd, buffer + n_read, size - n_read);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return -1;
    if (n == 0)
      break;
    n_read += (gsize)n;
  }
  return (gssize)n_read;
}

/* Reads a file of at most max_size bytes; `what` names it in the error, as "the token file". */
static gboolean
secret_read (Secret *self, const char *path, const char *what, gsize max_size, GError **error)
{
  g_auto (Secret) read = {g_malloc0 (max_size + 2), max_size + 2};
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  gssize size = fd >= 0 ? read_all (fd, read.text, max_size + 1) : -1;
  int why = errno;
  if (fd >= 0)
    close (fd);
  if (size < 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "can't read %s '%s': %s", what, path,
                        g_strerror (why));
  }
  if ((gsize)size > max_size) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "%s '%s' is too long: the limit is %" G_GSIZE_FORMAT " bytes", what, path,
                        max_size);
  }
  *self = (Secret){g_malloc ((gsize)size + 1), (gsize)size};
  memcpy (self->text, read.text, (gsize)size + 1);
  return TRUE;
}

static gboolean
bad_pem (const char *path, const char *why, GError **error)
{
  ERR_clear_error ();
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "'%s' %s", path, why);
}

/* A key with a password is refused: there is no prompt on the terminal. */
static int
give_no_password (char *buffer G_GNUC_UNUSED, int size G_GNUC_UNUSED, int is_writing G_GNUC_UNUSED,
                  void *data G_GNUC_UNUSED)
{
  return -1;
}

/* FALSE with INVALID_ARGUMENT if the text isn't one or more PEM certificates. The path is for the
 * error. */
static gboolean
pem_check_certificates (const Secret *pem, const char *path, GError **error)
{
  g_autoptr (BIO) bio = BIO_new_mem_buf (pem->text, (int)pem->size);
  guint n_read = 0;
  for (;;) {
    g_autoptr (X509) certificate = PEM_read_bio_X509 (bio, NULL, give_no_password, NULL);
    if (certificate == NULL)
      break;
    n_read++;
  }
  gboolean is_at_end = ERR_GET_REASON (ERR_peek_last_error ()) == PEM_R_NO_START_LINE;
  ERR_clear_error ();
  if (n_read == 0)
    return bad_pem (path, "contains no certificate in PEM form", error);
  if (!is_at_end || strlen (pem->text) != pem->size)
    return bad_pem (path, "contains an invalid certificate", error);
  return TRUE;
}

/* The same if the key isn't one, or not that of the first certificate. */
static gboolean
pem_check_key (const Secret *key, const char *key_path, const Secret *certificate,
               const char *certificate_path, GError **error)
{
  g_autoptr (BIO) key_bio = BIO_new_mem_buf (key->text, (int)key->size);
  g_autoptr (EVP_PKEY) parsed = PEM_read_bio_PrivateKey (key_bio, NULL, give_no_password, NULL);
  if (parsed == NULL || strlen (key->text) != key->size)
    return bad_pem (key_path, "contains no private key in PEM form without a password", error);
  g_autoptr (BIO) own_bio = BIO_new_mem_buf (certificate->text, (int)certificate->size);
  g_autoptr (X509) own = PEM_read_bio_X509 (own_bio, NULL, give_no_password, NULL);
  if (own != NULL && X509_check_private_key (own, parsed) == 1)
    return TRUE;
  g_autofree char *why =
      g_strdup_printf ("is not the key of the certificate in '%s'", certificate_path);
  return bad_pem (key_path, why, error);
}

static gboolean
fail_credentials (GError **error, const char *text)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", text);
}

static gboolean
read_certificates (Secret *pem, const char *path, const char *what, GError **error)
{
  return path == NULL || (secret_read (pem, path, what, MAX_PEM, error) &&
                          pem_check_certificates (pem, path, error));
}

static gboolean
read_pems (MusterRpcCredentials *self, const MusterRpcSecurity *security, GError **error)
{
  const char *certificate = security->certificate_file;
  const char *key = security->key_file;
  if (certificate == NULL && key != NULL)
    return fail_credentials (error, "the key has no certificate; set both files");
  if (certificate != NULL && key == NULL)
    return fail_credentials (error, "the certificate has no key; set both files");
  if (!read_certificates (&self->ca, security->ca_file, "the CA file", error) ||
      !read_certificates (&self->certificate, certificate, "the certificate file", error))
    return FALSE;
  return key == NULL || (secret_read (&self->key, key, "the key file", MAX_PEM, error) &&
                         pem_check_key (&self->key, key, &self->certificate, certificate, error));
}

static gboolean
bad_token (const char *path, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the token file '%s' %s", path, why);
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
  g_auto (Secret) token = {0};
  if (path == NULL)
    return TRUE;
  if (!secret_read (&token, path, "the token file", MAX_TOKEN + MAX_BLANK, error))
    return FALSE;
  gsize size = token.size;
  while (size > 0 && g_ascii_isspace (token.text[size - 1]))
    size--;
  if (size == 0)
    return bad_token (path, "is empty", error);
  if (size > MAX_TOKEN)
    return bad_token (path, "is too long: the limit is 4096 bytes", error);
  for (gsize i = 0; i < size; i++)
    if (!g_ascii_isprint (token.text[i]))
      return bad_token (path, "must contain one line of printable ASCII", error);

  gsize head = strlen (scheme);
  char *text = g_malloc (head + size);
  memcpy (text, scheme, head);
  memcpy (text + head, token.text, size);
  self->authorization = grpc_slice_new_with_len (text, head + size, wipe);
  self->has_token = TRUE;
  return TRUE;
}

/* --- credentials --- */

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
  secret_clear (&self->certificate);
  secret_clear (&self->key);
  secret_clear (&self->ca);
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
    fail_credentials (error, "a TLS server needs a certificate and its key; set both files");
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
