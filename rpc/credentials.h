// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/roles.h"

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterRpcCredentials:
 *
 * The security settings of a client or server: TLS, mutual TLS, tokens, roles. Functions that take
 * one treat %NULL as plain text without a token. Reference-counted; any thread. Secrets never
 * appear in errors or logs, and are wiped with the last reference.
 *
 * The files are read again when they have changed (looked at once a second, while the credentials
 * are used): tokens count from the next call, certificates, keys and authorities from the next
 * connection. Files that are invalid or don't fit together change nothing and are warned about.
 */
typedef struct _MusterRpcCredentials MusterRpcCredentials;

#define MUSTER_TYPE_RPC_CREDENTIALS (muster_rpc_credentials_get_type ())
GType muster_rpc_credentials_get_type (void);

/**
 * MusterRpcSecurity:
 * @certificate_file: PEM: the own certificate, then the intermediate ones
 * @key_file: PEM, without a password
 * @ca_file: PEM, one or more certificates
 * @token_file: a client's has one token, at most 4 KiB of printable ASCII. A server's (@serves) has
 *   any number, one per line, each "TOKEN", which is an administrator's, "ROLE TOKEN", or "ROLE
 *   sha256:HEX" with the token's SHA-256. Lines that begin with '#' are comments
 * @tls: clients only: use TLS even without files
 * @serves: a server's: only the hash of each token is kept; it can't call others
 * @roles: (array zero-terminated=1): servers with @ca_file: "NAME=ROLE" for each common name or
 *   subject alternative name of a client certificate, "*=ROLE" for all others; without that, others
 *   have no role (nullable)
 *
 * Paths of files, each may be %NULL, and how they are used.
 *
 * A client uses TLS if @tls is set or any of the first three files is given. It trusts @ca_file, or
 * the system's certificates, and presents its certificate to a server that asks for one. A server
 * uses TLS with @certificate_file and @key_file; with @ca_file too, clients must present a
 * certificate signed by it.
 *
 * A client sends the token from @token_file with each call, but never in plain text beyond
 * loopback: such a call is INVALID_ARGUMENT. A server requires a token for each call except open
 * methods: a call without one is UNAUTHENTICATED.
 *
 * The key file and the token file must be closed to other users: mode 600, or 640 if root owns
 * them.
 *
 * A caller's role is the lower of its token's and its certificate's. A server without @token_file
 * gives every token's place %MUSTER_ROLE_ADMIN, one without @ca_file or without @roles every
 * certificate's. A method above the caller's role is PERMISSION_DENIED.
 */
typedef struct {
  const char *certificate_file;
  const char *key_file;
  const char *ca_file;
  const char *token_file;
  gboolean tls;
  gboolean serves;
  const char *const *roles;
} MusterRpcSecurity;

#define MUSTER_TYPE_RPC_SECURITY (muster_rpc_security_get_type ())
GType muster_rpc_security_get_type (void);

/**
 * muster_rpc_credentials_new:
 * @security: settings, which are copied
 *
 * Reads the files. INVALID_ARGUMENT names the file that can't be read, is invalid or is open to
 * other users, a key without its certificate, or one that doesn't match it.
 *
 * Returns: (transfer full): credentials
 */
MusterRpcCredentials *muster_rpc_credentials_new (const MusterRpcSecurity *security,
                                                  GError **error);

/**
 * muster_rpc_credentials_ref: (skip)
 * @self: credentials
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterRpcCredentials *muster_rpc_credentials_ref (MusterRpcCredentials *self);

/**
 * muster_rpc_credentials_unref: (skip)
 * @self: (nullable): credentials
 *
 * Drops a reference; the last one wipes and frees them.
 */
void muster_rpc_credentials_unref (MusterRpcCredentials *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcCredentials, muster_rpc_credentials_unref)

/**
 * muster_rpc_credentials_has_tls:
 * @self: (nullable): credentials
 *
 * Tests whether connections are encrypted.
 *
 * Returns: %TRUE if so; %FALSE for %NULL
 */
gboolean muster_rpc_credentials_has_tls (const MusterRpcCredentials *self);

/**
 * muster_rpc_credentials_has_token:
 * @self: (nullable): credentials
 *
 * Tests whether calls carry a token or need one.
 *
 * Returns: %TRUE if so; %FALSE for %NULL
 */
gboolean muster_rpc_credentials_has_token (const MusterRpcCredentials *self);

/**
 * muster_rpc_credentials_reload:
 * @self: credentials
 *
 * Reads all files now, and logs what is new. INVALID_ARGUMENT if one is bad: all stay as they were.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_rpc_credentials_reload (MusterRpcCredentials *self, GError **error);

/**
 * muster_rpc_credentials_refresh:
 * @self: (nullable): credentials
 *
 * Reads the files if they have changed, at most once a second; logs what became of it.
 */
void muster_rpc_credentials_refresh (MusterRpcCredentials *self);

/**
 * muster_rpc_credentials_role:
 * @self: (nullable): credentials; %NULL: every caller is an administrator
 * @token: (nullable): the caller's token
 * @size: its bytes; -1: it is NUL-terminated
 *
 * The role of a caller that shows this token and no certificate: where no token is required
 * %MUSTER_ROLE_ADMIN, or %MUSTER_ROLE_NONE if a client certificate is.
 *
 * Returns: the role
 */
MusterRole muster_rpc_credentials_role (MusterRpcCredentials *self, const char *token, gssize size);

G_END_DECLS
