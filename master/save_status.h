// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MusterSaveState:
 * @MUSTER_SAVE_REQUESTED: it was asked for
 * @MUSTER_SAVE_STAGED: the values are set apart; training may continue
 * @MUSTER_SAVE_WRITTEN: the files exist under a temporary name
 * @MUSTER_SAVE_DURABLE: synced and, unless unlisted, "latest"
 * @MUSTER_SAVE_FAILED: it failed
 * @MUSTER_SAVE_SKIPPED: the previous save hadn't ended, or there was no space
 * @MUSTER_SAVE_REPLACED: by the policy: a newer save replaced it before it was written
 *
 * How far a save has come. Successful saves pass the first four in order. The others are final.
 */
typedef enum {
  MUSTER_SAVE_REQUESTED,
  MUSTER_SAVE_STAGED,
  MUSTER_SAVE_WRITTEN,
  MUSTER_SAVE_DURABLE,
  MUSTER_SAVE_FAILED,
  MUSTER_SAVE_SKIPPED,
  MUSTER_SAVE_REPLACED,
} MusterSaveState;

/**
 * MUSTER_N_SAVE_STATES:
 *
 * The number of states that a save passes.
 */
#define MUSTER_N_SAVE_STATES (MUSTER_SAVE_DURABLE + 1)

/**
 * MusterSavePhase:
 * @MUSTER_SAVE_BLOCKED: its caller waited for it: training stood still
 * @MUSTER_SAVE_STAGING: the snapshot was taken; 0 for a save without one
 * @MUSTER_SAVE_WRITING: the master wrote the files
 * @MUSTER_SAVE_PUBLISHING: they were synced and renamed
 * @MUSTER_N_SAVE_PHASES: the number of phases
 *
 * What a save's time is spent on.
 */
typedef enum {
  MUSTER_SAVE_BLOCKED,
  MUSTER_SAVE_STAGING,
  MUSTER_SAVE_WRITING,
  MUSTER_SAVE_PUBLISHING,
  MUSTER_N_SAVE_PHASES,
} MusterSavePhase;

/**
 * MusterSaveStatus:
 * @step: (array fixed-size=4): by state: the step of the last save that reached it; -1: none
 * @age_us: (array fixed-size=4): by state: since when, in microseconds
 * @last_us: (array fixed-size=4): by phase: the time of the last durable save, in microseconds
 * @total_us: (array fixed-size=4): by phase: the time of all durable saves, in microseconds
 * @last_bytes: the bytes of the last durable save's files
 * @n_durable: saves that became durable
 * @n_failed: saves that failed
 * @n_skipped: saves that were skipped
 * @n_replaced: saves that a newer one replaced
 * @interval_us: the time between saves that the job has chosen, in microseconds; 0: it is fixed
 * @saving: the prefix of the oldest save that hasn't ended (owned, nullable)
 * @saving_state: how far that save has come
 * @saving_step: its step; -1: none
 * @saving_age_us: the microseconds since it was requested
 *
 * How far the saves of a model have come: what a saver knows of them, and a chief announces. Ages
 * are microseconds at the moment of reading.
 */
typedef struct {
  gint64 step[MUSTER_N_SAVE_STATES];
  gint64 age_us[MUSTER_N_SAVE_STATES];
  gint64 last_us[MUSTER_N_SAVE_PHASES];
  gint64 total_us[MUSTER_N_SAVE_PHASES];
  guint64 last_bytes;
  guint64 n_durable, n_failed, n_skipped, n_replaced;
  gint64 interval_us;
  char *saving;
  MusterSaveState saving_state;
  gint64 saving_step;
  gint64 saving_age_us;
} MusterSaveStatus;

/**
 * MUSTER_SAVE_STATUS_INIT: (skip)
 *
 * Nothing was saved.
 */
#define MUSTER_SAVE_STATUS_INIT                                                                    \
  {                                                                                                \
    .step = {-1, -1, -1, -1}, .saving_step = -1                                                    \
  }

#define MUSTER_TYPE_SAVE_STATUS (muster_save_status_get_type ())
GType muster_save_status_get_type (void);

/**
 * muster_save_status_new:
 *
 * Creates a status: nothing was saved.
 *
 * Returns: (transfer full): a status
 */
MusterSaveStatus *muster_save_status_new (void);

/**
 * muster_save_status_clear:
 * @self: the state of a model's saves
 *
 * Frees what a status contains, and empties it.
 */
void muster_save_status_clear (MusterSaveStatus *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSaveStatus, muster_save_status_clear)

/**
 * muster_save_status_copy: (skip)
 * @self: (nullable): a status
 *
 * Copies it.
 *
 * Returns: (transfer full) (nullable): a copy; %NULL for %NULL
 */
MusterSaveStatus *muster_save_status_copy (const MusterSaveStatus *self);

/**
 * muster_save_status_free: (skip)
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_save_status_free (MusterSaveStatus *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveStatus, muster_save_status_free)

/**
 * muster_save_status_equal:
 * @a: (nullable): a status
 * @b: (nullable): another
 *
 * Compares two.
 *
 * Returns: %TRUE if they are equal except for ages
 */
gboolean muster_save_status_equal (const MusterSaveStatus *a, const MusterSaveStatus *b);

/**
 * muster_save_status_add_age:
 * @self: the state of a model's saves
 * @passed_us: microseconds since the status was read
 *
 * Makes it older.
 */
void muster_save_status_add_age (MusterSaveStatus *self, gint64 passed_us);

/**
 * muster_save_state_name:
 * @state: a state
 *
 * The state's name.
 *
 * Returns: "requested", "staged", "written", "durable", "failed", "skipped" or "replaced"
 */
const char *muster_save_state_name (MusterSaveState state);

/**
 * muster_save_phase_name:
 * @phase: a phase
 *
 * The phase's name.
 *
 * Returns: "blocked", "staging", "writing" or "publishing"
 */
const char *muster_save_phase_name (MusterSavePhase phase);

G_END_DECLS
