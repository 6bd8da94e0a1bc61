// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

G_BEGIN_DECLS

/* Text that is wiped when it is freed. */
typedef struct {
  char *text; /* (owned) (nullable) NUL-terminated */
  gsize size;
} MusterSecret;

void muster_secret_clear (MusterSecret *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSecret, muster_secret_clear)

/* Reads a file of at most max_size bytes; `what` names it in the error, as "the token file". */
gboolean muster_secret_read (MusterSecret *self, const char *path, const char *what, gsize max_size,
                             GError **error);

/* FALSE with INVALID_ARGUMENT if the text isn't one or more PEM certificates; or if the key isn't
 * one, or not that of the first certificate. The paths are for the error. */
gboolean muster_pem_check_certificates (const MusterSecret *pem, const char *path, GError **error);
gboolean muster_pem_check_key (const MusterSecret *key, const char *key_path,
                               const MusterSecret *certificate, const char *certificate_path,
                               GError **error);

/* Where gRPC comes in, which has been started; self NULL is plain text. (transfer full) */
grpc_channel *muster_rpc_credentials_open_channel (MusterRpcCredentials *self, const char *target,
                                                   const grpc_channel_args *args);
/* INVALID_ARGUMENT for a server that was given something for TLS, but no certificate. */
grpc_server_credentials *muster_rpc_credentials_for_server (MusterRpcCredentials *self,
                                                            GError **error);

/* Has it a certificate of its own? FALSE for NULL. */
gboolean muster_rpc_credentials_has_certificate (const MusterRpcCredentials *self);

/* "Bearer TOKEN"; wiped when its last reference goes (owned by self) (nullable). */
const grpc_slice *muster_rpc_credentials_authorization (const MusterRpcCredentials *self);

/* Has each call that comes in by `secured` show that text, except those of the open methods
 * (element-type char *, a "/package.Service/Name" each), before its request is read. */
void muster_rpc_guard (grpc_server_credentials *secured, const grpc_slice *authorization,
                       GPtrArray *open_methods);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_channel_credentials, grpc_channel_credentials_release)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_server_credentials, grpc_server_credentials_release)

G_END_DECLS
