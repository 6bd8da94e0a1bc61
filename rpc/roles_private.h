// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/roles.h"

#include <grpc/grpc_security.h>

G_BEGIN_DECLS

/* The roles of client certificates, by name (element-type utf8 MusterRole). INVALID_ARGUMENT for
 * what isn't NAME=ROLE. (transfer full) */
GHashTable *muster_roles_read (const char *const *roles, GError **error);

/* The role of a connection's certificate: the highest of its names', else that of "*", else none.
 * name is the one that decided, else the common name, or "". */
MusterRole muster_roles_of (GHashTable *roles, const grpc_auth_context *context, char *name,
                            gsize name_size);

G_END_DECLS
