// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/membership.h"
#include "ready/member_private.h"

G_BEGIN_DECLS

/* MusterMemberRegistry records for each model which tasks are members of its job, each in a slot of
 * its own, and the last ones that left. It implements the rules for slots:
 *
 *   - a slot has at most one member; one that asks for a slot gets that one or none;
 *   - others get the lowest slot that is free;
 *   - the first member of a model says how many slots it has, until the last one has left;
 *   - a member that comes back, by its number, takes over from itself;
 *   - a task may take over a free slot beside its own. That is a member in the roster, but not a
 *     task: it isn't described or counted.
 *
 * A model's job needs as many tasks as the present member that asks for the most: that one doesn't
 * train with fewer, so the job isn't complete before.
 *
 * A member that comes back with a number of another registry says that the server has restarted:
 * others may come back, too. For MUSTER_GATHER_US, once, the model is gathering them, and a slot
 * without a member needn't be free.
 *
 * A member that hasn't reported for as long as a lease lasts (ready/lease_look_private.h) is
 * removed by muster_member_registry_expire (). Numbers of members aren't used again, and those of
 * another registry are hardly any of this one's.
 *
 * Names come from the network, and are checked as chiefs' are. At most 10,000 models and 100,000
 * members are kept. Time is read only from its clock. Any thread. */

typedef struct _MusterMemberRegistry MusterMemberRegistry;

/* A member that goes on tries to join again at least every two seconds. */
#define MUSTER_GATHER_US (3 * MUSTER_SECOND)

/* Called after each change of who is a member, without the registry's lock, on the thread that made
 * the change. is_takeover: the tasks are the same. */
typedef void (*MusterMembersChanged) (const char *model, gboolean is_takeover, gpointer user_data);

/* changed (nullable) */
MusterMemberRegistry *muster_member_registry_new (MusterClock *clock, gint64 lease_us,
                                                  MusterMembersChanged changed, gpointer user_data);
void muster_member_registry_free (MusterMemberRegistry *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMemberRegistry, muster_member_registry_free)

gint64 muster_member_registry_lease_us (MusterMemberRegistry *self);

/* Adds a member. Returns its number, and its slot in *slot; 0 with INVALID_ARGUMENT,
 * FAILED_PRECONDITION (the slot has a member) or RESOURCE_EXHAUSTED. */
guint64 muster_member_registry_join (MusterMemberRegistry *self, const MusterMemberRequest *request,
                                     guint *slot, GError **error);

/* Renews a member. FAILED_PRECONDITION: there is none with that number. */
gboolean muster_member_registry_report (MusterMemberRegistry *self, guint64 id, gint64 n_batches,
                                        GError **error);

/* FALSE if there is none with that number (any more). */
gboolean muster_member_registry_remove (MusterMemberRegistry *self, guint64 id,
                                        MusterMemberEnd end);

/* Removes those that are silent, and appends their numbers to gone (element-type guint64); ends the
 * gathering. Returns when to look again, or MUSTER_WAIT_FOREVER without members. */
gint64 muster_member_registry_expire (MusterMemberRegistry *self, GArray *gone);

/* All are 0 without members. */
void muster_member_registry_count (MusterMemberRegistry *self, const char *model,
                                   MusterMemberCounts *counts);

/* The present slots of a model and the numbers of their members, in the same order; appended to
 * slots (element-type guint32) and ids (element-type guint64); and their counts. */
void muster_member_registry_roster (MusterMemberRegistry *self, const char *model, GArray *slots,
                                    GArray *ids, MusterMemberCounts *counts);

/* All models that have members, or had some within the last hour: (transfer full) (element-type
 * MusterMembers). Of one, at most `most` members are described. */
GPtrArray *muster_member_registry_list (MusterMemberRegistry *self, guint most);

/* How many tasks have joined, and how many of them have left this way. */
guint64 muster_member_registry_n_joined (MusterMemberRegistry *self);
guint64 muster_member_registry_n_left (MusterMemberRegistry *self, MusterMemberEnd end);

G_END_DECLS
