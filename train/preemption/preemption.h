// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/**
 * MusterPreemption:
 *
 * Ends a job on SIGTERM, within the time until SIGKILL (the grace). Training stops at the end of
 * the current step, and its state is saved if that fits into the remaining time, estimated from
 * earlier saves. A save that can't fit isn't started, and one that takes longer than estimated is
 * cancelled before the grace is over, so that no partial checkpoint remains; the last durable
 * checkpoint then counts. In both cases the job can be resumed, as its exit code (6) shows.
 *
 * A job that ends before it could be stopped is done, not preempted: the caller must check whether
 * it has reached its last step.
 *
 * Usage: create one, take the signals, pass its cancellable to the monitored session, add its hook,
 * and set it in the checkpoint hook's options ([struct@MonitoredTrainingOptions] does the last
 * two). Afterwards read the report. Any thread.
 */
#define MUSTER_TYPE_PREEMPTION (muster_preemption_get_type ())
G_DECLARE_FINAL_TYPE (MusterPreemption, muster_preemption, MUSTER, PREEMPTION, GObject)

/**
 * MUSTER_DEFAULT_GRACE_US: (skip)
 *
 * The grace of a preemption that sets none: 30 s, as in Kubernetes.
 */
#define MUSTER_DEFAULT_GRACE_US (30 * MUSTER_SECOND)

/**
 * muster_preemption_new:
 * @grace_us: the time from SIGTERM to SIGKILL, in microseconds; 0: 30 s, as in Kubernetes. A tenth
 *   of it, at most a second, is reserved for the time after the save
 * @clock: (nullable): NULL: the machine's
 *
 * A preemption that nobody has requested.
 *
 * Returns: (transfer full): the preemption
 */
MusterPreemption *muster_preemption_new (gint64 grace_us, MusterClock *clock);

/* --- requests --- */

/**
 * muster_preemption_take_signals:
 * @self: the preemption
 * @with_sigint: TRUE: SIGINT, too; a second one ends the process at once
 *
 * Handles SIGTERM as long as this object lives, or until [method@Preemption.release_signals]. The
 * handler wakes a thread that enforces the grace, even while another thread is in a run. One at a
 * time in a process: ALREADY_EXISTS.
 *
 * Returns: FALSE with an error if the handler can't be set
 */
gboolean muster_preemption_take_signals (MusterPreemption *self, gboolean with_sigint,
                                         GError **error);

/**
 * muster_preemption_release_signals:
 * @self: the preemption
 *
 * Restores the handlers from before [method@Preemption.take_signals]; without that it does nothing.
 * A preemption that was requested is enforced as before.
 */
void muster_preemption_release_signals (MusterPreemption *self);

/**
 * muster_preemption_watch:
 * @self: the preemption
 *
 * For a program with its own handlers: starts the thread that [method@Preemption.notify] wakes.
 *
 * Returns: FALSE with an error if the thread can't be started
 */
gboolean muster_preemption_watch (MusterPreemption *self, GError **error);

/**
 * muster_preemption_notify:
 * @self: the preemption
 * @signal_number: the signal
 *
 * Requests a preemption from a signal handler: async-signal-safe. Who asks with
 * [method@Preemption.is_requested] sees it at once; the thread of [method@Preemption.watch]
 * enforces the grace.
 */
void muster_preemption_notify (MusterPreemption *self, int signal_number);

/**
 * muster_preemption_request:
 * @self: the preemption
 * @signal_number: the signal; 0: none
 *
 * Requests a preemption directly, not from a handler. The first request counts; requests after the
 * end of the session are ignored. Without watch, only the saves' own deadlines limit what follows.
 */
void muster_preemption_request (MusterPreemption *self, int signal_number);

/**
 * muster_preemption_drill:
 * @self: the preemption
 *
 * [method@Preemption.request] as a rehearsal.
 */
void muster_preemption_drill (MusterPreemption *self);

