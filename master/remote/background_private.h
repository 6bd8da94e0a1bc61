// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterBackground is the background thread of a remote master: it renews leases and sessions, and
 * reopens broken streams. It starts with the first task and ends with the last reference. Tasks run
 * one after another. Any thread. */

typedef struct _MusterBackground MusterBackground;
typedef struct _MusterBackgroundTask MusterBackgroundTask;

/* Does the work that is due, and returns the instant of the next run on muster_system_clock (), or
 * MUSTER_WAIT_FOREVER. It may block until cancellable is cancelled. */
typedef gint64 (*MusterBackgroundWork) (gpointer owner, GCancellable *cancellable);

MusterBackground *muster_background_new (void);
MusterBackground *muster_background_ref (MusterBackground *self);
/* Must not be called from a task. */
void muster_background_unref (MusterBackground *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBackground, muster_background_unref)

/* (transfer full) Free it before its owner and before the last reference to self. */
MusterBackgroundTask *muster_background_add (MusterBackground *self, MusterBackgroundWork work,
                                             gpointer owner, gint64 due_us);

/* Runs the task now, or again if it is running. Does nothing after a stop. Takes only the
 * background's own lock, which is never held during other work. */
void muster_background_wake (MusterBackgroundTask *task);

/* Cancels a running task, waits for it, and doesn't run it again. Must not be called from a task.
 */
void muster_background_stop (MusterBackgroundTask *task);
/* Stops the task if necessary, and frees it. */
void muster_background_task_free (MusterBackgroundTask *task);

G_END_DECLS
