// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

G_BEGIN_DECLS

/* /muster.Readiness: Claim and Announce; it has the board's leases run out. */

typedef struct _MusterAnnounceService MusterAnnounceService;

MusterAnnounceService *muster_announce_service_new (MusterServer *server);
void muster_announce_service_free (MusterAnnounceService *self);
void muster_announce_service_enter (MusterAnnounceService *self);
/* The master was reset, after n_claims claims of the board's. */
void muster_announce_service_reset (MusterAnnounceService *self, guint64 n_claims);
/* Ends all leases' streams, and grants no more. Idempotent. */
void muster_announce_service_stop (MusterAnnounceService *self);

G_END_DECLS
