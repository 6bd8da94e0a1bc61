// SPDX-License-Identifier: Apache-2.0
#include "rpc/credentials_private.h"

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

void
muster_secret_clear (MusterSecret *self)
{
  if (self->text != NULL)
    explicit_bzero (self->text, self->size);
  g_clear_pointer (&self->text, g_free);
  self->size = 0;
}

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

gboolean
muster_secret_read (MusterSecret *self, const char *path, const char *what, gsize max_size,
                    GError **error)
{
  g_auto (MusterSecret) read = {g_malloc0 (max_size + 2), max_size + 2};
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  gssize size = fd >= 0 ? read_all (fd, read.text, max_size + 1) : -1;
  int why = errno;
  if (fd >= 0)
    close (fd);
  if (size < 0) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "can't read %s '%s': %s", what,
                 path, g_strerror (why));
    return FALSE;
  }
  if ((gsize)size > max_size) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "%s '%s' is too long: it may have %" G_GSIZE_FORMAT " bytes", what, path,
                 max_size);
    return FALSE;
  }
  *self = (MusterSecret){g_malloc ((gsize)size + 1), (gsize)size};
  memcpy (self->text, read.text, (gsize)size + 1);
  return TRUE;
}

static gboolean
bad_pem (const char *path, const char *why, GError **error)
{
  ERR_clear_error ();
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "'%s' %s", path, why);
  return FALSE;
}

/* A key with a password is refused: nobody is asked for it on the terminal. */
static int
give_no_password (char *buffer G_GNUC_UNUSED, int size G_GNUC_UNUSED, int is_writing G_GNUC_UNUSED,
                  void *data G_GNUC_UNUSED)
{
  return -1;
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
    return bad_pem (path, "holds no certificate in PEM form", error);
  if (!is_at_end || strlen (pem->text) != pem->size)
    return bad_pem (path, "holds a broken certificate", error);
  return TRUE;
}

gboolean
muster_pem_check_key (const MusterSecret *key, const char *key_path,
                      const MusterSecret *certificate, const char *certificate_path, GError **error)
{
  g_autoptr (BIO) key_bio = BIO_new_mem_buf (key->text, (int)key->size);
  g_autoptr (EVP_PKEY) parsed = PEM_read_bio_PrivateKey (key_bio, NULL, give_no_password, NULL);
  if (parsed == NULL || strlen (key->text) != key->size)
    return bad_pem (key_path, "holds no private key in PEM form without a password", error);
  g_autoptr (BIO) own_bio = BIO_new_mem_buf (certificate->text, (int)certificate->size);
  g_autoptr (X509) own = PEM_read_bio_X509 (own_bio, NULL, give_no_password, NULL);
  if (own != NULL && X509_check_private_key (own, parsed) == 1)
    return TRUE;
  g_autofree char *why =
      g_strdup_printf ("is not the key of the certificate in '%s'", certificate_path);
  return bad_pem (key_path, why, error);
}
