// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/tiered.h"
#include "train/hooks/step_timer_private.h"

G_BEGIN_DECLS

/* The checkpoint hook's timers of the fast tiers. The durable tier's is the hook's own. */

typedef struct {
  MusterSaver *saver; /* (not owned) */
  guint n;            /* 0: there are no fast tiers */
  MusterStepTimer timers[MUSTER_MAX_FAST_TIERS];
  MusterTierSet before; /* those in use at the last save */
  char *restored;       /* (owned) (nullable) a fast tier's checkpoint, to be copied */
} MusterTierCadence;

void muster_tier_cadence_clear (MusterTierCadence *self);

/* For each session. clock is the timers'. */
void muster_tier_cadence_open (MusterTierCadence *self, MusterSaver *saver, MusterClock *clock);
/* The fast tiers in use that are due at step. If one has been dropped since the last save, what it
 * held may be lost: then the fastest tier that is left is due. */
MusterTierSet muster_tier_cadence_due (const MusterTierCadence *self, gint64 step);
/* A save was tried for these. */
void muster_tier_cadence_trigger (MusterTierCadence *self, MusterTierSet due, gint64 step);
/* The model was restored from this checkpoint of a fast tier. */
void muster_tier_cadence_note_restored (MusterTierCadence *self, const char *prefix);
/* Copies it to the lower tiers that lack it, once, after a step: a checkpoint that makes the job
 * crash at once isn't spread. */
void muster_tier_cadence_copy_restored (MusterTierCadence *self, const char *directory);
/* A save has succeeded. */
void muster_tier_cadence_note_saved (MusterTierCadence *self);

G_END_DECLS
