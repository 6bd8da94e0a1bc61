// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_record_private.h"

G_BEGIN_DECLS

/* A checkpoint in a directory. */
typedef struct {
  char *prefix;      /* (owned) */
  char *name;        /* (owned) its base name */
  const char *state; /* static: "good", "V1", "verified" (when it was saved), "intact" (read now),
                        "damaged", "unread", "set aside" */
  char *damage;      /* (owned) (nullable) why it is damaged */
  GError *unread;    /* (owned) (nullable) why it can't be read, which says nothing about it */
  char *reason;      /* (owned) (nullable) why it was set aside */
  gint64 step;       /* -1: none */
  gint64 when_us;    /* since 1970 */
  gint64 bytes;      /* of its files */
  gint shards;
  gint tensors;
  char *directory; /* (owned) (nullable) of several: the one that holds it */
  char *refused;   /* (owned) (nullable) of several: why a job doesn't resume from it */
  guint tier;      /* of several: the number of its directory */
  gboolean latest;
  gboolean kept;   /* preserved or pinned: retention doesn't remove it */
  GArray *metrics; /* (owned) (nullable) (element-type MusterSideMetric) */
  gint64 took_us;  /* time to read it */
  /* set by checkpoint_keep.h */
  gboolean is_in_state; /* a state file lists it */
  gboolean is_head;     /* … as its latest */
  guint reasons;        /* a set of MUSTER_KEEP_FOR_… */
  char **kept_for;      /* (owned) (nullable) the reasons as words; NULL: not decided */
} MusterListed;

void muster_listed_free (MusterListed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterListed, muster_listed_free)

/* Checks one: file lengths and index. record is (nullable), latest (nullable) the latest's prefix.
 */
MusterListed *muster_listed_new (const char *prefix, const MusterCheckpointRecord *record,
                                 const char *latest);
/* It is damaged or can't be read, and why. */
void muster_listed_set_failure (MusterListed *self, const GError *error);
/* Why, or NULL. Borrowed. */
const char *muster_listed_failure (const MusterListed *self);

G_END_DECLS
