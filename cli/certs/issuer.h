// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "rpc/secret_private.h"

G_BEGIN_DECLS

/* MusterIssuer is a certificate authority: a key and its certificate, which sign others. Keys are
 * of the curve P-256. One thread. */

typedef struct _MusterIssuer MusterIssuer;

/* A certificate with its key, in PEM form. */
typedef struct {
  char *certificate; /* (owned) */
  MusterSecret key;
} MusterIssued;

void muster_issued_clear (MusterIssued *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterIssued, muster_issued_clear)

/* Makes one that is valid for this many days, and its files' content. */
MusterIssuer *muster_issuer_new (const char *name, int days, MusterIssued *issued, GError **error);
/* Reads one from its files; the key's must be closed to other users. */
MusterIssuer *muster_issuer_load (const char *certificate_file, const char *key_file,
                                  GError **error);
void muster_issuer_free (MusterIssuer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterIssuer, muster_issuer_free)

/* INVALID_ARGUMENT for a name, or a host name or IP address, that no certificate can have. */
gboolean muster_issuer_check_name (const char *name, GError **error);
gboolean muster_issuer_check_host (const char *host, GError **error);

/* Issues a client's certificate, or a server's for these host names and IP addresses (nullable) in
 * addition to its name, after the checks above. */
gboolean muster_issuer_issue (MusterIssuer *self, const char *name, const char *const *hosts,
                              int days, MusterIssued *issued, GError **error);

G_END_DECLS
