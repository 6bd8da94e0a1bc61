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

/* Decides by keep_rules.h which of change->kept stay when the checkpoint, its last one, is
 * published: moves the others to leaving and preserved. Those that only the record knows take part
 * in the choice of the best. */
void muster_retention_decide (MusterCheckpointDirectory *self, MusterCheckpointRecord *record,
                              const MusterNewCheckpoint *checkpoint, MusterRetentionChange *change);

G_END_DECLS
