// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* How many saves the estimate goes by. */
#define MUSTER_PREEMPTION_SAVES 5

typedef struct {
  guint64 bytes;
  gint64 took_us;
} MusterMeasuredSave;

struct _MusterPreemption {
  GObject parent;
  gint64 grace_us;
  gint64 reserve_us;         /* of it, for what comes after the save */
  MusterClock *clock;        /* (owned) */
  GCancellable *cancellable; /* (owned) the run's */
  gint is_requested;         /* atomic */
  /* the thread that is woken by handlers */
  GThread *watcher; /* (owned) (nullable) */
  int event_fd;     /* -1: none */
  gint pending;     /* atomic: a signal's number that hasn't been dealt with; 0 */
  gint is_ending;   /* atomic */
  gboolean has_signals;
  gboolean has_sigint;
  GMutex lock;
  /* guarded by lock */
  GCancellable
      *nudge; /* (owned) cancelled, and replaced, when what the watcher waits for changes */
  gboolean is_drill;
  int signal_number;
  gint64 requested_us;
  gint64 ended_us;                /* 0: not yet */
  MusterCoordinator *coordinator; /* (owned) (nullable) the session's */
  gboolean has_hooks;             /* a session is there that will stop */
  gboolean is_saving;             /* since it was asked or before */
  gboolean was_saved;             /* what could be done at the end has been done */
  gboolean is_refused;            /* no save was begun */
  MusterSaver *saver;             /* (owned) (nullable) */
  char *directory;                /* (owned) (nullable) */
  MusterMeasuredSave saves[MUSTER_PREEMPTION_SAVES];
  guint n_saves;       /* ever: they go round */
  double bytes_per_us; /* a small write's, measured once; 0: not yet */
  gint64 needed_us;    /* what was thought at the end; -1 */
  gint64 needs_us;     /* the grace for that; -1 */
  guint64 needed_bytes;
  gint64 durable_step; /* -1 */
  char *durable;       /* (owned) (nullable) */
  gint64 durable_us;   /* the instant at which it became so */
  char *why;           /* (owned) (nullable) */
};

/* When it is too late, with the lock: the grace without the reserve. */
gint64 muster_preemption_deadline_locked (const MusterPreemption *self);
/* As muster_preemption_estimate (), but nothing is measured: -1 before the first save. */
gint64 muster_preemption_known_locked (const MusterPreemption *self, guint64 bytes);
/* Whether a save still fits, with the lock; where it doesn't, says why. is_late: it doesn't, as
 * what comes before it hasn't ended in time. */
gboolean muster_preemption_fits_locked (MusterPreemption *self, gint64 needed_us, guint64 bytes,
                                        gboolean is_late);
/* Something has changed that the watcher waits by, with the lock. */
void muster_preemption_nudge_locked (MusterPreemption *self);
/* Asked, by whoever; is_drill without a signal. */
void muster_preemption_ask (MusterPreemption *self, int signal_number, gboolean is_drill);

/* preemption_watch.c */
void muster_preemption_stop_watching (MusterPreemption *self);
void muster_preemption_wake (MusterPreemption *self);

/* The hook's: a session is there; training has stopped, where it did so by itself. */
void muster_preemption_begin (MusterPreemption *self, MusterCoordinator *coordinator);
void muster_preemption_end (MusterPreemption *self, const GError *failure);

G_END_DECLS
