// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/member_model_private.h"
#include "ready/member_registry_private.h"

G_BEGIN_DECLS

struct _MusterMemberRegistry {
  MusterClock *clock; /* (owned) */
  gint64 lease_us;
  MusterMembersChanged changed; /* (nullable) */
  gpointer user_data;

  GMutex lock;
  /* guarded by lock; the tables own their values, which have the keys */
  GHashTable *models;  /* (element-type utf8 MusterMemberModel) */
  GHashTable *members; /* (element-type guint64 MusterMemberEntry) */
  guint64 run;         /* its upper half begins all numbers */
  gint64 looks_us;     /* no lease or gathering ends before */
  guint64 n_joined;
  guint64 n_left[MUSTER_N_MEMBER_ENDS];
};

/* Calls changed. Without the lock. */
void muster_member_registry_notify (MusterMemberRegistry *self, const char *model,
                                    gboolean is_takeover);

/* A member has joined or reported. With the lock held. */
void muster_member_registry_renew (MusterMemberRegistry *self, MusterMemberEntry *member,
                                   gint64 n_batches, gint64 now_us);

G_END_DECLS
