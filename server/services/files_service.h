// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Files: checkpoints of other machines in this server's memory (rpc/proto/files.proto). */
void muster_files_service_enter (MusterServer *server);
/* Ends the streams that hold names. Idempotent. */
void muster_files_service_stop (MusterServer *server);

G_END_DECLS
