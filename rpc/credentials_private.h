// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials.h"
#include "rpc/secret_private.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

G_BEGIN_DECLS

/* Opens a channel; gRPC must be started. self (nullable): plain text. *version (out) is that of the
 * files that it uses. (transfer full) */
grpc_channel *muster_rpc_credentials_open_channel (MusterRpcCredentials *self, const char *target,
                                                   const grpc_channel_args *args, guint *version);

/* The version of certificate, key and authorities: changes when they do. 0 for NULL. */
guint muster_rpc_credentials_version (MusterRpcCredentials *self);

/* A server's certificate, as it is now; *version (out) is its version. (transfer full) */
grpc_ssl_server_certificate_config *
muster_rpc_credentials_server_config (MusterRpcCredentials *self, guint *version);

/* A server's files as they are now, in PEM form, for servers other than gRPC's. */
typedef struct {
  MusterSecret certificate, key, ca; /* ca is empty if there is none */
  guint version;                     /* muster_rpc_credentials_version () */
} MusterRpcPems;

/* FALSE if self (nullable) has no certificate. Clear them with muster_rpc_pems_clear (). */
gboolean muster_rpc_credentials_pems (MusterRpcCredentials *self, MusterRpcPems *pems);
void muster_rpc_pems_clear (MusterRpcPems *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRpcPems, muster_rpc_pems_clear)

/* When the own certificate ends, in seconds since 1970; 0: there is none, or it can't be told. */
gint64 muster_rpc_credentials_expiry (MusterRpcCredentials *self); /* accepts NULL */

/* TRUE if there is an own certificate; FALSE for NULL. */
gboolean muster_rpc_credentials_has_certificate (const MusterRpcCredentials *self);
/* TRUE if there is a file of authorities; FALSE for NULL. */
gboolean muster_rpc_credentials_has_ca (const MusterRpcCredentials *self);
/* TRUE if a server must look at each call: it has tokens, or roles for certificates. */
gboolean muster_rpc_credentials_has_guard (const MusterRpcCredentials *self);

/* Sets *authorization to "Bearer TOKEN" (transfer full), wiped with its last reference; FALSE if
 * there is no token. */
gboolean muster_rpc_credentials_authorization (MusterRpcCredentials *self,
                                               grpc_slice *authorization);

/* The version of the tokens: changes when they do. 0 for NULL. */
guint muster_rpc_credentials_token_version (MusterRpcCredentials *self);
/* Looks at the files now. TRUE if the token isn't that of the version any more. */
gboolean muster_rpc_credentials_has_newer_token (MusterRpcCredentials *self, guint version);

/* Who calls, as a server sees it. */
typedef struct {
  MusterRole role;
  gboolean lacks_token; /* the server requires a token, and there was none */
  gboolean is_unknown;  /* the token is wrong */
  guint token_line;     /* the token's line of the token file; 0: none */
  guint64 token_mark;   /* tells the token from others; 0: none */
  char name[256];       /* the certificate's name that gave the role, or its common name; or "" */
} MusterRpcCaller;

/* context is of the caller's connection, authorization its header (nullable). */
void muster_rpc_credentials_identify (MusterRpcCredentials *self, const grpc_auth_context *context,
                                      const grpc_slice *authorization, MusterRpcCaller *caller);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_channel_credentials, grpc_channel_credentials_release)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_server_credentials, grpc_server_credentials_release)

G_END_DECLS
