// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterRpcCredentials say how a client or a server is secured: TLS, mutual TLS, a bearer token.
 * Where one is taken, NULL is plain text without a token. Immutable and counted; any thread may use
 * them. What is secret stands in no error and no log, and is wiped when the last user has gone. */

typedef struct _MusterRpcCredentials MusterRpcCredentials;

/* Paths of files, each (nullable); they are read once, when the credentials are made.
 *
 * A client uses TLS if `tls` is set or any of the first three files is given: it trusts ca_file, or
 * what the system trusts, and shows its certificate to a server that asks for one. A server uses
 * TLS with certificate_file and key_file; with ca_file besides, a client must show a certificate
 * that it signed.
 *
 * With token_file a client sends the token with each call, but never in plain text beyond loopback:
 * such a call is INVALID_ARGUMENT. A server demands it of each call, except of open methods
 * (rpc_server.h): one without it is UNAUTHENTICATED. */
typedef struct {
  const char *certificate_file; /* PEM: one's own certificate, then those that lead to the root */
  const char *key_file;         /* PEM, without a password */
  const char *ca_file;          /* PEM, one certificate or more */
  const char *token_file;       /* one line, at most 4 KiB of printable ASCII */
  gboolean tls;                 /* a client's: TLS, whether or not a file is given */
} MusterRpcSecurity;

/* INVALID_ARGUMENT names the file that can't be read or isn't what it should be, a key without its
 * certificate, or one that doesn't belong to it. (transfer full) */
MusterRpcCredentials *muster_rpc_credentials_new (const MusterRpcSecurity *security,
                                                  GError **error);
MusterRpcCredentials *muster_rpc_credentials_ref (MusterRpcCredentials *self);
void muster_rpc_credentials_unref (MusterRpcCredentials *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcCredentials, muster_rpc_credentials_unref)

/* self may be NULL: FALSE. */
gboolean muster_rpc_credentials_has_tls (const MusterRpcCredentials *self);
gboolean muster_rpc_credentials_has_token (const MusterRpcCredentials *self);

G_END_DECLS
