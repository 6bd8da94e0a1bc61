// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/lease.h"
#include "train/hooks/background_save_private.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* What the hook that saves knows of a master that is about to stop, or of a job that is to save and
 * hold as if it were (muster_lease_is_draining ()). Belongs to the training thread. */

typedef struct {
  MusterLease *lease; /* (owned) (nullable) the session's */
  gint64 heard_us;    /* nothing more is saved for what lasts until about then; 0: nothing yet */
  gint64 held_us;     /* when the save for that began, and the tasks were told to hold */
  gint64 until_us;    /* the model is saved, and the master is to stop by then; else 0 */
} MusterDrainWatch;

void muster_drain_watch_clear (MusterDrainWatch *self);

/* For each session: tells the master that the chief saves before it stops. */
void muster_drain_watch_open (MusterDrainWatch *self, const MusterSaveCall *call);

/* TRUE if the master is about to stop, at *until_us (system clock), and that wasn't dealt with. */
gboolean muster_drain_watch_is_due (const MusterDrainWatch *self, gint64 *until_us);
/* It is dealt with. */
void muster_drain_watch_note_heard (MusterDrainWatch *self, gint64 until_us);

/* The model is saved, and nothing trains it. */
void muster_drain_watch_note_saved (MusterDrainWatch *self, gint64 until_us);

/* TRUE once that was noted: the next step isn't to begin. */
gboolean muster_drain_watch_is_saved (const MusterDrainWatch *self);

/* There is no next step. TRUE if the model was saved for the drain. */
gboolean muster_drain_watch_end (MusterDrainWatch *self);

/* TRUE if no task has trained since the cut of the save, as one may that hadn't heard of the hold,
 * since its input took long. If the master doesn't answer, the save stands. */
gboolean muster_drain_watch_is_unchanged (const MusterSaveCall *call, MusterSaver *saver);

/* Before the next step: tells the master, which then stops, and waits for that. Not earlier, as a
 * job that ends instead needs the master for it. FALSE with UNAVAILABLE, as a lost master, when it
 * has stopped; TRUE if it still runs a while after it was to stop, if it is to stop later than the
 * tasks hold, which is due anew then, or if cancelled (nullable) was. */
gboolean muster_drain_watch_await_end (MusterDrainWatch *self, const MusterSaveCall *call,
                                       MusterScaffold *scaffold, MusterSaver *saver,
                                       GCancellable *cancelled, GError **error);

G_END_DECLS
