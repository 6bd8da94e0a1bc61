// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "rpc/credentials.h"

static const MusterField fields[] = {
    MUSTER_TYPED_FIELD (MusterRpcSecurity, roles, g_strv_get_type),
    MUSTER_STRING_FIELD (MusterRpcSecurity, certificate_file),
    MUSTER_STRING_FIELD (MusterRpcSecurity, key_file),
    MUSTER_STRING_FIELD (MusterRpcSecurity, ca_file),
    MUSTER_STRING_FIELD (MusterRpcSecurity, token_file),
};
MUSTER_DEFINE_OPTIONS (MusterRpcSecurity, muster_rpc_security, fields)

MusterRpcSecurity *
muster_rpc_security_new (void)
{
  return g_new0 (MusterRpcSecurity, 1);
}

void
muster_rpc_security_set_roles (MusterRpcSecurity *self, const char *const *roles)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &fields[0], roles);
}