/**
 * muster_preemption_is_requested:
 * @self: the preemption
 *
 * Whether a preemption was requested.
 *
 * Returns: TRUE after the first request
 */
gboolean muster_preemption_is_requested (MusterPreemption *self);

/**
 * muster_preemption_cancellable:
 * @self: the preemption
 *
 * For muster_monitored_session_new () and other work that must end in time. Cancelled when no save
 * would fit after the current step, when the grace is over, and at once if there is no session yet
 * that could stop.
 *
 * Returns: (transfer none): the cancellable, borrowed
 */
GCancellable *muster_preemption_cancellable (MusterPreemption *self);

/* --- stopping and saving --- */

/**
 * muster_preemption_hook_new:
 * @self: the preemption
 *
 * Stops the session at the end of the step in which the preemption was requested.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_preemption_hook_new (MusterPreemption *self);

/**
 * muster_preemption_set_saver:
 * @self: the preemption
 * @saver: (nullable): what saves
 * @directory: (nullable): where
 *
 * Sets what saves at the end; a checkpoint hook does this. Without both there is nothing to save,
 * as on a worker.
 */
void muster_preemption_set_saver (MusterPreemption *self, MusterSaver *saver,
                                  const char *directory);

/**
 * MusterPreemptionSave:
 * @deadline_us: the caller's at first; then the save's
 * @is_last: the final one, after a request
 * @bytes: its size, by [method@Saver.estimate_bytes], which includes a reserve: a small checkpoint
 *   takes time for other things than its bytes
 *
 * A save limited by a preemption.
 */
typedef struct {
  gint64 deadline_us;
  gboolean is_last;
  guint64 bytes;
} MusterPreemptionSave;

/**
 * muster_preemption_begin_save:
 * @self: the preemption
 * @save: its deadline is set
 *
 * Called before a save, to limit and measure it. The save must use the deadline of @save, and
 * [method@Preemption.cancellable] in addition to its own. DEADLINE_EXCEEDED: the final save would
 * take longer than the remaining grace. Then don't save, and don't call end_save.
 *
 * Returns: FALSE with an error: don't save
 */
gboolean muster_preemption_begin_save (MusterPreemption *self, MusterPreemptionSave *save,
                                       GError **error);

/**
 * muster_preemption_end_save:
 * @self: the preemption
 * @save: as begun
 * @saved: (nullable): the result; needed without @failure
 * @failure: (nullable): why it failed
 *
 * Called after a save.
 */
void muster_preemption_end_save (MusterPreemption *self, const MusterPreemptionSave *save,
                                 const MusterSaved *saved, const GError *failure);

/**
 * muster_preemption_set_saving:
 * @self: the preemption
 * @is_saving: TRUE: a save is being written
 *
 * While a save is written beside training, a preemption leaves it all of the grace.
 */
void muster_preemption_set_saving (MusterPreemption *self, gboolean is_saving);

/**
 * muster_preemption_bound:
 * @self: the preemption
 * @deadline_us: an instant
 *
 * Limits a deadline to the grace.
 *
 * Returns: the earlier of @deadline_us and the end of the grace, once a preemption was requested
 */
gint64 muster_preemption_bound (MusterPreemption *self, gint64 deadline_us);

/**
 * muster_preemption_note_durable:
 * @self: the preemption
 * @step: the saved step
 * @prefix: the checkpoint
 * @bytes: its size
 * @took_us: how long it took, in microseconds; 0: it was restored
 *
 * Records a save made by other means, or a restored checkpoint.
 */
void muster_preemption_note_durable (MusterPreemption *self, gint64 step, const char *prefix,
                                     guint64 bytes, gint64 took_us);

/**
 * muster_preemption_estimate:
 * @self: the preemption
 * @bytes: (out) (optional): the size of the save
 *
 * Estimates how long a save would take now: the median of the last five; before the first, from a
 * small measured write in the directory and the model's size.
 *
 * Returns: microseconds; -1: unknown
 */
