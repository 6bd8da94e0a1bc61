// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/**
 * MusterMembership:
 *
 * A task's place in a job, at a master that keeps members (`muster serve`). It holds a slot that no
 * other task has, receives the roster of the job's members, and is renewed in the background. When
 * its connection breaks or the server restarts, it joins again by itself, in the same slot
 * ([struct@Roster], n_joins). It is lost if another task has that slot by then, or if the server
 * received nothing from it for the length of a lease. Dropping the last reference ends it. Any
 * thread.
 */

#define MUSTER_TYPE_MEMBERSHIP (muster_membership_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterMembership, muster_membership, MUSTER, MEMBERSHIP, GObject)

/**
 * MusterJoin:
 * @model: the model that the job trains
 * @task: the task's name for messages, "worker:3" (nullable)
 * @slot: the slot that is wanted; -1: the lowest that is free
 * @n_slots: the number of the model's slots, from 1 to %MUSTER_MAX_SLOTS; the same for all of its
 *   members
 * @min_tasks: the minimum number of tasks, below which the job waits, up to @n_slots; of its
 * members, the largest value counts; 0: it doesn't wait
 * @is_takeover: the task has another slot, and takes this one over for a step. The server keeps
 *   others from the slot, but counts and shows no task in it
 *
 * A task's request to be a member.
 */
typedef struct {
  const char *model;
  const char *task;
  gint slot;
  guint n_slots;
  guint min_tasks;
  gboolean is_takeover;
} MusterJoin;

/**
 * MUSTER_MAX_SLOTS:
 *
 * The most slots of a model.
 */
#define MUSTER_MAX_SLOTS 65536

#define MUSTER_TYPE_JOIN (muster_join_get_type ())
GType muster_join_get_type (void);

/**
 * muster_join_new:
 * @model: the model that the job trains
 * @task: (nullable): the task's name for messages
 * @n_slots: the number of the model's slots
 *
 * Creates a request for any free slot.
 *
 * Returns: (transfer full): a request
 */
MusterJoin *muster_join_new (const char *model, const char *task, guint n_slots);

/**
 * MusterRoster:
 * @version: the number of the roster among those that the membership received, from 1
 * @n_joins: how often the membership has joined. After a rise, another task may have had the slot
 *   in between
 * @n_slots: the number of the model's slots
 * @n_members: the number of members
 * @slots: (skip): their slots, ascending; muster_roster_slots () for other languages
 * @n_tasks: the number of the job's tasks
 * @min_tasks: the job waits while it has fewer tasks; 0: it doesn't wait, or the server is of a
 *   version that doesn't know
 * @has_chief: the model's chief is alive
 * @epoch: of its last chief; 0: it never had one
 * @is_over: the job is over
 * @is_gathering: the server has restarted, and members that it had may be missing in @slots: they
 *   have a few seconds to come back
 *
 * The members of a job, and the state of its chief.
 */
typedef struct {
  guint64 version;
  guint n_joins;
  guint n_slots;
  gsize n_members;
  guint *slots;
  guint n_tasks;
  guint min_tasks;
  gboolean has_chief;
  gint64 epoch;
  gboolean is_over;
  gboolean is_gathering;
} MusterRoster;

#define MUSTER_TYPE_ROSTER (muster_roster_get_type ())
GType muster_roster_get_type (void);

/**
 * muster_roster_copy:
 * @self: a roster
 *
 * Copies it.
 *
 * Returns: (transfer full): a copy
 */
MusterRoster *muster_roster_copy (const MusterRoster *self);

/**
 * muster_roster_free:
 * @self: (nullable): a roster
 *
 * Frees it.
 */
void muster_roster_free (MusterRoster *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRoster, muster_roster_free)

/**
 * muster_roster_slots:
 * @self: a roster
 * @n: (out): their number
 *
 * The slots that have a member.
 *
 * Returns: (array length=n) (transfer none): the slots, ascending
 */
