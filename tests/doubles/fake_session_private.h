// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/doubles/fake_master.h"

G_BEGIN_DECLS

/* What the fake master and its sessions know of one another. */

MusterSession *muster_fake_session_new (MusterFakeMaster *master, guint life);

/* "ready" of "ready:0". */
char *muster_fake_node_of (const char *name);

/* One call: notes it, takes its time, and fails where that was scripted. */
gboolean muster_fake_master_ask (MusterFakeMaster *self, const char *what, const char *note,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);
/* What an op does and yields; *value is NULL for an op without output. step is NULL for a watch. */
gboolean muster_fake_master_compute (MusterFakeMaster *self, const char *op, const MusterStep *step,
                                     MusterTensor **value, GError **error);
void muster_fake_master_keep_step (MusterFakeMaster *self, const char *op, const MusterStep *step);
gboolean muster_fake_master_is_alive (MusterFakeMaster *self, guint life);
void muster_fake_master_session_ended (MusterFakeMaster *self, guint life);
gboolean muster_fake_master_is_watchable (MusterFakeMaster *self);
MusterFakeClock *muster_fake_master_clock (MusterFakeMaster *self);

/* fake_chief_registry.c: what chiefs announce, and their leases. */
typedef struct _MusterFakeChiefRegistry MusterFakeChiefRegistry;

MusterFakeChiefRegistry *muster_fake_master_registry (MusterFakeMaster *self);
MusterFakeChiefRegistry *muster_fake_chief_registry_new (MusterFakeClock *clock);
void muster_fake_chief_registry_free (MusterFakeChiefRegistry *self);
/* The master has restarted. */
void muster_fake_chief_registry_forget (MusterFakeChiefRegistry *self);
/* TRUE for the session of a chief that lost its lease. */
gboolean muster_fake_chief_registry_has_ended (MusterFakeChiefRegistry *self, const char *handle);
/* What a turn says of the chief. */
void muster_fake_chief_registry_fill (MusterFakeChiefRegistry *self, MusterReadiness *readiness);
MusterLease *muster_fake_chief_registry_claim (MusterFakeMaster *master, const char *handle,
                                               const MusterClaim *claim,
                                               MusterAnnouncement **before, gint64 deadline_us,
                                               GCancellable *cancellable, GError **error);

G_END_DECLS
