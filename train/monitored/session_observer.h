// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/**
 * MusterSessionListener:
 * @made: called after each attempt to create a session, before the hooks are called. report is the
 *   manager's; to keep it, move its fields and leave zeros. error (nullable): the attempt failed
 * @lost: it recovers, for the n-th time, after a pause in microseconds
 * @user_data: passed to each function
 *
 * Functions that a monitored session calls on the thread that runs it; each may be NULL.
 */
typedef struct {
  void (*made) (MusterSessionReport *report, const GError *error, gpointer user_data);
  void (*lost) (const GError *why, guint n, gint64 pause_us, gpointer user_data);
  gpointer user_data;
} MusterSessionListener;

/**
 * MusterSessionObserver:
 *
 * Emits signals for the sessions that a [class@MonitoredSession] creates and loses, on the thread
 * that runs it: [struct@SessionListener] as an object.
 */
#define MUSTER_TYPE_SESSION_OBSERVER (muster_session_observer_get_type ())
G_DECLARE_FINAL_TYPE (MusterSessionObserver, muster_session_observer, MUSTER, SESSION_OBSERVER,
                      GObject)

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

/**
 * muster_session_observer_listener:
 * @self: the observer
 *
 * The functions that emit its signals, for an API that takes a listener.
 *
 * Returns: (transfer none): a listener, valid as long as @self
 */
const MusterSessionListener *muster_session_observer_listener (MusterSessionObserver *self);

G_END_DECLS
