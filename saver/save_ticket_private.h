// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/wait_private.h"
#include "saver/save_ticket.h"

G_BEGIN_DECLS

/* MusterSaveLog holds what a saver knows of its saves. The saves' tickets share it, and may outlive
 * the saver. Reference-counted; any thread. */

typedef struct {
  gatomicrefcount refs;
  MusterClock *clock; /* (owned) */
  GMutex lock;
  /* guarded by lock */
  MusterSaveStatus status; /* its ages are instants, and without a save in flight */
  GQueue saves;            /* (element-type MusterSaveTicket) (not owned) in flight, oldest first */
  double metric;           /* for the next save; NAN: none */
  gint64 metric_step;      /* a save of this step took it; -1: none yet */
} MusterSaveLog;

MusterSaveLog *muster_save_log_new (MusterClock *clock);
void muster_save_log_unref (MusterSaveLog *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveLog, muster_save_log_unref)

/* The value for the next save; NAN: none. */
void muster_save_log_set_metric (MusterSaveLog *self, double value);
void muster_save_log_set_interval (MusterSaveLog *self, gint64 interval_us);
void muster_save_log_read (MusterSaveLog *self, MusterSaveStatus *status);

/* The record of one save, whoever makes it: MusterSaver alone, or an async saver. The saver's
 * status, the save's caller and those who wait for it read it. save_states.c has how it changes,
 * save_ticket.c who is told. */

struct _MusterSaveTicket {
  gatomicrefcount refs;
  MusterSaveLog *log;        /* (owned) its lock is the ticket's, too */
  GCancellable *cancellable; /* (owned) */
  gboolean is_background;    /* its caller goes on before it has ended */
  double metric;             /* the value of the saver's metric for it; NAN: none; constant */
  char **left_out;           /* (owned) (nullable) set before the ticket is shared */
  MusterGraph *graph; /* (owned) (nullable) that has the save tensor of a snapshot; for its save */
  GCond changed;      /* with the log's lock */
  /* guarded by the log's lock */
  GSList *paths; /* (owned) (element-type utf8) its path, and before it those that were told */
  gint64 step;
  MusterSaveState state;
  MusterSaveState told;               /* what its caller knows: once all that it means is done */
  gint64 at_us[MUSTER_N_SAVE_STATES]; /* -1: not reached */
  gint64 write_us;                    /* when the master began to write; -1: not yet */
  gint64 unblocked_us;                /* when its caller went on; -1: not yet */
  char *why;                          /* (owned) (nullable) */
  GError *error;                      /* (owned) (nullable) */
  GArray *callers;                    /* (owned) (nullable) */
  gboolean has_saved;
  MusterSaved saved; /* constant once has_saved is set */
};

/* It was requested at began_us, on the log's clock, and takes the log's metric. */
MusterSaveTicket *muster_save_ticket_new (MusterSaveLog *log, const char *path, gint64 step,
                                          gint64 began_us, gboolean is_background);

GCancellable *muster_save_ticket_cancellable (MusterSaveTicket *self);       /* borrowed */
void muster_save_ticket_set_left_out (MusterSaveTicket *self, char **names); /* (transfer full) */

/* --- how it goes --- */

/* The cut has another step, or another tier takes it. */
void muster_save_ticket_rename (MusterSaveTicket *self, const char *path, gint64 step);
/* Its caller goes on, which may be after its end. */
void muster_save_ticket_unblock (MusterSaveTicket *self);
/* The master begins to write. */
void muster_save_ticket_write (MusterSaveTicket *self);
/* STAGED or WRITTEN. */
void muster_save_ticket_reach (MusterSaveTicket *self, MusterSaveState state);
/* DURABLE or after it, for the saver's status; bytes is the checkpoint's size. Only the first call
 * counts; the last reference ends a save that hasn't ended as FAILED. */
void muster_save_ticket_end (MusterSaveTicket *self, MusterSaveState state, guint64 bytes);
/* The directory has its metric's value: none is left for another save of the step. */
void muster_save_ticket_forget_metric (MusterSaveTicket *self);
/* When it reached each state, on the log's clock; -1: never. */
void muster_save_ticket_read (MusterSaveTicket *self, gint64 at_us[MUSTER_N_SAVE_STATES]);

/* --- what its caller is told --- */

/* STAGED or WRITTEN. */
void muster_save_ticket_tell (MusterSaveTicket *self, MusterSaveState state);
/* Tells the end, in which a durable save may still be a failure: its lease was lost. error
 * (nullable) and why (nullable) are copied, saved (nullable) is taken and zeroed. */
void muster_save_ticket_settle (MusterSaveTicket *self, MusterSaveState state, const char *why,
                                MusterSaved *saved, const GError *error);
/* Calls the functions of a ticket whose end was told; without a lock that they may need. */
void muster_save_ticket_notify (MusterSaveTicket *self);

/* As muster_wait_for (), with an error. DEADLINE_EXCEEDED names `what`. */
gboolean muster_wait_until_done (GMutex *lock, GCond *changed, MusterIsDone is_done, gpointer data,
                                 const char *what, gint64 deadline_us, GCancellable *cancellable,
                                 GError **error);

G_END_DECLS
