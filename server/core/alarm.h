// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterAlarm calls a function on a thread of its own whenever that is due, by a clock that may be
 * a fake: for leases that expire, and for news that its callers can't handle on their own threads.
 * The thread begins with the first muster_alarm_set (). Any thread. */

typedef struct _MusterAlarm MusterAlarm;

/* Does what is due, and returns when it is due next, or MUSTER_WAIT_FOREVER. */
typedef gint64 (*MusterAlarmFunc) (gpointer data);

/* name: the thread's, at most 15 characters; static. */
MusterAlarm *muster_alarm_new (MusterClock *clock, const char *name, MusterAlarmFunc func,
                               gpointer data);
void muster_alarm_free (MusterAlarm *self);

/* Calls func at due_us at the latest; 0: now. A call that is in progress is followed by another, so
 * that what was added before is seen. Does nothing after a stop. Doesn't block. */
void muster_alarm_set (MusterAlarm *self, gint64 due_us);

/* Waits for a call in progress, and makes no other. Idempotent. Not in func. */
void muster_alarm_stop (MusterAlarm *self);

G_END_DECLS
