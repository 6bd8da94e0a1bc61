// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/goodput.h"
#include "master/save_status.h"

G_BEGIN_DECLS

/**
 * MusterChiefPhase:
 * @MUSTER_CHIEF_UNKNOWN: the master keeps no announcements, or none was made
 * @MUSTER_CHIEF_STARTING: it has claimed the model
 * @MUSTER_CHIEF_RESTORING: it restores a checkpoint
 * @MUSTER_CHIEF_INITIALISING: init op and init function
 * @MUSTER_CHIEF_LOCAL_INIT: its own local init and readiness check
 * @MUSTER_CHIEF_PREPARED: the model is ready
 * @MUSTER_CHIEF_TRAINING: it trains
 * @MUSTER_CHIEF_OVER: the job has ended at its final step
 *
 * What a chief does with its model.
 */
typedef enum {
  MUSTER_CHIEF_UNKNOWN = 0,
  MUSTER_CHIEF_STARTING = 1,
  MUSTER_CHIEF_RESTORING = 2,
  MUSTER_CHIEF_INITIALISING = 3,
  MUSTER_CHIEF_LOCAL_INIT = 4,
  MUSTER_CHIEF_PREPARED = 5,
  MUSTER_CHIEF_TRAINING = 6,
  MUSTER_CHIEF_OVER = 7,
} MusterChiefPhase;

/**
 * muster_chief_phase_name:
 * @phase: a phase
 *
 * The phase's name for messages: "restoring".
 *
 * Returns: the name
 */
const char *muster_chief_phase_name (MusterChiefPhase phase);

/**
 * muster_chief_phase_is_preparing:
 * @phase: a phase
 *
 * Tests for a phase from STARTING to LOCAL_INIT: the model isn't ready, whatever its ready op
 * reports.
 *
 * Returns: %TRUE for these
 */
gboolean muster_chief_phase_is_preparing (MusterChiefPhase phase);

/**
 * MusterChiefDrain:
 * @MUSTER_DRAIN_NONE: nothing: the master doesn't wait for it
 * @MUSTER_DRAIN_OFFERED: it saves when it hears of that
 * @MUSTER_DRAIN_SAVED: it has, and nothing is trained after that save
 *
 * What a chief does when the master is about to stop ([method@Lease.is_draining]).
 */
typedef enum {
  MUSTER_DRAIN_NONE = 0,
  MUSTER_DRAIN_OFFERED = 1,
  MUSTER_DRAIN_SAVED = 2,
} MusterChiefDrain;

/**
 * MusterAnnouncement:
 * @model: "digits" (owned)
 * @task: "worker:0" (owned)
 * @who: "HOST:PID" (owned)
 * @phase: what the chief does
 * @epoch: the chief's number: the highest holds the model
 * @phase_age_us: since when, in microseconds
 * @step: -1: unknown; at the end, the final one
 * @durable_step: last step with a durable checkpoint; -1: none
 * @durable: that checkpoint (owned, nullable)
 * @durable_age_us: since when, in microseconds
 * @detail: for messages: the checkpoint being restored; of a chief that trains, why it has no
 *   session (owned, nullable)
 * @alive: its lease is held
 * @lost_age_us: since when its lease is lost, in microseconds
 * @prepared: its variables were made ready and not reset since
 * @is_ready: the model's ready op passes now
 * @saves: of the chief's saver (owned, nullable)
 * @holder: this chief's name in the checkpoint directory that it holds; NULL: it holds none (owned,
 *   nullable)
 * @failed: its run has failed: no other chief continues with the model as it is
 * @ended: why its run ended, for messages: the error of a run that failed, "preempted", or
 * "finished" where it reached its last step; NULL: unknown (owned, nullable)
 * @same_graph: of a claim's result: that chief's graph is also the claimant's
 * @goodput: of the job (owned, nullable)
 * @drain: what it does when the master is about to stop
 *
 * What a chief reports about its model, as the master returns it to others. Ages are microseconds
 * at the moment of the answer.
 */
