// SPDX-License-Identifier: Apache-2.0
#include "rpc/pem_private.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC (BIO, BIO_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (X509, X509_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (EVP_PKEY, EVP_PKEY_free)

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

static X509 *
read_first (const MusterSecret *pem)
{
  g_autoptr (BIO) bio = BIO_new_mem_buf (pem->text, (int)pem->size);
  return PEM_read_bio_X509 (bio, NULL, give_no_password, NULL);
}

gboolean
muster_pem_check_certificates (const MusterSecret *pem, const char *path, GError **error)
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

gboolean
muster_pem_check_key (const MusterSecret *key, const char *key_path,
                      const MusterSecret *certificate, const char *certificate_path, GError **error)
{
  g_autoptr (BIO) key_bio = BIO_new_mem_buf (key->text, (int)key->size);
  g_autoptr (EVP_PKEY) parsed = PEM_read_bio_PrivateKey (key_bio, NULL, give_no_password, NULL);
  if (parsed == NULL || strlen (key->text) != key->size)
    return bad_pem (key_path, "contains no private key in PEM form without a password", error);
  g_autoptr (X509) own = read_first (certificate);
  if (own != NULL && X509_check_private_key (own, parsed) == 1)
    return TRUE;
  g_autofree char *why =
      g_strdup_printf ("is not the key of the certificate in '%s'", certificate_path);
  return bad_pem (key_path, why, error);
}

gint64
muster_pem_expiry (const MusterSecret *certificate)
{
  g_autoptr (X509) first = read_first (certificate);
  struct tm end;
  if (first == NULL || ASN1_TIME_to_tm (X509_get0_notAfter (first), &end) != 1)
    return 0;
  return (gint64)timegm (&end);
}

gboolean
muster_pem_has_expired (const MusterSecret *certificate)
{
  g_autoptr (X509) first = read_first (certificate);
  return first != NULL && X509_cmp_current_time (X509_get0_notAfter (first)) < 0;
}
