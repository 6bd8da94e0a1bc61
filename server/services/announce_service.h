// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Claim and Announce. Also expires the registry's leases. */

typedef struct _MusterAnnounceService MusterAnnounceService;

MusterAnnounceService *muster_announce_service_new (MusterServer *server);
void muster_announce_service_free (MusterAnnounceService *self);
void muster_announce_service_enter (MusterAnnounceService *self);
/* Notes a reset of the master, with the registry's n_claims before it. */
void muster_announce_service_reset (MusterAnnounceService *self, guint64 n_claims);
/* Ends all leases' streams, and grants no more. Idempotent. */
void muster_announce_service_stop (MusterAnnounceService *self);

G_END_DECLS
