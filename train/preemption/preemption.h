// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* MusterPreemption ends a job on SIGTERM, within the time until SIGKILL (the grace). Training stops
 * at the end of the current step, and its state is saved if that fits into the remaining time,
 * estimated from earlier saves. A save that can't fit isn't started, and one that takes longer than
 * estimated is cancelled before the grace is over, so that no partial checkpoint remains; the last
 * durable checkpoint then counts. In both cases the job can be resumed, as its exit code (6) shows.
 *
 * A job that ends before it could be stopped is done, not preempted: the caller must check whether
 * it has reached its last step.
 *
 * Usage: create one, take the signals, pass its cancellable to the monitored session, add its hook,
 * and set it in the checkpoint hook's options (MusterMonitoredTrainingOptions.preemption does the
 * last two). Afterwards read the report. Any thread. */

#define MUSTER_TYPE_PREEMPTION (muster_preemption_get_type ())
G_DECLARE_FINAL_TYPE (MusterPreemption, muster_preemption, MUSTER, PREEMPTION, GObject)

#define MUSTER_DEFAULT_GRACE_US (30 * MUSTER_SECOND)

/* grace_us 0: 30 s, as in Kubernetes. A tenth of it, at most a second, is reserved for the time
 * after the save. clock NULL: the machine's. */
MusterPreemption *muster_preemption_new (gint64 grace_us, MusterClock *clock);

/* --- requests --- */

/* Handles SIGTERM, and SIGINT with with_sigint (a second one ends the process at once), as long as
 * this object lives. The handler wakes a thread that enforces the grace, also while another thread
 * is in a run. One at a time in a process: ALREADY_EXISTS. */
gboolean muster_preemption_take_signals (MusterPreemption *self, gboolean with_sigint,
                                         GError **error);

/* For a program with its own handlers: starts the thread … */
gboolean muster_preemption_watch (MusterPreemption *self, GError **error);
/* … and notifies it. Async-signal-safe. */
void muster_preemption_notify (MusterPreemption *self, int signal_number);

/* Requests a preemption directly, not from a handler. The first request counts; requests after the
 * end of the session are ignored. Without watch, only the saves' own deadlines limit what follows.
 * drill does the same as a rehearsal. */
void muster_preemption_request (MusterPreemption *self, int signal_number);
void muster_preemption_drill (MusterPreemption *self);

gboolean muster_preemption_is_requested (MusterPreemption *self);

/* For muster_monitored_session_new () and other work that must end in time; borrowed. Cancelled
 * when no save would fit after the current step, when the grace is over, and at once if there is no
 * session yet that could stop. */
GCancellable *muster_preemption_cancellable (MusterPreemption *self);

/* --- stopping and saving --- */

/* Stops the session at the end of the step in which the preemption was requested. */
MusterHook *muster_preemption_hook_new (MusterPreemption *self);

/* Sets what saves (a checkpoint hook does this), and where. Without saver (nullable) and directory
 * (nullable) there is nothing to save at the end, as on a worker. */
void muster_preemption_set_saver (MusterPreemption *self, MusterSaver *saver,
                                  const char *directory);

/* A save limited by a preemption. */
typedef struct {
  gint64 deadline_us; /* the caller's at first; then the save's */
  gboolean is_last;   /* the final one, after a request */
  guint64 bytes; /* its size, by muster_saver_estimate_bytes (), which includes a reserve: a small
                    checkpoint takes time for other things than its bytes */
} MusterPreemptionSave;

/* Called before a save, and after it, to limit and measure it. The save must use save->deadline_us,
 * and muster_preemption_cancellable () in addition to its own. FALSE with DEADLINE_EXCEEDED: the
 * final save would take longer than the remaining grace. Then don't save, and don't call end_save.
 */
gboolean muster_preemption_begin_save (MusterPreemption *self, MusterPreemptionSave *save,
                                       GError **error);
/* saved is nullable if failure (nullable) is set. */
void muster_preemption_end_save (MusterPreemption *self, const MusterPreemptionSave *save,
                                 const MusterSaved *saved, const GError *failure);
/* While a save is written beside training (is_saving), a preemption leaves it all of the grace. */
void muster_preemption_set_saving (MusterPreemption *self, gboolean is_saving);
/* The earlier of deadline_us and the end of the grace, once a preemption was requested. */
gint64 muster_preemption_bound (MusterPreemption *self, gint64 deadline_us);
/* Records a save made by other means, or a restored checkpoint (took_us 0). */
void muster_preemption_note_durable (MusterPreemption *self, gint64 step, const char *prefix,
                                     guint64 bytes, gint64 took_us);

/* Estimates how long a save would take now, in microseconds: the median of the last five; before
 * the first, from a small measured write in the directory and the model's size. -1: unknown. bytes
 * (nullable out) is the size. */
gint64 muster_preemption_estimate (MusterPreemption *self, guint64 *bytes);

/* --- the result --- */

typedef enum {
  MUSTER_PREEMPTION_NOT_ASKED,
  MUSTER_PREEMPTION_UNDER_WAY, /* not complete yet */
  MUSTER_PREEMPTION_SAVED,     /* the state at the stop is durable */
  MUSTER_PREEMPTION_NOT_BEGUN, /* a save couldn't fit: the last durable checkpoint counts */
  MUSTER_PREEMPTION_GIVEN_UP,  /* a save or a step failed or took too long (why): likewise */
  MUSTER_PREEMPTION_NO_SAVE,   /* there is nothing to save */
} MusterPreemptionOutcome;

typedef struct {
  MusterPreemptionOutcome outcome;
  gboolean is_drill;
  int signal_number; /* 0: none */
  gint64 grace_us;
  gint64 took_us;      /* from the request to the durable save, or to the end */
  gint64 needed_us;    /* estimated duration of the save; -1: unknown */
  gint64 needs_us;     /* the grace that it would need; -1 */
  guint64 bytes;       /* of that save */
  gint64 durable_step; /* -1: none */
  char *durable;       /* (owned) (nullable) */
  char *why;           /* (owned) (nullable) of NOT_BEGUN and GIVEN_UP */
} MusterPreemptionReport;

/* Sets report, which the caller clears. FALSE without a request: then it has the durable step only.
 */
gboolean muster_preemption_report (MusterPreemption *self, MusterPreemptionReport *report);
void muster_preemption_report_clear (MusterPreemptionReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterPreemptionReport, muster_preemption_report_clear)

/* "a preemption would take 1.2 s of the 30 s grace: 28.8 s to spare" (transfer full) */
char *muster_preemption_report_text (const MusterPreemptionReport *report);

/* TRUE if a run that ended with failure (nullable) was preempted rather than failed by itself: a
 * preemption was requested, and the run was cancelled, timed out or lost its master. */
gboolean muster_preemption_explains (MusterPreemption *self, const GError *failure);

G_END_DECLS
