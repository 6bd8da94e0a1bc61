// SPDX-License-Identifier: Apache-2.0
#include "rpc/digest_private.h"

#include <openssl/evp.h>

/* OpenSSL's, since it uses the processor's instructions for it: some 2 GB/s, ten times GLib's. */
MusterDigest
muster_digest_of (MusterRope *rope)
{
  const GPtrArray *pieces = muster_rope_pieces (rope);
  MusterDigest digest = {{0}};
  EVP_MD_CTX *context = EVP_MD_CTX_new ();
  g_assert (context != NULL && EVP_DigestInit_ex (context, EVP_sha256 (), NULL) == 1);
  for (guint i = 0; i < pieces->len; i++) {
    gsize size;
    const void *data = g_bytes_get_data (pieces->pdata[i], &size);
    g_assert (EVP_DigestUpdate (context, data, size) == 1);
  }
  g_assert (EVP_DigestFinal_ex (context, digest.bytes, NULL) == 1);
  EVP_MD_CTX_free (context);
  return digest;
}
