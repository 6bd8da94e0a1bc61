// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/member_private.h"

G_BEGIN_DECLS

/* The slots of one model, and the member in each: the part of MusterMemberRegistry that needs no
 * lock and no clock. The registry guards its models by its lock. */

typedef struct MusterMemberModel MusterMemberModel;

typedef struct {
  MusterMember member;      /* without ages and rate, which are computed from what follows */
  MusterMemberModel *model; /* (not owned) */
  guint min_tasks;          /* of its request */
  gint64 joined_us;
  gint64 heard_us;
  gint64 doubted_us; /* see muster_lease_look () */
  gint64 left_us;
  /* The rate is computed from the batches that it had done at the earlier of two instants. */
  gint64 early_us, late_us;
  gint64 n_early, n_late;
} MusterMemberEntry;

struct MusterMemberModel {
  char *name; /* (owned) */
  guint n_slots;
  guint n_members; /* with takeovers */
  guint min_tasks; /* the most that one of them asks for */
  guint n_tasks;
  guint lowest;          /* no slot below is free */
  gint64 gathers_us;     /* end of the gathering after a restart of the server; 0: none */
  gboolean has_gathered; /* it does so once */
  GPtrArray *slots;      /* (owned) (element-type MusterMemberEntry) (nullable elements) by slot */
  GQueue left;           /* (owned) (element-type MusterMemberEntry) the latest first */
};

MusterMemberModel *muster_member_model_new (const char *name);

/* Frees the members that left. The present ones belong to the caller. */
void muster_member_model_free (gpointer model);

void muster_member_entry_free (gpointer entry);

/* FALSE with INVALID_ARGUMENT if a name or a number is out of its limits. */
gboolean muster_member_request_check (const MusterMemberRequest *request, GError **error);

/* The member in a slot, or NULL. */
MusterMemberEntry *muster_member_model_at (const MusterMemberModel *self, guint slot);

MusterMemberCounts muster_member_model_count (const MusterMemberModel *self);

/* Finds the slot that a request gets, and sets n_slots if it is the first member's. FALSE with
 * INVALID_ARGUMENT, FAILED_PRECONDITION (the slot has a member) or RESOURCE_EXHAUSTED. */
gboolean muster_member_model_choose_slot (MusterMemberModel *self,
                                          const MusterMemberRequest *request, guint *slot,
                                          GError **error);

/* Puts a new member into a free slot. The caller owns it while it is a member. */
MusterMemberEntry *muster_member_model_add (MusterMemberModel *self,
                                            const MusterMemberRequest *request, guint slot,
                                            guint64 id, gint64 now_us);

/* Removes a member from its slot, and describes it in *out. Takes over its ownership: a task is
 * kept among the last that left, a takeover is freed. */
void muster_member_model_remove (MusterMemberEntry *entry, MusterMemberEnd end, gint64 now_us,
                                 MusterMember *out);

/* A member has reported. n_batches never decreases. */
void muster_member_entry_renew (MusterMemberEntry *self, gint64 n_batches, gint64 now_us);

void muster_member_entry_describe (const MusterMemberEntry *self, gint64 now_us, MusterMember *out);

/* At most `most` present members are described. (transfer full) */
MusterMembers *muster_member_model_describe (const MusterMemberModel *self, guint most,
                                             gint64 now_us);

/* TRUE if it has no members, and had none within the last hour. */
gboolean muster_member_model_is_past (const MusterMemberModel *self, gint64 now_us);

G_END_DECLS
