// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/sessions.h"

G_BEGIN_DECLS

/* MusterSessionReaper closes sessions whose lease has expired. It starts its thread with the first
 * session that has a lease; the thread sleeps until the next may expire. Any thread. */

typedef struct _MusterSessionReaper MusterSessionReaper;

/* Receives the sessions (element-type MusterServed) that were removed from the table; called on the
 * reaper's thread. */
typedef void (*MusterExpired) (GPtrArray *expired, gpointer user_data);

/* sessions are borrowed. */
MusterSessionReaper *muster_session_reaper_new (MusterSessions *sessions, MusterClock *clock,
                                                MusterExpired expired, gpointer user_data);
void muster_session_reaper_free (MusterSessionReaper *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessionReaper, muster_session_reaper_free)

/* Notes a new session with this lease. */
void muster_session_reaper_watch (MusterSessionReaper *self, gint64 lease_us);

/* Joins the thread: no more sessions expire. Idempotent. */
void muster_session_reaper_stop (MusterSessionReaper *self);

/* The number of expired sessions. */
guint64 muster_session_reaper_n_expired (MusterSessionReaper *self);

G_END_DECLS
