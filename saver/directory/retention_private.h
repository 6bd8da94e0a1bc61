// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/directory/checkpoint_directory_private.h"

G_BEGIN_DECLS

typedef struct {
  char *prefix; /* (owned) */
  char *why;    /* (owned) (nullable) the rule: "every 6 h" */
} MusterPreserved;

/* What publishing a checkpoint makes of those that the saver manages. */
typedef struct {
  GPtrArray *kept;       /* (owned) (element-type MusterKept) managed from now on, oldest first */
  GPtrArray *leaving;    /* (owned) (element-type utf8) to be deleted */
  GPtrArray *preserved;  /* (owned) (element-type MusterPreserved) kept for good, managed no more */
  MusterKeepRules rules; /* in force */
  double mark;
  MusterStorage *storage;    /* (not owned) where, bound like the save */
  const char *state_version; /* (nullable) of the state file that is replaced */
} MusterRetentionChange;

void muster_retention_change_init (MusterRetentionChange *self);
void muster_retention_change_clear (MusterRetentionChange *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRetentionChange, muster_retention_change_clear)

/* A checkpoint's entry (nullable). Names of other directories stay out: what is removed is made
 * from these. */
MusterSideCheckpoint *muster_retention_entry (MusterCheckpointRecord *record, const char *directory,
                                              const char *prefix);

/* Lists those that the saver manages in change->kept: prefix, as saved now, at its end and nowhere
 * else. What is ahead of the clock, since the clock was set back, is of now. */
void muster_retention_list_with (MusterCheckpointDirectory *self, const char *prefix, double now,
                                 MusterRetentionChange *change);

/* Decides by keep_rules.h which of change->kept stay when the checkpoint, its last one, is
 * published: moves the others to leaving and preserved. Those that only the record knows take part
 * in the choice of the best. */
void muster_retention_decide (MusterCheckpointDirectory *self, MusterCheckpointRecord *record,
                              const MusterNewCheckpoint *checkpoint, MusterRetentionChange *change);

/* TRUE if a save of that name would lose what is to stay: the record's checkpoint is of a branch
 * that the job has left, and was pinned, kept for good, or is one of the best. */
gboolean muster_retention_would_lose (MusterCheckpointDirectory *self,
                                      MusterCheckpointRecord *record, const char *prefix);

/* retention_remove.c: removes what has left the list: leaving (element-type utf8), and what
 * couldn't be removed before; but not what was just saved (nullable). One that can't be removed, or
 * that somebody reads, stays doomed until it can; the save itself is well (SAV.55). Returns how
 * many were removed. */
guint muster_retention_remove (MusterCheckpointDirectory *self, MusterStorage *storage,
                               const GPtrArray *leaving, const char *just_saved);
/* Forgets what has gone since it was doomed, here or by a hand. */
void muster_retention_forget_gone (MusterCheckpointDirectory *self, MusterStorage *storage,
                                   MusterCheckpointRecord *record, const char *directory);

G_END_DECLS