gint64 muster_preemption_estimate (MusterPreemption *self, guint64 *bytes);

/* --- the result --- */

/**
 * MusterPreemptionOutcome:
 * @MUSTER_PREEMPTION_NOT_ASKED: nobody has requested one
 * @MUSTER_PREEMPTION_UNDER_WAY: not complete yet
 * @MUSTER_PREEMPTION_SAVED: the state at the stop is durable
 * @MUSTER_PREEMPTION_NOT_BEGUN: a save couldn't fit: the last durable checkpoint counts
 * @MUSTER_PREEMPTION_GIVEN_UP: a save or a step failed or took too long: likewise
 * @MUSTER_PREEMPTION_NO_SAVE: there is nothing to save
 *
 * How a preemption has ended.
 */
typedef enum {
  MUSTER_PREEMPTION_NOT_ASKED,
  MUSTER_PREEMPTION_UNDER_WAY,
  MUSTER_PREEMPTION_SAVED,
  MUSTER_PREEMPTION_NOT_BEGUN,
  MUSTER_PREEMPTION_GIVEN_UP,
  MUSTER_PREEMPTION_NO_SAVE,
} MusterPreemptionOutcome;

/**
 * MusterPreemptionReport:
 * @outcome: how it has ended
 * @is_drill: it was a rehearsal
 * @signal_number: the signal; 0: none
 * @grace_us: the grace, in microseconds
 * @took_us: from the request to the durable save, or to the end
 * @needed_us: estimated duration of the save; -1: unknown
 * @needs_us: the grace that it would need; -1: unknown
 * @bytes: of that save
 * @durable_step: the last durable step; -1: none
 * @durable: (nullable): its checkpoint
 * @why: (nullable): of NOT_BEGUN and GIVEN_UP
 *
 * What a preemption did. Clear it.
 */
typedef struct {
  MusterPreemptionOutcome outcome;
  gboolean is_drill;
  int signal_number;
  gint64 grace_us;
  gint64 took_us;
  gint64 needed_us;
  gint64 needs_us;
  guint64 bytes;
  gint64 durable_step;
  char *durable;
  char *why;
} MusterPreemptionReport;

#define MUSTER_TYPE_PREEMPTION_REPORT (muster_preemption_report_get_type ())
GType muster_preemption_report_get_type (void);

/**
 * muster_preemption_report: (skip)
 * @self: the preemption
 * @report: where to return what it did, which the caller clears
 *
 * What the preemption did.
 *
 * Returns: FALSE without a request: then the report has the durable step only
 */
gboolean muster_preemption_report (MusterPreemption *self, MusterPreemptionReport *report);

/**
 * muster_preemption_get_report:
 * @self: the preemption
 *
 * muster_preemption_report () on the heap, for other languages.
 *
 * Returns: (transfer full): what it did
 */
MusterPreemptionReport *muster_preemption_get_report (MusterPreemption *self);

/**
 * muster_preemption_report_clear:
 * @report: a report on the stack
 *
 * Frees what a report points to.
 */
void muster_preemption_report_clear (MusterPreemptionReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterPreemptionReport, muster_preemption_report_clear)

/**
 * muster_preemption_report_text:
 * @report: a report
 *
 * A report as a sentence.
 *
 * Returns: (transfer full): such as "a preemption would take 1.2 s of the 30 s grace: 28.8 s to
 *   spare"
 */
char *muster_preemption_report_text (const MusterPreemptionReport *report);

/**
 * muster_preemption_explains:
 * @self: the preemption
 * @failure: (nullable): how a run has ended
 *
 * Whether a run was preempted rather than failed by itself.
 *
 * Returns: TRUE if a preemption was requested, and the run was cancelled, timed out or lost its
 *   master
 */
gboolean muster_preemption_explains (MusterPreemption *self, const GError *failure);

G_END_DECLS
