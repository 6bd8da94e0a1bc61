// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/monitored/hook.h"

G_BEGIN_DECLS

/* MusterPreemption ends a job that is told to go: SIGTERM, and so many seconds until SIGKILL (the
 * grace). Training stops at the next step's end, and its last state is saved if that fits in what
 * is left: how long a save takes is known from those so far. One that can't fit isn't begun, and
 * one that takes longer than thought is given up before the grace is over, so that nothing is left
 * half written; then the last durable checkpoint counts. Either way the job can be resumed, and its
 * exit code (6) says so.
 *
 * A job that comes to its end before anybody could stop it is done, not preempted: see for yourself
 * whether it has reached its last step.
 *
 * To use it: make one, take the signals, give its cancellable to the monitored session, add its
 * hook, and name it in the checkpoint hook's options (MusterMonitoredTrainingOptions.preemption
 * does the last two). Afterwards read the report. Any thread. */

#define MUSTER_TYPE_PREEMPTION (muster_preemption_get_type ())
G_DECLARE_FINAL_TYPE (MusterPreemption, muster_preemption, MUSTER, PREEMPTION, GObject)

#define MUSTER_DEFAULT_GRACE_US (30 * MUSTER_SECOND)

/* grace_us 0: 30 s, as Kubernetes'. A tenth of it, a second at most, is kept for what comes after
 * the save. clock NULL: the machine's. */
MusterPreemption *muster_preemption_new (gint64 grace_us, MusterClock *clock);

/* --- being told --- */

/* Takes SIGTERM, and SIGINT with with_sigint (a second one ends the process at once), for as long
 * as this lives. The handler wakes a thread, which sees to the grace: also while another is inside
 * a run. One at a time in a process: ALREADY_EXISTS. */
gboolean muster_preemption_take_signals (MusterPreemption *self, gboolean with_sigint,
                                         GError **error);

/* The same for a program with handlers of its own: starts the thread … */
gboolean muster_preemption_watch (MusterPreemption *self, GError **error);
/* … and tells it; may be called in a signal handler. */
void muster_preemption_notify (MusterPreemption *self, int signal_number);

/* Asks at once, not from a handler; the first to ask counts, and nobody who comes after the end of
 * the session. Without watch nothing but the saves'
 * own deadlines bounds what follows. drill does the same as a rehearsal. */
void muster_preemption_request (MusterPreemption *self, int signal_number);
void muster_preemption_drill (MusterPreemption *self);

gboolean muster_preemption_is_requested (MusterPreemption *self);

/* For muster_monitored_session_new () and whatever else is to end in time; borrowed. Cancelled when
 * no save would fit any more after the step that is running, when the grace is over, and at once
 * where there is no session yet that could stop. */
GCancellable *muster_preemption_cancellable (MusterPreemption *self);

/* --- stopping and saving --- */

/* Stops the session at the end of the step in which this is asked for. */
MusterHook *muster_preemption_hook_new (MusterPreemption *self);

/* Says what saves (a checkpoint hook does), and where: without saver (nullable) and directory
 * (nullable) there is nothing to save at the end, as on a worker. */
void muster_preemption_set_saver (MusterPreemption *self, MusterSaver *saver,
                                  const char *directory);

/* A save that a preemption bounds. */
typedef struct {
  gint64 deadline_us; /* the caller's own at first; then that of the save */
  gboolean is_last;   /* the one at the end: somebody has asked */
  guint64 bytes;      /* by muster_saver_estimate_bytes (), which has something over: a small
                         checkpoint takes its time for other things than its bytes */
} MusterPreemptionSave;

/* Before a save, and after it, which is measured so. The save goes by save->deadline_us, and by
 * muster_preemption_cancellable () besides its own. FALSE with DEADLINE_EXCEEDED: at the end it
 * would take longer than is left of the grace. Then it isn't to begin, and there is nothing to
 * end. */
gboolean muster_preemption_begin_save (MusterPreemption *self, MusterPreemptionSave *save,
                                       GError **error);
/* saved is nullable with a failure (nullable). */
void muster_preemption_end_save (MusterPreemption *self, const MusterPreemptionSave *save,
                                 const MusterSaved *saved, const GError *failure);
/* A save by other means, or a checkpoint that was restored (took_us 0). */
void muster_preemption_note_durable (MusterPreemption *self, gint64 step, const char *prefix,
                                     guint64 bytes, gint64 took_us);

/* How long a save would take now, in microseconds: as the median of the last five, and before there
 * is any, by a small measured write in the directory and the model's size. -1: nobody knows. bytes
 * (nullable out) are what it saves. */
gint64 muster_preemption_estimate (MusterPreemption *self, guint64 *bytes);

/* --- afterwards --- */

typedef enum {
  MUSTER_PREEMPTION_NOT_ASKED,
  MUSTER_PREEMPTION_UNDER_WAY, /* it hasn't come to its end yet */
  MUSTER_PREEMPTION_SAVED,     /* where it stopped is durable */
  MUSTER_PREEMPTION_NOT_BEGUN, /* a save couldn't fit: the last durable one counts */
  MUSTER_PREEMPTION_GIVEN_UP,  /* a save or a step failed or took too long (why): likewise */
  MUSTER_PREEMPTION_NO_SAVE,   /* it has nothing to save */
} MusterPreemptionOutcome;

typedef struct {
  MusterPreemptionOutcome outcome;
  gboolean is_drill;
  int signal_number; /* 0: none */
  gint64 grace_us;
  gint64 took_us;      /* from being asked to durable, or to the end */
  gint64 needed_us;    /* what the save was thought to take; -1: nobody knows */
  gint64 needs_us;     /* how long the grace would have to be for it; -1 */
  guint64 bytes;       /* of that save */
  gint64 durable_step; /* -1: none */
  char *durable;       /* (owned) (nullable) */
  char *why;           /* (owned) (nullable) of NOT_BEGUN and GIVEN_UP */
} MusterPreemptionReport;

/* Fills report, to be cleared. FALSE where nobody has asked: then it tells what is durable. */
gboolean muster_preemption_report (MusterPreemption *self, MusterPreemptionReport *report);
void muster_preemption_report_clear (MusterPreemptionReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterPreemptionReport, muster_preemption_report_clear)

/* "a preemption would take 1.2 s of the 30 s grace: 28.8 s to spare" (transfer full) */
char *muster_preemption_report_text (const MusterPreemptionReport *report);

/* TRUE if a run that ended with failure (nullable) has been preempted, rather than failed on its
 * own: somebody has asked, and it was cancelled, ran out of time or lost its master. */
gboolean muster_preemption_explains (MusterPreemption *self, const GError *failure);

G_END_DECLS
