// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* What a chief says of the model that it prepares, as the master that keeps it tells it on. A plain
 * struct. Ages are microseconds at the moment it was told. */

typedef enum {
  MUSTER_CHIEF_UNKNOWN = 0,
  MUSTER_CHIEF_STARTING = 1,
  MUSTER_CHIEF_RESTORING = 2,
  MUSTER_CHIEF_INITIALISING = 3, /* init op and init function */
  MUSTER_CHIEF_LOCAL_INIT = 4,   /* its own local init and its look at readiness */
  MUSTER_CHIEF_PREPARED = 5,
  MUSTER_CHIEF_TRAINING = 6,
  MUSTER_CHIEF_OVER = 7, /* the job has ended, at its final step */
} MusterChiefPhase;

/* "restoring", for people. */
const char *muster_chief_phase_name (MusterChiefPhase phase);

/* TRUE from STARTING to LOCAL_INIT: the model isn't ready, whatever its variables say. */
gboolean muster_chief_phase_is_preparing (MusterChiefPhase phase);

typedef struct {
  char *model; /* (owned) "digits" */
  char *task;  /* (owned) "worker:0" */
  char *who;   /* (owned) "HOST:PID" */
  MusterChiefPhase phase;
  gint64 epoch;
  gint64 phase_age_us;
  gint64 step;         /* -1: unknown; at the end, the final one */
  gint64 durable_step; /* the last step whose checkpoint is durable; -1: none */
  char *durable;       /* (owned) (nullable) that checkpoint */
  gint64 durable_age_us;
  char *detail;   /* (owned) (nullable) for people: the checkpoint that is restored */
  gboolean alive; /* its lease is held */
  gint64 lost_age_us;
  gboolean prepared; /* its variables were made ready, and not reset since */
  gboolean is_ready; /* the model's ready op says so now */
} MusterAnnouncement;

#define MUSTER_ANNOUNCEMENT_INIT                                                                   \
  {                                                                                                \
    .step = -1, .durable_step = -1                                                                 \
  }

/**
 * muster_announcement_clear: (skip)
 */
void muster_announcement_clear (MusterAnnouncement *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterAnnouncement, muster_announcement_clear)

/**
 * muster_announcement_copy: (skip)
 *
 * (transfer full) free with muster_announcement_free ().
 */
MusterAnnouncement *muster_announcement_copy (const MusterAnnouncement *self);

/**
 * muster_announcement_free: (skip)
 */
void muster_announcement_free (MusterAnnouncement *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAnnouncement, muster_announcement_free)

/**
 * muster_announcement_merge: (skip)
 *
 * Takes over what a later announcement of the same chief tells: its phase (unless UNKNOWN), step
 * and durable checkpoint (unless -1), and detail (NULL keeps it as long as the phase does).
 */
void muster_announcement_merge (MusterAnnouncement *self, const MusterAnnouncement *later);

/**
 * muster_announcement_equal: (skip)
 *
 * TRUE if a (nullable) and b (nullable) say the same, ages left aside.
 */
gboolean muster_announcement_equal (const MusterAnnouncement *a, const MusterAnnouncement *b);

/**
 * muster_announcement_describe: (skip)
 *
 * Who and where a chief is, in one line: "worker:0 (host:4711), initialising for 12 s".
 */
char *muster_announcement_describe (const MusterAnnouncement *self);

G_END_DECLS
