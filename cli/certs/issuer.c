// SPDX-License-Identifier: Apache-2.0
/* Issues certificates with OpenSSL: an authority of its own, keys, and certificates for names
 * and addresses. */
#include "cli/certs/issuer.h"

#include "rpc/pem_private.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC (BIO, BIO_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (X509, X509_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (X509_EXTENSION, X509_EXTENSION_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (EVP_PKEY, EVP_PKEY_free)

#define MAX_PEM ((gsize)1 << 20)
/* RFC 5280's bound on a common name. */
#define MAX_NAME 64
/* For clocks that are behind. */
#define LEEWAY_S (5 * 60)
/* Positive, and never used before but by great chance. */
#define SERIAL_BYTES 16

struct _MusterIssuer {
  X509 *certificate; /* (owned) */
  EVP_PKEY *key;     /* (owned) */
};

void
muster_issued_clear (MusterIssued *self)
{
  g_clear_pointer (&self->certificate, g_free);
  muster_secret_clear (&self->key);
}

void
muster_issuer_free (MusterIssuer *self)
{
  if (self == NULL)
    return;
  X509_free (self->certificate);
  EVP_PKEY_free (self->key);
  g_free (self);
}

static gboolean
fail_openssl (const char *what, GError **error)
{
  char text[256];
  ERR_error_string_n (ERR_get_error (), text, sizeof text);
  ERR_clear_error ();
  return muster_fail (error, MUSTER_ERROR_INTERNAL, "%s failed: %s", what, text);
}

/* --- what is written --- */

static char *
text_of (BIO *bio, gsize *size)
{
  char *data;
  long n = BIO_get_mem_data (bio, &data);
  *size = (gsize)n;
  return g_strndup (data, (gsize)n);
}

static gboolean
write_pems (X509 *certificate, EVP_PKEY *key, MusterIssued *issued, GError **error)
{
  g_autoptr (BIO) public = BIO_new (BIO_s_mem ());
  g_autoptr (BIO) secret = BIO_new (BIO_s_secmem ());
  gsize size;
  if (PEM_write_bio_X509 (public, certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey (secret, key, NULL, NULL, 0, NULL, NULL) != 1)
    return fail_openssl ("writing a certificate", error);
  issued->certificate = text_of (public, &size);
  issued->key.text = text_of (secret, &issued->key.size);
  return TRUE;
}

/* --- certificates --- */

static gboolean
extend (X509 *certificate, X509 *issuer, int nid, const char *value, GError **error)
{
  X509V3_CTX context;
  X509V3_set_ctx (&context, issuer, certificate, NULL, NULL, 0);
  g_autoptr (X509_EXTENSION) extension = X509V3_EXT_conf_nid (NULL, &context, nid, value);
  if (extension == NULL || X509_add_ext (certificate, extension, -1) != 1)
    return fail_openssl ("making a certificate", error);
  return TRUE;
}

static gboolean
set_serial (X509 *certificate)
{
  guint8 bytes[SERIAL_BYTES];
  if (RAND_bytes (bytes, sizeof bytes) != 1)
    return FALSE;
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  BIGNUM *number = BN_bin2bn (bytes, sizeof bytes, NULL);
  gboolean is_set =
      number != NULL && BN_to_ASN1_INTEGER (number, X509_get_serialNumber (certificate)) != NULL;
  BN_free (number);
  return is_set;
}

/* A certificate without extensions. issuer (nullable): itself. */
static X509 *
make (const char *name, EVP_PKEY *key, X509 *issuer, int days, GError **error)
{
  g_autoptr (X509) made = X509_new ();
  X509_NAME *subject = made != NULL ? X509_get_subject_name (made) : NULL;
  gboolean is_made =
      made != NULL && X509_set_version (made, X509_VERSION_3) == 1 && set_serial (made) &&
      X509_gmtime_adj (X509_getm_notBefore (made), -LEEWAY_S) != NULL &&
      X509_time_adj_ex (X509_getm_notAfter (made), days, 0, NULL) != NULL &&
      X509_NAME_add_entry_by_txt (subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                                  0) == 1 &&
      X509_set_issuer_name (made, issuer != NULL ? X509_get_subject_name (issuer) : subject) == 1 &&
      X509_set_pubkey (made, key) == 1;
  if (!is_made) {
    fail_openssl ("making a certificate", error);
    return NULL;
  }
  return g_steal_pointer (&made);
}

static gboolean
sign (X509 *certificate, EVP_PKEY *key, GError **error)
{
  return X509_sign (certificate, key, EVP_sha256 ()) > 0 ||
         fail_openssl ("signing a certificate", error);
}

static EVP_PKEY *
make_key (GError **error)
{
  EVP_PKEY *key = EVP_EC_gen ("P-256");
  if (key == NULL)
    fail_openssl ("making a key", error);
  return key;
}

MusterIssuer *
muster_issuer_new (const char *name, int days, MusterIssued *issued, GError **error)
{
  g_autoptr (EVP_PKEY) key = make_key (error);
  g_autoptr (X509) own = key != NULL ? make (name, key, NULL, days, error) : NULL;
  if (own == NULL ||
      !extend (own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0", error) ||
      !extend (own, own, NID_key_usage, "critical,keyCertSign,cRLSign", error) ||
      !extend (own, own, NID_subject_key_identifier, "hash", error) || !sign (own, key, error) ||
      !write_pems (own, key, issued, error))
    return NULL;
  MusterIssuer *self = g_new (MusterIssuer, 1);
  *self = (MusterIssuer){g_steal_pointer (&own), g_steal_pointer (&key)};
  return self;
}

MusterIssuer *
muster_issuer_load (const char *certificate_file, const char *key_file, GError **error)
{
  const MusterSecretFile files[] = {
      {certificate_file, "the CA file", MAX_PEM, FALSE},
      {key_file, "the CA's key file", MAX_PEM, TRUE},
  };
  g_auto (MusterSecret) certificate = {0};
  g_auto (MusterSecret) key = {0};
  if (!muster_secret_read (&certificate, &files[0], error) ||
      !muster_pem_check_certificates (&certificate, certificate_file, error) ||
      !muster_secret_read (&key, &files[1], error) ||
      !muster_pem_check_key (&key, key_file, &certificate, certificate_file, error))
    return NULL;
  g_autoptr (BIO) certificate_bio = BIO_new_mem_buf (certificate.text, (int)certificate.size);
  g_autoptr (BIO) key_bio = BIO_new_mem_buf (key.text, (int)key.size);
  MusterIssuer *self = g_new (MusterIssuer, 1);
  *self = (MusterIssuer){
      .certificate = PEM_read_bio_X509 (certificate_bio, NULL, NULL, NULL),
      .key = PEM_read_bio_PrivateKey (key_bio, NULL, NULL, NULL),
  };
  return self;
}

/* --- names --- */

gboolean
muster_issuer_check_name (const char *name, GError **error)
{
  gboolean is_good = *name != '\0' && strlen (name) <= MAX_NAME;
  for (const char *c = name; is_good && *c != '\0'; c++)
    is_good = g_ascii_isprint (*c) && strchr ("/\\,=*", *c) == NULL;
  return is_good || muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                                 "invalid name '%s' (use 1 to 64 printable ASCII characters "
                                 "without / \\ , = *)",
                                 name);
}

gboolean
muster_issuer_check_host (const char *host, GError **error)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.*";
  if (g_hostname_is_ip_address (host) || (*host != '\0' && host[strspn (host, allowed)] == '\0'))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid host '%s' (use a host name or an IP address)", host);
}

