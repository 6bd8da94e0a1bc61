// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "rpc/credentials.h"

MUSTER_DEFINE_OPTIONS (MusterRpcSecurity, muster_rpc_security)
