// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/**
 * MusterSessionObserver:
 *
 * Emits signals for the sessions that a [class@MonitoredSession] creates and loses, on the thread
 * that runs it.
 */
#define MUSTER_TYPE_SESSION_OBSERVER (muster_session_observer_get_type ())
G_DECLARE_FINAL_TYPE (MusterSessionObserver, muster_session_observer, MUSTER, SESSION_OBSERVER,
                      GObject)

/**
 * MusterSessionObserver::waiting:
 * @self: the observer
 * @message: one line
 * @readiness: the last readiness; empty if the master wasn't asked for it
 * @reasons: (element-type MusterReason): the situation
 *
 * Of a monitored training: as [callback@SessionProgress].
 */

/**
 * MusterSessionObserver::made:
 * @self: the observer
 * @report: the manager's; a handler in C may keep it: it moves the fields and leaves zeros
 * @error: (nullable): the attempt failed
 *
 * An attempt to create a session has ended; the hooks haven't been called yet.
 */

/**
 * MusterSessionObserver::lost:
 * @self: the observer
 * @why: the failure
 * @n: the number of recoveries so far, including this one
 * @pause_us: microseconds until the next attempt
 *
 * The session is lost, and another one is created after a pause.
 */

/**
 * muster_session_observer_new:
 *
 * An observer without handlers. Connect to its signals, and set it in
 * [struct@MonitoredSessionOptions].
 *
 * Returns: (transfer full): the observer
 */
MusterSessionObserver *muster_session_observer_new (void);

G_END_DECLS
