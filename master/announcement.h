// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/goodput.h"
#include "master/save_status.h"

G_BEGIN_DECLS

/* What a chief reports about its model, as the master returns it to others. A plain struct. Ages
 * are microseconds at the moment of the answer. */

typedef enum {
  MUSTER_CHIEF_UNKNOWN = 0,
  MUSTER_CHIEF_STARTING = 1,
  MUSTER_CHIEF_RESTORING = 2,
  MUSTER_CHIEF_INITIALISING = 3, /* init op and init function */
  MUSTER_CHIEF_LOCAL_INIT = 4,   /* its own local init and readiness check */
  MUSTER_CHIEF_PREPARED = 5,
  MUSTER_CHIEF_TRAINING = 6,
  MUSTER_CHIEF_OVER = 7, /* the job has ended at its final step */
} MusterChiefPhase;

/* The phase's name for messages: "restoring". */
const char *muster_chief_phase_name (MusterChiefPhase phase);

/* TRUE from STARTING to LOCAL_INIT: the model isn't ready, whatever its ready op reports. */
gboolean muster_chief_phase_is_preparing (MusterChiefPhase phase);

typedef struct {
  char *model; /* (owned) "digits" */
  char *task;  /* (owned) "worker:0" */
  char *who;   /* (owned) "HOST:PID" */
  MusterChiefPhase phase;
  gint64 epoch;
  gint64 phase_age_us;
  gint64 step;         /* -1: unknown; at the end, the final one */
  gint64 durable_step; /* last step with a durable checkpoint; -1: none */
  char *durable;       /* (owned) (nullable) that checkpoint */
  gint64 durable_age_us;
  char *detail;   /* (owned) (nullable) for messages: the checkpoint being restored */
  gboolean alive; /* its lease is held */
  gint64 lost_age_us;
  gboolean prepared;       /* its variables were made ready and not reset since */
  gboolean is_ready;       /* the model's ready op passes now */
  MusterSaveStatus *saves; /* (owned) (nullable) of the chief's saver */
  char *holder;        /* (owned) (nullable) this chief's name in the checkpoint directory that it
                          holds; NULL: it holds none */
  gboolean failed;     /* its run has failed: no other chief continues with the model as it is */
  gboolean same_graph; /* of a claim's result: that chief's graph is also the claimant's */
  MusterGoodput *goodput; /* (owned) (nullable) of the job */
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
 * (transfer full) Free it with muster_announcement_free ().
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
 * Updates self from a later announcement of the same chief: phase (unless UNKNOWN), step and
 * durable checkpoint (unless -1), saves and goodput (unless NULL), detail (NULL keeps it while the
 * phase stays the same), holder (NULL keeps it) and failed (which stays).
 */
void muster_announcement_merge (MusterAnnouncement *self, const MusterAnnouncement *later);

/**
 * muster_announcement_equal: (skip)
 *
 * TRUE if a (nullable) and b (nullable) are equal except for ages.
 */
gboolean muster_announcement_equal (const MusterAnnouncement *a, const MusterAnnouncement *b);

/**
 * muster_announcement_describe: (skip)
 *
 * The chief and its phase in one line: "worker:0 (host:4711), initialising for 12 s".
 */
char *muster_announcement_describe (const MusterAnnouncement *self);

G_END_DECLS
