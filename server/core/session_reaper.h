// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/sessions.h"

G_BEGIN_DECLS

/* MusterSessionReaper closes sessions whose lease has run out. It has a thread only from the first
 * session with a lease on, and that one sleeps until the next may run out. Any thread. */

typedef struct _MusterSessionReaper MusterSessionReaper;

/* Sessions (element-type MusterServed) that were taken out of the table; called on the collector's
 * thread. */
typedef void (*MusterExpired) (GPtrArray *expired, gpointer user_data);

/* sessions are borrowed. */
MusterSessionReaper *muster_session_reaper_new (MusterSessions *sessions, MusterClock *clock,
                                                MusterExpired expired, gpointer user_data);
void muster_session_reaper_free (MusterSessionReaper *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionReaper, muster_session_reaper_free)

/* A session with this lease was made. */
void muster_session_reaper_watch (MusterSessionReaper *self, gint64 lease_us);

/* Joins the thread: none expires any more. Idempotent. */
void muster_session_reaper_stop (MusterSessionReaper *self);

/* How many have expired. */
guint64 muster_session_reaper_n_expired (MusterSessionReaper *self);

G_END_DECLS
