// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "master/session.h"

G_BEGIN_DECLS

/**
 * MusterLease:
 *
 * A chief's lease on a model, at a master that keeps announcements. Only the chief that holds it
 * may prepare and save the model. It is renewed in the background until it is released, or lost to
 * a chief with a higher epoch. After that, every operation fails with this reason before it does
 * anything (docs/decisions/0016). Any thread.
 */

#define MUSTER_TYPE_LEASE (muster_lease_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterLease, muster_lease, MUSTER, LEASE, GObject)

/**
 * MusterClaim:
 * @model: the model's name
 * @task: the claimant's name for messages, "worker:0" (nullable)
 * @epoch: the chief's number; 0: the master assigns the next
 * @ready_op: decides the model's readiness in health and status (nullable)
 * @take_over: even from a living chief, and even if the job is over
 * @spares_living: @take_over doesn't take the model from another process's living chief:
 *   FAILED_PRECONDITION, after two seconds in which that chief may end
 *
 * A chief's claim to a model.
 */
struct _MusterClaim {
  const char *model;
  const char *task;
  gint64 epoch;
  const char *ready_op;
  gboolean take_over;
  gboolean spares_living;
};

#define MUSTER_TYPE_CLAIM (muster_claim_get_type ())
GType muster_claim_get_type (void);

/**
 * muster_claim_new:
 * @model: the model's name
 * @task: (nullable): the claimant's name for messages, "worker:0"
 *
 * Creates a claim.
 *
 * Returns: (transfer full): a claim
 */
MusterClaim *muster_claim_new (const char *model, const char *task);

/**
 * MusterLeaseClass:
 * @parent: the parent class
 * @announce: see [method@Lease.announce]
 * @check: see [method@Lease.check]
 * @is_draining: see [method@Lease.is_draining]; %NULL: it never is
 *
 * What a lease implements.
 */
struct _MusterLeaseClass {
  GObjectClass parent;
  gboolean (*announce) (MusterLease *self, const MusterAnnouncement *announcement,
                        gint64 deadline_us, GCancellable *cancellable, GError **error);
  gboolean (*check) (MusterLease *self, GError **error);
  gboolean (*is_draining) (MusterLease *self, gint64 *until_us);
};

/**
 * muster_session_claim:
 * @self: a session
 * @claim: what is claimed
 * @before: (out) (optional) (nullable) (transfer full): the model's previous announcement; %NULL:
 *   it had none
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Claims a model for the chief that owns this session. FAILED_PRECONDITION names the chief that
 * holds the model; OUT_OF_RANGE: the job is over, with its final step; ALREADY_EXISTS: another
 * model, whose chief lives, has a variable of the same name on this master; UNIMPLEMENTED: this
 * master keeps no announcements.
 *
 * Returns: (transfer full): the lease
 */
MusterLease *muster_session_claim (MusterSession *self, const MusterClaim *claim,
                                   MusterAnnouncement **before, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

/**
 * muster_lease_epoch:
 * @self: a lease
 *
 * The chief's number.
 *
 * Returns: the epoch
 */
gint64 muster_lease_epoch (MusterLease *self);

/**
 * muster_lease_model:
 * @self: a lease
 *
 * The model that is held.
 *
 * Returns: its name, borrowed
 */
const char *muster_lease_model (MusterLease *self);

/**
 * muster_lease_announce:
 * @self: a lease
 * @announcement: of it, the phase, step, durable step and checkpoint, saves, goodput, drain and
 *   detail are used; unset fields keep their values ([method@Announcement.merge])
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Announces what the chief does. FAILED_PRECONDITION: the lease is lost. OVER ends the job: waiting
 * workers exit at once.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_lease_announce (MusterLease *self, const MusterAnnouncement *announcement,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_lease_announce_phase:
 * @self: a lease
 * @phase: what the chief does
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Announces a phase and nothing else.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_lease_announce_phase (MusterLease *self, MusterChiefPhase phase, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/**
 * muster_lease_check:
 * @self: a lease
 *
 * Tests whether the lease is known to be lost (FAILED_PRECONDITION). Doesn't ask the master.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_lease_check (MusterLease *self, GError **error);

/**
 * muster_lease_is_draining:
 * @self: a lease
 * @until_us: (out) (optional): when it stops at the latest, an instant of g_get_monotonic_time ()
 *
 * Tests whether the master has said that it is about to stop. A chief that has announced
 * %MUSTER_DRAIN_OFFERED saves then, and announces %MUSTER_DRAIN_SAVED; the master stops when all
 * such chiefs have.
 *
 * Returns: %TRUE if it has
 */
gboolean muster_lease_is_draining (MusterLease *self, gint64 *until_us);

/**
 * muster_lease_set_identity:
 * @self: a lease
 * @model: the model
 * @epoch: the chief's number
 *
 * For implementations: called once, after construction.
 */
void muster_lease_set_identity (MusterLease *self, const char *model, gint64 epoch);

G_END_DECLS
