// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterRpcCredentials is the security settings of a client or server: TLS, mutual TLS, a bearer
 * token. Functions that take one treat NULL as plain text without a token. Immutable and
 * reference-counted; any thread. Secrets never appear in errors or logs, and are wiped with the
 * last reference. */

typedef struct _MusterRpcCredentials MusterRpcCredentials;

/* Paths of files, each (nullable). They are read once, by muster_rpc_credentials_new ().
 *
 * A client uses TLS if `tls` is set or any of the first three files is given. It trusts ca_file, or
 * the system's certificates, and presents its certificate to a server that asks for one. A server
 * uses TLS with certificate_file and key_file; with ca_file too, clients must present a certificate
 * signed by it.
 *
 * A client sends the token from token_file with each call, but never in plain text beyond loopback:
 * such a call is INVALID_ARGUMENT. A server requires it for each call except open methods
 * (rpc_server.h): a call without it is UNAUTHENTICATED. */
typedef struct {
  const char *certificate_file; /* PEM: the own certificate, then the intermediate ones */
  const char *key_file;         /* PEM, without a password */
  const char *ca_file;          /* PEM, one or more certificates */
  const char *token_file;       /* one line, at most 4 KiB of printable ASCII */
  gboolean tls;                 /* clients only: use TLS even without files */
} MusterRpcSecurity;

/* INVALID_ARGUMENT names the file that can't be read or is invalid, a key without its certificate,
 * or one that doesn't match it. (transfer full) */
MusterRpcCredentials *muster_rpc_credentials_new (const MusterRpcSecurity *security,
                                                  GError **error);
MusterRpcCredentials *muster_rpc_credentials_ref (MusterRpcCredentials *self);
void muster_rpc_credentials_unref (MusterRpcCredentials *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcCredentials, muster_rpc_credentials_unref)

/* self may be NULL: FALSE. */
gboolean muster_rpc_credentials_has_tls (const MusterRpcCredentials *self);
gboolean muster_rpc_credentials_has_token (const MusterRpcCredentials *self);

G_END_DECLS
