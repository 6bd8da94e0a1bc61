// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

G_BEGIN_DECLS

/* Opens a channel; gRPC must be started. self (nullable): plain text. (transfer full) */
grpc_channel *muster_rpc_credentials_open_channel (MusterRpcCredentials *self, const char *target,
                                                   const grpc_channel_args *args);
/* INVALID_ARGUMENT if a server has TLS settings but no certificate. */
grpc_server_credentials *muster_rpc_credentials_for_server (MusterRpcCredentials *self,
                                                            GError **error);

/* TRUE if there is an own certificate; FALSE for NULL. */
gboolean muster_rpc_credentials_has_certificate (const MusterRpcCredentials *self);

/* "Bearer TOKEN", wiped with its last reference (owned by self) (nullable). */
const grpc_slice *muster_rpc_credentials_authorization (const MusterRpcCredentials *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_channel_credentials, grpc_channel_credentials_release)
G_DEFINE_AUTOPTR_CLEANUP_FUNC (grpc_server_credentials, grpc_server_credentials_release)

G_END_DECLS
