// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/server/rpc_server_private.h"
#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Join and Report. Its thread alone sends rosters: a change is reported to
 * it as the name of the model, and it sends the current roster to each of the model's members, one
 * for all changes since the last. It also removes silent members. */

typedef struct _MusterMemberService MusterMemberService;

MusterMemberService *muster_member_service_new (MusterServer *server);
void muster_member_service_free (MusterMemberService *self);
void muster_member_service_enter (MusterMemberService *self);
/* Ends all streams, and admits no more members. Idempotent. */
void muster_member_service_stop (MusterMemberService *self);

G_END_DECLS