const guint *muster_roster_slots (const MusterRoster *self, gsize *n);

/**
 * muster_roster_has:
 * @self: a roster
 * @slot: a slot
 *
 * Tests whether a slot has a member.
 *
 * Returns: %TRUE if it has
 */
gboolean muster_roster_has (const MusterRoster *self, guint slot);

/**
 * MusterMembershipClass:
 * @parent: the parent class
 * @report: called when the number of batches has risen; it must not block; %NULL: nothing to do
 * @leave: see [method@Membership.leave]
 *
 * What a membership implements.
 */
struct _MusterMembershipClass {
  GObjectClass parent;
  void (*report) (MusterMembership *self, gint64 n_batches);
  gboolean (*leave) (MusterMembership *self, gint64 deadline_us, GCancellable *cancellable,
                     GError **error);
};

/**
 * muster_membership_slot:
 * @self: a membership
 *
 * Its slot, which stays the same.
 *
 * Returns: the slot
 */
guint muster_membership_slot (MusterMembership *self);

/**
 * muster_membership_roster:
 * @self: a membership
 *
 * The last roster received. While the server can't be reached, it may be outdated.
 *
 * Returns: (transfer full): a roster
 */
MusterRoster *muster_membership_roster (MusterMembership *self);

/**
 * muster_membership_wait:
 * @self: a membership
 * @after_version: a roster's version
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Waits for a later roster than that one. FAILED_PRECONDITION: the membership is lost.
 *
 * Returns: %TRUE once there is one, or %FALSE with an error
 */
gboolean muster_membership_wait (MusterMembership *self, guint64 after_version, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error);

/**
 * muster_membership_report:
 * @self: a membership
 * @n_batches: the number of batches that this task has done so far, in all
 *
 * Reports the task's progress, for status and metrics. It is sent in the background, at most once a
 * second.
 */
void muster_membership_report (MusterMembership *self, gint64 n_batches);

/**
 * muster_membership_check:
 * @self: a membership
 *
 * Tests whether the membership is known to be lost or left (FAILED_PRECONDITION). Doesn't ask the
 * master.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_membership_check (MusterMembership *self, GError **error);

/**
 * muster_membership_leave:
 * @self: a membership
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 *
 * Leaves the job. The other members are notified at once, as when the last reference is dropped,
 * but the server records that the task left by itself.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_membership_leave (MusterMembership *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/**
 * MusterMembershipFunc:
 * @self: a membership
 * @user_data: the data of the registration
 *
 * Called when a membership has received a roster, or is lost, on a thread of the client's. It must
 * neither block nor drop the membership's last reference.
 */
typedef void (*MusterMembershipFunc) (MusterMembership *self, gpointer user_data);

/**
 * muster_membership_set_listener:
 * @self: a membership
 * @func: (nullable) (scope notified): called for each change from now on; %NULL: none
 * @user_data: passed to it
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that is called for each change. The previous one isn't called any more when
 * this returns.
 */
void muster_membership_set_listener (MusterMembership *self, MusterMembershipFunc func,
                                     gpointer user_data, GDestroyNotify destroy);

/**
 * muster_membership_set_roster:
 * @self: a membership
 * @slot: its slot
 * @roster: what was received; its version is ignored, and without @n_tasks each member is a task
 *
 * For implementations: notes a roster, and calls the listener.
 */
void muster_membership_set_roster (MusterMembership *self, guint slot, const MusterRoster *roster);

/**
 * muster_membership_lose:
 * @self: a membership
 * @why: the reason, FAILED_PRECONDITION
 *
 * For implementations: the membership is lost for good. Only the first reason counts.
 */
void muster_membership_lose (MusterMembership *self, const GError *why);

/**
 * muster_membership_n_batches:
 * @self: a membership
 *
 * For implementations: what was reported last.
 *
 * Returns: the number of batches
 */
gint64 muster_membership_n_batches (MusterMembership *self);

G_END_DECLS
