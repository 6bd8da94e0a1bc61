// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Renew and Status. */
void muster_status_service_enter (MusterServer *server);
/* Resident memory; 0 if unknown. */
gint64 muster_server_resident_bytes (void);

G_END_DECLS
