// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* The number of saves for the estimate. */
#define MUSTER_PREEMPTION_SAVES 5

typedef struct {
  guint64 bytes;
  gint64 took_us;
} MusterMeasuredSave;

struct _MusterPreemption {
  GObject parent;
  gint64 grace_us;
  gint64 reserve_us;         /* the part of it reserved for the time after the save */
  MusterClock *clock;        /* (owned) */
  GCancellable *cancellable; /* (owned) for the run */
  GCancellable *requested;   /* (owned) cancelled by the request */
  gint is_requested;         /* atomic */
  /* the thread woken by handlers */
  GThread *watcher; /* (owned) (nullable) */
  int event_fd;     /* -1: none */
  gint pending;     /* atomic: number of a signal not handled yet; 0 */
  gint is_ending;   /* atomic */
  gboolean has_signals;
  gboolean has_sigint;
  GMutex lock;
  /* guarded by lock */
  GCancellable
      *nudge; /* (owned) cancelled and replaced to wake the watcher when the state changes */
  gboolean is_drill;
  int signal_number;
  gint64 requested_us;
  gint64 ended_us;                /* 0: not yet */
  MusterCoordinator *coordinator; /* (owned) (nullable) the session's */
  gboolean has_hooks;             /* there is a session that can stop */
  gboolean is_lost;               /* its session; another one isn't there yet */
  gboolean is_all_saved;          /* all that was trained is durable */
  gboolean is_missed;             /* a request came after the end of the session */
  int missed_signal;
  gboolean is_saving;  /* a save is running */
  gboolean was_saved;  /* the final save has ended, or wasn't needed */
  gboolean is_refused; /* no save was started */
  MusterSaver *saver;  /* (owned) (nullable) */
  char *directory;     /* (owned) (nullable) */
  MusterMeasuredSave saves[MUSTER_PREEMPTION_SAVES];
  guint n_saves;       /* in total; saves is a ring buffer */
  double bytes_per_us; /* of a small write, measured once; 0: not yet */
  gint64 needed_us;    /* the estimate at the end; -1 */
  gint64 needs_us;     /* the grace for it; -1 */
  guint64 needed_bytes;
  gint64 durable_step; /* -1 */
  char *durable;       /* (owned) (nullable) */
  gint64 durable_us;   /* when it became durable */
  char *why;           /* (owned) (nullable) */
};

/* With the lock: the end of the grace without the reserve. */
gint64 muster_preemption_deadline_locked (const MusterPreemption *self);
/* With the lock: like muster_preemption_estimate () without a measurement: -1 before the first
 * save. */
gint64 muster_preemption_known_locked (const MusterPreemption *self, guint64 bytes);
/* With the lock: TRUE if a save still fits; otherwise sets why. is_late: it doesn't fit because
 * what comes before it hasn't ended in time. */
gboolean muster_preemption_fits_locked (MusterPreemption *self, gint64 needed_us, guint64 bytes,
                                        gboolean is_late);
/* With the lock: wakes the watcher after a change. */
void muster_preemption_nudge_locked (MusterPreemption *self);

/* preemption_watch.c */
void muster_preemption_stop_watching (MusterPreemption *self);
void muster_preemption_wake (MusterPreemption *self);

/* Cancelled by the request, for waits that come before a step; borrowed. */
GCancellable *muster_preemption_requested (MusterPreemption *self);

/* Called by the hook: there is a session; training has stopped, possibly by itself. */
void muster_preemption_begin (MusterPreemption *self, MusterCoordinator *coordinator);
void muster_preemption_end (MusterPreemption *self, const GError *failure);
/* The session is lost, and the run is about to create another one. */
void muster_preemption_note_lost (MusterPreemption *self);
/* Whether all that was trained is durable, and nothing is trained at present. */
void muster_preemption_note_all_saved (MusterPreemption *self, gboolean is_all_saved);
/* Another session follows the one that has ended, for the same training. */
void muster_preemption_begin_again (MusterPreemption *self);

G_END_DECLS
