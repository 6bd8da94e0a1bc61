// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/proto/muster.pb-c.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Renew and Status. Makes the status_watch, which its caller frees. */
void muster_status_service_enter (MusterServer *server);

/* What Status answers, at this moment. Any thread. */
typedef struct _MusterServerStatus MusterServerStatus;
MusterServerStatus *muster_server_status_new (MusterServer *server); /* (transfer full) */
void muster_server_status_free (MusterServerStatus *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServerStatus, muster_server_status_free)
/* (transfer none) */
const Muster__StatusResponse *muster_server_status_read (const MusterServerStatus *self);

/* For how long no step has ended, while steps run or a chief trains; 0 if none should end. */
gint64 muster_server_stalled_us (MusterServer *server);

/* Resident memory; 0 if unknown. */
gint64 muster_server_resident_bytes (void);

G_END_DECLS
