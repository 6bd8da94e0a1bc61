// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "ready/backoff.h"
#include "ready/reasons.h"

G_BEGIN_DECLS

/**
 * MusterOutcome:
 * @MUSTER_OUTCOME_FAILED: the operation failed
 * @MUSTER_OUTCOME_READY: the model is ready
 * @MUSTER_OUTCOME_NOT_READY: recover: there is a session, but the model isn't ready; wait: the
 *   model wasn't ready in time, whatever the time was spent on
 * @MUSTER_OUTCOME_FENCED: another chief holds the model, or has prepared it
 * @MUSTER_OUTCOME_OVER: the job has ended; there is nothing to start
 *
 * How an operation of a session manager ended.
 */
typedef enum {
  MUSTER_OUTCOME_FAILED,
  MUSTER_OUTCOME_READY,
  MUSTER_OUTCOME_NOT_READY,
  MUSTER_OUTCOME_FENCED,
  MUSTER_OUTCOME_OVER,
} MusterOutcome;

/**
 * MusterSessionReport:
 * @outcome: how it ended
 * @final_step: OVER: the job's last step; else -1
 * @epoch: prepare: the chief's; 0: the master keeps no announcements
 * @reasons: (element-type MusterReason): the last situation (owned, nullable)
 * @timeline: (element-type MusterSpan): the intervals of the phases, in order; 10,000 at most
 *   (owned, nullable)
 * @retries: (array fixed-size=5): by #MusterFailure: the number of retries
 * @restored_from: the checkpoint (owned, nullable)
 * @continued: prepare: with the model on the master; nothing was restored or initialised
 * @continued_step: if @continued: the model's step
 * @passed_over: newer checkpoints that weren't intact, the cause, and what was done with them:
 * lines (owned, nullable)
 * @restore_warning: remarks on the restore: lines (owned, nullable)
 * @reason: recover, and operations that failed: why the model isn't ready (owned, nullable)
 * @goodput: prepare: what the chief before has announced of the job's time (owned, nullable)
 * @goodput_at_us: when it had measured that, an instant in microseconds
 * @phases: (element-type MusterSpan): the phases, in order: when each began, and its time in all
 *   (owned, nullable)
 * @polls: the number of readiness checks
 * @sessions: the number of sessions created
 * @pushed: the master pushed readiness
 *
 * What an operation did, for messages and logs. In C, begin with `{0}`, and clear it with
 * muster_session_report_clear (), as g_auto does.
 */
typedef struct {
  MusterOutcome outcome;
  gint64 final_step;
  gint64 epoch;
  GPtrArray *reasons;
  GArray *timeline;
  guint retries[MUSTER_N_FAILURES];
  char *restored_from;
  gboolean continued;
  gint64 continued_step;
  char *passed_over;
  char *restore_warning;
  char *reason;
  MusterGoodput *goodput;
  gint64 goodput_at_us;
  GArray *phases;
  guint polls;
  guint sessions;
  gboolean pushed;
} MusterSessionReport;

/**
 * MusterSpan:
 * @name: the phase: "devices", "connect" (until there was a session, with the pauses), "create" (of
 *   the session that was created), "claim", "continue", "reset", "restore", "init", "local init",
 *   "waiting" or "ready"; static
 * @started_us: microseconds since the operation began
 * @duration_us: microseconds
 *
 * One interval of a phase of an operation, or a phase with all of them.
 */
typedef struct {
  const char *name;
  gint64 started_us;
  gint64 duration_us;
} MusterSpan;

#define MUSTER_TYPE_SPAN (muster_span_get_type ())
GType muster_span_get_type (void);

#define MUSTER_TYPE_SESSION_REPORT (muster_session_report_get_type ())
GType muster_session_report_get_type (void);

/**
 * muster_session_report_new:
 *
 * Creates an empty report, for an operation to fill.
 *
 * Returns: (transfer full): a report
 */
MusterSessionReport *muster_session_report_new (void);

/**
 * muster_session_report_list_phases:
 * @self: a report
 * @n: (out): their number
 *
 * The phases of the operation, in order, for languages that can't read the field.
 *
 * Returns: (array length=n) (transfer none) (nullable): the phases, borrowed
 */
const MusterSpan *muster_session_report_list_phases (const MusterSessionReport *self, gsize *n);

/**
 * muster_session_report_list_spans:
 * @self: a report
 * @n: (out): their number
 *
 * The intervals of the phases, in order, for languages that can't read the timeline.
 *
 * Returns: (array length=n) (transfer none) (nullable): the intervals, borrowed
 */
const MusterSpan *muster_session_report_list_spans (const MusterSessionReport *self, gsize *n);

/**
 * muster_session_report_clear:
 * @self: a report
 *
 * Frees what a report contains, and empties it.
 */
void muster_session_report_clear (MusterSessionReport *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterSessionReport, muster_session_report_clear)
G_END_DECLS
