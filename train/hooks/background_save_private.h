// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"
#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* The checkpoint hook's saves in the background: one at a time, of which the hook learns the end at
 * the end of a step. Belongs to the training thread. */

/* A call of the hook that saves. */
typedef struct {
  MusterSession *session; /* (not owned) (nullable) NULL: the run has failed */
  gint64 deadline_us;
  GCancellable *cancellable; /* (not owned) (nullable) */
} MusterSaveCall;

typedef struct {
  MusterAsyncSaver *async;      /* (owned) (nullable) NULL: saves block */
  MusterPreemption *preemption; /* (owned) (nullable) */
  MusterSaveTicket *ticket;     /* (owned) (nullable) the save that is being written */
  MusterSaveTicket *given_up;   /* (owned) (nullable) one that was cancelled and may still run */
  gint64 began_us;              /* when that began: it saves the work until then */
  gint64 durable_us;            /* when the last durable one began; 0: none is yet */
  gint64 staging_us;            /* how long it held the step */
  gint64 report_us;             /* when it is reported as slow */
  gboolean has_deferred;        /* another was due meanwhile, at some time */
} MusterBackgroundSave;

void muster_background_save_clear (MusterBackgroundSave *self);

/* For each session: saves its model from now on. A saver without variables isn't saved in the
 * background. */
gboolean muster_background_save_open (MusterBackgroundSave *self, MusterSaver *saver,
                                      MusterSession *session, GError **error);

/* Takes the snapshot, and returns while it is being written. due: as in muster_saver_save_with ().
 */
gboolean muster_background_save_start (MusterBackgroundSave *self, const char *directory,
                                       gint64 step, MusterTierSet due, const MusterSaveCall *call,
                                       GError **error);

/* TRUE if failure, of a start, is the snapshot's own: this save blocks, and all later ones if the
 * model or the master has no snapshots. */
gboolean muster_background_save_must_block (MusterBackgroundSave *self, const GError *failure);

/* TRUE while a previous save is running: the one that is due at step follows it. Reports that once,
 * and a disk that hangs again and again. */
gboolean muster_background_save_is_busy (MusterBackgroundSave *self, gint64 step);

/* Takes the save that has ended (transfer full), or NULL if there is none; *failure is set if it
 * failed. */
MusterSaveTicket *muster_background_save_take_ended (MusterBackgroundSave *self,
                                                     const MusterSaveCall *call, GError **failure);

/* Waits until the save has ended. One that isn't done in time is cancelled; the checkpoint before
 * remains the latest. */
gboolean muster_background_save_wait (MusterBackgroundSave *self, const MusterSaveCall *call,
                                      GError **error);

/* The bounds of a save whose session is gone: another session waits for it, but no longer than the
 * work took that it saves, or half a second. */
MusterSaveCall muster_background_save_bound (MusterBackgroundSave *self,
                                             const MusterSaveCall *call);
/* The bounds of a save whose run ends: the grace of the preemption, or 30 s without one. */
MusterSaveCall muster_background_save_bound_by_grace (MusterBackgroundSave *self);

/* Waits for such a save, and cancels it if it isn't done in time. FALSE if it has failed: that is
 * logged, and counts against nothing. */
gboolean muster_background_save_abandon (MusterBackgroundSave *self, const MusterSaveCall *bounded);

/* At the end of the run, after what was in flight: ends the thread, and returns an error that
 * wasn't reported. Nothing is done about a thread that is stuck in a save that was given up. */
gboolean muster_background_save_shutdown (MusterBackgroundSave *self, GError **error);

G_END_DECLS
