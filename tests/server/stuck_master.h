// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* A master whose steps get stuck: fetching "stuck" waits until the test lets go, or until the step
 * is cancelled, out of time or its session closed, and ends with that error, as a dequeue would.
 * Any other step yields 42 for each fetch at once. Each callable fetches "stuck". Graphs are not
 * looked at. It can't be reset. Any thread. */

#define MUSTER_TYPE_STUCK_MASTER (muster_stuck_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterStuckMaster, muster_stuck_master, MUSTER, STUCK_MASTER, GObject)

MusterStuckMaster *stuck_master_new (void);

/* Waits (at most 30 s) until exactly n steps are stuck; FALSE if it doesn't come to that. */
gboolean stuck_master_wait_for (MusterStuckMaster *self, guint n);

/* How many stuck steps ended since they were let go, not since they were stopped. */
guint stuck_master_n_whole (MusterStuckMaster *self);

/* Lets all go that are stuck, and whoever would get stuck from now on. */
void stuck_master_let_go (MusterStuckMaster *self);

G_END_DECLS
