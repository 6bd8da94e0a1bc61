// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"

G_BEGIN_DECLS

/* A coordinator that doesn't answer for so long counts as away: nobody waits for it longer. */
#define MUSTER_COORDINATOR_LIMIT_US (2 * MUSTER_SECOND)

/* A session of a master that has a coordinator (muster_master_set_coordinator ()): its watch
 * reports what the model's chief has announced there. What the ops report is for the waiter itself
 * to find out, in the session. */
gboolean muster_session_is_coordinated (MusterSession *self);

/* For implementations: before the session is handed out. */
void muster_session_set_coordinated (MusterSession *self);

/* muster_watch_next (), until until_us: then DEADLINE_EXCEEDED, and the watch continues. */
gboolean muster_watch_next_until (MusterWatch *self, MusterReadiness *readiness, gint64 until_us,
                                  GCancellable *cancellable, GError **error);

G_END_DECLS
