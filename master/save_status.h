// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* How far the saves of a model have come: what a saver knows of them (saver/saver.h), and a chief
 * announces. Plain structs. Ages are microseconds at the moment of reading. */

/* Successful saves pass the first four in order. The others are final. */
typedef enum {
  MUSTER_SAVE_REQUESTED,
  MUSTER_SAVE_STAGED,  /* the values are set apart; training may continue */
  MUSTER_SAVE_WRITTEN, /* the files exist under a temporary name */
  MUSTER_SAVE_DURABLE, /* synced and, unless unlisted, "latest" */
  MUSTER_SAVE_FAILED,
  MUSTER_SAVE_SKIPPED,  /* the previous save hadn't ended, or there was no space */
  MUSTER_SAVE_REPLACED, /* by the policy: a newer save replaced it before it was written */
} MusterSaveState;

/* The states that a save passes. */
#define MUSTER_N_SAVE_STATES (MUSTER_SAVE_DURABLE + 1)

/* What a save's time is spent on. */
typedef enum {
  MUSTER_SAVE_BLOCKED,    /* its caller waited for it: training stood still */
  MUSTER_SAVE_STAGING,    /* the snapshot was taken; 0 for a save without one */
  MUSTER_SAVE_WRITING,    /* the master wrote the files */
  MUSTER_SAVE_PUBLISHING, /* they were synced and renamed */
  MUSTER_N_SAVE_PHASES,
} MusterSavePhase;

typedef struct {
  /* By state: the step of the last save that reached it, -1: none; and since when. */
  gint64 step[MUSTER_N_SAVE_STATES];
  gint64 age_us[MUSTER_N_SAVE_STATES];
  /* By phase: of the last durable save, and of all durable saves. */
  gint64 last_us[MUSTER_N_SAVE_PHASES];
  gint64 total_us[MUSTER_N_SAVE_PHASES];
  guint64 last_bytes; /* of its files */
  guint64 n_durable, n_failed, n_skipped, n_replaced;
  gint64 interval_us; /* the time between saves that the job has chosen; 0: it is fixed */
  char *saving;       /* (owned) (nullable) the prefix of the oldest save that hasn't ended … */
  MusterSaveState saving_state;
  gint64 saving_step;
  gint64 saving_age_us; /* … since it was requested */
} MusterSaveStatus;

/* Nothing was saved. */
#define MUSTER_SAVE_STATUS_INIT                                                                    \
  {                                                                                                \
    .step = {-1, -1, -1, -1}, .saving_step = -1                                                    \
  }

/**
 * muster_save_status_clear: (skip)
 */
void muster_save_status_clear (MusterSaveStatus *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSaveStatus, muster_save_status_clear)

/**
 * muster_save_status_copy: (skip)
 * @self: (nullable)
 *
 * (transfer full) (nullable) Free it with muster_save_status_free ().
 */
MusterSaveStatus *muster_save_status_copy (const MusterSaveStatus *self);

/**
 * muster_save_status_free: (skip)
 */
void muster_save_status_free (MusterSaveStatus *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveStatus, muster_save_status_free)

/**
 * muster_save_status_equal: (skip)
 *
 * TRUE if a (nullable) and b (nullable) are equal except for ages.
 */
gboolean muster_save_status_equal (const MusterSaveStatus *a, const MusterSaveStatus *b);

/**
 * muster_save_status_add_age: (skip)
 *
 * Adds the time since the status was read.
 */
void muster_save_status_add_age (MusterSaveStatus *self, gint64 passed_us);

/* "requested", "staged", "written", "durable", "failed", "skipped", "replaced" */
const char *muster_save_state_name (MusterSaveState state);
/* "blocked", "staging", "writing", "publishing" */
const char *muster_save_phase_name (MusterSavePhase phase);

G_END_DECLS
