// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterLease is a chief's hold on a model at a master that keeps announcements: who holds it is
 * the one chief that may prepare and save. It is renewed behind the scenes until it is dropped, or
 * lost to a chief with a higher epoch; who lost it is told so by every verb, before anything runs
 * (docs/decisions/0016). Any thread. */

#define MUSTER_TYPE_LEASE (muster_lease_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterLease, muster_lease, MUSTER, LEASE, GObject)

struct _MusterClaim {
  const char *model;
  const char *task;     /* (nullable) "worker:0", for people */
  gint64 epoch;         /* 0: the master gives the one after the last */
  const char *ready_op; /* (nullable) decides the model's readiness, for health and status */
  gboolean take_over;   /* whoever holds it, and even if the job is over */
};

struct _MusterLeaseClass {
  GObjectClass parent;
  gboolean (*announce) (MusterLease *self, const MusterAnnouncement *announcement,
                        gint64 deadline_us, GCancellable *cancellable, GError **error);
  gboolean (*check) (MusterLease *self, GError **error);
};

/**
 * muster_session_claim: (skip)
 *
 * Claims a model for the chief whose session this is. *before (nullable out, transfer full, may
 * become NULL) is what stood there. FAILED_PRECONDITION: another chief holds it, and who that is;
 * OUT_OF_RANGE: the job is over, and at which step; UNIMPLEMENTED: this master keeps no
 * announcements.
 */
MusterLease *muster_session_claim (MusterSession *session, const MusterClaim *claim,
                                   MusterAnnouncement **before, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

gint64 muster_lease_epoch (MusterLease *self);
const char *muster_lease_model (MusterLease *self); /* borrowed */

/**
 * muster_lease_announce: (skip)
 *
 * Tells of a phase: phase, step, durable step and checkpoint, detail of announcement count, and
 * what it leaves open stands as before (muster_announcement_merge). FAILED_PRECONDITION: the lease
 * is lost. OVER ends the job: late workers leave at once.
 */
gboolean muster_lease_announce (MusterLease *self, const MusterAnnouncement *announcement,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

/* As announce, with a phase alone. */
gboolean muster_lease_announce_phase (MusterLease *self, MusterChiefPhase phase, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* Asks nobody: FALSE with FAILED_PRECONDITION once the lease is known to be lost to another. */
gboolean muster_lease_check (MusterLease *self, GError **error);

/**
 * muster_lease_set_identity: (skip)
 *
 * For implementations: set once, after construction.
 */
void muster_lease_set_identity (MusterLease *self, const char *model, gint64 epoch);

G_END_DECLS
