// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/sessions.h"

G_BEGIN_DECLS

/* MusterCollector closes sessions whose lease has run out. It has a thread only from the first
 * session with a lease on, and that one sleeps until the next may run out. Any thread. */

typedef struct _MusterCollector MusterCollector;

/* Sessions (element-type MusterServed) that were taken out of the table; called on the collector's
 * thread. */
typedef void (*MusterExpired) (GPtrArray *expired, gpointer user_data);

/* sessions are borrowed. */
MusterCollector *muster_collector_new (MusterSessions *sessions, MusterClock *clock,
                                       MusterExpired expired, gpointer user_data);
void muster_collector_free (MusterCollector *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterCollector, muster_collector_free)

/* A session with this lease was made. */
void muster_collector_mind (MusterCollector *self, gint64 lease_us);

/* Joins the thread: none expires any more. Idempotent. */
void muster_collector_stop (MusterCollector *self);

/* How many have expired. */
guint64 muster_collector_n_expired (MusterCollector *self);

G_END_DECLS
