// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterBackground is the one thread of a remote master on which things are kept up behind the
 * scenes: leases and sessions are renewed, what broke is taken up again. It starts with the first
 * task and ends with the last reference. Tasks run one after another. Any thread. */

typedef struct _MusterBackground MusterBackground;
typedef struct _MusterBackgroundTask MusterBackgroundTask;

/* Does what is due and returns when it is due again: an instant of muster_system_clock (), or
 * MUSTER_WAIT_FOREVER. It may block, for as long as cancellable isn't cancelled. */
typedef gint64 (*MusterBackgroundWork) (gpointer owner, GCancellable *cancellable);

MusterBackground *muster_background_new (void);
MusterBackground *muster_background_ref (MusterBackground *self);
/* Never from within a task. */
void muster_background_unref (MusterBackground *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackground, muster_background_unref)

/* (transfer full) to be freed before its owner goes, and before the last reference does. */
MusterBackgroundTask *muster_background_add (MusterBackground *self, MusterBackgroundWork work,
                                             gpointer owner, gint64 due_us);

/* It is due now, or once more where it runs; nothing happens once it is stopped. Takes no lock but
 * the upkeep's own, which is never held around anything else. */
void muster_background_wake (MusterBackgroundTask *task);

/* Cancels a run that is under way and waits for its end; it isn't run again. Never from within a
 * task. */
void muster_background_stop (MusterBackgroundTask *task);
/* Stops it if it isn't, and frees it. */
void muster_background_task_free (MusterBackgroundTask *task);

G_END_DECLS
