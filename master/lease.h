// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "master/session.h"

G_BEGIN_DECLS

/* MusterLease is a chief's lease on a model, at a master that keeps announcements. Only the chief
 * that holds it may prepare and save the model. It is renewed in the background until it is
 * released, or lost to a chief with a higher epoch. After that, every operation fails with this
 * reason before it does anything (docs/decisions/0016). Any thread. */

#define MUSTER_TYPE_LEASE (muster_lease_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterLease, muster_lease, MUSTER, LEASE, GObject)

struct _MusterClaim {
  const char *model;
  const char *task;     /* (nullable) "worker:0", for messages */
  gint64 epoch;         /* 0: the master assigns the next */
  const char *ready_op; /* (nullable) decides the model's readiness in health and status */
  gboolean take_over;   /* even from a living chief, and even if the job is over */
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
 * Claims a model for the chief that owns this session. *before (nullable out, transfer full, may
 * become NULL) is the model's previous announcement. FAILED_PRECONDITION names the chief that holds
 * the model; OUT_OF_RANGE: the job is over, with its final step; UNIMPLEMENTED: this master keeps
 * no announcements.
 */
MusterLease *muster_session_claim (MusterSession *session, const MusterClaim *claim,
                                   MusterAnnouncement **before, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

gint64 muster_lease_epoch (MusterLease *self);
const char *muster_lease_model (MusterLease *self); /* borrowed */

/**
 * muster_lease_announce: (skip)
 *
 * Announces a phase. Of announcement, the phase, step, durable step and checkpoint, saves,
 * goodput and detail are used; unset fields keep their values (muster_announcement_merge ()).
 * FAILED_PRECONDITION: the lease is lost. OVER ends the job: waiting workers exit at once.
 */
gboolean muster_lease_announce (MusterLease *self, const MusterAnnouncement *announcement,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

/* The same with a phase only. */
gboolean muster_lease_announce_phase (MusterLease *self, MusterChiefPhase phase, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* FALSE with FAILED_PRECONDITION if the lease is known to be lost. Doesn't ask the master. */
gboolean muster_lease_check (MusterLease *self, GError **error);

/**
 * muster_lease_set_identity: (skip)
 *
 * For implementations: called once, after construction.
 */
void muster_lease_set_identity (MusterLease *self, const char *model, gint64 epoch);

G_END_DECLS
