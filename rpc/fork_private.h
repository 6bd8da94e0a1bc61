// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* TRUE in a process that was forked after gRPC had started in it: gRPC's threads and those of its
 * users are missing there, and its connections are the parent's. What belongs to them is neither
 * used nor freed in such a process, nor are locks taken that a missing thread may hold. */
gboolean muster_rpc_is_forked (void);

/* FALSE with FAILED_PRECONDITION in such a process. */
gboolean muster_rpc_check_process (GError **error);

G_END_DECLS
