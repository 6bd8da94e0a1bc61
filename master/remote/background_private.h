// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterBackgroundTask is work that a remote master does on a thread of its own, whenever it is
 * due: it renews a lease, a membership or sessions, and reopens broken streams. One that waits for
 * a slow answer delays no other. Any thread. */
typedef struct _MusterBackgroundTask MusterBackgroundTask;

/* Does the work that is due, and returns the instant of the next run on muster_system_clock (), or
 * MUSTER_WAIT_FOREVER. It may block until cancellable is cancelled. */
typedef gint64 (*MusterBackgroundWork) (gpointer owner, GCancellable *cancellable);

/* name: the thread's, at most 15 characters; static. The first run is at due_us. Free it before its
 * owner. (transfer full) */
MusterBackgroundTask *muster_background_task_new (const char *name, MusterBackgroundWork work,
                                                  gpointer owner, gint64 due_us);

/* Runs the task now, or again if it is running. Does nothing after a stop. Takes only the task's
 * own lock, which is never held during other work. */
void muster_background_task_wake (MusterBackgroundTask *self);

/* Cancels a running task, waits for it, and doesn't run it again. Idempotent. Must not be called
 * from a task. */
void muster_background_task_stop (MusterBackgroundTask *self);

/* Stops the task if necessary, and frees it. */
void muster_background_task_free (MusterBackgroundTask *self);

G_END_DECLS