/* "DNS:localhost,IP:127.0.0.1"; NULL with an error. */
static char *
alternatives_of (const char *const *hosts, GError **error)
{
  GString *text = g_string_new (NULL);
  for (; *hosts != NULL; hosts++) {
    if (!muster_issuer_check_host (*hosts, error)) {
      g_string_free (text, TRUE);
      return NULL;
    }
    g_string_append_printf (text, "%s%s:%s", text->len > 0 ? "," : "",
                            g_hostname_is_ip_address (*hosts) ? "IP" : "DNS", *hosts);
  }
  return g_string_free (text, FALSE);
}

gboolean
muster_issuer_issue (MusterIssuer *self, const char *name, const char *const *hosts, int days,
                     MusterIssued *issued, GError **error)
{
  g_autofree char *alternatives = hosts != NULL ? alternatives_of (hosts, error) : NULL;
  if ((hosts != NULL && alternatives == NULL) || !muster_issuer_check_name (name, error))
    return FALSE;
  const char *usage = hosts != NULL ? "serverAuth" : "clientAuth";
  g_autoptr (EVP_PKEY) key = make_key (error);
  g_autoptr (X509) made = key != NULL ? make (name, key, self->certificate, days, error) : NULL;
  if (made == NULL ||
      !extend (made, self->certificate, NID_basic_constraints, "critical,CA:FALSE", error) ||
      !extend (made, self->certificate, NID_key_usage, "critical,digitalSignature", error) ||
      !extend (made, self->certificate, NID_ext_key_usage, usage, error) ||
      !extend (made, self->certificate, NID_authority_key_identifier, "keyid", error))
    return FALSE;
  if (alternatives != NULL &&
      !extend (made, self->certificate, NID_subject_alt_name, alternatives, error))
    return FALSE;
  return sign (made, self->key, error) && write_pems (made, key, issued, error);
}
