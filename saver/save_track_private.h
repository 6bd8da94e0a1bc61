// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterSaveTrack follows one save for its saver's status (muster_saver_status ()), whoever makes
 * it: MusterSaver alone, or an async saver. Reference-counted; any thread. */

typedef struct _MusterSaveTrack MusterSaveTrack;

/* What a saver knows of its saves; guarded by the saver's lock. */
typedef struct {
  MusterSaveStatus status; /* its ages are instants, and without a save in flight */
  GQueue tracks;           /* (element-type MusterSaveTrack) (not owned) in flight, oldest first */
} MusterSaveLog;

void muster_save_log_init (MusterSaveLog *self);
void muster_save_log_clear (MusterSaveLog *self);

/* It was requested at began_us, on the saver's clock, and takes the saver's metric. The caller of a
 * background save goes on before it has ended. */
MusterSaveTrack *muster_save_track_new (MusterSaver *saver, const char *path, gint64 step,
                                        gint64 began_us, gboolean is_background);
MusterSaveTrack *muster_save_track_ref (MusterSaveTrack *self);
/* The last one ends a save that hasn't ended as FAILED. */
void muster_save_track_unref (MusterSaveTrack *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSaveTrack, muster_save_track_unref)

/* The value of the saver's metric for this save; NAN: none. */
double muster_save_track_metric (const MusterSaveTrack *self);
/* Gives it back to the saver after a save that failed before training went on, for the next try. */
void muster_save_track_return_metric (MusterSaveTrack *self);

/* It is called otherwise: the cut has another step. */
void muster_save_track_rename (MusterSaveTrack *self, const char *path, gint64 step);
/* Its caller goes on, which may be after its end. */
void muster_save_track_unblock (MusterSaveTrack *self);
/* The master begins to write. */
void muster_save_track_write (MusterSaveTrack *self);
/* STAGED or WRITTEN. */
void muster_save_track_reach (MusterSaveTrack *self, MusterSaveState state);
/* DURABLE or after it; bytes is the checkpoint's size. Only the first call counts. */
void muster_save_track_end (MusterSaveTrack *self, MusterSaveState state, guint64 bytes);

/* When it reached each state, on the saver's clock; -1: never. */
void muster_save_track_read (MusterSaveTrack *self, gint64 at_us[MUSTER_N_SAVE_STATES]);

G_END_DECLS
