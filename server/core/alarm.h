// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterAlarm calls a function on its own thread when it is due, by a clock that may be a fake: for
 * leases that expire, and for changes that callers can't handle on their own threads. The thread
 * begins with the first muster_alarm_set (). Any thread. */

typedef struct _MusterAlarm MusterAlarm;

/* Does what is due, and returns when it is due next, or MUSTER_WAIT_FOREVER. */
typedef gint64 (*MusterAlarmFunc) (gpointer data);

/* name: the thread's, at most 15 characters; static. */
MusterAlarm *muster_alarm_new (MusterClock *clock, const char *name, MusterAlarmFunc func,
                               gpointer data);
void muster_alarm_free (MusterAlarm *self);

/* Calls func at due_us at the latest; 0: now. If a call is in progress, another one follows it,
 * which sees all changes made before this. Does nothing after a stop. Doesn't block. */
void muster_alarm_set (MusterAlarm *self, gint64 due_us);

/* Waits for a call in progress; no further call is made. Idempotent. Don't call it in func. */
void muster_alarm_stop (MusterAlarm *self);

G_END_DECLS