typedef struct {
  char *model;
  char *task;
  char *who;
  MusterChiefPhase phase;
  gint64 epoch;
  gint64 phase_age_us;
  gint64 step;
  gint64 durable_step;
  char *durable;
  gint64 durable_age_us;
  char *detail;
  gboolean alive;
  gint64 lost_age_us;
  gboolean prepared;
  gboolean is_ready;
  MusterSaveStatus *saves;
  char *holder;
  gboolean failed;
  char *ended;
  gboolean same_graph;
  MusterGoodput *goodput;
  MusterChiefDrain drain;
} MusterAnnouncement;

/**
 * MUSTER_ANNOUNCEMENT_INIT: (skip)
 *
 * An announcement of which nothing is known.
 */
#define MUSTER_ANNOUNCEMENT_INIT                                                                   \
  {                                                                                                \
    .step = -1, .durable_step = -1                                                                 \
  }

#define MUSTER_TYPE_ANNOUNCEMENT (muster_announcement_get_type ())
GType muster_announcement_get_type (void);

/**
 * muster_announcement_new:
 *
 * Creates an announcement of which nothing is known: no step, no checkpoint.
 *
 * Returns: (transfer full): an announcement
 */
MusterAnnouncement *muster_announcement_new (void);

/**
 * muster_announcement_set_saves:
 * @self: an announcement
 * @saves: (nullable): the state of the model's saves
 *
 * Sets the field of that name to a copy.
 */
void muster_announcement_set_saves (MusterAnnouncement *self, const MusterSaveStatus *saves);

/**
 * muster_announcement_set_goodput:
 * @self: an announcement
 * @goodput: (nullable): the account of the job's time
 *
 * Sets the field of that name to a copy.
 */
void muster_announcement_set_goodput (MusterAnnouncement *self, const MusterGoodput *goodput);

/**
 * muster_announcement_clear:
 * @self: an announcement
 *
 * Frees what an announcement contains, and empties it.
 */
void muster_announcement_clear (MusterAnnouncement *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterAnnouncement, muster_announcement_clear)

/**
 * muster_announcement_copy: (skip)
 * @self: an announcement
 *
 * Copies it with all that it contains.
 *
 * Returns: (transfer full): a copy
 */
MusterAnnouncement *muster_announcement_copy (const MusterAnnouncement *self);

/**
 * muster_announcement_free: (skip)
 * @self: (nullable): a copy
 *
 * Frees a copy.
 */
void muster_announcement_free (MusterAnnouncement *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAnnouncement, muster_announcement_free)

/**
 * muster_announcement_merge:
 * @self: an announcement
 * @later: a later announcement of the same chief
 *
 * Updates it: phase (unless UNKNOWN), step and durable checkpoint (unless -1), saves and goodput
 * (unless %NULL), detail (%NULL keeps it while the phase stays the same), holder (%NULL keeps it),
 * ended (%NULL keeps it), drain (NONE keeps it) and failed (which stays). A durable checkpoint
 * without a step brings its own, if that is later.
 */
void muster_announcement_merge (MusterAnnouncement *self, const MusterAnnouncement *later);

/**
 * muster_announcement_equal:
 * @a: (nullable): an announcement
 * @b: (nullable): another
 *
 * Compares two announcements.
 *
 * Returns: %TRUE if they are equal except for ages
 */
gboolean muster_announcement_equal (const MusterAnnouncement *a, const MusterAnnouncement *b);

/**
 * muster_announcement_end_word:
 * @self: an announcement of a chief that isn't alive
 *
 * How its run ended, in a word: "failed", "preempted", "finished", or "lost" if it gave no reason.
 *
 * Returns: (transfer none): the word
 */
const char *muster_announcement_end_word (const MusterAnnouncement *self);

/**
 * muster_announcement_owner:
 * @self: an announcement
 *
 * Names the chief: "worker:0 (host:4711)", or the one of both that is known.
 *
 * Returns: (transfer full): the text
 */
char *muster_announcement_owner (const MusterAnnouncement *self);

/**
 * muster_announcement_describe:
 * @self: an announcement
 *
 * Describes the chief and its phase in one line: "worker:0 (host:4711), initialising for 12 s".
 *
 * Returns: (transfer full): the text
 */
char *muster_announcement_describe (const MusterAnnouncement *self);

G_END_DECLS
